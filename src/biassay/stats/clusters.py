"""Scores of items that come in clusters (templates, writers, target terms), with intervals and p-values by cluster.

Items of one template get similar responses, so 600 questions from 25 templates carry little more information than 25.
The sampling unit is the cluster: the standard error is a delete-one-cluster jackknife, and Student's t has at most one
degree of freedom fewer than there are clusters. It has fewer still if a few clusters contain most items. If items also
share names, which recur across templates, the variance has a part for names as well. If all or almost all clusters
agree, the variance cannot be estimated and `agreement_bounds` takes over. If a score with limits rests on few
clusters, the p-value is at least that of the exact sign-flip test: four clusters with nearly equal scores are no more
evidence than four with equal ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.agreement_bounds import AgreementBounds, agreement_bounds
from biassay.stats.skewness import invert_hall, transform_hall

Floats = NDArray[np.float64]
ScoreFunction = Callable[[Floats], Floats]
Key = TypeVar("Key", bound=Hashable)
LEAST_DF = 2.0
"""An interval needs more degrees of freedom than three clusters of equal weight have."""
LEAST_NAME_DF = 4.0
"""An interval needs more degrees of freedom for names than three names in each of two groups have."""
_ROUNDING = 1e-6  # tolerance for degrees of freedom
_GRID = np.linspace(0.0, 1.0, 21)[:, None]  # shares of a cluster's variance that do not depend on its size
_PLAUSIBLE = 0.5  # log-likelihood below the maximum, up to which such a share is compatible with the data
_FLAT = 1e-12  # a smaller influence of a cluster is rounding
_FEW_DEVIATING = 5  # fewer deviating clusters do not show the spread
_NEGLIGIBLE = 1e-20
_FEW_CLUSTERS = 12.0  # effective number up to which signs are flipped
_FLIPPED = 11  # clusters whose signs are flipped one by one
_STEP = 1e-4  # relative step of a cell's totals, for derivatives


@dataclass(frozen=True)
class ClusterEstimate:
    """A score with its standard error, interval and p-value.

    Attributes
    ----------
    value : float
        Score of all items; NaN if it is undefined because no item counts.
    standard_error : float
    interval : (float, float)
        NaN with too few degrees of freedom, or if all clusters agree on a score without limits.
    p_value : float
        Two-sided, for the hypothesis that the score is `null`; NaN if there is no interval, unless all clusters agree.
    null, confidence : float
    n_clusters : int
        Number of clusters with an item that counts.
    largest_share : float
        Share of the most influential cluster in the variance. If it is near 1, the score rests on this cluster.
    n_names : int
        Number of names that are crossed with the clusters; 0 without names.
    df : float
        Degrees of freedom. Up to `LEAST_DF`, there is no interval unless almost all clusters agree. NaN if the variance
        is 0 or undefined.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    p_value: float
    null: float
    confidence: float
    n_clusters: int
    largest_share: float
    n_names: int = 0
    df: float = math.nan


def cluster_totals(values: ArrayLike, clusters: ArrayLike) -> Floats:
    """Sum the rows of `values` (items, m) by cluster. Return totals (clusters, m) of the sorted clusters."""
    values, clusters = np.asarray(values, dtype=np.float64), np.asarray(clusters)
    names, indices = np.unique(clusters, return_inverse=True)
    return _sum_by_index(values, indices, len(names))


def _sum_by_index(values: Floats, indices: ArrayLike, n: int) -> Floats:
    totals = np.zeros((n, values.shape[1]))
    np.add.at(totals, np.asarray(indices, dtype=np.int64), values)
    return totals


