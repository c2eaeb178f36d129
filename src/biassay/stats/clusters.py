"""Scores of items that come in clusters (templates, target terms): intervals and p-values that know of them.

Items of one template are answered alike, so that 600 questions from 25 templates say little more than 25. A cluster is
what is drawn: the score is computed without each in turn (jackknife), and Student's t has one degree of freedom fewer
than there are clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

__all__ = ["ClusterEstimate", "cluster_difference", "cluster_estimate", "cluster_totals", "share_estimate"]

Floats = NDArray[np.float64]
_FLAT = 1e-12  # below it, what a cluster changes is rounding


@dataclass(frozen=True)
class ClusterEstimate:
    """A score and what is known of it.

    Attributes
    ----------
    value : float
        The score of all items; NaN where it is undefined (no answer counts).
    standard_error : float
    interval : (float, float)
        NaN where there is none: fewer than two clusters, or all clusters say the same.
    p_value : float
        Two-sided, that the score is ``null``; NaN where there is no interval.
    null, confidence : float
    n_clusters : int
        Clusters with any item that counts.
    largest_share : float
        Share of the one most influential cluster in the variance: near 1, the score rests on it.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    p_value: float
    null: float
    confidence: float
    n_clusters: int
    largest_share: float


def cluster_totals(values: ArrayLike, clusters: ArrayLike, names: ArrayLike | None = None) -> Floats:
    """Sums of the rows of ``values`` (items, m) by cluster, (clusters, m).

    The clusters are ``names``, sorted and each once, or those that have an item.
    """
    values, clusters = np.asarray(values, dtype=np.float64), np.asarray(clusters)
    if values.ndim != 2 or len(values) != len(clusters):
        raise UsageError(f"expected one row for each of {len(clusters)} items, got an array of shape {values.shape}")
    known = np.unique(clusters) if names is None else np.asarray(names)
    at = np.searchsorted(known, clusters)
    if len(clusters) and (not len(known) or (known[np.minimum(at, len(known) - 1)] != clusters).any()):
        raise UsageError("an item is of a cluster that has no name among the sorted names given")
    totals = np.zeros((len(known), values.shape[1]))
    np.add.at(totals, at, values)
    return totals


