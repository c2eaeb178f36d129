"""Read, check and write test files and dicts of tests."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar, get_args

from biassay.datasets.fields import (
    FieldReader,
    Location,
    Readers,
    attempt,
    collect_problems,
    describe_type,
    find_repeated,
    parse_json,
    parse_toml,
)
from biassay.datasets.groups import GroupingEntry, find_invalid_clusters, read_grouping
from biassay.datasets.schema import (
    DESCRIPTION_FIELDS,
    ROLES,
    Concept,
    GivenText,
    Source,
    TemplateClass,
    TemplateSet,
    Test,
    WordRule,
    describe_test,
    get_description_readers,
    get_searched_model_readers,
    read_pair_topics,
    read_source,
)
from biassay.errors import StimulusError
from biassay.io import read_text

GIVEN_FIELDS = frozenset({"examples", "words", "spans"})
Result = TypeVar("Result")


def read_given_texts(reader: FieldReader, fields: Mapping[str, Any], where: str) -> tuple[GivenText, ...]:
    """Read finished texts from the lists ``examples`` and, if present, ``words`` and ``spans`` of the same length.

    Parameters
    ----------
    reader : FieldReader
        Reader of the file.
    fields : mapping
        Values by field.
    where : str
        Location of the fields in the file.
    """
    texts = reader.strings(fields.get("examples"), f"{where}.examples")
    words: Sequence[str | None] = [None] * len(texts)
    spans: Sequence[Any] = words
    if "words" in fields:
        words = reader.strings(fields["words"], f"{where}.words")
    if "spans" in fields:
        spans = fields["spans"] if isinstance(fields["spans"], list) else []
    for key, values in (("words", words), ("spans", spans)):
        if len(values) != len(texts):
            expected = f"a list with one entry for each of the {len(texts)} examples"
            reader.fail(f"{where}.{key}", f"expected {expected}, got {len(values)}")
    if "spans" in fields:
        spans = [_read_span(reader, s, text, f"{where}.spans") for s, text in zip(spans, texts, strict=True)]
    repeated = find_repeated(zip(texts, words, strict=True))
    if repeated is not None:
        reader.fail(f"{where}.examples", f"the text {repeated[0]!r} appears twice")
    return tuple(map(GivenText, texts, words, spans))


def dump_given_texts(given: Sequence[GivenText]) -> dict[str, list[Any]]:
    """Return the fields that `read_given_texts` reads."""
    fields: dict[str, list[Any]] = {"examples": [text.text for text in given]}
    if all(text.word is not None for text in given):
        fields["words"] = [text.word for text in given]
    if all(text.span is not None for text in given):
        fields["spans"] = [list(text.span or ()) for text in given]
    return fields


def _read_span(reader: FieldReader, value: Any, text: str, where: str) -> tuple[int, int]:
    numbers = isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)
    if not numbers or not 0 <= value[0] < value[1] <= len(text):
        reader.fail(where, f"expected [start, end] in characters of the word in {text!r}, got {describe_type(value)}")
    return value[0], value[1]


UNKNOWN_SOURCE = Source("user", "not stated", "not stated", "not stated")
SENT_BIAS_ROLES = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
_SENTENCE = re.compile(r"\s.*[.!?]\W*$", re.DOTALL)
_TEST_TEXTS = ("title", *ROLES, "of", "alias", "targets", "attributes")
_SET_KINDS = ("bleached", "unbleached", "other")
_TOP_LEVEL_KEYS = {"source", "concepts", "sets", "tests", "pairs", "sentences", "grouping", "groups"}
_SLOT = re.compile(r"\{([^{}]*)\}")
_SLOTS = ("T", "a T", "Ts", "she", "her", "She", "Her")


@dataclass(frozen=True)
class TestEntry:
    """Test as written in a file, with names of word sets and templates."""

    __test__ = False

    name: str
    where: Location
    title: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    derived_from: str | None = None
    alias: str | None = None
    targets: str | None = None
    attributes: str | None = None
    given_as_sentences: bool = False
    description: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parent(self) -> str | None:
        """Name of the test that this one is derived from or an alias of."""
        return self.derived_from or self.alias


@dataclass(frozen=True)
class Document:
    """Content of one file.

    `problems` are the mistakes in the file, and `broken` the names of incomplete entries. `resolve_documents` reports
    these mistakes together with those it finds.
    """

    source: Source
    concepts: Mapping[str, Concept]
    sets: Mapping[str, TemplateSet]
    tests: tuple[TestEntry, ...]
    grouping: GroupingEntry | None = None
    problems: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()


def read_document(path: Path) -> Document:
    """Read a TOML file in biassay's format, or a JSON file in the sent-bias format."""
    text = read_text(path)
    if path.suffix.lower() == ".toml":
        return DocumentReader(path, text).read_toml(parse_toml(path, text))
    return DocumentReader(path, text).read_sent_bias(path.stem, parse_json(path, text))


