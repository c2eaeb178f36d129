"""Intervals for the effect size of a test, and for the difference of two effect sizes of the same words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from biassay.errors import UsageError

__all__ = ["MIN_WORDS", "Difference", "Estimate", "difference_interval", "effect_interval"]

MIN_WORDS = 4
"""With fewer words in a set no interval is given: a resample then often holds one word only."""
_REPLICATES = 2000
_EDGE = 1.0 - 1e-6
_FLAT = 1e-12  # of the largest association: a spread this small is rounding
_TURNS = np.linspace(0.0, 2.0 * np.pi, 360, endpoint=False)
_CIRCLE = np.stack([np.cos(_TURNS), np.sin(_TURNS)])

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """An effect size and its interval over target words of the same kinds; None: not defined."""

    effect_size: float
    low: float | None
    high: float | None
    confidence: float


@dataclass(frozen=True)
class Difference:
    """The second effect size minus the first, with an interval that takes into account that the words are the same."""

    first: Estimate
    second: Estimate
    difference: float
    low: float | None
    high: float | None
    confidence: float


def effect_interval(
    x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95, rng: np.random.Generator | int = 0
) -> Estimate:
    """The effect size of associations ``x`` (n,) and ``y`` (m,) of target words, with an interval over words.

    The effect size is a multiple of the correlation between a word's set and its association, so Fisher's transform
    applies: the interval is symmetric there, its width is the bootstrap's standard error (words drawn anew in each
    set) times the quantile of t. Simulated with normal associations and 4 to 30 words a set, 95% intervals held the
    true value, which is that correlation times the largest effect size so many words can have, in 90 to 99 of 100;
    plain percentiles in as few as 70. With very skewed associations and large effects it was 81 to 88.
    """
    x, y = _checked(x, y, confidence)
    return _estimate(x, y, _draws(x, y, _weights(len(x), len(y), rng)), confidence)


def difference_interval(
    x1: ArrayLike,
    y1: ArrayLike,
    x2: ArrayLike,
    y2: ArrayLike,
    *,
    confidence: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> Difference:
    """How much larger the effect size of (``x2``, ``y2``) is than that of (``x1``, ``y1``), the same words in the same
    order.

    On Fisher's scale the two lie in an ellipse whose axes are those of the resamples, in which the same words are drawn
    for both; the interval holds all differences that occur in it. A model does not differ from itself. Simulated with 4
    to 30 words a set, and words that go together by 0 to 1, 95% intervals held the true difference in 92 to 100 of 100.
    """
    (x1, y1), (x2, y2) = _checked(x1, y1, confidence), _checked(x2, y2, confidence)
    if len(x1) != len(x2) or len(y1) != len(y2):
        sizes = f"{len(x1)} and {len(y1)}, {len(x2)} and {len(y2)}"
        raise UsageError(f"both effect sizes must be of the same words, got numbers of words of {sizes}")
    weights = _weights(len(x1), len(y1), rng)
    draws = _draws(x1, y1, weights), _draws(x2, y2, weights)
    first, second = (_estimate(x, y, drawn, confidence) for x, y, drawn in ((x1, y1, draws[0]), (x2, y2, draws[1])))
    difference = second.effect_size - first.effect_size
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Difference(first, second, difference, None, None, confidence)
    n, m = len(x1), len(y1)
    at = [_transformed(one.effect_size, n, m) for one in (first, second)]
    both = np.isfinite(draws[0]) & np.isfinite(draws[1])
    axes = _root(np.cov(np.stack([_transformed(drawn[both], n, m) for drawn in draws])))
    around = np.array(at)[:, None] + _times(n, m, confidence) * axes @ _CIRCLE
    apart = _largest(n, m) * (np.tanh(around[1]) - np.tanh(around[0]))
    return Difference(
        first, second, difference, min(float(apart.min()), difference), max(float(apart.max()), difference), confidence
    )


def _checked(x: ArrayLike, y: ArrayLike, confidence: float) -> tuple[Floats, Floats]:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or y.ndim != 1 or not len(x) or not len(y):
        raise UsageError("associations of each set of words must be a list of at least one number")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"the confidence must lie between 0 and 1, got {confidence}")
    # An effect size has no unit: a power of two takes the largest to about 1, so that no square overflows.
    exponent = int(np.frexp(np.abs(np.concatenate([x, y])).max())[1])
    return np.ldexp(x, -exponent), np.ldexp(y, -exponent)


def _weights(n: int, m: int, rng: np.random.Generator | int) -> tuple[Floats, Floats]:
    """How often each word is drawn in every resample, (replicates, words) of both sets."""
    return _drawn_weights(n, m, rng) if isinstance(rng, np.random.Generator) else _seeded_weights(n, m, int(rng))


@lru_cache(maxsize=16)
def _seeded_weights(n: int, m: int, seed: int) -> tuple[Floats, Floats]:
    """Cached, because many tests have sets of the same sizes and use the same seed."""
    return _drawn_weights(n, m, np.random.default_rng(seed))


def _drawn_weights(n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    x, y = (rng.multinomial(k, np.full(k, 1.0 / k), size=_REPLICATES).astype(float) for k in (n, m))
    return x, y


def _draws(x: Floats, y: Floats, weights: tuple[Floats, Floats]) -> Floats:
    """Effect sizes of all resamples."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.full(len(weights[0]), np.nan)
    centre = np.concatenate([x, y]).mean()  # first, so that squares cancel no digits
    x, y = x - centre, y - centre
    n, m = len(x), len(y)
    mean_x, mean_y = weights[0] @ x / n, weights[1] @ y / m
    mean = (n * mean_x + m * mean_y) / (n + m)
    squares = weights[0] @ (x * x) + weights[1] @ (y * y) - (n + m) * mean * mean
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn: Floats = (mean_x - mean_y) / np.sqrt(np.maximum(squares, 0.0) / max(n + m - 1, 1))
    return drawn


