"""How much better other models agree with people than the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from biassay.errors import UsageError
from biassay.results.comparison import Comparison, choose_baseline, find_unlike
from biassay.results.data import Record, RunData
from biassay.results.gathering import Gathered
from biassay.results.slices import Slice, labelled
from biassay.stats.tau_difference import tau_difference
from biassay.studies.stereotypes.view import measures_of, models_of, pilot_of

__all__ = ["AgreementDifference", "compare_stereotypes"]


@dataclass(frozen=True)
class AgreementDifference(Record):
    """A measure of stereotypes: how much better the other model agrees with people than the first (Kendall's tau).

    Over the groups on which the templates of neither were chosen.
    """

    measure: str
    baseline: str
    model: str
    tau_baseline: float | None
    tau_model: float | None
    difference: float | None
    interval_low: float | None
    interval_high: float | None
    tau_between: float | None
    num_groups: int
    num_cells: int


def compare_stereotypes(found: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Kendall's tau with people, over the groups that both models have scores of."""
    notes = find_unlike(
        _asked(found),
        {
            "traits and groups": "abc_digest",
            "variant": "variant",
            "prior": "prior",
            "all adjectives": "all_adjectives",
            "human judgements": "human",
        },
        mixed=mixed,
    )
    models = labelled({name: {model.label: model for model in models_of(one)} for name, one in found.items()})
    first = choose_baseline(list(models), baseline)
    pairs = next(iter(found.values())).manifest.inputs.pairs
    if any(one.manifest.inputs.pairs != pairs for one in found.values()):
        raise UsageError("the runs have other pairs of traits and cannot be compared")
    rows = [
        row
        for label, model in models.items()
        if label != first
        for row in _agreements(first, models[first], label, model)
    ]
    if not rows:
        raise UsageError(
            "the models have no measure and group with human judgements in common (--human of stereotypes)"
        )
    return Comparison(
        "stereotypes",
        first,
        {"agreements": tuple(rows)},
        notes,
        gathered=tuple(Gathered(one, {name: one}) for name, one in found.items()),
    )


@dataclass(frozen=True)
class _Asked:
    """What runs that are compared should have in common."""

    abc_digest: str
    variant: str
    prior: str
    all_adjectives: bool
    human: str | None


def _asked(found: Mapping[str, RunData]) -> dict[str, _Asked]:
    """Judgements are known by what they say; by the name of their file where an older run is among them."""
    people = [one.manifest.inputs.human for one in found.values()]
    known = all(human is None or human.digest is not None for human in people)
    judged = [None if human is None else human.digest if known else Path(human.file).name for human in people]
    return {
        name: _Asked(
            one.manifest.inputs.abc_digest,
            one.manifest.settings.variant,
            one.manifest.settings.prior,
            one.manifest.settings.all_adjectives,
            human,
        )
        for (name, one), human in zip(found.items(), judged, strict=True)
    }


def _agreements(first: str, one: Slice, label: str, other: Slice) -> list[AgreementDifference]:
    rows = []
    theirs = {measure.row.measure: measure for measure in measures_of(other)}
    for measure in measures_of(one):
        name = measure.row.measure
        if name not in theirs:
            continue
        left = pilot_of(measure) | pilot_of(theirs[name])
        profiles = {p.group: p for p in theirs[name]["profiles"] if not p.parts and p.group not in left}
        shared = [
            (p, profiles[p.group]) for p in measure["profiles"] if p.group in profiles and p.human and not p.parts
        ]
        if not shared:
            continue
        found = tau_difference(
            [_numbers(p.scores) for p, _ in shared],
            [_numbers(p.scores) for _, p in shared],
            [_numbers(p.human or ()) for p, _ in shared],
            domains=[p.domain for p, _ in shared],
        )
        rows.append(
            AgreementDifference(
                name,
                first,
                label,
                tau_baseline=_known(found.first),
                tau_model=_known(found.second),
                difference=_known(found.difference),
                interval_low=_known(found.low),
                interval_high=_known(found.high),
                tau_between=_known(found.between),
                num_groups=found.num_groups,
                num_cells=found.num_cells,
            )
        )
    return rows


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
