"""Word association tests as a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.word_associations import WordAssociationTest, select_testable, select_word_associations
from biassay.errors import UsageError
from biassay.models.backend import Capability
from biassay.results.outcomes import Finding
from biassay.results.run_data import RunData, TestRecord
from biassay.results.run_folder import Fault, StudySchema, find_orphans
from biassay.studies.associations.study import GIVEN_AS_WORDS
from biassay.studies.study import Event, Progress, Requests, Study
from biassay.studies.word_association.measure import WordAssociationRowBuilder, choose_unit
from biassay.studies.word_association.prompts import check_n_replies, group_wordings, make_prompts
from biassay.studies.word_association.results import TABLES, WordAssociationInputsRecord
from biassay.studies.word_association.settings import WordAssociationSettings


@dataclass(frozen=True, eq=False)
class WordAssociationInputs:
    """Settings and the tests that they select."""

    settings: WordAssociationSettings
    tests: tuple[WordAssociationTest, ...]
    record: WordAssociationInputsRecord


class _WordAssociationStudy(Study):
    name = "word_association"
    title = "Word associations"
    schema = StudySchema(WordAssociationSettings, WordAssociationInputsRecord, TABLES)
    presenter_path = "biassay.studies.word_association.report:WordAssociationPresenter"

    def load_inputs(self, settings: WordAssociationSettings) -> WordAssociationInputs:
        check_n_replies(settings.n_answers)
        by_form = group_wordings(settings.wordings)
        tests = select_word_associations(settings.tests) if settings.tests else select_testable(settings.alpha)
        by_name = {
            test.name: pattern if isinstance(pattern, str) else GIVEN_AS_WORDS
            for pattern in reversed(settings.tests)
            for test in select_word_associations(pattern)
        }
        records = tuple(_make_record(test, by_name.get(test.name, "")) for test in tests)
        wordings = {wording.name: wording.text for same_form in by_form.values() for wording in same_form}
        return WordAssociationInputs(settings, tests, WordAssociationInputsRecord(records, wordings))

    def required_capabilities(self, settings: WordAssociationSettings) -> tuple[Capability, ...]:
        return ("replies",)

    def cache_key(self, inputs: WordAssociationInputs) -> Any:
        return inputs.record, inputs.tests

    def requests(self, inputs: WordAssociationInputs, capabilities: Capabilities) -> Requests:
        settings = inputs.settings
        if settings.read == "log-odds" and not capabilities.option_log_p:
            raise UsageError("--read log-odds: the model does not report log-probabilities; leave out --read")
        unit = choose_unit(settings, capabilities)
        prompts = (prompt.request for test in inputs.tests for prompt in make_prompts(test, settings, unit))
        return Requests(prompts=tuple(dict.fromkeys(prompts)))

    def measure(
        self, inputs: WordAssociationInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        unit = choose_unit(inputs.settings, model.capabilities)
        for number, test in enumerate(inputs.tests, start=1):
            prompts = make_prompts(test, inputs.settings, unit)
            replies = model.replies([prompt.request for prompt in prompts])
            builder = WordAssociationRowBuilder(test, model.identity, inputs.settings, unit)
            yield from builder.build(prompts, list(replies))
            yield Progress("tests", number, len(inputs.tests))

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        tables = [table for table in self.schema.stored if table not in ("results", "decisions")]
        yield from find_orphans(run, tables, "results", ("test",))

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.word_association.findings import make_findings

        return make_findings(run)


def _make_record(test: WordAssociationTest, pattern: str) -> TestRecord:
    source = test.source
    return TestRecord(test.name, pattern, test.digest, source.name, source.citation, source.licence, source.version)


STUDY = _WordAssociationStudy()