def cluster_estimate(
    totals: ArrayLike,
    score: ScoreFunction,
    *,
    null: float = 0.0,
    confidence: float = 0.95,
    within: tuple[float, float] = (-math.inf, math.inf),
    weight: int | Sequence[int] | None = None,
    heavy_tails: bool = False,
) -> ClusterEstimate:
    """Estimate a score of totals over clusters, with an interval for other clusters of the same kind.

    Parameters
    ----------
    totals : (clusters, m) array
        Contribution of each cluster to each of m totals: counts or sums. Clusters with zeros only are left out.
    score : callable
        Function from an array (..., m) of totals to an array (...) of scores; NaN where a score is undefined.
    null : float, default 0
        Score under the null hypothesis of the p-value.
    confidence : float, default 0.95
    within : (float, float), optional
        Smallest and largest possible score. The interval is clipped to them.
    weight : int or sequence of int, optional
        Column of `totals` that is the denominator of the score, so that the score is the mean of the clusters' scores
        with these weights. Several columns: a sum of such scores, one per column. Default: equal weights.
    heavy_tails : bool, default False
        If True, the degrees of freedom are at most 2 G / (kurtosis - 1), with the kurtosis of the influence, because a
        few clusters may have most of it whatever their size.

    Returns
    -------
    ClusterEstimate

    Notes
    -----
    The influence of cluster g is (G - 1)(score - score without g). Their mean square gives the standard error, and
    Student's t one interval. A second interval is corrected for skewness (Hall 1992): one template with a strong bias
    shifts both a score and its standard error. The interval is the union of both, the p-value the larger one, so that
    the interval contains ``null`` exactly where p is above 1 - ``confidence``.

    Clusters of equal weight have G - 1 degrees of freedom. Otherwise they are those of Bell and McCaffrey (2002) for
    this standard error: 2 E(V)^2 / Var(V) if the score of cluster g has the variance rho + (1 - rho) mean(n) / n_g, up
    to a factor. The degrees of freedom are the smallest over all rho that are compatible with the data, which are
    those within 0.5 of the maximum of the log-likelihood. If there are no more than 2 at rho = 1, there is no
    interval.

    Where more than half of the clusters have one and the same score and fewer than five differ from it, the spread
    between clusters is not known. If `within` is finite, `agreement_bounds` then replaces the correction for skewness.
    If all clusters agree, it gives the interval and the p-value alone. If they agree on a score without limits, the
    p-value is that of the exact sign test, and there is no interval.

    In simulations with 25 templates drawn from released answers to BBQ, 95% intervals cover 95% to 97%, and almost
    100% if all but three templates have no bias and the model is certain of every answer. If each item is treated as a
    cluster of its own, they cover 56% to 79% in ambiguous contexts and nearly 100% in disambiguated ones, which are
    balanced within each template.

    References
    ----------
    P. Hall (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54.
    R. M. Bell and D. F. McCaffrey (2002). Bias reduction in standard errors for linear regression with multi-stage
    samples. Survey Methodology 28.
    G. W. Imbens and M. Kolesár (2016). Robust standard errors in small samples: some practical advice. Review of
    Economics and Statistics 98.

    Examples
    --------
    >>> estimate = cluster_estimate([[3, 4], [2, 4], [4, 4], [1, 4]], lambda t: t[..., 0] / t[..., 1], null=0.5)
    >>> estimate.value, estimate.n_clusters
    (0.625, 4)
    """
    every = np.asarray(totals, dtype=np.float64)
    totals = np.asarray(every[(every != 0.0).any(axis=1)])
    n = len(totals)
    value = float(score(totals.sum(axis=0)[None])[0]) if n else math.nan
    without = ClusterEstimate(value, math.nan, (math.nan, math.nan), math.nan, null, confidence, n, math.nan)
    if n < 2 or math.isnan(value):
        return without
    bounds = _bound_agreement(totals, score, null, confidence, within, weight)
    influence = _compute_influence(totals, value, score)
    if np.isnan(influence).any():  # a single cluster defines the score
        return _apply_bounds(without, bounds)
    variance = float((influence**2).sum()) / (n * (n - 1))
    if math.sqrt(variance) <= _FLAT * max(1.0, abs(value)):
        return _apply_bounds(replace(without, standard_error=0.0), bounds)
    skew = _skewness(influence) / math.sqrt(n)
    shares = _compute_shares(totals, weight)
    df = _degrees_of_freedom(shares, influence)
    if heavy_tails:
        kurtosis = float((influence**4).mean() / (influence**2).mean() ** 2)
        df = min(df, max(2.0 * n / max(kurtosis - 1.0, 1.0), 1.0))
    without = replace(without, standard_error=math.sqrt(variance), df=df)
    return _add_interval(without, skew, influence, shares, within, bounds)


