"""Order effects, dominance and emergent traits of paired groups.

The three questions are those of Cao et al. (2022): does the order of the two components matter (`order_effects`), does
one domain outweigh the other (`dominance`), and does the pair have traits that neither component has (`emergence`)?
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.agreement_bounds import agreement_bounds
from biassay.stats.crossed import CONFIDENCE
from biassay.stats.kendall import kendall_by_row
from biassay.stats.multiple_testing import benjamini_hochberg

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class PairedGroups:
    """Scores of paired groups and of their components.

    Attributes
    ----------
    scores : (n, traits)
        Scores of the paired groups; NaN is missing.
    components : (groups, traits)
        Scores of the single groups.
    first, second : (n,) int
        Index of the component that is named first, and of the other.
    reverse : (n,) int
        Index of the paired group with the same components in the other order, or -1.
    domains : (groups,) int
        Domain of every single group, from 0.
    """

    scores: Floats
    components: Floats
    first: Indices
    second: Indices
    reverse: Indices
    domains: Indices


@dataclass(frozen=True)
class PairMean:
    """A mean over `n` pairs of components, with a standard error that accounts for shared components."""

    value: float
    standard_error: float
    n: int


@dataclass(frozen=True, eq=False)
class OrderEffects:
    """Kendall's tau of paired groups with their components; NaN where undefined.

    Attributes
    ----------
    tau_first, tau_second, tau_reverse, tau_best : (n,)
        Tau with the first component, the second, the same pair in the other order, and the more correlated component.
    first, second, difference, reverse : PairMean
        Means over pairs that exist in both orders, each pair of components once; `difference` is second minus first.
    best : PairMean
        Mean of `tau_best` over all paired groups.
    """

    tau_first: Floats
    tau_second: Floats
    tau_reverse: Floats
    tau_best: Floats
    first: PairMean
    second: PairMean
    difference: PairMean
    reverse: PairMean
    best: PairMean


@dataclass(frozen=True, eq=False)
class Dominance:
    """Comparison of the two domains of paired groups, with one row for every two domains that are paired.

    Attributes
    ----------
    domains : (k, 2) int
        The two domains, the smaller number first.
    tau : (k, 2)
        Mean tau of the paired groups, in either order, with their component of each domain.
    difference, n : (k,)
        Tau with the first domain minus that with the second, over n paired groups.
    interval : (k, 2)
        Interval of the difference for other components of both domains: a jackknife over components with Student's t
        and the degrees of freedom of the smaller domain. NaN if a domain has a single component.
    dominates : (domains, domains) bool
        True if the row dominates the column, because the interval excludes zero.
    reaches_margin : (domains, domains) bool
        True if the difference reaches 0.1, which is the rule of the paper.
    within : int
        Number of paired groups within one domain, which are left out.
    """

    domains: Indices
    tau: Floats
    difference: Floats
    n: NDArray[np.int64]
    interval: Floats
    dominates: NDArray[np.bool_]
    reaches_margin: NDArray[np.bool_]
    within: int


def order_effects(paired: PairedGroups) -> OrderEffects:
    """Compare a paired group with its first component, its second, and the same pair in the other order."""
    first, second = (kendall_by_row(paired.scores, paired.components[part]) for part in (paired.first, paired.second))
    both = paired.reverse >= 0
    reverse = np.full(len(both), np.nan)
    reverse[both] = kendall_by_row(paired.scores[both], paired.scores[paired.reverse[both]])
    best = np.fmax(first, second)
    return OrderEffects(
        tau_first=first,
        tau_second=second,
        tau_reverse=reverse,
        tau_best=best,
        first=_pair_mean(paired, first, both),
        second=_pair_mean(paired, second, both),
        difference=_pair_mean(paired, second - first, both),
        reverse=_pair_mean(paired, reverse, both),
        best=_pair_mean(paired, best, np.ones_like(both)),
    )


def dominance(paired: PairedGroups) -> Dominance:
    """Test whether paired groups of two domains score more like their component of one domain.

    A domain dominates another if the 95% interval of the difference of mean tau lies above zero, without a correction
    for the number of domains.
    """
    domains = paired.domains
    first_domain, second_domain = domains[paired.first], domains[paired.second]
    swapped = first_domain > second_domain
    a, b = np.where(swapped, [paired.second, paired.first], [paired.first, paired.second])
    taus = np.stack([kendall_by_row(paired.scores, paired.components[part]) for part in (a, b)], axis=1)
    usable = (first_domain != second_domain) & ~np.isnan(taus).any(axis=1)
    kinds, kind = np.unique(np.stack([domains[a], domains[b]], axis=1)[usable], axis=0, return_inverse=True)
    rows = [np.flatnonzero(usable)[kind.ravel() == i] for i in range(len(kinds))]
    means = np.array([taus[row].mean(axis=0) for row in rows]).reshape(-1, 2)
    gaps, n_domains = taus[:, 0] - taus[:, 1], int(domains.max(initial=-1)) + 1
    intervals = np.array([_gap_interval(gaps[row], (a[row], b[row])) for row in rows]).reshape(-1, 2)
    difference = means[:, 0] - means[:, 1]
    above = np.where(intervals[:, 0] > 0.0, 1.0, np.where(intervals[:, 1] < 0.0, -1.0, 0.0))
    return Dominance(
        domains=kinds,
        tau=means,
        difference=difference,
        n=np.array([len(row) for row in rows], dtype=np.int64),
        interval=intervals,
        dominates=find_dominance(kinds, above, n_domains, 1.0),
        reaches_margin=find_dominance(kinds, difference, n_domains),
        within=int(np.count_nonzero(first_domain == second_domain)),
    )


def _gap_interval(gaps: Floats, sides: tuple[Indices, Indices]) -> tuple[float, float]:
    """Return the interval of the mean of gaps (m,) between pairs whose components on both sides vary.

    The variances over the components of both sides are added, which counts the noise of single pairs twice. If all gaps
    are equal, the interval is the bound for as many agreeing pairs without a common component.
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
        return agreement_bounds(np.full(fewest, mean), within=(-2.0, 2.0), null=0.0).interval
    half = float(np.sqrt(variance) * scipy.special.stdtrit(fewest - 1, 0.5 * (1.0 + CONFIDENCE)))
    return max(-2.0, mean - half), min(2.0, mean + half)


