"""One data file, read and checked. An error names the file, the line where it is known, the field and the word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast, get_args

from biassay.errors import nearest_names
from biassay.files import read_text
from biassay.stimuli.description import DESCRIPTION_FIELDS, Description, read_description, read_pair_topics
from biassay.stimuli.fields import (
    FieldReader,
    Location,
    collect_problems,
    find_repeated,
    kind,
    parse_json,
    parse_toml,
    raise_problems,
)
from biassay.stimuli.given import GIVEN_FIELDS, read_given
from biassay.stimuli.groups import GroupingEntry, read_grouping
from biassay.stimuli.model import Concept, Fingerprint, GivenText, Source, TemplateClass, TemplateSet, WordRule

__all__ = ["SENT_BIAS_ROLES", "UNKNOWN_SOURCE", "Document", "DocumentReader", "TestEntry", "read_document"]

UNKNOWN_SOURCE = Source("user", "not stated", "not stated", "not stated")
SENT_BIAS_ROLES = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
_SENTENCE = re.compile(r"\s.*[.!?]\W*$", re.DOTALL)
_TEST_KEYS = {
    *("title", "X", "Y", "A", "B", "of", "alias", "targets", "attributes", "given_as_sentences"),
    *DESCRIPTION_FIELDS,
}
_SOURCE_KEYS = ("name", "language", "citation", "licence", "version", "doi", "note")
_SEARCHED_KEYS = ("searched_models", "fingerprints")
_MOST_COSINES = 10_000  # of a fingerprint
_SET_KINDS = ("bleached", "unbleached", "other")
_OWN_KEYS = {"source", "concepts", "sets", "tests", "pairs", "sentences", "grouping", "groups"}
_SLOT = re.compile(r"\{([^{}]*)\}")
_SLOTS = ("T", "a T", "Ts", "she", "her", "She", "Her")


@dataclass(frozen=True)
class TestEntry:
    """A test as written: names of concepts and templates, not yet looked up."""

    __test__ = False

    name: str
    where: Location
    title: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    of: str | None = None
    alias: str | None = None
    targets: str | None = None
    attributes: str | None = None
    given_as_sentences: bool = False
    description: Description = field(default_factory=Description)


@dataclass(frozen=True)
class Document:
    """All that one file defines.

    ``problems`` are the mistakes found so far, and ``broken`` the names of what could not be read, or not completely:
    `resolve` reports the mistakes together with its own.
    """

    source: Source
    concepts: Mapping[str, Concept]
    sets: Mapping[str, TemplateSet]
    tests: tuple[TestEntry, ...]
    grouping: GroupingEntry | None = None
    problems: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()


def read_document(path: Path) -> Document:
    """Read a TOML file of the project's own format, or a JSON file of the sent-bias form."""
    text = read_text(path)
    if path.suffix.lower() == ".toml":
        return DocumentReader(path, text).own(parse_toml(path, text))
    return DocumentReader(path, text).sent_bias(path.stem, parse_json(path, text))