def cluster_estimate(
    totals: ArrayLike,
    score: Callable[[Floats], Floats],
    *,
    null: float = 0.0,
    confidence: float = 0.95,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> ClusterEstimate:
    """A score of totals over clusters, with an interval for other clusters of the same kind.

    Parameters
    ----------
    totals : (clusters, m) array
        What each cluster adds to each of m totals: counts, or sums. Clusters of zeros alone are left out.
    score : function
        From an array (..., m) of totals to an array (...) of scores; NaN where a score is undefined.
    null : float, default 0
        The score of which the p-value is.
    confidence : float, default 0.95
    within : (float, float), optional
        The smallest and the largest score that is possible: an interval ends there.

    Returns
    -------
    ClusterEstimate

    Notes
    -----
    The influence of cluster g is (G - 1)(score - score without g). Their mean square gives the standard error, and
    Student's t with G - 1 degrees of freedom one interval. A second one is corrected for skewness (Hall 1992): one
    template with a strong bias shifts both a score and its standard error. The interval is the union of both, the
    p-value the larger one, so that the interval holds ``null`` when and only when p is above 1 - ``confidence``.

    Simulated with 25 templates drawn from released answers to BBQ, intervals of 95% cover 95% to 96%; where all but
    three templates are answered without any bias, and the model is certain of every answer, 91%. With each item taken
    for a cluster of its own: 56% to 79% in ambiguous contexts, nearly 100% in disambiguated ones, which are balanced
    within each template.

    References
    ----------
    P. Hall (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54.

    Examples
    --------
    >>> found = cluster_estimate([[3, 4], [2, 4], [4, 4], [1, 4]], lambda t: t[..., 0] / t[..., 1], null=0.5)
    >>> found.value, found.n_clusters
    (0.625, 4)
    """
    totals = _checked(totals, confidence)
    n = len(totals)
    whole = totals.sum(axis=0)
    value = float(score(whole[None])[0]) if n else math.nan
    if n < 2 or math.isnan(value):
        return _without_interval(value, math.nan, null, confidence, n)
    influence = (n - 1) * (value - np.asarray(score(whole - totals), dtype=np.float64))
    if np.isnan(influence).any():  # the score is defined by one cluster alone
        return _without_interval(value, math.nan, null, confidence, n)
    error = math.sqrt(float((influence**2).sum()) / (n * (n - 1)))
    if error <= _FLAT * max(1.0, abs(value)):
        return _without_interval(value, 0.0, null, confidence, n)
    reach = float(scipy.special.stdtrit(n - 1, 0.5 + confidence / 2.0))
    skew = _skewness(influence) / math.sqrt(n)
    low = value - error * max(reach, _unskewed(reach, skew))
    high = value - error * min(-reach, _unskewed(-reach, skew))
    t = (value - null) / error
    p = max(_two_sided(t, n - 1), _two_sided(_skewed(t, skew), n - 1))
    return ClusterEstimate(
        value=value,
        standard_error=error,
        interval=(max(low, within[0]), min(high, within[1])),
        p_value=p,
        null=null,
        confidence=confidence,
        n_clusters=n,
        largest_share=float((influence**2).max() / (influence**2).sum()),
    )


def cluster_difference(
    first: ArrayLike, second: ArrayLike, score: Callable[[Floats], Floats], *, confidence: float = 0.95
) -> ClusterEstimate:
    """How much larger a score is of the first totals than of the second, of the same clusters in the same order."""
    both = [np.asarray(totals, dtype=np.float64) for totals in (first, second)]
    if both[0].ndim != 2 or both[0].shape != both[1].shape:
        raise UsageError(f"expected totals of the same clusters, got shapes {both[0].shape} and {both[1].shape}")
    m = both[0].shape[1]
    joined = np.concatenate(both, axis=1)
    return cluster_estimate(joined, lambda t: score(t[..., :m]) - score(t[..., m:]), confidence=confidence)


def share_estimate(successes: int, n: int, *, null: float = 0.5, confidence: float = 0.95) -> ClusterEstimate:
    """A share of independent items: Wilson's interval, and the exact two-sided p-value of the binomial test."""
    if not 0 <= successes <= n:
        raise UsageError(f"expected between 0 and {n} successes, got {successes}")
    if not n:
        return _without_interval(math.nan, math.nan, null, confidence, 0)
    test = scipy.stats.binomtest(successes, n, null)
    interval = test.proportion_ci(confidence, method="wilson")
    share = successes / n
    return ClusterEstimate(
        value=share,
        standard_error=math.sqrt(share * (1.0 - share) / n),
        interval=(float(interval.low), float(interval.high)),
        p_value=float(test.pvalue),
        null=null,
        confidence=confidence,
        n_clusters=n,
        largest_share=1.0 / n,
    )


def _checked(totals: ArrayLike, confidence: float) -> Floats:
    array = np.asarray(totals, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise UsageError(f"expected finite totals of shape (clusters, m), got an array of shape {array.shape}")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence must lie between 0 and 1, got {confidence!r}")
    return np.asarray(array[(array != 0.0).any(axis=1)])


def _without_interval(value: float, error: float, null: float, confidence: float, n: int) -> ClusterEstimate:
    nothing = (math.nan, math.nan)
    return ClusterEstimate(value, error, nothing, math.nan, null, confidence, n, math.nan)


def _skewness(influence: Floats) -> float:
    apart = influence - influence.mean()
    spread = float(apart.std(ddof=1))
    return float((apart**3).mean()) / spread**3 if spread > 0.0 else 0.0


def _skewed(t: float, skew: float) -> float:
    """Hall's transformation of t, ``skew`` being the skewness over the root of n: it rises with t."""
    return t + skew * (t * t / 3.0 + 1.0 / 6.0) + skew * skew * t**3 / 27.0


def _unskewed(x: float, skew: float) -> float:
    """Its inverse."""
    if abs(skew) < 1e-9:
        return x
    return 3.0 / skew * (float(np.cbrt(1.0 + skew * (x - skew / 6.0))) - 1.0)


def _two_sided(t: float, df: int) -> float:
    return float(2.0 * scipy.special.stdtr(df, -abs(t)))
