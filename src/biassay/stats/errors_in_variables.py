"""Correlation of two quantities that are both measured with known errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import DegenerateError, UsageError

FEWEST_MODELS = 5
_Z = np.linspace(-3.5, 3.5, 29)  # correlations on Fisher's scale at which the likelihood is profiled
_LEAST_SHARE = 0.02  # of the observed variance that may be true variance, where the search starts


@dataclass(frozen=True)
class CorrectedCorrelation:
    """Correlation of true values, corrected for measurement error.

    Attributes
    ----------
    correlation, ci_low, ci_high : float
        Restricted maximum likelihood estimate, and its profile-likelihood interval.
    p_value : float
        P-value of a correlation of 0, by the same likelihood.
    observed_correlation : float
        Pearson's correlation of the measured values, which errors draw towards 0.
    reliability_x, reliability_y : float
        Share of the observed variance that is not measurement error, at least 0.
    n : int
    """

    correlation: float
    ci_low: float
    ci_high: float
    p_value: float
    observed_correlation: float
    reliability_x: float
    reliability_y: float
    n: int


def correlate_with_errors(
    x: ArrayLike, y: ArrayLike, x_errors: ArrayLike, y_errors: ArrayLike, *, confidence: float = 0.95
) -> CorrectedCorrelation:
    """Correlate true values that were measured with known standard errors.

    Parameters
    ----------
    x, y : (n,) array-like
        Measured values of at least five models.
    x_errors, y_errors : (n,) array-like
        Their standard errors.
    confidence : float
        Confidence of the interval.

    Notes
    -----
    True values are bivariate normal over models. Measured values are normal around them with these errors,
    independently for x and y. The interval holds the correlations whose profile of the restricted likelihood is within
    half the quantile of F(1, n - 2) of the maximum; an end that the likelihood does not bound is -1 or 1. Errors in
    variables are modelled directly, not by simulated extrapolation (SIMEX), because the errors are known and differ by
    model.
    """
    values = [np.asarray(a, dtype=np.float64) for a in (x, y, x_errors, y_errors)]
    first, second, x_se, y_se = values
    n = len(first)
    if {len(a) for a in values} != {n} or n < FEWEST_MODELS:
        raise UsageError(f"a corrected correlation needs at least {FEWEST_MODELS} models, got {n}")
    if not all(np.isfinite(a).all() for a in values) or (x_se < 0).any() or (y_se < 0).any():
        raise UsageError("values and standard errors must be finite, and standard errors at least 0")
    if not (np.ptp(first) and np.ptp(second)):
        raise DegenerateError("all models have the same value, so there is nothing to correlate")
    profile = np.array([_profile(math.tanh(z), first, second, x_se**2, y_se**2) for z in _Z])
    curve = scipy.interpolate.CubicSpline(_Z, profile)
    fine = np.linspace(_Z[0], _Z[-1], 4001)
    heights = curve(fine)
    lowest = float(heights.min())
    within = fine[heights <= lowest + 0.5 * scipy.special.fdtri(1, n - 2, confidence)]
    drop = 2.0 * (float(curve(0.0)) - lowest)
    return CorrectedCorrelation(
        correlation=math.tanh(float(fine[heights.argmin()])),
        ci_low=-1.0 if within[0] <= fine[0] else math.tanh(float(within[0])),
        ci_high=1.0 if within[-1] >= fine[-1] else math.tanh(float(within[-1])),
        p_value=float(scipy.special.fdtrc(1, n - 2, max(drop, 0.0))),
        observed_correlation=float(np.corrcoef(first, second)[0, 1]),
        reliability_x=_reliability(first, x_se),
        reliability_y=_reliability(second, y_se),
        n=n,
    )


def _reliability(values: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    return max(0.0, 1.0 - float(np.mean(errors**2)) / float(np.var(values, ddof=1)))


def _profile(
    correlation: float,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    x_variances: NDArray[np.float64],
    y_variances: NDArray[np.float64],
) -> float:
    """Minimize minus the restricted log-likelihood over the true standard deviations, at one correlation.

    Parameters
    ----------
    correlation : float
    x, y : (n,) array
        Measured values.
    x_variances, y_variances : (n,) array
        Variances of their errors.
    """
    start = [
        0.5 * math.log(max(float(np.var(v, ddof=1) - np.mean(e)), _LEAST_SHARE * float(np.var(v, ddof=1))))
        for v, e in ((x, x_variances), (y, y_variances))
    ]

    def loss(log_sds: NDArray[np.float64]) -> float:
        sd_x, sd_y = np.exp(log_sds)
        a, b, c = sd_x**2 + x_variances, correlation * sd_x * sd_y, sd_y**2 + y_variances
        determinant = a * c - b * b
        xx, xy, yy = c / determinant, -b / determinant, a / determinant
        total = np.array([[xx.sum(), xy.sum()], [xy.sum(), yy.sum()]])
        means = np.linalg.solve(total, [(xx * x + xy * y).sum(), (xy * x + yy * y).sum()])
        dx, dy = x - means[0], y - means[1]
        squares = (xx * dx * dx + 2.0 * xy * dx * dy + yy * dy * dy).sum()
        return 0.5 * float(np.log(determinant).sum() + squares + np.log(np.linalg.det(total)))

    bounds = [(value - 5.0, value + 3.0) for value in start]
    return float(scipy.optimize.minimize(loss, start, method="L-BFGS-B", bounds=bounds).fun)
