"""Scale of a model's similarities: their spread between pairs of frequent words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

__all__ = ["log_ratio_variance", "similarity_sd"]

Floats = NDArray[np.float64]


def similarity_sd(similarities: ArrayLike) -> float:
    """Return the standard deviation of the similarities of all pairs of words.

    Parameters
    ----------
    similarities : (words, words) array-like
        Symmetric. The diagonal is not used.

    Returns
    -------
    float
        The pairs are taken as a population, so the divisor is their number.
    """
    table = _checked(similarities)
    return float(table[np.triu_indices(len(table), 1)].std())


def log_ratio_variance(old: ArrayLike, new: ArrayLike) -> float:
    """Return the jackknife variance of log(SD of new / SD of old), deleting one word at a time.

    Parameters
    ----------
    old, new : (words, words) array-like
        Similarities of the same words on two models.

    Returns
    -------
    float
    """
    first, second = _checked(old), _checked(new)
    if first.shape != second.shape:
        raise UsageError(f"the scales of both models need the same words, got {len(first)} and {len(second)}")
    n = len(first)
    if n < 4:
        raise UsageError(f"the variance of a scale needs at least 4 words, got {n}")
    logs = 0.5 * np.log(_variances_without_one(second) / _variances_without_one(first))
    return float((n - 1) / n * ((logs - logs.mean()) ** 2).sum())


def _variances_without_one(table: Floats) -> Floats:
    """Variance over the pairs that are left when each word is deleted."""
    n = len(table)
    centred = table - table[np.triu_indices(n, 1)].mean()
    np.fill_diagonal(centred, 0.0)
    of_word, squares = centred.sum(axis=1), (centred**2).sum(axis=1)
    pairs = (n - 1) * (n - 2) / 2
    mean = (of_word.sum() / 2.0 - of_word) / pairs
    return np.asarray((squares.sum() / 2.0 - squares) / pairs - mean**2)


def _checked(similarities: ArrayLike) -> Floats:
    table = np.asarray(similarities, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise UsageError(f"similarities of at least two words with each other are needed, got shape {table.shape}")
    return table
