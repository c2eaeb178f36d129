"""Interval of the effect size by word, where all words are samples of their kinds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.association import FLAT
from biassay.stats.crossed import CONFIDENCE, Crossed, crossed_test

__all__ = ["Estimate", "crossed_effect", "expected_effect", "in_short"]

_TINY = math.ulp(0.0)
_LARGEST_LOG = 500.0

Floats = NDArray[np.float64]
Changes = tuple[Floats, Floats, Floats]
Number = float | Floats


def _normal(points: int) -> tuple[Floats, Floats]:
    """Points and weights that average a function over a standard normal variable."""
    at, weights = np.polynomial.hermite_e.hermegauss(points)
    return at, weights / weights.sum()


_NUMERATOR, _OF_NUMERATOR = _normal(15)
_SPREAD, _OF_SPREAD = _normal(5)
_WEIGHTS = np.outer(_OF_NUMERATOR, _OF_SPREAD).ravel()


@dataclass(frozen=True)
class Estimate:
    """An effect size and its interval over words of the same kinds; None: too few words, NaN: not defined."""

    effect_size: float
    low: float | None
    high: float | None
    confidence: float


def crossed_effect(
    cosines: ArrayLike, n: int, k: int, *, confidence: float = CONFIDENCE, test: Crossed | None = None
) -> Estimate:
    """The effect size by word, with an interval of what other words of their kinds would give on average.

    ``cosines`` (targets, attributes) of words; the first ``n`` rows are X, the first ``k`` columns A. The interval
    leaves out 0 exactly where the p-value of the crossed test is at most 1 - ``confidence``; ``test`` is that test of
    the same cosines, where it was made before.

    With s_w the standard deviation of associations within X and Y, the effect size is a function of D / s_w alone. The
    values of D / s_w that D - (value) s_w does not contradict are found as by Fieller, with the variance of D of the
    crossed test, and the variance of s_w and its covariance with D by leaving out words of both sides. An end becomes
    an effect size by averaging over the samples that this D / s_w would give.

    Simulated with 5 to 25 words a set, all drawn anew, 95% intervals held the expected effect size in 92 to 98 of 100
    (99 with 5 words a set where the residual dominates), on GloVe in 94 to 99; where targets alone vary, with heavy
    tails or skew, and the effect is 1.5, in 89 to 93.
    """
    test = test or crossed_test(cosines, n, k, confidence=confidence)
    confidence = test.confidence
    table = np.asarray(cosines, dtype=np.float64)
    N, m = len(table), len(table) - n
    s = table[:, :k].mean(axis=1) - table[:, k:].mean(axis=1)
    flat = FLAT * max(1.0, float(np.abs(table).max()))
    spread = float(s.std(ddof=1))
    d = test.D / spread if spread > flat else math.nan
    s_w = math.sqrt(float((_centred(s, n) ** 2).sum()) / max(N - 2, 1))
    if test.p_value is None or math.isnan(d):
        return Estimate(d, None, None, confidence)
    if test.all_agree or not s_w > flat:  # equal targets say nothing about the spread of others, only about the sign
        most = math.sqrt(N * (N - 1) / (n * m))
        low, high = _of_sign(-most, most, test.p_value <= 1.0 - confidence, test.D)
        return Estimate(d, min(low, d), max(high, d), confidence)
    t = float(scipy.special.stdtrit(test.df, 0.5 + confidence / 2.0))
    of_D, of_s = _left_out(table, s, n, k)
    var_s = max(_variance(of_s), s_w * s_w / (2 * (N - 2)))  # no less than normal associations give
    largest, (targets, attributes, residual) = math.sqrt(test.V * var_s), _parts(of_D, of_s)
    covariance = min(max(targets + attributes - residual, -largest), largest)
    low, high = _fieller(test.D, s_w, test.V, var_s, covariance, t)
    error, relative = math.sqrt(test.V) / s_w, math.sqrt(var_s) / s_w
    low, high = (float(expected_effect(end, error, relative, n, m)) for end in (low, high))
    low, high = _of_sign(low, high, test.p_value <= 1.0 - confidence, test.D)
    return Estimate(d, min(low, d), max(high, d), confidence)


def _of_sign(low: float, high: float, significant: bool, D: float) -> tuple[float, float]:
    """An interval that leaves out 0 where the test is significant, and only there, which rounding may not decide."""
    if not significant:
        return min(low, 0.0), max(high, 0.0)
    return (max(low, _TINY), high) if D > 0.0 else (low, min(high, -_TINY))


def _fieller(D: float, s: float, V: float, var_s: float, covariance: float, t: float) -> tuple[float, float]:
    """The values x around D / s with (D - x s)^2 <= t^2 (V + x^2 var_s - 2 x covariance)."""
    a, b, c = s * s - t * t * var_s, D * s - t * t * covariance, D * D - t * t * V
    if a <= 0.0:  # the spread itself may be anything
        return (-math.inf, math.inf) if c <= 0.0 else _ray(a, b, c, D)
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a


def _ray(a: float, b: float, c: float, D: float) -> tuple[float, float]:
    """All values of the sign of D from the root of a x^2 - 2 b x + c of that sign; a <= 0 < c, so there is one of each
    sign (b = 0 and a = 0 leave none).
    """
    sign = math.copysign(1.0, D)
    below = sign * b + math.sqrt(b * b - a * c)
    near = c / below if below > 0.0 else math.inf
    return (near, math.inf) if sign > 0.0 else (-math.inf, -near)


def expected_effect(x: Number, error: Number, relative: Number, n: int, m: int) -> Floats:
    """The mean effect size of samples where D / s_w is truly x: D varies by ``error``, s_w by the share ``relative``.

    It is 0 at 0 and grows with x, so that signs and order stay.
    """
    N = n + m
    largest = math.sqrt(N * (N - 1) / (n * m))
    x, error, relative = (np.asarray(number)[..., None, None] for number in (x, error, relative))
    # Where s_w is close to 0, `relative` may be any number: the limit keeps exp finite, and d is at its largest anyway.
    drawn = (x + error * _NUMERATOR[:, None]) * np.exp(np.minimum(relative * (relative + _SPREAD), _LARGEST_LOG))
    drawn = drawn.reshape(*drawn.shape[:-2], -1)
    return np.asarray(largest * (np.sin(np.arctan(drawn * math.sqrt(n * m / (N * (N - 2))))) @ _WEIGHTS))


def _left_out(table: Floats, s: Floats, n: int, k: int) -> tuple[Changes, Changes]:
    """How D and s_w change as a target, an attribute, or one of each is left out, centred within sets.

    Scaled so that sums of products are what target words, attribute words and the residual add to a variance.
    """
    N = len(table)
    (words, sign), (others, other_sign) = _sets(n, N), _sets(k, table.shape[1])
    off = _centred(s, n)
    own = off * off
    s_i = _spread_of(own.sum() - own * (words / (words - 1.0)), N - 3)
    without = s[:, None] - _centred(table.T, k).T * (other_sign / (others - 1.0))
    D_j = without[:n].sum(axis=0) / n - without[n:].sum(axis=0) / (N - n)
    off_j = _centred(without, n)
    own_j = off_j * off_j
    squares_j = own_j.sum(axis=0)
    s_j = _spread_of(squares_j, N - 2)
    s_ij = _spread_of(squares_j - own_j * (words / (words - 1.0))[:, None], N - 3)
    by_target, by_attribute = np.sqrt(1.0 - 1.0 / words), np.sqrt(1.0 - 1.0 / others)
    by_D = -sign / (words - 1.0) * by_target
    D_ij, of_s_ij = _centred(off_j.T, k) * by_attribute[:, None] * by_D, _centred(_centred(s_ij, n).T, k)
    of_D = by_D * off, _centred(D_j, k) * by_attribute, D_ij.ravel()
    of_s_ij *= by_attribute[:, None] * by_target
    return of_D, (_centred(s_i, n) * by_target, _centred(s_j, k) * by_attribute, of_s_ij.ravel())


@lru_cache(maxsize=64)
def _sets(first: int, of: int) -> tuple[Floats, Floats]:
    """For each of so many words the size of its set, and 1 in the first set, -1 in the second."""
    sizes = [first, of - first]
    return np.repeat(np.array(sizes, dtype=np.float64), sizes), np.repeat([1.0, -1.0], sizes)


def _spread_of(squares: Floats, df: int) -> Floats:
    return np.asarray(np.sqrt(np.maximum(squares, 0.0) / df))


def _centred(values: Floats, first: int) -> Floats:
    """Rows less the mean of their set: the ``first`` rows are one, the others the second."""
    out = np.empty_like(values)
    for rows in (slice(0, first), slice(first, None)):
        part = values[rows]
        np.subtract(part, part.sum(axis=0) / len(part), out=out[rows])
    return out


def _parts(one: Changes, other: Changes) -> tuple[float, float, float]:
    """What target words, attribute words and the residual add to a covariance."""
    return float(one[0] @ other[0]), float(one[1] @ other[1]), float(one[2] @ other[2])


def _variance(changes: Changes) -> float:
    targets, attributes, residual = _parts(changes, changes)
    return max(targets + attributes - residual, targets, attributes)


def in_short(estimate: Estimate, crossed: Crossed) -> str:
    """The numbers that lead, in a line."""
    ends = (estimate.low, estimate.high)
    interval = "None" if None in ends else f"({', '.join(f'{end:.4g}' for end in ends)})"
    p = "None" if crossed.p_value is None else f"{crossed.p_value:.4g}"
    return f"d={estimate.effect_size:.4g}, interval={interval}, crossed p={p}, words={crossed.sizes}"
