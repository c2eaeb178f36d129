"""The crossed test: target words and attribute words both are samples of what they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import nan

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.association import FLAT
from biassay.stats.blocks import as_table, fits_one_block, largest_value, row_blocks
from biassay.stats.skewness import sample_skewness, skewness_error, transform_hall
from biassay.stats.subsets import log_binomial

__all__ = ["CONFIDENCE", "LEAST_DF", "Components", "Crossed", "crossed_rows", "crossed_test", "crossed_test_without"]

CONFIDENCE = 0.95
LEAST_WORDS = 2
"""Words per set for a variance."""
LEAST_TESTED = 3
"""Words per set for a p-value. With two, their variance is near 0 whenever they happen to agree."""
LEAST_DF = 2.0
"""With fewer degrees of freedom there are too few words for a p-value."""
_AGREEMENT = 1e-6  # a standard error this small beside D is the rounding of vectors in float32
_NONZERO = 1e3 * FLAT
_TIE = 1e-9  # rounding of the logarithm of a probability
_NARROW = 0.25  # values are close to one of two numbers if they spread around each by this share of the gap between
_MUCH_SMALLER = 0.5  # ratio of set sizes below which a small set may hide the skewness that the larger one shows
_EVIDENT = 2.5  # standard errors from which the skewness of the larger set counts
_LARGEST = 1e50  # beyond, products of variances overflow

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Components:
    """How much associations vary from target word to target word, from attribute word to attribute word, and beyond.

    ``targets`` is the variance of a target's association, ``attributes`` that of an attribute's, ``residual`` that of a
    single cosine. The first two are estimated by differences, which may be negative; they count as 0 then.
    """

    targets: float
    attributes: float
    residual: float

    def variance(self, n: float, m: float, k: float, l: float) -> float:  # noqa: E741
        """Of D with n and m target words, k and l attribute words."""
        return sum(self.parts(n, m, k, l))

    def parts(self, n: float, m: float, k: float, l: float) -> tuple[float, float, float]:  # noqa: E741
        """What target words, attribute words and the residual add to it; without a second set of attributes, l is 0."""
        over_t, over_a = _over(n, m), _over(k, l)
        targets, attributes = max(self.targets, 0.0), max(self.attributes, 0.0)
        return over_t * targets, over_a * attributes, over_t * over_a * self.residual


@dataclass(frozen=True)
class Crossed:
    """What the crossed test found.

    Attributes
    ----------
    D : float
        How much closer X than Y is to A than to B, in cosine units.
    V, V_T, V_A, V_E : float
        The variance of D, and what target words, attribute words and the residual add to it. NaN with one word in a
        set.
    df : float
        Degrees of freedom of t = D / sqrt(V), by Satterthwaite. NaN where there is no t test.
    interval : (float, float) or None
        Confidence interval of D. None: too few words, or all words agree.
    p_value, p_greater : float or None
        Two-sided, and of D > 0. None: too few words, or nothing differs at all.
    components : Components or None
    skewness : float
        Skewness of D, estimated from the third moments of associations within each set. NaN: fewer than three words in
        a set, or no t test.
    sizes : (int, int, int, int)
        Words of X, Y, A and B; of `crossed_rows`, rows of both kinds, columns, and 0.
    confidence : float
    hidden_skewness : float
        Size of the skewness that D may have if a set with less than half the words of the other one on its side is as
        skewed as that one. 0 if the larger set is not clearly skewed.
    widening : float
        Amount by which `interval` is wider on each side than t alone makes it, because associations are close to one of
        two values.
    """

    D: float
    V: float
    V_T: float
    V_A: float
    V_E: float
    df: float
    interval: tuple[float, float] | None
    p_value: float | None
    p_greater: float | None
    components: Components | None
    sizes: tuple[int, int, int, int]
    confidence: float = CONFIDENCE
    skewness: float = nan
    hidden_skewness: float = 0.0
    widening: float = 0.0

    @property
    def is_flat(self) -> bool:
        """Do all words of a set agree, so that there is no variance for a t test?"""
        return math.isnan(self.df) and not math.isnan(self.V)

    @property
    def all_agree(self) -> bool:
        """Do all words of a set agree on an effect, so that the p-value is an exact one instead of a t test?"""
        return self.p_value is not None and self.is_flat

    @property
    def skewness_range(self) -> tuple[float, ...]:
        """Values of the skewness of D that the words allow: the estimate, and the hidden one in either direction."""
        if math.isnan(self.skewness):
            return ()
        return (self.skewness, *((self.hidden_skewness, -self.hidden_skewness) if self.hidden_skewness else ()))

    @property
    def p_skew(self) -> float | None:
        """The two-sided p-value after Hall's (1992) correction of t for skewness; None where there is no t test.

        It is the largest over `skewness_range`. A diagnostic, not a replacement: with eight words per set, the sample
        shows only part of a strong skew, and the correction costs power where associations are normal.
        """
        if self.p_value is None or math.isnan(self.skewness):
            return None
        t = math.copysign(max(abs(self.D) - self.widening, 0.0), self.D) / math.sqrt(self.V)
        corrected = min(abs(transform_hall(t, skewness)) for skewness in self.skewness_range)
        return 2.0 * float(scipy.special.stdtr(self.df, -corrected))

    @property
    def t(self) -> float:
        return self.D / math.sqrt(self.V) if self.V > 0.0 else nan

    @property
    def enough_words(self) -> bool:
        return self.df >= LEAST_DF

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """Shares of target words, attribute words and the residual in the variance of D."""
        if self.components is None:
            return None
        parts = self.components.parts(*self.sizes)
        total = sum(parts)
        return None if not total > 0.0 else (parts[0] / total, parts[1] / total, parts[2] / total)

    def p_equivalence(self, margin: float) -> float | None:
        """Two one-sided tests: how likely is a D so close to 0 if the true one is as far from it as ``margin``?"""
        if not margin > 0.0:
            raise UsageError(f"the margin of an equivalence test must be above 0, got {margin:g}")
        if self.p_value is None or self.all_agree:
            return None
        return float(scipy.special.stdtr(self.df, (abs(self.D) + self.widening - margin) / math.sqrt(self.V)))


def crossed_test(cosines: ArrayLike, n: int, k: int, *, confidence: float = CONFIDENCE) -> Crossed:
    """Are the targets X, more than Y, closer to A than to B, beyond what other words of their kinds would give?

    ``cosines`` (targets, attributes) of words, texts averaged before; the first ``n`` rows are X, the first ``k``
    columns A.

    Where all words of a set agree, their variance is 0 and there is no t. The p-value is then the larger of two exact
    ones: over splits of the target words, and over splits of the attribute words.

    If the associations of target or attribute words are close to one of two values, the p-value is the larger of those
    by t and by Fisher's exact test: two-valued associations with equal means have the same distribution, so their words
    are exchangeable. The interval is widened until it agrees with the p-value.
    """
    table = _checked(cosines, n, k, confidence)
    return _crossed(_Moments.from_table(table, n, (slice(0, k), slice(k, None))), confidence)


def crossed_test_without(
    cosines: ArrayLike, n: int, k: int, place: int, *, confidence: float = CONFIDENCE
) -> Crossed | None:
    """Repeat the crossed test without one word.

    Parameters
    ----------
    cosines : (targets, attributes) array-like
    n, k : int
        Words of X and of A.
    place : int
        The word that is left out, in the order X, Y, A, B.
    confidence : float

    Returns
    -------
    Crossed or None
        None if the word is the only one of its set.

    Notes
    -----
    Large tables are not copied. The sum of squared interactions of an n x k cell without one row is the sum of all of
    them less n / (n - 1) times those of the row.
    """
    table = _checked(cosines, n, k, confidence)
    targets, attributes = table.shape
    by_row = place < targets
    index, first, size = (place, n, targets) if by_row else (place - targets, k, attributes)
    left = first - (index < first)
    if not 0 < left < size - 1:
        return None
    if fits_one_block(table):
        rest = np.delete(table, index, axis=0 if by_row else 1)
        return crossed_test(rest, *((left, k) if by_row else (n, left)), confidence=confidence)
    moments = _Moments.from_table(table, n, (slice(0, k), slice(k, None)))
    return _crossed(moments.without(table, index, by_row=by_row), confidence)


def crossed_rows(table: ArrayLike, n: int, *, confidence: float = CONFIDENCE) -> Crossed:
    """Are the first ``n`` rows larger than the others, beyond what other rows and columns of their kinds would give?

    The crossed test with one set of columns: D is the difference of mean rows, and the variance of columns is that of
    how much either kind of rows differs in them. Where all rows of a kind and all columns agree, the p-value is the
    larger of two exact ones: over splits of the rows, and the sign test over columns.
    """
    values = as_table(table)
    if values.ndim != 2 or not 0 < n < values.shape[0] or not values.shape[1]:
        raise UsageError(
            f"the crossed test needs a table with rows of two kinds, got shape {values.shape} and {n} rows"
        )
    return _crossed(_Moments.from_table(_usable(values, "values", confidence), n, (slice(0, None),)), confidence)


@dataclass(frozen=True, eq=False)
class _Moments:
    """What the crossed test needs of a table.

    Attributes
    ----------
    by_row, by_column : (sets, rows), (sets, columns) float64
        Means of every row over the columns of each set, and of every column over the rows of each set.
    squares : (row set, column set) -> float
        Sum of squared interactions of every cell.
    counts : (int, int), and widths : (int,) or (int, int)
        Rows of both sets, and columns of each.
    largest : float
        The largest absolute value.
    """

    by_row: list[Floats]
    by_column: list[Floats]
    squares: dict[tuple[int, int], float]
    counts: tuple[int, int]
    widths: tuple[int, ...]
    largest: float

    @classmethod
    def from_table(cls, table: NDArray[np.floating], n: int, columns: tuple[slice, ...]) -> _Moments:
        rows = slice(0, n), slice(n, None)
        by_row = [table[:, part].mean(axis=1, dtype=np.float64) for part in columns]
        by_column = [table[part].mean(axis=0, dtype=np.float64) for part in rows]
        counts, widths = (n, len(table) - n), tuple(table[0, part].size for part in columns)
        squares = {}
        if min(*counts, *widths) >= LEAST_WORDS:
            squares = {
                (i, j): _sum_interactions(table[rows[i], columns[j]]) for i in (0, 1) for j in range(len(columns))
            }
        return cls(by_row, by_column, squares, counts, widths, largest_value(table))

    def without(self, table: NDArray[np.floating], index: int, *, by_row: bool) -> _Moments:
        """Return the moments of the table without one row or column; there are two sets of columns."""
        turned = table if by_row else table.T
        line = turned[index].astype(np.float64)
        sizes, lengths = (self.counts, self.widths) if by_row else (self.widths, self.counts)
        along, across = (self.by_row, self.by_column) if by_row else (self.by_column, self.by_row)
        own = int(index >= sizes[0])
        squares, start = dict(self.squares), 0
        for other, length in enumerate(lengths):
            part = slice(start, start + length)
            mean = along[other][sizes[0] * own : sizes[0] * own + sizes[own]].mean()
            left = line[part] - along[other][index] - across[own][part] + mean
            cell = (own, other) if by_row else (other, own)
            squares[cell] -= float((left * left).sum()) * sizes[own] / (sizes[own] - 1)
            start += length
        rest = [(across[i] * sizes[i] - line) / (sizes[i] - 1) if i == own else across[i] for i in (0, 1)]
        shorter = [np.delete(values, index) for values in along]
        counts = sizes[0] - (own == 0), sizes[1] - (own == 1)
        if by_row:
            return _Moments(shorter, rest, squares, counts, self.widths, self.largest)
        return _Moments(rest, shorter, squares, self.counts, counts, self.largest)


def _crossed(moments: _Moments, confidence: float) -> Crossed:
    (n, m), widths = moments.counts, moments.widths
    rows = slice(0, n), slice(n, None)
    columns = (slice(0, widths[0]), slice(widths[0], None))[: len(widths)]
    s = moments.by_row[0] if len(widths) == 1 else moments.by_row[0] - moments.by_row[1]
    r = moments.by_column[0] - moments.by_column[1]
    D = float(s[rows[0]].mean() - s[rows[1]].mean())
    sizes = n, m, widths[0], sum(widths[1:])
    if min(n, m, *widths) < LEAST_WORDS:
        return Crossed(D, nan, nan, nan, nan, nan, None, None, None, None, sizes, confidence)
    of_t = [float(s[part].var(ddof=1)) / size for part, size in zip(rows, sizes[:2], strict=True)]
    of_a = [float(r[part].var(ddof=1)) / width for part, width in zip(columns, widths, strict=True)]
    cells = [(i, j) for i in (0, 1) for j in range(len(columns))]
    residuals = [moments.squares[i, j] / ((sizes[i] - 1) * (widths[j] - 1)) for i, j in cells]
    of_e = [residual / (sizes[i] * widths[j]) for (i, j), residual in zip(cells, residuals, strict=True)]
    V_T, V_A, V_E = sum(of_t), sum(of_a), sum(of_e)
    V = max(V_T + V_A - V_E, V_T, V_A)
    scale = max(1.0, moments.largest)
    if not max(FLAT * scale, _AGREEMENT * abs(D)) ** 2 < V:
        p, upper = _exact(D, sizes) if abs(D) > _NONZERO * scale else (None, None)
        return Crossed(D, V, V_T, V_A, V_E, nan, None, p, upper, None, sizes, confidence)
    free = [size - 1 for size in (*sizes[:2], *widths)] + [(sizes[i] - 1) * (widths[j] - 1) for i, j in cells]
    df = _df(V, [*of_t, *of_a, *of_e], free)
    over_t, over_a = _over(*sizes[:2]), _over(*sizes[2:])
    found = Components((V_T - V_E) / over_t, (V_A - V_E) / over_a, V_E / (over_t * over_a))
    if df < LEAST_DF or min(n, m, *widths) < LEAST_TESTED:
        return Crossed(D, V, V_T, V_A, V_E, df, None, None, None, found, sizes, confidence)
    spread = math.sqrt(V)
    upper = float(scipy.special.stdtr(df, -D / spread))
    p = 2.0 * float(scipy.special.stdtr(df, -abs(D) / spread))
    widening = 0.0
    exact = [_two_valued(s, n), *([_two_valued(r, widths[0])] if len(columns) > 1 else [])]
    for either, greater in filter(None, exact):
        p, upper = max(p, either), max(upper, greater)
        widening = max(abs(D) + float(scipy.special.stdtrit(df, p / 2.0)) * spread, 0.0)
    reach = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0)) * spread + widening
    skewness, hidden = _skewness(V, [s[part] for part in rows], [r[part] for part in columns])
    interval = D - reach, D + reach
    return Crossed(
        D, V, V_T, V_A, V_E, df, interval, p, upper, found, sizes, confidence, skewness, hidden, widening
    )  # fmt: skip


def _two_valued(values: Floats, first: int) -> tuple[float, float] | None:
    """Compute Fisher's exact test of two sets of values.

    Parameters
    ----------
    values : array
        Of both sets.
    first : int
        Number of values of the first set.

    Returns
    -------
    (float, float) or None
        Two-sided p-value, and that of a larger mean of the first set. None if the values are not close to one of two
        numbers, or if no set has both.
    """
    ordered = np.sort(values)
    gaps = np.diff(ordered)
    split = int(gaps.argmax())
    widest = max(ordered[split] - ordered[0], ordered[-1] - ordered[split + 1])
    if not widest <= _NARROW * gaps[split]:
        return None
    is_high = values > ordered[split]
    n, m, total = first, len(values) - first, int(is_high.sum())
    count = int(is_high[:first].sum())
    if count in (0, n) and total - count in (0, m):
        return None
    counts = range(max(0, total - m), min(n, total) + 1)
    logs = [log_binomial(n, i) + log_binomial(m, total - i) - log_binomial(n + m, total) for i in counts]
    seen = logs[count - counts[0]]
    either = sum(math.exp(one) for one in logs if one <= seen + _TIE)
    return min(either, 1.0), min(sum(math.exp(one) for one in logs[count - counts[0] :]), 1.0)


def _exact(D: float, sizes: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return the two-sided p-value and that of D > 0 where all words of a set have the same association.

    Only one split of n + m words is as extreme in the direction of D. The opposite one is as extreme where n = m.
    """
    n, m, k, l = sizes  # noqa: E741
    by_rows = math.exp(-log_binomial(n + m, n))
    by_columns = math.exp(-log_binomial(k + l, k)) if l else 0.5**k
    either = max(by_rows * (2.0 if n == m else 1.0), by_columns * (2.0 if k == l or not l else 1.0))
    return either, max(by_rows, by_columns) if D > 0.0 else 1.0


