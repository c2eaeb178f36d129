"""Pooling effect sizes by the random-effects model (DerSimonian and Laird's estimate of the variance between them)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.errors import UsageError

__all__ = ["RandomEffects", "pooled_mean", "random_effects"]


@dataclass(frozen=True)
class RandomEffects:
    """What a random-effects model says of N effect sizes.

    Attributes
    ----------
    mean, standard_error, z : float
        The pooled effect size (CES), its standard error, and their ratio.
    p_value, log10_p : float
        Two-sided, of z under the normal distribution; the logarithm does not underflow.
    p_value_upper : float
        The upper tail alone.
    tau2 : float
        Variance between the effect sizes beyond their own; zero if they vary less than their variances say.
    q : float
        The sum behind tau2, as in the paper. It grows with N and with what all vectors share.
    n : int
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
    """Pool effect sizes (N,) with their variances (N,), each above zero."""
    n = len(effects)
    if n < 3:
        raise UsageError(f"pooling needs at least 3 effect sizes, got {n}")
    tau2, q = _between(effects, 1.0 / variances)
    mean, error = _pool(effects, variances + tau2)
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
    """Return the mean of `random_effects` and its standard error, without the p-value that needs SciPy."""
    return _pool(effects, variances + _between(effects, 1.0 / variances)[0])


def _pool(effects: NDArray[np.float64], variances: NDArray[np.float64]) -> tuple[float, float]:
    weights = 1.0 / variances
    return float(weights @ effects / weights.sum()), math.sqrt(1.0 / weights.sum())


def _between(effects: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Return tau2 and Q. Q is summed around the weighted mean, which cancels no digits."""
    total = float(weights.sum())
    centre = float(weights @ effects) / total
    q = float(weights @ (effects - centre) ** 2)
    c = total - float(weights @ weights) / total
    return max(0.0, (q - (len(effects) - 1)) / c), q
