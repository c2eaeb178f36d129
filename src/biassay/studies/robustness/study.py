"""Robustness as a study: association tests measured in many ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Abilities, Answers
from biassay.errors import DegenerateError
from biassay.results.checking import find_orphans, row_fault
from biassay.results.data import RunData, rows_by_model
from biassay.results.findings import Finding
from biassay.results.storage import Fault, Types
from biassay.stats.similarities import directions
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.inputs import test_record
from biassay.studies.associations.making import is_searched
from biassay.studies.associations.over_texts import usable_texts
from biassay.studies.associations.records import explain_searched
from biassay.studies.associations.relatives import fingerprint_words, related_correlations
from biassay.studies.robustness.columns import SUMMARY, TABLES
from biassay.studies.robustness.making import asked, measured_row, rows_of, with_corrections
from biassay.studies.robustness.readings import chosen_readings
from biassay.studies.robustness.records import InputsRecord, Result
from biassay.studies.robustness.settings import Settings
from biassay.studies.robustness.specifications import Material, Measured, of_reading, of_words
from biassay.studies.seeds import seed_of
from biassay.studies.study import Ability, Event, Lost, Progress, Requests, Row, Study, Tables
from biassay.texts.sentences import TestTexts, texts_of
from biassay.texts.sharing import sharing
from biassay.texts.vocabulary import random_texts

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["STUDY"]

_NEEDED = ("d", "same_sign", "significant")  # of a test that is measured
_NO_WORDS = "the file does not say which words its texts are made from, and so they cannot be varied"


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

        return RobustnessPresenter(self.title, (SUMMARY, *self.types.tables), self.findings)

    def open(self, settings: Settings) -> _Inputs:
        chosen = [(test, one) for one in (settings.tests or ("",)) for test in select_tests([one] if one else [])]
        tests = tuple(dict.fromkeys(test for test, _ in chosen))
        records = {test.name: test_record(test, pattern) for test, pattern in chosen}
        return _Inputs(settings, tests, InputsRecord(tuple(records.values())))

    def asks(self, settings: Settings) -> tuple[Ability, ...]:  # noqa: ARG002
        return ("texts",)

    def decides(self, inputs: _Inputs) -> Any:
        return inputs.record, inputs.tests

    def requests(self, inputs: _Inputs, abilities: Abilities) -> Requests:
        asked = [test for test in inputs.tests if test.tells_words]
        texts = [text.text for test in asked for text in inputs.texts[test.name]]
        texts += [text for test in asked for text in random_texts(test)]
        texts += fingerprint_words(asked)
        return Requests(tuple(dict.fromkeys(texts)), readings=chosen_readings(inputs.settings.readings, abilities))

    def measure(self, inputs: _Inputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:  # noqa: ARG002
        related = related_correlations([test for test in inputs.tests if test.tells_words], model)
        found = [_Measuring(inputs, test, model, related.get(test.name)) for test in inputs.tests]
        readings = chosen_readings(inputs.settings.readings, model.abilities)
        for number, reading in enumerate(readings, start=1):
            _read(found, reading, inputs.settings, model)
            yield Progress("readings", number, len(readings))
        for number, one in enumerate(found, start=1):
            yield from one.rows()
            yield Progress("tests", number, len(found))
        yield Lost(tuple(sorted({word for one in found for words in one.lost.values() for word in words})))

    def complete(self, settings: Settings, tables: Tables) -> Tables:
        return {**tables, "results": with_corrections(tables.get("results", ()), settings.alpha)}

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        yield from find_orphans(run, ("specifications",), "results", ("test",))
        for number, row in enumerate(run.tables.get("results", ())):
            missing = [name for name in _NEEDED if row.status == "measured" and getattr(row, name) is None]
            if missing:
                yield row_fault("results", number, missing[0], "missing, and the test is measured")

    def failed(self, run: RunData) -> bool:
        rows = run.tables.get("results", ())
        states = [{row.status for row in own} for own in rows_by_model(run.manifest.models, rows)]
        return any("measured" not in of or "failed" in of for of in states)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.robustness.findings import findings_of

        return findings_of(run)


def _read(found: Sequence[_Measuring], reading: str, settings: Settings, model: Answers) -> None:
    """All tests by one reading; a text is changed once for all tests that have it."""
    groups: dict[tuple[str, ...], list[_Measuring]] = {}
    for one in found:
        if one.reason is None:
            groups.setdefault(random_texts(one.test), []).append(one)
    for background, tests in groups.items():
        texts = list(dict.fromkeys(text for one in tests for text in one.texts))
        rows = {text: row for row, text in enumerate(texts)}
        vectors, frequent = model.texts(texts, reading).vectors, model.texts(background, reading).vectors
        if not settings.readings and reading != model.abilities.own_reading and _are_one(vectors):
            continue
        for name in dict.fromkeys(("cosine", *settings.similarities)):
            units = directions(name, vectors, frequent)
            for one in tests:
                one.read(reading, name, units, rows)


def _are_one(vectors: NDArray[np.floating]) -> bool:
    """Do all texts have one vector, as at the first token before the first layer?"""
    return bool(np.abs(vectors - vectors[0]).max() <= 1e-6 * np.abs(vectors).max())


class _Measuring:
    """One test on one model."""

    def __init__(self, inputs: _Inputs, test: Test, model: Answers, related: float | None) -> None:
        self._settings, self.test = inputs.settings, test
        self._asked = asked(test, model.identity, self._settings)
        self._failed: str | None = None
        self._found: list[Measured] = []
        self.lost: Mapping[str, tuple[str, ...]] = {}
        self._refused: str | None = None if test.tells_words else _NO_WORDS
        if is_searched(test, model.identity) or related is not None:
            self._refused = explain_searched(None if is_searched(test, model.identity) else related)
        if self._refused is not None:
            return
        texts = inputs.texts[test.name]
        encoded = {role: model.texts([text.text for text in texts.role(role)]) for role in ROLES}
        limits = self._settings.max_lost, model.abilities.lost_hint, "robustness"
        usable = usable_texts(test, texts, encoded, *limits)
        kept, self.lost, self._refused = usable
        chosen = {role: [texts.role(role)[i] for i in kept[role]] for role in ROLES}
        shared = sharing(texts.X, texts.Y)
        chosen |= {role: [text for text in chosen[role] if shared.keeps(text)] for role in "XY"}
        self._material = Material(test, chosen, model.tokens, model.ranks)

    @property
    def reason(self) -> str | None:
        """Why it is not measured."""
        return self._refused or self._failed

    @property
    def texts(self) -> Iterator[str]:
        return (text.text for texts in self._material.texts.values() for text in texts)

    def read(self, reading: str, similarity: str, units: NDArray[np.float64], rows: Mapping[str, int]) -> None:
        """One reading by one similarity, unless it repeats another; ``rows`` are the places of texts in ``units``."""
        texts = self._material.texts
        own = {role: units[[rows[text.text] for text in texts[role]]] for role in ROLES}
        try:
            for one in of_reading(self._material, reading, similarity, own, first=not self._found):
                if not any(one.repeats(other) for other in self._found):
                    self._found.append(one)
        except DegenerateError as error:
            self._failed = f"{reading}: {error}" if reading else str(error)

    def rows(self) -> Iterator[Event]:
        if (reason := self.reason) is not None:
            yield Row(
                "results", Result(**self._asked, status="failed" if self._refused is None else "refused", reason=reason)
            )
            return
        rng = np.random.default_rng(seed_of(self._settings.seed, self.test.name, "robustness"))
        found = [*self._found, *of_words(self._material, self._found[0], self._settings.n_subsets, rng)]
        rows = list(rows_of(found, self._asked, self._settings))
        result = measured_row(found, rows, self._asked, rng)
        yield Row("results", result)
        for row in rows if result.status == "measured" else ():
            yield Row("specifications", row)


STUDY = _Robustness()
