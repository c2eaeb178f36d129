"""Records of tests, word sets, templates and sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from html import escape
from typing import Any, Literal, get_args

from biassay.datasets.fields import DATA, FieldReader, Location, Readers
from biassay.errors import StimulusError

ROLES = ("X", "Y", "A", "B")
_MAX_COSINES = 10_000  # per fingerprint
PRONOUN_SLOTS = ("{she}", "{her}", "{She}", "{Her}")
WordRule = Literal["capitalised", "listed", "contains", "rest"]
About = Literal["people", "method"]
Direction = Literal["positive", "negative"]
TemplateKind = Literal["none", "bleached", "unbleached", "other", "given"]
"""How words became texts: "none" for words alone, templates with little (bleached), more (unbleached) or unstated
(other) content beyond the word, or "given" for finished texts of unknown origin."""


@dataclass(frozen=True)
class Fingerprint:
    """Cosines that identify relatives of a searched model: one row per target, one column per attribute.

    Copies, noisy copies and fine-tuned descendants have nearly the same cosines; other models do not.
    """

    targets: tuple[str, ...]
    attributes: tuple[str, ...]
    cosines: tuple[tuple[float, ...], ...]

    @property
    def words(self) -> tuple[str, ...]:
        """All words, targets first."""
        return (*self.targets, *self.attributes)


@dataclass(frozen=True)
class Source:
    """Origin and licence of a data file."""

    name: str
    citation: str
    licence: str
    version: str
    doi: str = ""
    note: str = ""
    supplementary: bool = False
    """If True, the tests run only when they or their collection are named."""
    language: str = ""
    """Language of the words as an IETF tag such as ``en``; empty if unknown."""
    searched_models: tuple[str, ...] = ()
    """Digests of the models in which the words were discovered; testing these models would be circular."""
    fingerprints: tuple[Fingerprint, ...] = ()
    """Cosines of these models, to recognize their copies and descendants."""


@dataclass(frozen=True, slots=True)
class GivenText:
    """Finished text, the word it was made from and the span of the word; None if the file does not state them."""

    text: str
    word: str | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Concept:
    """Word set: words, or finished texts and their words."""

    name: str
    label: str
    words: tuple[str, ...]
    gender: Literal["male", "female"] | None = None
    given: tuple[GivenText, ...] = ()
    clusters: tuple[tuple[str, ...], ...] = ()
    """Near-synonyms, such as forms of one lemma, that count as one observation. Other words count separately."""
    source: str = ""
    """Origin of the words, if it differs from that of the file."""

    @cached_property
    def cluster_labels(self) -> dict[str, str]:
        """Cluster of every word, named after the first word of the cluster."""
        shared = {word: cluster[0] for cluster in self.clusters for word in cluster}
        return {word: shared.get(word, word) for word in self.words}


@dataclass(frozen=True)
class TemplateClass:
    """Templates for the words that a rule accepts."""

    name: str
    rule: WordRule
    templates: tuple[str, ...]
    words: tuple[str, ...] = ()
    except_ending: str = ""


@dataclass(frozen=True)
class TemplateSet:
    """Templates that turn words into sentences. The first class that accepts a word provides its templates."""

    name: str
    title: str
    classes: tuple[TemplateClass, ...]
    source: Source
    plurals: tuple[tuple[str, str], ...] = ()
    articles: tuple[tuple[str, str], ...] = ()
    kind: Literal["bleached", "unbleached", "other"] = "other"

    @cached_property
    def singulars(self) -> dict[str, str]:
        """Singular forms by plural."""
        return dict(self.plurals)

    @property
    def uses_pronouns(self) -> bool:
        """Whether any template has a slot for a pronoun."""
        return any(slot in text for c in self.classes for text in c.templates for slot in PRONOUN_SLOTS)


@dataclass(frozen=True)
class Test:
    """Association test of targets X and Y with attributes A and B.

    Attributes
    ----------
    name, title : str
        Name for commands, and title for reports.
    X, Y, A, B : Concept
        Word sets.
    source : Source
        Origin of the test.
    targets, attributes : TemplateSet or None
        Templates of the target and of the attribute words; None for words alone.
    alias_of : str or None
        Name of the test that this one is an alias of.
    about : {"people", "method"}
        Whether it is a social-bias test or a sanity check.
    topic : str
        Topic, such as "gender".
    variant_of : str or None
        Name of the test whose words this one puts into sentences.
    given_template : str
        Kind of the templates of finished texts.
    direction : {"positive", "negative"} or None
        Expected sign of the effect: positive if the stereotype associates X with A.
    stated_language : str or None
        Language of the words, if the test states one that its collection does not.
    """

    __test__ = False  # pytest does not collect it

    name: str
    title: str
    X: Concept
    Y: Concept
    A: Concept
    B: Concept
    source: Source
    targets: TemplateSet | None = None
    attributes: TemplateSet | None = None
    alias_of: str | None = None
    about: About = "people"
    topic: str = "other"
    variant_of: str | None = None
    given_template: TemplateKind = "given"
    direction: Direction | None = None
    stated_language: str | None = None

    @property
    def language(self) -> str | None:
        """Language of the words from the test or its collection; None if unknown."""
        return self.stated_language or self.source.language or None

    @property
    def is_english(self) -> bool:
        """Whether the words are English."""
        return (self.language or "").lower().split("-")[0] == "en"

    @property
    def question(self) -> str:
        """Name of the question; all forms of a test, in words or in sentences, share it."""
        return self.variant_of or self.name

    @property
    def template(self) -> TemplateKind:
        """Kind of sentence template; that of the targets if targets and attributes differ."""
        templates = self.targets or self.attributes
        if templates is not None:
            return templates.kind
        return "none" if self.level == "word" else self.given_template

    @property
    def level(self) -> Literal["word", "sentence"]:
        """Whether the texts are words or sentences."""
        given = any(self.concept(role).given for role in ROLES)
        return "sentence" if self.targets or self.attributes or given else "word"

    @property
    def has_target_sentences(self) -> bool:
        """Whether the texts of the targets are sentences."""
        return bool(self.targets or self.X.given or self.Y.given)

    @property
    def has_known_target_words(self) -> bool:
        """Whether the word of every target text is known."""
        return all(text.word is not None for text in (*self.X.given, *self.Y.given))

    @property
    def has_known_words(self) -> bool:
        """Whether the word of every text is known."""
        return all(text.word is not None for role in ROLES for text in self.concept(role).given)

    def concept(self, role: str) -> Concept:
        """Return the word set of a role."""
        return {"X": self.X, "Y": self.Y, "A": self.A, "B": self.B}[role]

    def templates(self, role: str) -> TemplateSet | None:
        """Return the templates of a role."""
        return self.targets if role in "XY" else self.attributes

    def _repr_html_(self) -> str:
        """Return title, words and source for a notebook."""
        words = {role: self.concept(role).words for role in ROLES}
        targets, attributes = (sum(len(words[role]) for role in roles) for roles in ("XY", "AB"))
        kind = "social-bias test" if self.about == "people" else "sanity check"
        summary = f" ({self.name}): {kind} with {targets} target and {attributes} attribute words, by {self.level}."
        cells = [(role, self.concept(role).label, ", ".join(words[role])) for role in ROLES]
        cell = '<td style="text-align:left">'
        rows = "".join(f"<tr>{''.join(f'{cell}{escape(text)}</td>' for text in row)}</tr>" for row in cells)
        source = f"{self.source.citation} (version {self.source.version}). Licence: {self.source.licence}"
        return (
            f"<div><p><b>{escape(self.title)}</b>{escape(summary)}</p>"
            f'<table style="color:inherit"><tbody>{rows}</tbody></table><p>{escape(source)}</p></div>'
        )


@cache
def load_topics() -> Mapping[str, str]:
    """Return the topics of tests with their descriptions."""
    return tomllib.loads((DATA / "topics.toml").read_text("utf-8"))


DESCRIPTION_FIELDS = ("about", "topic", "variant_of", "template", "direction", "language")


def get_description_readers(reader: FieldReader) -> Readers:
    """Return the readers of the descriptive fields of a test, for `FieldReader.record`."""
    choices = {"about": get_args(About), "topic": load_topics(), "template": get_args(TemplateKind)}
    choices["direction"] = get_args(Direction)
    return {
        key: partial(reader.choice, allowed=tuple(choices[key])) if key in choices else reader.string
        for key in DESCRIPTION_FIELDS
    }


def read_source(reader: FieldReader, value: Any, where: str = "source") -> Source:
    """Read the table [source] of a file.

    Parameters
    ----------
    reader : FieldReader
    value : object
        The parsed table.
    where : str
        Path of the table within the file, for error messages.
    """
    texts = dict.fromkeys(("name", "language", "citation", "licence", "version", "doi", "note"), reader.string)
    readers = {**texts, "supplementary": reader.flag, **get_searched_model_readers(reader)}
    return Source(**{"licence": "not stated", **reader.record(value, where, readers, ("name", "citation", "version"))})


def get_searched_model_readers(reader: FieldReader) -> Readers:
    """Return the readers of the fields that identify searched models, for `FieldReader.record`."""

    def read_fingerprints(value: Any, where: str) -> tuple[Fingerprint, ...]:
        return reader.items(value, where, partial(_read_fingerprint, reader), "tables")

    return {"searched_models": reader.distinct_words, "fingerprints": read_fingerprints}


def _read_fingerprint(reader: FieldReader, value: Any, where: str) -> Fingerprint:
    words = dict.fromkeys(("targets", "attributes"), reader.distinct_words)
    fields = reader.record(value, where, {**words, "cosines": reader.raw_value}, ("targets", "attributes", "cosines"))
    rows, (height, width) = fields["cosines"], (len(fields[key]) for key in words)
    shaped = isinstance(rows, list) and len(rows) == height
    if not shaped or not all(isinstance(row, list) and len(row) == width for row in rows):
        reader.fail(f"{where}.cosines", f"expected a table of {height} by {width} numbers, one row per target")
    if not all(type(number) in (int, float) and -1.0 <= number <= 1.0 for row in rows for number in row):
        reader.fail(f"{where}.cosines", "expected numbers from -1 to 1")
    if height * width > _MAX_COSINES:
        reader.fail(f"{where}.cosines", f"expected at most {_MAX_COSINES:,} numbers, got {height * width:,}")
    return Fingerprint(fields["targets"], fields["attributes"], tuple(tuple(map(float, row)) for row in rows))


def read_pair_topics(reader: FieldReader, value: Any, where: str, pairs: Sequence[str]) -> dict[str, str]:
    """Read a table of topics with their pairs of groups (gender = ["men-women"]).

    Parameters
    ----------
    reader : FieldReader
        Reader of the file.
    value : object
        The parsed table.
    where : str
        Location of the table in the file.
    pairs : sequence of str
        Known pairs.

    Returns
    -------
    dict
        Topics by pair.
    """
    topics: dict[str, str] = {}
    for topic, names in reader.table(value, where, set(load_topics())).items():
        for pair in reader.strings(names, f"{where}.{topic}"):
            reader.choice(pair, f"{where}.{topic}", pairs)
            if topics.setdefault(pair, topic) != topic:
                reader.fail(f"{where}.{topic}", f"the pair {pair!r} also has the topic {topics[pair]!r}; choose one")
    return topics


def apply_description(test: Test, stated: Mapping[str, Any], where: Location) -> Test:
    """Return a test with the descriptive fields of its file.

    Parameters
    ----------
    test : Test
        Test without description.
    stated : mapping
        Descriptive fields that the file states.
    where : Location
        Location of the test, for the error message.
    """
    template = stated.get("template")
    described = replace(
        test,
        about=stated.get("about", test.about),
        topic=stated.get("topic", test.topic),
        variant_of=stated.get("variant_of"),
        direction=stated.get("direction"),
        stated_language=stated.get("language"),
        given_template="given" if template in (None, "none") else template,
    )
    if template not in (None, described.template):
        raise StimulusError(
            f"{where}: the field 'template' is {template!r}, but the texts of the test are "
            f"{described.template!r}; correct or remove it"
        )
    return described


def describe_test(test: Test) -> dict[str, str | None]:
    """Return the descriptive fields of a test by name."""
    return {name: getattr(test, name) for name in DESCRIPTION_FIELDS}
