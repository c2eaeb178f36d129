"""Which of two profiles agrees better with human ratings, over the same groups and pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from biassay.stats.kendall import block_counts, cluster_masks, jackknife_interval, overall_tau

__all__ = ["TauDifference", "tau_difference"]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class TauDifference:
    """Kendall's tau of both with human ratings over all cells, the second minus the first, and the tau of the two.

    The interval is over domains of groups, or over groups where there is one domain only. NaN: not defined.
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
    domains: ArrayLike | None = None,
    confidence: float = 0.95,
) -> TauDifference:
    """Compare the agreement of two profiles with human ratings.

    Parameters
    ----------
    first, second, human : (groups, pairs) array-like
        Scores of both models and mean ratings. A cell that any of them lacks (NaN) is left out.
    domains : (groups,) array-like, optional
        The domain of every group: the sampling unit of the interval (see `alignment_intervals`).
    confidence : float, default 0.95

    Returns
    -------
    TauDifference
    """
    sides = np.stack([np.asarray(side, dtype=np.float64) for side in (first, second, human)])
    gone = np.asarray(np.isnan(sides).any(axis=0))
    one, other, people = (np.where(gone, np.nan, side) for side in sides)
    kept = ~gone.all(axis=1)
    one, other, people = one[kept], other[kept], people[kept]
    groups = len(one)
    if not groups:
        return TauDifference(*(float("nan"),) * 6, 0, 0)
    once = np.ones((1, groups))
    masks = cluster_masks(None if domains is None else np.asarray(domains)[kept], groups)
    blocks = [block_counts(side, people) for side in (one, other)]
    taus = [float(overall_tau(of, once)[0]) for of in blocks]
    difference = taus[1] - taus[0]
    without = overall_tau(blocks[1], (~masks).astype(np.float64)) - overall_tau(blocks[0], (~masks).astype(np.float64))
    between = float(overall_tau(block_counts(one, other), once)[0])
    if between > 1.0 - _ROUNDING and abs(difference) < _ROUNDING:  # one model twice, or two that order all cells alike
        low = high = 0.0
    else:
        sizes = masks.sum(axis=1)
        low, high = jackknife_interval(difference, without, confidence, (-2.0, 2.0), sizes, per_comparison=2)
    return TauDifference(taus[0], taus[1], difference, low, high, between, groups, int((~gone).sum()))
