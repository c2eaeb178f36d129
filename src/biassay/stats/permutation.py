"""p-values of an association test, under the protocols of the papers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, UsageError
from biassay.stats.subsets import SubsetTail
from biassay.stats.tails import Route, TailProbability, tail_probability

__all__ = ["PROTOCOLS", "Alternative", "Protocol", "Rng", "check_choice", "permutation_test", "smallest_p"]

Protocol = Literal["exact", "may2019", "caliskan2017"]
Alternative = Literal["greater", "two-sided"]
Rng = np.random.Generator | int | None
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

_DRAWS = 100_000
_BLOCK = 1 << 21


def smallest_p(n: int, m: int, alternative: Alternative = "greater") -> float:
    """The smallest p-value that any scores of n against m could have: one split of them all."""
    sides = 2 if alternative == "two-sided" and n == m else 1
    return sides / math.comb(n + m, n)


def check_choice(kind: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not among the allowed ones."""
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
    """How often does a random split of the scores favour X at least as much as the one observed?

    Parameters
    ----------
    x, y : (n,), (m,) float
        Associations of the two target sets.
    protocol : {"exact", "may2019", "caliskan2017"}
        ``exact`` samples nothing. ``may2019`` enumerates up to 100,000 partitions and otherwise draws 99,999 and
        adds one. ``caliskan2017`` fits a normal distribution to 100,000 draws.
    alternative : {"greater", "two-sided"}
        Two-sided counts splits whose difference of means is as far from zero on either side.
    route : str
        Under ``exact``: how, see `tail_probability`.
    noise : float
        How far a score may be from its true value, by rounding; at least some units in the last place.
    rng : numpy Generator or seed
        Used by the protocols that draw.
    """
    check_choice("protocol", protocol, PROTOCOLS)
    check_choice("alternative", alternative, get_args(Alternative))
    if protocol == "may2019" and len(x) != len(y):
        raise UsageError(
            f"protocol may2019 needs target sets of one size, got {len(x)} and {len(y)}; use protocol exact"
        )
    tail = SubsetTail.of(x, y, noise)
    if protocol == "exact" or (protocol == "may2019" and tail.n_partitions <= _DRAWS):
        return _exact(tail, alternative, "enumeration" if protocol == "may2019" else route)
    draws = np.concatenate(list(_drawn_sums(tail, _DRAWS - (protocol == "may2019"), np.random.default_rng(rng))))
    if protocol == "may2019":
        return _sampled(tail, draws, alternative)
    return _normal_fit(tail, draws, alternative)


def _exact(tail: SubsetTail, alternative: Alternative, route: Route) -> TailProbability:
    if alternative == "greater":
        return tail_probability(tail, route)
    if tail.threshold < 0.0:
        tail = tail.lower_tail
    # A threshold that is a tie with the mean puts every split on one side or the other.
    if tail.threshold <= tail.slack * tail.unit:
        return TailProbability(1.0, 0.0, "enumeration", 0.0)
    found = tail_probability(tail, route)
    # Sets of one size change places from one tail to the other.
    return found.plus(found if 2 * tail.size == len(tail.levels) else tail_probability(tail.opposite_tail, route))


def _drawn_sums(tail: SubsetTail, draws: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Sums of subsets drawn uniformly with replacement, in blocks of bounded memory."""
    total = len(tail.levels)
    rows = max(1, _BLOCK // total)
    for start in range(0, draws, rows):
        keys = rng.random((min(rows, draws - start), total))
        chosen = np.argpartition(keys, tail.size - 1, axis=1)[:, : tail.size]
        yield tail.levels[chosen].sum(axis=1)


def _sampled(tail: SubsetTail, sums: NDArray[np.int64], alternative: Alternative) -> TailProbability:
    if alternative == "two-sided" and tail.threshold < 0.0:
        tail, sums = tail.lower_tail, -sums
    found = sums >= tail.level
    if alternative == "two-sided":
        found |= -sums >= tail.opposite_tail.level
    hits = int(np.count_nonzero(found))
    p = (1 + hits) / (1 + len(sums))
    return TailProbability(p, math.log10(p), "sampling", math.sqrt((1.0 - p) / (p * len(sums))))


def _normal_fit(tail: SubsetTail, sums: NDArray[np.int64], alternative: Alternative) -> TailProbability:
    if tail.extremes[1] - tail.extremes[0] <= tail.slack:
        return TailProbability(1.0, 0.0, "normal fit", math.nan)

    z = (tail.least - sums.mean()) / sums.std(ddof=1)
    log_p = float(scipy.special.log_ndtr(-abs(z) if alternative == "two-sided" else -z))
    if alternative == "two-sided":
        log_p = min(0.0, log_p + math.log(2.0))
    return TailProbability.from_log(log_p, "normal fit", math.nan)
