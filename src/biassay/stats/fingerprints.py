"""Agreement of two models on the cosines between two lists of words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

__all__ = ["interaction_correlation"]


def interaction_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Correlate two tables of cosines after removing the means of rows and columns.

    Parameters
    ----------
    first, second : (n, m) array-like
        Cosines of the same words on two models.

    Returns
    -------
    float
        Pearson correlation of the double-centred tables; 0 if one of them is constant after centring.

    Notes
    -----
    The means of rows and columns are left out because frequent words and hubs have high cosines on any model. What is
    left is how each target differs over the attributes.
    """
    one, other = (_centred(np.asarray(table, dtype=np.float64)) for table in (first, second))
    if one.shape != other.shape:
        raise UsageError(f"both tables must have the same words, got {one.shape} and {other.shape}")
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size > 0.0 else 0.0


def _centred(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean())
