"""Compute permutation p-values of two groups of scores, under the protocols of the papers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.errors import MeasurementError, UnknownNameError, UsageError
from biassay.stats.association import FLAT
from biassay.stats.saddlepoint import approximate_tail, skovgaard_p_values
from biassay.stats.subset_sums import (
    SubsetTail,
    count_by_enumeration,
    count_by_halves,
    count_by_middle,
    half_states,
    middle_states,
)

Protocol = Literal["exact", "may2019", "caliskan2017"]
Alternative = Literal["greater", "two-sided"]
Route = Literal["auto", "enumeration", "counting", "saddle-point"]
Rng = np.random.Generator | int | None
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

_N_DRAWS = 100_000
_DRAW_BLOCK = 1 << 21
_MAX_ENUMERATED = 20_000_000
_QUICK_STATES = 1 << 21  # 21 v 21, or 4 v 160, in some tenths of a second
_MIDDLE_STATES = 6_000_000  # 5 v 250
_PRUNED_STATES = 1 << 20  # far tails of larger sets, in some hundredths of a second
_MAX_STATES = 1 << 26  # 25 v 25: seconds and about a gigabyte
_SAMPLE_ENUMERATED = 13_000  # 8 v 8 has 12,870 partitions
_SAMPLE_BLOCK = 1 << 22
_SAMPLE_TIE = 1e-9
_MOST_FLIPPED = 16  # values of which all choices of signs are enumerated


@dataclass(frozen=True)
class TailProbability:
    """Probability of a tail, and the algorithm that computed it.

    Attributes
    ----------
    value : float
        Probability; 0.0 if it is below the smallest float.
    log10 : float
        Decimal logarithm of the probability, which does not underflow.
    route : str
        ``enumeration`` and ``counting`` are exact, ``saddle-point`` has a relative error below 1e-3 unless scores form
        very tight clusters (see `approximate_tail`), ``sampling`` and ``normal fit`` are protocols of the papers.
    """

    value: float
    log10: float
    route: str

    @classmethod
    def from_count(cls, count: int, total: int, route: str) -> TailProbability:
        """Return the probability of `count` of `total` equally likely cases.

        Parameters
        ----------
        count : int
            Cases in the tail.
        total : int
            All cases.
        route : str
            Name of the algorithm.
        """
        return cls(count / total, min(0.0, math.log10(count) - math.log10(total)), route)

    @classmethod
    def from_log(cls, log_p: float, route: str) -> TailProbability:
        """Return the probability with a given natural logarithm."""
        return cls(math.exp(log_p), log_p / math.log(10.0), route)

    def plus(self, other: TailProbability) -> TailProbability:
        """Return the probability of either of two disjoint tails."""
        high, low = max(self.log10, other.log10), min(self.log10, other.log10)
        if math.isinf(high):
            return self
        log10 = min(0.0, high + math.log10(1.0 + 10.0 ** (low - high)))
        routes = dict.fromkeys([self.route, other.route])
        return TailProbability(min(1.0, self.value + other.value), log10, " and ".join(routes))


def smallest_p(n: int, m: int, alternative: Alternative = "greater") -> float:
    """Return the smallest p-value that n against m scores can have.

    Parameters
    ----------
    n, m : int
        Sizes of the two groups.
    alternative : {"greater", "two-sided"}

    Returns
    -------
    float
    """
    sides = 2 if alternative == "two-sided" and n == m else 1
    return sides / math.comb(n + m, n)


def check_choice(kind: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise an error that lists the allowed values if `value` is not one of them.

    Parameters
    ----------
    kind : str
        Name of the option for the error message.
    value : str
    allowed : tuple of str
    """
    if value not in allowed:
        raise UnknownNameError(kind, value, allowed, f"(one of {', '.join(allowed)})")


