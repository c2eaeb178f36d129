"""How well a model's scores of groups on traits agree with human judgements, and how well people agree with each other.

A cell is a group on a pair of traits; a missing one is NaN. Agreement is Kendall's tau-b, over all cells or within a
group, and the precision of the pairs that the model puts first and last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.kendall import block_counts, kendall_rows, overall_tau, percentile_interval, within_tau
from biassay.stats.permutation import Rng

__all__ = [
    "Alignment",
    "AlignmentIntervals",
    "Choice",
    "Intervals",
    "NoiseCeiling",
    "Precision",
    "bootstrap_alignment",
    "choose_templates",
    "human_means",
    "kendall_alignment",
    "noise_ceiling",
    "precision_at",
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


@dataclass(frozen=True)
class Intervals:
    """Intervals of the overall agreement."""

    tau: tuple[float, float]
    precision: tuple[float, float]


@dataclass(frozen=True, eq=False)
class AlignmentIntervals:
    """Intervals with other annotators, with other groups, and with both; ``group_tau`` (groups, 2): annotators."""

    annotators: Intervals
    groups: Intervals
    both: Intervals
    group_tau: Floats
    confidence: float
    n: int


@dataclass(frozen=True, eq=False)
class NoiseCeiling:
    """Mean tau of ``n`` splits into halves, and the middle ``confidence`` of them; by group (groups,), (groups, 2)."""

    tau: float
    interval: tuple[float, float]
    group_tau: Floats
    group_interval: Floats
    confidence: float
    n: int


@dataclass(frozen=True, eq=False)
class Choice:
    """The templates chosen, by name and place, their tau; that of every template alone; those that lack a score."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    tau: float
    single_tau: Floats
    skipped: tuple[str, ...]


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
    x, y = _both(model, human)
    tau, p_value, n = _kendall(x.ravel(), y.ravel())
    rows = [_kendall(*row) for row in zip(x, y, strict=True)]
    taus, ps, ns = (np.array([row[i] for row in rows]) for i in range(3))
    return Alignment(tau, p_value, n, taus, ps, ns.astype(np.int64))


def shuffled_groups(model: ArrayLike, human: ArrayLike, *, n: int, rng: Rng) -> tuple[float, float]:
    """Mean overall tau with people's ratings permuted among the groups, and how often that is as high as it is.

    What all groups have in common (most are rated warmer than cold, say) makes for agreement even if the model takes
    one group for another. The p-value, one-sided and at least 1 / (n + 1), is that of knowing which group is which.
    """
    x, y = _both(model, human)
    _check_draws(n, 0.5)
    generator, seen = np.random.default_rng(rng), _kendall(x.ravel(), y.ravel())[0]
    taus = np.array([_kendall(x.ravel(), y[generator.permutation(len(y))].ravel())[0] for _ in range(n)])
    if np.isnan(seen) or np.isnan(taus).all():
        return np.nan, np.nan
    return float(np.nanmean(taus)), float((1 + np.count_nonzero(taus >= seen - 1e-12)) / (n + 1))


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
    x, y = _both(model, human)
    if not 1 <= k <= x.shape[1]:
        raise UsageError(f"k must lie between 1 and the number of pairs, {x.shape[1]}, got {k}")
    top, bottom = _precision(x, y, k, threshold)
    mean = (top + bottom) / 2.0
    return Precision(top, bottom, mean, float(_mean(mean, axis=0)), k, threshold)


def human_means(ratings: ArrayLike) -> Floats:
    """Means (groups, pairs) of ``ratings`` (annotators, groups, pairs) over those who gave one; NaN where none did."""
    return _mean(_ratings(ratings), axis=0)


