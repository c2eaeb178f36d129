"""Many values of Kendall's tau-b at once, and intervals from draws of it or from leaving out clusters of groups."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.agreement_bounds import share_bounds

__all__ = [
    "block_counts",
    "cluster_masks",
    "jackknife_interval",
    "kendall_rows",
    "overall_tau",
    "percentile_interval",
    "within_tau",
]

Floats = NDArray[np.float64]
_BLOCK = 1 << 22  # comparisons held at once
_SAME = 1e-12  # standard error that rounding leaves of zero


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

    Moved ends stay within ``limits``. Without draws, or if the centre is NaN, both ends are NaN. ``units`` is the
    number of units that were drawn: if all draws are the same, the interval is the bound that so many agreeing units
    give, and NaN for one unit.
    """
    draws = draws[~np.isnan(draws)]
    if not len(draws) or (centre is not None and np.isnan(centre)):
        return (np.nan, np.nan)
    if units is not None and np.ptp(draws) <= _SAME:
        return (np.nan, np.nan) if units < 2 else _agreed(float(draws[0]), units, confidence, limits)
    outside = 50.0 * (1.0 - confidence)
    ends = np.percentile(draws, [outside, 100.0 - outside])
    move = 0.0 if centre is None else centre - draws.mean()
    low, high = np.clip(ends + move, *limits)
    return float(low), float(high)


def cluster_masks(clusters: ArrayLike | None, groups: int) -> NDArray[np.bool_]:
    """Return which groups belong to every cluster, (clusters, groups).

    Every group is a cluster of its own if ``clusters`` (groups,) is None or names one cluster only: then nothing is
    known about how clusters vary, and the interval is about other groups of the one there is.
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
    """Return Student's t interval of a statistic by leaving out one cluster at a time.

    Parameters
    ----------
    value : float
        The statistic of all clusters.
    without : (clusters,) float64
        The statistic without each cluster in turn.
    confidence : float
    limits : (float, float)
        Smallest and largest possible value; the interval stays within them.
    sizes : (clusters,) array-like
        Number of groups in every cluster.
    per_comparison : int, default 1
        How many clusters one term of the statistic takes: 2 for Kendall's tau, which compares clusters two by two.

    Returns
    -------
    (float, float)
        NaN if there are fewer than two clusters or the statistic is not defined.

    Notes
    -----
    Clusters of unequal size count by their effective number n (Kish 1965): the degrees of freedom are n - 1. With six
    clusters of 1 to 10 groups, 5 degrees held the truth in 90% of cases, n - 1 in more than 97%.

    If the statistic is the same whichever cluster is left out, its variance cannot be estimated. The interval is then
    the bound that the number of agreeing clusters gives (Clopper and Pearson 1934), with ``per_comparison`` clusters
    for one observation.
    """
    k = len(without)
    if k < 2 or np.isnan(value) or np.isnan(without).any():
        return (np.nan, np.nan)
    error = float(np.sqrt((k - 1) / k * ((without - without.mean()) ** 2).sum()))
    weights = np.asarray(sizes, dtype=np.float64)
    n = float(weights.sum() ** 2 / (weights**2).sum())
    if error <= _SAME:
        return _agreed(value, n / per_comparison, confidence, limits)
    half = error * float(scipy.special.stdtrit(n - 1.0, 0.5 * (1.0 + confidence)))
    low, high = np.clip([value - half, value + half], *limits)
    return float(low), float(high)


def _agreed(value: float, n: float, confidence: float, limits: tuple[float, float]) -> tuple[float, float]:
    """Return the bound of a mean of which all n observations have one value: others may lie at either limit."""
    share = share_bounds(n, n, confidence=confidence)[0]
    low, high = (limit + (value - limit) * share for limit in limits)
    return low, high


def _signs(left: Floats, right: Floats) -> NDArray[np.int8]:
    """1 where left is larger, -1 where right is, 0 where they are equal or one is NaN; without NumPy's warnings."""
    return np.asarray(np.subtract(left > right, left < right, dtype=np.int8))


def _tau_b(agreeing: NDArray[np.number], differing_x: NDArray[np.number], differing_y: NDArray[np.number]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(agreeing / np.sqrt(differing_x) / np.sqrt(differing_y), -1.0, 1.0))