class DocumentReader(FieldReader):
    """Reader of test files. The methods named after an entry read that entry."""

    def words(self, value: Any, where: str) -> tuple[str, ...]:
        """Return a list of two or more words without repetitions."""
        words = self.distinct_words(value, where)
        if len(words) < 2:
            self.fail(where, f"a word set needs at least two words, got only {words[0]!r}")
        return words

    def read_toml(self, root: dict[str, Any]) -> Document:
        """Read a file in biassay's format."""
        self.table(root, "", _TOP_LEVEL_KEYS)
        problems, broken = list[str](), set[str]()

        def read_entries(kind: str, read: Callable[[str, Any], Result]) -> dict[str, Result]:
            entries = {}
            for name, value in self.table(root.get(kind, {}), kind).items():
                earlier = len(problems)
                with collect_problems(problems):
                    entries[name] = read(name, value)
                broken.update([name] if len(problems) > earlier else [])
            return entries

        source = UNKNOWN_SOURCE
        if "source" in root:
            source = attempt(problems, UNKNOWN_SOURCE, read_source, self, root["source"])
        concepts = read_entries("concepts", self.concept)
        sets = read_entries("sets", partial(self.template_set, source=source))
        tests = list(read_entries("tests", partial(self.test, problems=problems)).values())
        with collect_problems(problems):
            tests.extend(self.paired_tests(root["pairs"]) if "pairs" in root else ())
        with collect_problems(problems):
            for entries in self.items(root.get("sentences", []), "sentences", self.sentence_tests, "tables"):
                tests.extend(entries)
        repeated = find_repeated(entry.name for entry in tests)
        if repeated is not None:
            entry = next(entry for entry in tests if entry.name == repeated)
            problems.append(f"{entry.where}: the file defines the test {repeated!r} twice")
        grouping = attempt(problems, None, read_grouping, self, root)
        return Document(source, concepts, sets, tuple(tests), grouping, tuple(problems), frozenset(broken))

    def concept(self, name: str, value: Any) -> Concept:
        """Read a word set."""
        where = f"concepts.{name}"
        gender = partial(self.choice, allowed=("male", "female"))
        readers: Readers = {"label": self.string, "gender": gender, "source": self.string}
        fields = self.record(value, where, {**readers, **dict.fromkeys(("clusters", *GIVEN_FIELDS), self.raw_value)})
        if not fields.keys() & GIVEN_FIELDS:
            self.fail(where, "the field 'words' is missing")
        if fields.keys() & GIVEN_FIELDS == {"words"}:
            words, given = self.words(fields["words"], f"{where}.words"), tuple[GivenText, ...]()
        else:
            words, given = self.read_texts(fields, where)
        described = {key: fields[key] for key in readers if key in fields}
        clusters = self.clusters(fields, words, where)
        return Concept(**{"name": name, "label": name, **described}, words=words, given=given, clusters=clusters)

    def clusters(self, fields: Mapping[str, Any], words: Sequence[str], where: str) -> tuple[tuple[str, ...], ...]:
        """Read clusters of near-synonyms: lists of two or more words, each word in at most one list.

        Parameters
        ----------
        fields : mapping
            Fields of the word set.
        words : sequence of str
            Words of the set.
        where : str
            Place in the file, for messages.
        """
        where = f"{where}.clusters"
        clusters = self.items(fields.get("clusters", []), where, self.distinct_words, "lists of words")
        mistakes = [(f"{where}[{i}]", problem) for i, problem in find_invalid_clusters(clusters, words)]
        self.read_each(lambda mistake: self.fail(*mistake), mistakes)
        return clusters

    def read_texts(self, fields: dict[str, Any], where: str) -> tuple[tuple[str, ...], tuple[GivenText, ...]]:
        """Read finished texts and their words, or the texts as words if the file does not state them."""
        given = read_given_texts(self, fields, where)
        key = "words" if "words" in fields else "examples"
        return self.words(list(dict.fromkeys(text.word or text.text for text in given)), f"{where}.{key}"), given

    def test(self, name: str, value: Any, problems: list[str]) -> TestEntry:
        """Read a test as far as possible and add its mistakes to `problems`.

        Parameters
        ----------
        name : str
            Name of the test.
        value : object
            Value as read.
        problems : list of str
            Problems so far; extended.
        """
        where = f"tests.{name}"
        readers: Readers = {**dict.fromkeys(_TEST_TEXTS, self.string), "given_as_sentences": self.flag}
        fields = self.read_fields(value, where, {**readers, **get_description_readers(self)}, problems)
        if isinstance(value, dict):
            attempt(problems, None, self._check_form, value, where)
        return TestEntry(
            name,
            Location(self, where),
            title=fields.get("title", ""),
            roles={role: fields[role] for role in ROLES if role in fields},
            derived_from=fields.get("of"),
            alias=fields.get("alias"),
            targets=fields.get("targets"),
            attributes=fields.get("attributes"),
            given_as_sentences=fields.get("given_as_sentences", False),
            description={key: fields[key] for key in DESCRIPTION_FIELDS if key in fields},
        )

    def _check_form(self, fields: Mapping[str, Any], where: str) -> None:
        """Raise StimulusError unless a test has either four word sets or one parent."""
        missing = [role for role in ROLES if role not in fields]
        complete = [not missing, "of" in fields, "alias" in fields]
        if sum(complete) != 1 or 0 < len(missing) < 4:
            self.fail(
                where,
                f"a test needs the concepts X, Y, A and B, or another test as 'of' ({', '.join(missing)} missing)",
            )
        stated = next((key for key in fields if key in DESCRIPTION_FIELDS), None)
        if missing and stated is not None:
            parent = fields.get("of", fields.get("alias"))
            self.fail(f"{where}.{stated}", f"the test inherits this field from {parent!r}; remove it")

    def paired_tests(self, value: Any) -> Iterator[TestEntry]:
        """Yield a test for every pair of groups and every pair of attributes of the table [pairs]."""
        description_readers = {
            key: read for key, read in get_description_readers(self).items() if key in ("about", "topic")
        }
        readers: Readers = {
            "groups": self.texts_by_name,
            "attributes": self.table,
            "topics": self.raw_value,
            **description_readers,
        }
        fields = self.record(value, "pairs", readers, ("groups", "attributes"))
        groups, attributes = fields["groups"], fields["attributes"]
        if len(groups) < 2:
            self.fail("pairs.groups", f"expected at least two groups, got {len(groups)}")
        if not attributes:
            self.fail("pairs.attributes", "the table is empty; expected at least one NAME = [A, B]")
        for name, concepts in attributes.items():
            if len(self.strings(concepts, f"pairs.attributes.{name}")) != 2:
                self.fail(f"pairs.attributes.{name}", f"expected the names of two concepts, got {len(concepts)}")
        names = [f"{first}-{second}" for (first, _), (second, _) in combinations(groups, 2)]
        stated = {key: fields[key] for key in description_readers if key in fields}
        topics = read_pair_topics(self, fields.get("topics", {}), "pairs.topics", names)
        for pair, ((_, X), (_, Y)) in zip(names, combinations(groups, 2), strict=True):
            description = stated | ({"topic": topics[pair]} if pair in topics else {})
            for name, (A, B) in attributes.items():
                roles = {"X": X, "Y": Y, "A": A, "B": B}
                yield TestEntry(f"{pair}-{name}", Location(self, "pairs"), roles=roles, description=description)

    def sentence_tests(self, value: Any, where: str) -> list[TestEntry]:
        """Read the tests of a table [[sentences]]."""
        readers: Readers = {**dict.fromkeys(("prefix", "targets", "attributes"), self.string), "of": self.strings}
        fields = self.record(value, where, readers, readers)
        templates = {key: fields[key] for key in ("targets", "attributes")}
        return [
            TestEntry(fields["prefix"] + name, Location(self, where), derived_from=name, **templates)
            for name in fields["of"]
        ]

    def template_set(self, name: str, value: Any, source: Source) -> TemplateSet:
        """Read a template set.

        Parameters
        ----------
        name : str
            Name of the set.
        value : object
            Value as read.
        source : Source
            Where the templates are from.
        """
        where = f"sets.{name}"
        readers: Readers = {
            "title": self.string,
            "kind": partial(self.choice, allowed=_SET_KINDS),
            "templates": self.templates,
            "classes": partial(self.items, read=self.template_class, kind="tables"),
            **dict.fromkeys(("plurals", "articles"), self.texts_by_name),
        }
        fields = self.record(value, where, readers)
        if ("templates" in fields) == ("classes" in fields):
            self.fail(where, "a set needs either 'templates' (for every word) or 'classes'")
        if "templates" in fields:
            fields["classes"] = (TemplateClass(name, "rest", fields.pop("templates")),)
        return TemplateSet(**{"name": name, "title": name, **fields}, source=source)

    def template_class(self, value: Any, where: str) -> TemplateClass:
        """Read the templates of a class of words."""
        readers: Readers = {
            **dict.fromkeys(("name", "except_ending"), self.string),
            "rule": partial(self.choice, allowed=get_args(WordRule)),
            "words": self.strings,
            "templates": self.templates,
        }
        listed = isinstance(value, dict) and value.get("rule") in ("listed", "contains")
        required = ("name", "rule", "templates", *(["words"] if listed else []))
        return TemplateClass(**self.record(value, where, readers, required))

    def templates(self, value: Any, where: str) -> tuple[str, ...]:
        """Read a list of templates."""
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

    def read_sent_bias(self, name: str, root: Any) -> Document:
        """Read a file in the sent-bias format."""
        problems: list[str] = []
        readers: Readers = dict.fromkeys(SENT_BIAS_ROLES, self.sent_bias_set)
        sets = self.read_fields(root, "", readers, problems, SENT_BIAS_ROLES)
        first = root.get("targ1") if isinstance(root, dict) else None
        value = first.get("test", {}) if isinstance(first, dict) else {}
        description_readers = {**get_description_readers(self), **get_searched_model_readers(self)}
        stated = self.read_fields(value, "targ1.test", description_readers, problems)
        description = {key: stated.pop(key) for key in DESCRIPTION_FIELDS if key in stated}
        finished = _find_finished_sets(sets, description)
        concepts = {key: c if key in finished else replace(c, given=()) for key, (c, _) in sets.items()}
        roles = {role: key for key, role in SENT_BIAS_ROLES.items()}
        entry = TestEntry(name, Location(self, ""), roles=roles, description=description)
        broken = frozenset([name, *(SENT_BIAS_ROLES.keys() - concepts.keys())] if problems else [])
        source = replace(UNKNOWN_SOURCE, **stated)
        return Document(source, concepts, {}, (entry,), None, tuple(problems), broken)

    def sent_bias_set(self, value: Any, key: str) -> tuple[Concept, bool]:
        """Return one of the four sets, and whether the file gives the words or spans of its texts."""
        raw = dict.fromkeys(("clusters", *GIVEN_FIELDS, *(("test",) if key == "targ1" else ())), self.raw_value)
        fields = self.record(value, key, {"category": self.string, **raw}, ("category",))
        words, given = self.read_texts(fields, key)
        clusters = self.clusters(fields, words, key)
        concept = Concept(key, fields["category"], words, given=given, clusters=clusters)
        return concept, len(fields.keys() & GIVEN_FIELDS) > 1


