"""The share of partitions at least as extreme as the one observed: by which route, and how precisely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from biassay.errors import MeasurementError, UnknownNameError
from biassay.stats.counting import count_by_halves, count_by_middle, states_of_halves, work_by_middle
from biassay.stats.enumeration import count_by_enumeration
from biassay.stats.rounded_counting import bounds_by_rounding
from biassay.stats.saddlepoint import saddlepoint_tail
from biassay.stats.subsets import SubsetTail

__all__ = ["Route", "TailProbability", "tail_probability"]

Route = Literal["auto", "enumeration", "counting", "saddle-point"]

_ENUMERATE_UP_TO = 20_000_000
_QUICK_STATES = 1 << 21  # sums in a half: 21 v 21, or 4 v 160, in some tenths of a second
_FEW_STATES = 1 << 18  # so far out in the tail that pruning leaves little: milliseconds
_SOME_STATES = 1 << 20  # half a second at the most
_PATIENT_STATES = 1 << 23  # where nothing else will do: 23 v 23, a second
_MOST_STATES = 1 << 26  # 25 v 25: two halves of 33 million sums, about a gigabyte
_QUICK_WORK = 6_000_000  # sums beside a middle score: 5 v 250
_ROUNDED = 1 << 20  # partial subsets: a tenth of a second
_ROUNDED_ALONE = 1 << 22
_SMOOTH_ENOUGH = 1e-3
_OUTLYING = 8.0  # deviations of the other scores
_MOST_PARTS = 8


@dataclass(frozen=True)
class TailProbability:
    """A probability, how it was computed and how large its error may be.

    Attributes
    ----------
    value : float
        The probability; 0.0 only if it is below the smallest float, and then ``log10`` still holds it.
    log10 : float
        Its decimal logarithm.
    route : str
        ``enumeration`` and ``counting`` are exact; ``saddle-point`` is an integral; ``rounded counting`` lies between
        two bounds; ``sampling`` and ``normal fit`` are the papers' protocols.
    error : float
        Relative error: 0 for an exact count, a bound for an integral or a rounded count, one standard error for a
        sample, NaN for the normal fit.
    """

    value: float
    log10: float
    route: str
    error: float

    @classmethod
    def from_count(cls, count: int, total: int, route: str) -> TailProbability:
        log10 = math.log10(count) - math.log10(total) if count else -math.inf
        return cls(count / total, min(0.0, log10), route, 0.0)

    @classmethod
    def from_log(cls, log_p: float, route: str, error: float) -> TailProbability:
        return cls(math.exp(log_p), log_p / math.log(10.0), route, error)

    @classmethod
    def between(cls, low: float, high: float) -> TailProbability:
        """The geometric middle of two bounds, given by their logarithms."""
        return cls.from_log((low + high) / 2.0, "rounded counting", float(np.expm1((high - low) / 2.0)) + 1e-9)

    def times(self, part: int, whole: int) -> TailProbability:
        """The probability of the same tail in ``part`` of the ``whole``."""
        log10 = self.log10 + math.log10(part) - math.log10(whole)
        return TailProbability(self.value * (part / whole), min(0.0, log10), self.route, self.error)

    def plus(self, other: TailProbability) -> TailProbability:
        """The probability of either of two tails."""
        high, low = max(self.log10, other.log10), min(self.log10, other.log10)
        if math.isinf(high):
            return self
        log10 = high + math.log10(1.0 + 10.0 ** (low - high))
        return TailProbability(
            min(1.0, self.value + other.value),
            min(0.0, log10),
            " and ".join(dict.fromkeys([self.route, other.route])),
            max(self.error, other.error),
        )


def tail_probability(tail: SubsetTail, route: Route = "auto") -> TailProbability:
    """P[sum >= threshold] over all subsets of the given size, without sampling.

    ``auto`` enumerates up to twenty million partitions, counts where that is quick, and integrates along the saddle
    point elsewhere; where that is not precise, it may count rounded sums. Naming a route forces it;
    ``counting`` then takes seconds and about a gigabyte for 25 v 25.
    """
    if tail.level <= tail.extremes[0]:
        return TailProbability(1.0, 0.0, "enumeration", 0.0)
    if tail.level > tail.extremes[1]:
        return TailProbability(0.0, -math.inf, "enumeration", 0.0)
    if route == "auto":
        return _automatic(tail)
    if route == "enumeration":
        return TailProbability.from_count(count_by_enumeration(tail), tail.n_partitions, route)
    if route == "counting":
        return _forced(_counted(tail, _MOST_STATES), tail, "sets this large cannot be counted in memory")
    if route == "saddle-point":
        return _forced(_smooth(tail), tail, "the split is too extreme to have a saddle point")
    raise UnknownNameError("route", route, get_args(Route), f"(one of {', '.join(get_args(Route))})")


def _automatic(tail: SubsetTail) -> TailProbability:
    found = _quickly_counted(tail)
    if found is not None:
        return found
    smooth = _smooth(tail, _SMOOTH_ENOUGH)
    if smooth is not None and smooth.error <= _SMOOTH_ENOUGH:
        return smooth  # else counting may be quicker than the rest of the integral
    patient = states_of_halves(len(tail.levels), tail.size) <= _PATIENT_STATES
    found = _counted(tail, _PATIENT_STATES if patient else _SOME_STATES) or _without_outliers(tail)
    if found is not None:
        return found
    smooth = smooth or _smooth(tail)
    rounded = TailProbability.between(*bounds_by_rounding(tail, _ROUNDED_ALONE if smooth is None else _ROUNDED))
    return rounded if smooth is None else min(smooth, rounded, key=lambda either: either.error)


def _quickly_counted(tail: SubsetTail) -> TailProbability | None:
    if tail.n_partitions <= _ENUMERATE_UP_TO:
        return tail_probability(tail, "enumeration")
    if states_of_halves(len(tail.levels), tail.size) <= _QUICK_STATES:
        return tail_probability(tail, "counting")
    if work_by_middle(len(tail.levels), tail.size) <= _QUICK_WORK:
        return TailProbability.from_count(count_by_middle(tail), tail.n_partitions, "counting")
    return _counted(tail, _FEW_STATES)


def _without_outliers(tail: SubsetTail) -> TailProbability | None:
    """The tail as those of the subsets with and without each extreme score, if these are few and the rest is even."""
    parts, sure = [tail], 0
    while parts and (place := _outlier(parts[0])) is not None:
        split = [part.without(place, taken) for part in parts for taken in (False, True) if part.size >= taken]
        sure += sum(part.n_partitions for part in split if part.level <= part.extremes[0])
        parts = [part for part in split if part.extremes[0] < part.level <= part.extremes[1]]
        if len(parts) > _MOST_PARTS:
            return None
    if parts and parts[0] is tail:
        return None
    found = TailProbability.from_count(sure, tail.n_partitions, "counting")
    for part in parts:
        share = _quickly_counted(part) or _smooth(part)
        if share is None or share.error > _SMOOTH_ENOUGH:
            return None
        found = found.plus(share.times(part.n_partitions, tail.n_partitions))
    return found


def _outlier(tail: SubsetTail) -> int | None:
    """The place of the most extreme score, if it is far from all others."""
    place = int(np.argmax(np.abs(tail.scores)))
    far = abs(float(tail.scores[place])) > _OUTLYING * float(np.delete(tail.scores, place).std())
    return place if far else None


def _counted(tail: SubsetTail, max_states: int) -> TailProbability | None:
    count = count_by_halves(tail, max_states)
    return None if count is None else TailProbability.from_count(count, tail.n_partitions, "counting")


def _smooth(tail: SubsetTail, precision: float = math.inf) -> TailProbability | None:
    found = saddlepoint_tail(tail, precision)
    return None if found is None else TailProbability.from_log(found.log_p, "saddle-point", found.relative_error)


def _forced(found: TailProbability | None, tail: SubsetTail, why: str) -> TailProbability:
    if found is None:
        raise MeasurementError(f"no p-value for {tail.size} of {len(tail.levels)} scores: {why}")
    return found
