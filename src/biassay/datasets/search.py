"""Find tests and word sets by their content."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from biassay.datasets.catalogue import Catalogue
from biassay.datasets.schema import ROLES, Concept, Test
from biassay.datasets.word_associations import WordAssociationTest, select_published
from biassay.errors import UnknownNameError, UsageError


@dataclass(frozen=True)
class SearchMatch:
    """Test with the matching texts by location: name, title, topic, collection, labels or a role."""

    test: Test | WordAssociationTest
    matches: Mapping[str, tuple[str, ...]]


def search_tests(words: Iterable[str], known: Catalogue) -> list[SearchMatch]:
    """Find the tests that contain all of some words, each at the start of a word, ignoring case.

    Aliases are skipped unless their name matches. Tests for chat or instruct models come last.
    """
    terms = [re.compile(rf"(?<!\w){re.escape(word)}", re.IGNORECASE) for word in words if word.strip()]
    if not terms:
        raise UsageError("no search term; type at least one word")
    tests: list[Test | WordAssociationTest] = [
        test for test in known.tests.values() if test.alias_of is None or any(term.search(test.name) for term in terms)
    ]
    matches = []
    for test in (*tests, *select_published()):
        texts = list(_iter_texts(test))
        if all(any(term.search(text) for _, text in texts) for term in terms):
            matches.append(SearchMatch(test, _find_terms(texts, terms)))
    return matches


def _iter_texts(test: Test | WordAssociationTest) -> Iterator[tuple[str, str]]:
    yield from (("name", test.name), ("title", test.title), ("topic", test.topic), ("collection", test.source.name))
    concepts = {role: test.concept(role) for role in ROLES} if isinstance(test, Test) else test.concepts
    for concept in concepts.values():
        yield "labels", concept.label
    for role, concept in concepts.items():
        yield from ((role, word) for word in concept.words)


def _find_terms(texts: Iterable[tuple[str, str]], terms: Sequence[re.Pattern[str]]) -> dict[str, tuple[str, ...]]:
    matches: dict[str, tuple[str, ...]] = {}
    for where, text in texts:
        if any(term.search(text) for term in terms):
            matches[where] = (*matches.get(where, ()), text)
    return matches


def select_concepts(pattern: str | None, known: Catalogue) -> tuple[Concept, ...]:
    """Return the word sets that match a name or pattern, or all of them."""
    if pattern is None:
        return tuple(known.concepts.values())
    if pattern in known.concepts:
        return (known.concepts[pattern],)
    names = fnmatch.filter(known.concepts, pattern)
    if not names:
        raise UnknownNameError("concept", pattern, known.concepts, "(list all with 'biassay tests concepts')")
    return tuple(known.concepts[name] for name in names)


def find_tests_using(concept: Concept, known: Catalogue) -> tuple[str, ...]:
    """Return the names of the tests that use a word set, without aliases."""
    return tuple(
        test.name
        for test in known.tests.values()
        if test.alias_of is None and any(test.concept(role).name == concept.name for role in ROLES)
    )
