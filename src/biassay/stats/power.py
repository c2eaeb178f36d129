"""Power of the crossed test: which effects it can see with so many words, and how many words an effect needs.

With normal components D is normal, and the eight variances that the test adds up (of two sets of targets, two sets of
attributes, four cells) are independent of it and of each other, each a multiple of a chi-square. Powers are means over
a fixed set of points that fill these eight dimensions evenly, so that they hold for the test as it is: with the larger
of three variances, its degrees of freedom estimated, and no p-value where these are too few. The noncentral t with
expected variances is its limit for many words; where the residual is large it promises up to .17 too much with 4 words
a set, and .04 with 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.stats.crossed import LEAST_DF, Components
from biassay.stats.skewness import invert_hall, skewness_error

__all__ = [
    "ALPHA",
    "MOST_WORDS",
    "POWER",
    "Design",
    "Sizes",
    "Sought",
    "d_of",
    "largest_d",
    "smallest_detectable",
    "words_needed",
]

ALPHA = 0.05
POWER = 0.8
MOST_WORDS = 10_000
"""No more words per set are looked for."""

Sizes = tuple[int, int, int, int]
Sought = Literal["all", "targets", "attributes"]
"""Which sets get more words; the others keep theirs."""

Floats = NDArray[np.float64]

_POINTS = 1021
_NINTH = 1.085070245491451  # the root of x**9 - x - 1
_FEW = 30  # degrees of freedom up to which quantiles of chi-square are exact; beyond, Wilson and Hilferty's are near

_SKEWNESS, _OF_SKEWNESS = np.polynomial.hermite_e.hermegauss(9)
_OF_SKEWNESS = _OF_SKEWNESS / _OF_SKEWNESS.sum()


@dataclass(frozen=True)
class Design:
    """A test of given sizes on words that vary as ``components`` say, and what it can see.

    Effects are D, in the units of the components, or d by word; they are the true ones, and D and d have one sign.
    `added_variance` is a known part of the variance of D that does not come from the sampling of words.
    """

    components: Components
    sizes: Sizes
    added_variance: float = 0.0

    def __post_init__(self) -> None:
        sizes = self.sizes if isinstance(self.sizes, tuple) else ()
        if len(sizes) != 4 or not all(isinstance(size, int | np.integer) and size >= 2 for size in sizes):
            raise UsageError(f"sizes are the numbers of words of X, Y, A and B, at least 2 each, got {self.sizes!r}")
        parts = self.components.targets, self.components.attributes, self.components.residual
        if not all(math.isfinite(part) for part in parts) or not max(parts) > 0.0 or self.components.residual < 0.0:
            raise UsageError(f"components must be finite variances, at least one above 0, got {self.components}")

    @cached_property
    def V(self) -> float:
        """The variance of D."""
        return self.components.variance(*self.sizes) + self.added_variance

    @cached_property
    def spread(self) -> float:
        """The standard deviation of associations of target words within their sets."""
        _, _, k, l = self.sizes  # noqa: E741
        return math.sqrt(max(self.components.targets, 0.0) + (1.0 / k + 1.0 / l) * self.components.residual)

    def d_of(self, D: float) -> float:
        """The d by word of a D."""
        return d_of(D, self.spread, *self.sizes[:2])

    def D_of(self, d: float) -> float:
        """The D of a d by word."""
        n, m = self.sizes[:2]
        most = largest_d(n, m)
        if not abs(d) < most:
            raise UsageError(f"with {n} and {m} target words d lies between {-most:.2f} and {most:.2f}, got {d:g}")
        return d * self.spread * math.sqrt((n + m - 2) / (n + m - 1) / (1.0 - (d / most) ** 2))

    def power(self, D: float, alpha: float = ALPHA) -> float:
        """How often the two-sided test finds an effect of D."""
        _check_share("alpha", alpha)
        return _found(abs(D) / math.sqrt(self.V), self._reach(alpha / 2.0))

    def power_above(self, D: float, alpha: float = ALPHA) -> float:
        """Return how often a comparison of models finds an effect of D to be above 0.

        It does if the interval of 1 - alpha, corrected for the skewness of the sample, lies above 0. Normal words have
        no skewness, but samples of them do.
        """
        _check_share("alpha", alpha)
        return _found_above(D / math.sqrt(self.V), self._skewed_reach(alpha / 2.0))

    def smallest_above(self, alpha: float = ALPHA, power: float = POWER) -> float | None:
        """Return the smallest D that `power_above` finds with this power, or None if there is none."""
        _check_share("alpha", alpha)
        _check_share("power", power)
        reach = self._skewed_reach(alpha / 2.0)
        if np.isfinite(reach).mean() <= power:
            return None
        high = 4.0
        while _found_above(high, reach) <= power:
            high *= 2.0
        return _crossing(lambda shift: _found_above(shift, reach) - power, -high, high) * math.sqrt(self.V)

    def equivalence_power(self, margin: float, D: float = 0.0, alpha: float = ALPHA) -> float:
        """How often the two one-sided tests show that D, whose true value is ``D``, lies within the margin."""
        if not margin > 0.0:
            raise UsageError(f"the margin of an equivalence test must be above 0, got {margin:g}")
        _check_share("alpha", alpha, 0.5)
        true, room = D / math.sqrt(self.V), margin / math.sqrt(self.V) - self._reach(alpha)
        return float(np.maximum(scipy.special.ndtr(room - true) - scipy.special.ndtr(-room - true), 0.0).mean())

    def smallest(self, alpha: float = ALPHA, power: float = POWER) -> float | None:
        """The smallest D that is found with this power; None: none is, for too often there is no p-value."""
        _check_share("alpha", alpha)
        _check_share("power", power)
        if not alpha < power:
            raise UsageError(f"the power must exceed alpha, which no effect at all reaches: {power:g}, alpha {alpha:g}")
        reach = self._reach(alpha / 2.0)
        if np.isfinite(reach).mean() <= power:
            return None
        high = 4.0
        while _found(high, reach) <= power:
            high *= 2.0
        return _crossing(lambda shift: _found(shift, reach) - power, 0.0, high) * math.sqrt(self.V)

    def _reach(self, tail: float) -> Floats:
        """How large D must be at every point for a p-value in the tail, in its standard deviations."""
        V, df = self._estimates
        t = np.exp(_log_t(tail)(1.0 / np.maximum(df, LEAST_DF)))
        return np.where(df >= LEAST_DF, t * np.sqrt(V / self.V), np.inf)

    def _skewed_reach(self, tail: float) -> Floats:
        """Return how large D must be if t is corrected for skewness: (values of the skewness, points)."""
        V, df = self._estimates
        t = np.exp(_log_t(tail)(1.0 / np.maximum(df, LEAST_DF)))
        corrected = np.maximum(t, invert_hall(t, _SKEWNESS[:, None] * self._skewness_error))
        return np.where(df >= LEAST_DF, corrected * np.sqrt(V / self.V), np.inf)

    @cached_property
    def _skewness_error(self) -> Floats:
        """The standard error of the skewness of D as `crossed_test` estimates it, at every point."""
        V, _ = self._estimates
        of_sets = [
            (part / V) ** 1.5 / math.sqrt(size) * skewness_error(size)
            for part, size in zip(self._parts[:4], self.sizes, strict=True)
            if size > 2  # two words have no skewness
        ]
        return np.asarray(np.sqrt(sum((one * one for one in of_sets), np.zeros_like(V))))

    @cached_property
    def _free(self) -> list[int]:
        n, m, k, l = self.sizes  # noqa: E741
        return [n - 1, m - 1, k - 1, l - 1, *((i - 1) * (j - 1) for i in (n, m) for j in (k, l))]

    @cached_property
    def _parts(self) -> Floats:
        """The parts of the variance of D that `crossed_test` adds up, at every point."""
        n, m, k, l = self.sizes  # noqa: E741
        residual = self.components.residual
        of_t = max(self.components.targets, 0.0) + (1.0 / k + 1.0 / l) * residual
        of_a = max(self.components.attributes, 0.0) + (1.0 / n + 1.0 / m) * residual
        cells = [residual / (i * j) for i in (n, m) for j in (k, l)]
        expected = [of_t / n, of_t / m, of_a / k, of_a / l, *cells]
        return np.array(
            [own * _mean_squares(i, of) for i, (own, of) in enumerate(zip(expected, self._free, strict=True))]
        )

    @cached_property
    def _estimates(self) -> tuple[Floats, Floats]:
        """The variance of D and its degrees of freedom as `crossed_test` estimates them, at every point."""
        parts = self._parts
        V_T, V_A, V_E = parts[:2].sum(axis=0), parts[2:4].sum(axis=0), parts[4:].sum(axis=0)
        V = np.maximum(V_T + V_A - V_E, np.maximum(V_T, V_A))
        return V + self.added_variance, V * V / ((parts * parts) / np.array(self._free)[:, None]).sum(axis=0)


def d_of(D: float, spread: float, n: int, m: int) -> float:
    """The d by word of a D, with n and m target words whose associations have this standard deviation in their sets."""
    squares = (n + m - 2) * spread**2 + n * m / (n + m) * D * D
    return D / math.sqrt(squares / (n + m - 1)) if squares > 0.0 else 0.0


def largest_d(n: int, m: int) -> float:
    """What d cannot reach with n and m target words, however far apart they are."""
    return math.sqrt((n + m - 1) * (n + m) / (n * m))


def smallest_detectable(
    components: Components, sizes: Sizes, alpha: float = ALPHA, power: float = POWER
) -> tuple[float, float] | None:
    """The smallest effect that the crossed test finds with this power, as D and as d by word; None: none is."""
    design = Design(components, sizes)
    D = design.smallest(alpha, power)
    return None if D is None else (D, design.d_of(D))


def words_needed(
    components: Components,
    D: float,
    sizes: Sizes,
    sought: Sought = "all",
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """Words per set with which an effect of ``D`` is found with this power; None: `MOST_WORDS` are not enough.

    ``sought`` are the sets that get as many words: all four, or the targets or attributes alone, while the others keep
    their ``sizes``. Then None says that the others limit the test.
    """
    if sought not in get_args(Sought):
        raise UsageError(f"sought must be one of {', '.join(get_args(Sought))}, got {sought!r}")
    _check_share("power", power)
    if not abs(D) > 0.0:
        raise UsageError("an effect of 0 is not found, however many words there are; name one that differs from 0")
    Design(components, sizes)
    return _smallest(lambda words: Design(components, _sizes(sizes, sought, words)).power(D, alpha) >= power)


def _sizes(sizes: Sizes, sought: Sought, words: int) -> Sizes:
    n, m, k, l = sizes  # noqa: E741
    if sought == "targets":
        return words, words, k, l
    return (n, m, words, words) if sought == "attributes" else (words, words, words, words)


def _smallest(reached: Callable[[int], bool]) -> int | None:
    """The smallest number of words, from 2 on, that reaches it."""
    low, high = 1, 2
    while not reached(high):
        if high == MOST_WORDS:
            return None
        low, high = high, min(2 * high, MOST_WORDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _check_share(name: str, value: float, most: float = 1.0) -> None:
    if not 0.0 < value < most:
        raise UsageError(f"{name} must lie between 0 and {most:g}, got {value:g}")


def _crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function passes zero, below it at ``low`` and above it at ``high``.

    False position; an end that stays counts half, so that the other one comes nearer too. The root finders of SciPy
    take longer to import than all tests of a run take to be searched.
    """
    below, above, x, side = function(low), function(high), low, 0
    for _ in range(100):
        x, before = (low * above - high * below) / (above - below), x
        y = function(x)
        if y == 0.0 or abs(x - before) < 1e-9:
            break
        if y < 0.0:
            low, below, above, side = x, y, above / 2.0 if side < 0 else above, -1
        else:
            high, above, below, side = x, y, below / 2.0 if side > 0 else below, 1
    return x


