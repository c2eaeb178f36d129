"""Sentiment of a response by VADER."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.outcomes.responses import Responses

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


OUTCOME = ResponseOutcome(
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
