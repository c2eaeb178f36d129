"""Ways to compare vectors: each changes them first, and then takes cosines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["REMOVED", "SIMILARITIES", "directions"]

REMOVED = 3
"""Principal components that are taken out."""
Floats = NDArray[np.floating]
Change = Callable[[Floats], NDArray[np.float64]]


def directions(name: str, vectors: Floats, background: Floats) -> NDArray[np.float64]:
    """Unit vectors (n, d) whose products are the similarities; a row of NaN is a vector of which nothing is left.

    ``background`` (m, d) are vectors of words that mean nothing here.
    """
    changed = SIMILARITIES[name](np.asarray(background, dtype=np.float64))(vectors)
    lengths = np.linalg.norm(changed, axis=1, keepdims=True)
    most = np.linalg.norm(vectors, axis=1, keepdims=True) if name != "rank" else 1.0
    return np.asarray(np.divide(changed, lengths, out=np.full_like(changed, np.nan), where=lengths > 1e-6 * most))


def _cosine(_: Floats) -> Change:
    return lambda vectors: np.asarray(vectors, dtype=np.float64)


def _centred(background: Floats) -> Change:
    """Without the mean of the background, which all vectors of a model may share."""
    mean = background.mean(axis=0)
    return lambda vectors: np.asarray(vectors - mean, dtype=np.float64)


def _components(background: Floats) -> Change:
    """Without that mean and the directions in which the background varies most."""
    mean = background.mean(axis=0)
    _, _, axes = np.linalg.svd(background - mean, full_matrices=False)
    top = axes[: min(REMOVED, max(0, min(background.shape) - 1))]

    def change(vectors: Floats) -> NDArray[np.float64]:
        centred = np.asarray(vectors - mean, dtype=np.float64)
        return np.asarray(centred - centred @ top.T @ top)

    return change


def _rank(_: Floats) -> Change:
    """Ranks of the components: cosines become Spearman's correlations."""

    def change(vectors: Floats) -> NDArray[np.float64]:
        ranks = scipy.stats.rankdata(vectors, axis=1)
        return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))

    return change


SIMILARITIES: Mapping[str, Callable[[Floats], Change]] = {
    "cosine": _cosine,
    "centred": _centred,
    "components": _components,
    "rank": _rank,
}
