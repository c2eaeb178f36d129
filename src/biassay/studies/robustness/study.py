"""Robustness as a study: association tests under many specifications."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES, Test
from biassay.errors import DegenerateError
from biassay.grouping import group_pairs
from biassay.models.backend import Capability
from biassay.prompts.sentences import TestTexts, find_shared_templates, make_random_texts, make_texts
from biassay.results.outcomes import Finding
from biassay.results.run_data import RunData
from biassay.results.run_folder import Fault, StudySchema, find_orphans, make_row_fault
from biassay.stats.association import compute_directions
from biassay.studies.associations.measure import (
    describe_test,
    find_related_correlations,
    fingerprint_words,
    is_searched,
    select_usable_texts,
)
from biassay.studies.associations.results import explain_searched
from biassay.studies.associations.study import check_held_out, make_test_record
from biassay.studies.robustness.measure import (
    SpecificationMaterial,
    SpecificationResult,
    make_robustness_result,
    make_specification_rows,
    vary_model,
    vary_words,
)
from biassay.studies.robustness.results import (
    TABLES,
    RobustnessInputsRecord,
    RobustnessResult,
    make_findings,
)
from biassay.studies.robustness.settings import RobustnessSettings
from biassay.studies.study import Event, Progress, Requests, Row, Study, UnknownWords, derive_seed

_LAYERS = 8


def choose_representations(asked: Sequence[str], capabilities: Capabilities) -> tuple[str, ...]:
    """Return the representations to measure, the model's default first.

    By default, these are up to 8 layers with the default pooling, and every pooling of the default layer.
    """
    own = capabilities.default_representation
    if asked:
        return tuple(dict.fromkeys((own, *asked)))
    settings = {representation.name: dict(representation.settings) for representation in capabilities.representations}
    of = settings[own]
    layers = [
        name for name, found in settings.items() if _differing_keys(found, of) <= {"layer", "join"} and name != own
    ]
    others = [name for name, found in settings.items() if "layer" not in _differing_keys(found, of) and name != own]
    if len(layers) >= _LAYERS:
        layers = [layers[i] for i in np.linspace(0, len(layers) - 1, _LAYERS - 1).round().astype(int).tolist()]
    return tuple(dict.fromkeys((own, *layers, *others)))


def _differing_keys(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


_NO_WORDS = "the file does not say which words its texts are made from, so they cannot be varied"


@dataclass(frozen=True, eq=False)
class RobustnessInputs:
    """Settings and tests of a run."""

    settings: RobustnessSettings
    tests: tuple[Test, ...]
    record: RobustnessInputsRecord

    @cached_property
    def texts(self) -> dict[str, TestTexts]:
        """Texts by name of the test."""
        return {test.name: make_texts(test) for test in self.tests}


class _RobustnessStudy(Study):
    name = "robustness"
    title = "Robustness"
    schema = StudySchema(RobustnessSettings, RobustnessInputsRecord, TABLES)
    presenter_path = "biassay.studies.robustness.report:RobustnessPresenter"
    fails_with_one = True

    def load_inputs(self, settings: RobustnessSettings) -> RobustnessInputs:
        chosen = [
            (test, pattern)
            for pattern in (settings.tests or ("",))
            for test in select_tests([pattern] if pattern else [])
        ]
        tests = tuple(dict.fromkeys(test for test, _ in chosen))
        records = {test.name: make_test_record(test, pattern) for test, pattern in chosen}
        return RobustnessInputs(settings, tests, RobustnessInputsRecord(tuple(records.values())))

    def hold_out(self, inputs: RobustnessInputs, erasure: str, words: Collection[str]) -> RobustnessInputs:
        check_held_out(inputs.tests, erasure, words)
        return inputs

    def required_capabilities(self, settings: RobustnessSettings) -> tuple[Capability, ...]:
        return ("texts",)

    def cache_key(self, inputs: RobustnessInputs) -> Any:
        return inputs.record, inputs.tests

    def requests(self, inputs: RobustnessInputs, capabilities: Capabilities) -> Requests:
        asked = [test for test in inputs.tests if test.has_known_words]
        texts = [text.text for test in asked for text in inputs.texts[test.name]]
        texts += [text for test in asked for text in make_random_texts(test)]
        texts += fingerprint_words(asked)
        return Requests(
            tuple(dict.fromkeys(texts)),
            representations=choose_representations(inputs.settings.representations, capabilities),
        )

    def measure(
        self, inputs: RobustnessInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        related = find_related_correlations([test for test in inputs.tests if test.has_known_words], model)
        found = [_TestMeasurement(inputs, test, model, related.get(test.name)) for test in inputs.tests]
        representations = choose_representations(inputs.settings.representations, model.capabilities)
        for number, representation in enumerate(representations, start=1):
            _read_tests(found, representation, inputs.settings, model)
            yield Progress("layers and poolings", number, len(representations))
        for number, measurement in enumerate(found, start=1):
            yield from measurement.rows()
            yield Progress("tests", number, len(found))
        yield UnknownWords(
            tuple(sorted({word for measurement in found for words in measurement.oov_words.values() for word in words}))
        )

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        yield from find_orphans(run, ("specifications",), "results", ("test",))
        for number, row in enumerate(run.tables.get("results", ())):
            needed = {
                "outcome.effect_size": row.outcome.effect_size,
                "n_same_sign": row.n_same_sign,
                "n_significant": row.n_significant,
                "alternatives.joint": row.alternatives.get("joint"),
            }
            for name, value in needed.items():
                if row.status == "measured" and value is None:
                    yield make_row_fault("results", number, name, "missing, and the test is measured")

    def findings(self, run: RunData) -> Sequence[Finding]:
        return make_findings(run)


def _read_tests(
    measurements: Sequence[_TestMeasurement], representation: str, settings: RobustnessSettings, model: ModelOutputs
) -> None:
    """Measure all tests by one representation. Vectors of a text are transformed once for all tests that share it."""
    groups = group_pairs((make_random_texts(one.test), one) for one in measurements if one.reason is None)
    for background, tests in groups.items():
        texts = list(dict.fromkeys(text for test in tests for text in test.texts))
        rows = {text: row for row, text in enumerate(texts)}
        vectors, frequent = model.texts(texts, representation).vectors, model.texts(background, representation).vectors
        if (
            not settings.representations
            and representation != model.capabilities.default_representation
            and _are_identical(vectors)
        ):
            continue
        for name in dict.fromkeys(("cosine", *settings.similarities)):
            units = compute_directions(name, vectors, frequent)
            for one in tests:
                one.read(representation, name, units, rows)


def _are_identical(vectors: NDArray[np.floating]) -> bool:
    """Return whether all texts have one vector, as the first token has before the first layer."""
    return bool(np.abs(vectors - vectors[0]).max() <= 1e-6 * np.abs(vectors).max())


class _TestMeasurement:
    """Measurement of one test on one model."""

    def __init__(self, inputs: RobustnessInputs, test: Test, model: ModelOutputs, related: float | None) -> None:
        self._settings, self.test = inputs.settings, test
        self._asked = describe_test(test, model.identity, self._settings.alpha)
        self._failed: str | None = None
        self._found: list[SpecificationResult] = []
        self.oov_words: Mapping[str, tuple[str, ...]] = {}
        self._refused: str | None = None if test.has_known_words else _NO_WORDS
        if is_searched(test, model.identity) or related is not None:
            self._refused = explain_searched(None if is_searched(test, model.identity) else related)
        if self._refused is not None:
            return
        texts = inputs.texts[test.name]
        encoded = {role: model.texts([text.text for text in texts.role(role)]) for role in ROLES}
        limits = self._settings.max_unknown, model.capabilities.oov_hint, "robustness"
        usable = select_usable_texts(test, texts, encoded, *limits)
        kept, self.oov_words, self._refused = usable
        chosen = {role: [texts.role(role)[i] for i in kept[role]] for role in ROLES}
        shared = find_shared_templates(texts.X, texts.Y)
        chosen |= {role: [text for text in chosen[role] if shared.includes(text)] for role in "XY"}
        self._material = SpecificationMaterial(test, chosen, model.tokens, model.ranks)

    @property
    def reason(self) -> str | None:
        """Reason why the test is not measured."""
        return self._refused or self._failed

    @property
    def texts(self) -> Iterator[str]:
        """Texts that are measured."""
        return (text.text for texts in self._material.texts.values() for text in texts)

    def read(self, representation: str, similarity: str, units: NDArray[np.float64], rows: Mapping[str, int]) -> None:
        """Measure one representation by one similarity, unless it repeats another.

        Parameters
        ----------
        representation, similarity : str
        units : (n, d) float64
            Directions of texts.
        rows : dict of str to int
            Row of every text in `units`.
        """
        texts = self._material.texts
        own = {role: units[[rows[text.text] for text in texts[role]]] for role in ROLES}
        try:
            for one in vary_model(self._material, representation, similarity, own, first=not self._found):
                if not any(one.repeats(other) for other in self._found):
                    self._found.append(one)
        except DegenerateError as error:
            self._failed = f"{representation}: {error}" if representation else str(error)

    def rows(self) -> Iterator[Event]:
        """Yield the result and its specifications."""
        if (reason := self.reason) is not None:
            bare = RobustnessResult(
                **self._asked, status="failed" if self._refused is None else "skipped", reason=reason
            )
            yield Row("results", bare)
            return
        rng = np.random.default_rng(derive_seed(self._settings.seed, self.test.name, "robustness"))
        found = [*self._found, *vary_words(self._material, self._found[0], self._settings.n_subsets, rng)]
        rows = list(make_specification_rows(found, self._asked, self._settings))
        result = make_robustness_result(found, rows, self._asked, rng)
        yield Row("results", result)
        for row in rows if result.status == "measured" else ():
            yield Row("specifications", row)


STUDY = _RobustnessStudy()
