"""Findings about stereotypes, with scores centred on the mean of all groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from biassay.results.outcomes import Finding, Outcome, Result, get_decided, make_outcome_finding
from biassay.results.run_data import RunData, RunSlice, model_key, model_labels
from biassay.studies.stereotypes.results import (
    ALL_ANNOTATORS,
    GroupTraits,
    ProfileRow,
    StereotypeInputsRecord,
    find_closest_measure,
    format_measure,
)

Scores = tuple[float | None, ...]


@dataclass(frozen=True)
class Trait:
    """A trait by which a group stands out.

    Attributes
    ----------
    name, opposite : str
    beyond : float
        Distance of the score from the mean of all groups; never negative.
    score : float
        Score as measured, positive towards `name`.
    human : float or None
        People's rating towards `name`, from 0 to 100.
    """

    name: str
    opposite: str
    beyond: float
    score: float
    human: float | None


def select_singles(measure: RunSlice) -> list[ProfileRow]:
    """Return the profiles of groups that are not paired."""
    return [row for row in measure["profiles"] if not row.parts]


def is_centred(profiles: Sequence[ProfileRow]) -> bool:
    """Return whether several groups have scores, so that they can be compared with each other."""
    return sum(any(_none_if_infinite(score) is not None for score in row.scores) for row in profiles) > 1


def mean_scores(profiles: Sequence[ProfileRow]) -> Scores:
    """Return the mean over groups for every pair; None if no group has a score."""
    by_pair = zip(*(row.scores for row in profiles), strict=True)
    known = [[score for score in map(_none_if_infinite, scores) if score is not None] for scores in by_pair]
    return tuple(math.fsum(scores) / len(scores) if scores else None for scores in known)


def center_scores(profiles: Sequence[ProfileRow]) -> dict[str, Scores]:
    """Subtract the means over groups from the scores of every group, unless there is only one."""
    if not is_centred(profiles):
        return {row.group: tuple(map(_none_if_infinite, row.scores)) for row in profiles}
    means = mean_scores(profiles)
    return {row.group: tuple(map(_subtract, row.scores, means)) for row in profiles}


def _subtract(score: float | None, mean: float | None) -> float | None:
    finite = _none_if_infinite(score)
    return None if finite is None or mean is None else finite - mean


def find_distinctive_traits(profiles: Sequence[ProfileRow], inputs: StereotypeInputsRecord) -> dict[str, list[Trait]]:
    """Find the traits by which every group stands out, strongest first, one per pair."""
    centred = center_scores(profiles)
    return {row.group: _find_traits(row, centred[row.group], inputs) for row in profiles}


def _find_traits(row: ProfileRow, centred: Scores, inputs: StereotypeInputsRecord) -> list[Trait]:
    people = row.human or (None,) * len(centred)
    traits = []
    for pair, beyond, score, human in zip(inputs.pairs, centred, row.scores, people, strict=True):
        if beyond is None or score is None:
            continue
        left, right = inputs.traits[pair]
        rated = None if human is None else 100.0 - human
        traits.append(
            Trait(right, left, beyond, score, human) if beyond >= 0.0 else Trait(left, right, -beyond, -score, rated)
        )
    return sorted(traits, key=lambda trait: -trait.beyond)


def _none_if_infinite(score: float | None) -> float | None:
    return score if score is not None and math.isfinite(score) else None


_TRAITS = 5


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model for every measure compared with all people, and one for every single group."""
    agreements, groups = (get_decided(run, table) for table in ("alignments", "groups"))
    labels = model_labels(run)
    return [
        *(
            _make_agreement_finding(labels[model_key(result)], result)
            for result in agreements
            if result.annotators == ALL_ANNOTATORS
        ),
        *(_make_group_finding(labels[model_key(result)], result) for result in groups),
    ]


def _make_agreement_finding(label: str, result: Result) -> Finding:
    name = format_measure(result.measure)
    is_tested = None not in (result.effect_size, result.tau_shuffled, result.p_adjusted)
    return make_outcome_finding(
        result,
        label,
        direction=f"{name} agrees better with people's ratings of the same group than of others" if is_tested else "",
        p_values={"groups shuffled": result.p_value, "groups shuffled, corrected": result.p_adjusted},
        notes=(f"tau = {result.tau_shuffled:z.2f} with groups shuffled",) if is_tested else (),
    )


def _make_group_finding(label: str, result: Result) -> Finding:
    return make_outcome_finding(
        result,
        label,
        direction=_describe_traits(result.group, centred=result.centred) if result.traits else "",
        p_values={},
        words=result.traits,
    )


def _describe_traits(group: str, *, centred: bool) -> str:
    return f"traits by which {group} stands out" if centred else f"strongest traits of {group}"


def describe_groups(
    model: RunSlice, inputs: StereotypeInputsRecord, revision: str | None = None
) -> Iterator[GroupTraits]:
    """Yield the traits of every single group, by the measure that agrees best with people or comes first.

    Parameters
    ----------
    model : RunSlice
        Measures, profiles and alignments of one model.
    inputs : StereotypeInputsRecord
    revision : str, optional
        Fingerprint of the model.
    """
    best = find_closest_measure(model)
    profiles = [] if best is None else select_singles(best)
    traits, centred = find_distinctive_traits(profiles, inputs), is_centred(profiles)
    for profile in profiles:
        strongest = traits[profile.group][:_TRAITS]
        title = f"{_describe_traits(profile.group, centred=centred)}, by {format_measure(profile.measure)}"
        yield GroupTraits(
            model=profile.model,
            options=profile.options,
            model_revision=revision,
            title=title,
            topic=profile.domain,
            claim="descriptive",
            status="measured" if strongest else "skipped",
            reason=None if strongest else _explain_missing(model, profile.group),
            outcome=Outcome(effect_size=strongest[0].beyond if strongest else None, scale="score"),
            group=profile.group,
            by=profile.measure,
            traits=tuple(trait.name for trait in strongest),
            centred=centred,
        )


def _explain_missing(model: RunSlice, group: str) -> str:
    if any(group in row.unknown_groups for row in model["models"]):
        return "words of the group are out of vocabulary"
    if any(group in row.few_groups for row in model["contexts"]):
        return "the group has too few contexts"
    return "no score is defined"
