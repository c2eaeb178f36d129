"""Word association tests and prompt wordings for chat models."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from biassay.datasets.catalogue import collect_selected, select_tests
from biassay.datasets.fields import DATA, Readers, parse_toml
from biassay.datasets.schema import About, Concept, Source, Test, get_description_readers, read_source
from biassay.datasets.stimulus_files import (
    UNKNOWN_SOURCE,
    DocumentReader,
    MappingReader,
    has_any_key,
    make_concept_fields,
    split_test_mapping,
)
from biassay.errors import StimulusError, UnknownNameError
from biassay.io import read_text
from biassay.stats.permutation import smallest_p
from biassay.stats.word_association import smallest_crossed_p

PromptForm = Literal["list", "word", "decision"]
APOSTROPHES = re.compile("['’‘ʼ`´]")

_PREFIX = "wat-"
_GROUPS, _POLES = ("default", "stigmatised"), ("positive", "negative")
_ROLES = (*_GROUPS, *_POLES)
_FORMS: dict[PromptForm, tuple[str, ...]] = {"list": ("words",), "word": ("word",), "decision": ("topic", "other")}
_SLOTS = ("first", "second", *(slot for slots in _FORMS.values() for slot in slots))
_SLOT = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Wording:
    """Text of a prompt, with slots for the two group words and for attribute words.

    Attributes
    ----------
    name : str
        Name of the wording.
    text : str
        Text with the slots {first} and {second} for the group words.
    source : Source
        Origin of the wording.
    lower_case : bool
        If True, all words are written in lower case.
    quoted : bool
        If True, the list of words has brackets, and its words have quotes.
    form : {"list", "word", "decision"}
        Slots for attribute words: {words} for a list, {word} for one word, {topic} and {other} for a decision.
    """

    name: str
    text: str
    source: Source
    lower_case: bool = False
    quoted: bool = False
    form: PromptForm = "list"


@dataclass(frozen=True)
class WordAssociationTest:
    """Attribute words of two poles; a model assigns each word to one of two group words.

    A stereotype assigns `negative` words to `stigmatised` group words and `positive` words to `default` group words.
    """

    name: str
    title: str
    default: Concept
    stigmatised: Concept
    positive: Concept
    negative: Concept
    source: Source
    topic: str = "other"
    about: About = "people"
    published_as: str = ""
    variant_of: str = ""

    @property
    def question(self) -> str:
        """Name of the question; other forms of a test (other words, another name) share it."""
        return self.variant_of or self.name

    @property
    def concepts(self) -> dict[str, Concept]:
        """Word sets by role."""
        return {role: getattr(self, role) for role in _ROLES}

    @property
    def words(self) -> tuple[str, ...]:
        """Attribute words, positive ones first."""
        return (*self.positive.words, *self.negative.words)

    @property
    def is_negative(self) -> tuple[bool, ...]:
        """Whether each attribute word is negative."""
        return (False,) * len(self.positive.words) + (True,) * len(self.negative.words)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of group words that share a prompt, the default one first. No word is in two pairs."""
        return tuple(zip(self.default.words, self.stigmatised.words, strict=False))

    @property
    def smallest_p_value(self) -> float:
        """Smallest p-value that any responses can give.

        With several pairs of group words the test generalizes to other pairs, and flipping the signs of n pairs cannot
        give less than 2^(1 - n). With one pair it is about this pair only, and the number of words decides.
        """
        n, m, pairs = len(self.negative.words), len(self.positive.words), len(self.pairs)
        return smallest_crossed_p(n, m, pairs) if pairs > 1 else smallest_p(n, m, "two-sided")

    def is_descriptive(self, alpha: float = 0.05) -> bool:
        """Return whether no response could make the test significant at `alpha`."""
        return self.smallest_p_value > alpha

    @property
    def digest(self) -> str:
        """Short hash of all words by role."""
        content = [getattr(self, role).words for role in _ROLES]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


class AssociationFile(NamedTuple):
    """Tests and wordings of a file, by name."""

    tests: dict[str, WordAssociationTest]
    wordings: dict[str, Wording]
    source: Source


def fold_word(word: str) -> str:
    """Normalize case, apostrophes and blanks of a word."""
    return " ".join(APOSTROPHES.sub("", word).casefold().split())


