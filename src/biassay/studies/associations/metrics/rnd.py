"""RND: how much further attribute words are from the center of Y than from that of X."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.metrics import Measure, Vectors


def rnd(X: ArrayLike, Y: ArrayLike, A: ArrayLike) -> NDArray[np.float64]:
    """Compute the relative norm distance of attribute words from two target sets.

    Parameters
    ----------
    X, Y, A : (n, d), (m, d), (k, d) array-like
        Vectors; only their directions count.

    Returns
    -------
    (k,) float64
        Distance of each word of A from the center of X minus that from the center of Y; negative near X. The RND of a
        test is the mean over A.

    References
    ----------
    .. [1] Garg, N., Schiebinger, L., Jurafsky, D., and Zou, J. (2018). Word embeddings quantify 100 years of gender and
       ethnic stereotypes. PNAS, 115(16), E3635-E3644.

    Examples
    --------
    >>> import biassay
    >>> biassay.rnd([[1, 0]], [[-1, 0]], [[1, 0]]).tolist()
    [-2.0]
    """
    x, y, rows = unit_rows(X, "X").mean(axis=0), unit_rows(Y, "Y").mean(axis=0), unit_rows(A, "A")
    return np.asarray(np.linalg.norm(rows - x, axis=1) - np.linalg.norm(rows - y, axis=1), dtype=np.float64)


def _score_splits(targets: Vectors, in_x: NDArray[np.bool_], A: Vectors, B: Vectors) -> NDArray[np.float64]:
    """Compute minus the mean RND of A plus that of B, so that it is positive if X is nearer to A."""
    x = in_x.astype(np.float64)
    gram, near = targets @ targets.T, targets @ np.concatenate([A, B]).T
    within_x, near_x = x @ gram, x @ near  # sums over X; those over Y are the rest
    squared_x = np.einsum("ij,ij->i", within_x, x)
    squared_y = gram.sum() - 2.0 * within_x.sum(axis=1) + squared_x
    sides = ((near_x, squared_x, x.sum(axis=1)), (near.sum(axis=0) - near_x, squared_y, (1.0 - x).sum(axis=1)))
    from_x, from_y = (
        np.sqrt(np.maximum(1.0 - (2.0 / n)[:, None] * products + (squared / n**2)[:, None], 0.0))
        for products, squared, n in sides
    )
    weights = np.repeat([1.0 / len(A), -1.0 / len(B)], [len(A), len(B)])
    scores: NDArray[np.float64] = (from_y - from_x) @ weights
    return scores


METRIC = Measure(
    "rnd",
    "RND",
    _score_splits,
    claim="These attribute words of A rather than B are nearer to the center of X than to that of Y.",
    source="Garg et al. 2018, Word embeddings quantify 100 years of gender and ethnic stereotypes, PNAS 115(16)",
)
