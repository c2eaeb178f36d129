"""Audits of judged responses: brute force, agreement with other libraries, coverage, and bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import UsageError
from biassay.stats.judged_audit import cohen_kappa, correct_scores

CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12}
audit_judged: Any = biassay.judged_audit  # results that are None fail a test by themselves
Floats = Any


def make_responses(
    rng: np.random.Generator, n: int = 4, m: int = 6, responses: int = 2, per_name: int = 3, bias: float = 0.5
) -> tuple[Floats, Floats, list[str]]:
    """Return scores of a judge that is biased against group a, labels of some responses, and groups."""
    groups = ["a"] * n + ["b"] * n
    human = rng.normal(size=(2 * n, 1, 1)) + rng.normal(size=(2 * n, m, responses))
    judge = human + rng.normal(size=human.shape) - bias * (np.array(groups) == "a")[:, None, None]
    labels = np.full(human.shape, np.nan)
    for i in range(2 * n):
        cells = rng.choice(m * responses, per_name, replace=False)
        labels[i].flat[cells] = human[i].flat[cells]
    return judge, labels, groups


def correct_by_hand(judge: Floats, labels: Floats, groups: list[str]) -> list[float]:
    """Return the corrected score of every name, in loops."""
    scores = []
    for i in range(len(groups)):
        cells = [[x for x in cell if not math.isnan(x)] for cell in judge[i]]
        mean = np.mean([np.mean(cell) for cell in cells if cell])
        pairs = zip(judge[i].ravel(), labels[i].ravel(), strict=True)
        errors = [j - h for j, h in pairs if not math.isnan(j) and not math.isnan(h)]
        scores.append(float(mean - np.mean(errors)))
    return scores


def difference_without(prompt: int, judge: Floats, labels: Floats, groups: list[str]) -> float:
    """Return D without a prompt and its labels."""
    judge, labels = np.delete(judge, prompt, axis=1), np.delete(labels, prompt, axis=1)
    sides = []
    for group in "ab":
        members = [i for i, owner in enumerate(groups) if owner == group]
        errors = (judge[members] - labels[members]).ravel()
        sides.append(judge[members].mean() - errors[~np.isnan(errors)].mean())
    return float(sides[0] - sides[1])


def test_corrected_scores_of_names() -> None:
    """Also with missing scores, and with more labels for some names than for others."""
    judge, labels, groups = make_responses(np.random.default_rng(0))
    judge[0, 1], judge[3, 2, 0], labels[1, 0, 0] = np.nan, np.nan, 0.5
    corrected = correct_scores(judge, labels, groups)
    by_name = [np.mean([np.nanmean(cell) for cell in cells if not np.isnan(cell).all()]) for cells in corrected]
    assert by_name == pytest.approx(correct_by_hand(judge, labels, groups), **CLOSE)


def test_difference_and_its_variance() -> None:
    """Variance of names from their corrected scores; of prompts by leaving out one at a time.

    With one label of every name in every prompt, leaving out a prompt leaves out equally many labels, and both ways to
    compute the variance of prompts agree exactly.
    """
    rng, n, m = np.random.default_rng(1), 4, 6
    judge, labels, groups = make_responses(rng, n, m)
    human = judge + rng.normal(size=judge.shape)
    labels = np.full(judge.shape, np.nan)
    labels[:, :, 0] = human[:, :, 0]
    a = np.array(correct_by_hand(judge, labels, groups))
    contrast = audit_judged(judge, labels, groups, rng=0).corrected["a"]
    assert contrast.effect_size == pytest.approx(a[:n].mean() - a[n:].mean(), **CLOSE)
    assert contrast.v_names == pytest.approx(a[:n].var(ddof=1) / n + a[n:].var(ddof=1) / n, **CLOSE)
    left = np.array([difference_without(d, judge, labels, groups) for d in range(m)])
    assert contrast.v_documents == pytest.approx((m - 1) / m * ((left - left.mean()) ** 2).sum(), **CLOSE)
    total = contrast.v_names + contrast.v_documents - contrast.v_residual
    assert contrast.standard_error**2 == pytest.approx(max(total, contrast.v_names, contrast.v_documents), **CLOSE)


def test_prompts_with_unequal_numbers_of_labels() -> None:
    """Leaving out a prompt agrees to first order."""
    rng = np.random.default_rng(2)
    judge, labels, groups = make_responses(rng, n=50, m=20, responses=1, per_name=2)
    contrast = audit_judged(judge, labels, groups, rng=0).corrected["a"]
    left = np.array([difference_without(d, judge, labels, groups) for d in range(20)])
    assert contrast.v_documents == pytest.approx(19 / 20 * ((left - left.mean()) ** 2).sum(), rel=0.1)


def test_a_perfect_judge_needs_no_correction() -> None:
    judge, labels, groups = make_responses(np.random.default_rng(3))
    labels[~np.isnan(labels)] = judge[~np.isnan(labels)]
    audit = audit_judged(judge, labels, groups, rng=0)
    for name in ("effect_size", "standard_error", "df", "p_value", "ci_low"):
        assert getattr(audit.corrected["a"], name) == pytest.approx(getattr(audit.uncorrected["a"], name), **CLOSE)
    assert audit.agreement["a"].error == 0.0
    assert audit.agreement["a"].tau == pytest.approx(1.0)


def test_a_constant_error_of_the_judge_cancels() -> None:
    """Only the error that differs between groups is a bias; the mean score moves to that of people."""
    judge, labels, groups = make_responses(np.random.default_rng(4))
    human = np.where(np.isnan(labels), np.nan, judge - 2.0)
    audit = audit_judged(judge, human, groups, rng=0)
    assert audit.corrected["a"].effect_size == pytest.approx(audit.uncorrected["a"].effect_size, **CLOSE)
    assert audit.corrected.name_means == pytest.approx(audit.uncorrected.name_means - 2.0, **CLOSE)


def test_agreement_by_group() -> None:
    judge, labels, groups = make_responses(np.random.default_rng(5), n=6)
    agreement = audit_judged(judge, labels, groups, rng=0).agreement
    assert list(agreement) == ["a", "b"]
    for rows, one in zip((slice(0, 6), slice(6, 12)), agreement.values(), strict=True):
        chosen = ~np.isnan(labels[rows])
        j, h = judge[rows][chosen], labels[rows][chosen]
        ranks = np.sign(np.subtract.outer(j, j)) * np.sign(np.subtract.outer(h, h))
        assert one.n_labels == 18
        assert one.error == pytest.approx((j - h).mean(), **CLOSE)
        assert one.tau == pytest.approx(ranks.sum() / (18 * 17), **CLOSE)
        assert one.kappa is None


def test_cohen_kappa() -> None:
    """The example of two readers of 50 grant proposals: 35 agreements, kappa 0.4."""
    first = np.repeat(["yes", "yes", "no", "no"], [20, 5, 10, 15])
    second = np.repeat(["yes", "no", "yes", "no"], [20, 5, 10, 15])
    assert cohen_kappa(first, second) == pytest.approx(0.4)
    assert cohen_kappa([1, 1], [1, 1]) is None
    assert cohen_kappa([1, 1, 2], [2, 2, 1]) == pytest.approx(-0.8)
    judge, labels, groups = make_responses(np.random.default_rng(6))
    judge, labels = judge.round(), labels.round()
    agreement = audit_judged(judge, labels, groups, categorical=True, rng=0).agreement
    chosen = ~np.isnan(labels[:4])
    assert agreement["a"].kappa == pytest.approx(cohen_kappa(judge[:4][chosen], labels[:4][chosen]))
    assert agreement["a"].tau is None


def test_a_judge_biased_against_one_group() -> None:
    """With 200 labels of 640 responses; the claim "judged interval" of benchmarks/validity.py has the coverage."""
    responses = make_responses(np.random.default_rng(7), n=20, m=8, responses=2, per_name=5, bias=2.0)
    audit = audit_judged(*responses, rng=0)
    assert audit.uncorrected["a"].ci_high < 0.0
    assert (
        audit.uncorrected["a"].effect_size
        == biassay.name_audit(responses[0].mean(axis=2), responses[2])["a"].effect_size
    )
    assert audit.corrected["a"].ci_low < 0.0 < audit.corrected["a"].ci_high
    assert audit.agreement["a"].error < -1.0 < audit.agreement["b"].error


def test_a_judge_without_variance() -> None:
    """All scores and labels agree: there is no variance to test with."""
    contrast = audit_judged(np.ones((4, 5)), np.ones((4, 5)), ["a", "a", "b", "b"]).corrected["a"]
    assert contrast.effect_size == 0.0
    assert contrast.p_value is None
    assert "no variance" in contrast.reason


def test_bad_input() -> None:
    judge, labels, groups = make_responses(np.random.default_rng(8))
    with pytest.raises(UsageError, match=r"same shape, got shapes \(8, 6, 2\) and \(8, 6\)"):
        audit_judged(judge, labels[:, :, 0], groups)
    with pytest.raises(UsageError, match="7 groups, 8 names"):
        audit_judged(judge, labels, groups[:-1])
    with pytest.raises(UsageError, match="must be finite"):
        audit_judged(np.where(np.isnan(labels), np.inf, judge), labels, groups)
    with pytest.raises(UsageError, match="must be numbers"):
        audit_judged("warm", labels, groups)
    labels[2] = np.nan
    with pytest.raises(UsageError, match=r"1 of 8 names have no labelled response .* such as name 2"):
        audit_judged(judge, labels, groups)
