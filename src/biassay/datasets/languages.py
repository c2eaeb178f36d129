"""Association tests in other languages: the lists of WEATHub, as published and corrected.

A test is named ``weathub-LANGUAGE-NUMBER``, such as ``weathub-de-weat6``. The collection ``weathub-de`` holds the
corrected lists, and ``weathub-de-published`` the lists as published, with the ending ``-published`` in each name.
``sent-weathub-de`` puts the corrected lists into sentences, in the languages for which there are templates.
"""

from __future__ import annotations

import csv
import fnmatch
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from biassay.datasets.fields import DATA
from biassay.datasets.schema import ROLES, Concept, Source, TemplateSet, Test
from biassay.errors import BiassayError, StimulusError, UnknownNameError

PREFIX = "weathub"
PUBLISHED = "published"
SENTENCES = "sent-"
_ROLES = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
_DATA = DATA / "languages"


@dataclass(frozen=True)
class PublishedLists:
    """Word lists of one test as published, faults included."""

    name: str
    language: str
    labels: Mapping[str, str]
    words: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class WordCorrection:
    """Correction of a word of a published list, or of a whole test if `role` is empty.

    `replacement` is empty if the word is removed, and equal to the word if it was repeated and is kept once.
    """

    test: str
    role: str
    word: str
    replacement: str
    reason: str


@cache
def _load_descriptions() -> dict[str, Any]:
    return tomllib.loads((_DATA / "weathub.toml").read_text("utf-8"))


@cache
def _load_word_lists() -> dict[str, dict[str, dict[str, Any]]]:
    return dict(json.loads((_DATA / "weathub.json").read_text("utf-8")))


def load_languages() -> Mapping[str, str]:
    """Return the English name of each language by its code."""
    return dict(_load_descriptions()["languages"])


@cache
def load_published_lists(language: str) -> tuple[PublishedLists, ...]:
    """Load the lists of a language as published."""
    content = _load_word_lists()[language]
    return tuple(
        PublishedLists(
            f"{PREFIX}-{language}-{number}",
            language,
            {_ROLES[key]: _format_label(sets["category"]) for key, sets in lists.items()},
            {_ROLES[key]: tuple(sets["examples"]) for key, sets in lists.items()},
        )
        for number, lists in content.items()
    )


