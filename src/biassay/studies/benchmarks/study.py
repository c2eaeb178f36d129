"""Benchmarks as a study: questions are asked and sentences compared as their authors do, with intervals by template."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from biassay.answers.answers import Abilities, Answers
from biassay.results.checking import find_unknown, row_fault
from biassay.results.codec import shown_value
from biassay.results.data import RunData, rows_by_model
from biassay.results.findings import Finding
from biassay.results.labels import ModelKey, model_key
from biassay.results.storage import MANIFEST, Fault, Types
from biassay.stats.multiple import holm
from biassay.studies.benchmarks.columns import TABLES
from biassay.studies.benchmarks.inputs import BenchmarkInputs, InputsRecord, open_inputs
from biassay.studies.benchmarks.questions import asked_by, measured_bbq, prompts_of
from biassay.studies.benchmarks.records import Result
from biassay.studies.benchmarks.sentences import ALL, measured_crows, measured_stereoset, texts_of
from biassay.studies.benchmarks.settings import Settings
from biassay.studies.study import Ability, Event, Notice, Requests, Study, Tables

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["STUDY"]


class _Benchmarks(Study):
    name = "benchmarks"
    title = "Benchmarks of bias"
    types = Types(Settings, InputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.benchmarks.presenter import BenchmarkPresenter

        return BenchmarkPresenter(self.title, self.types.tables, self.findings)

    def open(self, settings: Settings) -> BenchmarkInputs:
        return open_inputs(settings)

    def asks(self, settings: Settings) -> tuple[Ability, ...]:
        return ("replies",) if settings.benchmark == "bbq" else ("likelihoods",)

    def decides(self, inputs: BenchmarkInputs) -> Any:
        return inputs.record, inputs.items

    def requests(self, inputs: BenchmarkInputs, abilities: Abilities) -> Requests:
        if inputs.settings.benchmark != "bbq":
            texts = [text for item in inputs.all_items for text in texts_of(item, abilities)]
            return Requests(likelihoods=tuple(dict.fromkeys(texts)))
        by = asked_by(inputs.settings, abilities)
        prompts = [one for item in inputs.all_items for one in prompts_of(item, inputs.settings, by).values()]
        return Requests(prompts=tuple(dict.fromkeys(prompts)))

    def measure(self, inputs: BenchmarkInputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:  # noqa: ARG002
        by_name = {"bbq": measured_bbq, "crows-pairs": measured_crows, "stereoset": measured_stereoset}
        if inputs.differs:
            yield Notice(inputs.differs)
        yield from by_name[inputs.settings.benchmark](inputs, model)

    def complete(self, settings: Settings, tables: Tables) -> Tables:
        """P-values are corrected over the categories of every model; the row over all of them stands outside."""
        rows: tuple[Result, ...] = tables.get("results", ())
        families: dict[ModelKey, list[int]] = {}
        for place, row in enumerate(rows):
            if row.category != ALL and row.p_value is not None:
                families.setdefault(model_key(row), []).append(place)
        corrected = [replace(row, p_value_holm=None) for row in rows]
        for places in families.values():
            adjusted = holm([rows[place].p_value or 0.0 for place in places], settings.alpha).adjusted
            for place, p_value in zip(places, adjusted.tolist(), strict=True):
                corrected[place] = replace(rows[place], p_value_holm=None if math.isnan(p_value) else p_value)
        return {**tables, "results": tuple(corrected)}

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        for name in run.manifest.inputs.available:
            if name not in run.manifest.inputs.items:
                yield Fault(MANIFEST, f"inputs.available: unknown name {shown_value(name)}")
        yield from find_unknown(run, "results", "benchmark", (run.manifest.settings.benchmark,))
        for number, row in enumerate(run.tables.get("results", ())):
            if row.replies is None and any(getattr(row, kind) for kind in ("refused", "several", "empty", "unparsed")):
                yield row_fault("results", number, "replies", "missing, and some kinds of replies are counted")
            if row.position is not None and row.position_share is None:
                yield row_fault("results", number, "position_share", "missing, and there is a position")

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.benchmarks.findings import findings_of

        return findings_of(run)

    def failed(self, run: RunData) -> bool:
        rows = run.tables.get("results", ())
        of_models = rows_by_model(run.manifest.models, rows)
        return not all(any(row.status == "measured" for row in own) for own in of_models)


STUDY = _Benchmarks()
