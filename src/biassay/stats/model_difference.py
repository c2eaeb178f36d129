"""Compare an association between two models by the calibrated cosine difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.crossed import CrossedResult, VarianceComponents, crossed_test
from biassay.stats.power import POWER, CrossedDesign
from biassay.stats.skewness import invert_hall

REVERSAL_NOT_EXCLUDED = (
    "the growth is at most the margin, but the association may have reversed and be stronger than before"
)
SIZE_UNKNOWN = "the association changed by more than the margin, but it may have changed sign rather than size"
TOO_FEW = "too few words in common for an interval"
ALL_ALIKE = "all words of a set change by the same amount: their spread is unknown, and there is no interval"

TOLERANCE = 1e-6
"""Tables that differ by no more than this are identical: copies, rotations and rescaled models."""

_MANY = 1e9  # degrees of freedom at which t is normal

Judgement = Literal["worse", "better", "no_worse", "inconclusive"]
Direction = Literal["positive", "negative"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """A sum or difference of two calibrated differences, with its interval.

    Attributes
    ----------
    value : float
    V : float
        Variance of `value`. NaN if a word set has one word.
    df : float
        Degrees of freedom of the t interval, by Satterthwaite.
    low, high : float or None
        None if there are too few words, or if all words agree, so that their spread is unknown.
    skewness : tuple of float
        Plausible values of the skewness of `value`; see `CrossedResult.skewness_range`.
    widening : float
        Amount by which the interval is wider on each side than t alone makes it.
    """

    value: float
    V: float
    df: float
    low: float | None
    high: float | None
    skewness: tuple[float, ...] = ()
    widening: float = 0.0

    @property
    def missing_reason(self) -> str | None:
        """Reason for a missing interval; None if there is one."""
        if self.low is not None:
            return None
        return TOO_FEW if math.isnan(self.V) or not math.isnan(self.df) else ALL_ALIKE

    def bound(self, probability: float) -> tuple[float, float]:
        """Return the one-sided lower and upper bounds at a probability, corrected for skewness.

        Each bound is the farther one of t and of Hall's (1992) correction of t, over all values of `skewness`.
        """
        t, error = float(scipy.special.stdtrit(min(self.df, _MANY), probability)), math.sqrt(self.V)
        below, above = invert_hall(t, (0.0, *self.skewness)).max(), -invert_hall(-t, (0.0, *self.skewness)).min()
        return self.value - self.widening - error * float(below), self.value + self.widening + error * float(above)

    def correct(self, confidence: float) -> Contrast:
        """Return the contrast with its interval corrected for skewness."""
        if self.low is None or self.high is None or not self.skewness:
            return self
        low, high = self.bound(0.5 + confidence / 2.0)
        return replace(self, low=min(low, self.low), high=max(high, self.high))


@dataclass(frozen=True)
class ModelDifference:
    """Comparison of one association on an old and a new model.

    Attributes
    ----------
    old, new : float
        Calibrated differences of the two models, in the direction of the test's words (not of the stereotype).
    growth : Contrast
        New minus old, positive towards the stereotype.
    reversal : Contrast
        New plus old, positive towards the stereotype. It is negative if the new model has the opposite sign and a
        larger size.
    verdict : {"worse", "better", "no_worse", "inconclusive"}
    corrected : Contrast or None
        The growth with its interval corrected for skewness, if that changes the verdict.
    identical : bool
        True if the tables are equal within the tolerance.
    power : GatePower or None
        None if the growth has no interval, or if the tables are identical.
    """

    old: float
    new: float
    growth: Contrast
    reversal: Contrast
    verdict: Judgement
    identical: bool
    power: GatePower | None
    corrected: Contrast | None = None


@dataclass(frozen=True)
class GatePower:
    """Power of the comparison to call a growth worse.

    Attributes
    ----------
    at_twice_margin : float
        Probability that a true growth of twice the margin is called worse.
    detectable : float or None
        True growth that is called worse with 80% power. None if no growth is.
    """

    at_twice_margin: float
    detectable: float | None


def compare_tables(
    old: ArrayLike,
    new: ArrayLike,
    n: int,
    k: int,
    *,
    direction: Direction | None,
    margin: float,
    confidence: float,
    scale_variance: float = 0.0,
    tolerance: float = TOLERANCE,
) -> ModelDifference:
    """Compare calibrated tables of the same words on two models.

    Parameters
    ----------
    old, new : (targets, attributes) array-like
        Similarities of words divided by each model's scale. The first `n` rows are X, the first `k` columns A.
    n, k : int
        Number of words of X and of A.
    direction : {"positive", "negative"} or None
        Sign of the effect that the stereotype predicts. If None, a growth away from 0 in either direction is worse.
    margin : float
        Growth that does not matter, in the units of the tables.
    confidence : float
        Confidence of each interval.
    scale_variance : float
        Variance of log(scale of the new model / scale of the old model).
    tolerance : float
        Tables that differ by no more than this are identical.

    Returns
    -------
    ModelDifference

    Notes
    -----
    Growth and reversal are crossed tests on the tables new - old and new + old, so their intervals are linear in the
    cosines, lie around the estimate and nest. With Delta the calibrated difference of a model, the delta method adds
    ``scale_variance * ((Delta_new + Delta_old) / 2)**2`` to the variance of the growth and
    ``scale_variance * ((Delta_new - Delta_old) / 2)**2`` to that of the reversal. The degrees of freedom stay those of
    the words: Satterthwaite's formula would raise them, and so make intervals of few words narrower than without this
    part.

    If words change by very unequal amounts, these intervals are not enough. The verdict is therefore that of intervals
    corrected for skewness (Hall 1992), which contain them. A set with less than half the words of the other set on its
    side may hide the skewness that the other one shows, so that skewness counts in both directions.
    """
    first, second = (np.asarray(table, dtype=np.float64) for table in (old, new))
    sign, directed = -1.0 if direction == "negative" else 1.0, direction is not None
    tests = [crossed_test(sign * table, n, k, confidence=confidence) for table in (second - first, second + first)]
    delta_old, delta_new = ((tests[1].D - tests[0].D) * sign / 2.0, (tests[1].D + tests[0].D) * sign / 2.0)
    if np.abs(second - first).max() <= tolerance:
        none = Contrast(0.0, 0.0, tests[0].df, 0.0, 0.0)
        return ModelDifference(delta_old, delta_new, none, _contrast(tests[1], 0.0), "no_worse", True, None)
    added = [scale_variance * (test.D / 2.0) ** 2 for test in reversed(tests)]
    growth, reversal = (_contrast(test, extra) for test, extra in zip(tests, added, strict=True))
    corrected = growth.correct(confidence)
    by_t = replace(growth, skewness=()), replace(reversal, skewness=())
    plain = judge_contrasts(by_t[0], by_t[1], margin, directed=directed)
    verdict = judge_contrasts(corrected, reversal.correct(confidence), margin, directed=directed)
    power = None
    if tests[0].interval is not None and tests[0].components is not None:
        power = gate_power(tests[0].components, tests[0].sizes, margin, 1.0 - confidence, scale_variance=added[0])
    return ModelDifference(
        delta_old, delta_new, growth, reversal, verdict, False, power, None if verdict == plain else corrected
    )


def judge_contrasts(growth: Contrast, reversal: Contrast, margin: float, *, directed: bool) -> Judgement:
    """Apply the rules for the four verdicts.

    Parameters
    ----------
    growth, reversal : Contrast
        New minus old and new plus old, both positive towards the stereotype.
    margin : float
    directed : bool
        If True, the stereotype predicts a positive sign. If False, a growth away from 0 in either direction is worse.

    Returns
    -------
    {"worse", "better", "no_worse", "inconclusive"}
    """
    if growth.low is None or growth.high is None or reversal.low is None or reversal.high is None:
        return "inconclusive"
    grown, fallen = growth.low > margin, growth.high < -margin
    above, below = reversal.low > margin, reversal.high < -margin
    if directed:
        worse, better = grown or (fallen and below), fallen and _lower_bound(reversal) >= -margin
        no_worse = growth.high <= margin and (growth.low >= -margin or reversal.low >= -margin)
    else:
        worse, better = (grown and above) or (fallen and below), (fallen and above) or (grown and below)
        no_worse = (growth.high <= margin or reversal.high <= margin) and (
            growth.low >= -margin or reversal.low >= -margin
        )
    return "worse" if worse else "better" if better else "no_worse" if no_worse else "inconclusive"


def explain_inconclusive(growth: Contrast, reversal: Contrast, margin: float, *, directed: bool) -> str | None:
    """Explain an inconclusive verdict that the growth alone would have decided.

    Parameters
    ----------
    growth, reversal : Contrast
        As in `judge_contrasts`, which called them inconclusive.
    margin : float
    directed : bool

    Returns
    -------
    str or None
        None if the growth itself is undecided.
    """
    if growth.low is None or growth.high is None or reversal.low is None or reversal.high is None:
        return None
    if directed:
        return REVERSAL_NOT_EXCLUDED if growth.high <= margin else None
    return SIZE_UNKNOWN if growth.low > margin or growth.high < -margin else None


def _lower_bound(contrast: Contrast) -> float:
    """Return the one-sided 95% bound of a contrast, or the lower end of its interval if its variance is unknown."""
    if contrast.low is None or not contrast.V > 0.0:
        return -math.inf if contrast.low is None else contrast.low
    return contrast.bound(0.95)[0]


def gate_power(
    components: VarianceComponents,
    sizes: tuple[int, int, int, int],
    margin: float,
    alpha: float,
    *,
    scale_variance: float = 0.0,
) -> GatePower:
    """Compute the power to call a growth worse from the variance components of the table new - old.

    Parameters
    ----------
    components : VarianceComponents
        Components of the difference of both calibrated tables.
    sizes : (int, int, int, int)
        Number of words of X, Y, A and B.
    margin : float
    alpha : float
        One minus the confidence of the interval.
    scale_variance : float
        Variance that the scales add to the growth.

    Returns
    -------
    GatePower
    """
    design = CrossedDesign(components, sizes, scale_variance)
    excess = design.smallest_difference_above(alpha, POWER) if alpha < POWER else None
    return GatePower(design.power_above(margin, alpha), None if excess is None else margin + excess)


def _contrast(test: CrossedResult, added: float) -> Contrast:
    """Widen the interval of a crossed test by a variance that is known well."""
    if test.interval is None:
        return Contrast(test.D, test.V, test.df, None, None)
    shape = test.skewness_range, test.widening
    if not added > 0.0:
        return Contrast(test.D, test.V, test.df, *test.interval, *shape)
    V = test.V + added
    reach = float(scipy.special.stdtrit(min(test.df, _MANY), 0.5 + test.confidence / 2.0)) * math.sqrt(V)
    reach += test.widening
    skewness = tuple(value * (test.V / V) ** 1.5 for value in test.skewness_range)
    return Contrast(test.D, V, test.df, test.D - reach, test.D + reach, skewness, test.widening)
