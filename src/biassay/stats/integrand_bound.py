"""How large the integrand of the saddle-point route may be, far from its bell.

Its factor of a coin with variance w at the phase x has the squared size 1 - 2 w (1 - cos x), whose logarithm is concave
in the cosine and so below each of its tangents. Along a tangent the product over all coins is an exponential of their
Fourier transform g(u), and its mean over angles a Bessel function of |g|. The tangent at cosine 1 is sharp where the
coins come into phase again, that at 0 where they do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["bound_integrand"]

_SIDE = 512  # points in a row, and rows
_SPACING = 1.0  # of the points, in units of one over the range of scores
_CURVATURE = _SPACING**2 / 32.0  # of the coins' weight: how far |g| rises between two points above both
_ENOUGH_COINS = 40.0  # variance of the coins that bound the integrand by exp(-40) far out, if phases are random
_UNDECIDED = 1e-3  # of the largest variance of a coin
_CHANCE = 4.5  # deviations of a sum of random phases: chance goes no further at so many points
_HALF = 0.5  # of the coins in phase is more than chance, however few they are


def bound_integrand(
    s: NDArray[np.float64], w: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.bool_]] | None:
    """Places u, a bound on the integrand's size at each, and where more phases agree than chance makes agree.

    ``s`` are the scores and ``w`` the variances of their coins. A factor is at most one, so that some of the coins
    bound them all: the undecided ones, and far out some of those. None if they all have one score.
    """
    kept = np.argsort(s)
    kept = kept[w[kept] > _UNDECIDED * w.max()]
    if not np.ptp(s[kept]) > 0.0:
        return None
    spacing = _SPACING / float(np.ptp(s[kept]))
    some = kept[:: max(1, int(w[kept].sum() / _ENOUGH_COINS))]
    size, together = _sizes(s[some], w[some], spacing, _SIDE)
    size[:_SIDE], together[:_SIDE] = _sizes(s[kept], w[kept], spacing, 1)
    return np.asarray(spacing * np.arange(1, _SIDE * _SIDE + 1)), size, together


def _sizes(
    s: NDArray[np.float64], w: NDArray[np.float64], spacing: float, rows: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The bound at the places of the first rows, and where more phases agree than chance makes agree."""
    steeper = w / (1.0 - 2.0 * w)
    g, h = _transforms(s, np.array([w, steeper]), spacing, rows)
    together = g > min(_CHANCE * float(np.linalg.norm(w)), _HALF * float(w.sum()))
    # exp(-x) I0(x) is below 1 / sqrt(1 + 2 x).
    at_one = _exp(g - np.float32(w.sum())) / np.sqrt(1.0 + 2.0 * g)
    at_zero = _exp(h + np.float32(0.5 * np.log1p(-2.0 * w).sum())) / np.sqrt(1.0 + 2.0 * h)
    return np.minimum(np.minimum(at_one, at_zero), np.float32(1.0)), together


def _exp(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """exp(x), without overflow: in both directions far beyond what matters."""
    return np.asarray(np.exp(np.clip(x, np.float32(-80.0), np.float32(80.0))))


def _transforms(s: NDArray[np.float64], weights: NDArray[np.float64], spacing: float, rows: int) -> NDArray[np.float32]:
    """A bound on |g| around every place, for each of the weights (2, N). A place is a coarse and a fine step."""
    coarse = _turns(spacing * _SIDE * s, rows)
    fine = (_turns(spacing * s, _SIDE) * np.exp(1j * spacing * s)).astype(np.complex64)
    weighted = (weights[:, None, :] * coarse).astype(np.complex64).reshape(-1, len(s))
    g = np.abs(weighted @ fine.T).reshape(len(weights), -1)
    g += ((_CURVATURE + 2e-6) * weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return np.asarray(g)


def _turns(phase: NDArray[np.float64], count: int) -> NDArray[np.complex128]:
    """exp(i k phase) for k below ``count``, shape (count, N), from the exponentials of every 32nd and of 32."""
    few = min(count, 32)
    large = np.exp(1j * np.multiply.outer(few * np.arange(count // few), phase))
    small = np.exp(1j * np.multiply.outer(np.arange(few), phase))
    return np.asarray((large[:, None, :] * small).reshape(count, -1))