def find_dominance(kinds: ArrayLike, difference: ArrayLike, domains: int, margin: float = 0.1) -> NDArray[np.bool_]:
    """Return which domain dominates which.

    Parameters
    ----------
    kinds : (k, 2) array-like of int
        Pairs of domains.
    difference : (k,) array-like
        Difference of the two domains of each pair.
    domains : int
        Number of domains.
    margin : float, default 0.1
        Smallest difference that counts as dominance.

    Returns
    -------
    (domains, domains) bool
    """
    gap, table = np.asarray(difference, dtype=np.float64), np.zeros((domains, domains), dtype=bool)
    a, b = np.asarray(kinds, dtype=np.intp).reshape(-1, 2).T
    least = margin - _ROUNDING  # published values of three decimals may differ by exactly the margin
    table[a, b], table[b, a] = gap >= least, -gap >= least
    return table


def _pair_mean(paired: PairedGroups, values: Floats, chosen: NDArray[np.bool_]) -> PairMean:
    """Return the mean over pairs of components; a pair and its reverse count as one.

    The variance adds the products of residuals of any two pairs that share a component (Aronow, Samii and Assenova
    2015). It is at least that of independent pairs.
    """
    rows = np.flatnonzero(chosen & ~np.isnan(values))
    if not len(rows):
        return PairMean(np.nan, np.nan, 0)
    ends = np.sort(np.stack([paired.first[rows], paired.second[rows]], axis=1), axis=1)
    pairs, pair = np.unique(ends, axis=0, return_inverse=True)
    by_pair = np.bincount(pair.ravel(), values[rows]) / np.bincount(pair.ravel())
    n, mean = len(by_pair), float(by_pair.mean())
    if n < 2:
        return PairMean(mean, np.nan, n)
    residuals = by_pair - mean
    independent = residuals @ residuals
    by_component = np.bincount(pairs.T.ravel(), np.tile(residuals, 2))
    shared = by_component @ by_component - independent  # each pair appears with both its components
    return PairMean(mean, float(np.sqrt(max(independent, shared) / (n * (n - 1)))), n)


_TIED = 1e-9  # relative difference of studentised residuals that are equal except for rounding


