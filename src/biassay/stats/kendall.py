"""Kendall's tau-b in bulk, with jackknife intervals and differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.agreement_bounds import share_bounds

Floats = NDArray[np.float64]
_BLOCK = 1 << 22  # comparisons in memory at once
_SAME = 1e-12  # a smaller standard error or difference is rounding


def kendall_by_row(x: ArrayLike, y: ArrayLike) -> Floats:
    """Compute Kendall's tau-b of every row of `x` (n, p) with the same row of `y` (n, p), or with `y` (p,).

    Cells that are NaN on either side are left out. A tau is NaN if fewer than two values differ on a side.
    """
    x, y = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    missing = np.isnan(x) | np.isnan(y)
    x, y = np.where(missing, np.nan, x), np.where(missing, np.nan, y)
    left, right = np.triu_indices(x.shape[1], 1)
    taus, step = np.empty(len(x)), max(1, _BLOCK // max(1, len(left)))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        a, b = (_compare_signs(side[part][:, left], side[part][:, right]) for side in (x, y))
        taus[part] = _tau_b((a * b).sum(axis=1), np.abs(a).sum(axis=1), np.abs(b).sum(axis=1))
    return taus


def block_counts(x: Floats, y: Floats) -> Floats:
    """Count the pairs of cells that make up tau, by pairs of groups, from `x` and `y` (groups, pairs).

    Returns
    -------
    (3, groups, groups) float64
        For two cells, one of each group: concordant minus discordant pairs, pairs that differ in x, and pairs that
        differ in y. All taus follow from these counts: over all cells (the sum), within a group (the diagonal), and
        over groups drawn w times each (w' counts w), because copies of a cell are tied and add nothing.
    """
    groups, pairs = x.shape
    missing = np.isnan(x) | np.isnan(y)
    a, b = (np.where(missing, np.nan, side).ravel() for side in (x, y))
    a_signs, b_signs = (_compare_signs(side[:, None], side[None, :]) for side in (a, b))
    counts = np.stack([a_signs * b_signs, np.abs(a_signs), np.abs(b_signs)])
    # Two steps, the first along whole rows, are several times as fast as one sum over both axes.
    rows = counts.reshape(3, groups, pairs, -1).sum(axis=2, dtype=np.int16)
    return np.asarray(rows.reshape(3, groups, groups, pairs).sum(axis=3, dtype=np.float64))


def overall_tau(blocks: Floats, weights: NDArray[np.number | np.bool_]) -> Floats:
    """Compute taus (n,) over all cells from `block_counts` (n, 3, groups, groups) or (3, groups, groups).

    `weights` (n or 1, groups) are the numbers of times that each group counts.
    """
    w = weights.astype(np.float64)
    counts = ((blocks @ w[:, None, :, None])[..., 0] * w[:, None, :]).sum(axis=-1)
    return _tau_b(*counts.T)


def within_tau(blocks: Floats) -> Floats:
    """Compute the tau within each group, (..., groups), from `block_counts`."""
    diagonal = np.diagonal(blocks, axis1=-2, axis2=-1)
    return _tau_b(diagonal[..., 0, :], diagonal[..., 1, :], diagonal[..., 2, :])


def percentile_interval(
    draws: Floats,
    confidence: float,
    centre: float | None = None,
    limits: tuple[float, float] = (-np.inf, np.inf),
    units: int | None = None,
) -> tuple[float, float]:
    """Return the interval that contains the middle share of draws.

    Parameters
    ----------
    draws : (n,) float64
        NaN is missing.
    confidence : float
        Share of the draws in the interval.
    centre : float, optional
        Shift the draws so that their mean is this value.
    limits : (float, float), optional
        Smallest and largest possible value; the interval is clipped to them.
    units : int, optional
        Number of units that were resampled. If all draws are equal, the interval is the bound for this number of
        agreeing units, and NaN for one unit.

    Returns
    -------
    (float, float)
        NaN without draws, or if the centre is NaN.
    """
    draws = draws[~np.isnan(draws)]
    if not len(draws) or (centre is not None and np.isnan(centre)):
        return (np.nan, np.nan)
    if units is not None and np.ptp(draws) <= _SAME:
        return (np.nan, np.nan) if units < 2 else _bound_unanimous(float(draws[0]), units, confidence, limits)
    outside = 50.0 * (1.0 - confidence)
    ends = np.percentile(draws, [outside, 100.0 - outside])
    shift = 0.0 if centre is None else centre - draws.mean()
    low, high = np.clip(ends + shift, *limits)
    return float(low), float(high)


def cluster_masks(clusters: ArrayLike | None, groups: int) -> NDArray[np.bool_]:
    """Return masks (clusters, groups) of the groups in every cluster.

    Every group is its own cluster if `clusters` (groups,) is None or has one distinct value: the variation between
    clusters is then unknown, and the interval generalizes to other groups of the same cluster.
    """
    labels = np.arange(groups) if clusters is None else np.asarray(clusters)
    names = np.unique(labels)
    if len(names) < 2:
        labels = names = np.arange(groups)
    return np.asarray(names[:, None] == labels)


def jackknife_interval(
    value: float,
    without: Floats,
    confidence: float,
    limits: tuple[float, float],
    sizes: ArrayLike,
    *,
    per_comparison: int = 1,
) -> tuple[float, float]:
    """Return the delete-one-cluster jackknife interval of a statistic, with Student's t.

    Parameters
    ----------
    value : float
        Statistic of all clusters.
    without : (clusters,) float64
        Statistic without each cluster in turn.
    confidence : float
    limits : (float, float)
        Smallest and largest possible value; the interval is clipped to them.
    sizes : (clusters,) array-like
        Number of groups in every cluster.
    per_comparison : int, default 1
        Number of clusters in one term of the statistic: 2 for Kendall's tau, which compares pairs of clusters.

    Returns
    -------
    (float, float)
        NaN if there are fewer than two clusters or the statistic is not defined.

    Notes
    -----
    The degrees of freedom are n - 1, where n is the effective number of clusters (Kish 1965). With six clusters of 1 to
    10 groups, intervals with 5 degrees of freedom covered the truth 90% of the time, with n - 1 more than 97%.

    If the statistic is the same whichever cluster is left out, its variance cannot be estimated. The interval is then
    the bound of Clopper and Pearson (1934) for agreeing clusters, with `per_comparison` clusters per observation.
    """
    k = len(without)
    if k < 2 or np.isnan(value) or np.isnan(without).any():
        return (np.nan, np.nan)
    error = float(np.sqrt((k - 1) / k * ((without - without.mean()) ** 2).sum()))
    weights = np.asarray(sizes, dtype=np.float64)
    n = float(weights.sum() ** 2 / (weights**2).sum())
    if error <= _SAME:
        return _bound_unanimous(value, n / per_comparison, confidence, limits)
    half = error * float(scipy.special.stdtrit(n - 1.0, 0.5 * (1.0 + confidence)))
    low, high = np.clip([value - half, value + half], *limits)
    return float(low), float(high)


def _bound_unanimous(value: float, n: float, confidence: float, limits: tuple[float, float]) -> tuple[float, float]:
    """Return bounds of a mean if all n observations have the same value; unobserved ones may lie at either limit."""
    share = share_bounds(n, n, confidence=confidence)[0]
    low, high = (limit + (value - limit) * share for limit in limits)
    return low, high


def _compare_signs(left: Floats, right: Floats) -> NDArray[np.int8]:
    """Return 1 where left is larger, -1 where right is, and 0, without a warning, where they are equal or NaN."""
    return np.asarray(np.subtract(left > right, left < right, dtype=np.int8))


def _tau_b(agreeing: NDArray[np.number], differing_x: NDArray[np.number], differing_y: NDArray[np.number]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(agreeing / np.sqrt(differing_x) / np.sqrt(differing_y), -1.0, 1.0))


@dataclass(frozen=True)
class TauDifference:
    """Difference of two models in agreement with human ratings; undefined values are NaN.

    Attributes
    ----------
    first, second : float
        Kendall's tau of each model with the ratings, over all cells.
    difference, low, high : float
        Second minus first, and its interval over domains, or over groups if there is one domain.
    between : float
        Kendall's tau between the two models.
    num_groups, num_cells : int
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
    """Compare the agreement of two models with human ratings.

    Parameters
    ----------
    first, second, human : (groups, pairs) array-like
        Scores of both models and mean ratings. A cell that is NaN in any of them is left out.
    domains : (groups,) array-like, optional
        Domain of every group, the sampling unit of the interval (see `alignment_intervals`).
    confidence : float, default 0.95

    Returns
    -------
    TauDifference
    """
    sides = np.stack([np.asarray(side, dtype=np.float64) for side in (first, second, human)])
    missing = np.asarray(np.isnan(sides).any(axis=0))
    kept = ~missing.all(axis=1)
    x, y, people = np.where(missing, np.nan, sides)[:, kept]
    groups = len(x)
    if not groups:
        return TauDifference(*(float("nan"),) * 6, 0, 0)
    once = np.ones((1, groups))
    masks = cluster_masks(None if domains is None else np.asarray(domains)[kept], groups)
    blocks = [block_counts(side, people) for side in (x, y)]
    taus = [float(overall_tau(counts, once)[0]) for counts in blocks]
    difference = taus[1] - taus[0]
    without = overall_tau(blocks[1], ~masks) - overall_tau(blocks[0], ~masks)
    between = float(overall_tau(block_counts(x, y), once)[0])
    if between > 1.0 - _SAME and abs(difference) < _SAME:  # the same model, or two that order all cells alike
        low = high = 0.0
    else:
        sizes = masks.sum(axis=1)
        low, high = jackknife_interval(difference, without, confidence, (-2.0, 2.0), sizes, per_comparison=2)
    return TauDifference(taus[0], taus[1], difference, low, high, between, groups, int((~missing).sum()))
