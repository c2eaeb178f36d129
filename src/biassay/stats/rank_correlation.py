"""Spearman's rank correlation with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from biassay.errors import DegenerateError


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation of `n` pairs with its interval."""

    correlation: float
    low: float
    high: float
    n: int


def correlate_ranks(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95) -> RankCorrelation:
    """Compute Spearman's correlation with an interval on Fisher's scale.

    Parameters
    ----------
    first, second : (n,) array-like
        Paired values, at least four.
    confidence : float
        Confidence of the interval.

    References
    ----------
    .. [1] Bonett, D. G., and Wright, T. A. (2000). Sample size requirements for estimating Pearson, Kendall and
       Spearman correlations. Psychometrika, 65(1), 23-28.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(x) < 4 or len(set(x.tolist())) < 2 or len(set(y.tolist())) < 2:
        raise DegenerateError("a rank correlation needs at least four pairs that are not all equal")
    correlation = float(scipy.stats.spearmanr(x, y).statistic)
    z = math.atanh(min(max(correlation, -1.0 + 1e-12), 1.0 - 1e-12))
    half = float(scipy.special.ndtri(0.5 + confidence / 2.0)) * math.sqrt((1.0 + correlation**2 / 2.0) / (len(x) - 3))
    return RankCorrelation(correlation, math.tanh(z - half), math.tanh(z + half), len(x))
