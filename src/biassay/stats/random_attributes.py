"""How large is large: effects of attribute sets that were drawn at random from a vocabulary."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["random_effects_of", "share_reaching"]

Floats = NDArray[np.float64]


def share_reaching(
    cosines: Floats, n: int, sizes: tuple[int, int], observed: float, draws: int, seed: int
) -> float | None:
    """How many of ``draws`` random pairs of attribute sets give an effect as far from 0 as ``observed``.

    ``cosines`` (targets, vocabulary) of words, the first ``n`` rows those of X. None: the vocabulary is too small for
    ``sizes``.
    """
    if cosines.shape[1] < 2 * sum(sizes):
        return None
    found = random_effects_of(cosines, n, sizes, draws, seed)
    return float((np.abs(found) >= abs(observed)).mean())


def random_effects_of(cosines: Floats, n: int, sizes: tuple[int, int], draws: int, seed: int) -> Floats:
    """Effect sizes by word with random attribute sets of the ``sizes`` of A and B, (draws,)."""
    scores = cosines @ _weights(cosines.shape[1], *sizes, draws, seed)
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
