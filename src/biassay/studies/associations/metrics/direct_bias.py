"""DirectBias: how far neutral words lie along the main direction between target words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.metrics import Measure, Vectors


def direct_bias(words: ArrayLike, groups: ArrayLike, *, c: float = 1.0) -> NDArray[np.float64]:
    """Compute the direct bias of words along the main direction within groups of words.

    Parameters
    ----------
    words : (n, d) array-like
        Vectors of words that ought to be neutral; only their directions count.
    groups : (g, s, d) array-like
        Vectors of groups of words that differ in the attribute, such as pairs of man and woman.
    c : float
        Exponent; below 1 it counts small cosines more.

    Returns
    -------
    (n,) float64
        Absolute cosine of each word with the first principal direction of the differences from the center of each
        group, to the power c. The direct bias of a test is the mean.

    References
    ----------
    .. [1] Bolukbasi, T., Chang, K.-W., Zou, J., Saligrama, V., and Kalai, A. (2016). Man is to computer programmer as
       woman is to homemaker? NeurIPS, 4349-4357.

    Examples
    --------
    >>> import biassay
    >>> biassay.direct_bias([[1, 0], [1, 1]], [[[1, 0], [-1, 0]]]).round(2).tolist()
    [1.0, 0.71]
    """
    vectors = np.asarray(groups, dtype=np.float64)
    vectors = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    differences = (vectors - vectors.mean(axis=1, keepdims=True)).reshape(-1, vectors.shape[2])
    direction = np.linalg.svd(differences, full_matrices=False)[2][0]
    return np.asarray(np.abs(unit_rows(words, "words") @ direction) ** c, dtype=np.float64)


def _score(targets: Vectors, in_x: NDArray[np.bool_], A: Vectors, B: Vectors) -> NDArray[np.float64]:
    """Compute the direct bias of all attribute words; every pair of a word in X and a word in Y is a group."""
    (observed,) = in_x
    n, m = observed.sum(), (~observed).sum()
    # The sum of (x - y)(x - y)' over all pairs, in the basis of the targets: far smaller than one row per pair.
    basis, coordinates = np.linalg.qr(targets.T)
    weights = np.diag(np.where(observed, m, n)) - (observed[:, None] != observed[None])
    direction = basis @ np.linalg.eigh(coordinates @ weights @ coordinates.T)[1][:, -1]
    return np.array([np.abs(np.concatenate([A, B]) @ direction).mean()])


METRIC = Measure(
    "direct-bias",
    "DirectBias",
    _score,
    signed=False,
    permutes=False,
    claim="How far the attribute words lie along the main direction between X and Y, whichever side. It has no "
    "p-value: words at random have a positive score too.",
    source="Bolukbasi et al. 2016, Man is to Computer Programmer as Woman is to Homemaker?, NeurIPS",
)
