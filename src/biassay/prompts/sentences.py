"""Build the sentences of a test from words and templates."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from biassay.datasets.fields import DATA
from biassay.datasets.schema import ROLES, Concept, GivenText, TemplateClass, TemplateSet, Test
from biassay.errors import StimulusError

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
Span = tuple[int, int]
Frame = tuple[tuple[str, ...], tuple[str, ...]]


def infer_target_words(sets: Sequence[Sequence[str]]) -> list[list[tuple[Span, ...]]]:
    """Infer which words the texts of several sets are about.

    Candidates are words that occur in one set only. In each text, the candidate with the most alternatives is chosen:
    other candidates that replace it in texts that are otherwise equal. Ties are all chosen. A text without a candidate
    is about all of its words.

    Returns
    -------
    list of list of tuple
        Spans of the words of every text of every set.
    """
    words = [[[match[0].casefold() for match in _WORD.finditer(text)] for text in texts] for texts in sets]
    counts = Counter(word for texts in words for word in {word for text in texts for word in text})
    candidates = {word for word, n_sets in counts.items() if n_sets == 1}
    alternatives: dict[Frame, set[str]] = defaultdict(set)
    for text in (text for texts in words for text in texts):
        for i, word in enumerate(text):
            if word in candidates:
                alternatives[_make_frame(text, i)].add(word)

    def find_spans(text: str, text_words: list[str]) -> tuple[Span, ...]:
        spans = [match.span() for match in _WORD.finditer(text)]
        chosen = _select_most_varied(text_words, candidates, alternatives)
        return tuple(spans[i] for i in chosen) or ((0, len(text)),)

    return [list(map(find_spans, texts, set_words)) for texts, set_words in zip(sets, words, strict=True)]


def _make_frame(text: list[str], i: int) -> Frame:
    return tuple(text[:i]), tuple(text[i + 1 :])


def _select_most_varied(text: list[str], candidates: set[str], alternatives: dict[Frame, set[str]]) -> list[int]:
    counts = {i: len(alternatives[_make_frame(text, i)]) for i, word in enumerate(text) if word in candidates}
    most = max(counts.values(), default=0)
    return [i for i, count in counts.items() if count == most] or list(range(len(text)))


# Words in -man that are not compounds of man.
_REGULAR_MAN_NOUNS = re.compile(
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
class StimulusText:
    """Text to encode, and the word and template it consists of.

    Attributes
    ----------
    text : str
        The text.
    stimulus : str
        Word of the test.
    template : str
        Sentence without its word: "{T}" for a word alone, "" if the word is unknown.
    spans : tuple of (int, int)
        Start and end of the words that the text is about: of the stimulus, or of several words if the file does not
        state them.
    """

    text: str
    stimulus: str
    template: str
    spans: tuple[tuple[int, int], ...]

    @property
    def form(self) -> str:
        """Words that the text is about, as spelt in it."""
        return " ".join(self.text[start:end] for start, end in self.spans)


@dataclass(frozen=True)
class TestTexts:
    """Texts of a test by role."""

    __test__ = False

    X: tuple[StimulusText, ...]
    Y: tuple[StimulusText, ...]
    A: tuple[StimulusText, ...]
    B: tuple[StimulusText, ...]

    def role(self, role: str) -> tuple[StimulusText, ...]:
        """Return the texts of a role."""
        return {"X": self.X, "Y": self.Y, "A": self.A, "B": self.B}[role]

    def __iter__(self) -> Iterator[StimulusText]:
        for role in ROLES:
            yield from self.role(role)


@lru_cache(maxsize=256)
def make_texts(test: Test) -> TestTexts:
    """Make the texts of a test: words alone, every word in every template of its class, or finished texts."""
    texts = [tuple(_make_concept_texts(test.concept(role), test.templates(role))) for role in ROLES]
    if not all(text.spans for text_set in texts for text in text_set):
        inferred = infer_target_words([[text.text for text in text_set] for text_set in texts])
        texts = [
            tuple(text if text.spans else replace(text, spans=spans) for text, spans in zip(*pair, strict=True))
            for pair in zip(texts, inferred, strict=True)
        ]
    return TestTexts(*texts)


def get_given_texts(test: Test) -> dict[str, tuple[GivenText, ...]]:
    """Return the texts of a test by role, with word and span if the test states them; words alone have neither."""
    texts = make_texts(test)
    return {
        role: test.concept(role).given
        or tuple(
            GivenText(t.text, t.stimulus, t.spans[0]) if test.templates(role) else GivenText(t.text)
            for t in texts.role(role)
        )
        for role in ROLES
    }


@lru_cache(maxsize=1024)
def hash_texts(test: Test) -> str:
    """Return a short hash of the texts of a test with their words, spans and clusters."""
    texts = get_given_texts(test)
    content: list[object] = [[(text.text, text.word, text.span) for text in texts[role]] for role in ROLES]
    clusters = [test.concept(role).clusters for role in ROLES]
    if any(clusters):
        content.append(clusters)
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


def get_assumed_words(test: Test) -> dict[str, tuple[str, ...]]:
    """Return the inferred words of texts by role, for texts whose file does not state them."""
    unstated = {role: {t.text for t in test.concept(role).given if t.span is None} for role in ROLES}
    return {
        role: list_forms([t for t in make_texts(test).role(role) if t.text in texts])
        for role, texts in unstated.items()
        if texts
    }


def list_forms(texts: Iterable[StimulusText]) -> tuple[str, ...]:
    """Return the words as spelt in the texts, so that singular and plural are distinguished."""
    forms: dict[str, str] = {}
    for text in texts:
        forms.setdefault(text.form.casefold(), text.form)  # a capital may only mark the start of a sentence
    return tuple(forms.values())


def make_inflected_examples(test: Test) -> dict[str, tuple[str, ...]]:
    """Return example sentences by word, one for each form that a rule makes: article or plural."""
    examples: dict[str, tuple[str, ...]] = {}
    for role in ROLES:
        concept, templates = test.concept(role), test.templates(role)
        if templates is None or concept.given:
            continue
        for word in concept.words:
            by_slot: dict[str, str] = {}
            for template in _find_template_class(word, templates).templates:
                for slot in _SLOT.findall(template):
                    if _is_rule_based(slot, word, templates):
                        by_slot.setdefault(slot, _fill_template(template, word, concept, templates)[0])
            if by_slot:
                examples.setdefault(word, tuple(dict.fromkeys(by_slot.values())))
    return examples


def _is_rule_based(slot: str, word: str, templates: TemplateSet) -> bool:
    if slot == "Ts":
        return not any(word in pair for pair in templates.plurals)
    return slot == "a T" and not _make_singular(word, templates).startswith(
        tuple(start for start, _ in templates.articles)
    )


def _make_concept_texts(concept: Concept, templates: TemplateSet | None) -> Iterator[StimulusText]:
    for given in concept.given:
        spans = (given.span,) if given.span else ()
        yield StimulusText(given.text, given.word or given.text, _make_template(given), spans)
    for word in concept.words if not concept.given else ():
        if templates is None:
            yield StimulusText(word, word, "{T}", ((0, len(word)),))
            continue
        for template in _find_template_class(word, templates).templates:
            text, span = _fill_template(template, word, concept, templates)
            yield StimulusText(text, word, template, (span,))


def _make_template(given: GivenText) -> str:
    """Return the template of a finished text, with "a" for any article before the word."""
    if given.span is None:
        return ""
    before, after = given.text[: given.span[0]], given.text[given.span[1] :]
    return _ARTICLE.sub("a ", before) + "{T}" + after


def _find_template_class(word: str, templates: TemplateSet) -> TemplateClass:
    for word_class in templates.classes:
        if _accepts_word(word_class, word):
            return word_class
    raise StimulusError(
        f"no class of the template set {templates.name!r} accepts the word {word!r}; add one with the rule 'rest'"
    )


def _accepts_word(word_class: TemplateClass, word: str) -> bool:
    if word_class.except_ending and word.endswith(word_class.except_ending):
        return False
    if word_class.rule == "capitalised":
        return word[0].isupper() and not word.isupper()
    if word_class.rule == "listed":
        return word in word_class.words
    if word_class.rule == "contains":
        return any(part in word_class.words for part in re.findall(r"\w+", word))
    return True


def _fill_template(template: str, word: str, concept: Concept, templates: TemplateSet) -> tuple[str, tuple[int, int]]:
    pieces: list[str] = []
    span = (0, 0)
    for i, piece in enumerate(_split_template(template)):
        if i % 2 == 0:
            pieces.append(piece)
        elif piece in _PRONOUNS["female"]:
            assert concept.gender is not None  # checked when the test was read
            pieces.append(_PRONOUNS[concept.gender][piece])
        else:
            form = _make_plural(word, templates) if piece == "Ts" else _make_singular(word, templates)
            if piece == "a T":
                pieces.append(_add_article(form, templates) + " ")
            start = sum(map(len, pieces))
            span = (start, start + len(form))
            pieces.append(form)
    text = "".join(pieces)
    return text[0].upper() + text[1:], span


@lru_cache(maxsize=1024)
def _split_template(template: str) -> list[str]:
    """Split a template into texts and slots, which alternate."""
    return _SLOT.split(template)


def _add_article(form: str, templates: TemplateSet) -> str:
    for beginning, article in templates.articles:
        if form.startswith(beginning):
            return article
    return "an" if form.startswith(_VOWELS) else "a"


def _make_singular(word: str, templates: TemplateSet) -> str:
    return templates.singulars.get(word, word)


def _make_plural(word: str, templates: TemplateSet) -> str:
    for plural, singular in templates.plurals:
        if word in (singular, plural):
            return plural
    for singular, plural in (("woman", "women"), ("man", "men")):
        if re.search(rf"\b{singular}\b", word):
            return re.sub(rf"\b{singular}\b", plural, word)
    if word.endswith("man") and not _REGULAR_MAN_NOUNS.search(word):
        return word[:-3] + "men"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "s")) else "s")


_INFLECTED_SLOT = re.compile(r"\{(?:a T|Ts)\}|\ba \{T\}", re.IGNORECASE)
_PRONOUN = re.compile(r"\{(she|her)\}|\b(?:(s?he)|his|her|him)\b", re.IGNORECASE)


@dataclass(frozen=True)
class SharedTemplates:
    """Templates that two word sets share.

    Attributes
    ----------
    templates : frozenset of str, or None
        Templates on which words are compared: those that all words share, or those that both sets share. None to use
        all templates, because the sets share all or none.
    share : float or None
        Overlap of the distributions of the two sets over exact sentences without their words; 1 if they are equal.
        None if the positions of the words are unknown.
    """

    templates: frozenset[str] | None
    share: float | None

    def includes(self, text: StimulusText) -> bool:
        """Return whether a text takes part in the comparison."""
        return self.templates is None or get_template(text) in self.templates


def find_shared_templates(x: Sequence[StimulusText], y: Sequence[StimulusText]) -> SharedTemplates:
    """Find the templates that the words of X and Y share.

    Templates that differ only in article or number count as one; otherwise nouns with an article would share none with
    nouns without one. `share` shows how much such differences matter.
    """
    if not all(text.template for text in (*x, *y)):
        return SharedTemplates(None, None)
    x_templates, y_templates = frozenset(map(get_template, x)), frozenset(map(get_template, y))
    shared = _find_common_templates((*x, *y)) or x_templates & y_templates
    return SharedTemplates(shared if shared and shared != x_templates | y_templates else None, _compute_overlap(x, y))


def _compute_overlap(x: Sequence[StimulusText], y: Sequence[StimulusText]) -> float:
    x_counts, y_counts = Counter(map(_mask_word, x)), Counter(map(_mask_word, y))
    return sum(min(x_counts[sentence] / len(x), y_counts[sentence] / len(y)) for sentence in x_counts)


def _mask_word(text: StimulusText) -> str:
    """Return the sentence without its word and without the gender of pronouns."""
    ((start, end),) = text.spans[:1] or ((0, 0),)
    return _PRONOUN.sub(_mask_pronoun, text.text[:start] + "{T}" + text.text[end:])


def _find_common_templates(texts: Iterable[StimulusText]) -> frozenset[str]:
    by_word: dict[str, set[str]] = {}
    for text in texts:
        by_word.setdefault(text.stimulus, set()).add(get_template(text))
    return frozenset(set.intersection(*by_word.values())) if by_word else frozenset()


def get_template(text: StimulusText) -> str:
    """Return the template of a text, regardless of article, number and gender of pronouns."""
    return _normalize_template(text.template)


@lru_cache(maxsize=4096)
def _normalize_template(template: str) -> str:
    return _PRONOUN.sub(_mask_pronoun, _INFLECTED_SLOT.sub("{T}", template))


def _mask_pronoun(match: re.Match[str]) -> str:
    return "{she}" if match[2] or (match[1] or "").lower() == "she" else "{her}"


SCALE_TEMPLATES = ("This is {}.", "That is {}.")
"""Sentences that calibrate sentence tests with frequent words; most classes of words have them."""
_RANDOM_TEMPLATE = "This is {}."


def make_random_texts(test: Test) -> tuple[str, ...]:
    """Return random attribute words in the form of a test's attributes: alone or in a sentence."""
    in_sentences = test.attributes is not None or bool(test.A.given or test.B.given)
    return _make_random_sentences() if in_sentences else load_frequent_words()


@cache
def load_frequent_words() -> tuple[str, ...]:
    """Return the frequent English words of the random baseline."""
    lines = (DATA / "vocabulary.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@cache
def _make_random_sentences() -> tuple[str, ...]:
    return tuple(_RANDOM_TEMPLATE.format(word) for word in load_frequent_words())
