"""Word association tests: which group words a model gives to words of two poles, and whether other words would do so.

Answers come as a table of answers x attribute words: 1 where a word was given to the stigmatised group word, 0 where it
was given to the default one, NaN where it was not read. Log-odds of the two take their place where a model gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.crossed import CONFIDENCE
from biassay.stats.crossed_answers import CrossedAnswers, crossed_answers, exchanged_words, mean_of_rows, pooled_blocks
from biassay.stats.tails import TailProbability

__all__ = ["WordAssociation", "checked_values", "word_association"]

Claim = Literal["pairs", "answers", "words"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WordAssociation:
    """What a model gives to whom.

    Attributes
    ----------
    difference : float
        Mean over negative words less mean over positive words: of shares given to the stigmatised group, or of
        log-odds. Above 0: as the stereotype has it. NaN where a pole has no word that was read.
    by_word : (words,) float
        Share given to the stigmatised group, or log-odds; NaN where a word was not read in both orders.
    by_pair, by_block : (pairs, words), (blocks, words) float
        The same by pair of group words, and by block of answers.
    first : float
        Mean share, or log-odds, of the group word that is named first: 0.5, or 0, for a model that does not care. NaN
        where orders are not stated.
    exact : TailProbability or None
        Two-sided: words are exchangeable between the poles, in these very answers. None: a pole has no word.
    with_answers : CrossedAnswers or None
        Other words and other answers would show it, with these group words. None: fewer than two blocks of answers.
    with_pairs : CrossedAnswers or None
        Other words and other pairs of group words would show it. None: fewer than two pairs.
    log_odds : bool
    """

    difference: float
    by_word: Floats
    by_pair: Floats
    by_block: Floats
    first: float
    exact: TailProbability | None
    with_answers: CrossedAnswers | None
    with_pairs: CrossedAnswers | None
    log_odds: bool = False

    @property
    def claim(self) -> Claim:
        """Beyond what the headline p-value holds: other pairs where there are several, else other answers, if drawn."""
        if len(self.by_pair) > 1:
            return "pairs"
        return "words" if self.log_odds else "answers"

    @property
    def crossed(self) -> CrossedAnswers | None:
        """The crossed test of the claim."""
        return {"pairs": self.with_pairs, "answers": self.with_answers, "words": None}[self.claim]

    @property
    def p_value(self) -> float | None:
        """Of the claim, two-sided. None: too few words, pairs or answers."""
        if self.claim == "words":
            return None if self.exact is None else self.exact.value
        return None if self.crossed is None else self.crossed.p_value

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the difference, by the crossed test of the claim."""
        return None if self.crossed is None else self.crossed.interval


