"""Share of words that are in a lexicon."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.lexicons import Lexicon
from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.outcomes.responses import Responses


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
