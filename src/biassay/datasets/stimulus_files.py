"""Read, check and write test files and dicts of tests."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast, get_args

from biassay.datasets.fields import (
    FieldReader,
    Location,
    attempt,
    collect_problems,
    describe_type,
    find_repeated,
    parse_json,
    parse_toml,
    raise_problems,
)
from biassay.datasets.groups import GroupingEntry, read_grouping
from biassay.datasets.schema import (
    DESCRIPTION_FIELDS,
    ROLES,
    Concept,
    Description,
    Fingerprint,
    GivenText,
    Source,
    TemplateClass,
    TemplateSet,
    Test,
    WordRule,
    describe_test,
    read_description,
    read_pair_topics,
)
from biassay.errors import StimulusError, find_nearest_names
from biassay.io import read_text

GIVEN_FIELDS = frozenset({"examples", "words", "spans"})


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
        _check_length(reader, words, texts, f"{where}.words")
    if "spans" in fields:
        spans = fields["spans"] if isinstance(fields["spans"], list) else []
        _check_length(reader, spans, texts, f"{where}.spans")
        spans = [_read_span(reader, s, text, f"{where}.spans") for s, text in zip(spans, texts, strict=True)]
    seen = set()
    for text, word in zip(texts, words, strict=True):
        if (text, word) in seen:
            reader.fail(f"{where}.examples", f"the text {text!r} appears twice")
        seen.add((text, word))
    return tuple(map(GivenText, texts, words, spans))


def dump_given_texts(given: Sequence[GivenText]) -> dict[str, list[Any]]:
    """Return the fields that `read_given_texts` reads."""
    fields: dict[str, list[Any]] = {"examples": [text.text for text in given]}
    if all(text.word is not None for text in given):
        fields["words"] = [text.word for text in given]
    if all(text.span is not None for text in given):
        fields["spans"] = [list(text.span or ()) for text in given]
    return fields


def _check_length(reader: FieldReader, values: Sequence[Any], texts: Sequence[str], where: str) -> None:
    if len(values) != len(texts):
        reader.fail(where, f"expected a list with one entry for each of the {len(texts)} examples, got {len(values)}")


def _read_span(reader: FieldReader, value: Any, text: str, where: str) -> tuple[int, int]:
    numbers = isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)
    if not numbers or not 0 <= value[0] < value[1] <= len(text):
        reader.fail(where, f"expected [start, end] in characters of the word in {text!r}, got {describe_type(value)}")
    return value[0], value[1]


UNKNOWN_SOURCE = Source("user", "not stated", "not stated", "not stated")
SENT_BIAS_ROLES = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
_SENTENCE = re.compile(r"\s.*[.!?]\W*$", re.DOTALL)
_TEST_KEYS = {
    *("title", "X", "Y", "A", "B", "of", "alias", "targets", "attributes", "given_as_sentences"),
    *DESCRIPTION_FIELDS,
}
_SOURCE_KEYS = ("name", "language", "citation", "licence", "version", "doi", "note")
_SEARCHED_KEYS = ("searched_models", "fingerprints")
_MAX_COSINES = 10_000  # per fingerprint
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
    description: Description = field(default_factory=Description)

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
        problems: list[str] = []
        stated = "source" in root
        source = attempt(problems, UNKNOWN_SOURCE, self.source, root["source"]) if stated else UNKNOWN_SOURCE
        concepts: dict[str, Concept] = {}
        sets: dict[str, TemplateSet] = {}
        tests: list[TestEntry] = []
        for name, value in self.table(root.get("concepts", {}), "concepts").items():
            with collect_problems(problems):
                concepts[name] = self.concept(name, value)
        for name, value in self.table(root.get("sets", {}), "sets").items():
            with collect_problems(problems):
                sets[name] = self.template_set(name, value, source)
        broken = (root.get("concepts", {}).keys() - concepts) | (root.get("sets", {}).keys() - sets)
        for name, value in self.table(root.get("tests", {}), "tests").items():
            mistakes: list[str] = []
            tests.append(self.test(name, value, mistakes))
            broken.update([name] if mistakes else [])
            problems += mistakes
        with collect_problems(problems):
            tests.extend(self.paired_tests(root["pairs"]) if "pairs" in root else ())
        with collect_problems(problems):
            tests.extend(self.sentence_tests(root.get("sentences", [])))
        repeated = find_repeated(entry.name for entry in tests)
        if repeated is not None:
            entry = next(entry for entry in tests if entry.name == repeated)
            problems.append(f"{entry.where}: the file defines the test {repeated!r} twice")
        grouping = attempt(problems, None, read_grouping, self, root)
        return Document(source, concepts, sets, tuple(tests), grouping, tuple(problems), frozenset(broken))

    def source(self, value: Any) -> Source:
        """Read the table [source]."""
        problems: list[str] = []
        fields = self.known_fields(value, "source", {*_SOURCE_KEYS, "supplementary", *_SEARCHED_KEYS}, problems)
        models, fingerprints = attempt(problems, ((), ()), self.read_searched_models, fields, "source")
        where = "source.supplementary"
        supplementary = attempt(problems, False, self.flag, fields.pop("supplementary", False), where)
        texts = {"licence": UNKNOWN_SOURCE.licence}
        for key, text in fields.items():
            with collect_problems(problems):
                texts[key] = self.string(text, f"source.{key}")
        missing = [key for key in ("name", "citation", "version") if isinstance(value, dict) and key not in fields]
        problems += [f"{self.format_location('source')}: the field {key!r} is missing" for key in missing]
        raise_problems(problems)
        return Source(**texts, supplementary=supplementary, searched_models=models, fingerprints=fingerprints)

    def read_searched_models(
        self, fields: dict[str, Any], where: str
    ) -> tuple[tuple[str, ...], tuple[Fingerprint, ...]]:
        """Remove digests and fingerprints of the searched models from `fields` and return them."""
        models, fingerprints = (fields.pop(key, []) for key in _SEARCHED_KEYS)
        where_prints = f"{where}.fingerprints"
        if not isinstance(fingerprints, list):
            self.fail(where_prints, f"expected a list of tables, got {describe_type(fingerprints)}")
        digests = self.distinct_words(models, f"{where}.searched_models") if models != [] else ()
        items = enumerate(fingerprints)
        return digests, tuple(
            self.read_each(lambda item: self.fingerprint(item[1], f"{where_prints}[{item[0]}]"), items)
        )

    def fingerprint(self, value: Any, where: str) -> Fingerprint:
        """Read the cosines of a searched model."""
        fields = self.table(value, where, {"targets", "attributes", "cosines"})
        targets, attributes = (
            self.distinct_words(fields.get(key), f"{where}.{key}") for key in ("targets", "attributes")
        )
        rows: Any = fields.get("cosines")
        size = f"{len(targets)} by {len(attributes)}"
        shaped = isinstance(rows, list) and len(rows) == len(targets)
        if not shaped or not all(isinstance(row, list) and len(row) == len(attributes) for row in rows):
            self.fail(f"{where}.cosines", f"expected a table of {size} numbers, one row per target")
        numbers = [number for row in rows for number in row]
        if not all(type(number) in (int, float) and -1.0 <= number <= 1.0 for number in numbers):
            self.fail(f"{where}.cosines", "expected numbers from -1 to 1")
        if len(numbers) > _MAX_COSINES:
            self.fail(f"{where}.cosines", f"expected at most {_MAX_COSINES:,} numbers, got {len(numbers):,}")
        return Fingerprint(targets, attributes, tuple(tuple(map(float, row)) for row in rows))

    def concept(self, name: str, value: Any) -> Concept:
        """Read a word set."""
        where = f"concepts.{name}"
        problems: list[str] = []
        fields = self.known_fields(value, where, {"label", "gender", "clusters", "source", *GIVEN_FIELDS}, problems)
        gender: Any = None
        if "gender" in fields:
            gender = attempt(problems, None, self.choice, fields["gender"], f"{where}.gender", ("male", "female"))
        label = attempt(problems, name, self.string, fields.get("label", name), f"{where}.label")
        source = attempt(problems, "", self.string, fields["source"], f"{where}.source") if "source" in fields else ""
        words, given = tuple[str, ...](), tuple[GivenText, ...]()
        clusters: tuple[tuple[str, ...], ...] = ()
        unknown = value.keys() - fields.keys() if isinstance(value, dict) else set()
        if fields.keys() & GIVEN_FIELDS:
            with collect_problems(problems):
                if fields.keys() & GIVEN_FIELDS == {"words"}:
                    words = self.words(fields["words"], f"{where}.words")
                else:
                    words, given = self.read_texts(fields, where)
                clusters = self.clusters(fields, words, where)
        elif isinstance(value, dict) and not any(find_nearest_names(key, GIVEN_FIELDS) for key in unknown):
            problems.append(f"{self.format_location(where)}: the field 'words' is missing")
        raise_problems(problems)
        return Concept(name, label, words, gender, given, clusters, source)

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
        value = fields.get("clusters", [])
        if not isinstance(value, list):
            self.fail(where, f"expected a list of lists of words, got {describe_type(value)}")
        clusters = self.read_each(lambda item: self.distinct_words(item[1], f"{where}[{item[0]}]"), enumerate(value))
        known, owner = set(words), dict[str, int]()
        mistakes: list[tuple[str, str]] = []
        for i, cluster in enumerate(clusters):
            if len(cluster) < 2:
                mistakes.append((f"{where}[{i}]", f"a cluster needs at least two words, got only {cluster[0]!r}"))
            for word in cluster:
                if word not in known:
                    mistakes.append((f"{where}[{i}]", f"{word!r} is not one of the words"))
                if owner.setdefault(word, i) != i:
                    mistakes.append((f"{where}[{i}]", f"{word!r} is already in another cluster"))
        self.read_each(lambda mistake: self.fail(*mistake), mistakes)
        return tuple(clusters)

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
        fields = self.known_fields(value, where, _TEST_KEYS, problems)
        given = fields.pop("given_as_sentences", False)
        sentences = attempt(problems, False, self.flag, given, f"{where}.given_as_sentences")
        attempt(problems, None, self._check_form, fields, where)
        texts: dict[str, str] = {}
        for key, text in fields.items():
            with collect_problems(problems):
                texts[key] = self.string(text, f"{where}.{key}")
        return TestEntry(
            name,
            Location(self, where),
            title=texts.get("title", ""),
            roles={role: texts[role] for role in "XYAB" if role in texts},
            derived_from=texts.get("of"),
            alias=texts.get("alias"),
            targets=texts.get("targets"),
            attributes=texts.get("attributes"),
            given_as_sentences=sentences,
            description=attempt(problems, Description(), read_description, self, texts, where),
        )

    def _check_form(self, fields: Mapping[str, Any], where: str) -> None:
        """Raise StimulusError unless a test has either four word sets or one parent."""
        missing = [role for role in "XYAB" if role not in fields]
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
        fields = self.table(value, "pairs", {"groups", "attributes", "about", "topic", "topics"})
        groups = self.texts_by_name(fields.get("groups"), "pairs.groups")
        if len(groups) < 2:
            self.fail("pairs.groups", f"expected at least two groups, got {len(groups)}")
        attributes = self.table(fields.get("attributes"), "pairs.attributes")
        if not attributes:
            self.fail("pairs.attributes", "the table is empty; expected at least one NAME = [A, B]")
        for name, concepts in attributes.items():
            if len(self.strings(concepts, f"pairs.attributes.{name}")) != 2:
                self.fail(f"pairs.attributes.{name}", f"expected the names of two concepts, got {len(concepts)}")
        names = [f"{first}-{second}" for (first, _), (second, _) in combinations(groups, 2)]
        stated = read_description(self, {key: fields[key] for key in ("about", "topic") if key in fields}, "pairs")
        location = Location(self, "pairs")
        topics = read_pair_topics(self, fields.get("topics", {}), "pairs.topics", names)
        for pair, ((_, X), (_, Y)) in zip(names, combinations(groups, 2), strict=True):
            description = replace(stated, topic=topics.get(pair, stated.topic))
            for name, (A, B) in attributes.items():
                roles = {"X": X, "Y": Y, "A": A, "B": B}
                yield TestEntry(f"{pair}-{name}", location, roles=roles, description=description)

    def sentence_tests(self, value: Any) -> Iterator[TestEntry]:
        """Yield the tests of the tables [[sentences]]."""
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
                    Location(self, where),
                    derived_from=name,
                    targets=fields["targets"],
                    attributes=fields["attributes"],
                )

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
        fields = self.table(value, where, {"title", "kind", "templates", "classes", "plurals", "articles"})
        if ("templates" in fields) == ("classes" in fields):
            self.fail(where, "a set needs either 'templates' (for every word) or 'classes'")
        if "templates" in fields:
            classes = [TemplateClass(name, "rest", self.templates(fields["templates"], f"{where}.templates"))]
        elif isinstance(fields["classes"], list):
            items = enumerate(fields["classes"])
            classes = [self.template_class(item, f"{where}.classes[{i}]") for i, item in items]
        else:
            self.fail(f"{where}.classes", f"expected a list of tables, got {describe_type(fields['classes'])}")
        pairs = {key: self.texts_by_name(fields.get(key, {}), f"{where}.{key}") for key in ("plurals", "articles")}
        title = self.string(fields.get("title", name), f"{where}.title")
        template_kind: Any = self.choice(fields.get("kind", "other"), f"{where}.kind", _SET_KINDS)
        return TemplateSet(name, title, tuple(classes), source, **pairs, kind=template_kind)

    def template_class(self, value: Any, where: str) -> TemplateClass:
        """Read the templates of a class of words."""
        fields = self.table(value, where, {"name", "rule", "words", "templates", "except_ending"})
        rule = self.choice(fields.get("rule"), f"{where}.rule", get_args(WordRule))
        words = self.strings(fields.get("words"), f"{where}.words") if rule in ("listed", "contains") else ()
        ending = self.string(fields["except_ending"], f"{where}.except_ending") if "except_ending" in fields else ""
        name = self.string(fields.get("name"), f"{where}.name")
        templates = self.templates(fields.get("templates"), f"{where}.templates")
        return TemplateClass(name, cast("WordRule", rule), templates, words, ending)

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
        roots = self.known_fields(root, "", set(SENT_BIAS_ROLES), problems)
        concepts: dict[str, Concept] = {}
        with_words: set[str] = set()  # sets that state the words of their texts, or the spans
        for key in SENT_BIAS_ROLES if isinstance(root, dict) else ():
            with collect_problems(problems):
                concepts[key], fields = self._sent_bias_set(roots, key)
                with_words |= {key} if len(fields.keys() & GIVEN_FIELDS) > 1 else set()
        first = roots.get("targ1")
        value = first.get("test", {}) if isinstance(first, dict) else {}
        stated = self.known_fields(value, "targ1.test", {*DESCRIPTION_FIELDS, *_SEARCHED_KEYS}, problems)
        models, fingerprints = attempt(problems, ((), ()), self.read_searched_models, stated, "targ1.test")
        description = attempt(problems, Description(), read_description, self, stated, "targ1.test")
        finished = _find_finished_sets(concepts, with_words, description)
        concepts = {key: c if key in finished else replace(c, given=()) for key, c in concepts.items()}
        roles = {role: key for key, role in SENT_BIAS_ROLES.items()}
        entry = TestEntry(name, Location(self, ""), roles=roles, description=description)
        broken = frozenset([name, *(SENT_BIAS_ROLES.keys() - concepts.keys())] if problems else [])
        source = replace(UNKNOWN_SOURCE, searched_models=models, fingerprints=fingerprints)
        return Document(source, concepts, {}, (entry,), None, tuple(problems), broken)

    def _sent_bias_set(self, roots: Mapping[str, Any], key: str) -> tuple[Concept, dict[str, Any]]:
        """Read one of the four sets."""
        if key not in roots:
            self.fail(key, f"the field is missing; a test has {', '.join(SENT_BIAS_ROLES)}")
        problems: list[str] = []
        extra = ("test",) if key == "targ1" else ()
        fields = self.known_fields(roots[key], key, {"category", "clusters", *GIVEN_FIELDS, *extra}, problems)
        label, words, given = key, tuple[str, ...](), tuple[GivenText, ...]()
        clusters: tuple[tuple[str, ...], ...] = ()
        if isinstance(roots[key], dict):
            label = attempt(problems, key, self.string, fields.get("category"), f"{key}.category")
            with collect_problems(problems):
                words, given = self.read_texts(fields, key)
                clusters = self.clusters(fields, words, key)
        raise_problems(problems)
        return Concept(key, label, words, given=given, clusters=clusters), fields


def _find_finished_sets(concepts: Mapping[str, Concept], with_words: set[str], description: Description) -> set[str]:
    """Return the sets of finished texts: those that state their words, or that look like sentences.

    If the file states how its texts were made, their look does not matter.
    """
    sentences = {key for key, c in concepts.items() if any(_SENTENCE.search(text.text) for text in c.given)}
    if description.template == "none":
        return with_words
    return with_words | sentences or (set(concepts) if description.template else set())


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
    source = tests[0].source
    lines = ["[source]"]
    for key in ("name", "language", "citation", "doi", "licence", "version", "note"):
        lines += _format_text(key, getattr(source, key))
    if source.supplementary:
        lines.append("supplementary = true")
    if source.searched_models:
        lines.append(f"searched_models = {_format_list(source.searched_models)}")
    for fingerprint in source.fingerprints:
        lines += ["", "[[source.fingerprints]]"]
        lines += [f"{key} = {_format_list(getattr(fingerprint, key))}" for key in ("targets", "attributes")]
        lines.append(f"cosines = {_format_list([list(row) for row in fingerprint.cosines])}")
    concepts = {_concept_key(tests, test, role): test.concept(role) for test in tests for role in ROLES}
    for key, concept in concepts.items():
        lines += ["", f"[concepts.{_quote_toml(key)}]", f"label = {_quote_toml(concept.label)}"]
        lines += [*_format_text("source", concept.source), *_format_text("gender", concept.gender)]
        fields = dump_given_texts(concept.given) if concept.given else {"words": concept.words}
        lines += [f"{field} = {_format_list(values)}" for field, values in fields.items()]
        if concept.clusters:
            lines.append(f"clusters = [{', '.join(map(_format_list, concept.clusters))}]")
    for test in tests:
        lines += ["", f"[tests.{_quote_toml(test.name)}]", f"title = {_quote_toml(test.title)}"]
        lines += [f"{role} = {_quote_toml(_concept_key(tests, test, role))}" for role in ROLES]
        for key, value in describe_test(test).items():
            lines += _format_text(key, value)
        for key, templates in (("targets", test.targets), ("attributes", test.attributes)):
            lines += _format_text(key, None if templates is None else templates.name)
    used = [templates for test in tests for templates in (test.targets, test.attributes) if templates is not None]
    for templates in {templates.name: templates for templates in used}.values():
        lines += ["", *_template_lines(templates)]
    return "\n".join(lines) + "\n"


def _concept_key(tests: Sequence[Test], test: Test, role: str) -> str:
    """Return the name of a word set in the file: its role, or its own name if there are several tests."""
    return role if len(tests) == 1 else test.concept(role).name


def _template_lines(templates: TemplateSet) -> list[str]:
    name = f"sets.{_quote_toml(templates.name)}"
    lines = [f"[{name}]", f"title = {_quote_toml(templates.title)}", f"kind = {_quote_toml(templates.kind)}"]
    for key, pairs in (("plurals", templates.plurals), ("articles", templates.articles)):
        if pairs:
            lines += ["", f"[{name}.{key}]", *(f"{_quote_toml(a)} = {_quote_toml(b)}" for a, b in pairs)]
    for word_class in templates.classes:
        lines += ["", f"[[{name}.classes]]"]
        lines += [*_format_text("name", word_class.name), *_format_text("rule", word_class.rule)]
        if word_class.words:
            lines.append(f"words = {_format_list(sorted(word_class.words))}")
        lines += _format_text("except_ending", word_class.except_ending)
        lines.append(f"templates = {_format_list(word_class.templates)}")
    return lines


def _format_text(key: str, text: str | None) -> list[str]:
    """Return the line of a field, or no line if it is empty."""
    return [f"{key} = {_quote_toml(text)}"] if text else []


def _quote_toml(text: str) -> str:
    """Write a TOML basic string. JSON escapes are a subset of TOML's, but JSON does not escape DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _format_list(values: Iterable[object]) -> str:
    return "[" + ", ".join(_quote_toml(value) if isinstance(value, str) else str(value) for value in values) + "]"
