"""Tail probability of large sets by inverting their generating function along its saddle point.

The number of size-n subsets with sum at least t is a double contour integral of

    prod_i (1 + exp(a + b s_i)) / (b exp(a n + b t))

over complex a (which picks the size) and b (which picks the sum). On the lines through the saddle point the
integrand is a bell, and the trapezoid rule converges faster than any power of the step. In the words of probability:
every score joins the subset by its own coin, the coins are biased until size and sum are expected to be n and t, and
the integral is what remains to correct. Nothing is sampled, and nothing underflows.

Sums are discrete, and a bell is not. Far from its centre the integrand of scores in general position is noise, whose
effect is below the square root of the number of subsets in the tail. Scores that lie on a lattice, in clusters or far
apart bring the bell back at some distance: a Fourier transform of the coins finds where, the integral is carried on
that far, and what is left out is part of the stated error. On a lattice the sum over its points is taken instead of the
integral, which is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from biassay.stats.subsets import SubsetTail, log_binomial

__all__ = ["SmoothTail", "saddlepoint_tail", "solve_tilt"]

_NEWTON_STEPS = 200
_STEEPEST = 600.0  # of b, per largest score: beyond it a coin is decided to the last bit
_NEGLIGIBLE = 1e-13
_FEWEST_COINS = 0.5  # below this variance of the subset's size the coins are all but decided, and there is no bell
_POLE_DAMPING = 34.0  # the trapezoid rule's alias of the pole is damped by exp(-34), about 1e-15
_GRID = 1 << 18  # points of the Fourier transform that looks for the bell's return
_MOST_FACTORS = 20_000_000  # complex factors an integral may take, some tenths of a second
_NOISE_WORTH_REDUCING = 1e-4
_LEFT_OUT = 3e-5  # relative size at which what is left out no longer matters


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


def saddlepoint_tail(tail: SubsetTail, step: float | None = None) -> SmoothTail | None:
    """P[sum >= threshold], or None where no saddle point exists. ``step`` is that of the scores' lattice, if any."""
    if tail.threshold < 0.0:
        # What is not in the upper tail is strictly below: on a lattice, one step below.
        below = SubsetTail(tail.scores, tail.size, tail.threshold - (step or 0.0), tail.noise)
        other = saddlepoint_tail(below.lower_tail, step)
        if other is None:
            return None
        p = math.exp(other.log_p)
        return SmoothTail(math.log1p(-p), other.relative_error * p / (1.0 - p)) if p < 1.0 else None
    saddle = solve_tilt(tail)
    if saddle is None:
        return None
    s, n, t = tail.scores, tail.size, tail.threshold
    # Near the middle of the distribution the saddle meets the pole at b = 0; stay one deviation away from it.
    share = n / len(s)
    deviation = math.sqrt(share * (1.0 - share) * float(s @ s))
    b = max(saddle[1], 1.0 / deviation)
    a = saddle[0] if b == saddle[1] else _size_tilt(s, n, b)
    found = _Integral(s, n, t, a, b, step).value()
    if found is None or not found[0] > 0.0:
        return None
    integral, left_out = found
    log_count = _objective(s, n, t, a, b) + math.log(integral)
    steps = 0.0 if step is not None else math.exp(-0.5 * log_count)
    log_p = min(0.0, log_count - log_binomial(len(s), n))
    return SmoothTail(log_p, steps + left_out / integral + 1e-9)


