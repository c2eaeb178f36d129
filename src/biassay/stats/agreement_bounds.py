"""Tests and bounds for scores on which all, or almost all, sampling units agree.

If every template, writer, term or word gives the same score, the estimated variance is 0 and a t test is undefined.
The number of agreeing units still bounds how common disagreement can be: after n agreeing units, a share of
disagreeing ones above 1 - (alpha / 2)^(1 / n) is unlikely (Clopper and Pearson 1934). The same bound, with a
fractional count, covers units that nearly agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AgreementBounds:
    """Interval and two-sided p-value for the mean of a bounded score.

    Attributes
    ----------
    interval : (float, float)
    p_value : float
        At most 1 - confidence exactly where `interval` excludes the null.
    n_units : float
        Number of units; with unequal weights, the effective number (Kish 1965). At most `max_units`.
    n_deviating : int
        Units whose score differs from the most common one.
    n_scores : int
        All units.
    """

    interval: tuple[float, float]
    p_value: float
    n_units: float
    n_deviating: int
    n_scores: int


def share_bounds(successes: float, n: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share.

    Parameters
    ----------
    successes, n : float
        Counts, which may be fractions.
    confidence : float, default 0.95

    Returns
    -------
    (float, float)

    Examples
    --------
    >>> low, high = share_bounds(25, 25)
    >>> round(low, 3), high
    (0.863, 1.0)
    """
    tail = (1.0 - confidence) / 2.0
    return _clopper_pearson_low(successes, n, tail), 1.0 - _clopper_pearson_low(n - successes, n, tail)


def agreement_bounds(
    scores: ArrayLike,
    *,
    within: tuple[float, float],
    null: float,
    weights: ArrayLike | None = None,
    confidence: float = 0.95,
    max_units: float = math.inf,
) -> AgreementBounds:
    """Bound the mean of a bounded score on which most units agree.

    Parameters
    ----------
    scores : (units,) array
        The score of each unit.
    within : (float, float)
        Smallest and largest possible score.
    null : float
        Mean score under the null hypothesis of the p-value.
    weights : (units,) array, optional
        Weight of each unit in the mean. Default: equal weights.
    confidence : float, default 0.95
    max_units : float, optional
        Maximum number of units to count, if units share another sampled factor, such as names.

    Returns
    -------
    AgreementBounds

    Notes
    -----
    Let v be the most common score. For the lower end, z = (min(score, v) - lowest) / (v - lowest) lies in [0, 1]; a
    Bernoulli variable is the most variable one with that range and mean, so the Clopper-Pearson bound for
    n mean(z) of n successes bounds the mean of z, and lowest + (v - lowest) z the mean score. The upper end mirrors
    it. If all n units have the largest score and the null is the middle of the range, the p-value is that of the
    exact sign test, 2^(1 - n).

    The bounds do not use the spread of the scores. They are wide; use them where the spread cannot be estimated.

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934). The use of confidence or fiducial limits illustrated in the case of the
    binomial. Biometrika 26.

    Examples
    --------
    >>> bounds = agreement_bounds([1.0] * 8, within=(-1.0, 1.0), null=0.0)
    >>> [round(end, 3) for end in bounds.interval], bounds.p_value
    ([0.261, 1.0], 0.0078125)
    """
    scores = np.asarray(scores, dtype=np.float64)
    lowest, highest = within
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=np.float64)
    shares = weights / weights.sum()
    n = min(float(1.0 / (shares**2).sum()), max_units)
    common, n_deviating = _find_mode(scores)
    tail = (1.0 - confidence) / 2.0
    low, p_low = _lower_bound(scores, shares, n, common, lowest, null, tail)
    high, p_high = _lower_bound(-scores, shares, n, -common, -highest, -null, tail)
    p_value = min(1.0, 2.0 * (p_low if shares @ scores > null else p_high))
    return AgreementBounds((low, -high), p_value, n, n_deviating, len(scores))


def _find_mode(scores: Floats) -> tuple[float, int]:
    values, counts = np.unique(np.round(scores, 9), return_counts=True)
    mode = int(counts.argmax())
    return float(values[mode]), int(len(scores) - counts[mode])


def _lower_bound(
    scores: Floats,
    shares: Floats,
    n: float,
    common: float,
    lowest: float,
    null: float,
    tail: float,
) -> tuple[float, float]:
    """Return the lower end, and the one-sided p-value of the hypothesis that the mean is at most `null`."""
    reach = common - lowest
    if reach <= 0.0:
        return lowest, 1.0
    z = np.clip((np.minimum(scores, common) - lowest) / reach, 0.0, 1.0)
    successes = min(n, n * float(shares @ z))
    limit = (null - lowest) / reach
    p_value = 1.0 if limit >= 1.0 or not successes else _binomial_tail(limit, successes, n)
    return lowest + reach * _clopper_pearson_low(successes, n, tail), p_value


def _binomial_tail(share: float, successes: float, n: float) -> float:
    """Return the binomial probability of at least ``successes`` of n, continued to fractions."""
    return float(scipy.special.betainc(successes, n - successes + 1.0, share))


def _clopper_pearson_low(successes: float, n: float, tail: float) -> float:
    if successes <= 0.0:
        return 0.0
    return float(scipy.special.betaincinv(successes, n - successes + 1.0, tail))
