"""Which of two profiles agrees better with human ratings, over the same groups and pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.stats.kendall import block_counts, overall_tau, percentile_interval

__all__ = ["TauDifference", "tau_difference"]


@dataclass(frozen=True)
class TauDifference:
    """Kendall's tau of both with human ratings over all cells, the second minus the first, and the tau of the two.

    The interval is over groups, drawn anew for both at once: with 8 or 21 groups it held the expected difference in 95%
    to 96% of simulated cases at 95%. NaN: not defined.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    between: float
    num_groups: int
    num_cells: int


def tau_difference(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    *,
    draws: int = 2000,
    confidence: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> TauDifference:
    """Compare scores (groups, pairs) with ratings (groups, pairs); a cell that any of them lacks (NaN) is left out."""
    sides = np.stack([np.asarray(side, dtype=np.float64) for side in (first, second, human)])
    gone = np.asarray(np.isnan(sides).any(axis=0))
    one, other, people = (np.where(gone, np.nan, side) for side in sides)
    kept = ~gone.all(axis=1)
    one, other, people = one[kept], other[kept], people[kept]
    groups = len(one)
    if not groups:
        return TauDifference(*(float("nan"),) * 6, 0, 0)
    once = np.ones((1, groups))
    rng = np.random.default_rng(rng)
    weights: NDArray[np.number] = rng.multinomial(groups, np.full(groups, 1.0 / groups), size=draws)
    blocks = [block_counts(side, people) for side in (one, other)]
    taus = [float(overall_tau(of, once)[0]) for of in blocks]
    drawn = overall_tau(blocks[1], weights) - overall_tau(blocks[0], weights)
    low, high = percentile_interval(drawn, confidence, taus[1] - taus[0], (-2.0, 2.0), groups)
    between = float(overall_tau(block_counts(one, other), once)[0])
    return TauDifference(taus[0], taus[1], taus[1] - taus[0], low, high, between, groups, int((~gone).sum()))
