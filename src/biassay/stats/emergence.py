"""Traits that a paired group has and neither of its components has, and how well they agree with what is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.intersection import Paired
from biassay.stats.multiple import benjamini_hochberg

__all__ = ["Emergence", "EmergentSide", "PrecisionRecall", "emergence", "precision_recall"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_ROUNDING = 1e-12  # how far excesses that should be equal may lie apart, relative to the largest score
_TIED = 1e-9  # how far studentised residuals that should be equal may lie apart, relative to their size


@dataclass(frozen=True, eq=False)
class EmergentSide:
    """How far paired groups exceed both components in one direction, (n, traits) each; see `emergence`.

    Attributes
    ----------
    excess, bound
        How far the score lies beyond ``bound``, which is the larger (smaller) score of the two components.
    p_value, adjusted
        Of the permutation; by Benjamini and Hochberg over all cells of both sides.
    p_additive, adjusted_additive
        Of the score against the sum of what its components contribute, by permuting residuals; likewise (1 always, for
        it ranks). NaN where the paired groups of the two domains are too few.
    top : (k, 2) int
        Paired group and trait of the largest excesses above zero, the largest first.
    """

    excess: Floats
    bound: Floats
    p_value: Floats
    adjusted: Floats
    p_additive: Floats
    adjusted_additive: Floats
    top: Places


@dataclass(frozen=True, eq=False)
class Emergence:
    """Traits that paired groups have more than either component, and those that they have less."""

    increase: EmergentSide
    decrease: EmergentSide


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision and recall of predicted cells. NaN: nothing predicted, or nothing true.

    ``chance_precision`` and ``chance_recall`` are those of guesses that say yes at a given rate; ``p_value`` is the
    probability that as many cells picked at random hold at least as many true ones.
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


def emergence(paired: Paired, *, top: int = 50) -> Emergence:
    """Traits of a paired group that neither of its components has: S(g, t) - max(S(g1, t), S(g2, t)) (Q3)

    The other side is min(S(g1, t), S(g2, t)) - S(g, t). Both p-values compare a pair with the m pairs of the same two
    domains in the same order (the other order is another wording of the same pair, and not independent of it).

    **Permutation.** Null hypothesis: the score of a pair has nothing to do with which components it has; any of the m
    scores could stand with any of the m pairs of components. ``p_value`` is how often the score of a random pair, set
    against the components of a random pair, gives as large an excess: the permutation distribution of the excess at a
    random place, counted in full over all m x m combinations, the observed ones among them. Under the null hypothesis,
    of m pairs at most a share x is expected to have a p-value of x or less; for a pair picked because its components
    score low this is not so. Pairs that follow their components make it conservative. The score of a pair is itself one
    of the m, so that p-values much below 1 / m hardly occur, and a correction for thousands of cells leaves nothing: it
    ranks cells and cannot establish one.

    **Additive.** Null hypothesis: the score is the sum of what either component contributes to pairs of these domains,
    and noise of any shape that the m pairs and all traits share (its size may differ between traits). A component that
    raises a trait in all its pairs ("mechanic" and trustworthy, in the paper) is no emergence by it. ``p_additive`` is
    how often a residual of the m pairs and all traits, studentised and placed at random, is as large; pairs in both
    orders are a set of their own, with the mean of both residuals, for the two share their words and hence their noise,
    and are no independent evidence. Simulated for one pair, with normal, t3 and skewed noise and with noise of another
    size for every trait, 3.5% to 6.1% of its p-values were 0.05 or less, and 0% to 1.3% were 0.01 or less. It needs no
    distribution, and it can only rank: whatever the scores are, no more than a share x of them has a p-value of x or
    less, so that correction leaves 1 everywhere. With one residual a pair and trait, an emergent trait cannot be
    distinguished from heavy-tailed noise.
    """
    if top < 0:
        raise UsageError(f"the number of largest excesses cannot be negative, got {top}")
    one, other = paired.components[paired.first], paired.components[paired.second]
    kinds = np.stack([paired.domains[paired.first], paired.domains[paired.second]], axis=1)
    blocks = np.unique(kinds, axis=0, return_inverse=True)[1].ravel()
    sides = [(paired.scores, np.maximum(one, other)), (-paired.scores, -np.minimum(one, other))]
    permuted = np.stack([_random_place_p(scores, bound, blocks) for scores, bound in sides])
    residuals = _studentised(paired, blocks)
    additive = np.stack([_residual_p(sign * residuals, blocks, paired.reverse) for sign in (1.0, -1.0)])
    tails = [(p, benjamini_hochberg(p.ravel()).adjusted.reshape(p.shape)) for p in (permuted, additive)]
    made = [
        EmergentSide(
            excess=scores - bound,
            bound=sign * bound,
            p_value=tails[0][0][i],
            adjusted=tails[0][1][i],
            p_additive=tails[1][0][i],
            adjusted_additive=tails[1][1][i],
            top=_largest(scores - bound, top),
        )
        for i, (sign, (scores, bound)) in enumerate(zip((1.0, -1.0), sides, strict=True))
    ]
    return Emergence(made[0], made[1])


def precision_recall(predicted: ArrayLike, truth: ArrayLike, *, guess: float = 0.5) -> PrecisionRecall:
    """Precision and recall of ``predicted`` cells (such as group x dimension x polarity, bool) against ``truth``.

    The baseline is a guess that says yes with probability ``guess`` for every cell: its precision is the share of cells
    that are true, its recall is ``guess``.
    """
    yes, true = np.asarray(predicted, dtype=bool), np.asarray(truth, dtype=bool)
    if yes.shape != true.shape or not yes.size:
        raise UsageError(
            f"predicted and truth must have the same shape and not be empty, got {yes.shape} and {true.shape}"
        )

    tp, fp, fn = (int(np.count_nonzero(part)) for part in (yes & true, yes & ~true, ~yes & true))
    return PrecisionRecall(
        precision=tp / (tp + fp) if tp + fp else np.nan,
        recall=tp / (tp + fn) if tp + fn else np.nan,
        tp=tp,
        fp=fp,
        fn=fn,
        tn=yes.size - tp - fp - fn,
        chance_precision=(tp + fn) / yes.size,
        chance_recall=guess if tp + fn else np.nan,
        p_value=float(scipy.stats.hypergeom.sf(tp - 1, yes.size, tp + fn, tp + fp)),
    )


def _random_place_p(scores: Floats, bound: Floats, blocks: Places) -> Floats:
    """How often a random score of a block less a random bound of it is as large, (n, traits)."""
    p = np.full(scores.shape, np.nan)
    for rows in (np.flatnonzero(blocks == block) for block in np.unique(blocks)):
        for t in range(scores.shape[1]):
            at = rows[~np.isnan(scores[rows, t] - bound[rows, t])]
            if len(at):
                s, m = scores[at, t], bound[at, t]
                combined = np.sort((s[:, None] - m[None, :]).ravel())
                p[at, t] = 1.0 - np.searchsorted(combined, (s - m) - _slack(s, m)) / len(combined)
    return p


def _studentised(paired: Paired, blocks: Places) -> Floats:
    """Residuals (n, traits) of the sum of what the components contribute, in units of the noise without them.

    NaN where the residual is zero whatever the score, or no freedom is left.
    """
    t = np.full(paired.scores.shape, np.nan)
    present = ~np.isnan(paired.scores)
    for block in np.unique(blocks):
        patterns, pattern = np.unique(present[blocks == block], axis=1, return_inverse=True)
        for i in range(patterns.shape[1]):
            rows = np.flatnonzero(blocks == block)[patterns[:, i]]
            if not len(rows):
                continue
            at = np.ix_(rows, np.flatnonzero(pattern.ravel() == i))
            t[at] = _deleted_residuals(paired.scores[at], paired.first[rows], paired.second[rows])
    return t


def _deleted_residuals(scores: Floats, first: Places, second: Places) -> Floats:
    codes = [side[:, None] == np.unique(side) for side in (first, second)]
    basis, size, _ = np.linalg.svd(np.concatenate(codes, axis=1).astype(np.float64), full_matrices=False)
    basis = basis[:, size > 1e-9 * size.max(initial=0.0)]
    left = scores - basis @ (basis.T @ scores)
    free = 1.0 - (basis**2).sum(axis=1)[:, None]  # how much of a score its residual keeps
    freedom = float(len(scores) - basis.shape[1] - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = ((left**2).sum(axis=0) - left**2 / free) / freedom
        t = left / np.sqrt(np.maximum(noise, 0.0) * free)
    known = (free > 1e-9) & (freedom > 0.0) & (noise > (_ROUNDING * np.abs(scores).max()) ** 2)
    return np.where(known, t, np.nan)


def _share_as_large(residuals: Floats, blocks: Places) -> Floats:
    """Which share of all residuals of its block is as large as each, (n, traits)."""
    p = np.full(residuals.shape, np.nan)
    for block in np.unique(blocks):
        own = residuals[blocks == block]
        known = np.sort(own[~np.isnan(own)])
        if len(known):
            below = np.searchsorted(known, own - np.abs(own) * _TIED)
            p[blocks == block] = np.where(np.isnan(own), np.nan, 1.0 - below / len(known))
    return p


def _residual_p(residuals: Floats, blocks: Places, reverse: Places) -> Floats:
    """Of pairs in one order among the residuals of such pairs; of those in both, of the mean among such means."""
    both = reverse >= 0
    own = np.where(both[:, None], (residuals + residuals[reverse]) / 2.0, residuals)
    return _share_as_large(own, 2 * blocks + both)


def _slack(*sides: Floats) -> float:
    return _ROUNDING * max(float(np.abs(side).max(initial=0.0)) for side in sides)


def _largest(excess: Floats, top: int) -> Places:
    """Places (k, 2) of the largest values above zero; of equals the earlier."""
    order = np.argsort(np.where(excess > 0.0, -excess, np.inf), axis=None, kind="stable")[:top]
    order = order[excess.ravel()[order] > 0.0]
    return np.stack(np.unravel_index(order, excess.shape), axis=1)
