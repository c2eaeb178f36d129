"""Debiasing as a study: a model before and after a concept is erased from its vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.errors import UsageError
from biassay.models.backend import Capability
from biassay.models.base import Model
from biassay.prompts.sentences import load_frequent_words
from biassay.results.run_folder import StudySchema
from biassay.studies.associations.study import STUDY as ASSOCIATIONS
from biassay.studies.audit.inputs import draw_names
from biassay.studies.audit.study import STUDY as AUDIT
from biassay.studies.debiasing.inputs import DebiasingInputs, DebiasingInputsRecord, load_inputs
from biassay.studies.debiasing.results import TABLES
from biassay.studies.debiasing.settings import DebiasingSettings
from biassay.studies.study import Event, Requests, Study


class _DebiasingStudy(Study):
    name = "debiasing"
    title = "Debiasing"
    schema = StudySchema(DebiasingSettings, DebiasingInputsRecord, TABLES)
    presenter_path = "biassay.studies.debiasing.report:DebiasingPresenter"

    def packages(self, settings: DebiasingSettings) -> tuple[str, ...]:
        return (self.package, *(["concept-erasure"] if "leace" in settings.method else []))

    def load_inputs(self, settings: DebiasingSettings) -> DebiasingInputs:
        return load_inputs(settings)

    def required_capabilities(self, settings: DebiasingSettings) -> tuple[Capability, ...]:
        return ("texts",)

    def hold_out(self, inputs: DebiasingInputs, erasure: str, words: Collection[str]) -> DebiasingInputs:
        raise UsageError(f"a model already erases a concept (erase={erasure}); give it without erase=")

    def fit_inputs(self, inputs: DebiasingInputs, models: Sequence[Model]) -> DebiasingInputs:
        return inputs.with_audit(draw_names(inputs.audit, models))

    def cache_key(self, inputs: DebiasingInputs) -> Any:
        return inputs.record, inputs.associations.tests, inputs.similarity

    def requests(self, inputs: DebiasingInputs, capabilities: Capabilities) -> Requests:
        concept = inputs.erasures[0].concept
        texts = [
            *ASSOCIATIONS.requests(inputs.associations, capabilities).texts,
            *inputs.erasures[0].words,
            *(word for words in concept.held_out for word in words),
            *(word for pair in inputs.similarity for word in pair.words),
            *load_frequent_words(),
        ]
        blocks = AUDIT.requests(inputs.audit, capabilities).text_blocks
        return Requests(texts=tuple(dict.fromkeys(texts)), text_blocks=blocks)

    def measure(
        self, inputs: DebiasingInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        from biassay.studies.debiasing.measure import measure_debiasing

        yield from measure_debiasing(inputs, model)


STUDY = _DebiasingStudy()
