"""Agreement between model scores and human ratings, with intervals and noise ceilings.

A cell is a group on a pair of traits; missing cells are NaN. Agreement is Kendall's tau-b, over all cells or within a
group, and the precision of the pairs with the highest and lowest model scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.crossed import CONFIDENCE
from biassay.stats.kendall import (
    block_counts,
    cluster_masks,
    jackknife_interval,
    kendall_by_row,
    overall_tau,
    percentile_interval,
    within_tau,
)
from biassay.stats.permutation import Rng

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Alignment:
    """Kendall's tau-b between model scores and human ratings; NaN with fewer than two distinct values.

    Attributes
    ----------
    tau, p_value, n
        Over all cells. p-values are two-sided; n is the number of cells present on both sides. The p-value treats cells
        as independent, although cells of one group are correlated.
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
    """Precision at k of every group.

    Attributes
    ----------
    top, bottom : (groups,) float64
        Shares of the k pairs with the highest (lowest) scores that people rate above (below) the threshold.
    mean : (groups,) float64
        Mean of `top` and `bottom`.
    overall : float
        Mean of `mean` over groups where it is defined.
    k : int
    threshold : float
    """

    top: Floats
    bottom: Floats
    mean: Floats
    overall: float
    k: int
    threshold: float


def kendall_alignment(model: ArrayLike, human: ArrayLike) -> Alignment:
    """Compute Kendall's tau-b between model scores and human ratings, overall and within each group.

    Parameters
    ----------
    model, human : (groups, pairs) array-like
        Scores and mean ratings of groups on pairs of traits; NaN is missing.

    Returns
    -------
    Alignment

    Notes
    -----
    Only cells present on both sides are compared. The p-values treat cells as independent.

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
    x, y = _validate_pair(model, human)
    tau, p_value, n = _kendall_tau(x.ravel(), y.ravel())
    rows = [_kendall_tau(*row) for row in zip(x, y, strict=True)]
    taus, ps, ns = (np.array([row[i] for row in rows]) for i in range(3))
    return Alignment(tau, p_value, n, taus, ps, ns.astype(np.int64))


def permute_groups(
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
        Domain of every group. Groups of one domain may be similar, and are then not exchangeable with those of another.
        If given, domains are permuted, and groups within them: domains of equal size as a whole, others by their mean
        ratings. If None, or if there is only one domain, groups are permuted.

    Returns
    -------
    mean : float
        Mean tau of permuted ratings. It is the agreement that all groups have in common: if most groups are rated warm,
        a model agrees with people even if it confuses the groups.
    p_value : float
        Share of permutations that reach the observed tau, one-sided and at least 1 / (n + 1). It tests whether the
        model distinguishes the groups.
    """
    x, y = _validate_pair(model, human)
    generator, observed = np.random.default_rng(rng), _kendall_tau(x.ravel(), y.ravel())[0]
    masks = None if domains is None else np.asarray(domains) == np.unique(np.asarray(domains))[:, None]
    draw = _group_shuffler(y) if masks is None or len(masks) == 1 else _domain_shuffler(y, masks)
    taus = np.array([_kendall_tau(x.ravel(), draw(generator).ravel())[0] for _ in range(n)])
    if np.isnan(observed) or np.isnan(taus).all():
        return np.nan, np.nan
    return float(np.nanmean(taus)), float((1 + np.count_nonzero(taus >= observed - 1e-12)) / (n + 1))


def _group_shuffler(ratings: Floats) -> Callable[[np.random.Generator], Floats]:
    return lambda rng: ratings[rng.permutation(len(ratings))]


def _domain_shuffler(ratings: Floats, masks: NDArray[np.bool_]) -> Callable[[np.random.Generator], Floats]:
    """Return a function that permutes ratings (groups, pairs) of domains with members `masks` (domains, groups).

    Domains of equal size exchange all their ratings, which is exact if domains and groups within them are exchangeable.
    Domains of different size exchange only their mean ratings.
    """
    members, sizes = [np.flatnonzero(mask) for mask in masks], masks.sum(axis=1)
    means = np.stack([nan_mean(ratings[rows], axis=0) for rows in members])
    deviations = ratings - means[masks.argmax(axis=0)]

    def draw(rng: np.random.Generator) -> Floats:
        order = rng.permutation(len(members))
        sources = np.where(sizes[order] == sizes, order, -1)
        for size in np.unique(sizes):
            same_size = sizes == size
            unused = np.setdiff1d(np.flatnonzero(same_size), sources[same_size])
            sources[same_size & (sources < 0)] = rng.permutation(unused)
        permuted = np.empty_like(ratings)
        for rows, mean, source in zip(members, means[order], sources, strict=True):
            permuted[rows] = mean + deviations[rng.permutation(members[source])]
        return permuted

    return draw