def _find_finished_sets(sets: Mapping[str, tuple[Concept, bool]], description: Mapping[str, Any]) -> set[str]:
    """Return the sets of finished texts: those that state their words, or that look like sentences.

    If the file states how its texts were made, their look does not matter.
    """
    with_words = {key for key, (_, states_words) in sets.items() if states_words}
    sentences = {key for key, (c, _) in sets.items() if any(_SENTENCE.search(text.text) for text in c.given)}
    template = description.get("template")
    if template == "none":
        return with_words
    return with_words | sentences or (set(sets) if template else set())


_ROLE_KEYS = frozenset({*ROLES, *SENT_BIAS_ROLES})
_DESCRIBING = ("title", "about", "topic", "direction", "language")
_LABEL_WORDS = 2


def to_json_data(content: Any) -> Any:
    """Convert a dict of words to JSON data for a manifest. Tuples, arrays and series become lists."""
    if isinstance(content, Mapping):
        for key in content:
            if not isinstance(key, str):
                raise StimulusError(f"the keys of a dict of words must be texts, got {describe_type(key)}")
        return {str(key): to_json_data(value) for key, value in content.items()}
    value = content.tolist() if hasattr(content, "tolist") else content
    if isinstance(value, list | tuple):
        return [to_json_data(item) for item in value]
    return str(value) if isinstance(value, str) else value


