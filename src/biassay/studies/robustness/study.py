"""Robustness as a study: association tests measured in many ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Abilities, Answers
from biassay.errors import BiassayError
from biassay.results.data import RunData, is_of
from biassay.results.findings import Finding
from biassay.results.storage import Types
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.inputs import test_record
from biassay.studies.associations.over_texts import usable_texts
from biassay.studies.robustness.columns import TABLES
from biassay.studies.robustness.making import asked, measured_row, rows_of, with_corrections
from biassay.studies.robustness.readings import chosen_readings
from biassay.studies.robustness.records import InputsRecord, Result
from biassay.studies.robustness.settings import Settings
from biassay.studies.robustness.specifications import Material, specifications
from biassay.studies.seeds import seed_of
from biassay.studies.study import Ability, Event, Lost, Progress, Requests, Row, Study, Tables
from biassay.texts.sentences import TestTexts, texts_of
from biassay.texts.sharing import sharing
from biassay.texts.vocabulary import random_texts

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["STUDY"]


@dataclass(frozen=True, eq=False)
class _Inputs:
    settings: Settings
    tests: tuple[Test, ...]
    record: InputsRecord

    @cached_property
    def texts(self) -> dict[str, TestTexts]:
        return {test.name: texts_of(test) for test in self.tests}


class _Robustness(Study):
    name = "robustness"
    title = "What associations survive"
    types = Types(Settings, InputsRecord, TABLES)

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.robustness.presenter import RobustnessPresenter

        return RobustnessPresenter(self.title, self.types.tables, self.findings)

    def open(self, settings: Settings) -> _Inputs:
        chosen = [(test, one) for one in (settings.tests or ("",)) for test in select_tests([one] if one else [])]
        tests = tuple(dict.fromkeys(test for test, _ in chosen if test.tells_words))
        records = {test.name: test_record(test, pattern) for test, pattern in chosen if test.tells_words}
        return _Inputs(settings, tests, InputsRecord(tuple(records.values())))

    def asks(self, settings: Settings) -> tuple[Ability, ...]:  # noqa: ARG002
        return ("texts",)

    def requests(self, inputs: _Inputs, abilities: Abilities) -> Requests:
        texts = [text.text for texts in inputs.texts.values() for text in texts]
        texts += [text for test in inputs.tests for text in random_texts(test)]
        return Requests(tuple(dict.fromkeys(texts)), readings=chosen_readings(inputs.settings.readings, abilities))

    def measure(self, inputs: _Inputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:  # noqa: ARG002
        readings = chosen_readings(inputs.settings.readings, model.abilities)
        missing: set[str] = set()
        for number, test in enumerate(inputs.tests, start=1):
            yield from _one(inputs, test, model, readings, missing)
            yield Progress("tests", number, len(inputs.tests))
        yield Lost(tuple(sorted(missing)))

    def complete(self, settings: Settings, tables: Tables) -> Tables:
        return {**tables, "results": with_corrections(tables.get("results", ()), settings.alpha)}

    def failed(self, run: RunData) -> bool:
        rows = run.tables.get("results", ())
        states = [{row.status for row in rows if is_of(row, record)} for record in run.manifest.models]
        return any("measured" not in of or "failed" in of for of in states)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.robustness.findings import findings_of

        return findings_of(run)


def _one(inputs: _Inputs, test: Test, model: Answers, readings: Sequence[str], missing: set[str]) -> Iterator[Event]:
    settings, texts = inputs.settings, inputs.texts[test.name]
    encoded = {role: model.texts([text.text for text in texts.role(role)]) for role in ROLES}
    kept, lost, reason = usable_texts(test, texts, encoded, settings.max_lost, model.abilities.lost_hint)
    missing.update(word for words in lost.values() for word in words)
    about = asked(test, model.identity, settings)
    if reason is not None:
        yield Row("results", Result(**about, status="refused", reason=reason))
        return
    chosen = {role: [texts.role(role)[i] for i in kept[role]] for role in ROLES}
    shared = sharing(chosen["X"], chosen["Y"])
    chosen |= {role: [text for text in chosen[role] if shared.keeps(text)] for role in "XY"}

    @lru_cache(maxsize=2)
    def vectors(reading: str) -> Mapping[str, NDArray[np.float32]]:
        return {role: model.texts([text.text for text in chosen[role]], reading).vectors for role in ROLES}

    @lru_cache(maxsize=2)
    def background(reading: str) -> NDArray[np.float32]:
        return model.texts(random_texts(test), reading).vectors

    material = Material(chosen, vectors, background, model.tokens, model.ranks)
    rng = np.random.default_rng(seed_of(settings.seed, test.name, "robustness"))
    try:
        found = list(specifications(material, readings, settings.similarities, settings.n_subsets, rng))
        rows = list(rows_of(found, about, settings))
        result = measured_row(found, rows, about, rng)
    except BiassayError as error:
        yield Row("results", Result(**about, status="failed", reason=str(error)))
        return
    yield Row("results", result)
    for row in rows:
        yield Row("specifications", row)


STUDY = _Robustness()
