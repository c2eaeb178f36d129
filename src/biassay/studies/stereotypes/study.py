"""Stereotypes as a study: models are asked to fill blanks, and group CEAT for vectors of words in contexts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.answers.answers import Abilities, Answers
from biassay.errors import UnknownNameError
from biassay.results.data import RunData, rows_by_model
from biassay.results.findings import Finding
from biassay.results.storage import Fault, Older, Types
from biassay.studies.stereotypes.columns import TABLES
from biassay.studies.stereotypes.inputs import StereotypeInputs, check_output_layer, check_same, open_inputs
from biassay.studies.stereotypes.making import measured_by_templates, measured_in_contexts, unasked
from biassay.studies.stereotypes.records import InputsRecord
from biassay.studies.stereotypes.settings import Settings
from biassay.studies.stereotypes.stored import find_faults
from biassay.studies.study import Ability, ContextRequests, Event, Requests, Row, Study

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["STUDY"]

_DTYPE = "float32"  # a word's vector may have numbers that are too large for float16


class _Stereotypes(Study):
    name = "stereotypes"
    title = "Stereotypes of social groups"
    types = Types(Settings, InputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.stereotypes.presenter import StereotypePresenter

        return StereotypePresenter()

    def open(self, settings: Settings) -> StereotypeInputs:
        return open_inputs(settings)

    def asks(self, settings: Settings) -> tuple[Ability, ...]:
        blanks: tuple[Ability, ...] = ("blanks",) if settings.by_templates else ()
        return blanks if settings.contexts is None else (*blanks, "words")

    def decides(self, inputs: StereotypeInputs) -> Any:
        return inputs.record, inputs.abc

    def requests(self, inputs: StereotypeInputs, abilities: Abilities) -> Requests:
        check_output_layer(inputs.settings, abilities)
        blanks = inputs.sheet(abilities).blanks if inputs.settings.by_templates else ()
        asked = inputs.contexts
        contexts = None if asked is None else ContextRequests(asked.contexts, asked.words, None, _DTYPE)
        return Requests(blanks=blanks, contexts=contexts)

    def measure(self, inputs: StereotypeInputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:  # noqa: ARG002
        if inputs.settings.by_templates:
            yield from measured_by_templates(inputs, model)
        else:
            yield Row("models", unasked(model))
        if inputs.contexts is not None:
            yield from measured_in_contexts(inputs, inputs.contexts, model)

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        yield from find_faults(run)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.stereotypes.findings import findings_of

        return findings_of(run)

    def failed(self, run: RunData) -> bool:
        profiles = run.tables.get("profiles", ())
        of_models = rows_by_model(run.manifest.models, profiles)
        return not all(any(score is not None for row in own for score in row.scores) for own in of_models)

    def only(self, run: RunData, item: str) -> RunData:
        """The part about one measure or one group; what is about all groups stays, for measures are judged by it."""
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

    def check_same(self, before: InputsRecord, now: InputsRecord) -> None:
        check_same(before, now)

    def upgrade(self, folder: Path, manifest: dict[str, Any], results: dict[str, Any]) -> Older:  # noqa: ARG002
        from biassay.studies.stereotypes.older import upgrade

        return upgrade(manifest, results)


STUDY = _Stereotypes()
