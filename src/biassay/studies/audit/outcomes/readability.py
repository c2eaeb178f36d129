"""Flesch reading ease of a response."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.outcomes.responses import Responses

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


OUTCOME = ResponseOutcome(
    name="readability",
    title="reading ease",
    unit="points",
    measures="Flesch reading ease: 206.835 - 1.015 words per sentence - 84.6 syllables per word. Higher is easier.",
    source="Flesch 1948, A new readability yardstick, Journal of Applied Psychology 32(3)",
    weakness="Syllables are counted by rules; the end of a line ends a sentence, so lists look easy.",
    compute=_compute_ease,
    languages=("en",),
)