@dataclass(frozen=True, eq=False)
class EmergentTraits:
    """Amounts by which paired groups exceed both components in one direction; see `emergence`.

    Attributes
    ----------
    excess, bound : (n, traits)
        Distance of the score beyond `bound`, which is the larger (smaller) score of the two components.
    p_value, adjusted : (n, traits)
        Permutation p-value, and its adjustment by Benjamini and Hochberg over all cells of both directions.
    p_additive : (n, traits)
        p-value of the score against the sum of the contributions of its components, by permuting residuals. NaN if the
        two domains have too few paired groups.
    top : (k, 2) int
        Paired group and trait of the largest excesses above zero, the largest first.
    """

    excess: Floats
    bound: Floats
    p_value: Floats
    adjusted: Floats
    p_additive: Floats
    top: Indices


@dataclass(frozen=True, eq=False)
class Emergence:
    """Traits on which paired groups score higher than both components, and those on which they score lower."""

    increase: EmergentTraits
    decrease: EmergentTraits


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision and recall of predicted cells; NaN if nothing is predicted, or nothing is true.

    `chance_precision` and `chance_recall` are those of random guesses. `p_value` is the probability that the same
    number of random cells contains at least as many true ones.
    """

    precision: float
    recall: float
    tp: int
    fp: int
    fn: int
    tn: int
    chance_precision: float
    chance_recall: float
    p_value: float


def emergence(paired: PairedGroups, *, top: int = 50) -> Emergence:
    """Find traits of paired groups that neither component has: S(g, t) - max(S(g1, t), S(g2, t)) above 0.

    The other direction is min(S(g1, t), S(g2, t)) - S(g, t).

    Parameters
    ----------
    paired : PairedGroups
    top : int, default 50
        Number of largest excesses to list per direction.

    Returns
    -------
    Emergence

    Notes
    -----
    Both p-values compare a pair with the m pairs of the same two domains in the same order. The other order is another
    wording of the same pair and not independent of it.

    **Permutation.** Null hypothesis: the score of a pair is independent of its components, so any of the m scores can
    occur with any of the m pairs of components. `p_value` is the share of all m x m combinations with at least as large
    an excess. Under the null hypothesis, at most a share x of the m pairs is expected to have a p-value of x or less.
    This does not hold for a pair that was selected because its components score low. The test is conservative if pairs
    follow their components. Because the score of a pair is one of the m, p-values far below 1 / m are rare, and none
    survives a correction for thousands of cells. The p-value ranks cells; it cannot make one significant.

    **Additive.** Null hypothesis: the score is the sum of contributions of both components to pairs of these domains,
    plus noise whose shape is the same for the m pairs and all traits; its size may differ between traits. A component
    that raises a trait in all its pairs ("mechanic" and trustworthy, in the paper) is therefore not emergent.
    `p_additive` is the share of studentised residuals of the m pairs and all traits that are at least as large. Pairs
    in both orders share their words and hence their noise; they form a set of their own, with the mean of both
    residuals. In simulations of one pair with normal, t3 and skewed noise, and with noise of different size for every
    trait, 3.5% to 6.1% of the p-values were 0.05 or less, and 0% to 1.3% were 0.01 or less. The test needs no
    distribution, but only ranks: whatever the scores, at most a share x of them has a p-value of x or less. With one
    residual per pair and trait, an emergent trait cannot be distinguished from heavy-tailed noise.

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.
    """
    first, second = paired.components[paired.first], paired.components[paired.second]
    kinds = np.stack([paired.domains[paired.first], paired.domains[paired.second]], axis=1)
    blocks = np.unique(kinds, axis=0, return_inverse=True)[1].ravel()
    sides = [(1.0, np.maximum(first, second)), (-1.0, np.minimum(first, second))]
    permuted = np.stack([_random_cell_p(sign * paired.scores, sign * bound, blocks) for sign, bound in sides])
    adjusted = benjamini_hochberg(permuted.ravel()).adjusted.reshape(permuted.shape)
    residuals = _studentise(paired, blocks)
    increase, decrease = (
        EmergentTraits(
            excess=sign * paired.scores - sign * bound,
            bound=bound,
            p_value=permuted[i],
            adjusted=adjusted[i],
            p_additive=_residual_p(sign * residuals, blocks, paired.reverse),
            top=_find_largest(sign * paired.scores - sign * bound, top),
        )
        for i, (sign, bound) in enumerate(sides)
    )
    return Emergence(increase, decrease)


def precision_recall(predicted: ArrayLike, truth: ArrayLike) -> PrecisionRecall:
    """Compute precision and recall of predicted cells, bool arrays of the same shape.

    The random baseline predicts every cell with a probability of one half. Its precision is the share of true cells.
    """
    yes, true = np.asarray(predicted, dtype=bool), np.asarray(truth, dtype=bool)
    tp, fp, fn = (int(np.count_nonzero(part)) for part in (yes & true, yes & ~true, ~yes & true))
    return PrecisionRecall(
        precision=tp / (tp + fp) if tp + fp else np.nan,
        recall=tp / (tp + fn) if tp + fn else np.nan,
        tp=tp,
        fp=fp,
        fn=fn,
        tn=yes.size - tp - fp - fn,
        chance_precision=(tp + fn) / yes.size,
        chance_recall=0.5 if tp + fn else np.nan,
        p_value=float(scipy.stats.hypergeom.sf(tp - 1, yes.size, tp + fn, tp + fp)),
    )


def _random_cell_p(scores: Floats, bound: Floats, blocks: Indices) -> Floats:
    """Return the share of differences of any score and any bound of a block that are as large, (n, traits)."""
    p = np.full(scores.shape, np.nan)
    for rows in (np.flatnonzero(blocks == block) for block in np.unique(blocks)):
        for t in range(scores.shape[1]):
            present = rows[~np.isnan(scores[rows, t] - bound[rows, t])]
            if len(present):
                s, m = scores[present, t], bound[present, t]
                combined = np.sort((s[:, None] - m[None, :]).ravel())
                slack = _ROUNDING * max(float(np.abs(s).max()), float(np.abs(m).max()))
                p[present, t] = 1.0 - np.searchsorted(combined, (s - m) - slack) / len(combined)
    return p


def _studentise(paired: PairedGroups, blocks: Indices) -> Floats:
    """Return residuals (n, traits) of the sum of the components' contributions, in units of the noise of the others.

    NaN where the residual is zero whatever the score, or no degrees of freedom are left.
    """
    t = np.full(paired.scores.shape, np.nan)
    present = ~np.isnan(paired.scores)
    for block in np.unique(blocks):
        patterns, pattern = np.unique(present[blocks == block], axis=1, return_inverse=True)
        for i in range(patterns.shape[1]):
            rows = np.flatnonzero(blocks == block)[patterns[:, i]]
            if not len(rows):
                continue
            cells = np.ix_(rows, np.flatnonzero(pattern.ravel() == i))
            t[cells] = _deleted_residuals(paired.scores[cells], paired.first[rows], paired.second[rows])
    return t


def _deleted_residuals(scores: Floats, first: Indices, second: Indices) -> Floats:
    codes = [side[:, None] == np.unique(side) for side in (first, second)]
    basis, size, _ = np.linalg.svd(np.concatenate(codes, axis=1).astype(np.float64), full_matrices=False)
    basis = basis[:, size > 1e-9 * size.max(initial=0.0)]
    residuals = scores - basis @ (basis.T @ scores)
    kept = 1.0 - (basis**2).sum(axis=1)[:, None]  # share of a score in its residual, one minus its leverage
    df = float(len(scores) - basis.shape[1] - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = ((residuals**2).sum(axis=0) - residuals**2 / kept) / df
        t = residuals / np.sqrt(np.maximum(noise, 0.0) * kept)
    defined = (kept > 1e-9) & (df > 0.0) & (noise > (_ROUNDING * np.abs(scores).max()) ** 2)
    return np.where(defined, t, np.nan)


def _share_as_large(residuals: Floats, blocks: Indices) -> Floats:
    """Return for each residual the share of residuals of its block that are as large, (n, traits)."""
    p = np.full(residuals.shape, np.nan)
    for block in np.unique(blocks):
        values = residuals[blocks == block]
        ordered = np.sort(values[~np.isnan(values)])
        if len(ordered):
            below = np.searchsorted(ordered, values - np.abs(values) * _TIED)
            p[blocks == block] = np.where(np.isnan(values), np.nan, 1.0 - below / len(ordered))
    return p


def _residual_p(residuals: Floats, blocks: Indices, reverse: Indices) -> Floats:
    """Rank residuals of pairs in one order among each other, and means over both orders among such means."""
    both = reverse >= 0
    means = np.where(both[:, None], (residuals + residuals[reverse]) / 2.0, residuals)
    return _share_as_large(means, 2 * blocks + both)


def _find_largest(excess: Floats, top: int) -> Indices:
    """Return the indices (k, 2) of the largest values above zero; earlier ones win ties."""
    order = np.argsort(np.where(excess > 0.0, -excess, np.inf), axis=None, kind="stable")[:top]
    order = order[excess.ravel()[order] > 0.0]
    return np.stack(np.unravel_index(order, excess.shape), axis=1)
