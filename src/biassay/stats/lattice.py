"""Scores that are whole multiples of one step, as ranks, counts and toy vectors are: their sums pile up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["lattice_step"]

_MOST_STEPS = 1_000_000
_LEAST_NOISES = 1000.0  # in a step: anything lies on a lattice that is as fine as the noise


def lattice_step(scores: NDArray[np.float64], noise: float) -> float | None:
    """The largest step of which all differences of scores are multiples, or None if there is no coarse one.

    ``noise`` is how far equal scores may lie apart: nothing coarser than that is rounded away.
    """
    values = np.unique(scores)
    span = float(values[-1] - values[0])
    if span <= noise:
        return None
    least = max(span / _MOST_STEPS, _LEAST_NOISES * noise)
    step, error = 0.0, 0.0
    for gap in np.sort(np.diff(values)).tolist():
        step, error = _common_step(gap, 2.0 * noise, step, error)
        if step < least:
            return None
    gaps = values - values[0]
    for gap in gaps[1:].tolist():
        step = gap / max(1, round(gap / step))  # the wider, the less noise in a step
    exact = np.abs(gaps - np.rint(gaps / step) * step).max() <= 8.0 * noise
    return step if exact else None


def _common_step(a: float, a_error: float, b: float, b_error: float) -> tuple[float, float]:
    """Greatest common divisor of two lengths that are known to their errors, and its own error; 0 if they say none."""
    while b > b_error:
        times = round(a / b)
        a, a_error, b, b_error = b, b_error, abs(a - times * b), a_error + times * b_error
        if b_error > a / 4.0:
            return 0.0, 0.0
    return a, a_error
