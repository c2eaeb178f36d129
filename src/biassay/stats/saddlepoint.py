"""Approximate tails of subset sums at their saddle point.

Under exponential tilting every score joins the subset independently, with probability 1 / (1 + exp(-a - b s)). The
saddle point is the tilt (a, b) at which the subset has the expected size n and the expected sum t. The number of
subsets of size n with a sum of at least t is a Fourier sum over the characteristic function of the tilted size and sum,
which loses no precision in far tails (`approximate_tail`). For many samples at once, Skovgaard's formula approximates
the Fourier sum in closed form (`skovgaard_p_values`).

References
----------
Robinson, J. (1982). Saddlepoint approximations for permutation tests and confidence intervals. Journal of the Royal
    Statistical Society B 44, 91-101.
Skovgaard, I. M. (1987). Saddlepoint expansions for conditional distributions. Journal of Applied Probability 24,
    875-887.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.stats.subset_sums import SubsetTail, log_binomial

_Floats = NDArray[np.float64]

_MIN_SIZE_VARIANCE = 0.5  # smallest variance of the tilted subset; below it, almost every score is decided
_MAX_PERIOD = 30.0  # tilted standard deviations; the tilted probability beyond is below 1e-10
_MAX_FREQUENCIES = 1 << 16
_ROW = 256  # frequencies per row of a matrix product
_NEGLIGIBLE = 1e-7  # share of the largest term
_MAX_USED_FREQUENCIES = 1 << 13
_MAX_FACTORS = 4_000_000  # complex multiplications, a tenth of a second
_MIN_TERMS = 1000
_BLOCK = 1 << 20
_ENOUGH_VARIANCE = 40.0  # variance of the scores that bound a term; with random phases the bound is below exp(-40)
_TIE = 1e-9
_NEAR_MEAN = 1e-3
_TINY = 1e-300


def approximate_tail(tail: SubsetTail) -> float | None:
    """Return the natural logarithm of P[sum >= observed sum]; None if there is no saddle point.

    The relative error is below 1e-3 for tails too large for `count_by_halves`, unless the scores form clusters
    narrower than about 1e-4 of their range; it is then some per cent or more. On a lattice the error is below 1e-6.
    """
    log_total = log_binomial(len(tail.levels), tail.size)
    tail = tail.drop_decided()
    log_rest = log_binomial(len(tail.levels), tail.size)
    if tail.observed <= tail.extremes[0] or tail.observed > tail.extremes[1]:
        return log_rest - log_total if tail.observed <= tail.extremes[0] else -math.inf
    if tail.threshold < 0.0:
        below = approximate_tail(replace(tail, observed=tail.observed - 1).reflect())
        return None if below is None or below >= 0.0 else math.log1p(-math.exp(below)) + log_rest - log_total
    tilts = _find_tilts(tail)
    log_count = None if tilts is None else _invert_transform(tail, *tilts)
    return None if log_count is None else min(log_rest, log_count) - log_total


def _find_tilts(tail: SubsetTail) -> tuple[float, float] | None:
    """Return the tilts at the saddle point; None if almost every score is decided there."""
    scale = float(np.abs(tail.scores).max())
    if scale == 0.0:
        return None
    highest = tail.threshold + (tail.extremes[1] - tail.observed) * tail.unit
    # The Fourier sum has a pole at b = 0. The tilt for a sum of one standard deviation is far enough from it.
    target = max(tail.threshold, min(tail.deviation, highest / 2.0))
    tilts = _solve_tilts(tail.scores[None] / scale, tail.size, np.array([target / scale]), steps=300, steepest=600.0)
    a, b = float(tilts[0][0]), float(tilts[1][0]) / scale
    p = scipy.special.expit(a + b * tail.scores)
    if abs(p.sum() - tail.size) > 1e-6 * tail.size or p @ (1.0 - p) < _MIN_SIZE_VARIANCE:
        return None
    return a, b


def _invert_transform(tail: SubsetTail, a: float, b: float) -> float | None:
    """Return the logarithm of the number of subsets in the tail, by a discrete Fourier transform of tilted sums.

    Sums are multiples of the unit. If all of them lie within one period and all frequencies are used, the result is
    exact. Otherwise the lowest frequencies are used.
    """
    p = scipy.special.expit(a + b * tail.scores)
    variances = p * (1.0 - p)
    centre = float(variances @ tail.scores / variances.sum())
    scores, t = tail.scores - centre, tail.threshold - tail.size * centre
    log_scale = float(np.logaddexp(0.0, a + b * tail.scores).sum()) - a * tail.size - b * tail.threshold
    deviation = math.sqrt(float(variances @ (scores * scores)))
    n_points = min(tail.extremes[1] - tail.extremes[0] + 1, math.ceil(_MAX_PERIOD * deviation / tail.unit))
    period = n_points * tail.unit
    frequencies: _Floats = 2.0 * np.pi / period * np.arange(min(n_points // 2 + 1, _MAX_FREQUENCIES), dtype=np.float64)
    # Transform of exp(-b (S - t)) for S >= t. Negative frequencies add the complex conjugate.
    kernel = tail.unit / period / -np.expm1(-tail.unit * (b + 1j * frequencies))
    n_angles = min(len(scores) + 1, math.ceil(10.0 * math.sqrt(variances.sum())) + 5)
    angles: _Floats = 2.0 * np.pi / n_angles * (np.arange(n_angles, dtype=np.float64) - n_angles // 2)
    rows, columns = _select_terms(scores, variances, frequencies, np.abs(kernel), angles)
    kernel[1 : (n_points + 1) // 2] *= 2.0
    total, block = 0.0, max(1, _BLOCK // len(scores))
    for start in range(0, len(rows), block):
        row, angle = rows[start : start + block], angles[columns[start : start + block]]
        distinct, index = np.unique(row, return_inverse=True)
        factors = (p * np.exp(1j * np.multiply.outer(frequencies[distinct], scores)))[index]
        factors *= np.exp(1j * angle)[:, None]
        factors += 1.0 - p
        shifts = np.exp(-1j * (angle * tail.size + frequencies[row] * t))
        total += float((kernel[row] * shifts * np.multiply.reduce(factors, axis=1)).sum().real)
    # Sums below the threshold reappear one period higher, all sums two periods higher, and so on.
    damping = b * period
    total = total / n_angles - math.exp(log_binomial(len(p), tail.size) - log_scale - damping) / -math.expm1(-damping)
    return log_scale + math.log(total) if total > 0.0 else None


def _select_terms(
    scores: _Floats, variances: _Floats, frequencies: _Floats, kernel: _Floats, angles: _Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Select the terms of the Fourier sum that are not negligible, as many as can be computed quickly.

    A factor of the characteristic function is bounded by |1 - p + p exp(i x)| <= exp(-p (1 - p) (1 - cos x)), hence a
    term by the transform of the variances, and its mean over angles by a Bessel function.

    Returns
    -------
    rows, columns : (terms,) int
        Indices of the frequencies and angles.
    """
    limit = max(_MIN_TERMS, _MAX_FACTORS // len(scores))
    low = np.exp(1j * np.multiply.outer(frequencies[:_ROW], scores))
    near = low @ variances
    # Some of the scores bound the terms of high frequencies well enough.
    order = np.argsort(scores)[:: max(1, int(variances.sum() / _ENOUGH_VARIANCE))]
    high = np.exp(1j * np.multiply.outer(frequencies[::_ROW], scores[order]))
    transform = ((variances[order] * high) @ low[:, order].T).ravel()[: len(frequencies)]
    weights = np.full(len(frequencies), variances[order].sum())
    transform[: len(near)], weights[: len(near)] = near, variances.sum()
    size = np.abs(transform)
    bounds = kernel * scipy.special.ive(0, size) * np.exp(size - weights)
    used = _largest(bounds, _NEGLIGIBLE * kernel[0], _MAX_USED_FREQUENCIES)
    bounds = kernel[used, None] * np.exp((transform[used, None] * np.exp(1j * angles)).real - weights[used, None])
    terms = _largest(bounds.ravel(), _NEGLIGIBLE * kernel[0], limit)
    rows, columns = np.divmod(terms, len(angles))
    return used[rows], columns


def _largest(values: _Floats, smallest: float, limit: int) -> NDArray[np.intp]:
    """Return the indices of the values above `smallest`, at most `limit` of them, in ascending order."""
    indices = np.flatnonzero(values > smallest)
    if len(indices) > limit:
        indices = np.sort(indices[np.argpartition(values[indices], -limit)[-limit:]])
    return indices


def skovgaard_p_values(scores: _Floats, n: int, observed: _Floats) -> _Floats:
    """Return approximate one-sided p-values of many samples, within some per cent.

    Parameters
    ----------
    scores : (samples, N) float
        Scores with a mean of zero and a largest absolute value of one per sample.
    n : int
        Size of the subsets.
    observed : (samples,) float
        Observed sums.

    Returns
    -------
    (samples,) float
    """
    total = scores.shape[1]
    size_tilt = math.log(n / (total - n))
    a, b = _solve_tilts(scores, n, observed)
    logits = a[:, None] + b[:, None] * scores
    untilted = total * math.log1p(math.exp(size_tilt)) - size_tilt * n
    tilted = np.logaddexp(0.0, logits).sum(axis=1) - a * n - b * observed
    w = np.sign(b) * np.sqrt(np.maximum(0.0, 2.0 * (untilted - tilted)))
    s0, s1, s2 = _moments(scipy.special.expit(logits), scores)
    u = b * np.sqrt(np.maximum(s0 * s2 - s1 * s1, _TINY) / (n * (total - n) / total))
    # At the mean the formula is zero over zero, and the normal distribution is accurate.
    near = (np.abs(w) < _NEAR_MEAN) | (np.abs(u) < _NEAR_MEAN)
    variance = (scores * scores).mean(axis=1) * n * (total - n) / (total - 1)
    normal = scipy.special.ndtr(-observed / np.sqrt(np.maximum(variance, _TINY)))
    w, u = np.where(near, 1.0, w), np.where(near, 1.0, u)
    density = np.exp(-0.5 * w * w) / math.sqrt(2.0 * math.pi)
    p = np.where(near, normal, scipy.special.ndtr(-w) + density * (1.0 / u - 1.0 / w))
    smallest = math.exp(-log_binomial(total, n))
    highest = np.sort(scores, axis=1)[:, total - n :].sum(axis=1)
    return np.where(observed >= highest - _TIE, smallest, np.clip(p, smallest, 1.0))


def _moments(p: _Floats, scores: _Floats) -> tuple[_Floats, _Floats, _Floats]:
    """Return the variance of the subset's size, its covariance with the sum, and the variance of the sum."""
    weight = p * (1.0 - p)
    return weight.sum(axis=1), (weight * scores).sum(axis=1), (weight * scores * scores).sum(axis=1)


def _solve_tilts(
    scores: _Floats, n: int, sums: _Floats, steps: int = 60, steepest: float = 40.0
) -> tuple[_Floats, _Floats]:
    """Return the tilts `a` and `b` of every sample, by Newton's method with a limited step."""
    a, b = np.full(len(scores), math.log(n / (scores.shape[1] - n))), np.zeros(len(scores))
    for _ in range(steps):
        p = scipy.special.expit(a[:, None] + b[:, None] * scores)
        s0, s1, s2 = _moments(p, scores)
        excess_size, excess_sum = p.sum(axis=1) - n, (p * scores).sum(axis=1) - sums
        determinant = np.maximum(s0 * s2 - s1 * s1, _TINY)
        move_a = -(s2 * excess_size - s1 * excess_sum) / determinant
        move_b = -(s0 * excess_sum - s1 * excess_size) / determinant
        longest = np.maximum(np.abs(move_a), np.abs(move_b))
        step = np.minimum(1.0, 1.0 / np.maximum(longest, _TINY))
        a = np.clip(a + step * move_a, -2.0 * steepest, 2.0 * steepest)
        b = np.clip(b + step * move_b, -steepest, steepest)
        if float(longest.max(initial=0.0)) < 1e-9:
            break
    return a, b
