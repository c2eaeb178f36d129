"""Intervals of the agreement between a model and people, and how well people agree with each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.alignment import (
    check_resampling,
    checked_pair,
    checked_ratings,
    mean_of_given,
    precision_at,
    precision_of,
)
from biassay.stats.kendall import (
    block_counts,
    cluster_masks,
    jackknife_interval,
    overall_tau,
    percentile_interval,
    within_tau,
)
from biassay.stats.permutation import Rng

__all__ = ["AlignmentIntervals", "Intervals", "NoiseCeiling", "alignment_intervals", "noise_ceiling"]

Floats = NDArray[np.float64]


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


@dataclass(frozen=True, eq=False)
class NoiseCeiling:
    """Mean tau of ``n`` splits into halves, and the middle ``confidence`` of them; by group (groups,), (groups, 2)."""

    tau: float
    interval: tuple[float, float]
    group_tau: Floats
    group_interval: Floats
    confidence: float
    n: int


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
    """Return intervals of tau and precision with other annotators, other groups, and others of both.

    Parameters
    ----------
    model : (groups, pairs) array-like
        Scores; NaN is missing.
    ratings : (annotators, groups, pairs) array-like
        Ratings of people; NaN is missing.
    n : int
        Bootstrap samples of annotators.
    rng : int or numpy Generator
    domains : (groups,) array-like, optional
        The domain of every group. Groups of one domain may be alike, so that domains are the sampling units. If None,
        or if there is one domain only, groups are.
    confidence : float, default 0.95
    k, threshold
        See `precision_at`.

    Returns
    -------
    AlignmentIntervals

    Notes
    -----
    ``annotators``: percentiles of bootstrap samples. Annotators of each group are drawn with replacement from those
    who rated it; the groups stay. A mean over annotators drawn again is noisier than the one at hand, and tau with it
    lower. The percentiles are therefore moved so that the mean of the samples is the value at hand. They do not claim
    to hold the higher tau with infinitely many annotators. If all samples agree, the interval is the bound that the
    smallest number of annotators per group gives.

    ``groups``: Student's t intervals by leaving out one domain at a time (`jackknife_interval`). ``both``: the half
    widths of the two others, added in quadrature, which counts annotators twice. Figures are in docs/validity.md.
    """
    people, generator = checked_ratings(ratings), np.random.default_rng(rng)
    x, y = checked_pair(model, mean_of_given(people, axis=0))
    check_resampling(n, confidence)
    drawn = _resampled(people, n, generator)
    once = np.ones((1, len(x)))
    here, blocks = block_counts(x, y), np.stack([block_counts(x, sample) for sample in drawn])
    observed, rates = precision_at(x, y, k, threshold).mean, np.mean(precision_of(x, drawn, k, threshold), axis=0)
    tau, precision = float(overall_tau(here, once)[0]), float(_weighted(observed, once)[0])
    rated = np.asarray((~np.isnan(x + y)).any(axis=1))
    masks = cluster_masks(None if domains is None else np.asarray(domains)[rated], int(rated.sum()))
    kept, sizes = np.ones((len(masks), len(x))), masks.sum(axis=1)
    kept[:, rated] = ~masks
    raters = [len(_rated(people[:, g])) for g in range(len(x))]
    fewest = min((n for n, is_rated in zip(raters, rated, strict=True) if is_rated), default=0)
    annotators = Intervals(
        percentile_interval(overall_tau(blocks, once), confidence, tau, (-1.0, 1.0), fewest),
        percentile_interval(_weighted(rates, once), confidence, precision, (0.0, 1.0), fewest),
    )
    groups = Intervals(
        jackknife_interval(tau, overall_tau(here, kept), confidence, (-1.0, 1.0), sizes, per_comparison=2),
        jackknife_interval(precision, _weighted(observed, kept), confidence, (0.0, 1.0), sizes),
    )
    both = Intervals(
        _combined(tau, groups.tau, annotators.tau, (-1.0, 1.0)),
        _combined(precision, groups.precision, annotators.precision, (0.0, 1.0)),
    )
    by_group = [
        percentile_interval(taus, confidence, float(seen), (-1.0, 1.0), number)
        for taus, seen, number in zip(within_tau(blocks).T, within_tau(here), raters, strict=True)
    ]
    return AlignmentIntervals(annotators, groups, both, np.array(by_group))


def _combined(
    value: float, one: tuple[float, float], other: tuple[float, float], limits: tuple[float, float]
) -> tuple[float, float]:
    """Add the half widths of two intervals about one value in quadrature; NaN if one of them is."""
    half = np.hypot(np.subtract(one, value), np.subtract(other, value))
    low, high = np.clip([value - half[0], value + half[1]], *limits)
    return float(low), float(high)


def noise_ceiling(ratings: ArrayLike, *, n: int, rng: Rng, confidence: float = 0.95) -> NoiseCeiling:
    """How well people agree with each other: tau between the means of two random halves of each group's annotators.

    ``ratings`` (annotators, groups, pairs). Both sides are means over half the annotators (with an odd number one half
    has one more), so both are noisier than the mean of all, with which a model is compared: a model may well exceed
    this value. It is no upper bound, and no formula stretches it to the full number of annotators (Spearman and
    Brown's is for correlations of sums, not for ranks). The interval shows how the splits of these annotators vary.
    A group with fewer than two annotators is NaN and is left out of the overall tau.
    """
    people, generator = checked_ratings(ratings), np.random.default_rng(rng)
    check_resampling(n, confidence)
    raters = [len(_rated(people[:, g])) for g in range(people.shape[1])]
    if max(raters, default=0) < 2:
        raise UsageError(f"no group was rated by two annotators or more (at most {max(raters, default=0)})")
    first, second = _halves(people, n, generator)
    blocks = np.stack([block_counts(a, b) for a, b in zip(first, second, strict=True)])
    overall, within = overall_tau(blocks, np.ones((1, len(raters)))), within_tau(blocks)
    by_group = np.array([percentile_interval(taus, confidence) for taus in within.T])
    interval = percentile_interval(overall, confidence)
    return NoiseCeiling(
        float(mean_of_given(overall, axis=0)), interval, mean_of_given(within, axis=0), by_group, confidence, n
    )


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
