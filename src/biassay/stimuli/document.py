"""One data file, read and checked. An error names the file, the line where it is known, the field and the word."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

from biassay.errors import StimulusError, nearest_names
from biassay.stimuli.model import Concept, Source, TemplateClass, TemplateSet, WordRule

__all__ = ["Document", "TestEntry", "read_document"]

_UNKNOWN_SOURCE = Source("user", "not stated", "not stated", "not stated")
_SENT_BIAS_ROLES = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
_SENTENCE_END = re.compile(r"[.!?]\W*$")
_TEST_KEYS = {"title", "X", "Y", "A", "B", "of", "alias", "targets", "attributes", "given_as_sentences"}
_NEW_PART = re.compile(r"\s*\[|\s*\"(targ|attr)[12]\"")  # a TOML table, or one of the four sets
_SLOT = re.compile(r"\{([^{}]*)\}")
_SLOTS = ("T", "a T", "Ts", "she", "her", "She", "Her")


@dataclass(frozen=True)
class TestEntry:
    """A test as written: names of concepts and templates, not yet looked up."""

    __test__ = False

    name: str
    where: str
    title: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    of: str | None = None
    alias: str | None = None
    targets: str | None = None
    attributes: str | None = None
    given_as_sentences: bool = False


@dataclass(frozen=True)
class Document:
    """All that one file defines."""

    path: str
    source: Source
    concepts: Mapping[str, Concept]
    sets: Mapping[str, TemplateSet]
    tests: tuple[TestEntry, ...]


def read_document(path: Path) -> Document:
    """Read a TOML file of the project's own format, or a JSON file of the sent-bias form."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StimulusError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StimulusError(f"{path}: not UTF-8 text (byte {error.start})") from error
    if path.suffix.lower() == ".toml":
        return _Reader(path, text).own(_parse_toml(path, text))
    return _Reader(path, text).sent_bias(_parse_json(path, text))


def _parse_toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StimulusError(f"{path}: not valid TOML: {error}") from error


def _parse_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_no_repeated_keys)
    except json.JSONDecodeError as error:
        raise StimulusError(f"{path}: line {error.lineno}: not valid JSON: {error.msg}") from error
    except StimulusError as error:
        raise StimulusError(f"{path}: {error}") from error


def _no_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        names = [name for name, _ in pairs]
        raise StimulusError(f"the field {next(n for n in names if names.count(n) > 1)!r} stands twice in one object")
    return seen


