"""Exact tail for scores that are whole multiples of one step.

Such scores make sums that pile up on few values; a smooth tail is then off by half a pile. A table of (subset size,
sum) holds them all. Scores of real encoders never look like this; ranks, counts and toy vectors do.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from biassay.stats.saddlepoint import solve_tilt
from biassay.stats.subsets import SubsetTail, log_binomial

__all__ = ["lattice_log_tail", "lattice_step"]

_TOLERANCE = 1e-9
_MOST_STEPS = 100_000
_MOST_WORK = 4e9


def lattice_step(scores: NDArray[np.float64]) -> float | None:
    """The largest step of which all differences of scores are multiples, or None if there is no coarse one."""
    span = float(np.ptp(scores))
    if span == 0.0:
        return None
    step = 0.0
    for gap in np.unique(np.round((scores - scores.min()) / span, 13))[1:]:
        step = _common_step(step, float(gap))
        if step < 1.0 / _MOST_STEPS:
            return None
    return step * span


def _common_step(a: float, b: float) -> float:
    """Greatest common divisor of two lengths of at most 1, remainders below a tolerance being zero."""
    while b > _TOLERANCE:
        a, b = b, math.fmod(a, b)
        if b > a - _TOLERANCE:
            b = 0.0
    return a


def lattice_log_tail(tail: SubsetTail, step: float) -> float | None:
    """Natural logarithm of the tail probability, or None if the table would be too large."""
    tail = tail.smaller_side()
    low = float(tail.scores.min())
    levels = np.rint((tail.scores - low) / step).astype(np.int64)
    highest = int(np.sort(levels)[-tail.size :].sum())
    if float(len(levels)) * tail.size * highest > _MOST_WORK:
        return None
    target = math.ceil((tail.threshold - tail.size * low) / step - 1e-6)
    if target > highest:
        return -math.inf
    alpha, beta = solve_tilt(tail) or (0.0, 0.0)
    chance = 1.0 / (1.0 + np.exp(-(alpha + beta * tail.scores)))
    # Tilted probabilities centre the table on the threshold, so that far tails do not underflow.
    table = np.zeros((tail.size + 1, highest + 1))
    table[0, 0] = 1.0
    for level, p in zip(levels, chance, strict=True):
        shifted = table[:-1, : highest + 1 - level] * p
        table *= 1.0 - p
        table[1:, level:] += shifted
    sums = low * tail.size + step * np.arange(target, highest + 1)
    weights = table[tail.size, target:] * np.exp(-beta * (sums - tail.threshold))
    tilt = float(np.logaddexp(0.0, alpha + beta * tail.scores).sum()) - alpha * tail.size - beta * tail.threshold
    return tilt + math.log(float(weights.sum())) - log_binomial(len(levels), tail.size)
