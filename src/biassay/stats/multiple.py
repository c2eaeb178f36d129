"""Corrections for testing many hypotheses at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

__all__ = ["Correction", "benjamini_hochberg", "holm"]


@dataclass(frozen=True, eq=False)
class Correction:
    """Adjusted p-values and decisions, in the order the p-values were given.

    Attributes
    ----------
    adjusted : (n,) float64
        Adjusted p-values; NaN where no p-value was given.
    rejected : (n,) bool
        Whether the null hypothesis is rejected at ``alpha``. False where no p-value was given.
    alpha : float
    n : int
        Number of hypotheses corrected for: the p-values that are not NaN.
    """

    adjusted: NDArray[np.float64]
    rejected: NDArray[np.bool_]
    alpha: float
    n: int


def holm(p_values: ArrayLike, alpha: float = 0.01) -> Correction:
    """Holm's step-down correction, which bounds the probability of any false rejection by ``alpha``.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN marks a missing one, which is not corrected for.
    alpha : float
        The level of significance.

    Returns
    -------
    Correction

    Notes
    -----
    Valid whatever the dependence between the tests.

    References
    ----------
    .. [1] Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics,
       6(2), 65-70.

    Examples
    --------
    >>> import biassay
    >>> biassay.holm([0.01, 0.04, 0.03], alpha=0.05).adjusted
    array([0.03, 0.06, 0.06])
    """
    p, order = _sorted(p_values, alpha)
    n = len(order)
    stepped = np.maximum.accumulate(p[order] * np.arange(n, 0, -1))
    return _unsorted(stepped, order, len(p), alpha)


def benjamini_hochberg(p_values: ArrayLike, alpha: float = 0.01) -> Correction:
    """Benjamini and Hochberg's step-up correction, which bounds the expected share of false rejections by ``alpha``.

    Parameters
    ----------
    p_values : (n,) array-like
        NaN marks a missing one, which is not corrected for.
    alpha : float
        The false discovery rate.

    Returns
    -------
    Correction

    Notes
    -----
    Valid for tests that are independent or positively dependent.

    References
    ----------
    .. [1] Benjamini, Y., and Hochberg, Y. (1995). Controlling the false discovery rate: a practical and powerful
       approach to multiple testing. Journal of the Royal Statistical Society B, 57(1), 289-300.

    Examples
    --------
    >>> import biassay
    >>> biassay.benjamini_hochberg([0.01, 0.04, 0.03], alpha=0.05).adjusted
    array([0.03, 0.04, 0.04])
    """
    p, order = _sorted(p_values, alpha)
    n = len(order)
    stepped = np.minimum.accumulate((p[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    return _unsorted(stepped, order, len(p), alpha)


def _sorted(p_values: ArrayLike, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise UsageError(f"p-values must be a list of numbers, got an array of shape {p.shape}")
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must lie between 0 and 1, got {alpha}")
    if ((p < 0.0) | (p > 1.0)).any():
        raise UsageError("p-values must lie between 0 and 1 (NaN marks one that is missing)")
    given = np.flatnonzero(~np.isnan(p))
    return p, given[np.argsort(p[given], kind="stable")]


def _unsorted(stepped: NDArray[np.float64], order: NDArray[np.intp], n: int, alpha: float) -> Correction:
    adjusted = np.full(n, np.nan)
    adjusted[order] = np.minimum(stepped, 1.0)
    rejected = np.zeros(n, dtype=bool)
    rejected[order] = adjusted[order] <= alpha
    return Correction(adjusted, rejected, alpha, len(order))
