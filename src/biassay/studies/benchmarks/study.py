"""Bias benchmarks as a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.results.codec import format_stored_value
from biassay.results.decisions import correct_by_model, make_decision
from biassay.results.findings import Finding
from biassay.results.outcomes import Decision
from biassay.results.run_data import RunData, group_rows_by_model
from biassay.results.run_folder import MANIFEST_JSON, Fault, StudySchema, find_unknown, make_row_fault
from biassay.studies.benchmarks.likelihood_pairs import (
    make_likelihood_requests,
    measure_crows_pairs,
    measure_stereoset,
)
from biassay.studies.benchmarks.results import ALL_CATEGORIES, TABLES
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs, BenchmarkInputsRecord, load_inputs
from biassay.studies.benchmarks.tasks.bbq import choose_response_mode, make_prompts, measure_bbq
from biassay.studies.study import Capability, Event, Requests, Study, StudyWarning, Tables

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter

__all__ = ["STUDY"]


class _BenchmarkStudy(Study):
    name = "benchmarks"
    title = "Benchmarks of bias"
    schema = StudySchema(BenchmarkSettings, BenchmarkInputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.benchmarks.report import BenchmarkPresenter

        return BenchmarkPresenter(self.title, self.schema.tables, self.findings)

    def load_inputs(self, settings: BenchmarkSettings) -> BenchmarkInputs:
        return load_inputs(settings)

    def required_capabilities(self, settings: BenchmarkSettings) -> tuple[Capability, ...]:
        return ("replies",) if settings.benchmark == "bbq" else ("likelihoods",)

    def cache_key(self, inputs: BenchmarkInputs) -> Any:
        return inputs.record, inputs.items

    def requests(self, inputs: BenchmarkInputs, capabilities: Capabilities) -> Requests:
        if inputs.settings.benchmark != "bbq":
            texts = [text for item in inputs.all_items for text in make_likelihood_requests(item, capabilities)]
            return Requests(likelihoods=tuple(dict.fromkeys(texts)))
        by = choose_response_mode(inputs.settings, capabilities)
        prompts = [one for item in inputs.all_items for one in make_prompts(item, inputs.settings, by).values()]
        return Requests(prompts=tuple(dict.fromkeys(prompts)))

    def measure(
        self,
        inputs: BenchmarkInputs,
        model: ModelOutputs,
        all_outputs: Sequence[ModelOutputs],  # noqa: ARG002
    ) -> Iterator[Event]:
        by_name = {"bbq": measure_bbq, "crows-pairs": measure_crows_pairs, "stereoset": measure_stereoset}
        if inputs.differs:
            yield StudyWarning(inputs.differs)
        yield from by_name[inputs.settings.benchmark](inputs, model)

    def finalize_tables(self, settings: BenchmarkSettings, tables: Tables) -> Tables:
        return {**tables, "decisions": self.decide(settings, tables.get("results", ()))}

    def decide(self, settings: BenchmarkSettings, records: Sequence[Any]) -> tuple[Decision, ...]:
        """Correct over all categories of a model, also those that are only described because positions decide them."""
        tested = [one if one.category == ALL_CATEGORIES else replace(one, claim="tested") for one in records]
        families = correct_by_model(tested, settings.alpha)
        return tuple(
            make_decision(
                record, settings.alpha, p_adjusted=one.p_adjusted, family=one.family, family_size=one.family_size
            )
            for record, one in zip(records, families, strict=True)
        )

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        for name in run.manifest.inputs.available:
            if name not in run.manifest.inputs.items:
                yield Fault(MANIFEST_JSON, f"inputs.available: unknown name {format_stored_value(name)}")
        yield from find_unknown(run, "results", "benchmark", (run.manifest.settings.benchmark,))
        for number, row in enumerate(run.tables.get("results", ())):
            if row.replies is None and any(getattr(row, kind) for kind in ("refused", "several", "empty", "unparsed")):
                yield make_row_fault("results", number, "replies", "missing, and some kinds of replies are counted")
            if row.position is not None and row.position_share is None:
                yield make_row_fault("results", number, "position_share", "missing, and there is a position")

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.benchmarks.findings import make_findings

        return make_findings(run)

    def has_failures(self, run: RunData) -> bool:
        rows = run.tables.get("results", ())
        of_models = group_rows_by_model(run.manifest.models, rows)
        return not all(any(row.status == "measured" for row in own) for own in of_models)


STUDY = _BenchmarkStudy()
