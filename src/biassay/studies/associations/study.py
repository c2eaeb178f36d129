"""Define association tests as a study: inputs, requests, measurement, and checks of stored runs."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.catalogue import select_tests
from biassay.datasets.languages import localize_patterns
from biassay.datasets.linter import list_forms
from biassay.datasets.schema import ROLES, Concept, Test
from biassay.errors import StimulusError, UnknownNameError, UsageError, format_examples
from biassay.models.backend import Capability
from biassay.prompts.sentences import TestTexts, get_assumed_words, hash_texts, make_random_texts, make_texts
from biassay.reporting.formats import format_count
from biassay.results.outcomes import DECISIONS, Decision, Finding, ResultRecord
from biassay.results.run_data import RunData, TestRecord, group_rows_by_model, select_tests_of_run
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
from biassay.studies.associations.measure import (
    Measurement,
    check_coverage,
    check_tests,
    check_word_tests,
    diagnose,
    explain_unknown_language,
    find_related_correlations,
    fingerprint_words,
    list_scale_texts,
    make_measure_records,
    make_result,
    measure_context_scale,
    measure_over_contexts,
    measure_over_texts,
    measure_scales,
    model_sd,
    select_usable_vectors,
)
from biassay.studies.associations.metrics import PairwiseMetric, get_metric, get_metric_package
from biassay.studies.associations.results import (
    COSINES,
    DIAGNOSTICS,
    MEASURES,
    POOLED,
    RESULTS,
    SAMPLE_ARRAYS,
    SCALES,
    TOPICS,
    AssociationInputsRecord,
    AssociationRecord,
    Scale,
    decide_associations,
    summarize_topics,
)
from biassay.studies.associations.settings import DEFAULT_FAMILY, RUN_FAMILY, AssociationSettings
from biassay.studies.associations.weat import associate_words, average_texts, label_words
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
    make_contexts_record,
)

if TYPE_CHECKING:
    from biassay.corpus.contexts import Contexts

GIVEN_AS_WORDS = "given as words"
"""Pattern in the manifest of a test that was given as a dict of words."""

_SCALE_WORDS = 100
_CONTEXT_SETTINGS = ("n_samples", "mode", "window", "dtype", "min_contexts", "vectors")
_MAX_MARGIN = 2.0


@dataclass(frozen=True, eq=False)
class AssociationInputs:
    """Tests and contexts of a run, checked before any model is opened."""

    settings: AssociationSettings
    tests: tuple[Test, ...]
    record: AssociationInputsRecord
    contexts: Contexts | None = None

    @cached_property
    def texts(self) -> dict[str, TestTexts]:
        """Texts of every test, by name."""
        return {test.name: make_texts(test) for test in self.tests}

    def random(self, test: Test) -> tuple[str, ...]:
        """Return the random attribute words of the random baseline; empty for tests that are not in English."""
        by_pairs = isinstance(get_metric(self.settings.metric), PairwiseMetric)
        wanted = (
            self.settings.random_sets and self.contexts is None and by_pairs and not self.settings.is_paper_protocol
        )
        return make_random_texts(test) if wanted and test.has_known_words and test.is_english else ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words of the tests that have enough contexts to be measured. Only these are encoded."""
        assert self.contexts is not None
        measurable = (
            test for test in self.tests if check_coverage(self.contexts.count, test, self.settings).measurable
        )
        return tuple(dict.fromkeys(word for test in measurable for role in ROLES for word in test.concept(role).words))

    @cached_property
    def scale_words(self) -> tuple[str, ...]:
        """Words that give the scale: those of the contexts file, thinned evenly to 100, whichever tests are chosen."""
        assert self.contexts is not None
        if not self.words:
            return ()
        enough = [w for w in self.contexts.stimuli if self.contexts.count(w) >= self.settings.min_contexts]
        indices = np.linspace(0, len(enough) - 1, min(len(enough), _SCALE_WORDS)).round().astype(int)
        return tuple(enough[index] for index in indices)


