"""One file of word association tests and wordings of their prompt, read and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from biassay.files import read_text
from biassay.stimuli.description import read_description
from biassay.stimuli.document import UNKNOWN_SOURCE, DocumentReader
from biassay.stimuli.fields import parse_toml
from biassay.stimuli.mappings import concept_of, plain
from biassay.stimuli.model import About, Concept, Source

__all__ = [
    "APOSTROPHES",
    "AssociationEntry",
    "AssociationFile",
    "Form",
    "Wording",
    "folded",
    "holds_word_associations",
    "is_association_mapping",
    "read_association_mapping",
    "read_word_associations",
]

Form = Literal["list", "word", "decision"]

_TABLES = {"source", "datasets", "wordings"}
_GROUPS, _POLES = ("default", "stigmatised"), ("positive", "negative")
_DATASET_KEYS = {"title", "topic", "about", "published_as", "variant_of", *_GROUPS, *_POLES}
_FORMS: dict[Form, tuple[str, ...]] = {"list": ("words",), "word": ("word",), "decision": ("topic", "other")}
_SLOTS = ("first", "second", *(slot for slots in _FORMS.values() for slot in slots))
_SLOT = re.compile(r"\{([^{}]*)\}")
APOSTROPHES = re.compile("['’‘ʼ`´]")


@dataclass(frozen=True)
class Wording:
    """The text of a prompt, with slots for the two group words, in their order, and for attribute words.

    Its form says which: {words}, all of them in a list; {word}, one; {topic} and {other}, two that are decided on.
    ``lower_case``: all words are written in lower case; ``quoted``: the list has brackets, and its words quotes.
    """

    name: str
    text: str
    source: Source
    lower_case: bool = False
    quoted: bool = False
    form: Form = "list"


@dataclass(frozen=True)
class AssociationEntry:
    """A test as written."""

    name: str
    where: str
    title: str
    roles: Mapping[str, Concept]
    topic: str
    about: About
    published_as: str
    variant_of: str = ""


@dataclass(frozen=True)
class AssociationFile:
    """What a file defines."""

    source: Source
    tests: tuple[AssociationEntry, ...]
    wordings: tuple[Wording, ...]


def folded(word: str) -> str:
    """A word freed of what spellings differ in: case, apostrophes, blanks."""
    return " ".join(APOSTROPHES.sub("", word).casefold().split())


def read_word_associations(path: Path) -> AssociationFile:
    """The tables [datasets.NAME] and [wordings.NAME] of a TOML file."""
    text = read_text(path)
    return _Reader(path, text).read(parse_toml(path, text))


def holds_word_associations(path: Path) -> bool:
    """Has a TOML file tables of word association tests, and not those of tests of vectors?"""
    return bool(parse_toml(path, read_text(path)).keys() & {"datasets", "wordings"})


def is_association_mapping(content: Mapping[str, Any]) -> bool:
    """Is a dict, or one of those it holds by name, a test of two groups and two poles?"""
    return _has_roles(content) or any(map(_has_roles, content.values()))


def _has_roles(value: object) -> bool:
    return isinstance(value, Mapping) and bool({*_GROUPS, *_POLES} & value.keys())


def read_association_mapping(content: Mapping[str, Any]) -> Iterator[AssociationEntry]:
    """Tests given as a dict: the four sets of words by role, or such dicts by the names of the tests."""
    given = plain(content)
    is_one = _has_roles(given) and not all(map(_has_roles, given.values()))
    for name, fields in [(given.pop("name", "test"), given)] if is_one else given.items():
        yield _MappingReader(name).entry(fields)


class _Reader(DocumentReader):
    def read(self, root: dict[str, Any]) -> AssociationFile:
        self.table(root, "", _TABLES)
        if not root.keys() - {"source"}:
            self.fail("", "the file defines nothing; expected tables [datasets.NAME] or [wordings.NAME]")
        source = self.source(root["source"]) if "source" in root else UNKNOWN_SOURCE
        tests = self.table(root.get("datasets", {}), "datasets")
        wordings = self.table(root.get("wordings", {}), "wordings")
        return AssociationFile(
            source,
            tuple(self.dataset(name, value) for name, value in tests.items()),
            tuple(self.wording(name, value, source) for name, value in wordings.items()),
        )

    def dataset(self, name: str, value: Any) -> AssociationEntry:
        where = f"datasets.{name}"
        fields = self.table(value, where, _DATASET_KEYS)
        for role in (*_GROUPS, *_POLES):
            if role not in fields:
                self.fail(where, f"the field {role!r} is missing; write {role} = {{ label = ..., words = [...] }}")
        roles = {role: self.set(role, fields[role], f"{where}.{role}") for role in (*_GROUPS, *_POLES)}
        stated = read_description(self, fields, where)
        title = self.string(fields.get("title", name), f"{where}.title")
        published = self.string(fields["published_as"], f"{where}.published_as") if "published_as" in fields else ""
        variant = self.string(fields["variant_of"], f"{where}.variant_of") if "variant_of" in fields else ""
        topic, about = stated.topic or "other", stated.about or "people"
        return AssociationEntry(name, self.place(where), title, roles, topic, about, published, variant)

    def set(self, role: str, value: Any, where: str) -> Concept:
        fields = self.table(value, where, {"label", "words"})
        if "words" not in fields:
            self.fail(where, "the field 'words' is missing")
        label = self.string(fields.get("label", role), f"{where}.label")
        take = self.distinct if role in _GROUPS else self.words  # one group word is enough, one attribute word is not
        words = take(fields["words"], f"{where}.words")
        keys = [folded(word) for word in words]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                self.fail(f"{where}.words", f"{words[keys.index(key)]!r} and {words[i]!r} are spellings of one word")
        return Concept(role, label, words)

    def wording(self, name: str, value: Any, source: Source) -> Wording:
        where = f"wordings.{name}"
        fields = self.table(value, where, {"text", "lower_case", "quoted"})
        text = self.string(fields.get("text"), f"{where}.text")
        slots = _SLOT.findall(text)
        for slot in slots:
            if slot not in _SLOTS:
                known = ", ".join(f"{{{one}}}" for one in _SLOTS)
                self.fail(f"{where}.text", f"unknown slot {{{slot}}}; slots: {known}")
        for slot in ("first", "second"):
            if slot not in slots:
                self.fail(f"{where}.text", f"the slot {{{slot}}} is missing")
        forms = [form for form, own in _FORMS.items() if set(slots) - {"first", "second"} == set(own)]
        if not forms or slots.count("words") > 1:
            self.fail(
                f"{where}.text", "expected the slot {words}, for a list, {word}, for one word, or {topic} and {other}"
            )
        flags = {key: self.flag(fields.get(key, False), f"{where}.{key}") for key in ("lower_case", "quoted")}
        return Wording(name, text, source, **flags, form=forms[0])


class _MappingReader(_Reader):
    """Takes one test from a dict. An error names the test and the role."""

    def __init__(self, name: Any) -> None:
        super().__init__(Path(), "")
        self.name = name
        self.string(name, "name")

    def place(self, where: str) -> str:
        field = where.removeprefix(f"datasets.{self.name}").removeprefix(".")
        return f"test {self.name!r}{f': field {field}' if field else ''}"

    def entry(self, value: Any) -> AssociationEntry:
        fields = self.table(value, "", _DATASET_KEYS)
        sets = {role: concept_of(self, fields[role], role) for role in (*_GROUPS, *_POLES) if role in fields}
        return self.dataset(self.name, {**fields, **sets})
