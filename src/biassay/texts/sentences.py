"""Sentences from words and templates. Every text keeps its stimulus, its template, and where the word stands in it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from biassay.errors import StimulusError
from biassay.stimuli.model import ROLES, Concept, GivenText, TemplateClass, TemplateSet, Test
from biassay.texts.varying import what_varies

__all__ = ["TestTexts", "Text", "assumed_words", "digest_of", "forms", "given_texts", "guessed_sentences", "texts_of"]

# Words in -man that are no compounds of man.
_NO_MAN = re.compile(
    r"human$|\b(?:ayman|brahman|caiman|cayman|dolman|dragoman|german|hetman|mus+ulman|norman|ottoman|roman|shaman|"
    r"talisman|toman|turk[eo]?man)$",
    re.IGNORECASE,
)
_SLOT = re.compile(r"\{(T|a T|Ts|she|her|She|Her)\}")
_PRONOUNS = {
    "female": {"she": "she", "her": "her", "She": "She", "Her": "Her"},
    "male": {"she": "he", "her": "his", "She": "He", "Her": "His"},
}
_ARTICLE = re.compile(r"\ban? $", re.IGNORECASE)
_VOWELS = tuple("aeiouAEIOU")


@dataclass(frozen=True, slots=True)
class Text:
    """A text to be encoded, and what it is made of.

    ``template`` is the sentence without its word: "{T}" for a word by itself, "" where the word is not known. ``spans``
    are the places of the words it is about, first character and the one after the last: that of the stimulus, or
    several where a file does not say what its texts are about.
    """

    text: str
    stimulus: str
    template: str
    spans: tuple[tuple[int, int], ...]

    @property
    def form(self) -> str:
        """The words it is about as they stand in it."""
        return " ".join(self.text[start:end] for start, end in self.spans)


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


@lru_cache(maxsize=256)
def texts_of(test: Test) -> TestTexts:
    """The texts of a test: the words themselves, every word in every template of its class, or those that are given."""
    made = [tuple(_concept_texts(test.concept(role), test.templates(role))) for role in ROLES]
    if not all(text.spans for texts in made for text in texts):
        found = what_varies([[text.text for text in texts] for texts in made])
        made = [
            tuple(text if text.spans else replace(text, spans=spans) for text, spans in zip(*of_set, strict=True))
            for of_set in zip(made, found, strict=True)
        ]
    return TestTexts(*made)


def given_texts(test: Test) -> dict[str, tuple[GivenText, ...]]:
    """The texts of a test by role, with the word and the span that its file states; words by themselves need none."""
    texts = texts_of(test)
    return {
        role: test.concept(role).given
        or tuple(
            GivenText(t.text, t.stimulus, t.spans[0]) if test.templates(role) else GivenText(t.text)
            for t in texts.role(role)
        )
        for role in ROLES
    }


@lru_cache(maxsize=1024)
def digest_of(test: Test) -> str:
    """A short digest of its texts and of their words and spans, as `given_texts` has them, whatever their file is."""
    texts, content = texts_of(test), []
    for role in ROLES:
        if given := test.concept(role).given:
            content.append([(t.text, t.word, t.span) for t in given])
        elif test.templates(role):
            content.append([(t.text, t.stimulus, t.spans[0]) for t in texts.role(role)])
        else:
            content.append([(t.text, None, None) for t in texts.role(role)])
    clusters = [test.concept(role).clusters for role in ROLES]
    whole = [*content, clusters] if any(clusters) else content
    return hashlib.blake2b(json.dumps(whole).encode(), digest_size=8).hexdigest()


def assumed_words(test: Test) -> dict[str, tuple[str, ...]]:
    """What texts are taken to be about, by role, where their file does not say it."""
    untold = {role: {t.text for t in test.concept(role).given if t.span is None} for role in ROLES}
    if not any(untold.values()):
        return {}
    texts = texts_of(test)
    return {role: forms([t for t in texts.role(role) if t.text in untold[role]]) for role in ROLES if untold[role]}


def forms(texts: Iterable[Text]) -> tuple[str, ...]:
    """The words as they stand in the texts, so that a lost plural is not confused with a lost singular."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(text.form.casefold(), text.form)  # a capital may only mean that the word opens its sentence
    return tuple(found.values())


def guessed_sentences(test: Test) -> dict[str, tuple[str, ...]]:
    """By word, a sentence for each of its forms that a rule makes: the article by the first letter, the plural."""
    found: dict[str, tuple[str, ...]] = {}
    for role in ROLES:
        concept, templates = test.concept(role), test.templates(role)
        if templates is None or concept.given:
            continue
        for word in concept.words:
            made: dict[str, str] = {}
            for template in _class_of(word, templates).templates:
                for slot in _SLOT.findall(template):
                    if _is_guessed(slot, word, templates):
                        made.setdefault(slot, _fill(template, word, concept, templates)[0])
            if made:
                found.setdefault(word, tuple(dict.fromkeys(made.values())))
    return found


def _is_guessed(slot: str, word: str, templates: TemplateSet) -> bool:
    if slot == "Ts":
        return not any(word in pair for pair in templates.plurals)
    return slot == "a T" and not _singular(word, templates).startswith(tuple(start for start, _ in templates.articles))


def _concept_texts(concept: Concept, templates: TemplateSet | None) -> Iterator[Text]:
    for given in concept.given:
        yield Text(given.text, given.word or given.text, _without_word(given), (given.span,) if given.span else ())
    for word in concept.words if not concept.given else ():
        if templates is None:
            yield Text(word, word, "{T}", ((0, len(word)),))
            continue
        for template in _class_of(word, templates).templates:
            text, span = _fill(template, word, concept, templates)
            yield Text(text, word, template, (span,))


def _without_word(given: GivenText) -> str:
    """The template of a finished text; an article before the word goes by the word."""
    if given.span is None:
        return ""
    before, after = given.text[: given.span[0]], given.text[given.span[1] :]
    return _ARTICLE.sub("a ", before) + "{T}" + after


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
    for i, piece in enumerate(_pieces(template)):
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


@lru_cache(maxsize=1024)
def _pieces(template: str) -> list[str]:
    """What stands before, between and behind the slots of a template, and every second piece a slot."""
    return _SLOT.split(template)


def _pronoun(slot: str, concept: Concept) -> str:
    assert concept.gender is not None  # refused when the test was read
    return _PRONOUNS[concept.gender][slot]


def _article(form: str, templates: TemplateSet) -> str:
    for beginning, article in templates.articles:
        if form.startswith(beginning):
            return article
    return "an" if form.startswith(_VOWELS) else "a"


def _singular(word: str, templates: TemplateSet) -> str:
    return templates.singulars.get(word, word)


def _plural(word: str, templates: TemplateSet) -> str:
    for many, one in templates.plurals:
        if word in (one, many):
            return many
    for one, many in (("woman", "women"), ("man", "men")):
        if re.search(rf"\b{one}\b", word):
            return re.sub(rf"\b{one}\b", many, word)
    if word.endswith("man") and not _NO_MAN.search(word):
        return word[:-3] + "men"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "s")) else "s")