def load_inputs(settings: AssociationSettings) -> AssociationInputs:
    """Load the tests and contexts that the settings name. Raise UsageError if they cannot be measured."""
    settings = dataclasses.replace(settings, alpha=settings.alpha_or_default)
    if get_metric(settings.metric).unit != "d" and settings.protocol != "exact":
        raise UsageError(
            f"metric {settings.metric} scores all four word sets at once and has its own permutation test; leave "
            f"out --protocol {settings.protocol}, which is for metrics of single texts"
        )
    _check_equivalence(settings)
    contexts = None if settings.contexts is None else _read_contexts_file(settings.contexts)
    patterns = settings.tests
    if contexts is None:
        _check_context_settings(settings)
    else:
        for name, default in (("protocol", "exact"), ("metric", "cosine")):
            if getattr(settings, name) != default:
                raise UsageError(
                    f"{name} {getattr(settings, name)} is for texts; over contexts there is {default} only"
                )
        patterns = patterns or tuple(contexts.metadata.get("tests", ()))
        if not patterns:
            raise UsageError(f"{settings.contexts} does not say for which tests it was made; name them with --tests")
    if settings.language:
        patterns = localize_patterns(settings.language, patterns)
    chosen = [(test, pattern) for pattern in (patterns or ("",)) for test in select_tests([pattern] if pattern else [])]
    select_tests(patterns)  # two different tests of one name are an error
    tests = tuple(dict.fromkeys(test for test, _ in chosen))
    if contexts is None:
        check_tests(tests, settings)
    else:
        check_word_tests(tests)
        _check_scanned(tests, contexts)
    settings = dataclasses.replace(settings, declared=_resolve_family(settings, tests))
    records = {test.name: make_test_record(test, pattern) for test, pattern in chosen}
    source = None if contexts is None else make_contexts_record(Path(settings.contexts or ""), contexts)
    return AssociationInputs(settings, tests, AssociationInputsRecord(tuple(records.values()), source), contexts)


def _resolve_family(settings: AssociationSettings, tests: Sequence[Test]) -> dict[str, tuple[str, ...]]:
    """Resolve a declared family when the run starts; a resumed run keeps its own."""
    if settings.declared or settings.family == RUN_FAMILY:
        return settings.declared
    if settings.is_paper_protocol:
        raise UsageError(f"--family cannot be changed under protocol {settings.protocol}, which corrects over all rows")
    if len(settings.family) > 1 and RUN_FAMILY[0] in settings.family:
        raise UsageError(
            "--family run cannot be combined with tests; give run alone, or name the tests of a declared family"
        )
    questions = resolve_questions(settings.family, tests)
    if not questions:
        raise UsageError(f"--family {' '.join(settings.family)} names no social-bias test")
    return questions


def resolve_questions(family: Sequence[str], tests: Sequence[Test]) -> dict[str, tuple[str, ...]]:
    """Resolve a declared family to its social-bias questions and their forms; empty for the family of the run.

    Parameters
    ----------
    family : sequence of str
        ``run``, or names, patterns, topics, collections and files of tests; ``default`` for the default tests.
    tests : sequence of Test
        Tests of the run, which may be declared by name although the catalogue does not hold them.
    """
    if tuple(family) == RUN_FAMILY:
        return {}
    own = {test.name: test for test in tests}
    chosen: dict[str, Test] = {}
    for pattern in family:
        found = (own[pattern],) if pattern in own else select_tests(() if pattern == DEFAULT_FAMILY else pattern)
        chosen |= {test.name: test for test in found}
    questions: dict[str, tuple[str, ...]] = {}
    for test in chosen.values():
        if test.about == "people":
            questions[test.question] = (*questions.get(test.question, ()), test.name)
    return questions


def _check_equivalence(settings: AssociationSettings) -> None:
    """Raise UsageError if the equivalence margin is too large to be meaningful or would be ignored."""
    if settings.equivalence is None:
        return
    if settings.metric == "cosine" and settings.equivalence >= _MAX_MARGIN:
        raise UsageError(
            f"equivalence must be below {_MAX_MARGIN:g}, got {settings.equivalence:g}: it is a D in cosine units, "
            "not a d; which D is small depends on the model"
        )
    if settings.is_paper_protocol or get_metric(settings.metric).unit != "d":
        why = f"protocol {settings.protocol}" if settings.is_paper_protocol else f"metric {settings.metric}"
        raise UsageError(f"equivalence needs p over other words, which is not the main test under {why}; leave it out")


def _check_context_settings(settings: AssociationSettings) -> None:
    """Raise UsageError if a setting needs contexts and would be ignored without them."""
    for field in dataclasses.fields(AssociationSettings):
        if field.name in _CONTEXT_SETTINGS and getattr(settings, field.name) != field.default:
            raise UsageError(f"{field.name} is for runs over contexts; give contexts too (--contexts FILE)")