def read_test_mapping(content: Mapping[str, Any]) -> Iterator[Document]:
    """Yield a document for each test of a dict."""
    for name, fields in split_test_mapping(content, _ROLE_KEYS):
        yield _TestMappingReader(name).document(fields)


def split_test_mapping(content: Mapping[str, Any], roles: Set[str]) -> Iterable[tuple[Any, Any]]:
    """Return the name and the fields of every test in a dict: of one test, or of several tests by name."""
    data = to_json_data(content)
    if not isinstance(data, dict) or not data:
        raise StimulusError(f"expected a dict with X, Y, A and B, each a list of words, got {describe_type(content)}")
    if has_any_key(data, roles) and not all(has_any_key(value, roles) for value in data.values()):
        return [(data.pop("name", "test"), data)]
    return data.items()


def has_any_key(value: object, keys: Set[str]) -> bool:
    """Return whether a value is a mapping with any of some keys."""
    return isinstance(value, Mapping) and bool(keys & value.keys())


class MappingReader(DocumentReader):
    """Reader of a test in a dict. Error messages name the test instead of a file."""

    def __init__(self, name: Any) -> None:
        super().__init__(Path(), "")
        self.name = name
        self.string(name, "name")

    def format_location(self, where: str) -> str:
        """Return the test and the field."""
        field = where
        for prefix in ("concepts.", f"tests.{self.name}", f"datasets.{self.name}", "."):
            field = field.removeprefix(prefix)
        return f"test {self.name!r}{f': field {field}' if field else ''}"


