"""Exact tail by counting without looking at every partition: two halves that meet in the middle.

All subsets of each half are listed by size; for each one of the first half a binary search finds how many of the
second half lift the sum over the threshold. Two things keep the lists short: a partial subset that cannot reach the
threshold, whatever joins it, is dropped at once, so that in a far tail little else remains; and subsets of equal
scores, which have equal sums, are kept once with their number. A few scores out of very many are split by their middle
one instead, into those before it and those behind it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.stats.enumeration import sums_by_size
from biassay.stats.subsets import SubsetTail

__all__ = ["count_by_halves", "count_by_middle", "states_of_halves", "work_by_middle"]

_Ints = NDArray[np.int64]
_Counts = NDArray[np.int64] | NDArray[np.object_]
_WORK_PER_STATE = 30
_WORK_PER_SIZE = 512  # what an array costs beside its numbers, and half of that in Python's, which are merged
_SLOW = 16  # times as long for a number of Python's
_States = dict[int, tuple[_Ints, _Counts | None]]  # subset size -> distinct sums, and how often each occurs


def states_of_halves(total: int, size: int) -> int:
    """How many sums a half holds at the most, if nothing can be dropped."""
    half = (total + 1) // 2
    return sum(math.comb(half, k) for k in range(min(size, total - size, half) + 1))


def work_by_middle(total: int, size: int) -> int:
    """How many sums `count_by_middle` looks at."""
    size = min(size, total - size)
    before = (size - 1) // 2
    return math.comb(total, before + 1) + math.comb(total, size - before)


def count_by_middle(tail: SubsetTail) -> int:
    """Number of subsets at or above the threshold, for every score as the middle one of the subset."""
    tail = tail.smaller_side()
    before = (tail.size - 1) // 2
    behind = tail.size - 1 - before
    first = sums_by_size(tail.levels, before)[before]
    second = sums_by_size(tail.levels[::-1], behind)[behind]

    def count_at(level: int) -> int:
        count = 0
        for place, score in enumerate(tail.levels.tolist()):
            left = first[: math.comb(place, before)]
            right = second[: math.comb(len(tail.levels) - 1 - place, behind)]
            count += _pairs_at_least((np.sort(left), None), (np.sort(right), None), level - score)
        return count

    return tail.settled(count_at)


def count_by_halves(tail: SubsetTail, max_states: int) -> int | None:
    """Number of subsets at or above the threshold, or None if a half needs more than ``max_states`` sums."""
    tail = tail.smaller_side()
    ordered = np.sort(tail.levels)[::-1]
    # Alternating between the halves gives each its share of high scores, which lets both prune.
    halves = ordered[::2], ordered[1::2]
    ones: _Counts | None = None
    if len(np.unique(ordered)) < 0.7 * len(ordered):
        ones = np.ones(1, dtype=np.int64 if tail.n_partitions < 2**62 else object)
        if ones.dtype == object:
            max_states //= _SLOW  # Python's integers are exact
    left = _reachable_sums(halves[0], halves[1], tail.size, tail.level, max_states, ones)
    right = left and _reachable_sums(halves[1], halves[0], tail.size, tail.level, max_states, ones)
    if left is None or right is None:
        return None
    for values, _ in (*left.values(), *right.values()):
        values.sort()  # those with numbers are in ascending order after merging
    pairs = [(first, right[tail.size - size]) for size, first in left.items() if tail.size - size in right]
    return tail.settled(lambda level: sum(_pairs_at_least(first, second, level) for first, second in pairs))


def _reachable_sums(
    own: _Ints, other: _Ints, size: int, level: int, max_states: int, ones: _Counts | None
) -> _States | None:
    """Sums of subsets of ``own``, by subset size, that some completion from ``other`` lifts to ``level``."""
    work, per_size = 0, _WORK_PER_SIZE if ones is None or ones.dtype != object else _WORK_PER_SIZE // 2
    sums: _States = {0: (np.zeros(1, dtype=np.int64), ones)}
    for i, score in enumerate(own):
        left = np.concatenate([own[i + 1 : i + 1 + size], other[:size]])  # both are in descending order
        best = np.concatenate([[0], np.cumsum(np.sort(left)[::-1])])
        grown: _States = {}
        for chosen in range(min(size, i + 1) + 1):
            if size - chosen >= len(best):
                continue  # too few elements are left to complete the subset
            state = _joined(sums.get(chosen), sums.get(chosen - 1), score)
            if state is not None:
                grown[chosen] = _kept(state, level - int(best[size - chosen]))
        sums = {chosen: state for chosen, state in grown.items() if len(state[0])}
        states = sum(len(values) for values, _ in sums.values())
        work += states + per_size * len(sums)
        if states > max_states or work > _WORK_PER_STATE * max_states:
            return None
    return sums


def _joined(
    without: tuple[_Ints, _Counts | None] | None,
    before: tuple[_Ints, _Counts | None] | None,
    score: np.int64,
) -> tuple[_Ints, _Counts | None] | None:
    """The sums without an element and, lifted by its score, those with it."""
    parts = [] if without is None else [without]
    if before is not None:
        parts.append((before[0] + score, before[1]))
    if not parts:
        return None
    values = np.concatenate([part[0] for part in parts])
    counts = [part[1] for part in parts if part[1] is not None]
    if not counts:
        return values, None
    distinct, place = np.unique(values, return_inverse=True)
    merged: Any = np.zeros(len(distinct), dtype=counts[0].dtype)
    np.add.at(merged, place, np.concatenate(counts))
    return distinct, merged


def _kept(state: tuple[_Ints, _Counts | None], lowest: int) -> tuple[_Ints, _Counts | None]:
    values, counts = state
    enough = values >= lowest
    return values[enough], None if counts is None else counts[enough]


def _pairs_at_least(first: tuple[_Ints, _Counts | None], second: tuple[_Ints, _Counts | None], level: int) -> int:
    """Number of pairs of subsets, one of each half, whose sum is at least ``level``; sums are in ascending order."""
    if first[1] is None or second[1] is None:
        below = np.searchsorted(second[0], level - first[0][::-1], side="left")
        return len(first[0]) * len(second[0]) - int(below.sum())
    above = np.concatenate([np.cumsum(second[1][::-1])[::-1], [0]])
    place = np.searchsorted(second[0], level - first[0], side="left")
    return int((first[1] * above[place]).sum())
