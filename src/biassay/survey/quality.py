"""Which participants answered with care. Pure rules over their answers; what they are is recorded with the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biassay.survey.study import Rules

__all__ = ["Answers", "Verdict", "fit_of_traits", "judged", "self_agreement"]

MIDDLE = 50


@dataclass(frozen=True)
class Answers:
    """All that the rules look at.

    ``ratings`` are those of the pages in their order, the repeated one last; ``repeated`` is the place of the page that
    it repeats. ``seconds`` are how long each page took.
    """

    pairs: tuple[tuple[str, str], ...]
    groups: tuple[str, ...]
    ratings: tuple[tuple[int, ...], ...]
    repeated: int
    seconds: tuple[float, ...]
    which_group: str | None
    high: str | None
    low: str | None


@dataclass(frozen=True)
class Verdict:
    """``reasons`` say why annotations are not valid; ``agreement`` compares both answers to the repeated page."""

    valid: bool
    reasons: tuple[str, ...]
    agreement: float


def judged(answers: Answers, rules: Rules) -> Verdict:
    """The verdict on a participant who has answered everything."""
    reasons = []
    if rules.which_group and answers.which_group != answers.groups[0]:
        reasons.append("which group")
    if rules.high_low and not _high_and_low(answers):
        reasons.append("high and low")
    agreement = self_agreement(answers.ratings[answers.repeated], answers.ratings[-1], rules.tolerance)
    # A share such as 0.8 is no exact number in binary.
    if agreement < rules.self_agreement - 1e-9:
        reasons.append("self-agreement")
    # One line alone cannot differ from another.
    if any(len(page) > 1 and max(page) - min(page) < rules.spread for page in answers.ratings):
        reasons.append("all alike")
    if min(answers.seconds) < rules.seconds_a_group:
        reasons.append("too fast")
    return Verdict(not reasons, tuple(reasons), agreement)


def self_agreement(first: Sequence[int], second: Sequence[int], tolerance: int) -> float:
    """The share of pairs with both ratings on the same side of 50, or no more than ``tolerance`` apart."""
    same = [(a - MIDDLE) * (b - MIDDLE) > 0 or abs(a - b) <= tolerance for a, b in zip(first, second, strict=True)]
    return sum(same) / len(same)


def fit_of_traits(pairs: Sequence[tuple[str, str]], ratings: Sequence[int]) -> Mapping[str, int]:
    """How well each trait was said to fit, from -50 to 50; the two traits of a pair have opposite values."""
    right = {pair[1]: rating - MIDDLE for pair, rating in zip(pairs, ratings, strict=True)}
    left = {pair[0]: MIDDLE - rating for pair, rating in zip(pairs, ratings, strict=True)}
    return {**left, **right}


def _high_and_low(answers: Answers) -> bool:
    fit = fit_of_traits(answers.pairs, answers.ratings[1])
    return fit.get(answers.high or "", 0) > 0 and fit.get(answers.low or "", 0) < 0