def bootstrap_alignment(
    model: ArrayLike,
    ratings: ArrayLike,
    *,
    n: int,
    rng: Rng,
    confidence: float = 0.95,
    k: int = 3,
    threshold: float = 50.0,
) -> AlignmentIntervals:
    """Percentile intervals of tau and precision, with annotators, groups or both drawn anew ``n`` times.

    ``annotators``: those of each group are drawn with replacement from those who rated it, apart from other groups;
    the groups are the ones at hand. ``groups``: the groups are drawn, the human means are the ones at hand. ``both``:
    groups, and within them annotators.

    A mean over annotators drawn anew is noisier than the one at hand, and tau with it lower. The percentiles are
    therefore moved so that the mean of the draws is the value at hand. Simulated with 20 annotators, 95% intervals then
    hold the tau to be expected with so many other annotators in 93% to 95% of cases (unmoved, in 44% to 87%), with 8
    noisy annotators in 86%. They do not claim to hold the higher tau with infinitely many annotators.
    """
    people, generator = _ratings(ratings), np.random.default_rng(rng)
    x, y = _both(model, _mean(people, axis=0))
    _check_draws(n, confidence)
    observed = precision_at(x, y, k, threshold).mean
    drawn = _resampled(people, n, generator)
    once, weights = np.ones((1, len(x))), generator.multinomial(len(x), np.full(len(x), 1.0 / len(x)), size=n)
    here, blocks = block_counts(x, y), np.stack([block_counts(x, sample) for sample in drawn])
    rates = np.mean(_precision(x, drawn, k, threshold), axis=0)

    def interval(counts: Floats, shares: Floats, times: NDArray[np.number]) -> Intervals:
        tau, precision = float(overall_tau(here, once)[0]), float(_weighted(observed, once)[0])
        return Intervals(
            percentile_interval(overall_tau(counts, times), confidence, tau, (-1.0, 1.0)),
            percentile_interval(_weighted(shares, times), confidence, precision, (0.0, 1.0)),
        )

    by_group = [
        percentile_interval(taus, confidence, float(seen), (-1.0, 1.0))
        for taus, seen in zip(within_tau(blocks).T, within_tau(here), strict=True)
    ]
    return AlignmentIntervals(
        annotators=interval(blocks, rates, once),
        groups=interval(here, observed, weights),
        both=interval(blocks, rates, weights),
        group_tau=np.array(by_group),
        confidence=confidence,
        n=n,
    )


def noise_ceiling(ratings: ArrayLike, *, n: int, rng: Rng, confidence: float = 0.95) -> NoiseCeiling:
    """How well people agree with each other: tau between the means of two random halves of each group's annotators.

    ``ratings`` (annotators, groups, pairs). Both sides are means over half the annotators (with an odd number one half
    has one more), so both are noisier than the mean of all, with which a model is compared: a model may well exceed
    this value. It is no upper bound, and no formula stretches it to the full number of annotators (Spearman and
    Brown's is for correlations of sums, not for ranks). The interval shows how the splits of these annotators vary.
    A group with fewer than two annotators is NaN and is left out of the overall tau.
    """
    people, generator = _ratings(ratings), np.random.default_rng(rng)
    _check_draws(n, confidence)
    raters = [len(_rated(people[:, g])) for g in range(people.shape[1])]
    if max(raters, default=0) < 2:
        raise UsageError(f"no group was rated by two annotators or more (at most {max(raters, default=0)})")
    first, second = _halves(people, n, generator)
    blocks = np.stack([block_counts(a, b) for a, b in zip(first, second, strict=True)])
    overall, within = overall_tau(blocks, np.ones((1, len(raters)))), within_tau(blocks)
    by_group = np.array([percentile_interval(taus, confidence) for taus in within.T])
    interval = percentile_interval(overall, confidence)
    return NoiseCeiling(float(_mean(overall, axis=0)), interval, _mean(within, axis=0), by_group, confidence, n)