def precision_at(model: ArrayLike, human: ArrayLike, k: int = 3, threshold: float = 50.0) -> Precision:
    """Compute how often people agree with the k highest and the k lowest scores of a model.

    Parameters
    ----------
    model, human : (groups, pairs) array-like
        Scores and mean ratings of groups on pairs of traits; NaN is missing.
    k : int
        Number of highest, and of lowest, scores of each group that count.
    threshold : float
        Middle of the human scale.

    Returns
    -------
    Precision
        Shares of the k highest pairs rated above `threshold` and of the k lowest rated below.

    Notes
    -----
    A mean rating of exactly `threshold` is a miss on both sides. Among pairs with equal scores, earlier ones come
    first. Only cells present on both sides are ranked. A group with fewer than `k` of them is NaN; with fewer than 2k,
    some pairs count on both sides.

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
    x, y = _validate_pair(model, human)
    if not 1 <= k <= x.shape[1]:
        raise UsageError(f"k must lie between 1 and the number of pairs, {x.shape[1]}, got {k}")
    top, bottom = _compute_precision(x, y, k, threshold)
    mean = (top + bottom) / 2.0
    return Precision(top, bottom, mean, float(nan_mean(mean, axis=0)), k, threshold)


def human_means(ratings: ArrayLike) -> Floats:
    """Average `ratings` (annotators, groups, pairs) over annotators; NaN where none gave a rating."""
    return nan_mean(np.asarray(ratings, dtype=np.float64), axis=0)


def _kendall_tau(x: Floats, y: Floats) -> tuple[float, float, int]:
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return np.nan, np.nan, len(x)
    result = scipy.stats.kendalltau(x, y)
    return float(result.statistic), float(result.pvalue), len(x)


def _compute_precision(x: Floats, y: Floats, k: int, threshold: float) -> tuple[Floats, Floats]:
    """Return the precision (..., groups) of the k highest and k lowest scores `x` (groups, pairs).

    The ratings `y` (..., groups, pairs) decide which pairs are right.
    """
    missing = np.isnan(x) | np.isnan(y)
    too_few = (~missing).sum(axis=-1) < k

    def precision(score: Floats, right: NDArray[np.bool_]) -> Floats:
        order = np.argsort(np.where(missing, np.inf, score), axis=-1, kind="stable")[..., :k]
        return np.where(too_few, np.nan, np.take_along_axis(right, order, axis=-1).mean(axis=-1))

    return precision(-x, y > threshold), precision(x, y < threshold)


def nan_mean(values: Floats, axis: int) -> Floats:
    """Average values that are not NaN; NaN, without a warning, where there are none."""
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(present, values, 0.0).sum(axis=axis) / present.sum(axis=axis))


def _validate_pair(model: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(model, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape or 0 in x.shape:
        raise UsageError(f"model and human must have the same shape (groups, pairs), got {x.shape} and {y.shape}")
    return x, y


@dataclass(frozen=True)
class AgreementIntervals:
    """Confidence intervals of the overall tau and precision."""

    tau: tuple[float, float]
    precision: tuple[float, float]


@dataclass(frozen=True, eq=False)
class AlignmentIntervals:
    """Intervals that generalize to other annotators, to other groups, and to both.

    `group_tau` (groups, 2) are intervals of the tau within each group, for other annotators.
    """

    annotators: AgreementIntervals
    groups: AgreementIntervals
    both: AgreementIntervals
    group_tau: Floats


@dataclass(frozen=True, eq=False)
class NoiseCeiling:
    """Mean tau of random splits into halves, overall and by group, and the interval of the middle 95% of them."""

    tau: float
    interval: tuple[float, float]
    group_tau: Floats


def alignment_intervals(
    model: ArrayLike,
    ratings: ArrayLike,
    *,
    n: int,
    rng: Rng,
    domains: ArrayLike | None = None,
    confidence: float = 0.95,
    k: int = 3,
    threshold: float = 50.0,
) -> AlignmentIntervals:
    """Compute intervals of tau and precision for other annotators, other groups, and both.

    Parameters
    ----------
    model : (groups, pairs) array-like
        Scores; NaN is missing.
    ratings : (annotators, groups, pairs) array-like
        Ratings of people; NaN is missing.
    n : int
        Number of bootstrap samples of annotators.
    rng : int or numpy Generator
    domains : (groups,) array-like, optional
        Domain of every group. Groups of one domain may be similar, so domains are the sampling units. If None, or if
        there is only one domain, groups are.
    confidence : float, default 0.95
    k, threshold
        See `precision_at`.

    Returns
    -------
    AlignmentIntervals

    Notes
    -----
    ``annotators``: percentiles of bootstrap samples. Annotators of each group are drawn with replacement from those
    who rated it; groups are fixed. The mean rating of a sample is noisier than that of the data, which lowers tau. The
    percentiles are therefore shifted so that the mean of the samples is the observed value. They need not contain the
    higher tau of infinitely many annotators. If all samples agree, the interval is the bound for the smallest number of
    annotators per group.

    ``groups``: Student's t intervals that leave out one domain at a time (`jackknife_interval`). ``both``: the half
    widths of the two others, added in quadrature, which counts annotators twice. docs/validity.md reports the coverage.
    """
    people, generator = np.asarray(ratings, dtype=np.float64), np.random.default_rng(rng)
    x, y = _validate_pair(model, nan_mean(people, axis=0))
    drawn = _resample_annotators(people, n, generator)
    once = np.ones((1, len(x)))
    counts, blocks = block_counts(x, y), np.stack([block_counts(x, sample) for sample in drawn])
    observed, rates = precision_at(x, y, k, threshold).mean, np.mean(_compute_precision(x, drawn, k, threshold), axis=0)
    tau, precision = float(overall_tau(counts, once)[0]), float(_weighted_mean(observed, once)[0])
    rated = np.asarray((~np.isnan(x + y)).any(axis=1))
    masks = cluster_masks(None if domains is None else np.asarray(domains)[rated], int(rated.sum()))
    kept, sizes = np.ones((len(masks), len(x))), masks.sum(axis=1)
    kept[:, rated] = ~masks
    raters = [len(_find_raters(people[:, g])) for g in range(len(x))]
    fewest = min((count for count, is_rated in zip(raters, rated, strict=True) if is_rated), default=0)
    annotators = AgreementIntervals(
        percentile_interval(overall_tau(blocks, once), confidence, tau, (-1.0, 1.0), fewest),
        percentile_interval(_weighted_mean(rates, once), confidence, precision, (0.0, 1.0), fewest),
    )
    groups = AgreementIntervals(
        jackknife_interval(tau, overall_tau(counts, kept), confidence, (-1.0, 1.0), sizes, per_comparison=2),
        jackknife_interval(precision, _weighted_mean(observed, kept), confidence, (0.0, 1.0), sizes),
    )
    both = AgreementIntervals(
        _combine_intervals(tau, groups.tau, annotators.tau, (-1.0, 1.0)),
        _combine_intervals(precision, groups.precision, annotators.precision, (0.0, 1.0)),
    )
    by_group = [
        percentile_interval(taus, confidence, float(group_tau), (-1.0, 1.0), n_raters)
        for taus, group_tau, n_raters in zip(within_tau(blocks).T, within_tau(counts), raters, strict=True)
    ]
    return AlignmentIntervals(annotators, groups, both, np.array(by_group))


def _combine_intervals(
    value: float, first: tuple[float, float], second: tuple[float, float], limits: tuple[float, float]
) -> tuple[float, float]:
    """Add the half widths of two intervals around one value in quadrature; NaN if one of them is NaN."""
    half = np.hypot(np.subtract(first, value), np.subtract(second, value))
    low, high = np.clip([value - half[0], value + half[1]], *limits)
    return float(low), float(high)


def noise_ceiling(ratings: ArrayLike, *, n: int, rng: Rng) -> NoiseCeiling:
    """Measure how well people agree: tau between the means of two random halves of each group's annotators.

    Parameters
    ----------
    ratings : (annotators, groups, pairs) array-like
        NaN is missing.
    n : int
        Number of random splits.
    rng : int or numpy Generator

    Returns
    -------
    NoiseCeiling
        A group with fewer than two annotators is NaN and does not count in the overall tau.

    Notes
    -----
    The value is not an upper bound. Both halves are noisier than the mean of all annotators, with which a model is
    compared, so a model may exceed it. There is no formula for the full number of annotators: that of Spearman and
    Brown is for correlations of sums, not for ranks. The interval describes the splits of these annotators.
    """
    people, generator = np.asarray(ratings, dtype=np.float64), np.random.default_rng(rng)
    raters = [len(_find_raters(people[:, g])) for g in range(people.shape[1])]
    if max(raters, default=0) < 2:
        raise UsageError(f"no group has two or more annotators (at most {max(raters, default=0)})")
    first, second = _split_halves(people, n, generator)
    blocks = np.stack([block_counts(a, b) for a, b in zip(first, second, strict=True)])
    overall, within = overall_tau(blocks, np.ones((1, len(raters)))), within_tau(blocks)
    interval = percentile_interval(overall, CONFIDENCE)
    return NoiseCeiling(float(nan_mean(overall, axis=0)), interval, nan_mean(within, axis=0))


def _weighted_mean(rates: Floats, weights: NDArray[np.number]) -> Floats:
    """Return means (n,) of `rates` (n, groups) or (groups,) over groups with `weights` (n or 1, groups)."""
    present = ~np.isnan(rates)
    total, number = (np.where(present, rates, 0.0) * weights).sum(axis=-1), (present * weights).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / number)


def _resample_annotators(people: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return mean ratings (n, groups, pairs) of annotators drawn with replacement, separately for each group."""
    means = np.full((n, *people.shape[1:]), np.nan)
    for g in range(people.shape[1]):
        rated = people[_find_raters(people[:, g]), g]
        if len(rated):
            counts = rng.multinomial(len(rated), np.full(len(rated), 1.0 / len(rated)), size=n)
            means[:, g] = _weighted_column_means(counts, rated)
    return means


