"""Word association tests as a study: chat or instruct models are asked which of two group words goes with each word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from biassay.answers.answers import Abilities, Answers
from biassay.errors import UsageError
from biassay.results.checking import find_orphans
from biassay.results.data import RunData, TestRecord, rows_by_model
from biassay.results.findings import Finding
from biassay.results.storage import Fault, Types
from biassay.stimuli.word_associations import (
    WordAssociationTest,
    select_word_associations,
    testable_word_associations,
)
from biassay.studies.associations.inputs import GIVEN
from biassay.studies.study import Ability, Event, Progress, Requests, Row, Study, Tables
from biassay.studies.word_association.asking import Questions, unit_of, wordings_of
from biassay.studies.word_association.columns import TABLES
from biassay.studies.word_association.evidence import judge
from biassay.studies.word_association.making import Making
from biassay.studies.word_association.records import InputsRecord
from biassay.studies.word_association.settings import Settings
from biassay.texts.association_prompts import check_answers

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["STUDY"]


@dataclass(frozen=True, eq=False)
class _Inputs:
    settings: Settings
    tests: tuple[WordAssociationTest, ...]
    record: InputsRecord


class _WordAssociation(Study):
    name = "word_association"
    title = "Word associations"
    types = Types(Settings, InputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.word_association.presenter import WordAssociationPresenter

        return WordAssociationPresenter(self.title, self.types.tables, self.findings)

    def open(self, settings: Settings) -> _Inputs:
        check_answers(settings.n_answers)
        used = wordings_of(settings.wordings)
        tests = (
            select_word_associations(settings.tests) if settings.tests else testable_word_associations(settings.alpha)
        )
        by_name = {
            test.name: pattern if isinstance(pattern, str) else GIVEN
            for pattern in reversed(settings.tests)
            for test in select_word_associations(pattern)
        }
        records = tuple(_record(test, by_name.get(test.name, "")) for test in tests)
        wordings = {one.name: one.text for of in used.values() for one in of}
        return _Inputs(settings, tests, InputsRecord(records, wordings))

    def asks(self, settings: Settings) -> tuple[Ability, ...]:  # noqa: ARG002
        return ("replies",)

    def decides(self, inputs: _Inputs) -> Any:
        return inputs.record, inputs.tests

    def requests(self, inputs: _Inputs, abilities: Abilities) -> Requests:
        settings = inputs.settings
        if settings.read == "log-odds" and not abilities.option_log_p:
            raise UsageError("a model that does not tell how likely answers are has no log-odds; leave out --read")
        unit = unit_of(settings, abilities)
        asked = (prompt for test in inputs.tests for prompt in Questions.of(test, settings, unit).prompts)
        return Requests(prompts=tuple(dict.fromkeys(asked)))

    def measure(self, inputs: _Inputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:  # noqa: ARG002
        unit = unit_of(inputs.settings, model.abilities)
        for number, test in enumerate(inputs.tests, start=1):
            making = Making(test, model.identity, inputs.settings, unit)
            asked = Questions.of(test, inputs.settings, unit)
            yield from _rows(making, asked, model)
            yield Progress("tests", number, len(inputs.tests))

    def complete(self, settings: Settings, tables: Tables) -> Tables:
        return {**tables, "results": judge(tables.get("results", ()), settings.alpha)}

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        tables = [table for table in self.types.stored if table != "results"]
        yield from find_orphans(run, tables, "results", ("test",))

    def failed(self, run: RunData) -> bool:
        rows = run.tables.get("results", ())
        of_models = rows_by_model(run.manifest.models, rows)
        return any(not any(row.status == "measured" for row in own) for own in of_models)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.word_association.findings import findings_of

        return findings_of(run)


def _rows(making: Making, asked: Questions, model: Answers) -> Iterator[Row]:
    if asked.words:
        yield from making.by_log_odds(asked, model.replies(asked.word_prompts))
    else:
        yield from making.by_replies(asked, model.replies(asked.list_prompts))
    if asked.decisions:
        yield from making.by_decisions(asked.decisions, model.replies(asked.decision_prompts))


def _record(test: WordAssociationTest, pattern: str) -> TestRecord:
    source = test.source
    return TestRecord(test.name, pattern, test.digest, source.name, source.citation, source.licence, source.version)


STUDY = _WordAssociation()
