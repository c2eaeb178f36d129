"""Many values of Kendall's tau-b at once, and intervals from draws of it."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

__all__ = ["block_counts", "kendall_rows", "overall_tau", "percentile_interval", "within_tau"]

Floats = NDArray[np.float64]
_BLOCK = 1 << 22  # comparisons held at once


def kendall_rows(x: ArrayLike, y: ArrayLike) -> Floats:
    """Kendall's tau-b of every row of ``x`` (n, p) with its row of ``y`` (n, p) or with ``y`` (p,), many at once.

    Cells that are NaN on either side are left out; NaN where fewer than two differ on a side.
    """
    one, other = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    gone = np.isnan(one) | np.isnan(other)
    one, other = np.where(gone, np.nan, one), np.where(gone, np.nan, other)
    left, right = np.triu_indices(one.shape[1], 1)
    taus, step = np.empty(len(one)), max(1, _BLOCK // max(1, len(left)))
    for start in range(0, len(one), step):
        part = slice(start, start + step)
        a, b = (_signs(side[part][:, left], side[part][:, right]) for side in (one, other))
        taus[part] = _tau_b((a * b).sum(axis=1), np.abs(a).sum(axis=1), np.abs(b).sum(axis=1))
    return taus


def block_counts(x: Floats, y: Floats) -> Floats:
    """What tau is made of, by pairs of groups, (3, groups, groups), from ``x`` and ``y`` (groups, pairs).

    Of two cells, one of either group: agreeing in order less disagreeing, differing in x, differing in y. All taus
    follow from it: of all cells (the sum), of a group (the diagonal), and of groups drawn w times each (w' counts w),
    since copies of a cell are tied with each other and add nothing.
    """
    groups, pairs = x.shape
    gone = np.isnan(x) | np.isnan(y)
    a, b = (np.where(gone, np.nan, side).ravel() for side in (x, y))
    a_signs, b_signs = (_signs(side[:, None], side[None, :]) for side in (a, b))
    counts = np.stack([a_signs * b_signs, np.abs(a_signs), np.abs(b_signs)])
    # In two steps, the first along whole rows: several times as fast as one sum over both.
    rows = counts.reshape(3, groups, pairs, -1).sum(axis=2, dtype=np.int16)
    return np.asarray(rows.reshape(3, groups, groups, pairs).sum(axis=3, dtype=np.float64))


def overall_tau(blocks: Floats, weights: NDArray[np.number]) -> Floats:
    """Taus (n,) over all cells, of ``blocks`` (n, 3, groups, groups) or (3, groups, groups).

    ``weights`` (n or 1, groups): how many times each group counts.
    """
    w = weights.astype(np.float64)
    counts = ((blocks @ w[:, None, :, None])[..., 0] * w[:, None, :]).sum(axis=-1)
    return _tau_b(*counts.T)


def within_tau(blocks: Floats) -> Floats:
    """Taus of the groups, (..., groups), each over its own cells."""
    diagonal = np.diagonal(blocks, axis1=-2, axis2=-1)
    return _tau_b(diagonal[..., 0, :], diagonal[..., 1, :], diagonal[..., 2, :])


def percentile_interval(
    draws: Floats,
    confidence: float,
    centre: float | None = None,
    limits: tuple[float, float] = (-np.inf, np.inf),
    units: int | None = None,
) -> tuple[float, float]:
    """The middle ``confidence`` of draws that are not NaN, moved so that their mean is ``centre`` if it is given.

    Moved ends stay within ``limits``. Without draws, or if the centre is NaN, both ends are NaN. ``units`` is how many
    were drawn from: of few, percentiles lie too close together, and those further out are taken (Hesterberg 2015).
    """
    draws = draws[~np.isnan(draws)]
    if not len(draws) or (centre is not None and np.isnan(centre)):
        return (np.nan, np.nan)
    outside = 100.0 * (0.5 * (1.0 - confidence) if units is None else _expanded_tail(confidence, units))
    ends = np.percentile(draws, [outside, 100.0 - outside])
    move = 0.0 if centre is None else centre - draws.mean()
    low, high = np.clip(ends + move, *limits)
    return float(low), float(high)


def _expanded_tail(confidence: float, units: int) -> float:
    """Below which share of draws an interval begins that is as wide as one by Student's t.

    A normal quantile of draws is multiplied by sqrt(n / (n - 1)), for draws vary that much too little, and by what
    Student's t has more than it. One unit has no width whatever is taken.
    """
    tail = 0.5 * (1.0 - confidence)
    if units < 2:
        return tail

    return float(scipy.special.ndtr(math.sqrt(units / (units - 1)) * scipy.special.stdtrit(units - 1, tail)))


def _signs(left: Floats, right: Floats) -> NDArray[np.int8]:
    """1 where left is larger, -1 where right is, 0 where they are equal or one is NaN; without NumPy's warnings."""
    return np.asarray(np.subtract(left > right, left < right, dtype=np.int8))


def _tau_b(agreeing: NDArray[np.number], differing_x: NDArray[np.number], differing_y: NDArray[np.number]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(agreeing / np.sqrt(differing_x) / np.sqrt(differing_y), -1.0, 1.0))
