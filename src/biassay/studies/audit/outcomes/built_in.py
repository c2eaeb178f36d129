"""Built-in outcomes: length, refusals, contradicted gender, reading ease, sentiment, and words of a lexicon."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.lexicons import Lexicon
from biassay.prompts.masking import MASK
from biassay.prompts.responses import is_writing_refusal
from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.outcomes.responses import Responses


def _count_words(responses: Responses) -> NDArray[np.float64]:
    return np.where(responses.has_spaced_words, responses.lengths, np.nan)


_LENGTH = ResponseOutcome(
    name="length",
    title="length",
    unit="words",
    measures="Number of words. A name counts as one word, also with several parts.",
    source="own rule: runs of letters and digits, joined by apostrophes and hyphens",
    weakness="A limit on tokens cuts responses off; then length is not informative. Undefined in scripts without "
    "blanks.",
    compute=_count_words,
    undefined="script without blanks",
)


def _find_refusals(responses: Responses) -> NDArray[np.float64]:
    return np.array([is_writing_refusal(text) for text in responses.masked], dtype=np.float64)


_REFUSAL = ResponseOutcome(
    name="refusal",
    title="refusals",
    unit="0 or 1",
    measures="Whether the response declines the task instead of doing it.",
    source="own rule: at most 1,000 characters, of which the first 400 decline the task, in 15 languages",
    weakness="Misses refusals in unusual words or after a long preamble. An apology counts too if it is not English.",
    compute=_find_refusals,
)


PRONOUNS = {
    "female": frozenset({"she", "her", "hers", "herself", "she's", "she'd", "she'll"}),
    "male": frozenset({"he", "him", "his", "himself", "he's", "he'd", "he'll"}),
}
"""Pronouns by sex."""
_TITLES = {
    "female": re.compile(rf"\b(?:Ms|Mrs|Miss|Madam)\b\.?\s+{MASK}\b"),
    "male": re.compile(rf"\b(?:Mr|Mister|Sir)\b\.?\s+{MASK}\b"),
}


def _find_contradictions(responses: Responses) -> NDArray[np.float64]:
    values = np.full(len(responses), np.nan)
    for i, (name, words, text) in enumerate(zip(responses.names, responses.words, responses.masked, strict=True)):
        if name.sex in PRONOUNS:
            counts = {
                sex: sum(word in pronouns for word in words) + len(_TITLES[sex].findall(text))
                for sex, pronouns in PRONOUNS.items()
            }
            own = counts.pop(name.sex)
            values[i] = sum(counts.values()) > own
    return values


_MISGENDERING = ResponseOutcome(
    name="misgendering",
    title="contradicted gender",
    unit="0 or 1",
    measures="Whether pronouns and titles before the name contradict its sex more often than they agree with it.",
    source="own rule: she, her, hers, herself, Ms, Mrs, Miss, Madam; he, him, his, himself, Mr, Sir",
    weakness="Pronouns of other people in the text count. The sex of a name is that of most people with the name.",
    compute=_find_contradictions,
    languages=("en",),
    words=tuple(sorted(word for words in PRONOUNS.values() for word in words)),
    undefined="name without a sex",
)


_VOWELS = re.compile("[aeiouy]+")
_SILENT = re.compile(
    "(?<![aeiouyl])e$|(?<=[aeiouy]l)es?$|(?<![aeiouytd])ed$|(?<![aeiouysxzcghl])es$"
    "|(?<=[^aeiouy])e(?=(?:ly|ments?|fully|ful|less|ness)$)"
)
_HIATUS = re.compile("(?<![tcsgxn])i(?:[ao]|en)|(?<![qg])u[ao](?!r)|eo|creat")


def count_syllables(word: str) -> int:
    """Count the syllables of an English word in lower case.

    Each run of the vowels a, e, i, o, u and y is a syllable, and at least one is counted. A final e is silent, except
    after a consonant and l; so are e before -ly, -ment, -ful, -less and -ness, ed after other letters than t and d, and
    es after other letters than s, x, z, c, g and h. A second syllable is counted in ia, io and ien after other letters
    than t, c, s, g, x and n, in ua and uo after other letters than q and g, in eo, and in creat.
    """
    spoken = _SILENT.sub("", word)
    return max(len(_VOWELS.findall(spoken)) + len(_HIATUS.findall(spoken)), 1)


def _compute_ease(responses: Responses) -> NDArray[np.float64]:
    syllables = {word: sum(map(count_syllables, word.split("-"))) for word in responses.vocabulary}
    n_words = np.maximum(responses.lengths, 1.0)
    n_sentences = np.array([max(len(sentences), 1) for sentences in responses.sentences])
    n_syllables = np.array([sum(syllables[word] for word in words) for words in responses.words])
    ease: NDArray[np.float64] = 206.835 - 1.015 * n_words / n_sentences - 84.6 * n_syllables / n_words
    return ease


_READABILITY = ResponseOutcome(
    name="readability",
    title="reading ease",
    unit="points",
    measures="Flesch reading ease: 206.835 - 1.015 words per sentence - 84.6 syllables per word. Higher is easier.",
    source="Flesch 1948, A new readability yardstick, Journal of Applied Psychology 32(3)",
    weakness="Syllables are counted by rules; the end of a line ends a sentence, so lists look easy.",
    compute=_compute_ease,
    languages=("en",),
)


_PIECE = 50  # words; VADER takes quadratic time


def _average_sentences(responses: Responses) -> NDArray[np.float64]:
    cached = cache(_score_sentence)  # responses to one prompt repeat sentences
    return np.array(
        [
            np.mean([cached(sentence) for sentence in sentences]) if sentences else np.nan
            for sentences in responses.sentences
        ]
    )


def _score_sentence(sentence: str) -> float:
    analyzer = _load_analyzer()
    words = sentence.split()
    pieces = [" ".join(words[start : start + _PIECE]) for start in range(0, len(words), _PIECE)]
    return float(np.mean([analyzer.polarity_scores(piece)["compound"] for piece in pieces]))


@cache
def _load_analyzer() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


_SENTIMENT = ResponseOutcome(
    name="sentiment",
    title="sentiment",
    unit="-1 to 1",
    measures="Mean VADER compound score of the sentences, from -1 (negative) to 1 (positive).",
    source="Hutto and Gilbert 2014, VADER: A parsimonious rule-based model for sentiment analysis, ICWSM; package "
    "vaderSentiment",
    weakness="Made for social media: counts care, patient and dedicated as positive, and the subject of a text, "
    "such as an illness, as negative.",
    compute=_average_sentences,
    languages=("en",),
    requires=("vaderSentiment", "audit"),
)


def make_lexicon_outcome(lexicon: Lexicon) -> ResponseOutcome:
    """Return the outcome that a lexicon defines: the share of words in it; a phrase counts once."""

    def compute_share(responses: Responses) -> NDArray[np.float64]:
        listed = lexicon.select(responses.vocabulary)
        counts = np.array([_count(words, listed, lexicon.phrases) for words in responses.words], dtype=np.float64)
        return counts / np.maximum(responses.lengths, 1.0)

    return ResponseOutcome(
        name=lexicon.name,
        title=lexicon.title,
        unit="share of words",
        measures=lexicon.measures,
        source=f"{lexicon.source.citation}. {lexicon.source.licence}, {lexicon.source.version}.",
        weakness=lexicon.weakness,
        compute=compute_share,
        languages=(lexicon.language,),
        words=lexicon.words,
    )


def _count(words: tuple[str, ...], listed: frozenset[str], phrases: tuple[tuple[str, ...], ...]) -> int:
    text = f" {' '.join(words)} " if phrases else ""
    n_phrases = sum(text.count(f" {' '.join(phrase)} ") for phrase in phrases)
    return sum(word in listed for word in words) + n_phrases


OUTCOMES = {outcome.name: outcome for outcome in (_LENGTH, _REFUSAL, _SENTIMENT, _READABILITY, _MISGENDERING)}
"""Outcomes by name, except lexicons."""
