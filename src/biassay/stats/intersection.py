"""Groups that stand in two domains at once, such as teenage Catholics, beside the two groups they are made of.

Two questions: does the order of the two matter, and does one domain outweigh the other? The third, whether the pair has
traits that neither component has, is in `emergence`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.agreement_bounds import agreement_bounds
from biassay.stats.kendall import kendall_rows

__all__ = [
    "Dominance",
    "Mean",
    "OrderEffects",
    "Paired",
    "dominance",
    "dominates",
    "order_effects",
]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_ROUNDING = 1e-12


class Paired:
    """Paired groups, their components, and how they belong together; checked once, here.

    Parameters
    ----------
    scores : (n, traits)
        Of the paired groups; NaN is missing.
    components : (groups, traits)
        Of the single groups.
    first, second : (n,) int
        The component that is named first, and the other.
    reverse : (n,) int
        The place of the paired group with the same components in the other order, or -1.
    domains : (groups,) int
        The domain of every single group, from 0.
    """

    def __init__(
        self,
        scores: ArrayLike,
        components: ArrayLike,
        first: ArrayLike,
        second: ArrayLike,
        reverse: ArrayLike,
        domains: ArrayLike,
    ) -> None:
        self.scores, self.components = (np.asarray(array, dtype=np.float64) for array in (scores, components))
        if self.scores.ndim != 2 or self.components.ndim != 2 or self.scores.shape[1] != self.components.shape[1]:
            raise UsageError(
                "paired groups and components need scores on the same traits, got shapes "
                f"{self.scores.shape} and {self.components.shape}"
            )
        n, groups = len(self.scores), len(self.components)
        self.first = _places("first", first, n, 0, groups)
        self.second = _places("second", second, n, 0, groups)
        self.reverse = _places("reverse", reverse, n, -1, n)
        self.domains = _places("domains", domains, groups, 0, None)
        self._check_reverse()

    def _check_reverse(self) -> None:
        own = np.flatnonzero(self.reverse >= 0)
        other = self.reverse[own]
        right = (self.first[other] == self.second[own]) & (self.second[other] == self.first[own])
        wrong = own[~(right & (self.reverse[other] == own))]
        if len(wrong):
            i, j = int(wrong[0]), int(self.reverse[wrong[0]])
            raise UsageError(
                f"paired group {i} names {j} as its reverse, which is not the same pair the other way round"
            )


@dataclass(frozen=True)
class Mean:
    """A mean over ``n`` pairs of components; the standard error counts in that pairs share components."""

    value: float
    standard_error: float
    n: int


@dataclass(frozen=True, eq=False)
class OrderEffects:
    """Kendall's tau of paired groups with what they are made of, (n,), NaN where undefined, and means of it.

    Attributes
    ----------
    tau_first, tau_second, tau_reverse, tau_best : (n,)
        With the first component, the second, the same pair in the other order, and the more correlated component.
    first, second, difference, reverse : Mean
        Over pairs of which both orders exist, each pair of components once; difference: second less first.
    best, first_of_all, second_of_all : Mean
        Over all paired groups.
    """

    tau_first: Floats
    tau_second: Floats
    tau_reverse: Floats
    tau_best: Floats
    first: Mean
    second: Mean
    difference: Mean
    reverse: Mean
    best: Mean
    first_of_all: Mean
    second_of_all: Mean


@dataclass(frozen=True, eq=False)
class Dominance:
    """Which domain a pair of two domains follows, one row for every two domains that are paired.

    Attributes
    ----------
    domains : (k, 2) int
        The two domains, the smaller number first.
    tau : (k, 2)
        Mean tau of the paired groups, in either order, with their component of each.
    difference, n : (k,)
        tau of the first less that of the second, over n paired groups.
    interval : (k, 2)
        Of the difference, with other components of both domains: Student's t by leaving out one component at a time,
        with the degrees of freedom of the smaller domain. NaN if a domain has one component only.
    dominates : (domains, domains) bool
        Whether the row dominates the column: the interval lies on its side of zero.
    reaches_margin : (domains, domains) bool
        Whether the difference reaches a margin, which is the rule of the paper.
    within : int
        Paired groups of one domain, which are left out.
    """

    domains: Places
    tau: Floats
    difference: Floats
    n: NDArray[np.int64]
    interval: Floats
    dominates: NDArray[np.bool_]
    reaches_margin: NDArray[np.bool_]
    within: int


def order_effects(paired: Paired) -> OrderEffects:
    """Does a paired group score like its first component, its second, or itself the other way round? (Q1)"""
    taus = [kendall_rows(paired.scores, paired.components[part]) for part in (paired.first, paired.second)]
    both = paired.reverse >= 0
    reverse = np.full(len(both), np.nan)
    reverse[both] = kendall_rows(paired.scores[both], paired.scores[paired.reverse[both]])
    first, second = taus
    best = np.fmax(first, second)
    every = np.ones_like(both)
    return OrderEffects(
        tau_first=first,
        tau_second=second,
        tau_reverse=reverse,
        tau_best=best,
        first=_pair_mean(paired, first, both),
        second=_pair_mean(paired, second, both),
        difference=_pair_mean(paired, second - first, both),
        reverse=_pair_mean(paired, reverse, both),
        best=_pair_mean(paired, best, every),
        first_of_all=_pair_mean(paired, first, every),
        second_of_all=_pair_mean(paired, second, every),
    )


def dominance(paired: Paired, *, confidence: float = 0.95, margin: float = 0.1) -> Dominance:
    """Do paired groups of two domains score more like their component of the one or of the other? (Q2)

    A domain dominates another if the interval of the difference of mean tau lies above zero. It is not corrected for
    the number of domains compared. ``margin`` is that of the paper, in which a domain dominates another if the
    difference is as large, whatever its interval.
    """
    domains = paired.domains
    of_first, of_second = domains[paired.first], domains[paired.second]
    turned = of_first > of_second
    a, b = np.where(turned, [paired.second, paired.first], [paired.first, paired.second])
    taus = np.stack([kendall_rows(paired.scores, paired.components[part]) for part in (a, b)], axis=1)
    usable = (of_first != of_second) & ~np.isnan(taus).any(axis=1)
    kinds, kind = np.unique(np.stack([domains[a], domains[b]], axis=1)[usable], axis=0, return_inverse=True)
    rows = [np.flatnonzero(usable)[kind.ravel() == i] for i in range(len(kinds))]
    means = np.array([taus[row].mean(axis=0) for row in rows]).reshape(-1, 2)
    gaps, number = taus[:, 0] - taus[:, 1], int(domains.max(initial=-1)) + 1
    intervals = np.array([_gap_interval(gaps[row], (a[row], b[row]), confidence) for row in rows]).reshape(-1, 2)
    difference = means[:, 0] - means[:, 1]
    above = np.where(intervals[:, 0] > 0.0, 1.0, np.where(intervals[:, 1] < 0.0, -1.0, 0.0))
    return Dominance(
        domains=kinds,
        tau=means,
        difference=difference,
        n=np.array([len(row) for row in rows], dtype=np.int64),
        interval=intervals,
        dominates=dominates(kinds, above, number, 1.0),
        reaches_margin=dominates(kinds, difference, number, margin),
        within=int(np.count_nonzero(of_first == of_second)),
    )


def _gap_interval(gaps: Floats, sides: tuple[Places, Places], confidence: float) -> tuple[float, float]:
    """Return the interval of the mean of gaps (m,) between pairs whose components on either side vary.

    The variances over the components of both sides are added, which counts noise of single pairs twice. If all gaps
    are the same, the interval is the bound that as many agreeing pairs without a common component give.
    """
    masks = [np.unique(side)[:, None] != side for side in sides]
    fewest = min(len(kept) for kept in masks)
    if fewest < 2:
        return (np.nan, np.nan)
    mean = float(gaps.mean())
    variance = 0.0
    for kept in masks:
        without = np.array([gaps[row].mean() for row in kept])
        variance += (len(kept) - 1) / len(kept) * float(((without - without.mean()) ** 2).sum())
    if variance <= _ROUNDING**2:
        return agreement_bounds(np.full(fewest, mean), within=(-2.0, 2.0), null=0.0, confidence=confidence).interval
    half = float(np.sqrt(variance) * scipy.special.stdtrit(fewest - 1, 0.5 * (1.0 + confidence)))
    return max(-2.0, mean - half), min(2.0, mean + half)


def dominates(kinds: ArrayLike, difference: ArrayLike, domains: int, margin: float = 0.1) -> NDArray[np.bool_]:
    """Who dominates whom, (domains, domains), by the differences (k,) of pairs of domains (k, 2)."""
    gap, table = np.asarray(difference, dtype=np.float64), np.zeros((domains, domains), dtype=bool)
    a, b = np.asarray(kinds, dtype=np.intp).reshape(-1, 2).T
    reached = margin - _ROUNDING  # figures of three decimals that differ by the margin exactly do reach it
    table[a, b], table[b, a] = gap >= reached, -gap >= reached
    return table


def _pair_mean(paired: Paired, values: Floats, chosen: NDArray[np.bool_]) -> Mean:
    """Mean over pairs of components, a pair and its reverse counting as the two halves of one.

    The variance adds the products of residuals of any two pairs that share a component (Aronow, Samii and Assenova
    2015); it is not let below that of independent pairs.
    """
    at = np.flatnonzero(chosen & ~np.isnan(values))
    if not len(at):
        return Mean(np.nan, np.nan, 0)
    ends = np.sort(np.stack([paired.first[at], paired.second[at]], axis=1), axis=1)
    units, unit = np.unique(ends, axis=0, return_inverse=True)
    each = np.bincount(unit.ravel(), values[at]) / np.bincount(unit.ravel())
    n, mean = len(each), float(each.mean())
    if n < 2:
        return Mean(mean, np.nan, n)
    left = each - mean
    alone = left @ left
    shared = np.bincount(units.T.ravel(), np.tile(left, 2))
    together = shared @ shared - alone  # a pair shares with itself twice
    return Mean(mean, float(np.sqrt(max(alone, together) / (n * (n - 1)))), n)


def _places(what: str, values: ArrayLike, n: int, low: int, end: int | None) -> Places:
    array = np.asarray(values)
    if array.shape != (n,) or (n and array.dtype.kind not in "iu"):
        raise UsageError(f"{what} must hold {n} whole numbers, got {array.dtype} of shape {array.shape}")
    if n and (array.min() < low or (end is not None and array.max() >= end)):
        allowed = f"{low} or more" if end is None else f"from {low} to {end - 1}"
        raise UsageError(f"{what} must be {allowed}, got {array.min()} to {array.max()}")
    return array.astype(np.intp)
