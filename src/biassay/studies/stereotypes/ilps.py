"""ILPS, ILPS* and SeT: how much a group raises a word in a language model, from what the model answered piece by piece.

Every measure compares the answers about a word, piece by piece, in a text with the group and in the same text without
it (the prior). ``paper`` is what Cao et al. define, ``cao2022-code`` what their released code computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

__all__ = ["MEASURES", "VARIANTS", "Measure", "Variant", "WordPieces", "score_words"]

Measure = Literal["ilps", "ilps-star", "set"]
Variant = Literal["paper", "cao2022-code"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
VARIANTS: tuple[Variant, ...] = get_args(Variant)
_F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordPieces:
    """Answers about the pieces of n words, one word behind the other.

    Attributes
    ----------
    starts : (n,) int
        Where the pieces of a word begin; every word has at least one.
    log_p : (m,) float64
        Logarithm of the probability of a piece, the earlier ones put in place.
    log_initial, log_continuing : (m,) float64
        Logarithm of the probability of all tokens that begin a word, and of all that continue one.
    distance : (m,) float64
        How far the output matrix must move until the piece is on top (the root of Delta).
    """

    starts: NDArray[np.intp]
    log_p: _F64
    log_initial: _F64
    log_continuing: _F64
    distance: _F64

    @classmethod
    def of(cls, answers: NDArray[np.floating], starts: NDArray[np.intp]) -> WordPieces:
        """From the columns that a language model answers, (m, 4)."""
        return cls(starts, *np.asarray(answers, dtype=np.float64).T)

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether a piece is the first of its word."""
        first = np.zeros(len(self.log_p), dtype=bool)
        first[self.starts] = True
        return first


def score_words(
    own: WordPieces,
    prior: WordPieces,
    measure: Measure,
    variant: Variant = "paper",
    decisive: NDArray[np.bool_] | None = None,
) -> _F64:
    """Scores (n,) of words in texts with a group, against the same words in the prior's texts.

    ``decisive`` (m,) marks the pieces by which SeT may judge a word, all by default: what two adjectives of a pair
    begin with in common does not tell one from the other. NaN where a score is undefined: a Delta of zero has no
    logarithm, and the released form of SeT has none of distances of one and more.
    """
    if measure == "ilps":
        return np.asarray(own.log_p[own.starts] - prior.log_p[prior.starts])
    if measure == "ilps-star":
        return _chain_pieces(own, variant) - _chain_pieces(prior, variant)
    if variant == "cao2022-code":
        return _easiest_bound(own) - _easiest_bound(prior)
    return _log_ratio(own, prior, decisive)


def _chain_pieces(pieces: WordPieces, variant: Variant) -> _F64:
    """Log probability of whole words; the released code divides every piece by the mass of its kind of token."""
    log_p = pieces.log_p
    if variant == "cao2022-code":
        log_p = log_p - np.where(pieces.is_first, pieces.log_initial, pieces.log_continuing)
    return np.asarray(np.add.reduceat(log_p, pieces.starts))


def _easiest_bound(pieces: WordPieces) -> _F64:
    """log(1 - d) of the piece with the largest distance."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log1p(-pieces.distance)
    found = np.minimum.reduceat(np.where(np.isnan(logs), -np.inf, logs), pieces.starts)
    return np.where(np.isinf(found), np.nan, found)


def _log_ratio(own: WordPieces, prior: WordPieces, decisive: NDArray[np.bool_] | None) -> _F64:
    """Return the largest -log(Delta / Delta of the prior) over the pieces; Delta is the squared distance.

    A piece that is on top in the prior's text has no such score, and the others decide; one that is on top only with
    the group would have an infinite one, and then the word has none.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = 2.0 * (np.log(prior.distance) - np.log(own.distance))
    counted = np.ones(len(scores), dtype=bool) if decisive is None else decisive
    best = np.maximum.reduceat(np.where(counted & (prior.distance > 0.0), scores, -np.inf), own.starts)
    return np.where(np.isinf(best), np.nan, best)
