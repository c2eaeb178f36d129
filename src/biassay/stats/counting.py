"""Exact tail by counting without looking at every partition: two halves that meet in the middle.

Scores become 62-bit integers, so that sums have no rounding. All subsets of each half are listed by size; for each
one of the first half a binary search tells how many of the second half lift the sum over the threshold. A partial
subset that cannot reach the threshold, whatever joins it, is dropped at once: in a far tail little else remains, and
even large sets can be counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.stats.subsets import SubsetTail

__all__ = ["count_by_halves"]

_Ints = NDArray[np.int64]


def count_by_halves(tail: SubsetTail, max_states: int) -> int | None:
    """Number of subsets at or above the threshold, or None if a half needs more than ``max_states`` sums."""
    tail = tail.smaller_side()
    scores, level = _as_integers(tail)
    order = np.argsort(scores)[::-1]
    # Alternating between the halves gives each its share of high scores, which lets both prune.
    halves = scores[order[::2]], scores[order[1::2]]
    left = _reachable_sums(halves[0], halves[1], tail.size, level, max_states)
    right = _reachable_sums(halves[1], halves[0], tail.size, level, max_states)
    if left is None or right is None:
        return None
    return sum(
        _pairs_at_least(first, right[tail.size - size], level)
        for size, first in left.items()
        if tail.size - size in right
    )


def _as_integers(tail: SubsetTail) -> tuple[_Ints, int]:
    """Scores and the lowest counting sum, on a common integer grid."""
    largest = float(np.max(np.abs(tail.scores)))
    scale = 2.0**61 / ((len(tail.scores) + 2) * largest) if largest > 0 else 1.0
    scores = np.rint(tail.scores * scale).astype(np.int64)
    return scores, round(tail.threshold * scale) - round(tail.tolerance * scale)


def _reachable_sums(own: _Ints, other: _Ints, size: int, level: int, max_states: int) -> dict[int, _Ints] | None:
    """Sums of subsets of ``own``, by subset size, that some completion from ``other`` lifts to ``level``."""
    sums: dict[int, _Ints] = {0: np.zeros(1, dtype=np.int64)}
    for i, score in enumerate(own):
        best = np.concatenate([own[i + 1 :], other])
        best = np.concatenate([[0], np.cumsum(np.sort(best)[::-1])])
        grown: dict[int, list[_Ints]] = {}
        for chosen, values in sums.items():
            grown.setdefault(chosen, []).append(values)
            if chosen < size:
                grown.setdefault(chosen + 1, []).append(values + score)
        sums = {}
        for chosen, parts in grown.items():
            if size - chosen >= len(best):
                continue  # too few elements are left to complete the subset
            values = np.concatenate(parts)
            values = values[values >= level - int(best[size - chosen])]
            if len(values):
                sums[chosen] = values
        if sum(map(len, sums.values())) > max_states:
            return None
    return sums


def _pairs_at_least(first: _Ints, second: _Ints, level: int) -> int:
    """Number of pairs, one of each, whose sum is at least ``level``."""
    needed = np.sort(level - first)
    below = np.searchsorted(np.sort(second), needed, side="left")
    return len(first) * len(second) - int(below.sum())