def _format_label(category: str) -> str:
    """Turn ``MaleNames`` into "Male names"; labels of several words stay as they are."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", category.rstrip("2"))
    return words if words == category else words[0] + re.sub(r"\b[A-Z](?=[a-z])", lambda m: m[0].lower(), words[1:])


@cache
def load_corrections() -> Mapping[str, tuple[WordCorrection, ...]]:
    """Return the corrections by language."""
    found: dict[str, list[WordCorrection]] = {}
    for row in csv.DictReader((_DATA / "corrections.csv").read_text("utf-8").splitlines()):
        name = f"{PREFIX}-{row['language']}-{row['test']}"
        role = _ROLES.get(row["set"], "")
        correction = WordCorrection(name, role, row["word"], row["replacement"], row["reason"])
        found.setdefault(row["language"], []).append(correction)
    return {language: tuple(corrections) for language, corrections in found.items()}


@cache
def load_language_tests(language: str) -> tuple[Test, ...]:
    """Load the tests of a language with corrected lists."""
    corrections = load_corrections().get(language, ())
    left_out = {correction.test for correction in corrections if not correction.role}
    changed = {(change.test, change.role, change.word): change.replacement for change in corrections}
    return tuple(
        _make_test(
            lists,
            {role: [changed.get((lists.name, role, w), w) for w in words] for role, words in lists.words.items()},
            f"{PREFIX}-{language}",
            "corrected",
        )
        for lists in load_published_lists(language)
        if lists.name not in left_out
    )


@cache
def load_published_tests(language: str) -> tuple[Test, ...]:
    """Load the tests of a language as published. A repeated word counts once, because the lists are sets.

    Tests with a word in two of the sets are left out: they measure nothing that can be read.
    """
    tests = []
    for lists in load_published_lists(language):
        words = {role: tuple(dict.fromkeys(listed)) for role, listed in lists.words.items()}
        if len(set().union(*words.values())) == sum(map(len, words.values())):
            named = replace(lists, name=f"{lists.name}-{PUBLISHED}")
            tests.append(_make_test(named, words, f"{PREFIX}-{language}-{PUBLISHED}", "as published"))
    return tuple(tests)


def _make_test(lists: PublishedLists, words: Mapping[str, Sequence[str]], collection: str, note: str) -> Test:
    descriptions = _load_descriptions()
    description = descriptions["tests"][lists.name.split("-")[2]]
    x, y, a, b = (
        Concept(f"{lists.name}-{role}", lists.labels[role], tuple(dict.fromkeys(filter(None, words[role]))))
        for role in ROLES
    )
    language = descriptions["languages"][lists.language]
    return Test(
        lists.name,
        f"{x.label} or {y.label[0].lower()}{y.label[1:]}, {a.label.lower()} or {b.label.lower()} ({language})",
        x,
        y,
        a,
        b,
        Source(**descriptions["source"] | {"name": collection}, supplementary=True, note=note, language=lists.language),
        **description,
    )


def make_sentence_tests(language: str, templates: Mapping[str, TemplateSet]) -> tuple[Test, ...]:
    """Put the corrected tests of a language into sentences; none if it has no template set ``bleached-LANGUAGE``."""
    template_set = templates.get(f"bleached-{language}")
    if template_set is None:
        return ()
    return tuple(
        replace(
            test,
            name=f"{SENTENCES}{test.name}",
            title=f"{test.title}, in sentences",
            source=replace(test.source, name=f"{SENTENCES}{test.source.name}", note="templates: ours"),
            targets=template_set,
            attributes=template_set,
            variant_of=test.name,
        )
        for test in load_language_tests(language)
    )


def list_collections() -> tuple[str, ...]:
    """Return the names of the collections of all languages."""
    return tuple(f"{PREFIX}-{code}{end}" for code in load_languages() for end in ("", f"-{PUBLISHED}"))


def match_language_tests(pattern: str, templates: Mapping[str, TemplateSet]) -> tuple[Test, ...]:
    """Return the tests that a collection, a name or a pattern such as ``weathub-*-weat6`` selects.

    Parameters
    ----------
    pattern : str
    templates : mapping
        Template sets by name, for tests in sentences.
    """
    load: Callable[[str], tuple[Test, ...]]
    typed, sentences = pattern, pattern.lower().startswith(SENTENCES)
    pattern = pattern.lower().removeprefix(SENTENCES)
    code, _, rest = pattern.partition("-")[2].partition("-")
    languages = fnmatch.filter(load_languages(), code or "*")
    published = rest == PUBLISHED or rest.endswith(f"-{PUBLISHED}")
    load = load_published_tests if published else load_language_tests
    if sentences:
        load = partial(make_sentence_tests, templates=templates)
    number = rest.removesuffix(PUBLISHED).removesuffix("-") or "*"
    wanted = f"{PREFIX}-*-{number}-{PUBLISHED}" if published else f"{PREFIX}-*-{number}"
    tests = tuple(
        test
        for language in languages
        for test in load(language)
        if fnmatch.fnmatchcase(test.name.removeprefix(SENTENCES), wanted)
    )
    if not tests and sentences and languages:
        written = [
            name.removeprefix("bleached-") for name in templates if name.removeprefix("bleached-") in load_languages()
        ]
        raise UnknownNameError("test", typed, (), f"(there are sentence templates for {', '.join(written)})")
    if not tests:
        raise _make_unknown_error(typed, languages)
    return tests


def _make_unknown_error(pattern: str, languages: Sequence[str]) -> BiassayError:
    listed = {lists.name for language in languages for lists in load_published_lists(language)}
    if pattern.lower().removesuffix(f"-{PUBLISHED}") in listed:
        return StimulusError(
            f"{pattern}: too few words are left once words in two of its sets are removed; "
            f"see 'biassay tests validate {PREFIX}-{languages[0]}-{PUBLISHED}'"
        )
    known = [*list_collections(), *listed]
    return UnknownNameError("test", pattern, known, f"(languages: {', '.join(load_languages())})")


def localize_patterns(languages: Sequence[str], patterns: Sequence[Any]) -> tuple[Any, ...]:
    """Return the patterns that select the tests of some languages.

    Parameters
    ----------
    languages : sequence of str
        Codes of languages, such as ``de``, or ``all``.
    patterns : sequence
        Numbers of tests (``weat6``) or patterns for them; all tests of the languages if empty. Dicts of words and
        files are kept as they are. For English, names that WEATHub does not have select from the catalogue.
    """
    known = load_languages()
    chosen: list[Any] = [pattern for pattern in patterns if not isinstance(pattern, str) or Path(pattern).suffix]
    names = [pattern for pattern in patterns if pattern not in chosen]
    for language in known if "all" in languages else languages:
        if language not in known:
            raise UnknownNameError("language", language, known, f"(languages: {', '.join(known)}, or all)")
        if not patterns:
            chosen.append(f"{PREFIX}-{language}")
        for name in names:
            localized = f"{PREFIX}-{language}-{name.lower()}"
            if fnmatch.filter((test.name for test in load_language_tests(language)), localized):
                chosen.append(localized)
            elif language == "en":
                chosen.append(name)
            elif "all" not in languages:
                raise _make_unknown_error(localized, [language])
    if not chosen:
        raise UnknownNameError("test", " ".join(names), [test.name for test in load_language_tests("de")])
    return tuple(chosen)
