"""Intervals of the effect size by word, and of the difference of two, where all words are samples of their kinds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.association import FLAT
from biassay.stats.crossed import CONFIDENCE, Crossed, crossed_test

__all__ = ["Difference", "Estimate", "crossed_difference", "crossed_effect", "expected_effect", "in_short"]

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


@dataclass(frozen=True)
class Difference:
    """The second effect size minus the first, with an interval that takes into account that the words are the same."""

    first: Estimate
    second: Estimate
    difference: float
    low: float | None
    high: float | None
    confidence: float


@dataclass(frozen=True)
class _Found:
    """An estimate, with what the difference from another needs: changes of D / s_w as words are left out."""

    estimate: Estimate
    changes: Changes | None


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
    return _found(cosines, n, k, test or crossed_test(cosines, n, k, confidence=confidence)).estimate


def crossed_difference(
    cosines1: ArrayLike,
    cosines2: ArrayLike,
    n: int,
    k: int,
    *,
    confidence: float = CONFIDENCE,
    absolute: bool = False,
) -> Difference:
    """How much larger the second effect size by word is than the first: two models, the same words in the same order.

    With ``absolute`` the difference is that of absolute values, how much stronger the second association is. Where a
    sign is in doubt its interval holds what either sign would give. A model does not differ from itself.

    Simulated with 5 to 25 words a set, and words that go together by 0 to 0.9 in both models, 95% intervals held the
    expected difference in 94 to 99 of 100, that of absolute values in 95 to 100.
    """
    if np.shape(cosines1) != np.shape(cosines2):
        shapes = f"{np.shape(cosines1)} and {np.shape(cosines2)}"
        raise UsageError(f"both tables of cosines must be of the same words, got shapes {shapes}")
    tests = [crossed_test(cosines, n, k, confidence=confidence) for cosines in (cosines1, cosines2)]
    found = [_found(cosines, n, k, test) for cosines, test in zip((cosines1, cosines2), tests, strict=True)]
    first, second = (one.estimate for one in found)
    d1, d2 = first.effect_size, second.effect_size
    difference = abs(d2) - abs(d1) if absolute else d2 - d1
    if math.isfinite(difference) and np.array_equal(cosines1, cosines2):
        return Difference(first, second, 0.0, 0.0, 0.0, confidence)
    ends = _ends(found[0], found[1], absolute)
    if ends is None:
        return Difference(first, second, difference, None, None, confidence)
    low, high = min(ends[0], difference), max(ends[1], difference)
    return Difference(first, second, difference, low, high, confidence)


def _found(cosines: ArrayLike, n: int, k: int, test: Crossed) -> _Found:
    confidence = test.confidence
    table = np.asarray(cosines, dtype=np.float64)
    N, m = len(table), len(table) - n
    s = table[:, :k].mean(axis=1) - table[:, k:].mean(axis=1)
    flat = FLAT * max(1.0, float(np.abs(table).max()))
    spread = float(s.std(ddof=1))
    d = test.D / spread if spread > flat else math.nan
    s_w = math.sqrt(float((_centred(s, n) ** 2).sum()) / max(N - 2, 1))
    if test.p_value is None or math.isnan(d):
        return _Found(Estimate(d, None, None, confidence), None)
    if test.all_agree or not s_w > flat:  # equal targets say nothing about the spread of others, only about the sign
        most = math.sqrt(N * (N - 1) / (n * m))
        low, high = _of_sign(-most, most, test.p_value <= 1.0 - confidence, test.D)
        return _Found(Estimate(d, min(low, d), max(high, d), confidence), None)
    t = float(scipy.special.stdtrit(test.df, 0.5 + confidence / 2.0))
    of_D, of_s = _left_out(table, s, n, k)
    var_s = max(_variance(of_s), s_w * s_w / (2 * (N - 2)))  # no less than normal associations give
    largest, (targets, attributes, residual) = math.sqrt(test.V * var_s), _parts(of_D, of_s)
    covariance = min(max(targets + attributes - residual, -largest), largest)
    low, high = _fieller(test.D, s_w, test.V, var_s, covariance, t)
    error, relative = math.sqrt(test.V) / s_w, math.sqrt(var_s) / s_w
    low, high = (float(expected_effect(end, error, relative, n, m)) for end in (low, high))
    low, high = _of_sign(low, high, test.p_value <= 1.0 - confidence, test.D)
    changes = _sum(1.0 / s_w, of_D, -test.D / s_w**2, of_s)
    return _Found(Estimate(d, min(low, d), max(high, d), confidence), changes)


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


def _sum(p: float, one: Changes, q: float, other: Changes) -> Changes:
    return p * one[0] + q * other[0], p * one[1] + q * other[1], p * one[2] + q * other[2]


def _ends(first: _Found, second: _Found, absolute: bool) -> tuple[float, float] | None:
    """The smallest and largest difference of effect sizes that lie together in the ellipse of their intervals.

    An effect size goes from its estimate to the ends of its interval as its axis goes from 0 to -1 and 1; the ellipse
    is as narrow as the two estimates go together when words are left out.
    """
    if first.changes is None or second.changes is None:
        return None
    scales = [1.0 / (math.sqrt(_variance(one)) or 1.0) for one in (first.changes, second.changes)]
    along, apart = (_variance(_sum(scales[0], first.changes, sign * scales[1], second.changes)) for sign in (1.0, -1.0))
    half = math.atan2(math.sqrt(apart), math.sqrt(along))  # half the angle whose cosine is the correlation
    turns = _turns(first.estimate, second.estimate, half)
    x1, x2 = _moved(first.estimate, np.cos(turns - half)), _moved(second.estimate, np.cos(turns + half))
    low, high = float((x2 - x1).min()), float((x2 - x1).max())
    if not absolute:
        return low, high
    # |x2| - |x1| is the larger of min(x2 - x1, x2 + x1) and min(x1 - x2, -x1 - x2)
    least, most = float((x2 + x1).min()), float((x2 + x1).max())
    low, high = min(max(low, -most), max(-high, least)), max(min(high, most), min(-low, -least))
    return max(low, -_farthest(first.estimate)), min(high, _farthest(second.estimate))


def _farthest(estimate: Estimate) -> float:
    return max(abs(estimate.low or 0.0), abs(estimate.high or 0.0))


def _turns(first: Estimate, second: Estimate, half: float) -> Floats:
    """Where on the ellipse a sum or a difference of effect sizes may be largest or smallest.

    Both are linear between the places where one effect size is as estimated: there, or where a line would have them.
    """
    up1, up2, down1, down2 = (
        float(_moved(one, np.array(end)) - one.effect_size) for end in (1.0, -1.0) for one in (first, second)
    )
    slopes = [(p, q) for p in (up1, -down1) for q in (up2, -down2)]
    lines = [math.atan2((p - q) * math.sin(half), (p + q) * math.cos(half)) for p, q in slopes]
    lines += [math.atan2((p + q) * math.sin(half), (p - q) * math.cos(half)) for p, q in slopes]
    at = np.array([half + math.pi / 2.0, math.pi / 2.0 - half, *lines])
    return np.concatenate([at, at + math.pi])


def _moved(estimate: Estimate, axis: Floats) -> Floats:
    d = estimate.effect_size
    low, high = (d if end is None else end for end in (estimate.low, estimate.high))
    return np.where(axis > 0.0, d + axis * (high - d), d + axis * (d - low))


def in_short(estimate: Estimate, crossed: Crossed) -> str:
    """The numbers that lead, in a line."""
    ends = (estimate.low, estimate.high)
    interval = "None" if None in ends else f"({', '.join(f'{end:.4g}' for end in ends)})"
    p = "None" if crossed.p_value is None else f"{crossed.p_value:.4g}"
    return f"d={estimate.effect_size:.4g}, interval={interval}, crossed p={p}, words={crossed.sizes}"
