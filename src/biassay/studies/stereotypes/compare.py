"""Compare how well models agree with human ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biassay.errors import UsageError
from biassay.results.comparison import Comparison, choose_baseline, find_setting_differences
from biassay.results.run_data import BaseRecord, RunData
from biassay.results.views import RunGroup, RunSlice, label_models
from biassay.stats.kendall import tau_difference
from biassay.studies.stereotypes.results import measures_of, models_of, pilot_of

__all__ = ["AgreementDifference", "compare_stereotypes"]


@dataclass(frozen=True)
class AgreementDifference(BaseRecord):
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
    """Compare Kendall's tau with people over the groups that both models have scores of.

    Parameters
    ----------
    found : dict of str to RunData
        Runs by name.
    baseline : str or None
        Label of the model that others are compared with; None for the first.
    mixed : bool
        If True, compare runs with different settings.
    """
    notes = find_setting_differences(
        _get_comparable_settings(found),
        {
            "traits and groups": "abc_digest",
            "variant": "variant",
            "prior": "prior",
            "all adjectives": "all_adjectives",
            "human judgements": "human",
        },
        mixed=mixed,
    )
    models = label_models({name: {model.label: model for model in models_of(one)} for name, one in found.items()})
    first = choose_baseline(list(models), baseline)
    pairs = next(iter(found.values())).manifest.inputs.pairs
    if any(one.manifest.inputs.pairs != pairs for one in found.values()):
        raise UsageError("the runs have other pairs of traits and cannot be compared")
    rows = [
        row
        for label, model in models.items()
        if label != first
        for row in _compare_agreements(first, models[first], label, model)
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
        gathered=tuple(RunGroup(one, {name: one}) for name, one in found.items()),
    )


@dataclass(frozen=True)
class _ComparableSettings:
    """What runs that are compared should have in common."""

    abc_digest: str
    variant: str
    prior: str
    all_adjectives: bool
    human: str | None


def _get_comparable_settings(found: Mapping[str, RunData]) -> dict[str, _ComparableSettings]:
    people = [one.manifest.inputs.human for one in found.values()]
    judged = [None if human is None else human.digest for human in people]
    return {
        name: _ComparableSettings(
            one.manifest.inputs.abc_digest,
            one.manifest.settings.variant,
            one.manifest.settings.prior,
            one.manifest.settings.all_adjectives,
            human,
        )
        for (name, one), human in zip(found.items(), judged, strict=True)
    }


def _compare_agreements(first: str, one: RunSlice, label: str, other: RunSlice) -> list[AgreementDifference]:
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
            [_to_floats(p.scores) for p, _ in shared],
            [_to_floats(p.scores) for _, p in shared],
            [_to_floats(p.human or ()) for p, _ in shared],
            domains=[p.domain for p, _ in shared],
        )
        rows.append(
            AgreementDifference(
                name,
                first,
                label,
                tau_baseline=_none_if_nan(found.first),
                tau_model=_none_if_nan(found.second),
                difference=_none_if_nan(found.difference),
                interval_low=_none_if_nan(found.low),
                interval_high=_none_if_nan(found.high),
                tau_between=_none_if_nan(found.between),
                num_groups=found.num_groups,
                num_cells=found.num_cells,
            )
        )
    return rows


def _none_if_nan(number: float) -> float | None:
    return None if math.isnan(number) else number


def _to_floats(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
