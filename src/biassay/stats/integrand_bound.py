"""How large the integrand of the saddle-point route may be, far from its bell.

Its factor of a coin with variance w at the phase x has the squared size 1 - 2 w (1 - cos x), whose logarithm is concave
in the cosine and so below each of its tangents. Along a tangent the product over all coins is an exponential of their
Fourier transform g(u), and its mean over angles a Bessel function of |g|. The tangent at cosine 1 is sharp where the
coins come into phase again, that at 0 where they do not.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["FurtherOut", "bound_integrand"]

_SIDE = 512  # points in a row, and rows
_SPACING = 1.0  # of the points, in units of one over the range of scores
_BLOCK = 32  # rows at a time
_RISE = np.float32(_SPACING**2 / 32.0 + 2e-6)  # of the coins' weight: how far |g| rises between points above both
_ENOUGH_COINS = 40.0  # variance of the coins that bound the integrand by exp(-40) far out, if phases are random
_UNDECIDED = 1e-3  # of the largest variance of a coin
_CHANCE = 4.5  # deviations of a sum of random phases: chance goes no further at so many points
_HALF = 0.5  # of the coins in phase is more than chance, however few they are
_NOISE = 3.0  # deviations of the noise that are stated


class FurtherOut:
    """What the integral may amount to beyond a place.

    ``amount`` is what is bounded at each of the places, in rows, ``spacing`` apart. Sizes add up where phases come
    ``together``; elsewhere phases are alike over as many places as ``alike`` says, and random beyond.
    """

    def __init__(self, spacing: float, amount: NDArray[np.float64], together: NDArray[np.bool_], alike: float) -> None:
        self._spacing, self._alike, self.last = spacing, alike, spacing * amount.size
        rows = np.flatnonzero(together.any(axis=1))
        self._added = {int(row): np.where(together[row], amount[row], 0.0) for row in rows}
        amount[together] = 0.0
        self._amount = amount
        self._added_after, self._squares_after = np.zeros(len(amount) + 1), np.zeros(len(amount) + 1)
        self._added_after[rows] = [self._added[int(row)].sum() for row in rows]
        self._squares_after[:-1] = np.einsum("ij,ij->i", amount, amount)
        for after in (self._added_after, self._squares_after):
            np.cumsum(after[::-1], out=after[::-1])

    def beyond(self, u: float) -> float:
        """A bound on the integral from ``u`` on, as far as there are places."""
        row, place = divmod(min(int(u / self._spacing), self._amount.size - 1), self._amount.shape[1])
        own = self._amount[row, place:]
        added = self._added[row][place:].sum() if row in self._added else 0.0
        chance = math.sqrt(self._alike * float(own @ own + self._squares_after[row + 1]))
        return float(added + self._added_after[row + 1]) + _NOISE * chance


def bound_integrand(
    s: NDArray[np.float64], w: NDArray[np.float64]
) -> tuple[float, NDArray[np.float32], NDArray[np.bool_]] | None:
    """How far places u lie apart, a bound on the integrand's size at each, and where more phases agree than by chance.

    ``s`` are the scores and ``w`` the variances of their coins. A factor is at most one, so that some of the coins
    bound them all: the undecided ones, and far out some of those. None if they all have one score. Places are in rows,
    and the first lies one step from 0.
    """
    kept = np.argsort(s)
    kept = kept[w[kept] > _UNDECIDED * w.max()]
    if not np.ptp(s[kept]) > 0.0:
        return None
    spacing = _SPACING / float(np.ptp(s[kept]))
    some = kept[:: max(1, int(w[kept].sum() / _ENOUGH_COINS))]
    size, together = np.empty((_SIDE, _SIDE), dtype=np.float32), np.empty((_SIDE, _SIDE), dtype=np.bool_)
    _fill(size, together, s[some], w[some], spacing)
    _fill(size[:1], together[:1], s[kept], w[kept], spacing)
    return spacing, size, together


def _fill(
    size: NDArray[np.float32],
    together: NDArray[np.bool_],
    s: NDArray[np.float64],
    w: NDArray[np.float64],
    spacing: float,
) -> None:
    """Fill the first rows with the bound, and with where more phases agree than chance makes agree.

    A place is a step to the middle of a row and a step from there to either side. Some rows at a time stay in the
    cache, and no more memory is taken for them.
    """
    weights = np.array([w, w / (1.0 - 2.0 * w)], dtype=np.float32)[:, None, None, :]
    rows, many = min(_BLOCK, len(size)), min(_CHANCE * float(np.linalg.norm(w)), _HALF * float(w.sum()))
    first = _turns(spacing * _SIDE * s, rows)
    fine = _turns(spacing * s, _SIDE // 2 + 1)
    steps = np.concatenate([fine.real, fine.imag], dtype=np.float32, casting="same_kind").T
    for start in range(0, len(size), rows):
        middles = first * np.exp(1j * (spacing * (_SIDE * start + _SIDE // 2)) * s)
        parts = np.array([middles.real, middles.imag], dtype=np.float32)
        g, h = _transforms(weights * parts, steps) + _RISE * weights.sum(axis=-1)
        np.greater(g, many, out=together[start : start + rows])
        at_one = _mean_over_angles(g, -float(w.sum()))
        at_zero = _mean_over_angles(h, 0.5 * float(np.log1p(-2.0 * w).sum()))
        np.minimum(np.minimum(at_one, at_zero, out=at_one), np.float32(1.0), out=size[start : start + rows])


def _mean_over_angles(x: NDArray[np.float32], shift: float) -> NDArray[np.float32]:
    """A bound on exp(shift) I0(x), without overflow: exp(-x) I0(x) is below 1 / sqrt(1 + 2 x)."""
    bound = x + np.float32(shift)
    np.clip(bound, np.float32(-80.0), np.float32(80.0), out=bound)  # in both directions far beyond what matters
    np.exp(bound, out=bound)
    root = 2.0 * x
    root += 1.0
    bound /= np.sqrt(root, out=root)
    return bound


def _transforms(middles: NDArray[np.float32], steps: NDArray[np.float32]) -> NDArray[np.float32]:
    """|g| at the places of some rows, for each of the weights.

    ``middles`` (weights, 2, rows, N) are the weighted cosines and sines at the middles of rows, ``steps`` (N, 2 x half)
    those of the steps from there. Both sides of a middle come from one product of real matrices.
    """
    half = steps.shape[1] // 2
    found = (middles.reshape(-1, middles.shape[-1]) @ steps).reshape(*middles.shape[:3], 2, half)
    real, imaginary = found[:, 0], found[:, 1]
    g = np.empty((*real.shape[:2], _SIDE), dtype=np.float32)
    g[..., half - 2 :] = _squares(real[..., 0, :] - imaginary[..., 1, :], imaginary[..., 0, :] + real[..., 1, :])
    before = _squares(real[..., 0, :] + imaginary[..., 1, :], imaginary[..., 0, :] - real[..., 1, :])
    g[..., : half - 2] = before[..., half - 2 : 0 : -1]
    return np.asarray(np.sqrt(g, out=g))


def _squares(x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    """x^2 + y^2, in their place."""
    x *= x
    y *= y
    x += y
    return x


def _turns(phase: NDArray[np.float64], count: int) -> NDArray[np.complex128]:
    """exp(i k phase) for k below ``count``, shape (count, N), from the exponentials of every 32nd and of 32."""
    few = min(count, 32)
    large = np.exp(1j * np.multiply.outer(few * np.arange(-(-count // few)), phase))
    small = np.exp(1j * np.multiply.outer(np.arange(few), phase))
    return np.asarray((large[:, None, :] * small).reshape(-1, len(phase))[:count])