def check_held_out(tests: Sequence[Test], erasure: str, words: Collection[str]) -> None:
    """Raise UsageError if an erasure was fitted on words of a test, whose association it removes by construction.

    Plurals and other pronouns of the same person count as the same word. Finished texts are searched for the words.

    Parameters
    ----------
    tests : sequence of Test
    erasure : str
        Method and concept, such as leace:gender.
    words : collection of str
        Words that it was fitted on.
    """
    fitted = frozenset[str]().union(*map(list_forms, words))
    shared: dict[str, list[str]] = {}
    for test in tests:
        listed = [word for role in ROLES for word in _list_words(test.concept(role))]
        own = dict.fromkeys(word for word in listed if list_forms(word) & fitted)
        if own:
            shared[test.name] = [*own]
    if not shared:
        return
    found = format_examples(list(dict.fromkeys(word for own in shared.values() for word in own)))
    raise UsageError(
        f"{erasure} is fitted on words of {format_examples(list(shared))}: {found}. Their association vanishes by "
        "construction. Choose tests without these words with --tests, or a concept file without them, FILE.toml "
        f"instead of {erasure.partition(':')[2]}"
    )


def _list_words(concept: Concept) -> list[str]:
    return [*concept.words, *(word for text in concept.given for word in re.findall(r"\w+", text.text))]


def make_test_record(test: Test, asked: str | dict[str, Any]) -> TestRecord:
    """Make the manifest's record of a test from the test and the pattern or words that selected it."""
    pattern = asked if isinstance(asked, str) else GIVEN_AS_WORDS
    source = (test.source.name, test.source.citation, test.source.licence, test.source.version)
    return TestRecord(test.name, pattern, hash_texts(test), *source, get_assumed_words(test))


def _read_contexts_file(file: str) -> Contexts:
    from biassay.corpus.contexts import read_contexts  # most runs have no contexts

    contexts = read_contexts(Path(file))
    if not len(contexts):
        raise UsageError(f"{file} holds no contexts at all; was the corpus in another language or case?")
    return contexts


def _check_scanned(tests: Sequence[Test], contexts: Contexts) -> None:
    """Raise UsageError if the corpus was not searched for the words of a test."""
    sought = set(contexts.stimuli)
    for test in tests:
        for role in ROLES:
            if not sought & set(test.concept(role).words):
                raise UsageError(
                    f"the contexts were not collected for test {test.name!r}: no word of {test.concept(role).label} "
                    f"was searched for; collect them with biassay contexts ... --tests {test.name}"
                )


def check_same(before: AssociationInputsRecord, now: AssociationInputsRecord) -> None:
    """Raise an error if a resumed run has other tests or contexts than it started with."""
    digests = {test.name: test.digest for test in now.tests}
    added = [test.name for test in now.tests if test.name not in {old.name for old in before.tests}]
    if added:
        raise StimulusError(f"tests were added since the run began ({', '.join(added)}); start a new run")
    for test in before.tests:
        if digests.get(test.name) != test.digest:
            raise StimulusError(f"the test {test.name!r} has changed since the run began; start a new run")
    if before.contexts is not None and now.contexts is not None and before.contexts.digest != now.contexts.digest:
        raise UsageError(f"the contexts in {before.contexts.file} have changed since the run began; start a new run")


Floats = NDArray[np.floating]
_FIELDS_BY_ROLE = (
    *("num_words", "num_cut", "oov_words", "associations"),
    *("too_rare", "leave_one_out", "clusters", "undeclared"),
)
_RELATIVE_TOLERANCE, _ABSOLUTE_TOLERANCE = 1e-6, 1e-9  # rounding differs between machines


def _find_wrong_arrays(run: RunData) -> Iterator[Fault]:
    """Yield the results of a run that its arrays do not reproduce."""
    arrays = run.arrays_by_model()
    results = group_rows_by_model(run.manifest.models, run.tables.get("results", ()))
    scales = group_rows_by_model(run.manifest.models, run.tables.get("scales", ()))
    for index, (model_results, model_scales) in enumerate(zip(results, scales, strict=True)):
        own = arrays.get(str(index), {})
        found = [
            fault for result in model_results for fault in (*_check_cosines(result, own), *_check_samples(result, own))
        ]
        found += [fault for scale in model_scales for fault in _check_scale(scale, own)]
        for name, fault in found:
            yield Fault(array_path(str(index)) if name in own else RESULTS_JSON, f"{name}: {fault}")