def _estimate(x: Floats, y: Floats, draws: Floats, confidence: float) -> Estimate:
    n, m = len(x), len(y)
    size = _size(x, y)
    if min(n, m) < MIN_WORDS or not math.isfinite(size):
        return Estimate(size, None, None, confidence)
    at, drawn = _transformed(size, n, m), _transformed(draws[np.isfinite(draws)], n, m)
    reach = _times(n, m, confidence) * float(drawn.std(ddof=1))
    if reach < 1e-9:  # words of a set that are all alike say nothing about others
        return Estimate(size, None, None, confidence)
    low, high = (_largest(n, m) * math.tanh(at + sign * reach) for sign in (-1.0, 1.0))
    return Estimate(size, min(low, size), max(high, size), confidence)


def _size(x: Floats, y: Floats) -> float:
    together = np.concatenate([x, y])
    if len(together) < 2 or not np.isfinite(together).all():
        return math.nan
    spread = float(together.std(ddof=1))
    return float(x.mean() - y.mean()) / spread if spread > _FLAT * np.abs(together).max() else math.nan


def _largest(n: int, m: int) -> float:
    """The effect size where the correlation is 1."""
    return math.sqrt((n + m) * (n + m - 1) / (n * m))


def _transformed(sizes: ArrayLike, n: int, m: int) -> Floats:
    return np.asarray(np.arctanh(np.clip(np.asarray(sizes) / _largest(n, m), -_EDGE, _EDGE)))


def _times(n: int, m: int, confidence: float) -> float:
    """Standard errors of the bootstrap to either side; a resample of k words varies by (k - 1) / k too little."""
    too_small = ((n - 1) / n**2 + (m - 1) / m**2) / (1 / n + 1 / m)
    return float(stats.t.ppf(0.5 + confidence / 2.0, n + m - 2)) / math.sqrt(too_small)


def _root(covariance: Floats) -> Floats:
    """A matrix that makes the ellipse of a covariance from a circle; also of two that are one."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
