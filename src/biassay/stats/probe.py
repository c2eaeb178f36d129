"""Linear probes: how well a ridge classifier recovers classes from vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

Floats = NDArray[np.float64]
_PENALTY = 1.0  # in units of the mean squared distance of vectors from their mean
_INTERCEPT = 1e3  # squared length of the constant that stands for an intercept, in the same unit
_FOLDS = 10


@dataclass(frozen=True, eq=False)
class Probe:
    """Cross-validated accuracy of a linear probe, with what it reaches by chance.

    Attributes
    ----------
    accuracy, ci_low, ci_high : float
        Share of items that a probe classifies correctly without having seen them, with Wilson's interval over items.
        Folds share training items, so the interval is that of `n_effective` items.
    chance : float
        Mean accuracy if vectors are assigned to classes at random.
    p_value : float
        Probability of an accuracy as high by chance, from permutations.
    correct : (n,) float64
        Share of the repetitions in which each item is classified correctly.
    n_effective : float
        Number of independent items with the same variance of the accuracy by chance, at most n.
    """

    accuracy: float
    ci_low: float
    ci_high: float
    chance: float
    p_value: float
    correct: Floats
    n_effective: float


@dataclass(frozen=True)
class ProbeDifference:
    """Difference of the accuracies of two probes of the same items."""

    value: float
    ci_low: float
    ci_high: float
    p_value: float


def fit_linear_probe(vectors: ArrayLike, labels: ArrayLike) -> Floats:
    """Return the weights (classes, d) of a ridge classifier with intercept.

    Parameters
    ----------
    vectors : (n, d) array-like
    labels : (n,) array-like of int
        Classes, numbered from 0.
    """
    rows, targets = np.asarray(vectors, dtype=np.float64), _encode_labels(labels)
    centred = rows - rows.mean(axis=0)
    gram = centred @ centred.T
    penalty = _PENALTY * max(float(np.trace(gram)) / len(rows), np.finfo(float).tiny)
    dual = np.linalg.solve(gram + penalty * np.eye(len(rows)), targets - targets.mean(axis=0))
    return np.asarray(dual.T @ centred)


def probe_classes(
    vectors: ArrayLike,
    labels: ArrayLike,
    *,
    n_repeats: int = 5,
    n_permutations: int = 500,
    confidence: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> Probe:
    """Estimate how well a linear probe recovers classes from vectors that it was not trained on.

    The probe is a ridge classifier in 10-fold cross-validation, with equally many items of each class in every fold.

    Parameters
    ----------
    vectors : (n, d) array-like
    labels : (n,) array-like of int
        Classes, numbered from 0, with equally many items each.
    n_repeats : int
        Number of random divisions into folds.
    n_permutations : int
        Number of random assignments of vectors to classes.
    confidence : float
        Confidence of the interval.
    rng : Generator or int, optional
        Source of folds and permutations.

    Returns
    -------
    Probe
    """
    rng = np.random.default_rng(rng)
    rows, targets = np.asarray(vectors, dtype=np.float64), _encode_labels(labels)
    n, n_classes = targets.shape
    if len(rows) != n or n_classes < 2 or len(set(targets.sum(axis=0).tolist())) > 1:
        raise UsageError("a probe needs one label per vector, and two or more classes of equal size")
    inverse = _invert_kernel(rows)
    identity = np.arange(n)[None, :]
    correct = np.mean(
        [_classify(inverse, targets, identity, _draw_folds(targets, rng))[0] for _ in range(n_repeats)], axis=0
    )
    drawn = np.argsort(rng.random((n_permutations, n)), axis=1)
    by_chance = _classify(inverse, targets, drawn, _draw_folds(targets, rng)).mean(axis=1)
    accuracy, chance, variance = float(correct.mean()), float(by_chance.mean()), float(by_chance.var())
    n_effective = min(n, chance * (1.0 - chance) / variance) if variance > 0.0 else n
    low, high = _compute_wilson(accuracy, n_effective, confidence)
    return Probe(
        accuracy,
        low,
        high,
        chance,
        (1.0 + float((by_chance >= accuracy - 1e-12).sum())) / (1.0 + n_permutations),
        correct,
        n_effective,
    )


def compare_probes(old: Probe, new: Probe, *, confidence: float = 0.95) -> ProbeDifference:
    """Estimate how much the accuracy of a probe changes, by items that both probes classified.

    Parameters
    ----------
    old, new : Probe
        Probes of the same items in the same order.
    confidence : float
        Confidence of Newcombe's paired interval.

    References
    ----------
    .. [1] Newcombe, R. G. (1998). Improved confidence intervals for the difference between binomial proportions based
       on paired data. Statistics in Medicine, 17(22), 2635-2650.
    """
    limits = [_compute_wilson(one.accuracy, one.n_effective, confidence) for one in (old, new)]
    below = [one.accuracy - low for one, (low, _) in zip((old, new), limits, strict=True)]
    above = [high - one.accuracy for one, (_, high) in zip((old, new), limits, strict=True)]
    varies = old.correct.std() > 0.0 and new.correct.std() > 0.0
    phi = float(np.corrcoef(old.correct, new.correct)[0, 1]) if varies else 0.0
    value = new.accuracy - old.accuracy
    low = value - math.sqrt(max(below[1] ** 2 - 2.0 * phi * below[1] * above[0] + above[0] ** 2, 0.0))
    high = value + math.sqrt(max(above[1] ** 2 - 2.0 * phi * above[1] * below[0] + below[0] ** 2, 0.0))
    changes = new.correct - old.correct
    p_value = float(scipy.stats.ttest_1samp(changes, 0.0).pvalue) if changes.std() > 0.0 else 1.0
    return ProbeDifference(value, low, high, p_value)


def _encode_labels(labels: ArrayLike) -> Floats:
    """Return one column of 0 and 1 per class."""
    given = np.asarray(labels, dtype=np.int64)
    return np.asarray(given[:, None] == np.arange(given.max() + 1), dtype=np.float64)


def _invert_kernel(rows: Floats) -> Floats:
    """Return the inverse of the regularized kernel, from which held-out residuals follow without refitting."""
    centred = rows - rows.mean(axis=0)
    gram = centred @ centred.T
    size = max(float(np.trace(gram)) / len(rows), np.finfo(float).tiny)
    return np.asarray(np.linalg.inv(gram / size + _INTERCEPT + _PENALTY * np.eye(len(rows))))


def _draw_folds(targets: Floats, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Divide items into folds with equally many of each class."""
    size = int(targets[:, 0].sum())
    n_folds = min(_FOLDS, size)
    order = np.stack([rng.permutation(np.flatnonzero(column)) for column in targets.T])
    return [order[:, part].ravel() for part in np.array_split(np.arange(size), n_folds)]


def _classify(
    inverse: Floats, targets: Floats, permutations: NDArray[np.intp], folds: list[NDArray[np.intp]]
) -> NDArray[np.bool_]:
    """Return whether each item is classified correctly with the vectors in each order, (permutations, items)."""
    correct = np.empty(permutations.shape, dtype=bool)
    for fold in folds:
        own = permutations[:, fold]
        block = inverse[own[:, :, None], own[:, None, :]]
        residual = np.linalg.solve(block, inverse[own[:, :, None], permutations[:, None, :]] @ targets)
        predicted = (targets[fold] - residual).argmax(axis=2)
        correct[:, fold] = predicted == targets[fold].argmax(axis=1)
    return correct


def _compute_wilson(share: float, n: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval of a share."""
    z = float(scipy.special.ndtri(0.5 + confidence / 2.0))
    centre = (share + z**2 / (2 * n)) / (1.0 + z**2 / n)
    half = z / (1.0 + z**2 / n) * math.sqrt(max(share * (1.0 - share), 0.0) / n + z**2 / (4 * n**2))
    return max(centre - half, 0.0), min(centre + half, 1.0)