def _check_array(arrays: Mapping[str, Floats], name: str, shape: tuple[int, ...], what: str) -> str:
    """Return the problem of an array, or an empty string if it is present, finite and of the right shape."""
    array = arrays.get(name)
    if array is None:
        return f"the array is missing; expected values for {what}"
    if array.shape != shape or 0 in shape:
        return f"its shape is {array.shape}; expected values for {what}"
    return "" if np.isfinite(array).all() else "some of its values are not finite"


def _check_cosines(result: AssociationRecord, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare D and the association of every word with the cosines of the words."""
    if result.cosine_difference is None or result.searched:
        return
    name, words = f"{result.test}/{COSINES}", {role: list(result.associations.get(role, ())) for role in ROLES}
    x, y, a, b = (len(words[role]) for role in ROLES)
    if fault := _check_array(arrays, name, (x + y, a + b), f"{x} + {y} target and {a} + {b} attribute words"):
        yield name, fault
        return
    cosines, labels = np.asarray(arrays[name], dtype=np.float64), label_words(words, result.clusters)
    table, (n, _, k, _) = average_texts(cosines, (x, y, a, b), labels)
    sides = table[:, :k].mean(axis=1) - table[:, k:].mean(axis=1)
    D = float(sides[:n].mean() - sides[n:].mean())
    stored = [value for role in ROLES for value in result.associations[role].values()]
    found = np.concatenate(associate_words(cosines, (x, y, a, b), labels))
    if not _are_close([D], [result.cosine_difference], cosines):
        yield name, f"the cosines give D = {D:.6g}, and {RESULTS_JSON} has {result.cosine_difference:.6g}"
    elif not _are_close(found, stored, cosines):
        yield name, f"the cosines give other associations of words than {RESULTS_JSON}"


def _check_samples(result: AssociationRecord, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare the pooled effect over contexts with that of its samples."""
    pooled = result.get_outcome(POOLED)
    if pooled is None or pooled.effect_size is None or pooled.standard_error is None or result.searched:
        return
    names, count = [f"{result.test}/{name}" for name in SAMPLE_ARRAYS], result.n_samples or 0
    for name in names:
        if fault := _check_array(arrays, name, (count,), f"{count} samples"):
            yield name, fault
            return
    effects, variances, p_values = (np.asarray(arrays[name], dtype=np.float64) for name in names)
    if count < 3 or not (variances > 0.0).all():
        yield names[1], "the samples cannot be pooled: there are fewer than 3, or a variance is not positive"
        return
    mean, error = pooled_mean(effects, variances)
    share, stored = float((p_values <= result.alpha).mean()), result.share_significant or 0.0
    if not _are_close([mean, error], [pooled.effect_size, pooled.standard_error]):
        yield names[0], f"the samples give the effect size {mean:.6g}, not {pooled.effect_size:.6g}"
    elif not _are_close([share], [stored]):
        yield names[2], f"a share of {share:.6g} of the samples is significant, not {stored:.6g}"


def _check_scale(scale: Scale, arrays: Mapping[str, Floats]) -> Iterator[tuple[str, str]]:
    """Compare the standard deviation of cosines between frequent words with the cosines."""
    name, pairs = f"scales/{scale.form}", math.comb(len(scale.words), 2)
    if fault := _check_array(arrays, name, (pairs,), f"{pairs} pairs of {len(scale.words)} words"):
        yield name, fault
        return
    sd = float(np.std(arrays[name], dtype=np.float64))
    if not _are_close([sd], [scale.cosine_sd], arrays[name]):
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
            texts += list_scale_texts(inputs.tests, inputs.settings.metric, capabilities)
            return Requests(list(dict.fromkeys(texts)))
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
        vocabularies: dict[tuple[str, ...], NDArray[np.float32]] = {}
        tokens, frequency = _get_word_statistics(inputs, model)
        rows: list[AssociationRecord] = []
        for number, (test, near) in enumerate(_iter_tests(inputs, model), start=1):
            if inputs.contexts is None:
                measured = _measure_texts(inputs, test, near, vocabularies)
            else:
                measured = _measure_contexts(inputs, test, near, all_outputs)
            sd = model_sd(scales, measured.fields["level"])
            rows.append(make_result(test, model.identity, measured, inputs.settings, sd, related.get(test.name)))
            yield Row("results", rows[-1])
            yield from (Row("measures", record) for record in make_measure_records(test, model.identity, measured))
            stored = None if rows[-1].searched else measured.association
            cosines = None if stored is None else stored.cosines
            if cosines is not None:
                for name in (COSINES,) if inputs.contexts is None else (*SAMPLE_ARRAYS, COSINES):
                    yield Array(f"{test.name}/{name}", getattr(stored, name))
            yield Row("diagnostics", diagnose(test, rows[-1], cosines, tokens, frequency))
            yield Progress("tests", number, len(inputs.tests))
        yield UnknownWords(tuple(word for row in rows for words in row.oov_words.values() for word in words))
        yield from (Row("topics", topic) for topic in summarize_topics(rows))
        yield from _list_context_warnings(inputs, rows)

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
            yield from _find_wrong_arrays(run)


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
        yield from measure_scales(inputs.tests, inputs.settings.metric, model)
        return
    located = (
        (word, *_get_context_vectors(inputs.contexts.get_rows(word), model, all_outputs)) for word in inputs.scale_words
    )
    vectors = {word: rows[usable] for word, rows, usable in located}
    yield from measure_context_scale(vectors, inputs.settings.min_contexts, model.identity)


def _get_word_statistics(
    inputs: AssociationInputs, model: ModelOutputs
) -> tuple[dict[str, float] | None, dict[str, float] | None]:
    """Return the number of tokens of every word, and its number of contexts or rank in the vocabulary."""
    words = list(dict.fromkeys(word for test in inputs.tests for role in ROLES for word in test.concept(role).words))
    counts, ranks = model.tokens(words), None if inputs.contexts is not None else model.ranks(words)
    tokens = None if counts is None else dict(zip(words, counts.tolist(), strict=True))
    if inputs.contexts is not None:
        return tokens, {word: float(inputs.contexts.count(word)) for word in words}
    return tokens, None if ranks is None else dict(zip(words, ranks.tolist(), strict=True))


def _measure_texts(
    inputs: AssociationInputs, test: Test, model: ModelOutputs, vocabularies: dict[tuple[str, ...], NDArray[np.float32]]
) -> Measurement:
    """Measure one test over texts.

    Parameters
    ----------
    inputs : AssociationInputs
    test : Test
    model : ModelOutputs
    vocabularies : dict of tuple to array
        Vectors of random words, which many tests share; filled on first use.
    """
    texts, random, limit = inputs.texts[test.name], inputs.random(test), inputs.settings.max_tokens
    encoded = {role: model.texts([text.text for text in texts.role(role)]) for role in ROLES}
    if random and random not in vocabularies:
        vocabularies[random] = select_usable_vectors(model.texts(random))
    skip_reason = explain_unknown_language(test, model.tokens, limit)
    hint, vocabulary = model.capabilities.oov_hint, vocabularies.get(random)
    return measure_over_texts(test, texts, encoded, inputs.settings, hint, vocabulary, skip_reason)


def _measure_contexts(
    inputs: AssociationInputs, test: Test, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
) -> Measurement:
    """Measure one test over contexts; without vectors if too few words have contexts."""
    assert inputs.contexts is not None
    contexts = inputs.contexts
    words = dict.fromkeys(word for role in ROLES for word in test.concept(role).words)
    vectors: dict[str, Floats] = {word: np.empty((contexts.count(word), 1)) for word in words}
    documents: dict[str, NDArray[np.int64]] = {}
    if check_coverage(contexts.count, test, inputs.settings).measurable:
        for word in words:
            own, usable = _get_context_vectors(contexts.get_rows(word), model, all_outputs)
            vectors[word] = own if usable.all() else own[usable]
            documents[word] = contexts.documents(contexts.get_rows(word))[usable]
    who = f"{model.identity.content} {model.identity.options}"
    return measure_over_contexts(test, vectors, inputs.settings, who, contexts.count, documents)


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


def _list_context_warnings(inputs: AssociationInputs, rows: Sequence[AssociationRecord]) -> Iterator[StudyWarning]:
    """Yield warnings about words without a vector in some contexts, and about contexts without a source."""
    if inputs.contexts is None:
        return
    counts = {
        word: count for row in rows for words in (row.num_contexts or {}).values() for word, count in words.items()
    }
    short = {word: inputs.contexts.count(word) - count for word, count in counts.items()}
    listed = ", ".join(f"{word} {count}" for word, count in short.items() if count)
    if listed:
        who = "the model" if inputs.settings.mode == "random" else "a model of the run"
        yield StudyWarning(
            f"{sum(short.values())} contexts were left out because {who} has no vector of the word there: {listed}"
        )
    if unknown := inputs.contexts.num_unknown_documents:
        yield StudyWarning(
            f"{format_count(unknown, 'context')} of the file have no source; each counts as its own document, "
            "so the interval of effects in new contexts may be too narrow"
        )


STUDY = _AssociationStudy()