class _TestMappingReader(MappingReader):
    def document(self, value: Any) -> Document:
        if not has_any_key(value, _ROLE_KEYS):
            self.fail("", f"expected a dict with X, Y, A and B, each a list of words, got {describe_type(value)}")
        if not value.keys() & set(ROLES):
            return self.read_sent_bias(self.name, value)
        fields = self.table(value, "", {*ROLES, *_DESCRIBING, "templates"})
        missing = [role for role in ROLES if role not in fields]
        if missing:
            self.fail("", f"a test has X, Y, A and B; {', '.join(missing)} missing")
        test = {key: fields[key] for key in _DESCRIBING if key in fields}
        if "templates" in fields:
            test |= dict.fromkeys(("targets", "attributes"), self.string(fields["templates"], "templates"))
        test |= {role: fields[role] if isinstance(fields[role], str) else role for role in ROLES}
        defined = [role for role in ROLES if not isinstance(fields[role], str)]
        concepts = self.read_each(lambda role: (role, make_concept_fields(self, fields[role], role)), defined)
        return self.read_toml({"concepts": dict(concepts), "tests": {self.name: test}})


def make_concept_fields(reader: FieldReader, value: Any, role: str) -> dict[str, Any]:
    """Return the fields of a word set in a file. Without a label, the first words become the label.

    Parameters
    ----------
    reader : FieldReader
        Reader that reports errors.
    value : list or dict
        Words, or fields of the word set.
    role : str
        Role of the word set in the test.
    """
    if not isinstance(value, list | dict):
        reader.fail(role, f"expected a list of words, got {describe_type(value)}")
    concept = {"words": value} if isinstance(value, list) else value
    words = concept.get("words", concept.get("examples"))
    first = words[:_LABEL_WORDS] if isinstance(words, list) else []
    label = ", ".join(map(str, first)) + (" ..." if first != words else "")
    return {"label": label if label.strip() else role, **concept}


