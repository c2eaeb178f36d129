"""Share of relative decisions that follow the stereotype, with intervals and p-values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.agreement_bounds import share_bounds
from biassay.stats.crossed import CONFIDENCE

_FLAT = 1e-12  # shares that differ by less are the same

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RelativeDecisions:
    """Share of decisions that follow the stereotype.

    Attributes
    ----------
    share : float
        Mean over tasks; NaN if there is no decision.
    by_task : (tasks,) float
        Share of each task. If orders are given, both orders of the two people count equally, and a task without a
        decision in one of them is NaN.
    counts : (tasks,) int
        Number of parsed decisions.
    interval : (float, float) or None
        Student's t interval of the share over tasks, within 0 and 1. With one task, the interval of Clopper and Pearson
        (1934) over its decisions. If all n tasks have the same share, the share of tasks with another one is at most
        1 - ((1 - confidence) / 2)^(1 / n), as in that interval. None if there is no decision.
    bounds : (float, float)
        The share with every missing decision counted against the stereotype, and counted for it.
    p_by_task : float or None
        Two-sided sign test over tasks, without tasks with a share of one half. None if no task is left.
    p_by_decision : float or None
        Two-sided binomial test over decisions, which treats the tasks as fixed. None if there is no decision.
    """

    share: float
    by_task: Floats
    counts: NDArray[np.int64]
    interval: tuple[float, float] | None
    bounds: tuple[float, float]
    p_by_task: float | None
    p_by_decision: float | None


def relative_decisions(
    follows: ArrayLike,
    tasks: ArrayLike,
    *,
    orders: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> RelativeDecisions:
    """Estimate the share of decisions that follow the stereotype, by task and over tasks.

    Parameters
    ----------
    follows : (decisions,) array-like
        1 if the decision follows the stereotype, 0 if it goes against it, NaN if it could not be parsed.
    tasks : (decisions,) array-like
        Task of each decision. Tasks are the sampling unit, because decisions of one task are correlated.
    orders : (decisions,) bool, optional
        Order of the two people in the prompt.
    confidence : float, default 0.95

    Returns
    -------
    RelativeDecisions
    """
    decided, task = np.asarray(follows, dtype=np.float64), np.asarray(tasks)
    order = np.zeros(len(decided), dtype=bool) if orders is None else np.asarray(orders, dtype=bool)
    sides = (False,) if orders is None else (False, True)
    parsed = ~np.isnan(decided)
    names = np.unique(task)
    cells = [[(task == name) & (order == side) for side in sides] for name in names]
    by_task = np.array([np.mean([_mean(decided[parsed & cell]) for cell in task_cells]) for task_cells in cells])
    low, high = (
        np.array([np.mean([_mean(completed[cell]) for cell in task_cells]) for task_cells in cells])
        for completed in (np.where(parsed, decided, fill) for fill in (0.0, 1.0))
    )
    counts = np.array([int((parsed & (task == name)).sum()) for name in names])
    shares = by_task[~np.isnan(by_task)]
    ones, total = int(decided[parsed].sum()), int(parsed.sum())
    return RelativeDecisions(
        float(shares.mean()) if len(shares) else math.nan,
        by_task,
        counts,
        _interval(shares, ones, total, confidence),
        (_mean(low[~np.isnan(low)]), _mean(high[~np.isnan(high)])),
        binomial_p(int((shares > 0.5).sum()), int((shares != 0.5).sum())),
        binomial_p(ones, total),
    )


def binomial_p(hits: int, n: int) -> float | None:
    """Return the exact two-sided p-value of `hits` of `n` tosses of a fair coin, or None if `n` is 0."""
    return min(1.0, 2.0 * float(scipy.special.bdtr(min(hits, n - hits), n, 0.5))) if n else None


def _interval(shares: Floats, ones: int, total: int, confidence: float) -> tuple[float, float] | None:
    outside = (1.0 - confidence) / 2.0
    if len(shares) > 1:
        reach = float(
            scipy.special.stdtrit(len(shares) - 1, 1.0 - outside) * shares.std(ddof=1) / math.sqrt(len(shares))
        )
        if not reach > _FLAT:
            agree = outside ** (1.0 / len(shares))
            return agree * float(shares[0]), agree * float(shares[0]) + 1.0 - agree
        return max(0.0, float(shares.mean()) - reach), min(1.0, float(shares.mean()) + reach)
    return share_bounds(ones, total, confidence=confidence) if len(shares) else None


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
