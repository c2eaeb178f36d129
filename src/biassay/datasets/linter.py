"""Find faults in the word lists of tests: repeated words, overlaps, unequal sizes, other scripts, missing clusters."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from biassay.datasets.catalogue import load_catalogue, select_tests
from biassay.datasets.languages import (
    PREFIX,
    PUBLISHED,
    PublishedLists,
    list_collections,
    load_languages,
    load_published_lists,
)
from biassay.datasets.schema import ROLES, Test
from biassay.grouping import group_pairs

FAULTS = {
    "repeated": "word repeated in a set",
    "opposed": "word in both opposed sets",
    "crossed": "word is target and attribute",
    "sizes": "opposed sets of unequal size",
    "script": "word in another script",
    "cluster": "similarly spelled words without a cluster",
}
"""Kinds of faults. The first three make a test invalid; the others are for the author to judge."""
_PRONOUNS = (frozenset({"he", "him", "his", "himself"}), frozenset({"she", "her", "hers", "herself"}))
_PLURALS = (("men", "man"), ("ies", "y"), ("ves", "f"), ("ves", "fe"), ("es", ""), ("s", ""))
_STEM = 3  # letters that two forms share at least, at the beginning
_ENDING = 3  # letters by which either form may go on
_SHARE = 0.6  # smallest share of the longer form's letters in the stem
_ALIKE = {"LATIN", "CYRILLIC", "GREEK"}  # scripts with letters that look alike
_MAIN_SCRIPT = 0.2  # smallest share of words in a script that belongs to the language


@dataclass(frozen=True)
class WordListFault:
    """Fault of the word lists of a test: its kind, the sets and the words concerned."""

    test: str
    kind: str
    roles: str
    words: tuple[str, ...]


def lint_test(test: Test) -> Iterator[WordListFault]:
    """Yield the faults of a test of words. Finished texts are not checked."""
    if not any(test.concept(role).given for role in ROLES):
        words = {role: test.concept(role).words for role in ROLES}
        yield from _lint(test.name, words, {role: test.concept(role).cluster_labels for role in ROLES})


def lint_lists(lists: PublishedLists) -> Iterator[WordListFault]:
    """Yield the faults of lists as published, which have no clusters."""
    yield from _lint(lists.name, lists.words, {})


def check_collections(patterns: Sequence[str] = ()) -> Iterator[tuple[str, int, tuple[WordListFault, ...]]]:
    """Yield each collection with its number of tests and their faults.

    Parameters
    ----------
    patterns : sequence of str
        Tests and collections; by default all of the catalogue and of WEATHub, as published and corrected.
    """
    published = {f"{PREFIX}-{code}-{PUBLISHED}": code for code in load_languages()}
    for name in patterns or (*load_catalogue().collections, *list_collections()):
        if name in published:
            lists = load_published_lists(published[name])
            yield name, len(lists), tuple(fault for word_list in lists for fault in lint_lists(word_list))
        else:
            tests = [test for test in select_tests(name) if test.alias_of is None]
            yield name, len(tests), tuple(fault for test in tests for fault in lint_test(test))


def _lint(
    test: str, words: Mapping[str, Sequence[str]], clusters: Mapping[str, Mapping[str, str]]
) -> Iterator[WordListFault]:
    folded = {role: [word.casefold() for word in words[role]] for role in ROLES}
    for role in ROLES:
        repeated = {word for word, count in Counter(folded[role]).items() if count > 1}
        if repeated:
            yield WordListFault(test, "repeated", role, _select(words[role], repeated))
    for kind, pairs in (("opposed", (("X", "Y"), ("A", "B"))), ("crossed", tuple(product("XY", "AB")))):
        for first, second in pairs:
            shared = set(folded[first]) & set(folded[second])
            if shared:
                yield WordListFault(test, kind, first + second, _select(words[first], shared))
    for first, second in (("X", "Y"), ("A", "B")):
        if len(words[first]) != len(words[second]):
            yield WordListFault(test, "sizes", first + second, (str(len(words[first])), str(len(words[second]))))
    main = _find_main_scripts(words)
    for role in ROLES:
        other = tuple(word for word in words[role] if _is_in_other_script(word, main))
        if other:
            yield WordListFault(test, "script", role, other)
    for role in ROLES:
        distinct = list(dict.fromkeys(words[role]))
        labels = clusters.get(role, {})
        groups = ([distinct[i] for i in indices] for indices in group_by_spelling(distinct))
        alike = ["/".join(group) for group in groups if len({labels.get(word, word) for word in group}) > 1]
        if alike:
            yield WordListFault(test, "cluster", role, tuple(dict.fromkeys(alike)))


def _select(words: Sequence[str], folded: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word.casefold() in folded))


def _list_scripts(word: str) -> set[str]:
    """Return the scripts of the letters of a word. Japanese kana count as one script."""
    names = {unicodedata.name(letter, "").split()[0] for letter in word if letter.isalpha()}
    return {"KANA" if name.startswith(("HIRAGANA", "KATAKANA")) else name for name in names}


def _find_main_scripts(words: Mapping[str, Sequence[str]]) -> set[str]:
    every = [_list_scripts(word) for role in ROLES for word in words[role]]
    counts = Counter(script for scripts in every for script in scripts)
    return {script for script, count in counts.items() if count > _MAIN_SCRIPT * len(every)}


def _is_in_other_script(word: str, main: set[str]) -> bool:
    """Return whether a word is in other scripts only, or mixes scripts whose letters look alike.

    Abbreviations in capitals, such as NASA, are exempt from the first.
    """
    scripts = _list_scripts(word)
    if len(scripts & _ALIKE) > 1:
        return True
    return bool(scripts) and not scripts & main and not (len(word) > 1 and word.isupper())


def list_forms(word: str) -> frozenset[str]:
    """Return keys of a word; forms of one word, by case, plural or case of a pronoun, share a key."""
    folded = word.casefold()
    singulars = {folded.removesuffix(end) + new for end, new in _PLURALS if folded.endswith(end)}
    pronouns = {f"pronoun {number}" for number, group in enumerate(_PRONOUNS) if folded in group}
    return frozenset({folded} | {form for form in singulars if len(form) >= _STEM} | pronouns)


def group_by_spelling(names: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indices of words that are spelled like forms of one word."""
    by_key = group_pairs((key, index) for index, name in enumerate(names) for key in _spelling_keys(name))
    return (indices for indices in by_key.values() if len(indices) > 1)


def _spelling_keys(word: str) -> set[str]:
    """Return keys of which two words share one exactly if they are spelled like forms of one word.

    Keys are the beginnings of a word that are long enough for a stem.
    """
    folded = word.casefold()
    form = f"{folded.removesuffix('men')}man" if folded.endswith("men") else folded
    stems = {form[:size] for size in range(max(_STEM, len(form) - _ENDING), len(form) + 1) if size > _SHARE * len(form)}
    pronouns = {f"pronoun {number}" for number, group in enumerate(_PRONOUNS) if form in group}
    return stems | pronouns | {f"word {form}"}
