"""Concepts that can be erased from vectors: classes of words to fit on, and held-out words to probe with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.datasets.fields import FieldReader, bundled_names, describe_type, parse_toml, read_definition
from biassay.datasets.linter import list_forms
from biassay.datasets.schema import Source
from biassay.errors import StimulusError, UnknownNameError

_SOURCE_FIELDS = ("name", "citation", "licence", "version")
_FIELDS = {"title", "weakness", "tests", "audit_names", "audit_by", "pairs", "words", "held_out", "source"}


@dataclass(frozen=True)
class ErasedConcept:
    """Classes of words that differ in one concept.

    Attributes
    ----------
    name, title, weakness : str
        Name for commands, title for reports, and known faults of the words.
    classes : tuple of str
        Names of the classes.
    pairs : tuple of (str, ...)
        Words that differ in the concept only, one of each class; they are fitted on too. Empty if there are none.
    words, held_out : tuple of tuple of str
        Words to fit on besides the pairs, and words for the probe only, by class.
    tests : tuple of str
        Tests to compare by default.
    audit_names : str
        List of names to audit by default.
    audit_by : tuple of str
        Columns of the list that define the groups.
    source : Source
        Origin and licence of the words.
    """

    name: str
    title: str
    weakness: str
    classes: tuple[str, ...]
    pairs: tuple[tuple[str, ...], ...]
    words: tuple[tuple[str, ...], ...]
    held_out: tuple[tuple[str, ...], ...]
    tests: tuple[str, ...]
    audit_names: str
    audit_by: tuple[str, ...]
    source: Source

    @property
    def fitting_words(self) -> tuple[tuple[str, int], ...]:
        """All words to fit on, each with the index of its class, pairs first."""
        paired = [(word, label) for pair in self.pairs for label, word in enumerate(pair)]
        return (*paired, *((word, label) for label, words in enumerate(self.words) for word in words))

    @property
    def digest(self) -> str:
        """Digest of the words to fit on."""
        return hashlib.sha256(repr((self.classes, self.pairs, self.words)).encode()).hexdigest()[:8]


def concept_names() -> tuple[str, ...]:
    """Return the names of the bundled concepts, sorted."""
    return bundled_names("debiasing")


def load_concept(name: str) -> ErasedConcept:
    """Load a bundled concept by name, or one of the user from a TOML file."""
    if name not in concept_names() and not name.lower().endswith(".toml"):
        hint = f"(concepts: {', '.join(concept_names())}, or a file FILE.toml)"
        raise UnknownNameError("concept", name, concept_names(), hint)
    return _parse_concept(*read_definition("debiasing", name))


def _parse_concept(name: str, path: Path, text: str) -> ErasedConcept:
    reader = FieldReader(path, text)
    fields = reader.table(parse_toml(path, text), "", _FIELDS)
    words, held_out = (
        {label: reader.strings(own, f"{key}.{label}") for label, own in reader.table(fields.get(key, {}), key).items()}
        for key in ("words", "held_out")
    )
    if len(held_out) < 2:
        reader.fail("held_out", "expected a list of words for each of two or more classes, such as female = [...]")
    if words and words.keys() != held_out.keys():
        reader.fail("words", f"expected the classes of [held_out] ({', '.join(held_out)}), got {', '.join(words)}")
    pairs = _read_pairs(reader, fields.get("pairs", []), tuple(held_out))
    if not words and not pairs:
        reader.fail("", "no words to fit on; add pairs, or a table [words] with a list for each class")
    source = reader.table(fields.get("source", {}), "source", set(_SOURCE_FIELDS))
    stated = (reader.string(source.get(field), f"source.{field}") for field in _SOURCE_FIELDS)
    source_name, citation, licence, version = stated
    concept = ErasedConcept(
        name,
        reader.string(fields.get("title"), "title"),
        reader.string(fields.get("weakness"), "weakness"),
        tuple(held_out),
        pairs,
        tuple(words[label] if words else () for label in held_out),
        tuple(held_out.values()),
        reader.strings(fields["tests"], "tests") if "tests" in fields else (),
        reader.string(fields.get("audit_names", "census2020"), "audit_names"),
        reader.strings(fields["audit_by"], "audit_by") if "audit_by" in fields else (),
        Source(source_name, citation, licence, version),
    )
    _check_distinct(concept, path)
    return concept


def _read_pairs(reader: FieldReader, value: Any, classes: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        reader.fail("pairs", f"expected a list of pairs, got {describe_type(value)}")
    pairs = tuple(reader.strings(pair, f"pairs[{index}]") for index, pair in enumerate(value))
    for index, pair in enumerate(pairs):
        if len(pair) != len(classes):
            reader.fail(f"pairs[{index}]", f"expected one word of each class ({', '.join(classes)}), got {list(pair)}")
    return pairs


def _check_distinct(concept: ErasedConcept, path: Path) -> None:
    """Raise StimulusError if a word occurs twice, or if a held-out word is a form of a fitted word."""
    fitted = [word for word, _ in concept.fitting_words]
    words = [*fitted, *(word for own in concept.held_out for word in own)]
    seen = set[str]()
    for word in words:
        if word.casefold() in seen:
            raise StimulusError(f"{path}: the word {word!r} appears twice; a word is in one class and one list only")
        seen.add(word.casefold())
    forms = {form: word for word in fitted for form in list_forms(word)}
    for word in words[len(fitted) :]:
        for form in list_forms(word) & forms.keys():
            raise StimulusError(
                f"{path}: the held-out word {word!r} is a form of the fitted word {forms[form]!r}; remove one"
            )
