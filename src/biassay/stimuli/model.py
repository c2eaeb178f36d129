"""The records that data files become."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Literal

__all__ = [
    "PRONOUN_SLOTS",
    "ROLES",
    "About",
    "Concept",
    "Direction",
    "GivenText",
    "Source",
    "TemplateClass",
    "TemplateKind",
    "TemplateSet",
    "Test",
    "WordRule",
]

ROLES = ("X", "Y", "A", "B")
PRONOUN_SLOTS = ("{she}", "{her}", "{She}", "{Her}")
WordRule = Literal["capitalised", "listed", "contains", "rest"]
About = Literal["people", "method"]
Direction = Literal["positive", "negative"]
TemplateKind = Literal["none", "bleached", "unbleached", "other", "given"]
"""How words became texts: not at all, by templates that say little (bleached) or more (unbleached) beyond the word, by
templates of which neither is stated; or the texts are given, and it is not stated how they were made."""


@dataclass(frozen=True)
class Fingerprint:
    """Cosines of a searched model by which its relatives are recognised: one row per target, one column per attribute.

    Copies, noisy copies and fine-tuned descendants have nearly the same cosines; other models do not.
    """

    targets: tuple[str, ...]
    attributes: tuple[str, ...]
    cosines: tuple[tuple[float, ...], ...]

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.targets, *self.attributes)


@dataclass(frozen=True)
class Source:
    """Where the facts in a data file come from, and on what terms."""

    name: str
    citation: str
    licence: str
    version: str
    doi: str = ""
    note: str = ""
    supplementary: bool = False
    """Whether its tests are measured only when they, or their collection, are named."""
    language: str = ""
    """Language of the words, as an IETF tag such as ``en``; empty if it is not stated."""
    searched_models: tuple[str, ...] = ()
    """Digests of the models that were searched for the words; on these a test would only confirm the search."""
    fingerprints: tuple[Fingerprint, ...] = ()
    """Cosines of these models, by which their copies and descendants are recognised."""


@dataclass(frozen=True, slots=True)
class GivenText:
    """A finished text, the word it was made from and the word's span in it; None where the file does not state them."""

    text: str
    word: str | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Concept:
    """A set of stimuli that stand for one idea: words, or finished texts (then ``words`` are those of the texts)."""

    name: str
    label: str
    words: tuple[str, ...]
    gender: Literal["male", "female"] | None = None
    given: tuple[GivenText, ...] = ()
    clusters: tuple[tuple[str, ...], ...] = ()
    """Near-synonyms, such as forms of one lemma, that count as one observation; every other word is its own."""
    source: str = ""
    """Where the words come from, if that is not the source of the whole file."""

    @cached_property
    def cluster_labels(self) -> dict[str, str]:
        """The cluster of every word, named after the first word of the cluster."""
        shared = {word: cluster[0] for cluster in self.clusters for word in cluster}
        return {word: shared.get(word, word) for word in self.words}


@dataclass(frozen=True)
class TemplateClass:
    """Templates for the words that a rule takes."""

    name: str
    rule: WordRule
    templates: tuple[str, ...]
    words: tuple[str, ...] = ()
    except_ending: str = ""


@dataclass(frozen=True)
class TemplateSet:
    """How words become sentences: classes tried in order, the first that takes a word gives its templates."""

    name: str
    title: str
    classes: tuple[TemplateClass, ...]
    source: Source
    plurals: tuple[tuple[str, str], ...] = ()
    articles: tuple[tuple[str, str], ...] = ()
    kind: Literal["bleached", "unbleached", "other"] = "other"

    @cached_property
    def singulars(self) -> dict[str, str]:
        """By plural."""
        return dict(self.plurals)

    @property
    def uses_pronouns(self) -> bool:
        return any(slot in text for c in self.classes for text in c.templates for slot in PRONOUN_SLOTS)


@dataclass(frozen=True)
class Test:
    """One association test: targets X and Y against attributes A and B.

    ``about`` says whether it asks about people or checks the method, ``topic`` what it asks about; ``variant_of`` names
    the test of words that it puts into sentences; ``given_template`` is the kind of templates of finished texts.
    ``stated_language`` is the language of the words, where the test states one that its collection does not.
    ``direction`` is the sign of the effect that the test expects: positive if the stereotype associates X with A.
    """

    __test__ = False  # not a test case, whatever its name suggests to a test runner

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
        """Language of the words, as the test or its collection states it; None if neither does."""
        return self.stated_language or self.source.language or None

    @property
    def is_english(self) -> bool:
        return (self.language or "").lower().split("-")[0] == "en"

    @property
    def question(self) -> str:
        """The question that the test asks: all forms of one test, in words or in sentences, ask the same."""
        return self.variant_of or self.name

    @property
    def template(self) -> TemplateKind:
        """How its words became texts; where targets and attributes differ, how those of the targets did."""
        templates = self.targets or self.attributes
        if templates is not None:
            return templates.kind
        return "none" if self.level == "word" else self.given_template

    @property
    def level(self) -> Literal["word", "sentence"]:
        given = any(self.concept(role).given for role in ROLES)
        return "sentence" if self.targets or self.attributes or given else "word"

    @property
    def has_target_sentences(self) -> bool:
        return bool(self.targets or self.X.given or self.Y.given)

    @property
    def tells_target_words(self) -> bool:
        """Is it known which word every target text was made from?"""
        return all(text.word is not None for text in (*self.X.given, *self.Y.given))

    @property
    def tells_words(self) -> bool:
        """The same of all texts, those of attributes too."""
        return all(text.word is not None for role in ROLES for text in self.concept(role).given)

    def concept(self, role: str) -> Concept:
        return {"X": self.X, "Y": self.Y, "A": self.A, "B": self.B}[role]

    def templates(self, role: str) -> TemplateSet | None:
        return self.targets if role in "XY" else self.attributes

    def _repr_html_(self) -> str:
        """What it asks, its four sets of words and where they come from, as a notebook shows them."""
        words = {role: self.concept(role).words for role in ROLES}
        targets, attributes = (sum(len(words[role]) for role in roles) for roles in ("XY", "AB"))
        asks = "about people" if self.about == "people" else "a check of the method"
        summary = f" ({self.name}): {targets} target and {attributes} attribute words, by {self.level}; {asks}."
        cells = [(role, self.concept(role).label, ", ".join(own)) for role, own in words.items()]
        left = '<td style="text-align:left">'
        rows = "".join(f"<tr>{''.join(f'{left}{escape(text)}</td>' for text in row)}</tr>" for row in cells)
        source = f"{self.source.citation} (version {self.source.version}). Licence: {self.source.licence}"
        return (
            f"<div><p><b>{escape(self.title)}</b>{escape(summary)}</p>"
            f'<table style="color:inherit"><tbody>{rows}</tbody></table><p>{escape(source)}</p></div>'
        )
