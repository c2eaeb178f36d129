"""Read and check the tests and contexts that a run measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from biassay.corpus.contexts import Contexts, read_contexts
from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES, Test
from biassay.errors import StimulusError, UsageError
from biassay.prompts.sentences import TestTexts, get_assumed_words, hash_texts, make_random_texts, make_texts
from biassay.results.run_data import TestRecord
from biassay.studies.associations.corrections import resolve_questions
from biassay.studies.associations.measure import check_coverage, check_tests, check_word_tests
from biassay.studies.associations.metrics import PairwiseMetric, get_metric
from biassay.studies.associations.results import AssociationInputsRecord, ContextsRecord
from biassay.studies.associations.settings import RUN_FAMILY, AssociationSettings

__all__ = ["GIVEN_AS_WORDS", "AssociationInputs", "check_same", "load_inputs", "make_test_record"]

GIVEN_AS_WORDS = "given as words"
"""What stands in place of a pattern for a test that was given as a dict of words."""

_SCALE_WORDS = 100
_CONTEXT_SETTINGS = ("n_samples", "mode", "window", "dtype", "min_contexts", "vectors")
_MAX_MARGIN = 2.0
_SCAN_SETTINGS = ("file_format", "field", "document", "html", "language", "ignore_case", "openings")


@dataclass(frozen=True, eq=False)
class AssociationInputs:
    """Tests and contexts, checked before anything is asked."""

    settings: AssociationSettings
    tests: tuple[Test, ...]
    record: AssociationInputsRecord
    contexts: Contexts | None = None

    @cached_property
    def texts(self) -> dict[str, TestTexts]:
        """The texts of every test."""
        return {test.name: make_texts(test) for test in self.tests}

    def random(self, test: Test) -> tuple[str, ...]:
        """Texts of random attribute words for the random baseline; they are English, so that other tests have none."""
        by_pairs = isinstance(get_metric(self.settings.metric), PairwiseMetric)
        wanted = (
            self.settings.random_sets and self.contexts is None and by_pairs and not self.settings.is_paper_protocol
        )
        return make_random_texts(test) if wanted and test.has_known_words and test.is_english else ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the tests that have contexts enough; no others are encoded."""
        assert self.contexts is not None
        measurable = (
            test for test in self.tests if check_coverage(self.contexts.count, test, self.settings).measurable
        )
        return tuple(dict.fromkeys(word for test in measurable for role in ROLES for word in test.concept(role).words))

    @cached_property
    def scale_words(self) -> tuple[str, ...]:
        """Words of the contexts file that give the scale, whichever tests are chosen: evenly thinned to at most 100."""
        assert self.contexts is not None
        if not self.words:
            return ()
        enough = [w for w in self.contexts.stimuli if self.contexts.count(w) >= self.settings.min_contexts]
        places = np.linspace(0, len(enough) - 1, min(len(enough), _SCALE_WORDS)).round().astype(int)
        return tuple(enough[place] for place in places)


def load_inputs(settings: AssociationSettings) -> AssociationInputs:
    """Read what the settings name, and refuse what cannot be measured."""
    settings = dataclasses.replace(settings, alpha=settings.alpha_or_default)
    if get_metric(settings.metric).unit != "d" and settings.protocol != "exact":
        raise UsageError(
            f"metric {settings.metric} is a score of four sets, whose p-value is by permutation; protocol "
            f"{settings.protocol} is for associations of single texts"
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
    chosen = [(test, one) for one in (patterns or ("",)) for test in select_tests([one] if one else [])]
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
    found = resolve_questions(settings.family, tests)
    if not found:
        raise UsageError(f"--family {' '.join(settings.family)} names no social-bias test")
    return found


def _check_equivalence(settings: AssociationSettings) -> None:
    """A margin that means nothing, or that nothing would be made of, is refused."""
    if settings.equivalence is None:
        return
    if settings.metric == "cosine" and settings.equivalence >= _MAX_MARGIN:
        raise UsageError(
            f"equivalence must be below {_MAX_MARGIN:g}, got {settings.equivalence:g}: it is a D in cosine "
            "units, not a d; what is small differs by model: see D of its tests"
        )
    if settings.is_paper_protocol or get_metric(settings.metric).unit != "d":
        why = f"protocol {settings.protocol}" if settings.is_paper_protocol else f"metric {settings.metric}"
        raise UsageError(
            f"equivalence is a question to the crossed test, which does not lead under {why}; leave it out"
        )


def _check_context_settings(settings: AssociationSettings) -> None:
    """Settings of runs over contexts would be ignored in silence."""
    for field in dataclasses.fields(AssociationSettings):
        if field.name in _CONTEXT_SETTINGS and getattr(settings, field.name) != field.default:
            raise UsageError(f"{field.name} is for runs over contexts; give contexts too (--contexts FILE)")


def make_test_record(test: Test, asked: str | dict[str, Any]) -> TestRecord:
    """A test as the manifest holds it, and what it was asked with."""
    pattern = asked if isinstance(asked, str) else GIVEN_AS_WORDS
    source = (test.source.name, test.source.citation, test.source.licence, test.source.version)
    return TestRecord(test.name, pattern, hash_texts(test), *source, get_assumed_words(test))


def _read_contexts_file(file: str) -> Contexts:
    contexts = read_contexts(Path(file))
    if not len(contexts):
        raise UsageError(f"{file} holds no contexts at all; was the corpus in another language or case?")
    return contexts


def make_contexts_record(path: Path, contexts: Contexts) -> ContextsRecord:
    """Where contexts came from."""
    corpus = contexts.metadata.get("corpus", {})
    return ContextsRecord(
        file=str(path.resolve()),
        digest=contexts.digest,
        rows=len(contexts),
        per_stimulus=contexts.metadata["k"],
        seed=contexts.metadata.get("seed", 0),
        documents=corpus.get("documents", 0),
        bytes=corpus.get("bytes", 0),
        corpus=tuple(corpus.get("files", ())),
        found_with={
            key.removeprefix("file_"): str(contexts.metadata[key])
            for key in _SCAN_SETTINGS
            if contexts.metadata.get(key)
        },
    )


def _check_scanned(tests: Sequence[Test], contexts: Contexts) -> None:
    """Refuse a test for which no scan was made; that is not the same as words that were not found."""
    sought = set(contexts.stimuli)
    for test in tests:
        for role in ROLES:
            if not sought & set(test.concept(role).words):
                raise UsageError(
                    f"the contexts were not collected for test {test.name!r}: no word of {test.concept(role).label} "
                    f"was sought; collect them with biassay contexts ... --tests {test.name}"
                )


def check_same(before: AssociationInputsRecord, now: AssociationInputsRecord) -> None:
    """Refuse to go on with other tests or contexts."""
    digests = {test.name: test.digest for test in now.tests}
    added = [test.name for test in now.tests if test.name not in {old.name for old in before.tests}]
    if added:
        raise StimulusError(
            f"there are tests now that the run did not begin with ({', '.join(added)}); start a new run"
        )
    for test in before.tests:
        if digests.get(test.name) != test.digest:
            raise StimulusError(f"the test {test.name!r} has changed since the run began; start a new run")
    if before.contexts is not None and now.contexts is not None and before.contexts.digest != now.contexts.digest:
        raise UsageError(f"the contexts in {before.contexts.file} have changed since the run began; start a new run")
