"""Power of the crossed test: detectable effects for given word sets, and words needed for a given effect.

With normal components D is normal. The eight variances that the test adds up (of two sets of targets, two sets of
attributes and four cells) are independent of it and of each other, each a multiple of a chi-square. Power is averaged
over a fixed set of points that fill these eight dimensions evenly. It therefore describes the actual test, with the
largest of three variances, estimated degrees of freedom, and no p-value if these are too few. The noncentral t with
expected variances is the limit for many words; if the residual is large, it overstates the power by up to 0.17 with 4
words per set and 0.04 with 8.
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
from biassay.stats.crossed import LEAST_DF, VarianceComponents
from biassay.stats.skewness import invert_hall, skewness_error

ALPHA = 0.05
POWER = 0.8
MOST_WORDS = 10_000
"""Maximum number of words per set that `words_needed` considers."""

Sizes = tuple[int, int, int, int]
Sought = Literal["all", "targets", "attributes"]
"""Sets that get more words; the others keep theirs."""

Floats = NDArray[np.float64]

_POINTS = 1021
_NINTH = 1.085070245491451  # the root of x**9 - x - 1
_FEW = 30  # maximum degrees of freedom for exact chi-square quantiles; Wilson and Hilferty's are close beyond

_SKEWNESS_POINTS, _SKEWNESS_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_SKEWNESS_WEIGHTS = _SKEWNESS_WEIGHTS / _SKEWNESS_WEIGHTS.sum()


@dataclass(frozen=True)
class CrossedDesign:
    """Design of a crossed test: sizes of the word sets and variance components.

    Effects are true values of D, in the units of the components, or of the effect size d by word. D and d have the same
    sign.

    Attributes
    ----------
    components : VarianceComponents
    sizes : (int, int, int, int)
        Number of words of X, Y, A and B.
    added_variance : float
        Known part of the variance of D that does not come from the sampling of words.
    """

    components: VarianceComponents
    sizes: Sizes
    added_variance: float = 0.0

    def __post_init__(self) -> None:
        sizes = self.sizes if isinstance(self.sizes, tuple) else ()
        if len(sizes) != 4 or not all(isinstance(size, int | np.integer) and size >= 2 for size in sizes):
            raise UsageError(f"sizes must be four numbers of words (X, Y, A, B), at least 2 each, got {self.sizes!r}")
        parts = self.components.targets, self.components.attributes, self.components.residual
        if not all(math.isfinite(part) for part in parts) or not max(parts) > 0.0 or self.components.residual < 0.0:
            raise UsageError(f"components must be finite variances, at least one above 0, got {self.components}")

    @cached_property
    def V(self) -> float:
        """Variance of D."""
        return self.components.variance(*self.sizes) + self.added_variance

    @cached_property
    def spread(self) -> float:
        """Standard deviation of associations of target words within their sets."""
        _, _, k, l = self.sizes  # noqa: E741
        return math.sqrt(max(self.components.targets, 0.0) + (1.0 / k + 1.0 / l) * self.components.residual)

    def d_from_D(self, D: float) -> float:
        """Convert D to d by word."""
        return d_from_D(D, self.spread, *self.sizes[:2])

    def D_from_d(self, d: float) -> float:
        """Convert d by word to D."""
        n, m = self.sizes[:2]
        limit = largest_d(n, m)
        if not abs(d) < limit:
            raise UsageError(f"with {n} and {m} target words d lies between {-limit:.2f} and {limit:.2f}, got {d:g}")
        return d * self.spread * math.sqrt((n + m - 2) / (n + m - 1) / (1.0 - (d / limit) ** 2))

    def power(self, D: float, alpha: float = ALPHA) -> float:
        """Return the power of the two-sided test for a true effect of D."""
        _check_share("alpha", alpha)
        return _detection_rate(abs(D) / math.sqrt(self.V), self._critical_values(alpha / 2.0))

    def power_above(self, D: float, alpha: float = ALPHA) -> float:
        """Return the power of a comparison of models to find a true effect of D above 0.

        The interval of 1 - alpha, corrected for the skewness of the sample, must lie above 0. Normal words have no
        skewness, but samples of them do.
        """
        _check_share("alpha", alpha)
        return _detection_rate_above(D / math.sqrt(self.V), self._skewed_critical_values(alpha / 2.0))

    def smallest_difference_above(self, alpha: float = ALPHA, power: float = POWER) -> float | None:
        """Return the smallest D for which `power_above` reaches this power, or None if there is none."""
        _check_share("alpha", alpha)
        _check_share("power", power)
        critical = self._skewed_critical_values(alpha / 2.0)
        return self._find_difference(lambda x: _detection_rate_above(x, critical), critical, power, lowest=-1)

    def smallest_difference(self, alpha: float = ALPHA, power: float = POWER) -> float | None:
        """Return the smallest D with this power, or None if there is none because there is too often no p-value."""
        _check_share("alpha", alpha)
        _check_share("power", power)
        if not alpha < power:
            raise UsageError(f"the power must exceed alpha, got power {power:g} and alpha {alpha:g}")
        critical = self._critical_values(alpha / 2.0)
        return self._find_difference(lambda x: _detection_rate(x, critical), critical, power, lowest=0)

    def _find_difference(
        self, rate: Callable[[float], float], critical: Floats, power: float, *, lowest: int
    ) -> float | None:
        """Return the D at which the detection rate reaches a power, or None if it never does."""
        limit, high = np.isfinite(critical).mean(), 4.0
        if limit <= power:
            return None
        while rate(high) <= power:
            high *= 2.0
        return _find_root(lambda shift: rate(shift) - power, lowest * high, high) * math.sqrt(self.V)

    def _critical_values(self, tail: float, skewness: Floats | float = 0.0) -> Floats:
        """Return the smallest significant D at every point, in standard deviations, with t corrected for skewness."""
        V, df = self._estimates
        t = np.exp(_log_t(tail)(1.0 / np.maximum(df, LEAST_DF)))
        corrected = np.maximum(t, invert_hall(t, skewness))
        return np.where(df >= LEAST_DF, corrected * np.sqrt(V / self.V), np.inf)

    def _skewed_critical_values(self, tail: float) -> Floats:
        """Return the smallest significant D, an array (values of the skewness, points)."""
        return self._critical_values(tail, _SKEWNESS_POINTS[:, None] * self._skewness_error)

    @cached_property
    def _skewness_error(self) -> Floats:
        """Standard error of the skewness of D, as `crossed_test` estimates it, at every point."""
        V, _ = self._estimates
        errors = [
            (part / V) ** 1.5 / math.sqrt(size) * skewness_error(size)
            for part, size in zip(self._parts[:4], self.sizes, strict=True)
            if size > 2  # two words have no skewness
        ]
        return np.asarray(np.sqrt(sum((error * error for error in errors), np.zeros_like(V))))

    @cached_property
    def _part_dfs(self) -> list[int]:
        n, m, k, l = self.sizes  # noqa: E741
        return [n - 1, m - 1, k - 1, l - 1, *((i - 1) * (j - 1) for i in (n, m) for j in (k, l))]

    @cached_property
    def _parts(self) -> Floats:
        """Parts of the variance of D that `crossed_test` adds up, at every point."""
        n, m, k, l = self.sizes  # noqa: E741
        residual = self.components.residual
        of_t = max(self.components.targets, 0.0) + (1.0 / k + 1.0 / l) * residual
        of_a = max(self.components.attributes, 0.0) + (1.0 / n + 1.0 / m) * residual
        cells = [residual / (i * j) for i in (n, m) for j in (k, l)]
        expected = [of_t / n, of_t / m, of_a / k, of_a / l, *cells]
        return np.array(
            [part * _mean_squares(i, df) for i, (part, df) in enumerate(zip(expected, self._part_dfs, strict=True))]
        )

    @cached_property
    def _estimates(self) -> tuple[Floats, Floats]:
        """Variance of D and its degrees of freedom, as `crossed_test` estimates them, at every point."""
        parts = self._parts
        V_T, V_A, V_E = parts[:2].sum(axis=0), parts[2:4].sum(axis=0), parts[4:].sum(axis=0)
        V = np.maximum(V_T + V_A - V_E, np.maximum(V_T, V_A))
        return V + self.added_variance, V * V / ((parts * parts) / np.array(self._part_dfs)[:, None]).sum(axis=0)


def d_from_D(D: float, spread: float, n: int, m: int) -> float:
    """Convert D to d by word.

    Parameters
    ----------
    D : float
    spread : float
        Standard deviation of the associations of target words within their sets.
    n, m : int
        Number of words of X and Y.

    Returns
    -------
    float
    """
    squares = (n + m - 2) * spread**2 + n * m / (n + m) * D * D
    return D / math.sqrt(squares / (n + m - 1)) if squares > 0.0 else 0.0


def largest_d(n: int, m: int) -> float:
    """Return the upper limit of d with n and m target words."""
    return math.sqrt((n + m - 1) * (n + m) / (n * m))


def smallest_detectable(
    components: VarianceComponents, sizes: Sizes, alpha: float = ALPHA, power: float = POWER
) -> tuple[float, float] | None:
    """Return the smallest effect that the crossed test detects with a given power.

    Parameters
    ----------
    components : VarianceComponents
    sizes : (int, int, int, int)
        Number of words of X, Y, A and B.
    alpha, power : float

    Returns
    -------
    (float, float) or None
        The effect as D and as d by word. None if no effect is detected with this power.
    """
    design = CrossedDesign(components, sizes)
    D = design.smallest_difference(alpha, power)
    return None if D is None else (D, design.d_from_D(D))


def words_needed(
    components: VarianceComponents,
    D: float,
    sizes: Sizes,
    sought: Sought = "all",
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """Return the number of words per set with which the crossed test detects an effect of D.

    Parameters
    ----------
    components : VarianceComponents
    D : float
    sizes : (int, int, int, int)
        Present number of words of X, Y, A and B.
    sought : {"all", "targets", "attributes"}
        Sets that get this number of words. The others keep their sizes.
    alpha, power : float

    Returns
    -------
    int or None
        None if `MOST_WORDS` are not enough, for example because the other sets limit the test.
    """
    if sought not in get_args(Sought):
        raise UsageError(f"sought must be one of {', '.join(get_args(Sought))}, got {sought!r}")
    _check_share("power", power)
    if not abs(D) > 0.0:
        raise UsageError("no number of words detects an effect of 0; give an effect that differs from 0")
    CrossedDesign(components, sizes)
    return find_smallest(
        lambda words: CrossedDesign(components, _set_sizes(sizes, sought, words)).power(D, alpha) >= power
    )


def _set_sizes(sizes: Sizes, sought: Sought, words: int) -> Sizes:
    n, m, k, l = sizes  # noqa: E741
    if sought == "targets":
        return words, words, k, l
    return (n, m, words, words) if sought == "attributes" else (words, words, words, words)


def find_smallest(reached: Callable[[int], bool]) -> int | None:
    """Return the smallest number from 2 to `MOST_WORDS` for which a monotone condition holds, or None."""
    low, high = 1, 2
    while not reached(high):
        if high == MOST_WORDS:
            return None
        low, high = high, min(2 * high, MOST_WORDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _check_share(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise UsageError(f"{name} must lie between 0 and 1, got {value:g}")


def _find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function that is negative at `low` and positive at `high`, by the Illinois method.

    Importing SciPy's root finders takes longer than all searches of a run.
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


def _detection_rate(shift: float, critical: Floats) -> float:
    """Return the probability that |D| exceeds the critical values if the true D is `shift` standard deviations."""
    return float((scipy.special.ndtr(shift - critical) + scipy.special.ndtr(-shift - critical)).mean())


def _detection_rate_above(shift: float, critical: Floats) -> float:
    """Return the probability that D exceeds the critical values, whose rows are weighted values of the skewness."""
    # the weights add up to 1 only within rounding
    return min(1.0, float(_SKEWNESS_WEIGHTS @ scipy.special.ndtr(shift - critical).mean(axis=1)))


@cache
def _deviates() -> Floats:
    """Return standard normal deviates (8, points) from a Kronecker sequence with powers of one irrational number."""
    steps = _NINTH ** -np.arange(1.0, 9.0)
    return np.asarray(scipy.special.ndtri((0.5 + steps[:, None] * np.arange(1.0, _POINTS + 1)) % 1.0))


def _mean_squares(dimension: int, df: int) -> Floats:
    """Return a chi-square variable over its degrees of freedom, at every point."""
    if df <= _FEW:
        return _exact_mean_squares(dimension, df)
    part = 2.0 / (9.0 * df)
    return np.asarray((1.0 - part + _deviates()[dimension] * math.sqrt(part)) ** 3)


@cache
def _exact_mean_squares(dimension: int, df: int) -> Floats:
    return np.asarray(scipy.special.gammaincinv(df / 2.0, scipy.special.ndtr(_deviates()[dimension])) * 2.0 / df)


@lru_cache(maxsize=16)
def _log_t(tail: float) -> Chebyshev:
    """Return the logarithm of the t quantile with this upper tail, as a function of 1 / df."""
    return Chebyshev.interpolate(lambda x: np.log(-scipy.special.stdtrit(1.0 / x, tail)), 12, [0.0, 1.0 / LEAST_DF])
