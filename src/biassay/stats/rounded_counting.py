"""A tail between two bounds, for scores that can be neither counted nor integrated.

Scores are decided upon one by one, the most extreme first, and a partial subset is dropped as soon as its completions
all reach the threshold, or none does. Where too many are left, those of one size with nearly equal sums are merged, all
at the lowest of their sums, which can only make the tail smaller, or all at the highest. The finer the scores that are
left to decide upon, the finer the merging.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from biassay.stats.subsets import SubsetTail

__all__ = ["bounds_by_rounding"]

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]


def bounds_by_rounding(tail: SubsetTail, work: int) -> tuple[float, float]:
    """Natural logarithms of a lower and of an upper bound on P[sum >= threshold].

    ``work`` is how many partial subsets are looked at: a million takes a tenth of a second. Sums that may be a tie are
    in the upper bound only. The observed split always counts.
    """
    tail = tail.smaller_side()
    single = -math.log(tail.n_partitions)
    most = work // len(tail.levels)
    low, high = _rounded(tail, tail.least, most, up=False), _rounded(tail, tail.level, most, up=True)
    return max(single, low), max(single, high)


def _rounded(tail: SubsetTail, level: int, most: int, up: bool) -> float:
    """Logarithm of the tail at ``level``, with sums rounded down, or up."""
    scores = np.sort(tail.levels)
    before = np.concatenate([[0], np.cumsum(scores)])
    low, high, middle = 0, len(scores), int(scores[len(scores) // 2])
    # How many are still to be taken, what these must sum to, and the logarithm of the chance of that.
    size, needed, chance = np.array([tail.size]), np.array([level]), np.zeros(1)
    reached = -math.inf
    while len(size) and low < high:
        first = middle - int(scores[low]) >= int(scores[high - 1]) - middle
        score, left = int(scores[low] if first else scores[high - 1]), high - low
        low, high = low + first, high - (not first)
        with np.errstate(divide="ignore"):
            chance = np.concatenate([chance + np.log1p(-size / left), chance + np.log(size / left)])
        size, needed = np.concatenate([size, size - 1]), np.concatenate([needed, needed - score])
        possible = chance > -math.inf
        size, needed, chance = size[possible], needed[possible], chance[possible]
        lowest, highest = before[low + size] - before[low], before[high] - before[high - size]
        sure = needed <= lowest
        reached = float(np.logaddexp.reduce(chance[sure], initial=reached))
        open_ = ~sure & (needed <= highest)
        share = (needed[open_] - lowest[open_]) / (highest[open_] - lowest[open_])
        size, needed, chance = _merged(size[open_], needed[open_], chance[open_], share, most, up)
    return min(0.0, reached)


def _merged(
    size: _Ints, needed: _Ints, chance: _Floats, share: _Floats, most: int, up: bool
) -> tuple[_Ints, _Ints, _Floats]:
    """Partial subsets of equal size and nearly equal ``share`` made one, if there are more than ``most``."""
    if len(size) <= most:
        return size, needed, chance
    cells = max(1, most // (int(np.ptp(size)) + 1))
    cell = size * cells + np.minimum((share * cells).astype(np.int64), cells - 1)
    order = np.argsort(cell, kind="stable")
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    # The less is needed, the higher the sum was.
    extreme = np.minimum if up else np.maximum
    return (
        size[order][starts],
        extreme.reduceat(needed[order], starts),
        np.logaddexp.reduceat(chance[order], starts),
    )
