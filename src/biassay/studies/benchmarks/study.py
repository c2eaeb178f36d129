"""Bias benchmarks as a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.models.backend import Capability
from biassay.results.outcomes import Decision, Finding, correct_by_model, make_decision
from biassay.results.run_data import RunData
from biassay.results.run_folder import (
    MANIFEST_JSON,
    Fault,
    StudySchema,
    find_unknown,
    format_stored_value,
    make_row_fault,
)
from biassay.studies.benchmarks.results import ALL_CATEGORIES, TABLES
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.tasks import get_task, get_task_package
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs, BenchmarkInputsRecord, load_inputs
from biassay.studies.study import Event, Requests, Study, StudyWarning


class _BenchmarkStudy(Study):
    name = "benchmarks"
    title = "Benchmarks of bias"
    schema = StudySchema(BenchmarkSettings, BenchmarkInputsRecord, TABLES)
    presenter_path = "biassay.studies.benchmarks.report:BenchmarkPresenter"

    def packages(self, settings: BenchmarkSettings) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.package, get_task_package(settings.benchmark))))

    def load_inputs(self, settings: BenchmarkSettings) -> BenchmarkInputs:
        return load_inputs(settings)

    def required_capabilities(self, settings: BenchmarkSettings) -> tuple[Capability, ...]:
        return (get_task(settings.benchmark).capability,)

    def cache_key(self, inputs: BenchmarkInputs) -> Any:
        return inputs.record, inputs.items

    def requests(self, inputs: BenchmarkInputs, capabilities: Capabilities) -> Requests:
        return get_task(inputs.settings.benchmark).requests(inputs, capabilities)

    def measure(
        self, inputs: BenchmarkInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        if inputs.differs:
            yield StudyWarning(inputs.differs)
        yield from get_task(inputs.settings.benchmark).measure(inputs, model)

    def decide(self, settings: BenchmarkSettings, records: Sequence[Any]) -> tuple[Decision, ...]:
        """Correct over all categories of a model, also those that are only described because positions decide them."""
        tested = [
            record if record.category == ALL_CATEGORIES else replace(record, claim="tested") for record in records
        ]
        families = correct_by_model(tested, settings.alpha)
        return tuple(
            make_decision(
                record,
                settings.alpha,
                p_adjusted=corrected.p_adjusted,
                family=corrected.family,
                family_size=corrected.family_size,
            )
            for record, corrected in zip(records, families, strict=True)
        )

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        for name in run.manifest.inputs.available:
            if name not in run.manifest.inputs.items:
                yield Fault(MANIFEST_JSON, f"inputs.available: unknown name {format_stored_value(name)}")
        yield from find_unknown(run, "results", "benchmark", (run.manifest.settings.benchmark,))
        for number, row in enumerate(run.tables.get("results", ())):
            if row.replies is None and row.n_unanswered:
                yield make_row_fault("results", number, "replies", "missing, and some kinds of replies are counted")
            if row.position is not None and row.position_share is None:
                yield make_row_fault("results", number, "position_share", "missing, and there is a position")

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.benchmarks.findings import make_findings

        return make_findings(run)


STUDY = _BenchmarkStudy()
