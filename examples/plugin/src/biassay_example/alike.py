"""A complete study of texts in one file: the mean cosine between the known words of each word set of a test.

To register it, add `alike = "biassay_example.alike:STUDY"` to the entry points `biassay.studies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from biassay.plugin import (
    DECISIONS,
    MODEL_COLUMNS,
    Capabilities,
    Capability,
    Column,
    Event,
    ModelOutputs,
    Outcome,
    Requests,
    ResultRecord,
    Row,
    Study,
    StudySchema,
    TableSpec,
    UnknownWords,
    make_outcome_columns,
    select_tests,
    setting,
    unit_rows,
)


@dataclass(frozen=True)
class Settings:
    test: str = setting("weat6", "Test whose words are compared.")


@dataclass(frozen=True)
class InputsRecord:
    words: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Inputs:
    settings: Settings
    record: InputsRecord


@dataclass(frozen=True, kw_only=True)
class WordSetResult(ResultRecord):
    item: str = ""


COLUMNS = (*MODEL_COLUMNS, Column("item", "word set", "Name of the word set."), *make_outcome_columns())


class Alike(Study):
    name = "alike"
    title = "Similarity within word sets"
    package = "biassay-example"
    schema = StudySchema(
        Settings, InputsRecord, (TableSpec("results", "Word sets", WordSetResult, COLUMNS, key=("item",)), DECISIONS)
    )

    def load_inputs(self, settings: Settings) -> Inputs:
        (test,) = select_tests([settings.test])
        return Inputs(settings, InputsRecord({one.name: one.words for one in map(test.concept, "XYAB")}))

    def required_capabilities(self, settings: Settings) -> tuple[Capability, ...]:  # noqa: ARG002
        return ("texts",)

    def requests(self, inputs: Inputs, capabilities: Capabilities) -> Requests:  # noqa: ARG002
        return Requests(texts=[word for words in inputs.record.words.values() for word in words])

    def measure(self, inputs: Inputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:  # noqa: ARG002
        name, options, revision = model.identity.name, model.identity.options, model.identity.revision
        for item, words in inputs.record.words.items():
            texts = model.texts(words)
            known = [i for i in range(len(words)) if not texts.unknown[i]]
            yield UnknownWords(tuple(word for i, word in enumerate(words) if texts.unknown[i]))
            units = unit_rows(texts.vectors[known], item)
            cosine = float((units @ units.T)[np.triu_indices(len(known), 1)].mean())
            outcome = Outcome(effect_size=cosine, scale="cosine", n={"words": len(known)})
            result = WordSetResult(
                model=name,
                options=options,
                model_revision=revision,
                item=item,
                about="method",
                claim="descriptive",
                outcome=outcome,
            )
            yield Row("results", result)


STUDY = Alike()
