"""MAC: the mean cosine distance of targets from attribute sets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.stats.association import unit_rows
from biassay.studies.associations.metrics import Measure, Vectors


def mac(words: ArrayLike, *attributes: ArrayLike) -> NDArray[np.float64]:
    """Compute the mean average cosine distance of words.

    Parameters
    ----------
    words : (n, d) array-like
        Vectors; only their directions count.
    *attributes : (k, d) array-like
        Vectors of each attribute set.

    Returns
    -------
    (n,) float64
        Mean over the sets of the mean of 1 - cosine. The MAC of a test is the mean over its words; 1 means that
        targets and attributes are unrelated.

    References
    ----------
    .. [1] Manzini, T., Lim, Y. C., Tsvetkov, Y., and Black, A. W. (2019). Black is to criminal as Caucasian is to
       police. NAACL-HLT, 615-621.

    Examples
    --------
    >>> import biassay
    >>> biassay.mac([[1, 0]], [[1, 0], [0, 1]]).tolist()
    [0.5]
    """
    centers = [unit_rows(vectors, f"attribute set {i}").mean(axis=0) for i, vectors in enumerate(attributes, 1)]
    return np.asarray(1.0 - unit_rows(words, "words") @ np.mean(centers, axis=0), dtype=np.float64)


def _score(targets: Vectors, in_x: NDArray[np.bool_], A: Vectors, B: Vectors) -> NDArray[np.float64]:
    return np.full(len(in_x), mac(targets, A, B).mean())


METRIC = Measure(
    "mac",
    "MAC",
    _score,
    word_scores=mac,
    signed=False,
    permutes=False,
    claim="How unrelated all targets and all attributes are. It does not compare X with Y, so it has no p-value.",
    source="Manzini et al. 2019, Black is to Criminal as Caucasian is to Police, NAACL-HLT",
)