class DocumentReader(FieldReader):
    """Turns parsed values into records."""

    def words(self, value: Any, where: str) -> tuple[str, ...]:
        words = self.distinct(value, where)
        if len(words) < 2:
            self.fail(where, f"a concept needs at least two words, got only {words[0]!r}")
        return words

    def own(self, root: dict[str, Any]) -> Document:
        self.table(root, "", _OWN_KEYS)
        problems: list[str] = []
        broken: set[str] = set()
        source = UNKNOWN_SOURCE
        with collect_problems(problems):
            source = self.source(root["source"]) if "source" in root else UNKNOWN_SOURCE
        concepts: dict[str, Concept] = {}
        sets: dict[str, TemplateSet] = {}
        tests: list[TestEntry] = []
        for name, value in self.table(root.get("concepts", {}), "concepts").items():
            with collect_problems(problems):
                concepts[name] = self.concept(name, value)
        broken.update(root.get("concepts", {}).keys() - concepts.keys())
        for name, value in self.table(root.get("sets", {}), "sets").items():
            with collect_problems(problems):
                sets[name] = self.template_set(name, value, source)
        broken.update(root.get("sets", {}).keys() - sets.keys())
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
        grouping = None
        with collect_problems(problems):
            grouping = read_grouping(self, root)
        return Document(source, concepts, sets, tuple(tests), grouping, tuple(problems), frozenset(broken))

    def source(self, value: Any) -> Source:
        problems: list[str] = []
        fields = self.known_fields(value, "source", {*_SOURCE_KEYS, "supplementary", *_SEARCHED_KEYS}, problems)
        searched: tuple[tuple[str, ...], tuple[Fingerprint, ...]] = (), ()
        supplementary = False
        with collect_problems(problems):
            searched = self.searched(fields, "source")
        with collect_problems(problems):
            supplementary = self.flag(fields.pop("supplementary", False), "source.supplementary")
        given: dict[str, str] = {}
        for key, text in fields.items():
            with collect_problems(problems):
                given[key] = self.string(text, f"source.{key}")
        missing = [key for key in ("name", "citation", "version") if isinstance(value, dict) and key not in fields]
        problems += [f"{self.place('source')}: the field {key!r} is missing" for key in missing]
        raise_problems(problems)
        given.setdefault("licence", UNKNOWN_SOURCE.licence)
        return Source(**given, supplementary=supplementary, searched_models=searched[0], fingerprints=searched[1])

    def searched(self, fields: dict[str, Any], where: str) -> tuple[tuple[str, ...], tuple[Fingerprint, ...]]:
        """Take the digests and the fingerprints of the models that were searched for the words from `fields`."""
        models, fingerprints = (fields.pop(key, []) for key in _SEARCHED_KEYS)
        where_prints = f"{where}.fingerprints"
        if not isinstance(fingerprints, list):
            self.fail(where_prints, f"expected a list of tables, got {kind(fingerprints)}")
        digests = self.distinct(models, f"{where}.searched_models") if models != [] else ()
        places = [f"{where_prints}[{i}]" for i in range(len(fingerprints))]
        read = self.each(lambda item: self.fingerprint(*item), zip(fingerprints, places, strict=True))
        return digests, tuple(read)

    def fingerprint(self, value: Any, where: str) -> Fingerprint:
        fields = self.table(value, where, {"targets", "attributes", "cosines"})
        targets, attributes = (self.distinct(fields.get(key), f"{where}.{key}") for key in ("targets", "attributes"))
        rows: Any = fields.get("cosines")
        size = f"{len(targets)} by {len(attributes)}"
        shaped = isinstance(rows, list) and len(rows) == len(targets)
        if not shaped or not all(isinstance(row, list) and len(row) == len(attributes) for row in rows):
            self.fail(f"{where}.cosines", f"expected a table of {size} numbers, one row per target")
        numbers = [number for row in rows for number in row]
        if not all(type(number) in (int, float) and -1.0 <= number <= 1.0 for number in numbers):
            self.fail(f"{where}.cosines", "expected numbers from -1 to 1")
        if len(numbers) > _MOST_COSINES:
            self.fail(f"{where}.cosines", f"expected at most {_MOST_COSINES:,} numbers, got {len(numbers):,}")
        return Fingerprint(targets, attributes, tuple(tuple(map(float, row)) for row in rows))

    def concept(self, name: str, value: Any) -> Concept:
        where = f"concepts.{name}"
        problems: list[str] = []
        fields = self.known_fields(value, where, {"label", "gender", "clusters", "source", *GIVEN_FIELDS}, problems)
        gender: Any = None
        label, source = name, ""
        words, given = tuple[str, ...](), tuple[GivenText, ...]()
        clusters: tuple[tuple[str, ...], ...] = ()
        with collect_problems(problems):
            if "gender" in fields:
                gender = self.choice(fields["gender"], f"{where}.gender", ("male", "female"))
        with collect_problems(problems):
            label = self.string(fields.get("label", name), f"{where}.label")
        with collect_problems(problems):
            source = self.string(fields["source"], f"{where}.source") if "source" in fields else ""
        unknown = value.keys() - fields.keys() if isinstance(value, dict) else set()
        if fields.keys() & GIVEN_FIELDS:
            with collect_problems(problems):
                if fields.keys() & GIVEN_FIELDS == {"words"}:
                    words = self.words(fields["words"], f"{where}.words")
                else:
                    words, given = self.given(fields, where)
                clusters = self.clusters(fields, words, where)
        elif isinstance(value, dict) and not any(nearest_names(key, GIVEN_FIELDS) for key in unknown):
            problems.append(f"{self.place(where)}: the field 'words' is missing")
        raise_problems(problems)
        return Concept(name, label, words, gender, given, clusters, source)

    def clusters(self, fields: Mapping[str, Any], words: Sequence[str], where: str) -> tuple[tuple[str, ...], ...]:
        """Read the near-synonyms among the words: lists of two or more of them, each word in one list at most."""
        where = f"{where}.clusters"
        value = fields.get("clusters", [])
        if not isinstance(value, list):
            self.fail(where, f"expected a list of lists of words, got {kind(value)}")
        clusters = self.each(lambda item: self.distinct(item[1], f"{where}[{item[0]}]"), enumerate(value))
        known, owner = set(words), dict[str, int]()
        mistakes: list[tuple[str, str]] = []
        for i, cluster in enumerate(clusters):
            if len(cluster) < 2:
                mistakes.append((f"{where}[{i}]", f"a cluster needs at least two words, got only {cluster[0]!r}"))
            for word in cluster:
                if word not in known:
                    mistakes.append((f"{where}[{i}]", f"{word!r} is not one of the words"))
                if owner.setdefault(word, i) != i:
                    mistakes.append((f"{where}[{i}]", f"{word!r} is in another cluster already"))
        self.each(lambda mistake: self.fail(*mistake), mistakes)
        return tuple(clusters)

    def given(self, fields: dict[str, Any], where: str) -> tuple[tuple[str, ...], tuple[GivenText, ...]]:
        """Finished texts, and their words, or the texts themselves where the file does not state the words."""
        given = read_given(self, fields, where)
        named = "words" if "words" in fields else "examples"
        return self.words(list(dict.fromkeys(text.word or text.text for text in given)), f"{where}.{named}"), given

    def test(self, name: str, value: Any, problems: list[str]) -> TestEntry:
        """Read a test as far as it can be read; its mistakes are added to `problems`."""
        where = f"tests.{name}"
        fields = self.known_fields(value, where, _TEST_KEYS, problems)
        sentences, description = False, Description()
        with collect_problems(problems):
            sentences = self.flag(fields.pop("given_as_sentences", False), f"{where}.given_as_sentences")
        with collect_problems(problems):
            self._check_form(fields, where)
        given: dict[str, str] = {}
        for key, text in fields.items():
            with collect_problems(problems):
                given[key] = self.string(text, f"{where}.{key}")
        with collect_problems(problems):
            description = read_description(self, given, where)
        return TestEntry(
            name,
            Location(self, where),
            title=given.get("title", ""),
            roles={role: given[role] for role in "XYAB" if role in given},
            of=given.get("of"),
            alias=given.get("alias"),
            targets=given.get("targets"),
            attributes=given.get("attributes"),
            given_as_sentences=sentences,
            description=description,
        )

    def _check_form(self, fields: Mapping[str, Any], where: str) -> None:
        """Refuse a test that is made neither of four concepts nor of one other test."""
        missing = [role for role in "XYAB" if role not in fields]
        complete = [not missing, "of" in fields, "alias" in fields]
        if sum(complete) != 1 or 0 < len(missing) < 4:
            self.fail(
                where,
                f"a test names four concepts as X, Y, A and B, or another test as 'of' ({', '.join(missing)} missing)",
            )
        stated = next((key for key in fields if key in DESCRIPTION_FIELDS), None)
        if missing and stated is not None:
            parent = fields.get("of", fields.get("alias"))
            self.fail(f"{where}.{stated}", f"it follows from the test {parent!r}, which this one is made of; remove it")

    def paired_tests(self, value: Any) -> Iterator[TestEntry]:
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
        place = Location(self, "pairs")
        topic_of = read_pair_topics(self, fields.get("topics", {}), "pairs.topics", names)
        for pair, ((_, X), (_, Y)) in zip(names, combinations(groups, 2), strict=True):
            described = replace(stated, topic=topic_of.get(pair, stated.topic))
            for name, (A, B) in attributes.items():
                roles = {"X": X, "Y": Y, "A": A, "B": B}
                yield TestEntry(f"{pair}-{name}", place, roles=roles, description=described)

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
                    Location(self, where),
                    of=name,
                    targets=fields["targets"],
                    attributes=fields["attributes"],
                )

    def template_set(self, name: str, value: Any, source: Source) -> TemplateSet:
        where = f"sets.{name}"
        fields = self.table(value, where, {"title", "kind", "templates", "classes", "plurals", "articles"})
        if ("templates" in fields) == ("classes" in fields):
            self.fail(where, "a set has either 'templates' (for every word) or 'classes'")
        if "templates" in fields:
            classes: tuple[TemplateClass, ...] = (
                TemplateClass(name, "rest", self.templates(fields["templates"], f"{where}.templates")),
            )
        else:
            if not isinstance(fields["classes"], list):
                self.fail(f"{where}.classes", f"expected a list of tables, got {kind(fields['classes'])}")
            classes = tuple(
                self.template_class(item, f"{where}.classes[{i}]") for i, item in enumerate(fields["classes"])
            )
        pairs = {key: self.texts_by_name(fields.get(key, {}), f"{where}.{key}") for key in ("plurals", "articles")}
        title = self.string(fields.get("title", name), f"{where}.title")
        template_kind: Any = self.choice(fields.get("kind", "other"), f"{where}.kind", _SET_KINDS)
        return TemplateSet(name, title, classes, source, **pairs, kind=template_kind)

    def template_class(self, value: Any, where: str) -> TemplateClass:
        fields = self.table(value, where, {"name", "rule", "words", "templates", "except_ending"})
        rule = self.choice(fields.get("rule"), f"{where}.rule", get_args(WordRule))
        words = self.strings(fields.get("words"), f"{where}.words") if rule in ("listed", "contains") else ()
        ending = self.string(fields["except_ending"], f"{where}.except_ending") if "except_ending" in fields else ""
        return TemplateClass(
            self.string(fields.get("name"), f"{where}.name"),
            cast("WordRule", rule),
            self.templates(fields.get("templates"), f"{where}.templates"),
            tuple(words),
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

    def sent_bias(self, name: str, root: Any) -> Document:
        problems: list[str] = []
        roots = self.known_fields(root, "", set(SENT_BIAS_ROLES), problems)
        concepts: dict[str, Concept] = {}
        with_words: set[str] = set()  # sets that say which word each text was made from, or where it stands
        for key in SENT_BIAS_ROLES if isinstance(root, dict) else ():
            with collect_problems(problems):
                concepts[key], fields = self._sent_bias_set(roots, key)
                with_words |= {key} if len(fields.keys() & GIVEN_FIELDS) > 1 else set()
        first = roots.get("targ1")
        value = first.get("test", {}) if isinstance(first, dict) else {}
        stated = self.known_fields(value, "targ1.test", {*DESCRIPTION_FIELDS, *_SEARCHED_KEYS}, problems)
        searched: tuple[tuple[str, ...], tuple[Fingerprint, ...]] = (), ()
        description = Description()
        with collect_problems(problems):
            searched = self.searched(stated, "targ1.test")
        with collect_problems(problems):
            description = read_description(self, stated, "targ1.test")
        finished = _finished(concepts, with_words, description)
        concepts = {key: c if key in finished else replace(c, given=()) for key, c in concepts.items()}
        roles = {role: key for key, role in SENT_BIAS_ROLES.items()}
        entry = TestEntry(name, Location(self, ""), roles=roles, description=description)
        broken = frozenset([name, *(SENT_BIAS_ROLES.keys() - concepts.keys())] if problems else [])
        source = replace(UNKNOWN_SOURCE, searched_models=searched[0], fingerprints=searched[1])
        return Document(source, concepts, {}, (entry,), None, tuple(problems), broken)

    def _sent_bias_set(self, roots: Mapping[str, Any], key: str) -> tuple[Concept, dict[str, Any]]:
        """Read one of the four sets."""
        if key not in roots:
            self.fail(key, f"the field is missing; a test has {', '.join(SENT_BIAS_ROLES)}")
        problems: list[str] = []
        own = ("test",) if key == "targ1" else ()
        fields = self.known_fields(roots[key], key, {"category", "clusters", *GIVEN_FIELDS, *own}, problems)
        label, words, given = "", tuple[str, ...](), tuple[GivenText, ...]()
        clusters: tuple[tuple[str, ...], ...] = ()
        if isinstance(roots[key], dict):
            with collect_problems(problems):
                label = self.string(fields.get("category"), f"{key}.category")
            with collect_problems(problems):
                words, given = self.given(fields, key)
                clusters = self.clusters(fields, words, key)
        raise_problems(problems)
        return Concept(key, label, words, given=given, clusters=clusters), fields


def _finished(concepts: Mapping[str, Concept], with_words: set[str], description: Description) -> set[str]:
    """The sets whose examples are texts and not words: their words are stated, or they look like sentences.

    A file that states how its texts were made is taken at its word, whatever they look like.
    """
    alike = {key for key, c in concepts.items() if any(_SENTENCE.search(text.text) for text in c.given)}
    if description.template == "none":
        return with_words
    return with_words | alike or (set(concepts) if description.template else set())