def load_word_associations(path: Path) -> AssociationFile:
    """Read the tables [datasets.NAME] and [wordings.NAME] of a TOML file."""
    text = read_text(path)
    return _WordAssociationReader(path, text).read(parse_toml(path, text))


def holds_word_associations(path: Path) -> bool:
    """Return whether a TOML file has tables of word association tests, not of association tests."""
    return bool(parse_toml(path, read_text(path)).keys() & {"datasets", "wordings"})


class _WordAssociationReader(DocumentReader):
    def read(self, root: dict[str, Any]) -> AssociationFile:
        self.table(root, "", {"source", "datasets", "wordings"})
        if not root.keys() - {"source"}:
            self.fail("", "the file defines nothing; expected tables [datasets.NAME] or [wordings.NAME]")
        source = read_source(self, root["source"]) if "source" in root else UNKNOWN_SOURCE
        datasets = self.table(root.get("datasets", {}), "datasets")
        wordings = self.table(root.get("wordings", {}), "wordings")
        return AssociationFile(
            {name: self.dataset(name, value, source) for name, value in datasets.items()},
            {name: self.wording(name, value, source) for name, value in wordings.items()},
            source,
        )

    def dataset(self, name: str, value: Any, source: Source) -> WordAssociationTest:
        where = f"datasets.{name}"
        description_readers = get_description_readers(self)
        readers: Readers = {
            **dict.fromkeys(("title", "published_as"), self.string),
            **{key: description_readers[key] for key in ("about", "topic", "variant_of")},
            **{role: partial(self.word_set, role) for role in _ROLES},
        }
        fields = self.record(value, where, readers, _ROLES)
        test = WordAssociationTest(**{"name": name, "title": name, **fields}, source=source)
        return _check_distinct(test, self.format_location(where))

    def word_set(self, role: str, value: Any, where: str) -> Concept:
        read = self.distinct_words if role in _GROUPS else self.words  # a pole needs two words, a group only one
        fields = self.record(value, where, {"label": self.string, "words": read}, ["words"])
        first_spelling: dict[str, str] = {}
        for word in fields["words"]:
            other = first_spelling.setdefault(fold_word(word), word)
            if other != word:
                self.fail(f"{where}.words", f"{other!r} and {word!r} are spellings of one word")
        return Concept(role, fields.get("label", role), fields["words"])

    def wording(self, name: str, value: Any, source: Source) -> Wording:
        where = f"wordings.{name}"
        readers: Readers = {"text": self.string, **dict.fromkeys(("lower_case", "quoted"), self.flag)}
        fields = self.record(value, where, readers, ["text"])
        slots = _SLOT.findall(fields["text"])
        for slot in slots:
            if slot not in _SLOTS:
                known = ", ".join(f"{{{name}}}" for name in _SLOTS)
                self.fail(f"{where}.text", f"unknown slot {{{slot}}}; slots: {known}")
        for slot in ("first", "second"):
            if slot not in slots:
                self.fail(f"{where}.text", f"the slot {{{slot}}} is missing")
        forms = [form for form, names in _FORMS.items() if set(slots) - {"first", "second"} == set(names)]
        if not forms or slots.count("words") > 1:
            self.fail(
                f"{where}.text", "expected the slot {words} for a list, {word} for one word, or {topic} and {other}"
            )
        return Wording(name, source=source, form=forms[0], **fields)


class _WordAssociationMappingReader(MappingReader, _WordAssociationReader):
    def dataset_from_fields(self, value: Any) -> WordAssociationTest:
        fields = self.table(value, "")
        sets = {role: make_concept_fields(self, fields[role], role) for role in _ROLES if role in fields}
        return self.dataset(self.name, {**fields, **sets}, UNKNOWN_SOURCE)


def _check_distinct(test: WordAssociationTest, where: str) -> WordAssociationTest:
    """Raise StimulusError if a response could not show in which role a word is used."""
    owners: dict[str, str] = {}
    for role, concept in test.concepts.items():
        for word in concept.words:
            owner = owners.setdefault(fold_word(word), role)
            if owner != role:
                raise StimulusError(
                    f"{where}: the word {word!r} is both {owner} and {role}; a response could not distinguish them"
                )
    return test


