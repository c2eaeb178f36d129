"""The integrand of the saddle-point route, summed over the angles that pick the size of a subset."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["integrand"]


def integrand(
    distinct: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    n: int,
    t: float,
    angles: NDArray[np.float64],
    us: NDArray[np.float64],
    turns: NDArray[np.complex128],
) -> NDArray[np.complex128]:
    """prod_i (1 - p_i + p_i exp(i (angle + u s_i))) exp(-i (angle n + u t)), summed over angles, shape (us,).

    ``distinct`` holds the distinct scores s, their chances p, and how often each occurs; ``turns`` holds
    exp(i (u - u_0) s_i). The turn by an angle is taken out of every factor, which leaves a sum and a product.
    """
    s, p, times = distinct
    turned = (p * np.exp(1j * us[0] * s))[:, None] * turns[:, : len(us)]
    # Powers by squaring: NumPy's own take ten times as long.
    bits = [np.flatnonzero(times >> bit & 1) for bit in reversed(range(int(times.max()).bit_length()))]
    factors = np.empty_like(turned)
    total = np.zeros(len(us), dtype=np.complex128)
    for angle in angles:
        np.add(turned, ((1.0 - p) * np.exp(-1j * angle))[:, None], out=factors)
        product = np.multiply.reduce(factors if len(bits[0]) == len(s) else factors[bits[0]], axis=0)
        for those in bits[1:]:
            product *= product
            product *= np.multiply.reduce(factors[those], axis=0)
        product *= np.exp(1j * angle * (int(times.sum()) - n))
        total += product
    return np.asarray(total * np.exp(-1j * us * t))
