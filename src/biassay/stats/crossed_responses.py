"""Crossed test of responses: words of two poles by pairs of group words or blocks of responses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.stats.alignment import nan_mean
from biassay.stats.association import FLAT
from biassay.stats.crossed import CrossedResult, crossed_rows
from biassay.stats.permutation import TailProbability, permutation_test, sign_flip_p_value, smallest_p

_MOST_FLIPPED = 16
_FEWEST_BLOCKS = 8  # blocks that remain when blocks are merged

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CrossedResponses:
    """Crossed test of words of two poles by columns: pairs of group words, or blocks of responses.

    Attributes
    ----------
    test : CrossedResult
        The t test. It overstates the evidence of a few columns that agree, for example if a model gives shares of 0 or
        1 only; the exact tests below guard against that.
    sign_flip_p_value : float
        Two-sided p-value of random signs of the columns' differences. Exact up to 16 columns, 0 beyond.
    word_p_value : float
        Two-sided exact p-value of words permuted between the poles, with the columns fixed.
    p_value : float or None
        The largest of the three p-values. If nothing varies there is no t test, and the exact tests decide. None if
        there are too few words or columns.
    interval : (float, float) or None
        Interval of the difference. It contains 0 wherever `p_value` is above 1 - confidence. If nothing varies, it is
        that of `agreement_interval`. None if so few words or columns could never exclude 0.
    words_left_out : int
        Words without a response in some column.
    """

    test: CrossedResult
    sign_flip_p_value: float
    word_p_value: float
    p_value: float | None
    interval: tuple[float, float] | None
    words_left_out: int

    @property
    def difference(self) -> float:
        """Difference of the poles, over words with a response in every column."""
        return self.test.D

    @property
    def smallest_p_value(self) -> float:
        """Smallest p-value that this number of words and columns can have."""
        return smallest_crossed_p(*self.test.sizes[:3])

    @property
    def is_flat(self) -> bool:
        """True if nothing varies, neither between words of a pole nor between columns."""
        return self.test.is_flat


@dataclass(frozen=True)
class WordsOnlyResult:
    """Test of words of two poles with a single column.

    Attributes
    ----------
    difference : float
    p_value : float
        The larger of Welch's p-value and the exact one of words permuted between the poles.
    interval : (float, float) or None
        Welch's interval, widened to contain 0 wherever `p_value` is above 1 - confidence. None if so few words could
        never exclude 0, or if nothing varies.
    smallest_p_value : float
        Smallest p-value that this number of words can have.
    is_flat : bool
        True if all words of a pole have the same value.
    """

    difference: float
    p_value: float
    interval: tuple[float, float] | None
    smallest_p_value: float
    is_flat: bool


def words_only_test(by_word: Floats, negative: NDArray[np.bool_], confidence: float) -> WordsOnlyResult | None:
    """Test the difference of two poles with words as the sampling unit.

    Parameters
    ----------
    by_word : (words,) float
        Value of each word; NaN if missing.
    negative : (words,) bool
        True for words of the negative pole.
    confidence : float

    Returns
    -------
    WordsOnlyResult or None
        None if a pole has no word.
    """
    exact = word_permutation_test(by_word, negative)
    if exact is None:
        return None
    x, y = (by_word[part & ~np.isnan(by_word)] for part in (negative, ~negative))
    difference, floor = float(x.mean() - y.mean()), smallest_p(len(x), len(y), "two-sided")
    flat = max(float(np.ptp(x)), float(np.ptp(y))) <= FLAT * max(1.0, float(np.abs(np.append(x, y)).max()))
    if flat or min(len(x), len(y)) < 2:
        return WordsOnlyResult(difference, exact.value, None, floor, flat)
    parts = [float(pole.var(ddof=1)) / len(pole) for pole in (x, y)]
    spread = math.sqrt(sum(parts))
    df = sum(parts) ** 2 / sum(part**2 / (len(pole) - 1) for part, pole in zip(parts, (x, y), strict=True))
    p = max(2.0 * float(scipy.special.stdtr(df, -abs(difference) / spread)), exact.value)
    if floor > 1.0 - confidence:
        return WordsOnlyResult(difference, p, None, floor, flat)
    reach = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0)) * spread
    return WordsOnlyResult(
        difference, p, _include_zero((difference - reach, difference + reach), p, confidence), floor, flat
    )


def word_permutation_test(by_word: Floats, negative: NDArray[np.bool_]) -> TailProbability | None:
    """Permute words between the poles, two-sided and exact. Return None if a pole has no word."""
    x, y = (by_word[part & ~np.isnan(by_word)] for part in (negative, ~negative))
    return permutation_test(x, y, alternative="two-sided") if len(x) and len(y) else None


def crossed_response_test(
    table: Floats, negative: NDArray[np.bool_], most: float, confidence: float
) -> CrossedResponses | None:
    """Test the difference of two poles with words and columns as sampling units.

    Parameters
    ----------
    table : (columns, words) float
        NaN if missing. Rows and columns with missing values are left out; see `find_complete_part`.
    negative : (words,) bool
        True for words of the negative pole.
    most : float
        Largest possible difference of the poles.
    confidence : float

    Returns
    -------
    CrossedResponses or None
        None if fewer than two columns, or words of one pole only, are left.
    """
    columns, words = find_complete_part(table)
    poles = negative[words]
    if columns.sum() < 2 or not poles.any() or poles.all():
        return None
    kept = table[np.ix_(columns, words)].T
    test = crossed_rows(np.concatenate([kept[poles], kept[~poles]]), int(poles.sum()), confidence=confidence)
    differences = kept[poles].mean(axis=0) - kept[~poles].mean(axis=0)
    flips = sign_flip_p_value(differences) if len(differences) <= _MOST_FLIPPED else 0.0
    by_word = permutation_test(kept[poles].mean(axis=1), kept[~poles].mean(axis=1), alternative="two-sided").value
    by_t = _t_p_value(test)
    p = None if by_t is None else max(by_t, flips, by_word)
    interval = None if p is None else _compute_interval(test, p, most, confidence)
    return CrossedResponses(test, flips, by_word, p, interval, int((~words).sum()))


def _t_p_value(test: CrossedResult) -> float | None:
    """Return the p-value of the t test; 0 if nothing varies, because the exact tests decide then.

    `CrossedResult` has none below two degrees of freedom. A single word that deviates in a single column can reduce
    them to that, so this test uses the heavy tail of t with one to two degrees of freedom.
    """
    if test.is_flat:
        return 0.0
    return 2.0 * float(scipy.special.stdtr(test.df, -abs(test.t))) if test.df >= 1.0 else None


def _compute_interval(test: CrossedResult, p: float, most: float, confidence: float) -> tuple[float, float] | None:
    n, m, columns, _ = test.sizes
    if smallest_crossed_p(n, m, columns) > 1.0 - confidence:
        return None
    if test.is_flat:
        sign_known = p <= 1.0 - confidence
        return agreement_interval(test.D, (n, m), columns, most, confidence, sign_known=sign_known)
    reach = float(scipy.special.stdtrit(test.df, 0.5 + confidence / 2.0)) * math.sqrt(test.V)
    return _include_zero((max(test.D - reach, -most), min(test.D + reach, most)), p, confidence)


def agreement_interval(
    difference: float, words: tuple[int, int], columns: int, most: float, confidence: float, *, sign_known: bool
) -> tuple[float, float]:
    """Bound a difference that is the same in all words of a pole and in all columns.

    As in the interval of Clopper and Pearson (1934) for n successes in n trials, n observations that agree are
    compatible with a share q of the population, q^n = (1 - confidence) / 2, that agrees with them. The others may have
    the largest difference in either direction. If an exact test has decided about the sign, they have at most the
    reverse of the observed values (columns the opposite difference, words the value of the other pole), as that test
    assumes.

    Parameters
    ----------
    difference : float
        Difference of the poles, negative less positive words.
    words : (int, int)
        Number of words of each pole.
    columns : int
        Number of pairs of group words, or of blocks of responses.
    most : float
        Largest possible difference; infinite for log-odds.
    confidence : float
    sign_known : bool
        If True, an exact test has rejected a difference of 0.

    Returns
    -------
    (float, float)
        Lower and upper end.
    """
    outside = (1.0 - confidence) / 2.0
    agree = min(math.pow(outside, 1.0 / columns), _smallest_agreeing_shares(*words, outside) / 2.0)
    low, high = difference * agree - most * (1.0 - agree), difference * agree + most * (1.0 - agree)
    reverse = difference * (2.0 * agree - 1.0)
    if not sign_known:
        return low, high
    return (reverse, high) if difference > 0.0 else (low, reverse)


def _smallest_agreeing_shares(n: int, m: int, outside: float) -> float:
    """Return the smallest u + v with u^n v^m = outside: shares of two populations whose n and m draws all agree."""
    scale = math.exp((math.log(outside) - n * math.log(n) - m * math.log(m)) / (n + m))
    if max(n, m) * scale <= 1.0:
        return (n + m) * scale
    return 1.0 + math.pow(outside, 1.0 / min(n, m))


def pool_blocks(table: Floats) -> Floats:
    """Merge blocks of responses (blocks, words) by two, three ... until no block lacks a word.

    A response often omits some words. Without merging, `find_complete_part` would drop whole words and blocks because
    of single responses. Words and blocks without any value do not count; at least eight blocks remain.
    """
    seen = ~np.isnan(table).all(axis=0)
    table = table[~np.isnan(table).all(axis=1)]
    pooled = table
    for size in range(2, len(table) // _FEWEST_BLOCKS + 1):
        if not np.isnan(pooled[:, seen]).any():
            break
        n_blocks = len(table) // size
        pooled = np.stack([nan_mean(table[start::n_blocks], axis=0) for start in range(n_blocks)])
    return pooled


def _include_zero(interval: tuple[float, float], p: float, confidence: float) -> tuple[float, float]:
    """Extend an interval to 0 if the p-value is above 1 - confidence."""
    return interval if p <= 1.0 - confidence else (min(interval[0], 0.0), max(interval[1], 0.0))


def smallest_crossed_p(n: int, m: int, columns: int) -> float:
    """Return the smallest p-value that n against m words, crossed with `columns` columns, can have.

    Parameters
    ----------
    n, m : int
        Number of words of each pole.
    columns : int

    Returns
    -------
    float

    Examples
    --------
    >>> smallest_crossed_p(8, 8, 4)
    0.125
    """
    flipped = 2.0 ** (1 - columns) if columns <= _MOST_FLIPPED else 0.0
    return max(flipped, smallest_p(n, m, "two-sided"))


def find_complete_part(table: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Select rows and columns (two bool masks) of a table so that nothing is missing.

    The row or column with the largest share of missing values is dropped first, rows before columns, until none is
    left.
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
