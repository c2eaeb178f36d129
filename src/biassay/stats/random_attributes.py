"""How large is large: effects of attribute sets that were drawn at random from a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["random_effects_of", "share_reaching"]

Floats = NDArray[np.float64]


def share_reaching(
    cosines: Iterable[Floats], n: int, words: int, sizes: tuple[int, int], observed: float, draws: int, seed: int
) -> float | None:
    """Return how many of ``draws`` random pairs of attribute sets give an effect as far from 0 as ``observed``.

    Parameters
    ----------
    cosines : iterable of (targets, part of the vocabulary) float64
        Consecutive columns of the table of all words. The first ``n`` rows are those of X.
    n : int
    words : int
        Words of the vocabulary.
    sizes : (int, int)
        Words of A and B.
    observed : float
    draws, seed : int

    Returns
    -------
    float or None
        None if the vocabulary is too small for ``sizes``.
    """
    if words < 2 * sum(sizes):
        return None
    found = random_effects_of(cosines, n, words, sizes, draws, seed)
    return float((np.abs(found) >= abs(observed)).mean())


def random_effects_of(
    cosines: Iterable[Floats], n: int, words: int, sizes: tuple[int, int], draws: int, seed: int
) -> Floats:
    """Effect sizes by word with random attribute sets of the ``sizes`` of A and B, (draws,)."""
    weights, start, scores = _weights(words, *sizes, draws, seed), 0, None
    for part in cosines:
        own = part @ weights[start : start + part.shape[1]]
        scores = own if scores is None else np.add(scores, own, out=scores)
        start += part.shape[1]
    assert scores is not None
    scores -= scores.mean(axis=0)
    spread = np.sqrt(np.einsum("ij,ij->j", scores, scores) / (len(scores) - 1))
    apart = scores[:n].mean(axis=0) - scores[n:].mean(axis=0)
    return np.asarray(np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0.0))


@lru_cache(maxsize=8)
def _weights(words: int, k: int, l: int, draws: int, seed: int) -> Floats:  # noqa: E741
    """Columns that average over k random words less l others; cached, for many tests have sets of the same sizes."""
    order = _order(words, draws, seed)
    weights = np.zeros((words, draws))
    np.put_along_axis(weights, order[:k], 1.0 / k, axis=0)
    np.put_along_axis(weights, order[k : k + l], -1.0 / l, axis=0)
    return weights


@lru_cache(maxsize=1)
def _order(words: int, draws: int, seed: int) -> NDArray[np.intp]:
    """In every column the words in random order: sets of all sizes begin alike."""
    return np.argsort(np.random.default_rng(seed).random((words, draws)), axis=0)