_PAIR = re.compile(r"\[\n\s*(\d+),\n\s*(\d+)\n\s*\]")


def to_sent_bias(test: Test, texts: Mapping[str, Sequence[GivenText]]) -> str:
    """Write a test in the sent-bias format: four lists of finished texts, with their words if known.

    The description of the test is in the first list, because other programs take every entry for a list.
    """
    content: dict[str, dict[str, Any]] = {}
    for key, role in SENT_BIAS_ROLES.items():
        concept = test.concept(role)
        content[key] = {"category": concept.label, **dump_given_texts(texts[role])}
        if concept.clusters:
            content[key]["clusters"] = [list(cluster) for cluster in concept.clusters]
    content["targ1"]["test"] = {key: value for key, value in describe_test(test).items() if value is not None}
    if test.source.searched_models:
        content["targ1"]["test"]["searched_models"] = list(test.source.searched_models)
    if test.source.fingerprints:
        content["targ1"]["test"]["fingerprints"] = list(map(dataclasses.asdict, test.source.fingerprints))
    return _PAIR.sub(r"[\1, \2]", json.dumps(content, indent=2, ensure_ascii=False)) + "\n"


def to_toml(*tests: Test) -> str:
    """Write tests of one source in biassay's format, with words and templates instead of finished texts."""
    templates = {
        templates.name: templates
        for test in tests
        for templates in (test.targets, test.attributes)
        if templates is not None
    }
    content = {
        "source": dataclasses.asdict(tests[0].source),
        "concepts": {
            _concept_key(tests, test, role): _dump_concept(test.concept(role)) for test in tests for role in ROLES
        },
        "tests": {test.name: _dump_test(tests, test) for test in tests},
        "sets": {name: _dump_templates(template_set) for name, template_set in templates.items()},
    }
    return "\n".join(_iter_toml_lines(content)).lstrip() + "\n"


def _concept_key(tests: Sequence[Test], test: Test, role: str) -> str:
    """Return the name of a word set in the file: its role, or its own name if there are several tests."""
    return role if len(tests) == 1 else test.concept(role).name


def _dump_concept(concept: Concept) -> dict[str, Any]:
    texts = dump_given_texts(concept.given) if concept.given else {"words": concept.words}
    stated = {"label": concept.label, "source": concept.source, "gender": concept.gender}
    return {**stated, **texts, "clusters": concept.clusters}


def _dump_test(tests: Sequence[Test], test: Test) -> dict[str, Any]:
    roles = {role: _concept_key(tests, test, role) for role in ROLES}
    used = {"targets": test.targets, "attributes": test.attributes}
    names = {key: templates.name for key, templates in used.items() if templates is not None}
    return {"title": test.title, **roles, **describe_test(test), **names}


def _dump_templates(templates: TemplateSet) -> dict[str, Any]:
    pairs = {"plurals": dict(templates.plurals), "articles": dict(templates.articles)}
    classes = [dataclasses.asdict(replace(one, words=tuple(sorted(one.words)))) for one in templates.classes]
    return {"title": templates.title, "kind": templates.kind, **pairs, "classes": classes}


def _iter_toml_lines(table: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Yield the TOML lines of a table. Omit empty values, and write nested tables last."""
    stated = {key: value for key, value in table.items() if value not in (None, "", (), [], {}, False)}
    nested = {key: value for key, value in stated.items() if isinstance(value, dict) or _holds_tables(value)}
    yield from (f"{_format_key(key)} = {_format_toml(value)}" for key, value in stated.items() if key not in nested)
    for key, value in nested.items():
        path = f"{name}.{_format_key(key)}" if name else key
        for inner in value if _holds_tables(value) else [value]:
            if _holds_tables(value):
                yield from ("", f"[[{path}]]")
            elif not all(isinstance(entry, dict) for entry in inner.values()):
                yield from ("", f"[{path}]")
            yield from _iter_toml_lines(inner, path)


def _format_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_]+", key) else _format_toml(key)


def _holds_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], dict)


def _format_toml(value: Any) -> str:
    """Format a value as TOML. JSON is valid here, except that it does not escape DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
