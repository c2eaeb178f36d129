"""SAME: the cosine of a word with the direction between two attribute sets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.metrics import Measure, Vectors


def same(words: ArrayLike, *attributes: ArrayLike) -> NDArray[np.float64]:
    """Compute the SAME score of words for two or more attribute sets.

    Parameters
    ----------
    words : (n, d) array-like
        Vectors; only their directions count.
    *attributes : (k, d) array-like
        Vectors of each attribute set.

    Returns
    -------
    (n,) float64
        With two sets the signed score: positive near the first set. With more, the sum of absolute cosines with
        orthogonal directions between the first set and each other one; the directions after the first are weighted by
        their lengths.

    References
    ----------
    .. [1] Schröder, S., Schulz, A., Kenneweg, P., Feldhans, R., Hinder, F., and Hammer, B. (2021). Evaluating metrics
       for bias in word embeddings. arXiv:2111.07864.

    Examples
    --------
    >>> import biassay
    >>> biassay.same([[1, 0], [0, 1]], [[1, 0]], [[-1, 0]]).round(2).tolist()
    [1.0, 0.0]
    """
    rows = unit_rows(words, "words")
    first, *others = (unit_rows(vectors, f"attribute set {i}").mean(axis=0) for i, vectors in enumerate(attributes, 1))
    directions: list[NDArray[np.float64]] = []
    lengths: list[float] = []
    for other in others:
        direction = first - other
        for known in directions:
            direction = direction - (direction @ known) * known
        lengths.append(float(np.linalg.norm(direction)))
        directions.append(direction / lengths[-1])
    cosines = rows @ np.array(directions).T
    if len(directions) == 1:
        return np.asarray(cosines[:, 0], dtype=np.float64)
    return np.asarray(np.abs(cosines) @ np.array([1.0, *lengths[1:]]), dtype=np.float64)


def _score_splits(targets: Vectors, in_x: NDArray[np.bool_], A: Vectors, B: Vectors) -> NDArray[np.float64]:
    """Compute the mean score of X minus that of Y."""
    scores = same(targets, A, B)
    means: NDArray[np.float64] = in_x @ scores / in_x.sum(axis=1) - ~in_x @ scores / (~in_x).sum(axis=1)
    return means


METRIC = Measure(
    "same",
    "SAME",
    _score_splits,
    word_scores=same,
    claim="X rather than Y points in the direction from B to A. Unlike d, it does not divide by the spread of X and Y.",
    source="Schröder et al. 2021, Evaluating Metrics for Bias in Word Embeddings, arXiv:2111.07864",
)
