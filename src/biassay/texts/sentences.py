"""Sentences from words and templates. Every text keeps its stimulus, its template, and where the word stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from biassay.errors import StimulusError
from biassay.stimuli.model import ROLES, Concept, TemplateClass, TemplateSet, Test

__all__ = ["TestTexts", "Text", "texts_of"]

_SLOT = re.compile(r"\{(T|a T|Ts|she|her|She|Her)\}")
_PRONOUNS = {
    "female": {"she": "she", "her": "her", "She": "She", "Her": "Her"},
    "male": {"she": "he", "her": "his", "She": "He", "Her": "His"},
}
_VOWELS = tuple("aeiouAEIOU")


@dataclass(frozen=True)
class Text:
    """A text to be encoded, and what it is made of.

    ``span`` is the place of the stimulus in the text, first character and the one after the last.
    """

    text: str
    stimulus: str
    template: str
    span: tuple[int, int]


@dataclass(frozen=True)
class TestTexts:
    """All texts of one test, by role."""

    __test__ = False

    X: tuple[Text, ...]
    Y: tuple[Text, ...]
    A: tuple[Text, ...]
    B: tuple[Text, ...]

    def role(self, role: str) -> tuple[Text, ...]:
        return {"X": self.X, "Y": self.Y, "A": self.A, "B": self.B}[role]

    def __iter__(self) -> Iterator[Text]:
        for role in ROLES:
            yield from self.role(role)


def texts_of(test: Test) -> TestTexts:
    """The texts of a test: the words themselves, or every word in every template of its class."""
    return TestTexts(*(tuple(_concept_texts(test.concept(role), test.templates(role))) for role in ROLES))


def _concept_texts(concept: Concept, templates: TemplateSet | None) -> Iterator[Text]:
    for word in concept.words:
        if templates is None:
            yield Text(word, word, "word", (0, len(word)))
            continue
        chosen = _class_of(word, templates)
        for number, template in enumerate(chosen.templates, start=1):
            text, span = _fill(template, word, concept, templates)
            yield Text(text, word, f"{chosen.name}/{number}", span)


def _class_of(word: str, templates: TemplateSet) -> TemplateClass:
    for candidate in templates.classes:
        if _takes(candidate, word):
            return candidate
    raise StimulusError(
        f"no class of the template set {templates.name!r} takes the word {word!r}; add one of rule 'rest'"
    )


def _takes(candidate: TemplateClass, word: str) -> bool:
    if candidate.except_ending and word.endswith(candidate.except_ending):
        return False
    if candidate.rule == "capitalised":
        return word[0].isupper() and not word.isupper()
    if candidate.rule == "listed":
        return word in candidate.words
    if candidate.rule == "contains":
        return any(part in candidate.words for part in re.findall(r"\w+", word))
    return True


def _fill(template: str, word: str, concept: Concept, templates: TemplateSet) -> tuple[str, tuple[int, int]]:
    pieces: list[str] = []
    span = (0, 0)
    for i, piece in enumerate(_SLOT.split(template)):
        if i % 2 == 0:
            pieces.append(piece)
        elif piece in _PRONOUNS["female"]:
            pieces.append(_pronoun(piece, concept))
        else:
            form = _plural(word, templates) if piece == "Ts" else _singular(word, templates)
            if piece == "a T":
                pieces.append(_article(form, templates) + " ")
            start = sum(map(len, pieces))
            span = (start, start + len(form))
            pieces.append(form)
    text = "".join(pieces)
    return text[0].upper() + text[1:], span


def _pronoun(slot: str, concept: Concept) -> str:
    assert concept.gender is not None  # refused when the test was read
    return _PRONOUNS[concept.gender][slot]


def _article(form: str, templates: TemplateSet) -> str:
    for beginning, article in templates.articles:
        if form.startswith(beginning):
            return article
    return "an" if form.startswith(_VOWELS) else "a"


def _singular(word: str, templates: TemplateSet) -> str:
    return dict(templates.plurals).get(word, word)


def _plural(word: str, templates: TemplateSet) -> str:
    if word in dict(templates.plurals):
        return word
    for one, many in (("woman", "women"), ("man", "men")):
        if re.search(rf"\b{one}\b", word):
            return re.sub(rf"\b{one}\b", many, word)
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "s")) else "s")
