"""Compare how well models agree with human ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biassay.errors import UsageError
from biassay.results.comparison import Comparison, choose_baseline, find_setting_differences, read_compared
from biassay.results.paired_comparison import models_by_label
from biassay.results.run_data import BaseRecord, RunData, RunSlice, group_each, none_if_nan
from biassay.results.tables import column, table_row
from biassay.stats.kendall import tau_difference
from biassay.studies.stereotypes.results import format_measure, get_pilot_groups, split_by_measure


@table_row
class AgreementDifference(BaseRecord):
    """Difference of two models in agreement with people (Kendall's tau) by one measure.

    Groups on which the templates of either model were chosen are left out.
    """

    measure: str = column("measure", "The measure.", get=lambda row: format_measure(row.measure))
    baseline: str
    model: str = column("model", "The model that is compared.")
    tau_baseline: float | None = column("tau of the first", "Agreement of the first model with people.")
    tau_model: float | None = column("tau of the model", "Agreement of the model with people.")
    difference: float | None = column("difference", "Tau of the model minus tau of the first.")
    interval_low: float | None = column("95%, low", "Lower end of the 95% interval with other groups.")
    interval_high: float | None = column("95%, high", "Upper end of the 95% interval with other groups.")
    tau_between: float | None = column("tau between the two", "Agreement of the models with each other.")
    num_groups: int = column("groups", "Compared groups.")
    num_cells: int = column("cells", "Compared cells: groups by pairs of traits.")


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
    rows = tuple(
        row
        for label, model in models.items()
        if label != first
        for row in _compare_agreements(first, models[first], label, model)
    )
    if not rows:
        raise UsageError(
            "the models have no measure of a rated group in common; run biassay stereotypes with --human FILE"
        )
    return Comparison("stereotypes", first, {"agreements": rows}, notes, gathered=group_each(runs))


def _describe_run(run: RunData) -> dict[str, object]:
    """Describe what compared runs must share."""
    fields = {"traits and groups": "abc_digest", "variant": "variant", "prior": "prior"}
    human = run.manifest.inputs.human
    return {
        **read_compared(run, {**fields, "all adjectives": "all_adjectives"}),
        "human judgements": human and human.digest,
    }


def _compare_agreements(baseline: str, old: RunSlice, label: str, new: RunSlice) -> Iterator[AgreementDifference]:
    """Compare two models by every measure that both have."""
    new_measures = {measure.row.measure: measure for measure in split_by_measure(new)}
    for one in split_by_measure(old):
        other = new_measures.get(one.row.measure)
        if other is None:
            continue
        pilot = get_pilot_groups(one) | get_pilot_groups(other)
        profiles = {row.group: row for row in other["profiles"] if row.group not in pilot}
        rated = [row for row in one["profiles"] if row.group in profiles and row.human and not row.parts]
        if not rated:
            continue
        found = tau_difference(
            [_to_floats(row.scores) for row in rated],
            [_to_floats(profiles[row.group].scores) for row in rated],
            [_to_floats(row.human or ()) for row in rated],
            domains=[row.domain for row in rated],
        )
        yield AgreementDifference(
            one.row.measure,
            baseline,
            label,
            tau_baseline=none_if_nan(found.first),
            tau_model=none_if_nan(found.second),
            difference=none_if_nan(found.difference),
            interval_low=none_if_nan(found.low),
            interval_high=none_if_nan(found.high),
            tau_between=none_if_nan(found.between),
            num_groups=found.num_groups,
            num_cells=found.num_cells,
        )


def _to_floats(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
