"""Effect and crossed p-value without each word in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.stats.association import FLAT
from biassay.stats.blocks import row_blocks
from biassay.stats.crossed import crossed_test_without

__all__ = ["effects_without", "p_without"]

Floats = NDArray[np.float64]


def effects_without(cosines: NDArray[np.floating], n: int, k: int) -> Floats:
    """The effect size by word without each word in turn, in the order X, Y, A, B; NaN for the only word of a set."""
    columns = cosines.shape[1]
    signs = np.r_[np.full(k, 1.0 / k), np.full(columns - k, -1.0 / (columns - k))]
    scores = np.concatenate(
        [np.asarray(cosines[block], dtype=np.float64) @ signs for block in row_blocks(cosines.shape)]
    )
    return np.concatenate([_targets(scores, n), _attributes(cosines, n, k)])


def _targets(scores: Floats, n: int) -> Floats:
    """Sums without each target are sums less its own."""
    total = len(scores)
    scores = scores - scores.mean()
    in_x = np.arange(total) < n
    sums = (
        np.where(in_x, scores[:n].sum() - scores, scores[:n].sum()),
        np.where(in_x, scores[n:].sum(), scores[n:].sum() - scores),
    )
    sizes = np.where(in_x, n - 1, n), np.where(in_x, total - n, total - n - 1)
    squares = (scores**2).sum() - scores**2
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = sums[0] / sizes[0] - sums[1] / sizes[1]
        variance = (squares - (sums[0] + sums[1]) ** 2 / (total - 1)) / (total - 2)
        return np.asarray(np.where(variance > FLAT**2, apart / np.sqrt(np.maximum(variance, 0.0)), np.nan))


def _attributes(cosines: NDArray[np.floating], n: int, k: int) -> Floats:
    sets = [cosines[:, :k], cosines[:, k:]]
    means = [own.mean(axis=1, keepdims=True, dtype=np.float64) for own in sets]
    found = []
    for own, mean, other, sign in ((sets[0], means[0], means[1], 1.0), (sets[1], means[1], means[0], -1.0)):
        size = own.shape[1]
        effects = np.full(size, np.nan)
        for block in row_blocks(own.T.shape) if size > 1 else ():
            scores = sign * ((mean * size - own[:, block]) / (size - 1) - other)
            spread = scores.std(axis=0, ddof=1)
            apart = scores[:n].mean(axis=0) - scores[n:].mean(axis=0)
            np.divide(apart, spread, out=effects[block], where=spread > FLAT)
        found.append(effects)
    return np.concatenate(found)


def p_without(cosines: NDArray[np.floating], n: int, k: int, place: int) -> float | None:
    """Return the crossed p-value without one word; None if too few words are left."""
    found = crossed_test_without(cosines, n, k, place)
    return None if found is None else found.p_value
