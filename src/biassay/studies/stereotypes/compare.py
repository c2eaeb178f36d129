"""Compare how well models agree with human ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biassay.errors import UsageError
from biassay.results.comparison import Comparison, choose_baseline, find_setting_differences, read_compared
from biassay.results.paired_comparison import models_by_label
from biassay.results.run_data import BaseRecord, RunData, RunSlice, group_each, none_if_nan
from biassay.stats.kendall import tau_difference
from biassay.studies.stereotypes.results import get_pilot_groups, split_by_measure


@dataclass(frozen=True)
class AgreementDifference(BaseRecord):
    """Difference of two models in agreement with people (Kendall's tau) by one measure.

    Groups on which the templates of either model were chosen are left out.
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


def compare_stereotypes(runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
    """Compare Kendall's tau with people over the groups that both models have scores of.

    Parameters
    ----------
    runs : dict of str to RunData
        Runs by name.
    baseline : str or None
        Label of the model that others are compared with; None for the first.
    mixed : bool
        If True, compare runs with different settings.
    """
    notes = find_setting_differences({name: _describe_run(run) for name, run in runs.items()}, mixed=mixed)
    models = models_by_label(runs)
    first = choose_baseline(list(models), baseline)
    if len({run.manifest.inputs.pairs for run in runs.values()}) > 1:
        raise UsageError("the runs have different pairs of traits and cannot be compared")
    rows = [
        row
        for label, model in models.items()
        if label != first
        for row in _compare_agreements(first, models[first], label, model)
    ]
    if not rows:
        raise UsageError(
            "the models have no measure of a rated group in common; run biassay stereotypes with --human FILE"
        )
    return Comparison("stereotypes", first, {"agreements": tuple(rows)}, notes, gathered=group_each(runs))


def _describe_run(run: RunData) -> dict[str, object]:
    """Describe what compared runs must share."""
    fields = {"traits and groups": "abc_digest", "variant": "variant", "prior": "prior"}
    human = run.manifest.inputs.human
    return {
        **read_compared(run, {**fields, "all adjectives": "all_adjectives"}),
        "human judgements": human and human.digest,
    }


def _compare_agreements(baseline: str, old: RunSlice, label: str, new: RunSlice) -> list[AgreementDifference]:
    """Compare two models by every measure that both have."""
    rows = []
    new_measures = {measure.row.measure: measure for measure in split_by_measure(new)}
    for old_measure in split_by_measure(old):
        name = old_measure.row.measure
        if name not in new_measures:
            continue
        new_measure = new_measures[name]
        pilot = get_pilot_groups(old_measure) | get_pilot_groups(new_measure)
        profiles = {row.group: row for row in new_measure["profiles"] if not row.parts and row.group not in pilot}
        shared = [
            (row, profiles[row.group])
            for row in old_measure["profiles"]
            if row.group in profiles and row.human and not row.parts
        ]
        if not shared:
            continue
        difference = tau_difference(
            [_to_floats(row.scores) for row, _ in shared],
            [_to_floats(row.scores) for _, row in shared],
            [_to_floats(row.human or ()) for row, _ in shared],
            domains=[row.domain for row, _ in shared],
        )
        rows.append(
            AgreementDifference(
                name,
                baseline,
                label,
                tau_baseline=none_if_nan(difference.first),
                tau_model=none_if_nan(difference.second),
                difference=none_if_nan(difference.difference),
                interval_low=none_if_nan(difference.low),
                interval_high=none_if_nan(difference.high),
                tau_between=none_if_nan(difference.between),
                num_groups=difference.num_groups,
                num_cells=difference.num_cells,
            )
        )
    return rows


def _to_floats(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
