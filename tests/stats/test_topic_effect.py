"""Summaries of topics: closed forms, shared words by brute force, and coverage with dependent tests."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

import biassay
from biassay.errors import UsageError
from biassay.stats.topic_effect import correlate_errors, summarize_topic


def test_equal_variances_give_the_mean_with_its_t_interval() -> None:
    """With equal variances v, REML gives tau2 = max(0, s2 - v), and Knapp and Hartung the t interval of a mean."""
    y = np.array([0.2, 0.9, 0.4, 1.3, 0.1])
    for error in (0.1, 2.0):
        found = summarize_topic(y, np.full(5, error))
        low, high = scipy.stats.t.interval(0.95, 4, loc=y.mean(), scale=y.std(ddof=1) / np.sqrt(5))
        assert found.mean == pytest.approx(y.mean())
        assert (found.ci_low, found.ci_high) == pytest.approx((low, high), rel=1e-4)
        assert found.between_sd == pytest.approx(np.sqrt(max(0.0, y.var(ddof=1) - error**2)), abs=1e-4)
        assert found.p_value == pytest.approx(scipy.stats.ttest_1samp(y, 0.0).pvalue, rel=1e-3)
        pull = found.between_sd**2 / (found.between_sd**2 + error**2)
        assert found.shrunken == pytest.approx(y.mean() + pull * (y - y.mean()), abs=1e-4)


def test_correlations_come_from_shared_words() -> None:
    first, second = {"a": 0.3, "b": -0.4}, {"b": -0.5, "c": 1.2}
    third = {"d": 1.0}
    expected = 0.2 / (0.5 * 1.3)
    assert correlate_errors([first, second, third]) == pytest.approx(
        np.array([[1.0, expected, 0.0], [expected, 1.0, 0.0], [0.0, 0.0, 1.0]])
    )


def test_a_summary_needs_three_tests_with_errors() -> None:
    with pytest.raises(UsageError, match="at least 3 tests"):
        summarize_topic([0.1, 0.2], [0.1, 0.1])
    with pytest.raises(UsageError, match="positive standard error"):
        summarize_topic([0.1, 0.2, 0.3], [0.1, 0.1, 0.0])


@pytest.mark.slow
def test_intervals_cover_the_mean_of_tests_that_share_all_their_target_words() -> None:
    """Six tests on the same 8 and 8 target words: an interval that takes them as independent covers about .6."""
    rng = np.random.default_rng(1)
    hits, independent, n, k = 0, 0, 8, 6
    for _ in range(300):
        targets = 0.4 * rng.normal(size=2 * n)
        effects, errors, influences = [], [], []
        for test in range(k):
            values = targets + 0.15 * rng.normal(size=2 * n)
            own = 0.3 * rng.normal(size=2 * n)
            sides = [values[:n], values[n:], own[:n], own[n:]]
            effects.append(0.5 + sides[0].mean() - sides[1].mean() + sides[2].mean() - sides[3].mean())
            errors.append(np.sqrt(sum(side.var(ddof=1) / n for side in sides)))
            moved = np.concatenate([s * (v - v.mean()) for s, v in zip((1, -1, 1, -1), sides, strict=True)])
            names = [*(f"t{i}" for i in range(2 * n)), *(f"{test}a{i}" for i in range(2 * n))]
            influences.append(dict(zip(names, moved / np.sqrt(n * (n - 1)), strict=True)))
        found = summarize_topic(effects, errors, correlate_errors(influences), [2.0 * (n - 1)] * k)
        hits += found.ci_low <= 0.5 <= found.ci_high
        alone = summarize_topic(effects, errors)
        independent += alone.ci_low <= 0.5 <= alone.ci_high
    assert 0.91 <= hits / 300 <= 0.98
    assert independent / 300 < 0.75


def test_a_run_summarizes_its_topics() -> None:
    run = biassay.run("glove", "gender")
    (row,) = run.tables["topics"]
    assert row.topic == "gender"
    assert len(row.tests) == len(set(row.tests)) >= 6
    questions = {result.test: result.question_or_item for result in run.results}
    assert len({questions[test] for test in row.tests}) == len(row.tests)
    assert row.topic_ci_low < row.topic_effect < row.topic_ci_high
    single = {result.test: result for result in run.results}
    signed = [single[test].calibrated_difference * single[test].record.direction for test in row.tests]
    assert min(signed) < row.topic_effect < max(signed)
    assert not biassay.run("glove", ["weat6", "weat7"]).tables["topics"]
