"""ECT: whether two target sets order the attribute words alike."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.metrics import Measure, Vectors


def ect(X: ArrayLike, Y: ArrayLike, A: ArrayLike) -> float:
    """Compute the embedding coherence test: the rank correlation of two target sets over attribute words.

    Parameters
    ----------
    X, Y, A : (n, d), (m, d), (k, d) array-like
        Vectors; only their directions count.

    Returns
    -------
    float
        Spearman's correlation, over the words of A, of their cosines with the centers of X and Y. 1 means that both
        sets order the words alike.

    References
    ----------
    .. [1] Dev, S., and Phillips, J. (2019). Attenuating bias in word vectors. AISTATS, 879-887.

    Examples
    --------
    >>> import biassay
    >>> round(biassay.ect([[1, 0]], [[0, 1]], [[1, 0], [2, 1], [1, 1], [1, 2]]), 6)
    -1.0
    """
    x, y, rows = unit_rows(X, "X").mean(axis=0), unit_rows(Y, "Y").mean(axis=0), unit_rows(A, "A")
    return float(_correlate_ranks((rows @ x)[None], (rows @ y)[None])[0])


def _correlate_ranks(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute Spearman's correlation of every pair of rows."""
    one, other = (_rank(values) - (values.shape[1] + 1) / 2.0 for values in (first, second))
    products = [np.einsum("ij,ij->i", *pair) for pair in ((one, other), (one, one), (other, other))]
    correlations: NDArray[np.float64] = products[0] / np.sqrt(products[1] * products[2])
    return correlations


def _rank(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank the values of each row from 1; equal values share their mean rank."""
    ordered = np.sort(values, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        ties: NDArray[np.float64] = scipy.stats.rankdata(values, axis=1)
        return ties
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, values.argsort(axis=1), np.arange(1.0, values.shape[1] + 1.0)[None], axis=1)
    return ranks


def _score_splits(targets: Vectors, in_x: NDArray[np.bool_], A: Vectors, B: Vectors) -> NDArray[np.float64]:
    """Compute 1 minus the ECT over all attribute words. Centers need no length: ranks do not depend on it."""
    products = targets @ np.concatenate([A, B]).T
    of_x = in_x @ products
    return 1.0 - _correlate_ranks(of_x, products.sum(axis=0) - of_x)


METRIC = Measure(
    "ect",
    "1 - ECT",
    _score_splits,
    signed=False,
    claim="X and Y order these attribute words differently. It has no direction.",
    source="Dev and Phillips 2019, Attenuating Bias in Word Vectors, AISTATS",
)
