"""RIPA: the inner product of a word with the direction between two target words."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.studies.associations.metrics import Measure, Vectors


def ripa(words: ArrayLike, pairs: ArrayLike) -> NDArray[np.float64]:
    """Compute the relational inner product association of words with pairs of words.

    Parameters
    ----------
    words : (n, d) array-like
        Vectors; their lengths count.
    pairs : (p, 2, d) array-like
        Vectors of pairs such as man and woman.

    Returns
    -------
    (n,) float64
        Mean inner product of each word with the unit differences of the pairs; positive near the first of each pair.

    References
    ----------
    .. [1] Ethayarajh, K., Duvenaud, D., and Hirst, G. (2019). Understanding undesirable word embedding associations.
       ACL, 1696-1705.

    Examples
    --------
    >>> import biassay
    >>> biassay.ripa([[1, 2]], [[[1, 0], [-1, 0]]]).tolist()
    [1.0]
    """
    first_and_second = np.asarray(pairs, dtype=np.float64)
    differences = first_and_second[:, 0] - first_and_second[:, 1]
    lengths = np.linalg.norm(differences, axis=1, keepdims=True)
    if not lengths.all():
        raise UsageError("both vectors of a pair are equal, so there is no direction between them")
    scores: NDArray[np.float64] = np.asarray(words, dtype=np.float64) @ (differences / lengths).mean(axis=0)
    return scores


def _score_splits(targets: Vectors, in_x: NDArray[np.bool_], A: Vectors, B: Vectors) -> NDArray[np.float64]:
    """Compute the mean RIPA of A minus that of B over all pairs of a word in X and a word in Y."""
    distances = scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(targets))
    inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=distances > 0.0)
    products = targets @ (A.mean(axis=0) - B.mean(axis=0))
    # The sum of (products[x] - products[y]) * inverse[x, y] over x in X and all y: pairs within X cancel.
    sums = in_x @ (products * inverse.sum(axis=0) - inverse @ products)
    scores: NDArray[np.float64] = sums / (in_x.sum(axis=1) * (~in_x).sum(axis=1))
    return scores


METRIC = Measure(
    "ripa",
    "RIPA",
    _score_splits,
    unit_vectors=False,
    claim="These attribute words of A lie further than those of B in the direction from Y to X. Long "
    "vectors count more.",
    source="Ethayarajh et al. 2019, Understanding Undesirable Word Embedding Associations, ACL",
)
