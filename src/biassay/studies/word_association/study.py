"""Word association tests as a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.word_associations import WordAssociationTest, select_testable, select_word_associations
from biassay.errors import UsageError
from biassay.results.findings import Finding
from biassay.results.run_data import RunData, TestRecord, group_rows_by_model
from biassay.results.run_folder import Fault, StudySchema, find_orphans
from biassay.studies.associations.inputs import GIVEN_AS_WORDS
from biassay.studies.study import Capability, Event, Progress, Requests, Row, Study, Tables
from biassay.studies.word_association.measure import PromptSet, WordAssociationRowBuilder, choose_unit, group_wordings
from biassay.studies.word_association.prompts import check_n_replies
from biassay.studies.word_association.results import TABLES, WordAssociationInputsRecord
from biassay.studies.word_association.settings import WordAssociationSettings

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter

__all__ = ["STUDY"]


@dataclass(frozen=True, eq=False)
class WordAssociationInputs:
    settings: WordAssociationSettings
    tests: tuple[WordAssociationTest, ...]
    record: WordAssociationInputsRecord


class _WordAssociationStudy(Study):
    name = "word_association"
    title = "Word associations"
    schema = StudySchema(WordAssociationSettings, WordAssociationInputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.word_association.report import WordAssociationPresenter

        return WordAssociationPresenter(self.title, self.schema.tables, self.findings)

    def load_inputs(self, settings: WordAssociationSettings) -> WordAssociationInputs:
        check_n_replies(settings.n_answers)
        used = group_wordings(settings.wordings)
        tests = select_word_associations(settings.tests) if settings.tests else select_testable(settings.alpha)
        by_name = {
            test.name: pattern if isinstance(pattern, str) else GIVEN_AS_WORDS
            for pattern in reversed(settings.tests)
            for test in select_word_associations(pattern)
        }
        records = tuple(_make_record(test, by_name.get(test.name, "")) for test in tests)
        wordings = {one.name: one.text for of in used.values() for one in of}
        return WordAssociationInputs(settings, tests, WordAssociationInputsRecord(records, wordings))

    def required_capabilities(self, settings: WordAssociationSettings) -> tuple[Capability, ...]:  # noqa: ARG002
        return ("replies",)

    def cache_key(self, inputs: WordAssociationInputs) -> Any:
        return inputs.record, inputs.tests

    def requests(self, inputs: WordAssociationInputs, capabilities: Capabilities) -> Requests:
        settings = inputs.settings
        if settings.read == "log-odds" and not capabilities.option_log_p:
            raise UsageError("a model that does not tell how likely answers are has no log-odds; leave out --read")
        unit = choose_unit(settings, capabilities)
        asked = (prompt for test in inputs.tests for prompt in PromptSet.of(test, settings, unit).prompts)
        return Requests(prompts=tuple(dict.fromkeys(asked)))

    def measure(
        self,
        inputs: WordAssociationInputs,
        model: ModelOutputs,
        all_outputs: Sequence[ModelOutputs],  # noqa: ARG002
    ) -> Iterator[Event]:
        unit = choose_unit(inputs.settings, model.capabilities)
        for number, test in enumerate(inputs.tests, start=1):
            making = WordAssociationRowBuilder(test, model.identity, inputs.settings, unit)
            asked = PromptSet.of(test, inputs.settings, unit)
            yield from _make_rows(making, asked, model)
            yield Progress("tests", number, len(inputs.tests))

    def finalize_tables(self, settings: WordAssociationSettings, tables: Tables) -> Tables:
        return {**tables, "decisions": self.decide(settings, tables.get("results", ()))}

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        tables = [table for table in self.schema.stored if table not in ("results", "decisions")]
        yield from find_orphans(run, tables, "results", ("test",))

    def has_failures(self, run: RunData) -> bool:
        rows = run.tables.get("results", ())
        of_models = group_rows_by_model(run.manifest.models, rows)
        return any(not any(row.status == "measured" for row in own) for own in of_models)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.word_association.findings import make_findings

        return make_findings(run)


def _make_rows(making: WordAssociationRowBuilder, asked: PromptSet, model: ModelOutputs) -> Iterator[Row]:
    if asked.words:
        yield from making.rows_from_log_odds(asked, model.replies(asked.word_prompts))
    else:
        yield from making.rows_from_replies(asked, model.replies(asked.list_prompts))
    if asked.decisions:
        yield from making.rows_from_decisions(asked.decisions, model.replies(asked.decision_prompts))


def _make_record(test: WordAssociationTest, pattern: str) -> TestRecord:
    source = test.source
    return TestRecord(test.name, pattern, test.digest, source.name, source.citation, source.licence, source.version)


STUDY = _WordAssociationStudy()
