"""Association tests as a study, and consistency checks of stored runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.schema import ROLES, Test
from biassay.errors import UnknownNameError
from biassay.models.backend import Capability
from biassay.reporting.formats import format_count
from biassay.results.outcomes import DECISIONS, Decision, Finding, ResultRecord
from biassay.results.run_data import RunData, group_rows_by_model, select_tests_of_run
from biassay.results.run_folder import (
    RESULTS_JSON,
    Fault,
    StudySchema,
    array_path,
    find_orphans,
    find_unknown,
    make_row_fault,
)
from biassay.stats.random_effects import pooled_mean
from biassay.studies.associations.calibration import list_scale_texts, measure_context_scale, measure_scales, model_sd
from biassay.studies.associations.contributions import COSINES
from biassay.studies.associations.diagnostics import diagnose
from biassay.studies.associations.inputs import AssociationInputs, check_held_out, check_same, load_inputs
from biassay.studies.associations.measure import (
    check_coverage,
    explain_unknown_language,
    is_searched,
    make_contextual_result,
    make_measure_records,
    make_result,
    measure_over_contexts,
    measure_over_texts,
    select_usable_vectors,
)
from biassay.studies.associations.metrics import get_metric_package
from biassay.studies.associations.relatives import find_related_correlations, fingerprint_words
from biassay.studies.associations.results import (
    DIAGNOSTICS,
    MEASURES,
    POOLED,
    RESULTS,
    SAMPLE_ARRAYS,
    SCALES,
    AssociationInputsRecord,
    AssociationRecord,
    Scale,
    decide_associations,
)
from biassay.studies.associations.settings import AssociationSettings
from biassay.studies.associations.topics import TOPICS, summarize_topics
from biassay.studies.associations.weat import associate_words, average_clusters, label_words
from biassay.studies.study import (
    Array,
    ContextRequests,
    Event,
    Progress,
    Requests,
    Row,
    Study,
    StudyWarning,
    UnknownWords,
)

Floats = NDArray[np.floating]
_FIELDS_BY_ROLE = (
    "num_words",
    "num_cut",
    "oov_words",
    "associations",
    "too_rare",
    "leave_one_out",
    "clusters",
    "undeclared",
)
_RELATIVE_TOLERANCE, _ABSOLUTE_TOLERANCE = 1e-6, 1e-9  # rounding differs between machines


def _find_by_model(run: RunData) -> Iterator[Fault]:
    arrays = run.arrays_by_model()
    results = group_rows_by_model(run.manifest.models, run.tables.get("results", ()))
    scales = group_rows_by_model(run.manifest.models, run.tables.get("scales", ()))
    for index, (of_tests, of_words) in enumerate(zip(results, scales, strict=True)):
        own, file = arrays.get(str(index), {}), array_path(str(index))
        for result in of_tests:
            for name, fault in (*_find_in_cosines(result, own), *_find_in_samples(result, own)):
                yield Fault(file if name in own else RESULTS_JSON, f"{name}: {fault}")
        for scale in of_words:
            for name, fault in _find_in_scale(scale, own):
                yield Fault(file if name in own else RESULTS_JSON, f"{name}: {fault}")


def _find_in_cosines(result: AssociationRecord, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare D and the association of every word with the cosines of the words."""
    name = f"{result.test}/{COSINES}"
    if result.cosine_difference is None or result.searched:
        return
    words = {role: list(result.associations.get(role, ())) for role in ROLES}
    x, y, a, b = (len(words[role]) for role in ROLES)
    cosines = None if name not in arrays else np.asarray(arrays[name], dtype=np.float64)
    if cosines is None:
        yield name, f"there is no such array, and D is {result.cosine_difference:.6g}"
    elif not (x and y and a and b) or cosines.shape != (x + y, a + b):
        yield name, f"its shape is {cosines.shape}, and the test has {x} + {y} target and {a} + {b} attribute words"
    elif not np.isfinite(cosines).all():
        yield name, "some of its values are not finite"
    else:
        labels = label_words(words, result.clusters)
        table, (n, _, k, _) = average_clusters(cosines, (x, y, a, b), labels)
        sides = table[:, :k].mean(axis=1) - table[:, k:].mean(axis=1)
        D = float(sides[:n].mean() - sides[n:].mean())
        stored = [value for role in ROLES for value in result.associations[role].values()]
        found = np.concatenate(associate_words(cosines, (x, y, a, b), labels))
        if not _are_close([D], [result.cosine_difference], cosines):
            yield name, f"the cosines give D = {D:.6g}, and {RESULTS_JSON} has {result.cosine_difference:.6g}"
        elif not _are_close(found, stored, cosines):
            yield name, f"the cosines give other associations of words than {RESULTS_JSON}"


