"""The permutation null of an association test, as a question about subset sums.

A partition of the targets into sets of the sizes |X| and |Y| is a choice of |X| of all the scores, and its
statistic grows with the sum of the chosen ones. So every p-value asks: which share of the size-``n`` subsets has
a sum of at least ``threshold``? The routes that answer it live in the modules beside this one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["SubsetTail", "log_binomial"]

_ULPS = 18.0  # of the largest score: what a product of some hundred terms may lose


def log_binomial(total: int, chosen: int) -> float:
    """Natural logarithm of the binomial coefficient."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)


@dataclass(frozen=True)
class SubsetTail:
    """Which share of the size-``size`` subsets of ``scores`` sums to at least ``threshold``?

    Attributes
    ----------
    scores : (N,) float64
        Associations of all targets, shifted so that their mean is zero: a common shift moves every sum alike.
    size : int
        Number of scores in a subset.
    threshold : float
        The observed sum. A sum within ``tolerance`` of it is a tie and counts.
    noise : float
        How far two scores that should be equal may lie apart, by rounding.
    """

    scores: NDArray[np.float64]
    size: int
    threshold: float
    noise: float = 0.0

    @classmethod
    def of(cls, x: NDArray[np.float64], y: NDArray[np.float64], noise: float = 0.0) -> SubsetTail:
        """The upper tail at the observed split into ``x`` (n,) and ``y`` (m,).

        Scores are taken to be known to some units in the last place of the largest, or to ``noise`` if that is more.
        """
        scores = np.concatenate([x, y]).astype(np.float64)
        noise = max(noise, _ULPS * float(np.abs(scores).max()) * float(np.finfo(np.float64).eps))
        scores -= scores.mean()
        return cls(scores, len(x), math.fsum(scores[: len(x)]), noise)

    @property
    def tolerance(self) -> float:
        """Sums of the same numbers in another order differ by rounding; anything closer than this is a tie."""
        return self.noise * math.sqrt(self.size)

    @cached_property
    def n_partitions(self) -> int:
        return math.comb(len(self.scores), self.size)

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest sum of a subset."""
        ordered = np.sort(self.scores)
        return math.fsum(ordered[: self.size]), math.fsum(ordered[len(ordered) - self.size :])

    @property
    def lower_tail(self) -> SubsetTail:
        """P[sum <= threshold], asked as an upper tail."""
        return SubsetTail(-self.scores, self.size, -self.threshold, self.noise)

    @property
    def opposite_tail(self) -> SubsetTail:
        """P[sum <= -threshold]: as far from the mean sum, which is zero, on the other side."""
        return SubsetTail(-self.scores, self.size, self.threshold, self.noise)

    def smaller_side(self) -> SubsetTail:
        """The same question about the complements, when those are the smaller sets."""
        rest = len(self.scores) - self.size
        if rest >= self.size:
            return self
        return SubsetTail(-self.scores, rest, self.threshold - math.fsum(self.scores), self.noise)
