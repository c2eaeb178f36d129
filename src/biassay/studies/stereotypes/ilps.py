"""ILPS, ILPS* and SeT: how much a group raises a word in a language model, from its outputs by word piece.

Every measure compares the answers about a word, piece by piece, in a text with the group and in the same text without
it (the prior). ``paper`` is what Cao et al. define, ``cao2022-code`` what their released code computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Measure = Literal["ilps", "ilps-star", "set"]
Variant = Literal["paper", "cao2022-code"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
VARIANTS: tuple[Variant, ...] = get_args(Variant)
_F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordPieces:
    """Model outputs for the m pieces of n words.

    Attributes
    ----------
    starts : (n,) int
        Index of the first piece of each word; every word has at least one.
    log_p : (m,) float64
        Log probability of each piece, given the earlier pieces of its word.
    log_initial, log_continuing : (m,) float64
        Log probability of all tokens that begin a word, and of all tokens that continue one.
    distance : (m,) float64
        Smallest change of the output matrix that makes the piece the most likely one: the square root of Delta.
    """

    starts: NDArray[np.intp]
    log_p: _F64
    log_initial: _F64
    log_continuing: _F64
    distance: _F64

    @classmethod
    def from_columns(cls, answers: NDArray[np.floating], starts: NDArray[np.intp]) -> WordPieces:
        """Make from the columns (m, 4) that a language model returns, in the order of the attributes."""
        return cls(starts, *np.asarray(answers, dtype=np.float64).T)

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Flags of pieces that are the first of their word."""
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
    """Score words in sentences about a group, compared with the same words in the prior's sentences.

    Parameters
    ----------
    own, prior : WordPieces
        Model outputs for n words of m pieces, in sentences about the group and in those of the prior.
    measure : {"ilps", "ilps-star", "set"}
        Measure to compute.
    variant : {"paper", "cao2022-code"}
        Definition of the measure: as printed, or as released.
    decisive : (m,) bool, optional
        Pieces by which SeT may judge a word; all by default. A beginning that both adjectives of a pair share cannot
        tell them apart.

    Returns
    -------
    (n,) float64
        NaN where a score is undefined: a Delta of zero has no logarithm, and the released form of SeT is undefined for
        distances of one or more.
    """
    if measure == "ilps":
        return np.asarray(own.log_p[own.starts] - prior.log_p[prior.starts])
    if measure == "ilps-star":
        return _chain_pieces(own, variant) - _chain_pieces(prior, variant)
    if variant == "cao2022-code":
        return _easiest_bound(own) - _easiest_bound(prior)
    return _log_ratio(own, prior, decisive)


def _chain_pieces(pieces: WordPieces, variant: Variant) -> _F64:
    """Compute log-probabilities of whole words; the released code divides each piece by the mass of its kind."""
    log_p = pieces.log_p
    if variant == "cao2022-code":
        log_p = log_p - np.where(pieces.is_first, pieces.log_initial, pieces.log_continuing)
    return np.asarray(np.add.reduceat(log_p, pieces.starts))


def _easiest_bound(pieces: WordPieces) -> _F64:
    """Compute log(1 - d) of the piece with the largest distance."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log1p(-pieces.distance)
    found = np.minimum.reduceat(np.where(np.isnan(logs), -np.inf, logs), pieces.starts)
    return np.where(np.isinf(found), np.nan, found)


def _log_ratio(own: WordPieces, prior: WordPieces, decisive: NDArray[np.bool_] | None) -> _F64:
    """Return the largest -log(Delta / Delta of the prior) over the pieces; Delta is the squared distance.

    A piece that ranks first in the prior's text has no ratio and is ignored. If a piece ranks first only with the
    group, its ratio is infinite and the word has no score.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = 2.0 * (np.log(prior.distance) - np.log(own.distance))
    counted = np.ones(len(scores), dtype=bool) if decisive is None else decisive
    best = np.maximum.reduceat(np.where(counted & (prior.distance > 0.0), scores, -np.inf), own.starts)
    return np.where(np.isinf(best), np.nan, best)