def _found(shift: float, reach: Floats) -> float:
    """How often D, truly at ``shift`` standard deviations, lies beyond reach."""
    return float((scipy.special.ndtr(shift - reach) + scipy.special.ndtr(-shift - reach)).mean())


def _found_above(shift: float, reach: Floats) -> float:
    """How often D, truly at ``shift`` standard deviations, lies above reach; rows are weighted values of skewness."""
    return float(_OF_SKEWNESS @ scipy.special.ndtr(shift - reach).mean(axis=1))


@cache
def _deviates() -> Floats:
    """Standard normal deviates (8, points): a Kronecker sequence, whose steps are powers of one irrational number."""
    steps = _NINTH ** -np.arange(1.0, 9.0)
    return np.asarray(scipy.special.ndtri((0.5 + steps[:, None] * np.arange(1.0, _POINTS + 1)) % 1.0))


def _mean_squares(dimension: int, free: int) -> Floats:
    """Chi-square over its degrees of freedom, at every point."""
    if free <= _FEW:
        return _exact(dimension, free)
    part = 2.0 / (9.0 * free)
    return np.asarray((1.0 - part + _deviates()[dimension] * math.sqrt(part)) ** 3)


@cache
def _exact(dimension: int, free: int) -> Floats:
    return np.asarray(scipy.special.gammaincinv(free / 2.0, scipy.special.ndtr(_deviates()[dimension])) * 2.0 / free)


@lru_cache(maxsize=16)
def _log_t(tail: float) -> Chebyshev:
    """The logarithm of t with this upper tail, as a function of 1 / df."""
    return Chebyshev.interpolate(lambda x: np.log(-scipy.special.stdtrit(1.0 / x, tail)), 12, [0.0, 1.0 / LEAST_DF])
