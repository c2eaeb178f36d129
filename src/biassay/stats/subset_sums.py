"""Count the subsets of a fixed size whose sum reaches a threshold.

A partition of the targets into sets of sizes |X| and |Y| chooses |X| of all scores, and its statistic grows with the
sum of the chosen scores. A permutation p-value is therefore the share of size-|X| subsets whose sum is at least the
observed sum. `SubsetTail` converts scores to integers, so that sums are exact and ties are the same for all algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

_Ints = NDArray[np.int64]
_Counts = NDArray[np.int64] | NDArray[np.float64] | NDArray[np.object_]
_Sums = tuple[_Ints, _Counts | None]  # distinct sums, and the number of subsets with each; None: one subset each

_SUM_BITS = 61  # bits for the sum of all levels
_MAX_EXPONENT = 256  # squares of scores beyond 2**256 could overflow
_NOISE_ULPS = 18.0  # rounding error of a score, in units in the last place of the largest
_TIE_WIDTH = 16.0  # equal scores differ by less than this multiple of the noise
_SLACK = 4.0  # equal sums differ by less than this multiple of the noise and the root of the number of summands
_MAX_CHANCE_TIES = 0.01  # expected number of sums within the slack below which every such sum is a tie
_TIE_WINDOWS = 200  # windows of the width of the slack in which neighbouring sums are counted
_TIE_ALPHA = 0.01  # sums within the slack are ties if chance explains them with less than this probability
_MAX_LATTICE_POINTS = 1_000_000
_MIN_LATTICE_STEP = 1000.0  # in units of the noise; any scores lie on a lattice as fine as the noise
_BLOCK = 1 << 20
_WORK_PER_STATE = 30
_MERGED_WORK_PER_STATE = 8  # merging equal sums is slower
_WORK_PER_SIZE = 512  # overhead of an array, in sums


def log_binomial(total: int, chosen: int) -> float:
    """Return the natural logarithm of the binomial coefficient."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)


