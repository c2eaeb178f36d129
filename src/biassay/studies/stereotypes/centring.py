"""What sets a group apart: its scores less the mean of all groups. For showing only; records keep them as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from biassay.results.slices import Slice
from biassay.studies.stereotypes.records import InputsRecord, ProfileRow

__all__ = ["Trait", "centred", "is_centred", "means_of", "sides", "singles", "traits_of"]

Scores = tuple[float | None, ...]


@dataclass(frozen=True)
class Trait:
    """A trait that a group stands out by: ``beyond`` the mean of all groups by so much, and never below zero.

    ``score`` is as it was measured, and above zero where it points to ``name``; ``human`` is people's rating of 100
    towards it.
    """

    name: str
    opposite: str
    beyond: float
    score: float
    human: float | None


def singles(measure: Slice) -> list[ProfileRow]:
    """The profiles of groups that are not paired."""
    return [row for row in measure["profiles"] if not row.parts]


def is_centred(profiles: Sequence[ProfileRow]) -> bool:
    """Whether there is another group to compare with."""
    return sum(any(_known(score) is not None for score in row.scores) for row in profiles) > 1


def means_of(profiles: Sequence[ProfileRow]) -> Scores:
    """The mean over groups, pair by pair; None where no group has a score."""
    by_pair = zip(*(row.scores for row in profiles), strict=True)
    known = [[score for score in map(_known, scores) if score is not None] for scores in by_pair]
    return tuple(math.fsum(scores) / len(scores) if scores else None for scores in known)


def centred(profiles: Sequence[ProfileRow]) -> dict[str, Scores]:
    """Scores less these means by group; as they are where there is but one group."""
    if not is_centred(profiles):
        return {row.group: tuple(map(_known, row.scores)) for row in profiles}
    means = means_of(profiles)
    return {row.group: tuple(map(_less, row.scores, means)) for row in profiles}


def _less(score: float | None, mean: float | None) -> float | None:
    own = _known(score)
    return None if own is None or mean is None else own - mean


def traits_of(profiles: Sequence[ProfileRow], inputs: InputsRecord) -> dict[str, list[Trait]]:
    """By group the traits by which it stands out, most of all first, one a pair."""
    apart = centred(profiles)
    return {row.group: _traits(row, apart[row.group], inputs) for row in profiles}


def _traits(row: ProfileRow, apart: Scores, inputs: InputsRecord) -> list[Trait]:
    people = row.human or (None,) * len(apart)
    found = []
    for pair, beyond, score, human in zip(inputs.pairs, apart, row.scores, people, strict=True):
        if beyond is None or score is None:
            continue
        left, right = sides(pair, inputs)
        rated = None if human is None else 100.0 - human
        named = (
            Trait(right, left, beyond, score, human) if beyond >= 0.0 else Trait(left, right, -beyond, -score, rated)
        )
        found.append(named)
    return sorted(found, key=lambda trait: -trait.beyond)


def sides(pair: str, inputs: InputsRecord) -> tuple[str, str]:
    """The two traits of a pair; an older run may not say which they are."""
    return inputs.traits.get(pair, (f"{pair} (left)", f"{pair} (right)"))


def _known(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None
