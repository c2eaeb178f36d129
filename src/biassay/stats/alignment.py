"""How well a model's scores of groups on traits agree with human judgements.

A cell is a group on a pair of traits; a missing one is NaN. Agreement is Kendall's tau-b, over all cells or within a
group, and the precision of the pairs that the model puts first and last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.permutation import Rng

__all__ = [
    "Alignment",
    "Precision",
    "check_resampling",
    "checked_pair",
    "checked_ratings",
    "human_means",
    "kendall_alignment",
    "mean_of_given",
    "precision_at",
    "precision_of",
    "shuffled_groups",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Alignment:
    """Kendall's tau-b between model and people; NaN where there are fewer than two values or all are equal.

    Attributes
    ----------
    tau, p_value, n
        Over all cells; p-values are two-sided, and n is the number of cells that both sides have. The p-value takes
        the cells as independent, which those of one group are not quite.
    group_tau, group_p, group_n : (groups,)
        Within each group.
    """

    tau: float
    p_value: float
    n: int
    group_tau: Floats
    group_p: Floats
    group_n: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Precision:
    """Shares (groups,) of the ``k`` highest and lowest pairs that people put on the same side of ``threshold``.

    ``mean`` is that of ``top`` and ``bottom``, ``overall`` its mean over the groups that have one.
    """

    top: Floats
    bottom: Floats
    mean: Floats
    overall: float
    k: int
    threshold: float


def kendall_alignment(model: ArrayLike, human: ArrayLike) -> Alignment:
    """Kendall's tau-b between the scores of a model and human judgements, overall and within each group.

    Parameters
    ----------
    model, human : (groups, pairs) array-like
        Scores and mean ratings of groups on pairs of traits; NaN is missing.

    Returns
    -------
    Alignment

    Notes
    -----
    Only cells that both sides have are compared. The p-values take cells as independent.

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.
    .. [2] Kendall, M. G. (1945). The treatment of ties in ranking problems. Biometrika, 33(3), 239-251.

    Examples
    --------
    >>> import biassay
    >>> result = biassay.kendall_alignment([[0.1, 0.4, 0.2], [0.3, 0.0, 0.5]], [[10, 80, 30], [60, 20, 50]])
    >>> round(result.tau, 3), result.group_tau.round(3)
    (0.6, array([1.   , 0.333]))
    """
    x, y = checked_pair(model, human)
    tau, p_value, n = _kendall(x.ravel(), y.ravel())
    rows = [_kendall(*row) for row in zip(x, y, strict=True)]
    taus, ps, ns = (np.array([row[i] for row in rows]) for i in range(3))
    return Alignment(tau, p_value, n, taus, ps, ns.astype(np.int64))


def shuffled_groups(
    model: ArrayLike, human: ArrayLike, *, n: int, rng: Rng, domains: ArrayLike | None = None
) -> tuple[float, float]:
    """Compare the overall tau with that of ratings permuted among the groups.

    Parameters
    ----------
    model, human : (groups, pairs) array-like
        Scores and mean ratings; NaN is missing.
    n : int
        Number of random permutations.
    rng : int or numpy Generator
    domains : (groups,) array-like, optional
        The domain of every group. Groups of one domain may be alike and are then not exchangeable with those of
        another. If given, domains are permuted, and groups within them: domains of one size as a whole, others by their
        mean ratings. If None, or if there is one domain only, groups are permuted.

    Returns
    -------
    mean : float
        The mean tau of permuted ratings: what all groups have in common (most are rated warmer than cold, say) makes
        for agreement even if the model takes one group for another.
    p_value : float
        How often a permutation reaches the observed tau, one-sided and at least 1 / (n + 1): does the model know
        which group is which?
    """
    x, y = checked_pair(model, human)
    check_resampling(n, 0.5)
    generator, seen = np.random.default_rng(rng), _kendall(x.ravel(), y.ravel())[0]
    masks = None if domains is None else np.asarray(domains) == np.unique(np.asarray(domains))[:, None]
    draw = _group_shuffler(y) if masks is None or len(masks) == 1 else _domain_shuffler(y, masks)
    taus = np.array([_kendall(x.ravel(), draw(generator).ravel())[0] for _ in range(n)])
    if np.isnan(seen) or np.isnan(taus).all():
        return np.nan, np.nan
    return float(np.nanmean(taus)), float((1 + np.count_nonzero(taus >= seen - 1e-12)) / (n + 1))


def _group_shuffler(ratings: Floats) -> Callable[[np.random.Generator], Floats]:
    return lambda rng: ratings[rng.permutation(len(ratings))]


def _domain_shuffler(ratings: Floats, masks: NDArray[np.bool_]) -> Callable[[np.random.Generator], Floats]:
    """Return a function that permutes ratings (groups, pairs) of domains with members ``masks`` (domains, groups).

    Domains of one size exchange all their ratings, which is exact if domains and groups within them are exchangeable.
    Between domains of different size only the mean ratings can move.
    """
    members, sizes = [np.flatnonzero(mask) for mask in masks], masks.sum(axis=1)
    means = np.stack([mean_of_given(ratings[rows], axis=0) for rows in members])
    beyond = ratings - means[masks.argmax(axis=0)]

    def draw(rng: np.random.Generator) -> Floats:
        order = rng.permutation(len(members))
        sources = np.where(sizes[order] == sizes, order, -1)
        for size in np.unique(sizes):
            own = sizes == size
            left = np.setdiff1d(np.flatnonzero(own), sources[own])
            sources[own & (sources < 0)] = rng.permutation(left)
        permuted = np.empty_like(ratings)
        for rows, mean, source in zip(members, means[order], sources, strict=True):
            permuted[rows] = mean + beyond[rng.permutation(members[source])]
        return permuted

    return draw


def precision_at(model: ArrayLike, human: ArrayLike, k: int = 3, threshold: float = 50.0) -> Precision:
    """Precision at k: how often people agree with the side of a pair that the model chooses most clearly.

    Parameters
    ----------
    model, human : (groups, pairs) array-like
        Scores and mean ratings of groups on pairs of traits; NaN is missing.
    k : int
        How many of the highest, and of the lowest, scores of each group count.
    threshold : float
        The middle of the human scale.

    Returns
    -------
    Precision
        The shares of the k highest pairs rated above ``threshold`` and of the k lowest rated below.

    Notes
    -----
    A mean of exactly ``threshold`` counts as a miss on both sides. Of pairs with equal scores the earlier one is taken.
    Only cells that both sides have are ranked; a group with fewer than ``k`` is NaN, and with fewer than 2k some pairs
    count on both sides.

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.

    Examples
    --------
    >>> import biassay
    >>> result = biassay.precision_at([[0.9, 0.5, -0.2, -0.8]], [[80, 40, 30, 20]], k=2)
    >>> float(result.top[0]), float(result.bottom[0]), result.overall
    (0.5, 1.0, 0.75)
    """
    x, y = checked_pair(model, human)
    if not 1 <= k <= x.shape[1]:
        raise UsageError(f"k must lie between 1 and the number of pairs, {x.shape[1]}, got {k}")
    top, bottom = precision_of(x, y, k, threshold)
    mean = (top + bottom) / 2.0
    return Precision(top, bottom, mean, float(mean_of_given(mean, axis=0)), k, threshold)


def human_means(ratings: ArrayLike) -> Floats:
    """Means (groups, pairs) of ``ratings`` (annotators, groups, pairs) over those who gave one; NaN where none did."""
    return mean_of_given(checked_ratings(ratings), axis=0)


def _kendall(x: Floats, y: Floats) -> tuple[float, float, int]:
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return np.nan, np.nan, len(x)
    found = scipy.stats.kendalltau(x, y)
    return float(found.statistic), float(found.pvalue), len(x)


def precision_of(x: Floats, y: Floats, k: int, threshold: float) -> tuple[Floats, Floats]:
    """Top and bottom precision (..., groups) of ``x`` (groups, pairs) against ``y`` (..., groups, pairs)."""
    gone = np.isnan(x) | np.isnan(y)
    few = (~gone).sum(axis=-1) < k
    parts = []
    for score, right in ((-x, y > threshold), (x, y < threshold)):
        order = np.argsort(np.where(gone, np.inf, score), axis=-1, kind="stable")[..., :k]
        share = np.take_along_axis(right, order, axis=-1).mean(axis=-1)
        parts.append(np.where(few, np.nan, share))
    return parts[0], parts[1]


def mean_of_given(values: Floats, axis: int) -> Floats:
    """Mean of what is not NaN; NaN, and no warning, where there is nothing."""
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(present, values, 0.0).sum(axis=axis) / present.sum(axis=axis))


def checked_pair(model: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    """Both as arrays (groups, pairs)."""
    x, y = np.asarray(model, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape or 0 in x.shape:
        raise UsageError(f"model and human must be of one shape (groups, pairs), got {x.shape} and {y.shape}")
    return x, y


def checked_ratings(ratings: ArrayLike) -> Floats:
    """Ratings as an array (annotators, groups, pairs)."""
    people = np.asarray(ratings, dtype=np.float64)
    if people.ndim != 3:
        raise UsageError(f"ratings must have the shape (annotators, groups, pairs), got {people.shape}")
    return people


def check_resampling(n: int, confidence: float) -> None:
    """Refuse a number of samples, or a confidence, that no interval can have."""
    if n < 1:
        raise UsageError(f"at least one draw is needed, got {n}")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence must lie between 0 and 1, got {confidence}")
