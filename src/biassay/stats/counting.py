"""Exact tail by counting without looking at every partition: two halves that meet in the middle.

Scores become 62-bit integers, so that sums have no rounding. All subsets of each half are listed by size; for each one
of the first half a binary search tells how many of the second half lift the sum over the threshold. Two things keep
the lists short: a partial subset that cannot reach the threshold, whatever joins it, is dropped at once, so that in a
far tail little else remains; and subsets of equal scores, which have equal sums, are kept once with their number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from biassay.stats.subsets import SubsetTail

__all__ = ["count_by_halves", "states_of_halves"]

_Ints = NDArray[np.int64]
_States = dict[int, tuple[_Ints, NDArray[np.object_] | None]]  # subset size -> distinct sums, and how often each occurs


def states_of_halves(total: int, size: int) -> int:
    """How many sums a half holds at the most, if nothing can be dropped."""
    half = (total + 1) // 2
    return sum(math.comb(half, k) for k in range(min(size, total - size, half) + 1))


def count_by_halves(tail: SubsetTail, max_states: int) -> int | None:
    """Number of subsets at or above the threshold, or None if a half needs more than ``max_states`` sums."""
    tail = tail.smaller_side()
    scores, level = _as_integers(tail)
    order = np.argsort(scores)[::-1]
    # Alternating between the halves gives each its share of high scores, which lets both prune.
    halves = scores[order[::2]], scores[order[1::2]]
    merging = len(np.unique(scores)) < 0.7 * len(scores)
    left = _reachable_sums(halves[0], halves[1], tail.size, level, max_states, merging)
    right = left and _reachable_sums(halves[1], halves[0], tail.size, level, max_states, merging)
    if left is None or right is None:
        return None
    return sum(
        _pairs_at_least(first, right[tail.size - size], level)
        for size, first in left.items()
        if tail.size - size in right
    )


def _as_integers(tail: SubsetTail) -> tuple[_Ints, int]:
    """Scores and the lowest counting sum, on a common integer grid; scores that differ by rounding become one."""
    largest = float(np.max(np.abs(tail.scores)))
    scale = 2.0**61 / ((len(tail.scores) + 2) * largest) if largest > 0 else 1.0
    order = np.argsort(tail.scores)
    ordered = tail.scores[order]
    group = np.concatenate([[0], np.cumsum(np.diff(ordered) > tail.noise)])
    snapped = np.empty_like(ordered)
    snapped[order] = (np.bincount(group, weights=ordered) / np.bincount(group))[group]
    scores = np.rint(snapped * scale).astype(np.int64)
    return scores, round(tail.threshold * scale) - round(tail.tolerance * scale)


def _reachable_sums(own: _Ints, other: _Ints, size: int, level: int, max_states: int, merging: bool) -> _States | None:
    """Sums of subsets of ``own``, by subset size, that some completion from ``other`` lifts to ``level``."""
    sums: _States = {0: (np.zeros(1, dtype=np.int64), np.ones(1, dtype=object) if merging else None)}
    for i, score in enumerate(own):
        best = np.concatenate([[0], np.cumsum(np.sort(np.concatenate([own[i + 1 :], other]))[::-1])])
        grown: _States = {}
        for chosen in range(min(size, i + 1) + 1):
            if size - chosen >= len(best):
                continue  # too few elements are left to complete the subset
            state = _joined(sums.get(chosen), sums.get(chosen - 1), score)
            if state is not None:
                grown[chosen] = _kept(state, level - int(best[size - chosen]))
        sums = {chosen: state for chosen, state in grown.items() if len(state[0])}
        if sum(len(values) for values, _ in sums.values()) > max_states:
            return None
    return sums


def _joined(
    without: tuple[_Ints, NDArray[np.object_] | None] | None,
    before: tuple[_Ints, NDArray[np.object_] | None] | None,
    score: np.int64,
) -> tuple[_Ints, NDArray[np.object_] | None] | None:
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
    merged = np.zeros(len(distinct), dtype=object)
    np.add.at(merged, place, np.concatenate(counts))
    return distinct, merged


def _kept(state: tuple[_Ints, NDArray[np.object_] | None], lowest: int) -> tuple[_Ints, NDArray[np.object_] | None]:
    values, counts = state
    enough = values >= lowest
    return values[enough], None if counts is None else counts[enough]


def _pairs_at_least(
    first: tuple[_Ints, NDArray[np.object_] | None], second: tuple[_Ints, NDArray[np.object_] | None], level: int
) -> int:
    """Number of pairs of subsets, one of each half, whose sum is at least ``level``."""
    if first[1] is None or second[1] is None:
        needed = np.sort(level - first[0])
        below = np.searchsorted(np.sort(second[0]), needed, side="left")
        return len(first[0]) * len(second[0]) - int(below.sum())
    # Sums and their numbers are in ascending order after merging.
    above = np.concatenate([np.cumsum(second[1][::-1])[::-1], [0]])
    place = np.searchsorted(second[0], level - first[0], side="left")
    return int(sum(count * above[at] for count, at in zip(first[1], place, strict=True)))
