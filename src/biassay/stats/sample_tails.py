"""One-sided permutation p-values of thousands of small association tests at once.

Up to some thousand partitions every split is summed, by one matrix product for all samples. Beyond, the double
saddle-point formula of Skovgaard for the sum of a random subset of fixed size: every score joins the subset by its own
coin, biased until size and sum are expected to be those observed. Its relative error is some per cent, enough for a
colour in a histogram; a p-value to be reported comes from `permutation_test`.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.stats.subsets import log_binomial

__all__ = ["sample_p_values"]

_ENUMERATED = 13_000  # partitions: 8 against 8 has 12,870
_BLOCK = 1 << 22
_TIE = 1e-9
_STEPS = 60
_STEEPEST = 40.0
_NEAR_MEAN = 1e-3
_TINY = 1e-300


def sample_p_values(scores: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """P(a random split favours X at least as much), for every row of ``scores`` (samples, targets).

    The first ``n`` columns are X, the others Y.
    """
    centred = scores - scores.mean(axis=1, keepdims=True)
    scale = np.abs(centred).max(axis=1, keepdims=True)
    centred = centred / np.where(scale > 0.0, scale, 1.0)
    if math.comb(scores.shape[1], n) <= _ENUMERATED:
        return _enumerated(centred, n)
    block = max(1, _BLOCK // scores.shape[1])
    parts = [_saddle_point(centred[i : i + block], n) for i in range(0, len(centred), block)]
    return np.concatenate(parts) if parts else np.empty(0)


def _enumerated(scores: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    total = scores.shape[1]
    splits = np.zeros((total, math.comb(total, n)))
    for column, chosen in enumerate(itertools.combinations(range(total), n)):
        splits[list(chosen), column] = 1.0
    found = np.empty(len(scores))
    step = max(1, _BLOCK // splits.shape[1])
    for start in range(0, len(scores), step):
        part = scores[start : start + step]
        observed = part[:, :n].sum(axis=1, keepdims=True)
        found[start : start + step] = (part @ splits >= observed - _TIE).mean(axis=1)
    return found


def _saddle_point(scores: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    total = scores.shape[1]
    observed = scores[:, :n].sum(axis=1)
    size0 = math.log(n / (total - n))
    a, b = _tilts(scores, n, observed, size0)
    coins = a[:, None] + b[:, None] * scores
    even = total * math.log1p(math.exp(size0)) - size0 * n
    tilted = np.logaddexp(0.0, coins).sum(axis=1) - a * n - b * observed
    w = np.sign(b) * np.sqrt(np.maximum(0.0, 2.0 * (even - tilted)))
    s0, s1, s2 = _moments(scipy.special.expit(coins), scores)
    u = b * np.sqrt(np.maximum(s0 * s2 - s1 * s1, _TINY) / (n * (total - n) / total))
    p = _tail_of(w, u, observed, (scores * scores).mean(axis=1) * n * (total - n) / (total - 1))
    # The observed split is one of them; and where none lies above it the formula has no coins left to toss.
    least = math.exp(-log_binomial(total, n))
    highest = np.sort(scores, axis=1)[:, total - n :].sum(axis=1)
    return np.where(observed >= highest - _TIE, least, np.clip(p, least, 1.0))


def _tail_of(
    w: NDArray[np.float64], u: NDArray[np.float64], observed: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Skovgaard's formula; close to the mean, where it is zero over zero, the normal distribution."""
    near = (np.abs(w) < _NEAR_MEAN) | (np.abs(u) < _NEAR_MEAN)
    w, u = np.where(near, 1.0, w), np.where(near, 1.0, u)
    density = np.exp(-0.5 * w * w) / math.sqrt(2.0 * math.pi)
    normal = scipy.special.ndtr(-observed / np.sqrt(np.maximum(variance, _TINY)))
    return np.asarray(np.where(near, normal, scipy.special.ndtr(-w) + density * (1.0 / u - 1.0 / w)))


def _moments(chance: NDArray[np.float64], scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Variance of the subset's size, its covariance with the sum, and the variance of the sum."""
    weight = chance * (1.0 - chance)
    return weight.sum(axis=1), (weight * scores).sum(axis=1), (weight * scores * scores).sum(axis=1)


def _tilts(
    scores: NDArray[np.float64], n: int, observed: NDArray[np.float64], size0: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The coins' two parameters for every sample, by Newton's method with steps that are cut short."""
    a, b = np.full(len(scores), size0), np.zeros(len(scores))
    for _ in range(_STEPS):
        chance = scipy.special.expit(a[:, None] + b[:, None] * scores)
        s0, s1, s2 = _moments(chance, scores)
        off_size, off_sum = chance.sum(axis=1) - n, (chance * scores).sum(axis=1) - observed
        determinant = np.maximum(s0 * s2 - s1 * s1, _TINY)
        move_a = -(s2 * off_size - s1 * off_sum) / determinant
        move_b = -(s0 * off_sum - s1 * off_size) / determinant
        longest = np.maximum(np.abs(move_a), np.abs(move_b))
        step = np.minimum(1.0, 1.0 / np.maximum(longest, _TINY))
        a = np.clip(a + step * move_a, -2.0 * _STEEPEST, 2.0 * _STEEPEST)
        b = np.clip(b + step * move_b, -_STEEPEST, _STEEPEST)
        if float(longest.max(initial=0.0)) < 1e-9:
            break
    return a, b
