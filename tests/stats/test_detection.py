"""Detection curves: the tie rule, the area, and counts by brute force."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biassay.errors import UnknownNameError, UsageError
from biassay.stats.detection import DetectionCurve, Rule, detection_curve

SCORES = st.lists(st.integers(-4, 4).map(lambda n: n / 2), min_size=2, max_size=2)
WORDS = st.lists(st.tuples(SCORES, SCORES, st.booleans()), min_size=2, max_size=12).filter(
    lambda words: 0 < sum(w[2] for w in words) < len(words)
)


@given(WORDS, st.sampled_from(["any", "all"]))
def test_counts_are_those_of_a_loop(words: list[tuple[list[float], list[float], bool]], rule: Rule) -> None:
    thresholds = [-3.0, -0.5, 0.0, 0.25, 1.0]
    curve = detection_curve(
        [w[0] for w in words],
        [w[2] for w in words],
        constituents=[w[1] for w in words],
        rule=rule,
        thresholds=thresholds,
    )
    decides = any if rule == "any" else all
    for place, t in enumerate(thresholds):
        found = [any(s > t for s in own) and not decides(s > t for s in dropping) for own, dropping, _ in words]
        truth = [w[2] for w in words]
        counts = [sum(f is a and t is b for f, t in zip(found, truth, strict=True)) for a, b in PAIRS]
        assert [int(getattr(curve, name)[place]) for name in ("tp", "fp", "fn", "tn")] == counts
        assert curve.accuracy[place] == (counts[0] + counts[3]) / len(words)
        if counts[0] + counts[1]:
            assert curve.precision[place] == counts[0] / (counts[0] + counts[1])
        else:
            assert np.isnan(curve.precision[place])
    assert curve.chance == sum(w[2] for w in words) / len(words)


PAIRS = [(True, True), (True, False), (False, True), (False, False)]


@pytest.mark.slow
@given(WORDS)
def test_area_without_constituents_is_the_rank_statistic(words: list[tuple[list[float], list[float], bool]]) -> None:
    largest = np.array([max(w[0]) for w in words])
    truth = np.array([w[2] for w in words])
    curve = detection_curve([w[0] for w in words], truth)
    u = stats.mannwhitneyu(largest[truth], largest[~truth], method="asymptotic").statistic
    assert curve.area == pytest.approx(u / (truth.sum() * (~truth).sum()), abs=1e-12)


def test_area_with_constituents_is_under_the_best_rate_up_to_each_point() -> None:
    """By hand, as the threshold rises: none, the first, the first and third, the first three, the first and third."""
    own = [[2.0], [0.5], [0.6], [-2.0]]
    dropping = [[-1.0], [0.2], [0.0], [3.0]]
    curve = detection_curve(own, [True, True, False, False], constituents=dropping)
    points = {(float(x), float(y)) for x, y in zip(curve.fpr, curve.tpr, strict=True)}
    assert points == {(0.0, 0.0), (0.0, 0.5), (0.5, 0.5), (0.5, 1.0)}
    # At a rate of 1/2 up to x = 1/2, and at 1 from there on.
    assert curve.area == pytest.approx(0.5 * 0.5 + 0.5 * 1.0)


def test_of_equal_gains_the_one_with_most_true_positives_is_chosen(reference: Path) -> None:
    example = json.loads((reference / "ibd" / "expected.json").read_text())["tie_example"]
    tp, fp = np.array(example["tp"]), np.array(example["fp"])
    positives, negatives = example["positives"], example["negatives"]
    curve = DetectionCurve(np.array(example["threshold"]), tp, fp, positives - tp, negatives - fp, 0.5)
    gains = curve.tpr - curve.fpr
    assert np.count_nonzero(np.isclose(gains, gains.max())) > 1
    assert curve.thresholds[curve.best()] == example["chosen"]


def test_of_equal_points_the_highest_threshold_is_chosen_and_sign_can_be_asked() -> None:
    curve = detection_curve([[1.0], [-1.0]], [True, False], thresholds=[-0.5, 0.25, 0.5, 2.0])
    assert curve.thresholds[curve.best()] == 0.5
    # Here the best is negative: the true word scores lower than zero.
    other = detection_curve([[-0.2], [-1.0]], [True, False], thresholds=[-0.5, 0.5])
    assert other.thresholds[other.best()] == -0.5
    assert other.thresholds[other.best(positive_only=True)] == 0.5
    with pytest.raises(UsageError, match="no threshold is positive"):
        detection_curve([[1.0], [-1.0]], [True, False], thresholds=[-0.5]).best(positive_only=True)


@pytest.mark.parametrize("truth", [[True, True], [False, False]])
def test_a_class_without_words_is_refused(truth: list[bool]) -> None:
    with pytest.raises(UsageError, match=f"{sum(truth)} of 2 words belong to the group"):
        detection_curve([[1.0], [0.0]], truth)


def test_shapes_and_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match=r"scores must have a row for each of the 2 words, got shape \(1, 1\)"):
        detection_curve([[1.0]], [True, False])
    with pytest.raises(UsageError, match="constituents must have a row"):
        detection_curve([[1.0], [0.0]], [True, False], constituents=[[1.0]])
    with pytest.raises(UsageError, match="at least one threshold"):
        detection_curve([[1.0], [0.0]], [True, False], thresholds=[])
    with pytest.raises(UnknownNameError, match="unknown rule"):
        detection_curve([[1.0], [0.0]], [True, False], rule="some")  # type: ignore[arg-type]