class _Reader:
    """Turns parsed values into records, knowing the file they came from."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def fail(self, where: str, problem: str) -> NoReturn:
        line = self._line(where)
        field = f"field {where}: " if where else ""
        raise StimulusError(f"{self.path}: {f'line {line}: ' if line else ''}{field}{problem}")

    def _line(self, where: str) -> int | None:
        """Line of the last part of ``where`` that stands in the file, each part sought within the one before it."""
        found = None
        for part in filter(None, re.sub(r"\[\d+\]", "", where).split(".")):
            name = re.compile(rf"""(^|["'\[.\s]){re.escape(part)}(["'\]\s=:.]|$)""")
            for number in range((found or 1) - 1, len(self.lines)):
                if name.search(self.lines[number]):
                    found = number + 1
                    break
                if found is not None and number >= found and _NEW_PART.match(self.lines[number]):
                    break
        return found

    def table(self, value: Any, where: str, allowed: set[str] | None = None) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.fail(where, f"expected a table of fields, got {_kind(value)}")
        for key in value:
            if allowed is not None and key not in allowed:
                near = nearest_names(key, allowed)
                hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(sorted(allowed))}"
                self.fail(f"{where}.{key}" if where else key, f"unknown field; {hint}")
        return value

    def string(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or not value.strip():
            self.fail(where, f"expected a text that is not empty, got {_kind(value)}")
        return value

    def strings(self, value: Any, where: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.fail(where, f"expected a list of texts, got {_kind(value)}")
        if not value:
            self.fail(where, "the list is empty")
        return tuple(self.string(item, f"{where}[{i}]") for i, item in enumerate(value))

    def words(self, value: Any, where: str) -> tuple[str, ...]:
        words = self.strings(value, where)
        for i, word in enumerate(words):
            if word != word.strip():
                self.fail(f"{where}[{i}]", f"the word {word!r} begins or ends with a blank")
            if word in words[:i]:
                self.fail(where, f"the word {word!r} stands there twice")
        if len(words) < 2:
            self.fail(where, f"a concept needs at least two words, got only {words[0]!r}")
        return words

    def own(self, root: dict[str, Any]) -> Document:
        self.table(root, "", {"source", "concepts", "sets", "tests", "sentences"})
        source = self.source(root["source"]) if "source" in root else _UNKNOWN_SOURCE
        concepts = {
            name: self.concept(name, value) for name, value in self.table(root.get("concepts", {}), "concepts").items()
        }
        sets = {
            name: self.template_set(name, value, source)
            for name, value in self.table(root.get("sets", {}), "sets").items()
        }
        tests = [self.test(name, value) for name, value in self.table(root.get("tests", {}), "tests").items()]
        tests.extend(self.sentence_tests(root.get("sentences", [])))
        return Document(str(self.path), source, concepts, sets, tuple(tests))

    def source(self, value: Any) -> Source:
        fields = self.table(value, "source", {"name", "citation", "licence", "version", "doi", "note"})
        given = {key: self.string(text, f"source.{key}") for key, text in fields.items()}
        for key in ("name", "citation", "licence", "version"):
            if key not in given:
                self.fail("source", f"the field {key!r} is missing")
        return Source(**given)

    def concept(self, name: str, value: Any) -> Concept:
        where = f"concepts.{name}"
        fields = self.table(value, where, {"label", "words", "gender"})
        if "words" not in fields:
            self.fail(where, "the field 'words' is missing")
        gender = fields.get("gender")
        if gender not in (None, "male", "female"):
            self.fail(f"{where}.gender", f"expected 'male' or 'female', got {gender!r}")
        words = self.words(fields["words"], f"{where}.words")
        return Concept(name, self.string(fields.get("label", name), f"{where}.label"), words, gender)

    def test(self, name: str, value: Any) -> TestEntry:
        where = f"tests.{name}"
        fields = self.table(value, where, _TEST_KEYS)
        sentences = fields.pop("given_as_sentences", False)
        if not isinstance(sentences, bool):
            self.fail(f"{where}.given_as_sentences", f"expected true or false, got {_kind(sentences)}")
        given = {key: self.string(text, f"{where}.{key}") for key, text in fields.items()}
        roles = {role: given[role] for role in "XYAB" if role in given}
        complete = [len(roles) == 4, "of" in given, "alias" in given]
        if sum(complete) != 1 or (roles and len(roles) < 4):
            missing = ", ".join(role for role in "XYAB" if role not in roles)
            self.fail(
                where, f"a test names four concepts as X, Y, A and B, or another test as 'of' ({missing} missing)"
            )
        return TestEntry(
            name,
            f"{self.path}: line {self._line(where)}: field {where}",
            title=given.get("title", ""),
            roles=roles,
            of=given.get("of"),
            alias=given.get("alias"),
            targets=given.get("targets"),
            attributes=given.get("attributes"),
            given_as_sentences=sentences,
        )

    def sentence_tests(self, value: Any) -> Iterator[TestEntry]:
        if not isinstance(value, list):
            self.fail("sentences", "expected a list of tables ([[sentences]])")
        for i, item in enumerate(value):
            where = f"sentences[{i}]"
            fields = self.table(item, where, {"prefix", "targets", "attributes", "of"})
            for key in ("prefix", "targets", "attributes"):
                self.string(fields.get(key), f"{where}.{key}")
            for name in self.strings(fields.get("of"), f"{where}.of"):
                yield TestEntry(
                    fields["prefix"] + name,
                    f"{self.path}: field {where}",
                    of=name,
                    targets=fields["targets"],
                    attributes=fields["attributes"],
                )

    def template_set(self, name: str, value: Any, source: Source) -> TemplateSet:
        where = f"sets.{name}"
        fields = self.table(value, where, {"title", "templates", "classes", "plurals", "articles"})
        if ("templates" in fields) == ("classes" in fields):
            self.fail(where, "a set has either 'templates' (for every word) or 'classes'")
        if "templates" in fields:
            classes: tuple[TemplateClass, ...] = (
                TemplateClass(name, "rest", self.templates(fields["templates"], f"{where}.templates")),
            )
        else:
            if not isinstance(fields["classes"], list):
                self.fail(f"{where}.classes", f"expected a list of tables, got {_kind(fields['classes'])}")
            classes = tuple(
                self.template_class(item, f"{where}.classes[{i}]") for i, item in enumerate(fields["classes"])
            )
        pairs = {key: self.pairs(fields.get(key, {}), f"{where}.{key}") for key in ("plurals", "articles")}
        return TemplateSet(name, self.string(fields.get("title", name), f"{where}.title"), classes, source, **pairs)

    def pairs(self, value: Any, where: str) -> tuple[tuple[str, str], ...]:
        return tuple((key, self.string(text, f"{where}.{key}")) for key, text in self.table(value, where).items())

    def template_class(self, value: Any, where: str) -> TemplateClass:
        fields = self.table(value, where, {"name", "rule", "words", "templates", "except_ending"})
        rule = fields.get("rule")
        if rule not in get_args(WordRule):
            self.fail(f"{where}.rule", f"expected one of {', '.join(get_args(WordRule))}, got {rule!r}")
        words = self.strings(fields.get("words"), f"{where}.words") if rule in ("listed", "contains") else ()
        ending = self.string(fields["except_ending"], f"{where}.except_ending") if "except_ending" in fields else ""
        return TemplateClass(
            self.string(fields.get("name"), f"{where}.name"),
            cast("WordRule", rule),
            self.templates(fields.get("templates"), f"{where}.templates"),
            frozenset(words),
            ending,
        )

    def templates(self, value: Any, where: str) -> tuple[str, ...]:
        templates = self.strings(value, where)
        for template in templates:
            slots = _SLOT.findall(template)
            for slot in slots:
                if slot not in _SLOTS:
                    known = ", ".join("{" + s + "}" for s in _SLOTS)
                    self.fail(where, f"the template {template!r} has an unknown slot {{{slot}}}; slots: {known}")
            if not any(slot in ("T", "a T", "Ts") for slot in slots):
                self.fail(where, f"the template {template!r} has no slot for the word: {{T}}, {{a T}} or {{Ts}}")
        return templates

    def sent_bias(self, root: Any) -> Document:
        self.table(root, "", set(_SENT_BIAS_ROLES))
        concepts = {}
        for key in _SENT_BIAS_ROLES:
            if key not in root:
                self.fail(key, f"the field is missing; a test has {', '.join(_SENT_BIAS_ROLES)}")
            fields = self.table(root[key], key, {"category", "examples"})
            label = self.string(fields.get("category"), f"{key}.category")
            concepts[key] = Concept(key, label, self.words(fields.get("examples"), f"{key}.examples"))
        roles = {role: key for key, role in _SENT_BIAS_ROLES.items()}
        labels = " or ".join(concepts[k].label for k in ("targ1", "targ2"))
        title = f"{labels}, {concepts['attr1'].label} or {concepts['attr2'].label}"
        sentences = any(_SENTENCE_END.search(word) for concept in concepts.values() for word in concept.words)
        entry = TestEntry(self.path.stem, f"{self.path}", title=title, roles=roles, given_as_sentences=sentences)
        return Document(str(self.path), _UNKNOWN_SOURCE, concepts, {}, (entry,))


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"{type(value).__name__} {value!r}"[:60]