def crossed_cluster_estimate(
    values: ArrayLike,
    clusters: Sequence[Hashable],
    names: Sequence[Iterable[str]],
    score: ScoreFunction,
    *,
    null: float = 0.0,
    confidence: float = 0.95,
    within: tuple[float, float] = (-math.inf, math.inf),
    weight: int | Sequence[int] | None = None,
) -> ClusterEstimate:
    """Estimate a score of items that share clusters and names, with an interval for other clusters and other names.

    Parameters
    ----------
    values : (items, m) array
        Contribution of each item to each of m totals. Items with zeros only are left out.
    clusters : sequence
        Cluster of each item.
    names : sequence of iterables of str
        Names in each item, such as those of the two people of a question.
    score, null, confidence, within, weight
        See `cluster_estimate`.

    Returns
    -------
    ClusterEstimate

    Notes
    -----
    Let u be the influence of an item on the score. Summed over the items of a cluster, a name, or a cluster and a name,
    its squares give the parts of the variance (Cameron, Gelbach and Miller 2011)::

        V = V_clusters + V_names - V_both,    at least V_clusters and at least V_names

    V_clusters is the jackknife of `cluster_estimate`. V_names and V_both are multiplied by the factor that makes
    V_names unbiased if names have independent effects of equal variance. Under this model, V_names has the degrees of
    freedom of Bell and McCaffrey (2002): with a and b names in two groups and one name of each per item, about
    (1/a + 1/b)^2 / (1/(a^2 (a - 1)) + 1/(b^2 (b - 1))). The degrees of freedom are Satterthwaite's over the three
    parts, at most those of the clusters and at most those of the names. If the names have no more than 4, there is no
    interval.

    References
    ----------
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011). Robust inference with multiway clustering. Journal of
    Business and Economic Statistics 29.
    R. M. Bell and D. F. McCaffrey (2002). Bias reduction in standard errors for linear regression with multi-stage
    samples. Survey Methodology 28.
    """
    items = np.asarray(values, dtype=np.float64)
    kept = np.flatnonzero((items != 0.0).any(axis=1)).tolist()
    # A cell is a cluster with a set of names.
    keys = [(clusters[i], frozenset(names[i])) for i in kept]
    cells = _number(keys)
    item_cells = [cells[key] for key in keys]
    cell_totals = _sum_by_index(items[kept], item_cells, len(cells))
    cluster_indices = _number([cluster for cluster, _ in cells])
    cell_clusters = [cluster_indices[cluster] for cluster, _ in cells]
    totals = _sum_by_index(cell_totals, cell_clusters, len(cluster_indices))
    plain = cluster_estimate(totals, score, null=null, confidence=confidence, within=within, weight=weight)
    name_indices = _number(sorted({name for _, cell_names in cells for name in cell_names}))
    if math.isnan(plain.value) or not name_indices:
        return plain
    n, n_names = plain.n_clusters, len(name_indices)
    without = ClusterEstimate(
        plain.value, math.nan, (math.nan, math.nan), math.nan, null, confidence, n, math.nan, n_names
    )
    member = np.zeros((len(cells), n_names))
    for cell, (_, cell_names) in enumerate(cells):
        member[cell, [name_indices[name] for name in cell_names]] = 1.0
    counts = np.bincount(item_cells, minlength=len(cells)).astype(np.float64)
    shares = counts / counts.sum() if weight is None else _compute_shares(cell_totals, weight)
    factor, df_names, n_effective = _name_design(shares, member)
    if df_names <= LEAST_NAME_DF + _ROUNDING:
        return replace(without, standard_error=plain.standard_error, df=df_names)
    bounds = _bound_agreement(totals, score, null, confidence, within, weight, max_units=n_effective)
    if math.isnan(plain.standard_error):  # a single cluster defines the score
        return _apply_bounds(without, bounds)
    slopes = _compute_slopes(cell_totals, score)
    influence_by_name = slopes[:, None] * member
    within_clusters = _sum_by_index(influence_by_name, cell_clusters, len(cluster_indices))
    v_clusters = plain.standard_error**2
    v_names = factor * float((influence_by_name.sum(axis=0) ** 2).sum())
    v_both = factor * float((within_clusters**2).sum())
    variance = max(v_clusters + v_names - v_both, v_clusters, v_names)
    if not variance > _NEGLIGIBLE * max(1.0, abs(plain.value)) ** 2:  # neither templates nor names differ
        return _apply_bounds(replace(without, standard_error=0.0), bounds)
    influence = _compute_influence(totals, plain.value, score)
    cluster_shares = _compute_shares(totals, weight)
    df_clusters = _degrees_of_freedom(cluster_shares, influence)
    df = df_clusters
    if v_names > v_both:
        parts = v_clusters**2 / df_clusters, v_names**2 / df_names, v_both**2 / (df_clusters * df_names)
        df = variance**2 / sum(parts)
    cubes = float((influence**3).sum()) / n**3 + float(((slopes @ member) ** 3).sum())
    without = replace(without, standard_error=math.sqrt(variance), df=min(df, df_clusters, df_names))
    return _add_interval(without, cubes / variance**1.5, influence, cluster_shares, within, bounds)