def word_association(
    values: ArrayLike,
    negative: ArrayLike,
    *,
    pairs: ArrayLike | None = None,
    stigmatised_first: ArrayLike | None = None,
    blocks: ArrayLike | None = None,
    log_odds: bool = False,
    confidence: float = CONFIDENCE,
) -> WordAssociation:
    """Are negative words, more than positive ones, given to the stigmatised group?

    Parameters
    ----------
    values : (answers, words) array-like
        1: given to the stigmatised group word, 0: to the default one, NaN: not read. Or log-odds.
    negative : (words,) bool
        Whether a word is of the negative pole.
    pairs : (answers,) int, optional
        Which pair of group words was asked; one pair by default.
    stigmatised_first : (answers,) bool, optional
        The order of the group words in the prompt. If stated, both orders count alike, and a word that was not read in
        both of them was not read.
    blocks : (answers,) int, optional
        Answers to prompts that differ in the order of the group words alone have the same number; every answer by
        itself by default.
    log_odds : bool
        Whether values are log-odds.
    confidence : float

    Notes
    -----
    The exact test permutes words between the poles and takes the answers as they are. Answers of one model to one
    prompt share what the model drew when it answered, and those with one pair of group words share what it makes of
    these, so that the poles may differ in them by chance: the crossed tests add how much the difference of poles varies
    from block to block of answers, or from pair to pair.

    Simulated with 4 and 8 words a pole, 50 answers, and words, pairs, answers and orders that differ in what they lean
    to, poles not: the p-value of the claim was at most .05 in 0 to 6 of 100.
    """
    table, is_negative = checked_values(values, negative, log_odds=log_odds)
    answers = len(table)
    pair_of = _labels(pairs, answers, "pairs")
    order = None if stigmatised_first is None else _labels(stigmatised_first, answers, "orders").astype(bool)
    by_pair = np.stack([_balanced(table, order, pair_of == pair) for pair in np.unique(pair_of)])
    by_word = mean_of_rows(by_pair)
    by_block = _by_block(table, order, blocks)
    x, y = (by_word[part & ~np.isnan(by_word)] for part in (is_negative, ~is_negative))
    exact = exchanged_words(by_word, is_negative)
    most = np.inf if log_odds else 1.0
    with_answers, with_pairs = (
        crossed_answers(columns, is_negative, most, confidence) for columns in (pooled_blocks(by_block), by_pair)
    )
    return WordAssociation(
        float(x.mean() - y.mean()) if exact is not None else np.nan,
        by_word,
        by_pair,
        by_block,
        _first(table, order, log_odds),
        exact,
        with_answers,
        with_pairs,
        log_odds,
    )


def checked_values(
    values: ArrayLike, negative: ArrayLike, *, log_odds: bool = False
) -> tuple[Floats, NDArray[np.bool_]]:
    """A table of answers x words, and which words are negative; what cannot be used is refused."""
    table, poles = np.asarray(values, dtype=np.float64), np.asarray(negative, dtype=bool)
    if table.ndim != 2 or not len(table) or poles.shape != table.shape[1:]:
        raise UsageError(
            "values are a table of answers x words, with a pole for every word, got shapes "
            f"{table.shape} and {poles.shape}"
        )
    if poles.all() or not poles.any():
        raise UsageError("words of both poles are needed, got one pole only")
    if np.isinf(table).any():
        raise UsageError("log-odds must be finite, got one that is not; leave such a word out as NaN")
    if not log_odds and not np.isin(table[~np.isnan(table)], (0.0, 1.0)).all():
        raise UsageError("values are 1, 0 or NaN; say log_odds=True if they are log-odds")
    return table, poles


def _by_block(table: Floats, order: NDArray[np.bool_] | None, blocks: ArrayLike | None) -> Floats:
    """Means of blocks, (blocks, words); answers by themselves have no second order."""
    if blocks is None:
        return table
    labels = _labels(blocks, len(table), "blocks")
    return np.stack([_balanced(table, order, labels == block) for block in np.unique(labels)])


def _balanced(table: Floats, order: NDArray[np.bool_] | None, taken: NDArray[np.bool_]) -> Floats:
    """Means by word over the answers ``taken``; where orders are stated, the mean of both orders."""
    if order is None:
        return mean_of_rows(table[taken])
    one, other = (mean_of_rows(table[taken & (order == first)]) for first in (False, True))
    return np.asarray((one + other) / 2.0)


def _first(table: Floats, order: NDArray[np.bool_] | None, log_odds: bool) -> float:
    """Of the group word that is named first, over both orders alike."""
    if order is None:
        return np.nan
    whole = 0.0 if log_odds else 1.0
    turned = np.where(order[:, None], table, whole - table)
    by_order = [turned[order == first] for first in (False, True)]
    return float(np.mean([np.nan if np.isnan(own).all() else np.nanmean(own) for own in by_order]))


def _labels(given: ArrayLike | None, answers: int, what: str) -> NDArray[np.int64]:
    labels = np.zeros(answers, dtype=np.int64) if given is None else np.asarray(given)
    if labels.shape != (answers,):
        raise UsageError(f"{what} must be stated for each of {answers} answers, got shape {labels.shape}")
    return labels