def _find_in_samples(result: AssociationRecord, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare the pooled effect over contexts with that of its samples."""
    names = [f"{result.test}/{name}" for name in SAMPLE_ARRAYS]
    pooled = result.get_outcome(POOLED)
    if pooled is None or pooled.effect_size is None or pooled.standard_error is None or result.searched:
        return
    missing = next((name for name in names if name not in arrays), None)
    if missing is not None:
        yield missing, f"there is no such array, and the test has {result.n_samples} samples"
        return
    effects, variances, p_values = (np.asarray(arrays[name], dtype=np.float64) for name in names)
    wrong = [name for name in names if arrays[name].shape != (result.n_samples,)]
    if wrong:
        yield wrong[0], f"its shape is {arrays[wrong[0]].shape}, and the test has {result.n_samples} samples"
        return
    if len(effects) < 3 or not np.isfinite(effects).all() or not (np.isfinite(variances) & (variances > 0.0)).all():
        yield (
            names[1],
            "the samples cannot be pooled: fewer than 3, not finite, or with a variance that is not positive",
        )
        return
    mean, error = pooled_mean(effects, variances)
    share = float((p_values <= result.alpha).mean())
    if not _are_close([mean, error], [pooled.effect_size, pooled.standard_error]):
        yield names[0], f"the samples give the effect size {mean:.6g}, not {pooled.effect_size:.6g}"
    elif not _are_close([share], [stored := result.share_significant or 0.0]):
        yield names[2], f"a share of {share:.6g} of the samples is significant, not {stored:.6g}"


def _find_in_scale(scale: Scale, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare the standard deviation of cosines between frequent words with the cosines."""
    name, pairs = f"scales/{scale.form}", math.comb(len(scale.words), 2)
    values = arrays.get(name)
    if values is None:
        yield name, f"there is no such array, and the cosine SD is {scale.cosine_sd:.6g}"
    elif values.shape != (pairs,):
        yield name, f"its shape is {values.shape}, and {len(scale.words)} words have {pairs} pairs"
    elif not pairs or not np.isfinite(values).all():
        yield name, "it is empty, or some of its values are not finite"
    else:
        sd = float(np.std(values, dtype=np.float64))
        if not _are_close([sd], [scale.cosine_sd], values):
            yield name, f"the cosine SD of its values is {sd:.6g}, and {RESULTS_JSON} has {scale.cosine_sd:.6g}"


def _are_close(found: Sequence[float] | Floats, stored: Sequence[float], values: Floats | None = None) -> bool:
    size = 1.0 if values is None else max(1.0, float(np.abs(values).max(initial=0.0)))
    return bool(np.allclose(found, stored, rtol=_RELATIVE_TOLERANCE, atol=_ABSOLUTE_TOLERANCE * size, equal_nan=True))


_MAX_TEXTS = 20_000  # texts of tests whose vectors are read at once: reading few at a time opens all files for each


class _AssociationStudy(Study):
    name = "associations"
    title = "Association tests"
    schema = StudySchema(
        AssociationSettings, AssociationInputsRecord, (RESULTS, DIAGNOSTICS, SCALES, MEASURES, TOPICS, DECISIONS)
    )
    presenter_path = "biassay.studies.associations.report:AssociationPresenter"
    fails_with_one = True

    def packages(self, settings: AssociationSettings) -> tuple[str, ...]:
        return (self.package, get_metric_package(settings.metric))

    def load_inputs(self, settings: AssociationSettings) -> AssociationInputs:
        return load_inputs(settings)

    def hold_out(self, inputs: AssociationInputs, erasure: str, words: Collection[str]) -> AssociationInputs:
        check_held_out(inputs.tests, erasure, words)
        return inputs

    def required_capabilities(self, settings: AssociationSettings) -> tuple[Capability, ...]:
        return ("texts",) if settings.contexts is None else ("words",)

    def needs_all_models(self, settings: AssociationSettings) -> bool:
        """Return whether contexts must be usable for all models, so that all get the same."""
        return settings.contexts is not None and settings.mode == "fixed"

    def cache_key(self, inputs: AssociationInputs) -> Any:
        if get_metric_package(inputs.settings.metric) != self.package:
            return None
        return inputs.record, inputs.tests

    def requests(self, inputs: AssociationInputs, capabilities: Capabilities) -> Requests:
        if inputs.contexts is None:
            texts = [text.text for texts in inputs.texts.values() for text in texts]
            texts += [text for test in inputs.tests for text in inputs.random(test)]
            texts += fingerprint_words(inputs.tests)
            return Requests(list(dict.fromkeys(texts + list_scale_texts(inputs, capabilities))))
        settings, words = inputs.settings, tuple(dict.fromkeys((*inputs.words, *inputs.scale_words)))
        return Requests(contexts=ContextRequests(inputs.contexts, words, settings.window, settings.dtype))

    def measure(
        self, inputs: AssociationInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        scales: dict[str, Scale] = {}
        for event in _measure_model_scales(inputs, model, all_outputs):
            if isinstance(event, Row):
                scales[event.record.form] = event.record
            yield event
        related = find_related_correlations(inputs.tests, model) if inputs.contexts is None else {}
        over_texts = partial(_measure_texts, vocabularies={}, related=related)
        one = over_texts if inputs.contexts is None else _measure_contexts
        rows: list[AssociationRecord] = []
        tokens, frequency = _get_word_statistics(inputs, model)
        for number, (test, near) in enumerate(_iter_tests(inputs, model), start=1):
            cosines = None
            for event in one(inputs, test, near, all_outputs, scales):
                if isinstance(event, Row) and event.table == "results":
                    rows.append(event.record)
                elif isinstance(event, Array) and event.name.endswith(f"/{COSINES}"):
                    cosines = event.values
                yield event
            yield Row("diagnostics", diagnose(test, rows[-1], cosines, tokens, frequency))
            yield Progress("tests", number, len(inputs.tests))
        yield UnknownWords(tuple(word for row in rows for words in row.oov_words.values() for word in words))
        yield from (Row("topics", topic) for topic in summarize_topics(rows))
        if inputs.contexts is not None:
            yield from _warn_unlocated(inputs, rows)
            if unknown := inputs.contexts.num_unknown_documents:
                yield StudyWarning(
                    f"{format_count(unknown, 'context')} of the file have no source; each counts as its own document, "
                    "so the interval of effects in new contexts may be too narrow"
                )

    def decide(self, settings: AssociationSettings, records: Sequence[ResultRecord]) -> tuple[Decision, ...]:
        """Correct over the questions of each model, a declared family, or all rows under the papers' protocols."""
        return decide_associations(settings, cast("Sequence[AssociationRecord]", records))

    def check_same(self, before: AssociationInputsRecord, now: AssociationInputsRecord) -> None:
        check_same(before, now)

    def findings(self, run: RunData) -> Sequence[Finding]:
        from biassay.studies.associations.findings import make_findings

        return make_findings(run)

    def select_item(self, run: RunData, item: str) -> RunData:
        found = select_tests_of_run(run, [item])
        if not found.manifest.inputs.tests:
            known = [test.name for test in run.manifest.inputs.tests]
            raise UnknownNameError("test", item, known, f"(tests of this run: {', '.join(known[:20])})")
        return found

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        """Yield unknown tests and word sets, and effects that the arrays of the run do not reproduce."""
        yield from find_unknown(run, "results", "test", {test.name for test in run.manifest.inputs.tests})
        yield from find_orphans(run, ("diagnostics", "measures"), "results", ("test",))
        yield from find_orphans(run, ("decisions",), "results", ("item",))
        for field in _FIELDS_BY_ROLE:
            yield from find_unknown(run, "results", field, ROLES)
        for field in ("tokens", "single", "frequency"):
            yield from find_unknown(run, "diagnostics", field, ROLES)
        for number, row in enumerate(run.tables.get("results", ())):
            for field in ("num_words", "num_cut", "oov_words"):
                missing = next((role for role in ROLES if role not in getattr(row, field)), None)
                if missing is not None:
                    yield make_row_fault("results", number, field, f"nothing about the words {missing}")
        with np.errstate(all="ignore"):
            yield from _find_by_model(run)


def _iter_tests(inputs: AssociationInputs, model: ModelOutputs) -> Iterator[tuple[Test, ModelOutputs]]:
    """Yield every test with outputs that keep the vectors of a few tests in memory; those of all may not fit."""
    if inputs.contexts is not None:
        yield from zip(inputs.tests, repeat(model))
        return
    together: list[Test] = []
    texts: dict[str, None] = {}
    for test in inputs.tests:
        own = [*(text.text for text in inputs.texts[test.name]), *inputs.random(test)]
        if together and len(texts) + len(own) > _MAX_TEXTS:
            yield from zip(together, repeat(model.restrict(texts)))
            together, texts = [], {}
        together.append(test)
        texts.update(dict.fromkeys(own))
    yield from zip(together, repeat(model.restrict(texts)))


def _measure_model_scales(
    inputs: AssociationInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
) -> Iterator[Event]:
    if inputs.contexts is None:
        yield from measure_scales(inputs, model)
        return
    located = (
        (word, *_get_context_vectors(inputs.contexts.get_rows(word), model, all_outputs)) for word in inputs.scale_words
    )
    vectors = {word: rows[usable] for word, rows, usable in located}
    yield from measure_context_scale(vectors, inputs.settings.min_contexts, model.identity)


_Numbers = dict[str, float]


def _get_word_statistics(inputs: AssociationInputs, model: ModelOutputs) -> tuple[_Numbers | None, _Numbers | None]:
    """Return the number of tokens of every word, and its number of contexts or rank in the vocabulary."""
    words = list(dict.fromkeys(word for test in inputs.tests for role in ROLES for word in test.concept(role).words))
    counts, ranks = model.tokens(words), None if inputs.contexts is not None else model.ranks(words)
    tokens = None if counts is None else dict(zip(words, counts.tolist(), strict=True))
    if inputs.contexts is not None:
        return tokens, {word: float(inputs.contexts.count(word)) for word in words}
    return tokens, None if ranks is None else dict(zip(words, ranks.tolist(), strict=True))


def _measure_texts(
    inputs: AssociationInputs,
    test: Test,
    model: ModelOutputs,
    _: Sequence[ModelOutputs],
    scales: Mapping[str, Scale],
    vocabularies: dict[tuple[str, ...], NDArray[np.float32]],
    related: Mapping[str, float],
) -> Iterator[Event]:
    """Measure one test over texts.

    Parameters
    ----------
    inputs : AssociationInputs
    test : Test
    model : ModelOutputs
    scales : dict of str to Scale
    vocabularies : dict of tuple to array
        Vectors of random words, which many tests share.
    related : dict of str to float
        Tests whose words were found by searching a relative of the model.
    """
    texts = inputs.texts[test.name]
    encoded = {role: model.texts([text.text for text in texts.role(role)]) for role in ROLES}
    random = inputs.random(test)
    if random and random not in vocabularies:
        vocabularies[random] = select_usable_vectors(model.texts(random))
    measured = measure_over_texts(
        test,
        texts,
        encoded,
        inputs.settings,
        model.capabilities.oov_hint,
        vocabularies.get(random),
        explain_unknown_language(test, model.tokens, inputs.settings.max_tokens),
    )
    sd = model_sd(scales, test.level)
    yield Row("results", make_result(test, model.identity, measured, inputs.settings, sd, related.get(test.name)))
    yield from (Row("measures", record) for record in make_measure_records(test, model.identity, measured))
    found = measured.association
    searched = test.name in related or is_searched(test, model.identity)
    if found is not None and found.cosines is not None and not searched:
        yield Array(f"{test.name}/{COSINES}", found.cosines)


def _measure_contexts(
    inputs: AssociationInputs,
    test: Test,
    model: ModelOutputs,
    all_outputs: Sequence[ModelOutputs],
    scales: Mapping[str, Scale],
) -> Iterator[Event]:
    assert inputs.contexts is not None
    who = f"{model.identity.content} {model.identity.options}"
    vectors, documents = _get_test_vectors(inputs, test, model, all_outputs)
    measured = measure_over_contexts(test, vectors, inputs.settings, who, inputs.contexts.count, documents)
    sd = model_sd(scales, "context")
    yield Row("results", make_contextual_result(test, model.identity, measured, inputs.settings, sd))
    if measured.association is not None:
        for name in () if is_searched(test, model.identity) else (*SAMPLE_ARRAYS, COSINES):
            yield Array(f"{test.name}/{name}", getattr(measured.association, name))


def _get_test_vectors(
    inputs: AssociationInputs, test: Test, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
) -> tuple[dict[str, NDArray[np.floating]], dict[str, NDArray[np.int64]]]:
    """Return vectors and documents of all words of a test; empty vectors if it cannot be measured."""
    assert inputs.contexts is not None
    contexts = inputs.contexts
    words = dict.fromkeys(word for role in ROLES for word in test.concept(role).words)
    if not check_coverage(contexts.count, test, inputs.settings).measurable:
        return {word: np.empty((contexts.count(word), 1)) for word in words}, {}
    vectors, documents = {}, {}
    for word in words:
        own, usable = _get_context_vectors(contexts.get_rows(word), model, all_outputs)
        vectors[word] = own if usable.all() else own[usable]
        documents[word] = contexts.documents(contexts.get_rows(word))[usable]
    return vectors, documents


def _get_context_vectors(
    rows: slice, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Return the vectors of the contexts of a word, and whether every model could locate it there."""
    if rows.start == rows.stop:
        return np.empty((0, 1)), np.empty(0, dtype=np.bool_)
    own = model.rows(rows)
    usable = ~np.isnan(own[:, 0])
    for other in all_outputs:
        if other is not model:
            usable &= ~np.isnan(other.rows(rows)[:, 0])
    return own, usable


def _warn_unlocated(inputs: AssociationInputs, rows: Sequence[AssociationRecord]) -> Iterator[Event]:
    """Warn of words that could not be located in all of their contexts."""
    assert inputs.contexts is not None
    counts: dict[str, int] = {}
    for row in rows:
        for words in (row.num_contexts or {}).values():
            counts |= words
    short = {word: inputs.contexts.count(word) - count for word, count in counts.items()}
    listed = ", ".join(f"{word} {count}" for word, count in short.items() if count)
    if listed:
        who = "the model" if inputs.settings.mode == "random" else "a model of the run"
        yield StudyWarning(
            f"{sum(short.values())} contexts were left out because {who} has no vector of the word there: {listed}"
        )


STUDY = _AssociationStudy()