def _number(keys: Iterable[Key]) -> dict[Key, int]:
    """Assign a number to every distinct key, in order of appearance."""
    return {key: index for index, key in enumerate(dict.fromkeys(keys))}


def _name_design(shares: Floats, member: Floats) -> tuple[float, float, float]:
    """Return the factor of V_names, its degrees of freedom, and the effective number of names per position.

    Names have independent effects of equal variance, and cells the given shares of the score.
    """
    weights = shares @ member
    spread = member.T @ (shares[:, None] * (member - weights))
    products = spread.T @ spread
    expected = float(np.trace(products))
    if not expected > 0.0:
        return 1.0, 0.0, 1.0
    df = expected**2 / float((products**2).sum())
    return float((weights**2).sum()) / expected, df, float(weights.sum() / (weights**2).sum())


def _compute_slopes(cells: Floats, score: ScoreFunction) -> Floats:
    """Return the derivative of the score in the direction of every cell's totals."""
    total = cells.sum(axis=0)
    above, below = (np.asarray(score(total + sign * _STEP * cells), dtype=np.float64) for sign in (1.0, -1.0))
    return np.asarray((above - below) / (2.0 * _STEP))


def _compute_shares(totals: Floats, weight: int | Sequence[int] | None) -> Floats:
    """Return the share of every row in the score; with several columns, the mean of their shares."""
    if weight is None:
        return np.full(len(totals), 1.0 / len(totals))
    columns = totals[:, [weight] if isinstance(weight, int) else list(weight)]
    sums = columns.sum(axis=0)
    positive = sums > 0.0
    if not positive.any():
        return _compute_shares(totals, None)
    return np.asarray((columns[:, positive] / sums[positive]).mean(axis=1))


