"""The permutation null of an association test, as a question about subset sums.

A partition of the targets into sets of the sizes |X| and |Y| is a choice of |X| of all the scores, and its
statistic grows with the sum of the chosen ones. So every p-value asks: which share of the size-``n`` subsets has
a sum of at least the observed one? Scores that differ by rounding only are made one, and all of them integers, once
and for all: sums are then exact, and a tie is a tie on both sides of every comparison. The routes that answer the
question live in the modules beside this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.stats.lattice import lattice_step

__all__ = ["SubsetTail", "log_binomial"]

_ULPS = 18.0  # of the largest score: what a product of some hundred terms may lose
_TIED = 16.0  # times the noise: scores of one value, each with its own rounding, lie no further apart
_FAR = 256  # powers of two from one
_BITS = 61  # of a sum of all the scores
_SLACK = 4.0  # times the noise and the root of how many scores can differ: what their sums lose, with room to spare
_EXPECTED = 0.01  # neighbours within the slack: with fewer, whatever is found there is a tie
_WINDOWS = 200  # as wide as the slack, in which neighbours are counted
_BY_CHANCE = 0.01  # more neighbours than chance puts there are ties


def log_binomial(total: int, chosen: int) -> float:
    """Natural logarithm of the binomial coefficient."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)


@dataclass(frozen=True)
class SubsetTail:
    """Which share of the size-``size`` subsets of ``levels`` sums to at least ``least``?

    Attributes
    ----------
    levels : (N,) int64
        Associations of all targets, in units of ``unit``, up to a common shift, which moves every sum alike.
    size : int
        Number of scores in a subset.
    least : int
        The observed sum, in the same units.
    unit : float
    lattice : bool
        Whether the scores are whole multiples of the unit. Otherwise it is far below the last digit of a score.
    noise : float
        How far a score may be from its true value, by rounding.
    """

    levels: NDArray[np.int64]
    size: int
    least: int
    unit: float = 1.0
    lattice: bool = True
    noise: float = 0.0

    @classmethod
    def of(cls, x: NDArray[np.float64], y: NDArray[np.float64], noise: float = 0.0) -> SubsetTail:
        """The upper tail at the observed split into ``x`` (n,) and ``y`` (m,).

        Scores are taken to be known to some units in the last place of the largest, or to ``noise`` if that is more.
        """
        scores = np.concatenate([x, y]).astype(np.float64)
        largest = float(np.abs(scores).max())
        exponent = math.frexp(largest)[1]
        if abs(exponent) > _FAR:  # squares would overflow or vanish
            return cls.of(np.ldexp(x, -exponent), np.ldexp(y, -exponent), math.ldexp(noise, -exponent))
        noise = max(noise, _ULPS * largest * float(np.finfo(np.float64).eps))
        scores = _tied(scores, _TIED * noise)
        step = lattice_step(scores, noise)
        if step is None:
            bits = _BITS - exponent - (len(scores) + 2).bit_length()
            unit, scaled = math.ldexp(1.0, -bits), np.ldexp(scores, bits)
        else:
            unit, scaled = step, (scores - scores.min()) / step
        levels = np.rint(scaled).astype(np.int64)
        levels -= round(int(levels.sum()) / len(levels))
        return cls(levels, len(x), int(levels[: len(x)].sum()), unit, step is not None, noise)

    @cached_property
    def _total(self) -> int:
        return int(self.levels.sum())

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Associations, shifted so that their mean is zero."""
        return np.asarray((self.levels - self._total / len(self.levels)) * self.unit)

    @property
    def threshold(self) -> float:
        """The observed sum of such scores."""
        return (self.least * len(self.levels) - self.size * self._total) / len(self.levels) * self.unit

    @property
    def deviation(self) -> float:
        """Standard deviation of the sum of a random subset."""
        share = self.size / len(self.levels)
        return math.sqrt(share * (1.0 - share) * float(self.scores @ self.scores))

    @property
    def slack(self) -> int:
        """How far below the observed sum an equal one of other scores may lie by rounding, in units."""
        different = min(self.size, len(self.levels) - self.size)
        return 0 if self.lattice else math.ceil(_SLACK * math.sqrt(different) * (self.noise / self.unit + 1.0))

    @property
    def level(self) -> int:
        """The lowest sum that may be a tie with the observed one."""
        return self.least - self.slack

    def settled(self, count_at: Callable[[int], int]) -> int:
        """Number of subsets at or above the observed sum, from the number at or above any.

        Where sums lie so close that others are expected within the slack, those are neighbours, and only an equal sum
        is a tie, unless more are found there than as near as that to each other elsewhere.
        """
        count = count_at(self.level)
        if not self.slack or not self.deviation:
            return count
        windows = self.deviation / (1.0 + abs(self.threshold) / self.deviation) / (self.slack * self.unit)
        if min(count, 10**300) < _EXPECTED * windows:
            return count
        equal = count_at(self.least)
        if count == equal:
            return count
        windows = max(1, min(_WINDOWS, int(windows / 4.0)))
        above = self.least + self.slack + 1
        neighbours = (count_at(above) - count_at(above + windows * self.slack) + 1) / windows

        return count if scipy.special.pdtrc(count - equal - 1, neighbours) < _BY_CHANCE else equal

    @cached_property
    def n_partitions(self) -> int:
        return math.comb(len(self.levels), self.size)

    @cached_property
    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest sum of a subset."""
        ordered = np.sort(self.levels)
        return int(ordered[: self.size].sum()), int(ordered[len(ordered) - self.size :].sum())

    @property
    def lower_tail(self) -> SubsetTail:
        """P[sum <= threshold], asked as an upper tail."""
        return replace(self, levels=-self.levels, least=-self.least)

    @property
    def opposite_tail(self) -> SubsetTail:
        """P[sum <= -threshold]: as far from the mean sum on the other side."""
        beyond = self.least * len(self.levels) - 2 * self.size * self._total
        return replace(self, levels=-self.levels, least=-(-beyond // len(self.levels)))

    def smaller_side(self) -> SubsetTail:
        """The same question about the complements, when those are the smaller sets."""
        rest = len(self.levels) - self.size
        if rest >= self.size:
            return self
        return replace(self, levels=-self.levels, size=rest, least=self.least - self._total)

    def without(self, place: int, taken: bool) -> SubsetTail:
        """The same question about subsets that hold the score at ``place``, or about those that do not."""
        least = self.least - taken * int(self.levels[place])
        return replace(self, levels=np.delete(self.levels, place), size=self.size - taken, least=least)


def _tied(scores: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Scores in which all that lie within ``width`` of each other have become the middle one of them.

    Where more than that lie close to each other, they are parted at the widest gap: not amid scores of one value.
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
    tied = np.empty_like(ordered)
    tied[order] = ordered
    return tied
