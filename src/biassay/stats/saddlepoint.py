"""Tail probability of large sets by inverting their generating function along its saddle point.

The number of size-n subsets with sum at least t is a double contour integral of

    prod_i (1 + exp(a + b s_i)) / (b exp(a n + b t))

over complex a (which picks the size) and b (which picks the sum). On the lines through the saddle point the
integrand is a bell, and the trapezoid rule converges faster than any power of the step. In the words of probability:
every score joins the subset by its own coin, the coins are biased until size and sum are expected to be n and t, and
the integral is what remains to correct. Nothing is sampled, and nothing underflows.

Sums are discrete, and a bell is not. Functions that lie just above and just below the step from "below" to "at least",
and have no frequencies beyond some u (Beurling and Selberg; for a step times an exponential Graham and Vaaler), bound
the tail from both sides by the integral up to that u, whatever the scores are: the stated error holds if the integral
ends there. It is smaller if the integrand is known to be small further out: its size is bounded by a Fourier transform
of the coins, looked at far beyond where the integral ends. Where that is no larger than chance makes it, phases are
taken as random; where it is larger, as on a lattice, in clusters and with scores far apart, sizes add up. On a lattice
the sum over its points is taken instead of the integral, which is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from biassay.stats.integrand import integrand
from biassay.stats.integrand_bound import FurtherOut, bound_integrand
from biassay.stats.subsets import SubsetTail, log_binomial

__all__ = ["SmoothTail", "saddlepoint_tail", "solve_tilt"]

_NEWTON_STEPS = 200
_STEEPEST = 600.0  # of b, per largest score: beyond it a coin is decided to the last bit
_FEWEST_COINS = 0.5  # below this variance of the subset's size the coins are all but decided, and there is no bell
_ALIAS = 1e-12  # of the bell: what the trapezoid rule may add
_MOST_ALIASED = 1e-3  # of one: nothing bounds what it may add beyond
_BELL = 8.0  # deviations: beyond, a bell is below exp(-32)
_MOST_FACTORS = 60_000_000  # complex factors an integral may take, some tenths of a second
_MANY_FACTORS = 10_000_000  # after so many, twice as much may be left out
_LEFT_OUT = 4e-4  # relative size at which what is left out no longer matters


@dataclass(frozen=True)
class SmoothTail:
    """Logarithm of the tail probability, and a bound on its relative error.

    ``left_out`` is how much may be missing, or be too much, as a share of what was found. ``relative_error`` is that as
    a share of the truth: infinite if all that was found may be too much.
    """

    log_p: float
    relative_error: float
    left_out: float


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
        if determinant <= 1e-300 or abs(b) > _STEEPEST:
            return None
        move = -np.linalg.solve(hessian, gradient)
        decrease = -float(gradient @ move)
        if decrease < 1e-22 * max(1.0, abs(value)):
            return (a, b / spread) if w.sum() > _FEWEST_COINS else None
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


def saddlepoint_tail(tail: SubsetTail, precision: float = math.inf) -> SmoothTail | None:
    """P[sum >= threshold], or None where no saddle point exists.

    None also as soon as it is sure that the relative error will be above ``precision``.
    """
    if tail.threshold < 0.0:
        # What is not in the upper tail is strictly below.
        other = saddlepoint_tail(replace(tail, least=tail.least - 1).lower_tail)
        if other is None:
            return None
        p = math.exp(other.log_p)
        return _stated(math.log1p(-p), other.left_out * p / (1.0 - p)) if p < 1.0 else None
    saddle = solve_tilt(tail)
    if saddle is None:
        return None
    s, n, t = tail.scores, tail.size, tail.threshold
    # Near the middle of the distribution the saddle meets the pole at b = 0; stay one deviation away from it.
    b = max(saddle[1], 1.0 / tail.deviation)
    a = saddle[0] if b == saddle[1] else _size_tilt(s, n, b)
    integral = _Integral(s, n, t, a, b, tail.unit if tail.lattice else None)
    found = integral.value(precision)
    if found is None or not found[0] > 0.0:
        return None
    log_count = _objective(s, n, t, a, b) + math.log(found[0])
    steps = 0.0 if integral.step else math.exp(-0.5 * log_count)
    log_p = min(0.0, log_count - log_binomial(len(s), n))
    return _stated(log_p, steps + found[1] / found[0] + 1e-9)


def _stated(log_p: float, left_out: float) -> SmoothTail:
    """A tail of which a share may have been left out, or be too much."""
    return SmoothTail(log_p, left_out / (1.0 - left_out) if left_out < 1.0 else math.inf, left_out)


class _Integral:
    """The double integral along the saddle point, as far out as the scores make it matter."""

    def __init__(self, s: NDArray[np.float64], n: int, t: float, a: float, b: float, step: float | None) -> None:
        p = _chance(s, a, b)
        self._coins = p * (1.0 - p)
        centre = float(self._coins @ s / self._coins.sum())
        self._s, self._n, self._t, self._a, self._b = s - centre, n, t - n * centre, a + b * centre, b
        values, first, times = np.unique(self._s, return_index=True, return_counts=True)
        self._distinct = values, p[first], times
        self._deviation = math.sqrt(float(self._coins @ (self._s * self._s)))
        self._size_deviation = math.sqrt(float(self._coins.sum()))
        self._height = _objective(s, n, t, a, b)
        # Sizes n + k m alias onto n on a grid of m angles: m = N + 1 is exact, ten deviations and some is as good.
        self._m = min(len(s) + 1, math.ceil(10.0 * self._size_deviation) + 5)
        self._angles = 2.0 * np.pi * np.arange(-(self._m // 2), (self._m + 1) // 2) / self._m
        self.step = step

    def value(self, precision: float) -> tuple[float, float] | None:
        """The integral and a bound on what was left out of it; None if that is sure to be more than ``precision``."""
        if self._deviation < 1e-9 * float(np.ptp(self._s)):
            return None  # only equal scores are undecided: their sums do not spread into a bell
        self._bell = 1.0 / (2.0 * np.pi * self._size_deviation * self._deviation * self._b)
        width, aliased, again = self._trapezoid()
        if aliased > _MOST_ALIASED:
            return None  # hardly any but equal scores are undecided
        cost = len(self._distinct[0]) * self._m
        if self.step is not None and np.pi / self.step / width * cost > _MOST_FACTORS:
            self.step = None  # so fine a lattice cannot be followed to its end
        end = np.inf if self.step is None else np.pi / self.step
        if self.step is not None:
            width = end / math.ceil(end / width)
        to_come = self._to_come(end)
        angles = self._angles_needed(to_come)
        total, sizes, u, used = -self._seen_again(width) if again else 0.0, 0.0, 0.0, 0
        chunk, turns = max(8, 32_768 // (cost // 16 + 1)), np.empty((0, 0), dtype=np.complex128)
        while True:
            us = np.asarray(u + width * np.arange(chunk), dtype=np.float64)
            us = us[us <= end * (1.0 + 1e-12)]
            if turns.shape[1] < len(us):
                turns = np.exp(1j * np.multiply.outer(self._distinct[0], width * np.arange(chunk)))
            values = integrand(self._distinct, self._n, self._t, angles, us, turns)
            # The other half is the complex conjugate; both ends of a lattice's period are halves of one point.
            weights = np.where((us == 0.0) | (us >= end * (1.0 - 1e-12)), 1.0, 2.0) * width / (2.0 * np.pi * self._m)
            total += float((weights * values * self._kernel(us)).sum().real)
            sizes += float((weights * np.abs(values)).sum())
            used += len(us) * len(self._distinct[0]) * len(angles)
            u += width * chunk
            chunk = max(chunk, min(2 * chunk, 16_384 // len(self._distinct[0])))
            if u >= end:
                return total, aliased
            bracket = np.inf if self.step else self._gap(u) * sizes
            further = to_come.beyond(u)
            # There is no point in being more precise than the number of subsets allows.
            log_count = self._height + math.log(max(total, 1e-300))
            left_out = _LEFT_OUT if used < _MANY_FACTORS else 2.0 * _LEFT_OUT
            enough = 1e-10 if self.step else max(left_out, 0.3 * math.exp(-0.5 * log_count))
            done = u * self._deviation > _BELL and min(bracket, further) <= enough * abs(total)
            beyond = further if self.step else min(bracket, further + self._gap(to_come.last) * sizes)
            if done or used > _MOST_FACTORS:
                return total, beyond + aliased
            if self.step is None and u * self._deviation > _BELL:
                last = u + width * (chunk + (_MOST_FACTORS - used) / (len(self._distinct[0]) * len(angles)))
                at_best = min(self._gap(last) * sizes, to_come.beyond(last) + self._gap(to_come.last) * sizes)
                if at_best * (1.0 - precision) > precision * (abs(total) + beyond):
                    return None

    def _trapezoid(self) -> tuple[float, float, bool]:
        """Width of the trapezoid rule, a bound on its error, and whether that is after `_seen_again` is taken off.

        The rule takes sums that lie a period of 2 pi / width below the threshold, or above it, for sums at it.
        Exponential moments bound how many there are.
        """
        tilts = self._b * 2.0 ** np.arange(-6, 7)
        above, below = (
            np.array([_objective(self._s, self._n, self._t, self._a, self._b + c) for c in side * tilts]) - self._height
            for side in (1.0, -1.0)
        )
        period = 10.5 * self._deviation
        for _ in range(20):
            damped = below - tilts * period
            parts = (above - tilts * period).min(), damped[tilts <= self._b].min(), damped[tilts >= self._b].min()
            high, low, low_again = (math.exp(min(0.0, float(part))) for part in parts)
            aliased = high + min(low, low_again)
            if aliased < _ALIAS * self._bell:
                break
            period *= 1.5
        return 2.0 * np.pi / period, aliased, low_again < low

    def _seen_again(self, width: float) -> float:
        """What the trapezoid rule adds if it sees every sum again one period higher, two periods higher, and so on."""
        damping = 2.0 * np.pi * self._b / width
        return math.exp(log_binomial(len(self._s), self._n) - self._height - damping) / -math.expm1(-damping)

    def _gap(self, u: float) -> float:
        """Integral of the least function above the step times exponential with frequencies up to u, less its own."""
        x = 2.0 * np.pi * self._b / u
        return (x / -math.expm1(-x) - 1.0) / self._b

    def _to_come(self, end: float) -> FurtherOut:
        """What the integral may amount to beyond any place along u."""
        bound = bound_integrand(self._s, self._coins)
        if bound is None:
            return FurtherOut(1.0 / self._deviation, np.array([[np.inf]]), np.array([[True]]), 1.0)
        spacing, size, together = bound
        places = spacing * np.arange(1.0, size.size + 1.0)
        amount = np.abs(self._kernel(places)) if self.step else 1.0 / np.sqrt(self._b**2 + places * places)
        if self.step is None:
            amount += self._gap(float(places[-1]))
        amount *= size.ravel()
        amount *= spacing / np.pi
        amount[int(np.searchsorted(places, end, side="right")) :] = 0.0
        if self.step and places[-1] <= end:
            amount[-1] = np.inf
        # Phases are alike over some distance along u, and random beyond.
        alike = max(1.0, math.sqrt(2.0 * np.pi) / self._deviation / spacing)
        return FurtherOut(spacing, amount.reshape(size.shape), together, alike)

    def _angles_needed(self, to_come: FurtherOut) -> NDArray[np.float64]:
        """All angles, or those under the bell if nothing worth mentioning lies elsewhere, as in all large sets."""
        if to_come.beyond(10.0 / self._deviation) > 1e-10 * self._bell:
            return self._angles
        return np.asarray(self._angles[np.abs(self._angles) < 9.0 / self._size_deviation])

    def _kernel(self, us: NDArray[np.float64]) -> NDArray[np.complex128]:
        """The transform of "at least": an integral from the threshold on, or a sum over the points of a lattice."""
        z = self._b + 1j * us
        if self.step is None:
            return np.asarray(1.0 / z)
        return np.asarray(self.step / -np.expm1(-self.step * z))