def _skewness(V: float, *sides: list[Floats]) -> tuple[float, float]:
    """Estimate the skewness of D from the third cumulants of the means of each set, and how large it may be unseen."""
    own = hidden = 0.0
    for sets in sides:
        sizes = [len(values) for values in sets]
        if min(sizes) < 3:
            return nan, 0.0
        skewness = [sample_skewness(values) for values in sets]
        weights = [
            (float(values.var(ddof=1)) / size / V) ** 1.5 / math.sqrt(size)
            for values, size in zip(sets, sizes, strict=True)
        ]
        own += sum(sign * g * w for sign, g, w in zip((1.0, -1.0), skewness, weights, strict=False))
        largest = sizes.index(max(sizes))
        evident = abs(skewness[largest]) > _EVIDENT * skewness_error(sizes[largest])
        if evident and min(sizes) < _MUCH_SMALLER * max(sizes):
            hidden += abs(skewness[largest]) * sum(weights)
    return own, hidden


def _checked(cosines: ArrayLike, n: int, k: int, confidence: float) -> NDArray[np.floating]:
    table = as_table(cosines)
    if table.ndim != 2 or not (0 < n < table.shape[0] and 0 < k < table.shape[1]):
        raise UsageError(
            f"the crossed test needs a table of cosines with words of X and Y and of A and B, got shape {table.shape} "
            f"with {n} words of X and {k} of A"
        )
    return _usable(table, "cosines", confidence)


def _usable(table: NDArray[np.floating], what: str, confidence: float) -> NDArray[np.floating]:
    if not largest_value(table) < _LARGEST:  # False for NaN
        raise UsageError(f"{what} must be finite numbers below {_LARGEST:g}")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"the confidence must lie between 0 and 1, got {confidence}")
    return table


def _over(first: float, second: float) -> float:
    return 1.0 / first + (1.0 / second if second else 0.0)


def _sum_interactions(cell: NDArray[np.floating]) -> float:
    """Sum the squares that are left in a cell after its rows and columns: those of its double-centred residual."""
    by_column, overall = cell.mean(axis=0, dtype=np.float64), cell.mean(dtype=np.float64)
    total = 0.0
    for block in row_blocks(cell.shape):
        values = cell[block]
        left = values - values.mean(axis=1, keepdims=True, dtype=np.float64) - by_column + overall
        total += float((left * left).sum())
    return total


def _df(V: float, parts: list[float], of: list[int]) -> float:
    """Satterthwaite's degrees of freedom of a variance, from its parts and theirs."""
    return 1.0 / float(sum((part / V) ** 2 / own for part, own in zip(parts, of, strict=True)))
