"""Words of two poles crossed with columns: pairs of group words, or blocks of answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.stats.association import FLAT
from biassay.stats.crossed import Crossed, crossed_rows
from biassay.stats.permutation import permutation_test, smallest_p
from biassay.stats.tails import TailProbability

__all__ = [
    "CrossedAnswers",
    "WordsAlone",
    "agreement_interval",
    "complete_part",
    "crossed_answers",
    "crossed_floor",
    "exchanged_words",
    "mean_of_rows",
    "pooled_blocks",
    "words_alone",
]

_MOST_FLIPPED = 16
_FEWEST_BLOCKS = 8  # that are left when blocks are joined

Floats = NDArray[np.float64]


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
        The largest of both and of `by_word`: few words say little, however much they agree. Where nothing varies there
        is no t, and the two exact tests decide. None: too few words or columns.
    by_word : float
        Two-sided and exact: words are exchangeable between the poles, in these very columns.
    interval : (float, float) or None
        Of the difference; it holds 0 where the p-value is not small enough. Where nothing varies it is the bound of
        `agreement_interval`. None: with so few words or columns none could leave out 0.
    words_left_out : int
        Because they were not answered throughout.
    """

    test: Crossed
    sign_flips: float
    by_word: float
    p_value: float | None
    interval: tuple[float, float] | None
    words_left_out: int

    @property
    def difference(self) -> float:
        """Of the poles, over what was answered throughout."""
        return self.test.D

    @property
    def floor(self) -> float:
        """The smallest p-value that so many words and columns can have."""
        return crossed_floor(*self.test.sizes[:3])

    @property
    def flat(self) -> bool:
        """Nothing varies, neither from word to word of a pole nor from column to column."""
        return self.test.is_flat


@dataclass(frozen=True)
class WordsAlone:
    """Words of two poles, asked in one column that does not vary.

    ``p_value`` is the larger of Welch's and the exact one of exchanged words, and the interval, Welch's, holds 0 where
    it is not small enough. None: with so few words none could leave out 0, or nothing varies.
    """

    difference: float
    p_value: float
    interval: tuple[float, float] | None
    floor: float
    flat: bool


def words_alone(by_word: Floats, negative: NDArray[np.bool_], confidence: float) -> WordsAlone | None:
    """How much larger negative words are than positive ones, with other words; None: a pole has no word."""
    exact = exchanged_words(by_word, negative)
    if exact is None:
        return None
    x, y = (by_word[part & ~np.isnan(by_word)] for part in (negative, ~negative))
    difference, floor = float(x.mean() - y.mean()), smallest_p(len(x), len(y), "two-sided")
    flat = max(float(np.ptp(x)), float(np.ptp(y))) <= FLAT * max(1.0, float(np.abs(np.append(x, y)).max()))
    if flat or min(len(x), len(y)) < 2:
        return WordsAlone(difference, exact.value, None, floor, flat)
    parts = [float(pole.var(ddof=1)) / len(pole) for pole in (x, y)]
    spread = math.sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(part**2 / (len(pole) - 1) for part, pole in zip(parts, (x, y), strict=True))
    p = max(2.0 * float(scipy.special.stdtr(df, -abs(difference) / spread)), exact.value)
    if floor > 1.0 - confidence:
        return WordsAlone(difference, p, None, floor, flat)
    reach = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0)) * spread
    return WordsAlone(difference, p, _with_zero((difference - reach, difference + reach), p, confidence), floor, flat)


def exchanged_words(by_word: Floats, negative: NDArray[np.bool_]) -> TailProbability | None:
    """The exact two-sided test of words that are exchangeable between the poles; None: a pole has no word."""
    x, y = (by_word[part & ~np.isnan(by_word)] for part in (negative, ~negative))
    return permutation_test(x, y, alternative="two-sided") if len(x) and len(y) else None


def crossed_answers(
    table: Floats, negative: NDArray[np.bool_], most: float, confidence: float
) -> CrossedAnswers | None:
    """The crossed test of a table (columns, words); ``most`` is the largest difference that is possible."""
    columns, words = complete_part(table)
    poles = negative[words]
    if columns.sum() < 2 or not poles.any() or poles.all():
        return None
    kept = table[np.ix_(columns, words)].T
    test = crossed_rows(np.concatenate([kept[poles], kept[~poles]]), int(poles.sum()), confidence=confidence)
    flips = _sign_flips(kept[poles].mean(axis=0) - kept[~poles].mean(axis=0))
    by_word = permutation_test(kept[poles].mean(axis=1), kept[~poles].mean(axis=1), alternative="two-sided").value
    by_t = _p_by_t(test)
    p = None if by_t is None else max(by_t, flips, by_word)
    interval = None if p is None else _interval(test, p, most, confidence)
    return CrossedAnswers(test, flips, by_word, p, interval, int((~words).sum()))


