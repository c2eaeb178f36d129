"""Scores that are whole multiples of one step, as ranks, counts and toy vectors are: their sums pile up."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["lattice_step"]

_MOST_STEPS = 1_000_000
_LEAST_NOISES = 1000.0  # in a step: anything lies on a lattice that is as fine as the noise


def lattice_step(scores: NDArray[np.float64], noise: float) -> float | None:
    """The largest step of which all differences of scores are multiples, or None if there is no coarse one.

    ``noise`` is how far equal scores may lie apart: nothing coarser than that is rounded away.
    """
    span = float(np.ptp(scores))
    if span <= noise:
        return None
    least = max(span / _MOST_STEPS, _LEAST_NOISES * noise)
    step = 0.0
    for gap in np.unique(scores - scores.min())[1:]:
        step = _common_step(step, float(gap), 4.0 * noise)
        if step < least:
            return None
    multiples = (scores - scores.min()) / step
    exact = np.abs(multiples - np.rint(multiples)).max() * step <= 8.0 * noise
    return step if exact else None


def _common_step(a: float, b: float, noise: float) -> float:
    """Greatest common divisor of two lengths, remainders below the noise being zero."""
    while b > noise:
        a, b = b, math.fmod(a, b)
        if b > a - noise:
            b = 0.0
    return a