def convert_association_test(test: Test) -> WordAssociationTest:
    """Convert an association test of words to one for chat models.

    X and Y become the group words, A and B the attribute words: a stereotype associates X with A and Y with B.
    Raise StimulusError for a test of sentences.
    """
    if test.targets or test.attributes or test.variant_of:
        instead = f"use {test.variant_of!r}" if test.variant_of else "remove its templates"
        raise StimulusError(f"the test {test.name!r} consists of sentences, and chat models need words: {instead}")
    if not test.has_known_words:
        raise StimulusError(
            f"the test {test.name!r} consists of finished texts without their words; "
            "choose a test of words, or add the field 'words' beside the texts"
        )
    converted = WordAssociationTest(
        test.name,
        test.title,
        *(test.X, test.Y, test.A, test.B),
        test.source,
        topic=test.topic,
        about=test.about,
        variant_of=test.alias_of or "",
    )
    return _check_distinct(converted, f"test {test.name!r}")


@cache
def _load_bundled() -> tuple[dict[str, WordAssociationTest], dict[str, Wording]]:
    files = [load_word_associations(path) for path in sorted((DATA / "word_associations").glob("*.toml"))]
    tests = {name: test for file in files for name, test in file.tests.items()}
    return tests, {name: wording for file in files for name, wording in file.wordings.items()}


def select_word_associations(
    patterns: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = (),
) -> tuple[WordAssociationTest, ...]:
    """Select word association tests; all 21 published ones by default.

    Parameters
    ----------
    patterns : str, dict of words, or list of them
        ``all`` (the published ones), names (``wat-career``, or ``career``, as published), patterns (``wat-*``), topics
        (``gender``), the collection ``bai2025``, TOML files with tables [datasets.NAME], dicts with the words of
        ``default``, ``stigmatised``, ``positive`` and ``negative``, or anything that `select_tests` accepts: any
        association test of words (``weat6``), with X and Y for the groups and A and B for the poles. A topic selects
        the published tests if there are any. Topics, collections and patterns skip tests in sentences.

    Returns
    -------
    tuple of WordAssociationTest
    """
    patterns = (patterns,) if isinstance(patterns, str | Mapping) else tuple(patterns)
    return collect_selected(patterns, _match_word_associations) if patterns else select_published()


def select_testable(alpha: float) -> tuple[WordAssociationTest, ...]:
    """Return the published tests that can be significant at `alpha`. The others are descriptive."""
    return tuple(test for test in select_published() if not test.is_descriptive(alpha))


def select_published(pattern: str = "*") -> tuple[WordAssociationTest, ...]:
    """Return the published tests that match a name, a topic, the collection or a pattern; possibly none."""
    tests = tuple(_load_bundled()[0].values())
    if pattern == "all":
        return tests
    by_name = tuple(test for test in tests if pattern in (test.name, test.published_as))
    about = tuple(test for test in tests if pattern in (test.topic, test.source.name))
    short = tuple(test for test in tests if test.name == _PREFIX + pattern)
    return by_name or about or short or tuple(test for test in tests if fnmatchcase(test.name, pattern))


def _match_word_associations(pattern: str | Mapping[str, Any]) -> tuple[WordAssociationTest, ...]:
    if isinstance(pattern, Mapping):
        roles = frozenset(_ROLES)
        if has_any_key(pattern, roles) or any(has_any_key(value, roles) for value in pattern.values()):
            items = split_test_mapping(pattern, roles)
            return tuple(_WordAssociationMappingReader(name).dataset_from_fields(fields) for name, fields in items)
        return tuple(map(convert_association_test, select_tests(pattern)))
    if isinstance(pattern, str) and (published := select_published(pattern)):
        return published
    if isinstance(pattern, str) and pattern.lower().endswith(".toml") and holds_word_associations(Path(pattern)):
        tests = load_word_associations(Path(pattern)).tests
        if not tests:
            raise StimulusError(f"{pattern}: the file defines wordings but no tests; expected tables [datasets.NAME]")
        return tuple(tests.values())
    try:
        selected = select_tests(pattern)
        return tuple(map(convert_association_test, [t for t in selected if t.level == "word"] or selected))
    except UnknownNameError as error:
        names = [*(test.name for test in select_published()), *error.nearest]
        hint = "(published ones start with wat-; list the others with 'biassay tests list')"
        raise UnknownNameError("word association test", pattern, names, hint) from error


def select_wordings(form: PromptForm = "list") -> tuple[Wording, ...]:
    """Return the wordings of a form of prompt, the published one first."""
    return tuple(wording for wording in _load_bundled()[1].values() if wording.form == form)