class _Integral:
    """The double integral along the saddle point, as far out as the scores make it matter."""

    def __init__(self, s: NDArray[np.float64], n: int, t: float, a: float, b: float, step: float | None) -> None:
        self._p = _chance(s, a, b)
        self._height = _objective(s, n, t, a, b)
        w = self._p * (1.0 - self._p)
        centre = float(w @ s / w.sum())
        self._s, self._n, self._t, self._b, self._step = s - centre, n, t - n * centre, b, step
        self._coins = w
        values, first, times = np.unique(self._s, return_index=True, return_counts=True)
        self._distinct = values, self._p[first], times
        self._deviation = math.sqrt(float(w @ (self._s * self._s)))
        # Sizes n + k m alias onto n on a grid of m angles: m = N + 1 is exact, ten deviations is as good.
        self._m = min(len(s) + 1, math.ceil(10.0 * math.sqrt(float(w.sum()))) + 1)
        self._angles = 2.0 * np.pi * np.arange(-(self._m // 2), (self._m + 1) // 2) / self._m

    def value(self) -> tuple[float, float] | None:
        """The integral and a bound on what was left out of it."""
        span = float(np.ptp(self._s))
        if self._deviation < 1e-9 * span:
            return None  # only equal scores are undecided: their sums do not spread into a bell
        width = min(2.0 * np.pi * self._b / _POLE_DAMPING, 0.6 / self._deviation)
        end = np.inf if self._step is None else np.pi / self._step
        if self._step is not None:
            width = end / max(1, math.ceil(end / width))
        places, returning, noise = self._returns(span)
        angles = self._angles_needed(places, returning + noise)
        total, u, used = 0.0, 0.0, 0
        chunk = max(8, 32_768 // (len(self._distinct[0]) * self._m // 16 + 1))
        while True:
            us = np.asarray(u + width * np.arange(chunk), dtype=np.float64)
            us = us[us <= end * (1.0 + 1e-12)]
            values = _integrand(self._distinct, self._n, self._t, angles, us)
            row = np.asarray(values.sum(axis=0) * self._kernel(us))
            # The other half is the complex conjugate; both ends of a lattice's period are halves of one point.
            weights = np.where((us == 0.0) | (us >= end * (1.0 - 1e-12)), 1.0, 2.0)
            total += float((weights * row).sum().real)
            used += len(us) * len(self._distinct[0]) * self._m
            u += width * chunk
            integral = total * width / (2.0 * np.pi * self._m)
            at = min(int(np.searchsorted(places, u)), len(places) - 1)
            to_come = float(returning[at]) if u < end else 0.0
            quiet = u * self._deviation > 4.0 and float(np.abs(row[-4:]).sum()) < _NEGLIGIBLE * abs(total)
            noisy = u * self._deviation > 40.0 and (
                float(noise[at]) < _NOISE_WORTH_REDUCING * abs(integral) or used > _MOST_FACTORS // 5
            )
            # There is no point in being more precise than the number of subsets allows.
            enough = (
                1e-10
                if self._step
                else max(_LEFT_OUT, 0.3 * math.exp(-0.5 * (self._height + math.log(max(integral, 1e-300)))))
            )
            if u >= end or ((quiet or noisy) and to_come < enough * abs(integral)) or used > _MOST_FACTORS:
                return integral, to_come + (float(noise[at]) if u < end else 0.0)

    def _angles_needed(self, places: NDArray[np.float64], to_come: NDArray[np.float64]) -> NDArray[np.float64]:
        """All angles, or those under the bell if nothing worth mentioning lies elsewhere, as in all large sets."""
        size_deviation = math.sqrt(float(self._coins.sum()))
        bell = 1.0 / (2.0 * np.pi * size_deviation * self._deviation * self._b)
        at = min(int(np.searchsorted(places, 10.0 / self._deviation)), len(places) - 1)
        if to_come[at] > 1e-10 * bell:
            return self._angles
        return np.asarray(self._angles[np.abs(self._angles) < 9.0 / size_deviation])

    def _kernel(self, us: NDArray[np.float64]) -> NDArray[np.complex128]:
        """The transform of "at least": an integral from the threshold on, or a sum over the points of a lattice."""
        z = self._b + 1j * us
        if self._step is None:
            return np.asarray(1.0 / z)
        return np.asarray(self._step / -np.expm1(-self._step * z))

    def _returns(self, span: float) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Where along u the bell returns: places, and what is to come from each on, of returns and of noise.

        Averaged over angles, the integrand's size is at most exp(-W) I0(|g(u)|) / u, with g the Fourier transform of
        the coins' variances w and W their sum. Where |g| is larger than chance makes it, sizes add up; elsewhere phases
        are random and squares add up. Both leave out that phases cancel along the angles too.
        """
        cells = np.bincount(
            np.rint((self._s - self._s.min()) / span * (_GRID // 4 - 1)).astype(np.int64),
            weights=self._coins,
            minlength=_GRID,
        )
        g = np.abs(np.fft.rfft(cells))[1 : _GRID // 8]
        places = np.pi / 2.0 / span * np.arange(1, len(g) + 1)
        chance = 4.5 * math.sqrt(float(self._coins @ self._coins))
        size = special.i0e(g) * np.exp(g - self._coins.sum()) / places * (places[0] / np.pi)
        if self._step is not None:
            size[places > np.pi / self._step] = 0.0  # beyond its period a lattice has no more to say
        coherent = np.cumsum(np.where(g > chance, size, 0.0)[::-1])[::-1]
        random = np.cumsum((np.where(g > chance, 0.0, size) ** 2)[::-1])[::-1]
        # Returns in the last octave that was looked at will go on in those that were not.
        returning = coherent + 3.0 * coherent[len(g) // 2]
        if self._step is None and np.mean(g[-len(g) // 16 :] > chance) > 0.5:
            returning += np.inf  # scores so far apart that the transform cannot tell the rest of them from each other
        return np.asarray(places), np.asarray(returning), np.sqrt(random)


def _integrand(
    distinct: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    n: int,
    t: float,
    angles: NDArray[np.float64],
    us: NDArray[np.float64],
) -> NDArray[np.complex128]:
    """prod_i (1 - p_i + p_i exp(i (angle + u s_i))) exp(-i (angle n + u t)), shape (angles, us).

    ``distinct`` holds the distinct scores s, their chances p, and how often each occurs.
    """
    s, p, times = distinct
    repeated = bool((times > 1).any())
    turned = np.exp(1j * np.multiply.outer(us, s))
    product = np.empty((len(angles), len(us)), dtype=np.complex128)
    for k, angle in enumerate(angles):
        factors = 1.0 + p * (turned * np.exp(1j * angle) - 1.0)
        if repeated:
            factors = factors**times
        product[k] = np.prod(factors, axis=1) * np.exp(-1j * (angle * n + us * t))
    return product
