"""Interval of the effect size by word, where all words are samples of their kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.association import FLAT
from biassay.stats.blocks import as_table, largest_value, row_blocks
from biassay.stats.crossed import CONFIDENCE, Crossed, crossed_test

__all__ = ["Estimate", "crossed_effect", "expected_effect", "in_short"]

_TINY = math.ulp(0.0)
_LARGEST_LOG = 500.0

Floats = NDArray[np.float64]
Parts = tuple[float, float, float]
"""What target words, attribute words and the residual add to a variance or covariance."""
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
    table = as_table(cosines)
    N, m = len(table), len(table) - n
    s = table[:, :k].mean(axis=1, dtype=np.float64) - table[:, k:].mean(axis=1, dtype=np.float64)
    flat = FLAT * max(1.0, largest_value(table))
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
    of_s, (targets, attributes, residual) = _jackknife(table, s, n, k)
    var_s = max(_variance(of_s), s_w * s_w / (2 * (N - 2)))  # no less than normal associations give
    largest = math.sqrt(test.V * var_s)
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


def _jackknife(table: NDArray[np.floating], s: Floats, n: int, k: int) -> tuple[Parts, Parts]:
    """Estimate the variance of s_w and its covariance with D by leaving out a target, an attribute, or one of each.

    Every pass over the table goes block by block, because the changes for all pairs of words are as large as the table.
    """
    N = len(table)
    (words, sign), (others, other_sign) = _sets(n, N), _sets(k, table.shape[1])
    off = _centred(s, n)
    own = off * off
    s_i = _spread_of(own.sum() - own * (words / (words - 1.0)), N - 3)

    def without_each(block: slice) -> Floats:
        """The associations of a block of targets without each attribute."""
        values = np.asarray(table[block], dtype=np.float64)
        return np.asarray(s[block, None] - _centred(values.T, k).T * (other_sign / (others - 1.0)))

    blocks = list(row_blocks(table.shape))
    sums = _sums_by_set(((block, without_each(block)) for block in blocks), n)
    means = [total / size for total, size in zip(sums, (n, N - n), strict=True)]
    D_j = means[0] - means[1]

    def off_without_each(block: slice) -> Floats:
        return _subtracted(without_each(block), means, block, n)

    squares_j = np.zeros(table.shape[1])
    for block in blocks:
        off_j = off_without_each(block)
        squares_j += (off_j * off_j).sum(axis=0)
    s_j = _spread_of(squares_j, N - 2)

    def spread_without_both(off_j: Floats, block: slice) -> Floats:
        return _spread_of(squares_j - off_j * off_j * (words / (words - 1.0))[block, None], N - 3)

    spreads = ((block, spread_without_both(off_without_each(block), block)) for block in blocks)
    mean_spreads = [total / size for total, size in zip(_sums_by_set(spreads, n), (n, N - n), strict=True)]
    by_target, by_attribute = np.sqrt(1.0 - 1.0 / words), np.sqrt(1.0 - 1.0 / others)
    by_D = -sign / (words - 1.0) * by_target
    squared = crossed = 0.0
    for block in blocks:
        off_j = off_without_each(block)
        of_D_ij = _centred(off_j.T, k) * by_attribute[:, None] * by_D[block]
        centred = _subtracted(spread_without_both(off_j, block), mean_spreads, block, n)
        of_s_ij = _centred(centred.T, k)
        of_s_ij *= by_attribute[:, None] * by_target[block]
        changes_of_D, changes_of_s = of_D_ij.ravel(), of_s_ij.ravel()
        squared += float(changes_of_s @ changes_of_s)
        crossed += float(changes_of_D @ changes_of_s)
    of_D_i, of_D_j = by_D * off, _centred(D_j, k) * by_attribute
    of_s_i, of_s_j = _centred(s_i, n) * by_target, _centred(s_j, k) * by_attribute
    variance = float(of_s_i @ of_s_i), float(of_s_j @ of_s_j), squared
    return variance, (float(of_D_i @ of_s_i), float(of_D_j @ of_s_j), crossed)


def _sums_by_set(blocks: Iterable[tuple[slice, Floats]], n: int) -> tuple[Floats, Floats]:
    """Sum the rows of X and those of Y, given in blocks."""
    x: Floats | float = 0.0
    y: Floats | float = 0.0
    for block, values in blocks:
        at = _first_of_y(block, n)
        x, y = x + values[:at].sum(axis=0), y + values[at:].sum(axis=0)
    return np.asarray(x), np.asarray(y)


def _subtracted(values: Floats, means: Sequence[Floats], block: slice, n: int) -> Floats:
    """Subtract from the rows of a block the mean of their set."""
    out, at = np.empty_like(values), _first_of_y(block, n)
    for rows, mean in zip((slice(0, at), slice(at, None)), means, strict=True):
        np.subtract(values[rows], mean, out=out[rows])
    return out


def _first_of_y(block: slice, n: int) -> int:
    """Return the row within a block at which Y begins."""
    return int(min(max(n - block.start, 0), block.stop - block.start))


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


def _variance(parts: Parts) -> float:
    targets, attributes, residual = parts
    return max(targets + attributes - residual, targets, attributes)


def in_short(estimate: Estimate, crossed: Crossed) -> str:
    """The numbers that lead, in a line."""
    ends = (estimate.low, estimate.high)
    interval = "None" if None in ends else f"({', '.join(f'{end:.4g}' for end in ends)})"
    p = "None" if crossed.p_value is None else f"{crossed.p_value:.4g}"
    return f"d={estimate.effect_size:.4g}, interval={interval}, crossed p={p}, words={crossed.sizes}"
