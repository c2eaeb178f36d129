"""Tail probability of large sets by inverting their generating function along its saddle point.

The number of size-n subsets with sum at least t is a double contour integral of

    prod_i (1 + exp(a + b s_i)) / (b exp(a n + b t))

over complex a (which picks the size) and b (which picks the sum). On the lines through the saddle point the
integrand is a bell, and the trapezoid rule converges faster than any power of the step. In the words of probability:
every score joins the subset by its own coin, the coins are biased until size and sum are expected to be n and t, and
the integral is what remains to correct. Nothing is sampled, and nothing underflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.stats.subsets import SubsetTail, log_binomial

__all__ = ["SmoothTail", "saddlepoint_tail", "solve_tilt"]

_NEWTON_STEPS = 200
_STEEPEST = 600.0
_NEGLIGIBLE = 1e-13
_BLOCK = 1 << 21
_FEWEST_COINS = 0.5  # below this variance of the subset's size the coins are all but decided, and there is no bell
_DIGITS = 34.0  # the pole's alias is damped by exp(-34), about 1e-15


@dataclass(frozen=True)
class SmoothTail:
    """Logarithm of the tail probability, and a bound on its relative error."""

    log_p: float
    relative_error: float


def solve_tilt(tail: SubsetTail) -> tuple[float, float] | None:
    """The saddle point (a, b), or None where the threshold is at or beyond what subsets can reach."""
    n, t, scores = tail.size, tail.threshold, tail.scores
    spread = float(np.max(np.abs(scores)))
    if spread == 0.0:
        return None
    s, t = scores / spread, t / spread
    a, b = math.log(n / (len(s) - n)), 0.0
    value = _objective(s, n, t, a, b)
    for _ in range(_NEWTON_STEPS):
        p = _chance(s, a, b)
        w = p * (1.0 - p)
        gradient = np.array([p.sum() - n, p @ s - t])
        hessian = np.array([[w.sum(), w @ s], [w @ s, w @ (s * s)]])
        determinant = float(np.linalg.det(hessian))
        if determinant <= 1e-300 or abs(b) > _STEEPEST or w.sum() < _FEWEST_COINS:
            return None
        move = -np.linalg.solve(hessian, gradient)
        decrease = -float(gradient @ move)
        if decrease < 1e-22 * max(1.0, abs(value)):
            return a, b / spread
        step = 1.0
        while step > 1e-12:
            candidate = _objective(s, n, t, a + step * move[0], b + step * move[1])
            if candidate <= value - 1e-4 * step * decrease + 1e-13 * abs(value):
                break
            step /= 2.0
        a, b, value = a + step * float(move[0]), b + step * float(move[1]), candidate
    return None


def _objective(s: NDArray[np.float64], n: int, t: float, a: float, b: float) -> float:
    return float(np.logaddexp(0.0, a + b * s).sum()) - a * n - b * t


def _chance(s: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    return np.asarray(np.exp(-np.logaddexp(0.0, -(a + b * s))))


def _size_tilt(s: NDArray[np.float64], n: int, b: float) -> float:
    """The a at which, for a given b, the expected size is n."""
    low, high = -50.0 - float(np.max(b * s)), 50.0 - float(np.min(b * s))
    a = math.log(n / (len(s) - n)) - b * float(s.mean())
    for _ in range(200):
        p = _chance(s, a, b)
        excess = float(p.sum()) - n
        if abs(excess) < 1e-10 * n:
            break
        low, high = (a, high) if excess < 0 else (low, a)
        a -= excess / max(float((p * (1.0 - p)).sum()), 1e-300)
        if not low < a < high:
            a = (low + high) / 2.0
    return a


def saddlepoint_tail(tail: SubsetTail) -> SmoothTail | None:
    """P[sum >= threshold] as a smooth function of the threshold, or None where no saddle point exists.

    The count of partitions is not smooth; among M partitions in the tail its steps are of relative size M**-0.5 at
    the most, and that is the error stated.
    """
    if tail.threshold < 0.0:
        other = saddlepoint_tail(tail.mirrored)
        if other is None:
            return None
        p = math.exp(other.log_p)
        return SmoothTail(math.log1p(-p), other.relative_error * p / (1.0 - p))
    saddle = solve_tilt(tail)
    if saddle is None:
        return None
    s, n, t = tail.scores, tail.size, tail.threshold
    # Near the middle of the distribution the saddle meets the pole at b = 0; stay one deviation away from it.
    share = n / len(s)
    deviation = math.sqrt(share * (1.0 - share) * float(s @ s))
    b = max(saddle[1], 1.0 / deviation)
    a = saddle[0] if b == saddle[1] else _size_tilt(s, n, b)
    integral = _integral(s, n, t, a, b)
    if not integral > 0.0:
        return None
    log_count = _objective(s, n, t, a, b) + math.log(integral)
    return SmoothTail(min(0.0, log_count - log_binomial(len(s), n)), math.exp(-0.5 * log_count) + 1e-10)


def _integral(s: NDArray[np.float64], n: int, t: float, a: float, b: float) -> float:
    p = _chance(s, a, b)
    w = p * (1.0 - p)
    size_deviation = math.sqrt(float(w.sum()))
    centre = float(w @ s / w.sum())
    s = s - centre
    t = t - n * centre
    sum_deviation = math.sqrt(float(w @ (s * s)))
    # Sizes n + k m alias onto n on a grid of m angles: m = N + 1 is exact, ten deviations is as good.
    m = min(len(s) + 1, math.ceil(10.0 * size_deviation) + 1)
    angles = 2.0 * np.pi * np.arange(-(m // 2), (m + 1) // 2) / m
    step = min(2.0 * np.pi * b / _DIGITS, 0.6 / sum_deviation)
    total, u, chunk = 0.0, 0.0, max(8, _BLOCK // (64 * len(s) * len(angles)))
    while True:
        us = u + step * np.arange(chunk, dtype=np.float64)
        values = _integrand(s, p, n, t, angles, us) / (b + 1j * us)
        weights = np.where(us == 0.0, 1.0, 2.0)  # the other half is the complex conjugate
        row = values.sum(axis=0)
        total += float((weights * row).sum().real)
        u += step * chunk
        if u * sum_deviation > 4.0 and float(np.abs(row[-4:]).sum()) < _NEGLIGIBLE * abs(total):
            break
        if u * sum_deviation > 40.0:
            break
    return total * step / (2.0 * np.pi * m)


def _integrand(
    s: NDArray[np.float64],
    p: NDArray[np.float64],
    n: int,
    t: float,
    angles: NDArray[np.float64],
    us: NDArray[np.float64],
) -> NDArray[np.complex128]:
    """prod_i (1 - p_i + p_i exp(i (angle + u s_i))) exp(-i (angle n + u t)), shape (angles, us)."""
    turned = np.exp(1j * np.multiply.outer(us, s))
    product = np.empty((len(angles), len(us)), dtype=np.complex128)
    for k, angle in enumerate(angles):
        factors = 1.0 + p * (turned * np.exp(1j * angle) - 1.0)
        product[k] = np.prod(factors, axis=1) * np.exp(-1j * (angle * n + us * t))
    return product