def _degrees_of_freedom(shares: Floats, influence: Floats) -> float:
    """Return the degrees of freedom: G - 1 for clusters of equal weight, fewer if a few clusters have most of it."""
    counted = shares > 0.0
    w, n = shares[counted], int(counted.sum())
    if n < 2 or w.max() >= 1.0:
        return 1.0
    if np.allclose(w, w[0], rtol=1e-9):
        return n - 1.0
    deviations = influence[counted] * (1.0 - w) / w  # the cluster's score minus that of all, up to a factor
    variances = _GRID + (1.0 - _GRID) / (n * w)
    likelihood = -0.5 * (n * np.log((deviations**2 / variances).mean(axis=1)) + np.log(variances).sum(axis=1))
    # B = P diag(variances) P' with P = I - 1w', so that B_gh = b_g + b_h, plus the variance where g = h
    squares = (w / (1.0 - w)) ** 2
    b = 0.5 * (w**2 * variances).sum(axis=1, keepdims=True) - w * variances
    expected = (squares * (2.0 * b + variances)).sum(axis=1)
    cross = 2.0 * squares.sum() * (squares * b**2).sum(axis=1) + 2.0 * (squares * b).sum(axis=1) ** 2
    diagonal = (squares**2 * ((2.0 * b + variances) ** 2 - 4.0 * b**2)).sum(axis=1)
    df = expected**2 / (cross + diagonal)
    if df[-1] <= LEAST_DF:  # whether there is an interval must not depend on the scores
        return float(df[-1])
    return float(df[likelihood >= likelihood.max() - _PLAUSIBLE].min())


def _compute_influence(totals: Floats, value: float, score: ScoreFunction) -> Floats:
    without = np.asarray(score(totals.sum(axis=0) - totals), dtype=np.float64)
    return np.asarray((len(totals) - 1) * (value - without))


def _bound_agreement(
    totals: Floats,
    score: ScoreFunction,
    null: float,
    confidence: float,
    within: tuple[float, float],
    weight: int | Sequence[int] | None,
    max_units: float = math.inf,
) -> AgreementBounds | None:
    """Return bounds that do not use the spread between clusters; None if the score has no limits."""
    if not np.isfinite(within).all():
        return None
    scores = np.asarray(score(totals), dtype=np.float64)
    weights = _compute_shares(totals, weight)
    counted = ~np.isnan(scores) & (weights > 0.0)
    if not counted.any():
        return None
    return agreement_bounds(
        scores[counted], within=within, null=null, weights=weights[counted], confidence=confidence, max_units=max_units
    )


def _if_unanimous(bounds: AgreementBounds | None) -> AgreementBounds | None:
    """Return bounds if almost all clusters agree; otherwise None."""
    agree = bounds is not None and bounds.n_deviating < min(_FEW_DEVIATING, bounds.n_scores / 2.0)
    return bounds if agree else None


def _apply_bounds(without: ClusterEstimate, bounds: AgreementBounds | None) -> ClusterEstimate:
    """Return the estimate that rests on the agreement of clusters alone."""
    bounds = _if_unanimous(bounds)
    if bounds is not None:
        return replace(without, interval=bounds.interval, p_value=bounds.p_value)
    if without.standard_error != 0.0:
        return without
    # All clusters have the same score, so use an exact sign test.
    return replace(without, p_value=1.0 if without.value == without.null else 2.0 ** (1 - without.n_clusters))


def _add_interval(
    without: ClusterEstimate,
    skew: float,
    influence: Floats,
    shares: Floats,
    within: tuple[float, float],
    bounds: AgreementBounds | None,
) -> ClusterEstimate:
    """Add an interval and a p-value to an estimate."""
    squares = influence**2
    total = float(squares.sum())
    largest_share = float(squares.max()) / total if total > 0.0 else 1.0 / len(squares)
    without = replace(without, largest_share=largest_share)
    value, error, null, df = without.value, without.standard_error, without.null, without.df
    confidence = without.confidence
    if df <= LEAST_DF + _ROUNDING:
        return _apply_bounds(without, bounds)
    all_bounds, bounds = bounds, _if_unanimous(bounds)
    skew = skew if bounds is None else 0.0
    reach = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0))
    low = value - error * max(reach, float(invert_hall(reach, skew)))
    high = value - error * min(-reach, float(invert_hall(-reach, skew)))
    t = (value - null) / error
    p = max(_two_sided_p(t, df), _two_sided_p(transform_hall(t, skew), df))
    if np.isfinite(within).all() and 1.0 / float((shares**2).sum()) <= _FEW_CLUSTERS:
        below, above = _flip_signs(influence, shares)
        distances = below if value > null else above
        p = max(p, float((distances >= abs(value - null) * (1.0 - _ROUNDING)).mean()))
        reaches = _largest_included(below, confidence), _largest_included(above, confidence)
        if math.isfinite(reaches[0]):
            low, high = min(low, value - reaches[0]), max(high, value + reaches[1])
        else:
            bounds = all_bounds
    if bounds is not None:
        low, high, p = min(low, bounds.interval[0]), max(high, bounds.interval[1]), max(p, bounds.p_value)
    return replace(without, interval=(max(low, within[0]), min(high, within[1])), p_value=p)