def permutation_test(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    *,
    protocol: Protocol = "exact",
    alternative: Alternative = "greater",
    route: Route = "auto",
    noise: float = 0.0,
    rng: Rng = None,
) -> TailProbability:
    """Return the share of splits of the scores that favour X at least as much as the observed split.

    Parameters
    ----------
    x, y : (n,), (m,) float
        Associations of the two target sets.
    protocol : {"exact", "may2019", "caliskan2017"}
        ``exact`` does not sample. ``may2019`` enumerates up to 100,000 partitions and otherwise draws 99,999 and
        adds one. ``caliskan2017`` fits a normal distribution to 100,000 draws.
    alternative : {"greater", "two-sided"}
        Two-sided counts splits whose difference of means is as far from zero on either side.
    route : {"auto", "enumeration", "counting", "saddle-point"}
        Algorithm of the ``exact`` protocol. ``auto`` enumerates up to 20 million partitions, counts if that is quick,
        and otherwise uses the saddle-point approximation. ``counting`` takes seconds and about a gigabyte for 25 v 25.
    noise : float
        Maximum rounding error of a score; at least some units in the last place are assumed.
    rng : numpy Generator or seed
        Used by the protocols that draw.

    Returns
    -------
    TailProbability
    """
    check_choice("protocol", protocol, PROTOCOLS)
    check_choice("alternative", alternative, get_args(Alternative))
    check_choice("route", route, get_args(Route))
    if protocol == "may2019" and len(x) != len(y):
        raise UsageError(
            f"protocol may2019 needs target sets of one size, got {len(x)} and {len(y)}; use protocol exact"
        )
    tail = SubsetTail.from_scores(x, y, noise)
    if protocol == "exact" or (protocol == "may2019" and tail.n_subsets <= _N_DRAWS):
        return _exact_test(tail, alternative, "enumeration" if protocol == "may2019" else route)
    n_draws = _N_DRAWS - (protocol == "may2019")
    sums = np.concatenate(list(_draw_sums(tail, n_draws, np.random.default_rng(rng))))
    return (_sampled_test if protocol == "may2019" else _normal_fit)(tail, sums, alternative)


def _exact_test(tail: SubsetTail, alternative: Alternative, route: Route) -> TailProbability:
    if alternative == "greater":
        return _tail_probability(tail, route)
    if tail.threshold < 0.0:
        tail = tail.reflect()
    if tail.threshold <= tail.slack * tail.unit:  # a tie with the mean: every split is as extreme
        return TailProbability(1.0, 0.0, "enumeration")
    upper = _tail_probability(tail, route)
    symmetric = 2 * tail.size == len(tail.levels)
    return upper.plus(upper if symmetric else _tail_probability(tail.mirror(), route))


def _tail_probability(tail: SubsetTail, route: Route) -> TailProbability:
    """Return P[sum >= observed sum] over all subsets, without sampling."""
    if tail.lowest_tie <= tail.extremes[0]:
        return TailProbability(1.0, 0.0, "enumeration")
    if tail.lowest_tie > tail.extremes[1]:
        return TailProbability(0.0, -math.inf, "enumeration")
    if route == "enumeration" or (route == "auto" and tail.n_subsets <= _MAX_ENUMERATED):
        return TailProbability.from_count(count_by_enumeration(tail), tail.n_subsets, "enumeration")
    if route == "counting":
        probability = _count_tail(tail, _MAX_STATES)
        if probability is None:
            sizes = f"{tail.size} v {len(tail.levels) - tail.size}"
            raise MeasurementError(f"{sizes} scores have too many sums to count in memory; use route auto")
        return probability
    if route == "auto":
        quick = half_states(len(tail.levels), tail.size) <= _QUICK_STATES
        if not quick and middle_states(len(tail.levels), tail.size) <= _MIDDLE_STATES:
            return TailProbability.from_count(count_by_middle(tail), tail.n_subsets, "counting")
        probability = _count_tail(tail, _QUICK_STATES if quick else _PRUNED_STATES)
        if probability is not None:
            return probability
    log_p = approximate_tail(tail)
    if log_p is None:
        scale = float(np.abs(tail.scores).max())
        observed = np.array([tail.threshold / scale])
        log_p = math.log(float(skovgaard_p_values(tail.scores[None] / scale, tail.size, observed)[0]))
    return TailProbability.from_log(log_p, "saddle-point")


def _count_tail(tail: SubsetTail, max_states: int) -> TailProbability | None:
    count = count_by_halves(tail, max_states)
    return None if count is None else TailProbability.from_count(count, tail.n_subsets, "counting")


