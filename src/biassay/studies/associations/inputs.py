"""Read and check the tests and contexts that a run measures."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from biassay.corpus.contexts import Contexts, read_contexts
from biassay.datasets.catalogue import select_tests
from biassay.datasets.languages import localize_patterns
from biassay.datasets.linter import list_forms
from biassay.datasets.schema import ROLES, Concept, Test
from biassay.errors import StimulusError, UsageError, format_examples
from biassay.prompts.sentences import TestTexts, get_assumed_words, hash_texts, make_random_texts, make_texts
from biassay.results.run_data import TestRecord
from biassay.studies.associations.measure import check_coverage, check_tests, check_word_tests
from biassay.studies.associations.metrics import PairwiseMetric, get_metric
from biassay.studies.associations.results import AssociationInputsRecord
from biassay.studies.associations.settings import DEFAULT_FAMILY, RUN_FAMILY, AssociationSettings
from biassay.studies.study import make_contexts_record

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
