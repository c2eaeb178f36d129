"""Check that a stored run of stereotypes agrees with itself: its names, its sizes, and its scores by template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.results.arrays import array_path
from biassay.results.checking import find_models_without, find_orphans, find_unknown, row_fault
from biassay.results.data import RunData, rows_by_model
from biassay.results.storage import RESULTS_JSON, Fault
from biassay.studies.stereotypes.pairs import mean_over
from biassay.studies.stereotypes.records import InputsRecord, MeasureRow, ProfileRow

__all__ = ["find_faults"]

_OF_MEASURES = ("profiles", "alignments", "group_alignments", "orders", "dominance", "emergent", "rated")


def find_faults(run: RunData) -> Iterator[Fault]:
    """Yield names that are unknown, rows of another length than the pairs, and profiles that the scores do not give."""
    inputs: InputsRecord = run.manifest.inputs
    yield from find_models_without(run, "models")
    yield from find_unknown(run, "measures", "measure", inputs.measures)
    yield from find_unknown(run, "measures", "templates", inputs.templates)
    yield from find_orphans(run, _OF_MEASURES, "measures", ("measure",))
    yield from find_orphans(run, ("group_alignments", "emergent"), "profiles", ("measure", "group"))
    yield from _find_in_rows(run, inputs)
    arrays = run.arrays_by_model()
    measures = rows_by_model(run.manifest.models, run.tables.get("measures", ()))
    profiles = rows_by_model(run.manifest.models, run.tables.get("profiles", ()))
    for index, (of_measures, of_groups) in enumerate(zip(measures, profiles, strict=True)):
        own, file = arrays.get(str(index), {}), array_path(str(index))
        for row in of_measures:
            shown = [profile for profile in of_groups if profile.measure == row.measure]
            for fault in _find_in_scores(row, shown, own, len(inputs.pairs)):
                name = f"{row.measure}/scores"
                yield Fault(file if name in own else RESULTS_JSON, f"{name}: {fault}")


def _find_in_rows(run: RunData, inputs: InputsRecord) -> Iterator[Fault]:
    pairs = len(inputs.pairs)
    for number, row in enumerate(run.tables.get("measures", ())):
        if not set(row.chosen) <= set(row.templates):
            yield row_fault("measures", number, "chosen", "templates that are not among those of the measure")
        if len(set(row.groups)) < len(row.groups) or len(set(row.templates)) < len(row.templates):
            yield row_fault("measures", number, "groups", "a group or a template appears twice")
    for number, row in enumerate(run.tables.get("profiles", ())):
        for field in ("scores", "human"):
            values = getattr(row, field)
            if values is not None and len(values) != pairs:
                yield row_fault("profiles", number, field, f"{len(values)} values for {pairs} pairs of traits")
    for number, row in enumerate(run.tables.get("contexts", ())):
        for field, counts in (("few_groups", row.groups), ("few_adjectives", row.adjectives)):
            unknown = next((name for name in getattr(row, field) if name not in counts), None)
            if unknown is not None:
                yield row_fault("contexts", number, field, f"{unknown!r} has no number of contexts")


def _find_in_scores(
    row: MeasureRow, profiles: Sequence[ProfileRow], arrays: Mapping[str, NDArray[np.float64]], pairs: int
) -> Iterator[str]:
    """Compare the profile of every group with the mean of its scores over the chosen templates."""
    places = {group: place for place, group in enumerate(row.groups)}
    unknown = next((profile.group for profile in profiles if profile.group not in places), None)
    if unknown is not None:
        yield f"the profile of {unknown!r} is of a group that the measure does not have"
    scores, shape = arrays.get(f"{row.measure}/scores"), (len(row.groups), len(row.templates), pairs)
    if unknown is not None or not row.templates:
        return
    if scores is None or scores.shape != shape:
        got = "there is no such array" if scores is None else f"its shape is {scores.shape}"
        yield f"{got}, and there are {shape[0]} groups, {shape[1]} templates and {pairs} pairs of traits"
        return
    chosen = [row.templates.index(name) for name in row.chosen]
    with np.errstate(all="ignore"):
        means = mean_over(scores[:, chosen], axis=1)
    for profile in profiles:
        stored = np.array([np.nan if score is None else score for score in profile.scores])
        if not np.allclose(means[places[profile.group]], stored, rtol=1e-6, atol=1e-9, equal_nan=True):
            yield f"the scores by template give another profile of {profile.group!r} than {RESULTS_JSON}"
            return