def choose_templates(scores: ArrayLike, human: ArrayLike, names: Sequence[str], at_most: int = 2) -> Choice:
    """The template, or the two whose mean score, agree best with people by Kendall's tau over all cells.

    ``scores`` (templates, groups, pairs) and ``human`` (groups, pairs) are those of the pilot groups. Two are taken
    only if they are strictly better than the best one alone; of equals the earlier. A cell that people or all templates
    lack is left out; a template that lacks a score in any other cell is skipped, for its tau would be over other cells.
    The mean is of the scores as they are: a template with larger scores weighs more.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if x.ndim != 3 or x.shape[1:] != y.shape or len(names) != len(x):
        raise UsageError(f"{len(names)} templates on cells {y.shape} need scores of that shape, got {x.shape}")
    if at_most not in (1, 2):
        raise UsageError(f"at most one or two templates can be chosen, got {at_most}")
    present = np.isfinite(x)
    cells = ~np.isnan(y) & present.any(axis=0)
    usable = [t for t in range(len(x)) if present[t][cells].all()]
    rows, target = x[:, cells], y[cells]
    single = np.full(len(x), np.nan)
    single[usable] = kendall_rows(rows[usable], target)
    if np.isnan(single).all():
        raise UsageError("no template has a score for every cell of the pilot, and scores that differ")
    places, tau = _best([(t,) for t in usable], single[usable])
    pairs = list(combinations(usable, 2)) if at_most == 2 else []
    if pairs:
        two, of_two = _best(pairs, kendall_rows(rows[np.array(pairs)].mean(axis=1), target))
        places, tau = (two, of_two) if of_two > tau else (places, tau)
    skipped = tuple(name for t, name in enumerate(names) if t not in usable)
    return Choice(tuple(names[t] for t in places), places, tau, single, skipped)


def _kendall(x: Floats, y: Floats) -> tuple[float, float, int]:
    from scipy.stats import kendalltau  # takes longer to import than all of biassay

    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return np.nan, np.nan, len(x)
    found = kendalltau(x, y)
    return float(found.statistic), float(found.pvalue), len(x)


def _precision(x: Floats, y: Floats, k: int, threshold: float) -> tuple[Floats, Floats]:
    """Top and bottom precision (..., groups) of ``x`` (groups, pairs) against ``y`` (..., groups, pairs)."""
    gone = np.isnan(x) | np.isnan(y)
    few = (~gone).sum(axis=-1) < k
    parts = []
    for score, right in ((-x, y > threshold), (x, y < threshold)):
        order = np.argsort(np.where(gone, np.inf, score), axis=-1, kind="stable")[..., :k]
        share = np.take_along_axis(right, order, axis=-1).mean(axis=-1)
        parts.append(np.where(few, np.nan, share))
    return parts[0], parts[1]


def _weighted(rates: Floats, weights: NDArray[np.number]) -> Floats:
    """Means (n,) of ``rates`` (n, groups) or (groups,) over groups that count ``weights`` (n or 1, groups) times."""
    present = ~np.isnan(rates)
    total, number = (np.where(present, rates, 0.0) * weights).sum(axis=-1), (present * weights).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / number)


def _resampled(people: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Means (n, groups, pairs) of annotators drawn with replacement, apart for each group."""
    means = np.full((n, *people.shape[1:]), np.nan)
    for g in range(people.shape[1]):
        rated = people[_rated(people[:, g]), g]
        if len(rated):
            counts = rng.multinomial(len(rated), np.full(len(rated), 1.0 / len(rated)), size=n)
            means[:, g] = _weighted_columns(counts, rated)
    return means


def _halves(people: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Means (n, groups, pairs) of two halves of each group's annotators."""
    first, second = (np.full((n, *people.shape[1:]), np.nan) for _ in range(2))
    for g in range(people.shape[1]):
        rated = people[_rated(people[:, g]), g]
        if len(rated) >= 2:
            chosen = rng.random((n, len(rated))).argsort(axis=1) < len(rated) // 2
            first[:, g], second[:, g] = _weighted_columns(chosen, rated), _weighted_columns(~chosen, rated)
    return first, second


def _rated(of_group: Floats) -> NDArray[np.intp]:
    """The annotators who gave the group any rating."""
    return np.flatnonzero(~np.isnan(of_group).all(axis=1))


def _weighted_columns(counts: NDArray[np.integer | np.bool_], values: Floats) -> Floats:
    """Means (n, pairs) of ``values`` (annotators, pairs) in which each counts ``counts`` (n, annotators) times."""
    weights, present = counts.astype(np.float64), ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray((weights @ np.where(present, values, 0.0)) / (weights @ present.astype(np.float64)))


def _best(places: Sequence[tuple[int, ...]], taus: Floats) -> tuple[tuple[int, ...], float]:
    """The first of those with the largest tau; minus infinity if none has one."""
    at = int(np.argmax(np.where(np.isnan(taus), -np.inf, taus)))
    return places[at], float(np.where(np.isnan(taus), -np.inf, taus)[at])


def _mean(values: Floats, axis: int) -> Floats:
    """Mean of what is not NaN; NaN, and no warning, where there is nothing."""
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(present, values, 0.0).sum(axis=axis) / present.sum(axis=axis))


def _both(model: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(model, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if x.ndim != 2 or x.shape != y.shape or 0 in x.shape:
        raise UsageError(f"model and human must be of one shape (groups, pairs), got {x.shape} and {y.shape}")
    return x, y


def _ratings(ratings: ArrayLike) -> Floats:
    people = np.asarray(ratings, dtype=np.float64)
    if people.ndim != 3:
        raise UsageError(f"ratings must have the shape (annotators, groups, pairs), got {people.shape}")
    return people


def _check_draws(n: int, confidence: float) -> None:
    if n < 1:
        raise UsageError(f"at least one draw is needed, got {n}")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence must lie between 0 and 1, got {confidence}")
