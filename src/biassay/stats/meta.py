"""Pooling effect sizes by the random-effects model (DerSimonian and Laird's estimate of the variance between them)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.errors import UsageError

__all__ = ["RandomEffects", "pooled_means", "random_effects"]


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
    q, i2 : float
        Cochran's Q, and the share of the variation that tau2 stands for, (Q - df) / Q or zero. The variances that it is
        compared with are of cosines: where all vectors share a direction, these shrink and i2 comes near 1.
    prediction_interval : (float, float)
        Where 95% of true effect sizes lie, by Student's t with N - 2 degrees of freedom.
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
    i2: float
    prediction_interval: tuple[float, float]
    n: int


def random_effects(effects: NDArray[np.float64], variances: NDArray[np.float64]) -> RandomEffects:
    """Pool effect sizes (N,) with their variances (N,), each above zero."""
    n = len(effects)
    if n < 3:
        raise UsageError(f"pooling needs at least 3 effect sizes, got {n}")
    weights = 1.0 / variances
    tau2, q = (float(value[0]) for value in _between(effects[:, None], weights[:, None]))
    shrunk = 1.0 / (variances + tau2)
    mean, error = float(shrunk @ effects / shrunk.sum()), math.sqrt(1.0 / shrunk.sum())
    z = mean / error
    log_p = min(0.0, float(scipy.special.log_ndtr(-abs(z))) + math.log(2.0))
    reach = float(scipy.special.stdtrit(n - 2, 0.975)) * math.sqrt(tau2 + error * error)
    return RandomEffects(
        mean=mean,
        standard_error=error,
        z=z,
        p_value=math.exp(log_p),
        log10_p=log_p / math.log(10.0),
        p_value_upper=float(scipy.special.ndtr(-z)),
        tau2=tau2,
        q=q,
        i2=max(0.0, (q - (n - 1)) / q) if q > 0.0 else 0.0,
        prediction_interval=(mean - reach, mean + reach),
        n=n,
    )


def pooled_means(effects: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pooled effect size of every column of ``effects`` (N, c) with ``variances`` (N, c)."""
    tau2, _ = _between(effects, 1.0 / variances)
    shrunk = 1.0 / (variances + tau2)
    return np.asarray((shrunk * effects).sum(axis=0) / shrunk.sum(axis=0))


def _between(
    effects: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """tau2 and Q of every column. Q is summed around the weighted mean, which cancels no digits."""
    total = weights.sum(axis=0)
    centre = (weights * effects).sum(axis=0) / total
    q = (weights * (effects - centre) ** 2).sum(axis=0)
    c = total - (weights * weights).sum(axis=0) / total
    return np.maximum(0.0, (q - (len(effects) - 1)) / c), q