@dataclass(frozen=True)
class SubsetTail:
    """Subsets of `size` scores whose sum is at least the observed sum.

    Attributes
    ----------
    levels : (N,) int64
        Scores in multiples of `unit`, up to a common shift.
    size : int
        Number of scores in a subset.
    observed : int
        Observed sum of levels.
    unit : float
        Distance of two adjacent levels.
    lattice : bool
        If True, the scores are multiples of a coarse step, which is the unit. Otherwise the unit is far below the
        precision of a score.
    noise : float
        Maximum rounding error of a score.
    """

    levels: _Ints
    size: int
    observed: int
    unit: float = 1.0
    lattice: bool = True
    noise: float = 0.0

    @classmethod
    def from_scores(cls, x: NDArray[np.float64], y: NDArray[np.float64], noise: float = 0.0) -> SubsetTail:
        """Return the upper tail of the observed split into `x` (n,) and `y` (m,).

        Scores that differ by rounding only become equal. The rounding error is some units in the last place of the
        largest score, or `noise` if that is larger.

        Parameters
        ----------
        x, y : (n,) and (m,) float
            Scores of the two sets.
        noise : float
            Rounding error of the scores.
        """
        scores = np.concatenate([x, y]).astype(np.float64)
        largest = float(np.abs(scores).max())
        exponent = math.frexp(largest)[1]
        if abs(exponent) > _MAX_EXPONENT:
            return cls.from_scores(np.ldexp(x, -exponent), np.ldexp(y, -exponent), math.ldexp(noise, -exponent))
        noise = max(noise, _NOISE_ULPS * largest * float(np.finfo(np.float64).eps))
        scores = _merge_ties(scores, _TIE_WIDTH * noise)
        step = _find_lattice_step(scores, noise)
        if step is None:
            bits = _SUM_BITS - exponent - (len(scores) + 2).bit_length()
            unit, scaled = math.ldexp(1.0, -bits), np.ldexp(scores, bits)
        else:
            unit, scaled = step, (scores - scores.min()) / step
        levels = np.rint(scaled).astype(np.int64)
        levels -= round(int(levels.sum()) / len(levels))
        return cls(levels, len(x), int(levels[: len(x)].sum()), unit, step is not None, noise)

    @cached_property
    def total(self) -> int:
        """Sum of all levels."""
        return int(self.levels.sum())

    @cached_property
    def n_subsets(self) -> int:
        """Number of subsets of this size."""
        return math.comb(len(self.levels), self.size)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Scores with a mean of zero."""
        return np.asarray((self.levels - self.total / len(self.levels)) * self.unit)

    @property
    def threshold(self) -> float:
        """Observed sum of the scores with a mean of zero."""
        return (self.observed * len(self.levels) - self.size * self.total) / len(self.levels) * self.unit

    @property
    def deviation(self) -> float:
        """Approximate standard deviation of the sum of a random subset."""
        share = self.size / len(self.levels)
        return math.sqrt(share * (1.0 - share) * float(self.scores @ self.scores))

    @cached_property
    def extremes(self) -> tuple[int, int]:
        """Smallest and largest sum of a subset."""
        ordered = np.sort(self.levels)
        return int(ordered[: self.size].sum()), int(ordered[len(ordered) - self.size :].sum())

    @property
    def slack(self) -> int:
        """Largest difference, in units, of two sums that are equal except for rounding."""
        n_summands = min(self.size, len(self.levels) - self.size)
        return 0 if self.lattice else math.ceil(_SLACK * math.sqrt(n_summands) * (self.noise / self.unit + 1.0))

    @property
    def lowest_tie(self) -> int:
        """Lowest sum that may be a tie with the observed sum."""
        return self.observed - self.slack

    def resolve_ties(self, count_at_least: Callable[[int], int]) -> int:
        """Return the number of subsets in the tail, given a function that counts sums at or above a level.

        Sums within the slack of the observed sum are ties. If sums are so close that chance alone explains some, they
        are ties only if there are more of them than in neighbouring windows.
        """
        count = count_at_least(self.lowest_tie)
        if not self.slack or not self.deviation:
            return count
        windows = self.deviation / (1.0 + abs(self.threshold) / self.deviation) / (self.slack * self.unit)
        if min(count, 10**300) < _MAX_CHANCE_TIES * windows:
            return count
        without_ties = count_at_least(self.observed)
        if count == without_ties:
            return count
        windows = max(1, min(_TIE_WINDOWS, int(windows / 4.0)))
        above = self.observed + self.slack + 1
        expected = (count_at_least(above) - count_at_least(above + windows * self.slack) + 1) / windows
        chance = scipy.special.pdtrc(count - without_ties - 1, expected)
        return count if chance < _TIE_ALPHA else without_ties

    def reflect(self) -> SubsetTail:
        """Return the lower tail, P[sum <= threshold], as an upper tail of the negated scores."""
        return replace(self, levels=-self.levels, observed=-self.observed)

    def mirror(self) -> SubsetTail:
        """Return the tail as far below the mean, P[sum <= -threshold], as an upper tail of the negated scores."""
        beyond = self.observed * len(self.levels) - 2 * self.size * self.total
        return replace(self, levels=-self.levels, observed=-(-beyond // len(self.levels)))

    def complement(self) -> SubsetTail:
        """Return the same tail in terms of the scores not chosen if these are fewer."""
        rest = len(self.levels) - self.size
        if rest >= self.size:
            return self
        return replace(self, levels=-self.levels, size=rest, observed=self.observed - self.total)

    def drop_decided(self) -> SubsetTail:
        """Return the tail without the scores that all of its subsets, or none of them, contain."""
        ranks = np.argsort(np.argsort(-self.levels))
        ordered = np.sort(self.levels)[::-1]
        if not 0 < self.size < len(ordered):
            return self
        chosen = ranks < self.size
        swapped = np.where(chosen, ordered[self.size] - self.levels, self.levels - ordered[self.size - 1])
        decided = self.extremes[1] + swapped < self.lowest_tie
        taken = decided & chosen
        observed = self.observed - int(self.levels[taken].sum())
        return replace(self, levels=self.levels[~decided], size=self.size - int(taken.sum()), observed=observed)


def _merge_ties(scores: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Replace scores within `width` of each other by their median.

    A longer chain of close scores is split at its widest gap, which does not separate equal scores.
    """
    order = np.argsort(scores)
    ordered = scores[order]
    gaps = np.append(np.diff(ordered), np.inf)
    end = 0
    for start in np.flatnonzero(gaps <= width).tolist():
        if start >= end:
            end = int(np.searchsorted(ordered, ordered[start] + width, side="right"))
            end = start + int(np.argmax(gaps[start:end])) + 1
            ordered[start:end] = ordered[(start + end - 1) // 2]
    merged = np.empty_like(ordered)
    merged[order] = ordered
    return merged


def _find_lattice_step(scores: NDArray[np.float64], noise: float) -> float | None:
    """Return the largest step of which all differences of scores are multiples; None without a coarse one."""
    values = np.unique(scores)
    span = float(values[-1] - values[0])
    if span <= noise:
        return None
    smallest = max(span / _MAX_LATTICE_POINTS, _MIN_LATTICE_STEP * noise)
    step, error = 0.0, 0.0
    for gap in np.sort(np.diff(values)).tolist():
        step, error = _common_divisor(gap, 2.0 * noise, step, error)
        if step < smallest:
            return None
    distances = values - values[0]
    for distance in distances[1:].tolist():
        step = distance / max(1, round(distance / step))  # the longer the distance, the smaller the relative error
    fits = np.abs(distances - np.rint(distances / step) * step).max() <= 8.0 * noise
    return step if fits else None


def _common_divisor(a: float, a_error: float, b: float, b_error: float) -> tuple[float, float]:
    """Return the greatest common divisor of two inexact lengths and its error; zeros if the errors hide it."""
    while b > b_error:
        times = round(a / b)
        a, a_error, b, b_error = b, b_error, abs(a - times * b), a_error + times * b_error
        if b_error > a / 4.0:
            return 0.0, 0.0
    return a, a_error


def count_by_enumeration(tail: SubsetTail) -> int:
    """Count the subsets in the tail by computing every sum.

    Every subset joins one subset of the first half of the scores with one of the second half, so that all sums are
    outer sums of two short lists.
    """
    tail = tail.complement()
    half = len(tail.levels) // 2
    first = _list_sums(tail.levels[:half], min(tail.size, half))
    second = _list_sums(tail.levels[half:], min(tail.size, len(tail.levels) - half))
    pairs = [(sums, second[tail.size - size]) for size, sums in enumerate(first) if 0 <= tail.size - size < len(second)]

    def count_at_least(level: int) -> int:
        count = 0
        for left, right in pairs:
            rows = max(1, _BLOCK // max(1, len(right)))
            for start in range(0, len(left), rows):
                count += int(np.count_nonzero(np.add.outer(left[start : start + rows], right) >= level))
        return count

    return tail.resolve_ties(count_at_least)


def _list_sums(levels: _Ints, largest: int) -> list[_Ints]:
    """Return the sums of all subsets of `levels`, one array per subset size from 0 to `largest`.

    Subsets of the first scores come first.
    """
    sums = [np.zeros(math.comb(len(levels), size), dtype=np.int64) for size in range(largest + 1)]
    filled = [1] + [0] * largest
    for level in levels:
        for size in range(largest, 0, -1):
            start, added = filled[size], filled[size - 1]
            np.add(sums[size - 1][:added], level, out=sums[size][start : start + added])
            filled[size] += added
    return sums


def count_by_middle(tail: SubsetTail) -> int:
    """Count the subsets in the tail for every score as the middle one of a subset; quick for a few scores of many."""
    tail = tail.complement()
    before = (tail.size - 1) // 2
    behind = tail.size - 1 - before
    first = _list_sums(tail.levels, before)[before]
    second = _list_sums(tail.levels[::-1], behind)[behind]

    def count_at_least(level: int) -> int:
        count = 0
        for i, score in enumerate(tail.levels.tolist()):
            left = first[: math.comb(i, before)]
            right = second[: math.comb(len(tail.levels) - 1 - i, behind)]
            count += _count_pairs((np.sort(left), None), (np.sort(right), None), level - score)
        return count

    return tail.resolve_ties(count_at_least)


def middle_states(total: int, size: int) -> int:
    """Return the number of sums that `count_by_middle` computes."""
    size = min(size, total - size)
    before = (size - 1) // 2
    return math.comb(total, before + 1) + math.comb(total, size - before)


def half_states(total: int, size: int) -> int:
    """Return the largest number of sums that `count_by_halves` lists for one half."""
    half, states, subsets = (total + 1) // 2, 0, 1
    for chosen in range(min(size, total - size, half) + 1):
        states += subsets
        if states > 1 << 62:
            break  # more than any limit
        subsets = subsets * (half - chosen) // (chosen + 1)
    return states


def count_by_halves(tail: SubsetTail, max_states: int) -> int | None:
    """Count the subsets in the tail by meeting in the middle; None if a half has more than `max_states` sums.

    The sums of the subsets of each half are listed by subset size, and a binary search counts the pairs that reach
    the threshold. A partial subset that no completion lifts to the threshold is dropped, which leaves few in far
    tails. If many scores are tied, equal sums are stored once with their number of subsets.
    """
    tail = tail.complement()
    ordered = np.sort(tail.levels)[::-1]
    values, times = np.unique(ordered, return_counts=True)
    if len(values) < 0.7 * len(ordered):
        ones: _Counts | None = np.ones(1, dtype=_count_type(tail.n_subsets))
        max_states //= 16 if tail.n_subsets >= 10**300 else 1  # Python integers are slow
        ordered, times = values[::-1], times[::-1]
    else:
        ones, times = None, np.ones_like(ordered)
    # Alternate between the halves: high scores in both let both drop partial subsets.
    halves = (ordered[::2], times[::2]), (ordered[1::2], times[1::2])
    first = _list_reachable(halves[0], halves[1], tail, max_states, ones)
    second = first and _list_reachable(halves[1], halves[0], tail, max_states, ones)
    if first is None or second is None:
        return None
    for sums, _ in (*first.values(), *second.values()):
        sums.sort()  # sums with counts are in order already
    pairs = [(sums, second[tail.size - size]) for size, sums in first.items() if tail.size - size in second]
    return tail.resolve_ties(lambda level: sum(_count_pairs(left, right, level) for left, right in pairs))


def _count_type(n_subsets: int) -> type:
    """Return a type for numbers of subsets; a float is exact up to 2**53 and to 15 digits above."""
    return np.int64 if n_subsets < 2**62 else np.float64 if n_subsets < 10**300 else object


def _list_reachable(
    own: tuple[_Ints, _Ints], other: tuple[_Ints, _Ints], tail: SubsetTail, max_states: int, ones: _Counts | None
) -> dict[int, _Sums] | None:
    """List the sums of subsets of one half, by subset size, that a completion from the other half lifts into the tail.

    A half consists of levels in descending order and the number of scores at each. Returns None if there are more
    than `max_states` sums.
    """
    size, work = tail.size, 0
    max_work = max_states * (_WORK_PER_STATE if ones is None else _MERGED_WORK_PER_STATE)
    by_size: dict[int, _Sums] = {0: (np.zeros(1, dtype=np.int64), ones)}
    levels, times = own
    rest = np.repeat(*other)[:size]
    for i, (level, most) in enumerate(zip(levels.tolist(), times.tolist(), strict=True)):
        remaining = np.concatenate([np.repeat(levels[i + 1 : i + 1 + size], times[i + 1 : i + 1 + size])[:size], rest])
        best = np.concatenate([[0], np.cumsum(np.sort(remaining)[::-1])])
        grown: dict[int, _Sums] = {}
        for chosen in range(max(0, size - len(best) + 1), min(size, max(by_size, default=0) + most) + 1):
            parts = [(k, by_size[chosen - k]) for k in range(most + 1) if chosen - k in by_size]
            if parts:
                sums = _join_sums([(old + k * level, _times(n, math.comb(most, k))) for k, (old, n) in parts])
                reachable = sums[0] >= tail.lowest_tie - int(best[size - chosen])
                grown[chosen] = sums[0][reachable], None if sums[1] is None else sums[1][reachable]
        by_size = {chosen: sums for chosen, sums in grown.items() if len(sums[0])}
        states = sum(len(sums) for sums, _ in by_size.values())
        work += states + _WORK_PER_SIZE * len(by_size)
        if states > max_states or work > max_work:
            return None
    return by_size


def _times(counts: _Counts | None, factor: int) -> _Counts | None:
    return None if counts is None else counts * factor


def _join_sums(parts: list[_Sums]) -> _Sums:
    """Join lists of sums, merging equal sums if they have counts."""
    sums = np.concatenate([part[0] for part in parts])
    counts = [part[1] for part in parts if part[1] is not None]
    if not counts:
        return sums, None
    distinct, index = np.unique(sums, return_inverse=True)
    merged: Any = np.zeros(len(distinct), dtype=counts[0].dtype)
    np.add.at(merged, index, np.concatenate(counts))
    return distinct, merged


def _count_pairs(left: _Sums, right: _Sums, level: int) -> int:
    """Count pairs of subsets, one per half, whose sum is at least `level`; sums are in ascending order."""
    if left[1] is None or right[1] is None:
        below = np.searchsorted(right[0], level - left[0][::-1], side="left")
        return len(left[0]) * len(right[0]) - int(below.sum())
    above = np.concatenate([np.cumsum(right[1][::-1])[::-1], [0]])
    return int((left[1] * above[np.searchsorted(right[0], level - left[0], side="left")]).sum())
