"""Association tests as a study: WEAT and SEAT ask for vectors of texts, CEAT for vectors of words in contexts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Abilities, Answers
from biassay.errors import UnknownNameError
from biassay.pages.formats import counted
from biassay.results.data import RunData, rows_by_model
from biassay.results.findings import Finding
from biassay.results.slices import run_of_tests
from biassay.results.storage import Fault, Older, Types
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.columns import DIAGNOSTICS, RESULTS, SCALES
from biassay.studies.associations.crossing import COSINES
from biassay.studies.associations.diagnostics import diagnosed
from biassay.studies.associations.families import with_corrections
from biassay.studies.associations.inputs import AssociationInputs, check_same, open_inputs
from biassay.studies.associations.making import contextual_result_of, is_searched, result_of
from biassay.studies.associations.metric_registry import metric_package
from biassay.studies.associations.over_contexts import cover, measure_in_contexts
from biassay.studies.associations.over_texts import measure, usable_vectors
from biassay.studies.associations.records import InputsRecord, Result, Scale
from biassay.studies.associations.relatives import fingerprint_words, related_correlations
from biassay.studies.associations.samples import SAMPLE_ARRAYS
from biassay.studies.associations.scales import list_scale_texts, measure_context_scale, measure_scales, model_sd
from biassay.studies.associations.settings import Settings
from biassay.studies.associations.stored import find_faults
from biassay.studies.study import (
    Ability,
    Array,
    ContextRequests,
    Event,
    Lost,
    Notice,
    Progress,
    Requests,
    Row,
    Study,
    Tables,
)

if TYPE_CHECKING:
    from biassay.pages.presenter import Presenter

__all__ = ["STUDY"]

_TOGETHER = 20_000  # texts of tests whose vectors are read at once: reading few at a time opens all files for each


class _Associations(Study):
    name = "associations"
    title = "Association tests"
    types = Types(Settings, InputsRecord, (RESULTS, DIAGNOSTICS, SCALES))

    @cached_property
    def presenter(self) -> Presenter:
        from biassay.studies.associations.presenter import AssociationPresenter

        return AssociationPresenter()

    def packages(self, settings: Settings) -> tuple[str, ...]:
        return (self.package, metric_package(settings.metric))

    def open(self, settings: Settings) -> AssociationInputs:
        return open_inputs(settings)

    def asks(self, settings: Settings) -> tuple[Ability, ...]:
        return ("texts",) if settings.contexts is None else ("words",)

    def together(self, settings: Settings) -> bool:
        """A context must be usable for all models, so that all are given the same."""
        return settings.contexts is not None and settings.mode == "fixed"

    def decides(self, inputs: AssociationInputs) -> Any:
        if metric_package(inputs.settings.metric) != self.package:
            return None
        return inputs.record, inputs.tests

    def requests(self, inputs: AssociationInputs, abilities: Abilities) -> Requests:
        if inputs.contexts is None:
            texts = [text.text for texts in inputs.texts.values() for text in texts]
            texts += [text for test in inputs.tests for text in inputs.random(test)]
            texts += fingerprint_words(inputs.tests)
            return Requests(list(dict.fromkeys(texts + list_scale_texts(inputs, abilities))))
        settings, words = inputs.settings, tuple(dict.fromkeys((*inputs.words, *inputs.scale_words)))
        return Requests(contexts=ContextRequests(inputs.contexts, words, settings.window, settings.dtype))

    def measure(self, inputs: AssociationInputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:
        scales: dict[str, Scale] = {}
        for event in _scales(inputs, model, everyone):
            if isinstance(event, Row):
                scales[event.record.form] = event.record
            yield event
        related = related_correlations(inputs.tests, model) if inputs.contexts is None else {}
        over_texts = partial(_over_texts, vocabularies={}, related=related)
        one = over_texts if inputs.contexts is None else _over_contexts
        rows: list[Result] = []
        tokens, frequency = _known_of_words(inputs, model)
        for number, (test, near) in enumerate(_near(inputs, model), start=1):
            cosines = None
            for event in one(inputs, test, near, everyone, scales):
                if isinstance(event, Row):
                    rows.append(event.record)
                elif isinstance(event, Array) and event.name.endswith(f"/{COSINES}"):
                    cosines = event.values
                yield event
            yield Row("diagnostics", diagnosed(test, rows[-1], cosines, tokens, frequency))
            yield Progress("tests", number, len(inputs.tests))
        yield Lost(tuple(word for row in rows for words in row.lost.values() for word in words))
        if inputs.contexts is not None:
            yield from _unlocated(inputs, rows)
            if unknown := inputs.contexts.num_unknown_documents:
                yield Notice(
                    f"{counted(unknown, 'context')} of the file have no source, so each counts as a document of its "
                    "own: effects in new contexts may vary more than their interval"
                )

    def complete(self, settings: Settings, tables: Tables) -> Tables:
        return {**tables, "results": with_corrections(tables.get("results", ()), settings)}

    def failed(self, run: RunData) -> bool:
        rows = run.tables.get("results", ())
        states = [{row.status for row in own} for own in rows_by_model(run.manifest.models, rows)]
        return any("measured" not in of or "failed" in of for of in states)

    def check_same(self, before: InputsRecord, now: InputsRecord) -> None:
        check_same(before, now)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.associations.findings import findings_of

        return findings_of(run)

    def only(self, run: RunData, item: str) -> RunData:
        found = run_of_tests(run, [item])
        if not found.manifest.inputs.tests:
            known = [test.name for test in run.manifest.inputs.tests]
            raise UnknownNameError("test", item, known, f"(tests of this run: {', '.join(known[:20])})")
        return found

    def check_stored(self, run: RunData) -> Iterator[Fault]:
        yield from super().check_stored(run)
        yield from find_faults(run)

    def upgrade(self, folder: Path, manifest: dict[str, Any], results: dict[str, Any]) -> Older:
        from biassay.studies.associations.older import upgrade

        return upgrade(folder, manifest, results)


def _near(inputs: AssociationInputs, model: Answers) -> Iterator[tuple[Test, Answers]]:
    """Every test with answers that keep the vectors of some tests in memory; those of all may not fit."""
    if inputs.contexts is not None:
        yield from _with(inputs.tests, model)
        return
    together: list[Test] = []
    texts: dict[str, None] = {}
    for test in inputs.tests:
        own = [*(text.text for text in inputs.texts[test.name]), *inputs.random(test)]
        if together and len(texts) + len(own) > _TOGETHER:
            yield from _with(together, model.only(texts))
            together, texts = [], {}
        together.append(test)
        texts.update(dict.fromkeys(own))
    yield from _with(together, model.only(texts))


def _with(tests: Sequence[Test], answers: Answers) -> Iterator[tuple[Test, Answers]]:
    return ((test, answers) for test in tests)


def _scales(inputs: AssociationInputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:
    if inputs.contexts is None:
        yield from measure_scales(inputs, model)
        return
    located = ((word, *_vectors(inputs.contexts.of(word), model, everyone)) for word in inputs.scale_words)
    vectors = {word: rows[usable] for word, rows, usable in located}
    yield from measure_context_scale(vectors, inputs.settings.min_contexts, model.identity)


_Numbers = dict[str, float]


def _known_of_words(inputs: AssociationInputs, model: Answers) -> tuple[_Numbers | None, _Numbers | None]:
    """How many tokens words have, and how frequent they are: over contexts how many there are, else their ranks."""
    words = list(dict.fromkeys(word for test in inputs.tests for role in ROLES for word in test.concept(role).words))
    counts, ranks = model.tokens(words), None if inputs.contexts is not None else model.ranks(words)
    tokens = None if counts is None else dict(zip(words, counts.tolist(), strict=True))
    if inputs.contexts is not None:
        return tokens, {word: float(inputs.contexts.count(word)) for word in words}
    return tokens, None if ranks is None else dict(zip(words, ranks.tolist(), strict=True))


def _over_texts(
    inputs: AssociationInputs,
    test: Test,
    model: Answers,
    _: Sequence[Answers],
    scales: Mapping[str, Scale],
    vocabularies: dict[tuple[str, ...], NDArray[np.float32]],
    related: Mapping[str, float],
) -> Iterator[Event]:
    """``vocabularies`` holds the vectors of random words, for many tests are compared with the same.

    ``related`` holds the tests whose words were found by searching a relative of the model.
    """
    texts = inputs.texts[test.name]
    encoded = {role: model.texts([text.text for text in texts.role(role)]) for role in ROLES}
    random = inputs.random(test)
    if random and random not in vocabularies:
        vocabularies[random] = usable_vectors(model.texts(random))
    measured = measure(test, texts, encoded, inputs.settings, model.abilities.lost_hint, vocabularies.get(random))
    sd = model_sd(scales, test.level)
    yield Row("results", result_of(test, model.identity, measured, inputs.settings, sd, related.get(test.name)))
    found = measured.association
    searched = test.name in related or is_searched(test, model.identity)
    if found is not None and found.cosines is not None and not searched:
        yield Array(f"{test.name}/{COSINES}", found.cosines)


def _over_contexts(
    inputs: AssociationInputs,
    test: Test,
    model: Answers,
    everyone: Sequence[Answers],
    scales: Mapping[str, Scale],
) -> Iterator[Event]:
    assert inputs.contexts is not None
    who = f"{model.identity.content} {model.identity.options}"
    vectors, documents = _vectors_of(inputs, test, model, everyone)
    measured = measure_in_contexts(test, vectors, inputs.settings, who, inputs.contexts.count, documents)
    sd = model_sd(scales, "context")
    yield Row("results", contextual_result_of(test, model.identity, measured, inputs.settings, sd))
    if measured.association is not None:
        for name in () if is_searched(test, model.identity) else (*SAMPLE_ARRAYS, COSINES):
            yield Array(f"{test.name}/{name}", getattr(measured.association, name))


def _vectors_of(
    inputs: AssociationInputs, test: Test, model: Answers, everyone: Sequence[Answers]
) -> tuple[dict[str, NDArray[np.floating]], dict[str, NDArray[np.int64]]]:
    """Vectors of all words of a test, and documents; of one that cannot be measured, only how many there would be."""
    assert inputs.contexts is not None
    contexts = inputs.contexts
    words = dict.fromkeys(word for role in ROLES for word in test.concept(role).words)
    if not cover(contexts.count, test, inputs.settings).measurable:
        return {word: np.empty((contexts.count(word), 1)) for word in words}, {}
    vectors, documents = {}, {}
    for word in words:
        own, usable = _vectors(contexts.of(word), model, everyone)
        vectors[word] = own if usable.all() else own[usable]
        documents[word] = contexts.documents(contexts.of(word))[usable]
    return vectors, documents


def _vectors(
    rows: slice, model: Answers, everyone: Sequence[Answers]
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Vectors of the contexts of a word, and in which of them every model could locate it."""
    if rows.start == rows.stop:
        return np.empty((0, 1)), np.empty(0, dtype=np.bool_)
    own = model.rows(rows)
    usable = ~np.isnan(own[:, 0])
    for other in everyone:
        if other is not model:
            usable &= ~np.isnan(other.rows(rows)[:, 0])
    return own, usable


def _unlocated(inputs: AssociationInputs, rows: Sequence[Result]) -> Iterator[Event]:
    """Say which words could not be located in all of their contexts."""
    assert inputs.contexts is not None
    counts: dict[str, int] = {}
    for row in rows:
        if row.contextual is not None:
            counts |= {word: n for words in row.contextual.num_contexts.values() for word, n in words.items()}
    short = {word: inputs.contexts.count(word) - count for word, count in counts.items()}
    words = ", ".join(f"{word} {count}" for word, count in short.items() if count)
    if words:
        who = "the model" if inputs.settings.mode == "random" else "a model of the run"
        yield Notice(
            f"{sum(short.values())} contexts were left out, for {who} has no vector of the word there: {words}"
        )


STUDY = _Associations()
