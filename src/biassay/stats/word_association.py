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
from biassay.stats.association import FLAT
from biassay.stats.crossed import CONFIDENCE, Crossed, crossed_rows
from biassay.stats.permutation import permutation_test
from biassay.stats.tails import TailProbability

__all__ = ["CrossedAnswers", "WordAssociation", "checked_values", "complete_part", "word_association"]

_MOST_FLIPPED = 16

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
    by_pair : (pairs, words) float
        The same by pair of group words.
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


@dataclass(frozen=True)
class CrossedAnswers:
    """Words crossed with pairs of group words, or with blocks of answers.

    Attributes
    ----------
    test : Crossed
        By t. A model that is sure of itself gives a share of 0 or 1 in every column, and t would take few columns that
        agree for more than they are.
    sign_flips : float
        Two-sided: the difference of the poles has either sign in every column, by the toss of a coin; exact up to 16
        columns, 0 beyond.
    p_value : float or None
        The larger of both. Where nothing varies, so that there is no t, that of the exact test of words takes its
        place. None: too few words or columns.
    interval : (float, float) or None
        Of the difference; it holds 0 where the p-value is not small enough. None: with so few columns none could leave
        out 0, or nothing varies.
    words_left_out, columns_left_out : int
        Because they were not answered throughout.
    """

    test: Crossed
    sign_flips: float
    p_value: float | None
    interval: tuple[float, float] | None
    words_left_out: int
    columns_left_out: int

    @property
    def floor(self) -> float:
        """The smallest p-value that so many columns can have."""
        return _floor(self.test.sizes[2])


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
    by_word = _mean(by_pair)
    x, y = (by_word[part & ~np.isnan(by_word)] for part in (is_negative, ~is_negative))
    found = bool(len(x) and len(y))
    exact = permutation_test(x, y, alternative="two-sided") if found else None
    most = np.inf if log_odds else 1.0
    with_answers, with_pairs = (
        _crossed(columns, is_negative, exact, most, confidence)
        for columns in (_by_block(table, order, blocks), by_pair)
    )
    return WordAssociation(
        float(x.mean() - y.mean()) if found else np.nan,
        by_word,
        by_pair,
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


def complete_part(table: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows and columns to keep so that nothing is missing.

    What lacks the largest share goes first, and then is looked at again; rows go before columns.
    """
    rows, columns = (np.ones(size, dtype=bool) for size in table.shape)
    missing = np.isnan(table)
    while (left := missing[np.ix_(rows, columns)]).any():
        by_row, by_column = left.mean(axis=1), left.mean(axis=0)
        if by_row.max() >= by_column.max():
            rows[np.flatnonzero(rows)[by_row.argmax()]] = False
        else:
            columns[np.flatnonzero(columns)[by_column.argmax()]] = False
    return rows, columns


def _crossed(
    table: Floats, negative: NDArray[np.bool_], exact: TailProbability | None, most: float, confidence: float
) -> CrossedAnswers | None:
    """The crossed test of a table (columns, words); ``most`` is the largest difference that is possible."""
    columns, words = complete_part(table)
    poles = negative[words]
    if columns.sum() < 2 or not poles.any() or poles.all():
        return None
    kept = table[np.ix_(columns, words)].T
    test = crossed_rows(np.concatenate([kept[poles], kept[~poles]]), int(poles.sum()), confidence=confidence)
    flips = _sign_flips(kept[poles].mean(axis=0) - kept[~poles].mean(axis=0))
    by_t = exact.value if test.df == 0.0 and exact is not None else test.p_value
    p = None if by_t is None else max(by_t, flips)
    interval = test.interval if _floor(kept.shape[1]) <= 1.0 - confidence else None
    if interval is not None and p is not None:
        low, high = max(interval[0], -most), min(interval[1], most)
        interval = (low, high) if p <= 1.0 - confidence else (min(low, 0.0), max(high, 0.0))
    return CrossedAnswers(test, flips, p, interval, int((~words).sum()), int((~columns).sum()))


def _floor(columns: int) -> float:
    return float(2.0 ** (1 - columns))


def _sign_flips(differences: Floats) -> float:
    """The share of all choices of signs that take the sum as far from 0 as it is."""
    if len(differences) > _MOST_FLIPPED:
        return 0.0
    sums = np.zeros(1)
    for one in differences:
        sums = np.concatenate([sums + one, sums - one])
    least = abs(float(differences.sum())) - FLAT * max(1.0, float(np.abs(differences).max()))
    return float((np.abs(sums) >= least).mean())


def _by_block(table: Floats, order: NDArray[np.bool_] | None, blocks: ArrayLike | None) -> Floats:
    """Means of blocks, (blocks, words); answers by themselves have no second order."""
    if blocks is None:
        return table
    labels = _labels(blocks, len(table), "blocks")
    return np.stack([_balanced(table, order, labels == block) for block in np.unique(labels)])


def _balanced(table: Floats, order: NDArray[np.bool_] | None, taken: NDArray[np.bool_]) -> Floats:
    """Means by word over the answers ``taken``; where orders are stated, the mean of both orders."""
    if order is None:
        return _mean(table[taken])
    one, other = (_mean(table[taken & (order == first)]) for first in (False, True))
    return np.asarray((one + other) / 2.0)


def _mean(table: Floats) -> Floats:
    """Over rows, of what is there; NaN where nothing is."""
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    total = np.where(there, table, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, counts, out=np.full(table.shape[1], np.nan), where=counts > 0))


def _first(table: Floats, order: NDArray[np.bool_] | None, log_odds: bool) -> float:
    """Of the group word that is named first, over both orders alike."""
    if order is None:
        return np.nan
    whole = 0.0 if log_odds else 1.0
    turned = np.where(order[:, None], table, whole - table)
    return float(np.nanmean(turned)) if not np.isnan(turned).all() else np.nan


def _labels(given: ArrayLike | None, answers: int, what: str) -> NDArray[np.int64]:
    labels = np.zeros(answers, dtype=np.int64) if given is None else np.asarray(given)
    if labels.shape != (answers,):
        raise UsageError(f"{what} must be stated for each of {answers} answers, got shape {labels.shape}")
    return labels