def _p_by_t(test: Crossed) -> float | None:
    """Return the p-value by t; 0 where nothing varies, because the exact tests decide then.

    `Crossed` gives none below two degrees of freedom. One deviating word in one column brings them down to that,
    however clear the others are, so here the heavy tail of t with one to two degrees of freedom is used.
    """
    if test.is_flat:
        return 0.0
    return 2.0 * float(scipy.special.stdtr(test.df, -abs(test.t))) if test.df >= 1.0 else None


def _interval(test: Crossed, p: float, most: float, confidence: float) -> tuple[float, float] | None:
    n, m, columns, _ = test.sizes
    if crossed_floor(n, m, columns) > 1.0 - confidence:
        return None
    if test.is_flat:
        sign_known = p <= 1.0 - confidence
        return agreement_interval(test.D, (n, m), columns, most, confidence, sign_known=sign_known)
    reach = float(scipy.special.stdtrit(test.df, 0.5 + confidence / 2.0)) * math.sqrt(test.V)
    return _with_zero((max(test.D - reach, -most), min(test.D + reach, most)), p, confidence)


def agreement_interval(
    difference: float, words: tuple[int, int], columns: int, most: float, confidence: float, *, sign_known: bool
) -> tuple[float, float]:
    """Bound a difference that is the same in all words of a pole and in all columns.

    As in the interval of Clopper and Pearson for n successes in n trials, n observations that agree are compatible
    with a share q of the population, q^n = (1 - confidence) / 2, that agrees with them. The others may show the
    largest difference in either direction. Where an exact test has decided about the sign, they may show the reverse
    of what was seen (columns the opposite difference, words the value of the other pole), as that test takes it.

    Parameters
    ----------
    difference : float
        Difference of the poles, negative less positive words.
    words : (int, int)
        Number of words of each pole.
    columns : int
        Number of pairs of group words, or of blocks of answers.
    most : float
        Largest difference that is possible; infinite for log-odds.
    confidence : float
    sign_known : bool
        If True, an exact test has rejected a difference of 0.

    Returns
    -------
    (float, float)
        The smaller and the larger end.
    """
    outside = (1.0 - confidence) / 2.0
    agree = min(math.pow(outside, 1.0 / columns), _fewest_agreeing(*words, outside) / 2.0)
    low, high = difference * agree - most * (1.0 - agree), difference * agree + most * (1.0 - agree)
    reverse = difference * (2.0 * agree - 1.0)
    if not sign_known:
        return low, high
    return (reverse, high) if difference > 0.0 else (low, reverse)


def _fewest_agreeing(n: int, m: int, outside: float) -> float:
    """Return the smallest u + v with u^n v^m = outside: shares of two populations whose n and m draws all agree."""
    scale = math.exp((math.log(outside) - n * math.log(n) - m * math.log(m)) / (n + m))
    if max(n, m) * scale <= 1.0:
        return (n + m) * scale
    return 1.0 + math.pow(outside, 1.0 / min(n, m))


def pooled_blocks(table: Floats) -> Floats:
    """Blocks of answers (blocks, words), joined by two, three ... until every word that was read is in every one.

    A reply often gives some words to nobody; without this, words and blocks would be left out for single replies.
    Blocks without any word are left out.
    """
    read = ~np.isnan(table).all(axis=0)
    table = table[~np.isnan(table).all(axis=1)]
    pooled = table
    for size in range(2, len(table) // _FEWEST_BLOCKS + 1):
        if not np.isnan(pooled[:, read]).any():
            break
        places = np.arange(len(table)) % (len(table) // size)
        pooled = np.stack([mean_of_rows(table[places == place]) for place in np.unique(places)])
    return pooled


def _with_zero(interval: tuple[float, float], p: float, confidence: float) -> tuple[float, float]:
    """An interval that holds 0 where the p-value is not small enough."""
    return interval if p <= 1.0 - confidence else (min(interval[0], 0.0), max(interval[1], 0.0))


def crossed_floor(n: int, m: int, columns: int) -> float:
    """Return the smallest p-value that n against m words, crossed with so many columns, can have.

    Examples
    --------
    >>> crossed_floor(8, 8, 4)
    0.125
    """
    flipped = 2.0 ** (1 - columns) if columns <= _MOST_FLIPPED else 0.0
    return max(flipped, smallest_p(n, m, "two-sided"))


def _sign_flips(differences: Floats) -> float:
    """The share of all choices of signs that take the sum as far from 0 as it is."""
    if len(differences) > _MOST_FLIPPED:
        return 0.0
    sums = np.zeros(1)
    for one in differences:
        sums = np.concatenate([sums + one, sums - one])
    least = abs(float(differences.sum())) - FLAT * max(1.0, float(np.abs(differences).max()))
    return float((np.abs(sums) >= least).mean())


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


def mean_of_rows(table: Floats) -> Floats:
    """Over rows, of what is there; NaN where nothing is."""
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    total = np.where(there, table, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, counts, out=np.full(table.shape[1], np.nan), where=counts > 0))
