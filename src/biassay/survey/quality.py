"""Quality rules that decide whether a participant's annotations are valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biassay.survey.study import QualityRules

MIDDLE = 50


@dataclass(frozen=True)
class ParticipantAnswers:
    """Answers that the rules check.

    `ratings` and `seconds` hold one entry per page with sliders; the last page repeats the one at index `repeated`.
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
class QualityVerdict:
    """Verdict on a participant: reasons for rejection, and the agreement of both answers to the repeated page."""

    valid: bool
    reasons: tuple[str, ...]
    agreement: float


def judge_quality(answers: ParticipantAnswers, rules: QualityRules) -> QualityVerdict:
    """Judge a participant who has finished."""
    reasons = []
    if rules.which_group and answers.which_group != answers.groups[0]:
        reasons.append("which group")
    if rules.high_low and not _passes_high_low(answers):
        reasons.append("high and low")
    agreement = self_agreement(answers.ratings[answers.repeated], answers.ratings[-1], rules.tolerance)
    # A share such as 0.8 is not exact in binary.
    if agreement < rules.self_agreement - 1e-9:
        reasons.append("self-agreement")
    # A page with one pair has no spread.
    if any(len(page) > 1 and max(page) - min(page) < rules.spread for page in answers.ratings):
        reasons.append("all alike")
    if min(answers.seconds) < rules.seconds_per_group:
        reasons.append("too fast")
    return QualityVerdict(not reasons, tuple(reasons), agreement)


def self_agreement(first: Sequence[int], second: Sequence[int], tolerance: int) -> float:
    """Return the share of pairs whose ratings are on the same side of 50, or at most `tolerance` apart.

    Parameters
    ----------
    first, second : sequence of int
        Ratings of both pages.
    tolerance : int
        Largest difference that counts as agreement.
    """
    same = [(a - MIDDLE) * (b - MIDDLE) > 0 or abs(a - b) <= tolerance for a, b in zip(first, second, strict=True)]
    return sum(same) / len(same)


def score_traits(pairs: Sequence[tuple[str, str]], ratings: Sequence[int]) -> Mapping[str, int]:
    """Score how well each trait fits, from -50 to 50; the traits of a pair have opposite scores."""
    right = {pair[1]: rating - MIDDLE for pair, rating in zip(pairs, ratings, strict=True)}
    left = {pair[0]: MIDDLE - rating for pair, rating in zip(pairs, ratings, strict=True)}
    return {**left, **right}


def _passes_high_low(answers: ParticipantAnswers) -> bool:
    fit = score_traits(answers.pairs, answers.ratings[1])
    return fit.get(answers.high or "", 0) > 0 and fit.get(answers.low or "", 0) < 0
