"""Stereotypes as a study, and consistency checks of stored runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.errors import UnknownNameError
from biassay.results.arrays import array_path
from biassay.results.decisions import correct_rows
from biassay.results.findings import Finding
from biassay.results.outcomes import Decision, ResultRecord
from biassay.results.run_data import RunData, group_rows_by_model
from biassay.results.run_folder import (
    RESULTS_JSON,
    Fault,
    StudySchema,
    find_models_without,
    find_orphans,
    find_unknown,
    make_row_fault,
)
from biassay.results.views import RunSlice
from biassay.studies.stereotypes.findings import describe_groups, make_findings
from biassay.studies.stereotypes.inputs import StereotypeInputs, check_output_layer, check_same, load_inputs
from biassay.studies.stereotypes.measure import make_empty_model_row, measure_contexts, measure_templates, nan_mean
from biassay.studies.stereotypes.results import ALPHA, TABLES, MeasureRow, ProfileRow, StereotypeInputsRecord
from biassay.studies.stereotypes.settings import StereotypeSettings
from biassay.studies.study import Capability, ContextRequests, Event, Requests, Row, Study, Tables

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter


__all__ = ["STUDY", "find_faults"]


_OF_MEASURES = ("profiles", "alignments", "group_alignments", "orders", "dominance", "emergent", "rated")


def find_faults(run: RunData) -> Iterator[Fault]:
    """Yield names that are unknown, rows of another length than the pairs, and profiles that the scores do not give."""
    inputs: StereotypeInputsRecord = run.manifest.inputs
    yield from find_models_without(run, "models")
    yield from find_unknown(run, "measures", "measure", inputs.measures)
    yield from find_unknown(run, "measures", "templates", inputs.templates)
    yield from find_orphans(run, _OF_MEASURES, "measures", ("measure",))
    yield from find_orphans(run, ("group_alignments", "emergent"), "profiles", ("measure", "group"))
    yield from _find_in_rows(run, inputs)
    arrays = run.arrays_by_model()
    measures = group_rows_by_model(run.manifest.models, run.tables.get("measures", ()))
    profiles = group_rows_by_model(run.manifest.models, run.tables.get("profiles", ()))
    for index, (of_measures, of_groups) in enumerate(zip(measures, profiles, strict=True)):
        own, file = arrays.get(str(index), {}), array_path(str(index))
        for row in of_measures:
            shown = [profile for profile in of_groups if profile.measure == row.measure]
            for fault in _find_in_scores(row, shown, own, len(inputs.pairs)):
                name = f"{row.measure}/scores"
                yield Fault(file if name in own else RESULTS_JSON, f"{name}: {fault}")


def _find_in_rows(run: RunData, inputs: StereotypeInputsRecord) -> Iterator[Fault]:
    pairs = len(inputs.pairs)
    for number, row in enumerate(run.tables.get("measures", ())):
        if not set(row.chosen) <= set(row.templates):
            yield make_row_fault("measures", number, "chosen", "templates that are not among those of the measure")
        if len(set(row.groups)) < len(row.groups) or len(set(row.templates)) < len(row.templates):
            yield make_row_fault("measures", number, "groups", "a group or a template appears twice")
    for number, row in enumerate(run.tables.get("profiles", ())):
        for field in ("scores", "human"):
            values = getattr(row, field)
            if values is not None and len(values) != pairs:
                yield make_row_fault("profiles", number, field, f"{len(values)} values for {pairs} pairs of traits")
    for number, row in enumerate(run.tables.get("contexts", ())):
        for field, counts in (("few_groups", row.groups), ("few_adjectives", row.adjectives)):
            unknown = next((name for name in getattr(row, field) if name not in counts), None)
            if unknown is not None:
                yield make_row_fault("contexts", number, field, f"{unknown!r} has no number of contexts")


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
        means = nan_mean(scores[:, chosen], axis=1)
    for profile in profiles:
        stored = np.array([np.nan if score is None else score for score in profile.scores])
        if not np.allclose(means[places[profile.group]], stored, rtol=1e-6, atol=1e-9, equal_nan=True):
            yield f"the scores by template give another profile of {profile.group!r} than {RESULTS_JSON}"
            return


_DTYPE = "float32"  # a word's vector may have numbers that are too large for float16


class _StereotypeStudy(Study):
    name = "stereotypes"
    title = "Stereotypes of social groups"
    schema = StudySchema(StereotypeSettings, StereotypeInputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.stereotypes.report import StereotypePresenter

        return StereotypePresenter()

    def load_inputs(self, settings: StereotypeSettings) -> StereotypeInputs:
        return load_inputs(settings)

    def required_capabilities(self, settings: StereotypeSettings) -> tuple[Capability, ...]:
        blanks: tuple[Capability, ...] = ("blanks",) if settings.template_measures else ()
        return blanks if settings.contexts is None else (*blanks, "words")

    def cache_key(self, inputs: StereotypeInputs) -> Any:
        return inputs.record, inputs.abc

    def requests(self, inputs: StereotypeInputs, capabilities: Capabilities) -> Requests:
        check_output_layer(inputs.settings, capabilities)
        blanks = inputs.sheet(capabilities).blanks if inputs.settings.template_measures else ()
        asked = inputs.contexts
        contexts = None if asked is None else ContextRequests(asked.contexts, asked.words, None, _DTYPE)
        return Requests(blanks=blanks, contexts=contexts)

    def measure(
        self,
        inputs: StereotypeInputs,
        model: ModelOutputs,
        all_outputs: Sequence[ModelOutputs],  # noqa: ARG002
    ) -> Iterator[Event]:
        rows: dict[str, list[Any]] = {}
        for event in self._measure(inputs, model):
            if isinstance(event, Row):
                rows.setdefault(event.table, []).append(event.record)
            yield event
        tables = {name: tuple(records) for name, records in rows.items()}
        for group in describe_groups(RunSlice("", None, tables), inputs.record, model.identity.revision):
            yield Row("groups", group)

    def _measure(self, inputs: StereotypeInputs, model: ModelOutputs) -> Iterator[Event]:
        if inputs.settings.template_measures:
            yield from measure_templates(inputs, model)
        else:
            yield Row("models", make_empty_model_row(model))
        if inputs.contexts is not None:
            yield from measure_contexts(inputs, inputs.contexts, model)

    def finalize_tables(self, settings: StereotypeSettings, tables: Tables) -> Tables:
        records = (*tables.get("alignments", ()), *tables.get("groups", ()))
        return {**tables, "decisions": self.decide(settings, records)}

    def decide(self, settings: StereotypeSettings, records: Sequence[ResultRecord]) -> tuple[Decision, ...]:  # noqa: ARG002
        """Correct over the measures of all models by Holm's method; traits of groups are descriptive."""
        return correct_rows(records, ALPHA)

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        yield from find_faults(run)

    def findings(self, run: RunData) -> Sequence[Finding]:
        return make_findings(run)

    def has_failures(self, run: RunData) -> bool:
        profiles = run.tables.get("profiles", ())
        of_models = group_rows_by_model(run.manifest.models, profiles)
        return not all(any(score is not None for row in own for score in row.scores) for own in of_models)

    def select_item(self, run: RunData, item: str) -> RunData:
        """Return the part of a run about one measure or one group. Agreement over all groups stays."""
        known: dict[str, str] = {}
        for key in ("group", "measure"):
            known |= {getattr(row, key): key for row in run.tables.get("profiles", ())}
        if item not in known:
            raise UnknownNameError("measure or group", item, known, f"(of this run: {', '.join(list(known)[:20])})")
        tables = {
            name: tuple(row for row in rows if getattr(row, known[item], item) == item)
            for name, rows in run.tables.items()
        }
        return dataclasses.replace(run, tables=tables)

    def check_same(self, before: StereotypeInputsRecord, now: StereotypeInputsRecord) -> None:
        check_same(before, now)


STUDY = _StereotypeStudy()
