"""Relative decisions: of two people, who gets which of two tasks, and how often that follows the stereotype."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.crossed import CONFIDENCE

__all__ = ["Decisions", "binomial_p", "relative_decisions"]

_FLAT = 1e-12  # shares that differ by less are the same

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Decisions:
    """How often decisions follow the stereotype.

    Attributes
    ----------
    share : float
        Mean over tasks; NaN where nothing was decided.
    by_task : (tasks,) float
        Both orders of the two people count alike, where orders are stated; NaN where a task was not decided in both.
    counts : (tasks,) int
        Decisions that were read.
    interval : (float, float) or None
        Of the share: by t over tasks, within 0 and 1. With one task, the interval of Clopper and Pearson over its
        decisions. If all n tasks have the same share, the share of tasks with another one may be as large as
        1 - (outside / 2)^(1 / n), as in that interval. None: nothing was decided.
    bounds : (float, float)
        The share with every missing decision counted against the stereotype, and counted for it.
    p_by_task : float or None
        Sign test, two-sided: as many tasks follow the stereotype as run against it. Those with a share of one half say
        nothing. None: no task is left.
    p_by_decision : float or None
        Binomial test, two-sided: of these very tasks, every decision a toss of a coin.
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
) -> Decisions:
    """The share of decisions that follow the stereotype, by task and over tasks.

    Parameters
    ----------
    follows : (decisions,) array-like
        1: follows the stereotype, 0: runs against it, NaN: not read.
    tasks : (decisions,) array-like
        Which task was decided; decisions of one task are not independent for other tasks.
    orders : (decisions,) bool, optional
        The order of the two people in the prompt.
    confidence : float
    """
    decided, of = np.asarray(follows, dtype=np.float64), np.asarray(tasks)
    if decided.ndim != 1 or of.shape != decided.shape or not len(decided):
        raise UsageError(f"every decision needs a task, got shapes {decided.shape} and {of.shape}")
    if not np.isin(decided[~np.isnan(decided)], (0.0, 1.0)).all():
        raise UsageError("decisions are 1, 0 or NaN")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"the confidence must lie between 0 and 1, got {confidence}")
    order = np.zeros(len(decided), dtype=bool) if orders is None else np.asarray(orders, dtype=bool)
    if order.shape != decided.shape:
        raise UsageError(f"orders must be stated for each of {len(decided)} decisions, got shape {order.shape}")
    sides = (False,) if orders is None else (False, True)
    read = ~np.isnan(decided)
    names = np.unique(of)
    cells = [[(of == n) & (order == side) for side in sides] for n in names]
    by_task = np.array([np.mean([_mean(decided[read & cell]) for cell in of_task]) for of_task in cells])
    low, high = (
        np.array([np.mean([_mean(completed[cell]) for cell in of_task]) for of_task in cells])
        for completed in (np.where(read, decided, fill) for fill in (0.0, 1.0))
    )
    counts = np.array([int((read & (of == n)).sum()) for n in names])
    shares = by_task[~np.isnan(by_task)]
    ones, total = int(decided[read].sum()), int(read.sum())
    return Decisions(
        float(shares.mean()) if len(shares) else math.nan,
        by_task,
        counts,
        _interval(shares, ones, total, confidence),
        (_mean(low[~np.isnan(low)]), _mean(high[~np.isnan(high)])),
        binomial_p(int((shares > 0.5).sum()), int((shares != 0.5).sum())),
        binomial_p(ones, total),
    )


def binomial_p(hits: int, n: int) -> float | None:
    """Two-sided: as many or as few of ``n`` tosses of a coin, exactly. None: there is none."""
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
    if not len(shares):
        return None
    low = float(scipy.special.betaincinv(ones, total - ones + 1, outside)) if ones else 0.0
    high = float(scipy.special.betaincinv(ones + 1, total - ones, 1.0 - outside)) if ones < total else 1.0
    return low, high


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
