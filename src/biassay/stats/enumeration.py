"""Exact tail by looking at every partition."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from biassay.stats.subsets import SubsetTail

__all__ = ["count_by_enumeration", "sums_by_size"]

_BLOCK = 1 << 20


def sums_by_size(levels: NDArray[np.int64], largest: int) -> list[NDArray[np.int64]]:
    """Sums of all subsets of ``levels``, one array for every size from 0 to ``largest``.

    Subsets of the first of them come first.
    """
    sums = [np.zeros(math.comb(len(levels), size), dtype=np.int64) for size in range(largest + 1)]
    filled = [1] + [0] * largest
    for score in levels:
        for size in range(largest, 0, -1):
            start, more = filled[size], filled[size - 1]
            np.add(sums[size - 1][:more], score, out=sums[size][start : start + more])
            filled[size] += more
    return sums


def count_by_enumeration(tail: SubsetTail) -> int:
    """Number of subsets at or above the threshold, each of them summed.

    The scores are cut into two halves: every subset is one subset of the first half beside one of the second, so
    that all sums of a size come from one outer addition, done in blocks of bounded memory.
    """
    tail = tail.smaller_side()
    half = len(tail.levels) // 2
    left = sums_by_size(tail.levels[:half], min(tail.size, half))
    right = sums_by_size(tail.levels[half:], min(tail.size, len(tail.levels) - half))

    def count_at(level: int) -> int:
        count = 0
        for size, first in enumerate(left):
            if not 0 <= tail.size - size < len(right):
                continue
            second = right[tail.size - size]
            rows = max(1, _BLOCK // max(1, len(second)))
            for start in range(0, len(first), rows):
                block = np.add.outer(first[start : start + rows], second)
                count += int(np.count_nonzero(block >= level))
        return count

    return tail.settled(count_at)
