"""Concepts that can be erased from vectors: classes of words to fit on, and held-out words to probe with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from biassay.datasets.fields import FieldReader, bundled_names, parse_toml, read_definition
from biassay.datasets.linter import list_forms
from biassay.datasets.schema import Source, read_source
from biassay.errors import StimulusError, UnknownNameError


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

    def read_classes(value: Any, where: str) -> dict[str, tuple[str, ...]]:
        return {label: reader.strings(words, f"{where}.{label}") for label, words in reader.table(value, where).items()}

    def read_pairs(value: Any, where: str) -> tuple[tuple[str, ...], ...]:
        return reader.items(value, where, reader.strings, "pairs")

    readers: dict[str, Any] = {
        **dict.fromkeys(("title", "weakness", "audit_names"), reader.string),
        **dict.fromkeys(("tests", "audit_by"), reader.strings),
        **dict.fromkeys(("words", "held_out"), read_classes),
        "pairs": read_pairs,
        "source": partial(read_source, reader),
    }
    fields = reader.record(parse_toml(path, text), "", readers, ("title", "weakness", "held_out", "source"))
    words, held_out, pairs = fields.get("words", {}), fields["held_out"], fields.get("pairs", ())
    if len(held_out) < 2:
        reader.fail("held_out", "expected a list of words for each of two or more classes, such as female = [...]")
    if words and words.keys() != held_out.keys():
        reader.fail("words", f"expected the classes of [held_out] ({', '.join(held_out)}), got {', '.join(words)}")
    for index, pair in enumerate(pairs):
        if len(pair) != len(held_out):
            reader.fail(f"pairs[{index}]", f"expected one word of each class ({', '.join(held_out)}), got {list(pair)}")
    if not words and not pairs:
        reader.fail("", "no words to fit on; add pairs, or a table [words] with a list for each class")
    concept = ErasedConcept(
        name,
        fields["title"],
        fields["weakness"],
        tuple(held_out),
        pairs,
        tuple(words[label] if words else () for label in held_out),
        tuple(held_out.values()),
        fields.get("tests", ()),
        fields.get("audit_names", "census2020"),
        fields.get("audit_by", ()),
        fields["source"],
    )
    _check_distinct(concept, path)
    return concept


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