def _split_halves(people: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return mean ratings (n, groups, pairs) of two halves of each group's annotators."""
    first, second = (np.full((n, *people.shape[1:]), np.nan) for _ in range(2))
    for g in range(people.shape[1]):
        rated = people[_find_raters(people[:, g]), g]
        if len(rated) >= 2:
            chosen = rng.random((n, len(rated))).argsort(axis=1) < len(rated) // 2
            first[:, g], second[:, g] = _weighted_column_means(chosen, rated), _weighted_column_means(~chosen, rated)
    return first, second


def _find_raters(of_group: Floats) -> NDArray[np.intp]:
    """Return the annotators who rated a group at least once."""
    return np.flatnonzero(~np.isnan(of_group).all(axis=1))


def _weighted_column_means(counts: NDArray[np.integer | np.bool_], values: Floats) -> Floats:
    """Return means (n, pairs) of `values` (annotators, pairs) in which annotators count `counts` (n, annotators)."""
    weights, present = counts.astype(np.float64), ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray((weights @ np.where(present, values, 0.0)) / (weights @ present.astype(np.float64)))


@dataclass(frozen=True, eq=False)
class TemplateChoice:
    """Names and indices of the chosen templates, their tau, and the names of templates with missing scores."""

    names: tuple[str, ...]
    indices: tuple[int, ...]
    tau: float
    skipped: tuple[str, ...]


def choose_templates(scores: ArrayLike, human: ArrayLike, names: Sequence[str]) -> TemplateChoice:
    """Choose the template, or the two templates, whose mean score agrees best with people by Kendall's tau.

    Parameters
    ----------
    scores : (templates, groups, pairs) array-like
        Scores of the pilot groups; NaN is missing.
    human : (groups, pairs) array-like
        Mean ratings of the pilot groups; NaN is missing.
    names : sequence of str
        Names of the templates.

    Returns
    -------
    TemplateChoice

    Notes
    -----
    Two templates are chosen only if they are strictly better than the best single one; earlier ones win ties. A cell
    without a rating, or without a score of any template, is left out. A template with a missing score in another cell
    is skipped, because its tau would be over other cells. Scores are averaged unscaled, so a template with larger
    scores counts more.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(human, dtype=np.float64)
    present = np.isfinite(x)
    cells = ~np.isnan(y) & present.any(axis=0)
    usable = [t for t in range(len(x)) if present[t][cells].all()]
    rows, target = x[:, cells], y[cells]
    single = kendall_by_row(rows[usable], target)
    if np.isnan(single).all():
        raise UsageError("every template lacks a score in some cell of the pilot, or has the same score in all cells")
    indices, tau = _find_best([(t,) for t in usable], single)
    pairs = list(combinations(usable, 2))
    if pairs:
        pair, pair_tau = _find_best(pairs, kendall_by_row(rows[np.array(pairs)].mean(axis=1), target))
        indices, tau = (pair, pair_tau) if pair_tau > tau else (indices, tau)
    skipped = tuple(name for t, name in enumerate(names) if t not in usable)
    return TemplateChoice(tuple(names[t] for t in indices), indices, tau, skipped)


def _find_best(indices: Sequence[tuple[int, ...]], taus: Floats) -> tuple[tuple[int, ...], float]:
    """Return the first of those with the largest tau, and this tau; minus infinity if all are NaN."""
    defined = np.where(np.isnan(taus), -np.inf, taus)
    best = int(np.argmax(defined))
    return indices[best], float(defined[best])