def _flip_signs(influence: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Flip the signs of clusters in all ways.

    Parameters
    ----------
    influence, shares : (clusters,) float64
        Influence and weight of every cluster.

    Returns
    -------
    (float64 array, float64 array)
        For each flip, the largest distance of a null below or above the score at which the flipped score is as far from
        the null as the score is. Clusters deviate symmetrically from the null if it is true.

    Notes
    -----
    The heaviest clusters are flipped one by one, the others together, which keeps the level of the test. Flipping all
    signs changes no distance, so the first sign is fixed.
    """
    # the weight of a cluster times the difference of its score from that of all
    deviations = influence * (1.0 - shares) / (len(influence) - 1)
    parts = np.stack([deviations - shares * deviations.sum(), shares])
    parts = parts[:, np.argsort(-shares, kind="stable")[: np.count_nonzero(shares)]]
    if parts.shape[1] > _FLIPPED:
        parts = np.column_stack([parts[:, :_FLIPPED], parts[:, _FLIPPED:].sum(axis=1)])
    flipped = parts[:, :1]
    for part in parts[:, 1:].T[:, :, None]:
        flipped = np.hstack([flipped + part, flipped - part])
    a, b = flipped[:, 1:]  # the first flip is the data themselves
    same, opposite = a / (1.0 - b), a / (1.0 + b)
    return tuple(np.append(np.inf, np.maximum(*ends)) for ends in ((same, -opposite), (opposite, -same)))  # type: ignore[return-value]


def _largest_included(distances: Floats, confidence: float) -> float:
    """Return the largest distance whose p-value is above 1 - confidence."""
    return float(-np.sort(-distances)[int((1.0 - confidence) * len(distances) * (1.0 + _ROUNDING))])


def share_estimate(successes: int, n: int, *, confidence: float = 0.95) -> ClusterEstimate:
    """Estimate a share of independent items, with Wilson's interval and the exact p-value of a share of one half.

    Parameters
    ----------
    successes, n : int
    confidence : float, default 0.95

    Returns
    -------
    ClusterEstimate
    """
    if not n:
        return ClusterEstimate(math.nan, math.nan, (math.nan, math.nan), math.nan, 0.5, confidence, 0, math.nan)
    test = scipy.stats.binomtest(successes, n)
    interval = test.proportion_ci(confidence, method="wilson")
    share = successes / n
    return ClusterEstimate(
        value=share,
        standard_error=math.sqrt(share * (1.0 - share) / n),
        interval=(float(interval.low), float(interval.high)),
        p_value=float(test.pvalue),
        null=0.5,
        confidence=confidence,
        n_clusters=n,
        largest_share=1.0 / n,
    )


def _skewness(influence: Floats) -> float:
    centred = influence - influence.mean()
    spread = float(centred.std(ddof=1))
    return float((centred**3).mean()) / spread**3 if spread > 0.0 else 0.0


def _two_sided_p(t: float, df: float) -> float:
    return float(2.0 * scipy.special.stdtr(df, -abs(t)))
