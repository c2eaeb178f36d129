"""Tests found by what stands in them, and concepts with the tests that use them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from biassay.errors import UnknownNameError, UsageError
from biassay.stimuli.model import ROLES, Concept, Test
from biassay.stimuli.resolve import Catalogue
from biassay.stimuli.word_associations import WordAssociationTest, published_word_associations

__all__ = ["Match", "concepts_named", "search_tests", "tests_with"]


@dataclass(frozen=True)
class Match:
    """A test, and what of it was found, by where it stands: name, title, topic, collection, labels, or a role."""

    test: Test | WordAssociationTest
    found: Mapping[str, tuple[str, ...]]


def search_tests(words: Iterable[str], known: Catalogue) -> list[Match]:
    """The tests in which all of some words stand, each at the beginning of a word; case does not count.

    Other names of a test are left out unless the name itself is found. Tests for chat or instruct models come last.
    """
    terms = [re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE) for word in words if word.strip()]
    if not terms:
        raise UsageError("give at least one word to search for")
    matches = []
    for test in known.tests.values():
        texts, is_named = list(_texts(test)), any(term.search(test.name) for term in terms)
        has_all = all(any(term.search(text) for _, text in texts) for term in terms)
        if has_all and (is_named or test.alias_of is None):
            matches.append(Match(test, _found(texts, terms)))
    for asked in published_word_associations():
        texts = list(_texts(asked))
        if all(any(term.search(text) for _, text in texts) for term in terms):
            matches.append(Match(asked, _found(texts, terms)))
    return matches


def _texts(test: Test | WordAssociationTest) -> Iterator[tuple[str, str]]:
    yield from (("name", test.name), ("title", test.title), ("topic", test.topic), ("collection", test.source.name))
    concepts = {role: test.concept(role) for role in ROLES} if isinstance(test, Test) else test.concepts
    for concept in concepts.values():
        yield "labels", concept.label
    for role, concept in concepts.items():
        yield from ((role, word) for word in concept.words)


def _found(texts: Iterable[tuple[str, str]], terms: Iterable[re.Pattern[str]]) -> dict[str, tuple[str, ...]]:
    terms = tuple(terms)
    found: dict[str, tuple[str, ...]] = {}
    for where, text in texts:
        if any(term.search(text) for term in terms):
            found[where] = (*found.get(where, ()), text)
    return found


def concepts_named(pattern: str | None, known: Catalogue) -> tuple[Concept, ...]:
    """A concept by its name, those that match a pattern, or all."""
    if pattern is None:
        return tuple(known.concepts.values())
    if pattern in known.concepts:
        return (known.concepts[pattern],)
    names = fnmatch.filter(known.concepts, pattern)
    if not names:
        raise UnknownNameError("concept", pattern, known.concepts, "('biassay tests concepts' shows all)")
    return tuple(known.concepts[name] for name in names)


def tests_with(concept: Concept, known: Catalogue) -> tuple[str, ...]:
    """The names of the tests that use a concept, without other names of the same test."""
    return tuple(
        test.name
        for test in known.tests.values()
        if test.alias_of is None and any(test.concept(role).name == concept.name for role in ROLES)
    )