def _draw_sums(tail: SubsetTail, n_draws: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield sums of subsets drawn uniformly with replacement, in blocks of bounded memory."""
    total = len(tail.levels)
    rows = max(1, _DRAW_BLOCK // total)
    for start in range(0, n_draws, rows):
        keys = rng.random((min(rows, n_draws - start), total))
        chosen = np.argpartition(keys, tail.size - 1, axis=1)[:, : tail.size]
        yield tail.levels[chosen].sum(axis=1)


def _sampled_test(tail: SubsetTail, sums: NDArray[np.int64], alternative: Alternative) -> TailProbability:
    if alternative == "two-sided" and tail.threshold < 0.0:
        tail, sums = tail.reflect(), -sums
    extreme = sums >= tail.lowest_tie
    if alternative == "two-sided":
        extreme |= -sums >= tail.mirror().lowest_tie
    return TailProbability.from_count(1 + int(np.count_nonzero(extreme)), 1 + len(sums), "sampling")


def _normal_fit(tail: SubsetTail, sums: NDArray[np.int64], alternative: Alternative) -> TailProbability:
    if tail.extremes[1] - tail.extremes[0] <= tail.slack:
        return TailProbability(1.0, 0.0, "normal fit")
    z = (tail.observed - sums.mean()) / sums.std(ddof=1)
    log_p = float(scipy.special.log_ndtr(-abs(z) if alternative == "two-sided" else -z))
    if alternative == "two-sided":
        log_p = min(0.0, log_p + math.log(2.0))
    return TailProbability.from_log(log_p, "normal fit")


def sign_flip_p_value(values: NDArray[np.float64]) -> float:
    """Return the share of all choices of signs whose sum is at least as far from 0 as the observed sum.

    Parameters
    ----------
    values : (n,) float

    Returns
    -------
    float
        Exact for up to 16 values that differ from 0. Beyond, the signs of the 16 largest are enumerated, and the sum of
        the others is normal.

    Examples
    --------
    >>> import numpy as np
    >>> sign_flip_p_value(np.array([0.3, 0.1, 0.4, 0.2]))
    0.125
    """
    ordered = np.sort(np.abs(values))[::-1]
    sums = np.zeros(1)
    for size in ordered[:_MOST_FLIPPED]:
        sums = np.concatenate([sums + size, sums - size])
    rest = math.sqrt(float((ordered[_MOST_FLIPPED:] ** 2).sum()))
    least = abs(float(values.sum())) - FLAT * max(1.0, float(ordered[:1].sum()))
    if rest > 0.0:
        return min(1.0, 2.0 * float(scipy.special.ndtr((sums - least) / rest).mean()))
    return float((np.abs(sums) >= least).mean())


def sample_p_values(scores: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return one-sided permutation p-values of thousands of small samples at once.

    Exact up to 8 v 8; for larger samples Skovgaard's formula, which is some per cent off. Use `permutation_test` for a
    p-value to report.

    Parameters
    ----------
    scores : (samples, N) float
        One sample per row. The first `n` columns are X, the others Y.
    n : int
        Size of X.

    Returns
    -------
    (samples,) float
    """
    centred = scores - scores.mean(axis=1, keepdims=True)
    scale = np.abs(centred).max(axis=1, keepdims=True)
    centred = centred / np.where(scale > 0.0, scale, 1.0)
    if math.comb(scores.shape[1], n) <= _SAMPLE_ENUMERATED:
        return _enumerate_samples(centred, n)
    observed = centred[:, :n].sum(axis=1)
    block = max(1, _SAMPLE_BLOCK // scores.shape[1])
    parts = [
        skovgaard_p_values(centred[i : i + block], n, observed[i : i + block]) for i in range(0, len(centred), block)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _enumerate_samples(scores: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    total = scores.shape[1]
    splits = np.zeros((total, math.comb(total, n)))
    for column, chosen in enumerate(itertools.combinations(range(total), n)):
        splits[list(chosen), column] = 1.0
    p_values = np.empty(len(scores))
    step = max(1, _SAMPLE_BLOCK // splits.shape[1])
    for start in range(0, len(scores), step):
        block = scores[start : start + step]
        observed = block[:, :n].sum(axis=1, keepdims=True)
        p_values[start : start + step] = (block @ splits >= observed - _SAMPLE_TIE).mean(axis=1)
    return p_values
