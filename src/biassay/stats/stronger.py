"""How much stronger a second association would have to be for the words at hand to show it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.stats.crossed_effect import crossed_difference

__all__ = ["smallest_stronger"]

_STEPS = 4
_SHORT_OF_MOST = 0.98


def smallest_stronger(
    cosines1: ArrayLike, cosines2: ArrayLike, n: int, k: int, *, confidence: float, margin: float
) -> float | None:
    """The smallest growth of an absolute effect size that would be shown with a probability of 80%; None: none would.

    Shown: the interval of the difference lies above 0, and the difference above the margin. The interval grows with
    the difference, so that it is not enough to look at the one that was found: cosines of the second table are shifted
    until its effect size is that much larger than the first, and the interval of this is looked at.
    """
    first, second = (np.asarray(cosines, dtype=np.float64) for cosines in (cosines1, cosines2))
    N, m = len(first), len(first) - n
    d1 = abs(crossed_difference(first, second, n, k, confidence=confidence, absolute=True).first.effect_size)
    room = _SHORT_OF_MOST * math.sqrt(N * (N - 1) / (n * m)) - d1
    if not room > margin:
        return None

    def beyond(growth: float) -> float:
        """By how much the difference, as often as asked for, would be more than is needed."""
        shifted = _shifted(second, n, k, d1 + growth)
        found = crossed_difference(first, shifted, n, k, confidence=confidence, absolute=True)
        if found.low is None or found.high is None or found.detectable is None:
            return -math.inf
        below, half = found.difference - found.low, (found.high - found.low) / 2.0
        varies = below * (found.detectable / half - 1.0) if half > 0.0 else 0.0
        return growth - max(below, margin) - varies

    low, high = ((growth, beyond(growth)) for growth in (margin, room))
    if high[1] < 0.0:
        return None
    for _ in range(_STEPS):
        middle = (low[0] + high[0]) / 2.0
        found = middle, beyond(middle)
        low, high = (low, found) if found[1] >= 0.0 else (found, high)
    return margin if low[1] >= 0.0 else _crossing(low, high)


def _crossing(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Where the line through two points is 0."""
    return other[0] - (other[0] - one[0]) * other[1] / (other[1] - one[1])


def _shifted(cosines: NDArray[np.float64], n: int, k: int, d: float) -> NDArray[np.float64]:
    """The same cosines, with as much added to some and taken from others as makes the effect size ``d`` or -``d``."""
    N, m = len(cosines), len(cosines) - n
    s = cosines[:, :k].mean(axis=1) - cosines[:, k:].mean(axis=1)
    D = float(s[:n].mean() - s[n:].mean())
    within = float(((s[:n] - s[:n].mean()) ** 2).sum() + ((s[n:] - s[n:].mean()) ** 2).sum())
    wanted = d * math.sqrt(within / ((N - 1) - d * d * n * m / N))
    rows, columns = (np.repeat([0.5, -0.5], [one, of - one]) for one, of in ((n, N), (k, cosines.shape[1])))
    return cosines + (math.copysign(wanted, D) - D) * np.outer(rows, columns)
