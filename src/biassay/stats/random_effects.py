"""Pool effect sizes with a random-effects model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.errors import UsageError


@dataclass(frozen=True)
class RandomEffects:
    """Effect sizes pooled by a random-effects model.

    Attributes
    ----------
    mean, standard_error, z : float
        Combined effect size (CES), its standard error, and their ratio.
    p_value, log10_p : float
        Two-sided p-value of z under the normal distribution, and its logarithm, which does not underflow.
    p_value_upper : float
        One-sided p-value of a positive effect.
    tau2 : float
        Variance between the effect sizes beyond their sampling variances, at least zero.
    q : float
        Cochran's Q, from which tau2 is estimated. It increases with N and with what all vectors have in common.
    n : int
        Number of effect sizes, N.
    """

    mean: float
    standard_error: float
    z: float
    p_value: float
    log10_p: float
    p_value_upper: float
    tau2: float
    q: float
    n: int


def random_effects(effects: NDArray[np.float64], variances: NDArray[np.float64]) -> RandomEffects:
    """Pool effect sizes (N,) with positive variances (N,) by the method of DerSimonian and Laird (1986)."""
    n = len(effects)
    if n < 3:
        raise UsageError(f"pooling needs at least 3 effect sizes, got {n}")
    tau2, q = _between_variance(effects, 1.0 / variances)
    mean, error = _pool_effects(effects, variances + tau2)
    z = mean / error
    log_p = min(0.0, float(scipy.special.log_ndtr(-abs(z))) + math.log(2.0))
    return RandomEffects(
        mean=mean,
        standard_error=error,
        z=z,
        p_value=math.exp(log_p),
        log10_p=log_p / math.log(10.0),
        p_value_upper=float(scipy.special.ndtr(-z)),
        tau2=tau2,
        q=q,
        n=n,
    )


def pooled_mean(effects: NDArray[np.float64], variances: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean of `random_effects` and its standard error, without the p-value, which needs SciPy."""
    return _pool_effects(effects, variances + _between_variance(effects, 1.0 / variances)[0])


def _pool_effects(effects: NDArray[np.float64], variances: NDArray[np.float64]) -> tuple[float, float]:
    weights = 1.0 / variances
    return float(weights @ effects / weights.sum()), math.sqrt(1.0 / weights.sum())


def _between_variance(effects: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Return tau2 and Q. Q is summed around the weighted mean, which avoids cancellation."""
    total = float(weights.sum())
    centre = float(weights @ effects) / total
    q = float(weights @ (effects - centre) ** 2)
    c = total - float(weights @ weights) / total
    return max(0.0, (q - (len(effects) - 1)) / c), q
