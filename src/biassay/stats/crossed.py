"""Crossed test, in which both target words and attribute words are random samples, and leave-one-out analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.association import FLAT, as_float_table, iter_row_blocks, max_abs_value
from biassay.stats.skewness import sample_skewness, skewness_error, transform_hall
from biassay.stats.subset_sums import log_binomial

CONFIDENCE = 0.95
LEAST_WORDS = 2
"""Words per set for a variance."""
LEAST_TESTED = 3
"""Words per set for a p-value. With two, their variance is near 0 whenever they happen to agree."""
LEAST_DF = 2.0
"""Degrees of freedom for a p-value."""
_AGREEMENT = 1e-6  # a standard error this small relative to D is the rounding of vectors in float32
_NONZERO = 1e3 * FLAT
_TIE = 1e-9  # rounding of the logarithm of a probability
_NARROW = 0.25  # values are close to one of two numbers if they spread around each by this share of the gap between
_MUCH_SMALLER = 0.5  # ratio of set sizes below which a small set may hide the skewness that the larger one shows
_EVIDENT = 2.5  # standard errors from which the skewness of the larger set counts
_LARGEST = 1e50  # products of variances of larger values overflow

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VarianceComponents:
    """Variance components of associations.

    Attributes
    ----------
    targets, attributes : float
        Variance of the associations of target words, and of attribute words. Estimates are differences and may be
        negative; they then count as 0.
    residual : float
        Variance of a single cosine beyond its target and attribute.
    """

    targets: float
    attributes: float
    residual: float

    def variance(self, n: float, m: float, k: float, l: float) -> float:  # noqa: E741
        """Return the variance of D with n and m target words, k and l attribute words.

        Parameters
        ----------
        n, m : float
            Target words in X and in Y.
        k, l : float
            Attribute words in A and in B.
        """
        return sum(self.variance_parts(n, m, k, l))

    def variance_parts(self, n: float, m: float, k: float, l: float) -> tuple[float, float, float]:  # noqa: E741
        """Return the contributions of target words, attribute words and the residual to the variance of D.

        With a single set of attributes, l is 0.

        Parameters
        ----------
        n, m : float
            Target words in X and in Y.
        k, l : float
            Attribute words in A and in B.
        """
        over_t, over_a = _sum_reciprocals(n, m), _sum_reciprocals(k, l)
        targets, attributes = max(self.targets, 0.0), max(self.attributes, 0.0)
        return over_t * targets, over_a * attributes, over_t * over_a * self.residual


@dataclass(frozen=True)
class CrossedResult:
    """Result of the crossed test.

    Attributes
    ----------
    D : float
        Mean association of X minus that of Y, in cosine units.
    V, V_T, V_A, V_E : float
        Variance of D, and the contributions of target words, attribute words and the residual. NaN if a set has one
        word.
    df : float
        Degrees of freedom of t = D / sqrt(V), by Satterthwaite. NaN if there is no t test.
    interval : (float, float) or None
        Confidence interval of D. None if there are too few words, or if all words agree.
    p_value, p_greater : float or None
        Two-sided p-value, and that of D > 0. None if there are too few words, or if nothing differs.
    components : VarianceComponents or None
    sizes : (int, int, int, int)
        Number of words of X, Y, A and B; for `crossed_rows`, of rows of both sets, of columns, and 0.
    confidence : float
    skewness : float
        Skewness of D, estimated from the third moments of associations within each set. NaN if a set has fewer than
        three words, or if there is no t test.
    hidden_skewness : float
        Size of the skewness that D may have if a set with less than half the words of the other set on its side is as
        skewed as that one. 0 if the larger set is not clearly skewed.
    widening : float
        Amount by which `interval` is wider on each side than that of t alone, because associations are close to one of
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
    components: VarianceComponents | None
    sizes: tuple[int, int, int, int]
    confidence: float = CONFIDENCE
    skewness: float = nan
    hidden_skewness: float = 0.0
    widening: float = 0.0

    @property
    def is_flat(self) -> bool:
        """True if all words of a set agree, so that there is no variance for a t test."""
        return math.isnan(self.df) and not math.isnan(self.V)

    @property
    def all_agree(self) -> bool:
        """True if all words of a set agree on an effect, so that the p-value is exact and not that of a t test."""
        return self.p_value is not None and self.is_flat

    @property
    def skewness_range(self) -> tuple[float, ...]:
        """Plausible values of the skewness of D: the estimate, and the hidden skewness in either direction."""
        if math.isnan(self.skewness):
            return ()
        return (self.skewness, *((self.hidden_skewness, -self.hidden_skewness) if self.hidden_skewness else ()))

    @property
    def p_skew(self) -> float | None:
        """Two-sided p-value after Hall's (1992) correction of t for skewness; None if there is no t test.

        The largest over `skewness_range`. It is a diagnostic and does not replace `p_value`: with eight words per set,
        the sample shows only part of a strong skewness, and the correction costs power if associations are normal.
        """
        if self.p_value is None or math.isnan(self.skewness):
            return None
        t = math.copysign(max(abs(self.D) - self.widening, 0.0), self.D) / math.sqrt(self.V)
        corrected = min(abs(transform_hall(t, skewness)) for skewness in self.skewness_range)
        return 2.0 * float(scipy.special.stdtr(self.df, -corrected))

    @property
    def t(self) -> float:
        """The statistic D / sqrt(V); NaN if the variance is 0 or unknown."""
        return self.D / math.sqrt(self.V) if self.V > 0.0 else nan

    @property
    def variance_shares(self) -> tuple[float, float, float] | None:
        """Shares of target words, attribute words and the residual in the variance of D."""
        if self.components is None:
            return None
        parts = self.components.variance_parts(*self.sizes)
        total = sum(parts)
        return None if not total > 0.0 else (parts[0] / total, parts[1] / total, parts[2] / total)

    def p_equivalence(self, margin: float) -> float | None:
        """Return the p-value of two one-sided tests of the hypothesis that D is at least `margin` away from 0."""
        if self.p_value is None or self.all_agree:
            return None
        return float(scipy.special.stdtr(self.df, (abs(self.D) + self.widening - margin) / math.sqrt(self.V)))


def crossed_test(cosines: ArrayLike, n: int, k: int, *, confidence: float = CONFIDENCE) -> CrossedResult:
    """Test whether X is closer to A than to B, compared with Y, with all four word sets as random samples.

    Parameters
    ----------
    cosines : (targets, attributes) array-like
        Cosines of words; average over texts first. The first `n` rows are X, the first `k` columns A.
    n, k : int
        Number of words of X and of A.
    confidence : float, default 0.95

    Returns
    -------
    CrossedResult

    Notes
    -----
    If all words of a set agree, their variance is 0 and there is no t test. The p-value is then the larger of two exact
    ones: over splits of the target words, and over splits of the attribute words.

    If the associations of target or attribute words are close to one of two values, the p-value is the larger one of
    the t test and Fisher's exact test: two-valued associations with equal means have the same distribution, so their
    words are exchangeable. The interval is widened until it agrees with the p-value.
    """
    return _compute_crossed(as_float_table(cosines), n, (slice(0, k), slice(k, None)), confidence)


def p_value_without(cosines: ArrayLike, n: int, k: int, word: int) -> float | None:
    """Return the p-value of the crossed test without one word.

    Parameters
    ----------
    cosines : (targets, attributes) array-like
    n, k : int
        Number of words of X and of A.
    word : int
        Index of the word to leave out, in the order X, Y, A, B.

    Returns
    -------
    float or None
        None if too few words are left.
    """
    table = as_float_table(cosines)
    targets, attributes = table.shape
    by_row = word < targets
    index, first, size = (word, n, targets) if by_row else (word - targets, k, attributes)
    left = first - (index < first)
    if not 0 < left < size - 1:
        return None
    rest = np.delete(table, index, axis=0 if by_row else 1)
    return crossed_test(rest, *((left, k) if by_row else (n, left))).p_value


def crossed_rows(table: ArrayLike, n: int, *, confidence: float = CONFIDENCE) -> CrossedResult:
    """Test whether the first rows are larger than the others, with rows and columns as random samples.

    Parameters
    ----------
    table : (rows, columns) array-like
    n : int
        Number of rows of the first set.
    confidence : float, default 0.95

    Returns
    -------
    CrossedResult

    Notes
    -----
    This is the crossed test with a single set of columns. D is the difference of the mean rows, and the variance of
    columns is that of this difference between columns. If all rows of a set and all columns agree, the p-value is the
    larger of two exact ones: over splits of the rows, and that of the sign test over columns.
    """
    return _compute_crossed(as_float_table(table), n, (slice(0, None),), confidence)


def _compute_crossed(
    table: NDArray[np.floating], n: int, columns: tuple[slice, ...], confidence: float
) -> CrossedResult:
    """Test a table with two sets of rows, the first one of size n, and one or two sets of columns."""
    if not max_abs_value(table) < _LARGEST:  # False for NaN
        raise UsageError(f"cosines must be finite numbers below {_LARGEST:g}")
    m, rows = len(table) - n, (slice(0, n), slice(n, None))
    widths = tuple(table[0, part].size for part in columns)
    by_row = [table[:, part].mean(axis=1, dtype=np.float64) for part in columns]
    s = by_row[0] if len(columns) == 1 else by_row[0] - by_row[1]
    r = table[rows[0]].mean(axis=0, dtype=np.float64) - table[rows[1]].mean(axis=0, dtype=np.float64)
    D = float(s[rows[0]].mean() - s[rows[1]].mean())
    sizes = n, m, widths[0], sum(widths[1:])
    if min(n, m, *widths) < LEAST_WORDS:
        return CrossedResult(D, nan, nan, nan, nan, nan, None, None, None, None, sizes, confidence)
    of_t = [float(s[part].var(ddof=1)) / size for part, size in zip(rows, sizes[:2], strict=True)]
    of_a = [float(r[part].var(ddof=1)) / width for part, width in zip(columns, widths, strict=True)]
    cells = [(i, j) for i in (0, 1) for j in range(len(columns))]
    squares = [_sum_interactions(table[rows[i], columns[j]]) for i, j in cells]
    residuals = [own / ((sizes[i] - 1) * (widths[j] - 1)) for (i, j), own in zip(cells, squares, strict=True)]
    of_e = [residual / (sizes[i] * widths[j]) for (i, j), residual in zip(cells, residuals, strict=True)]
    V_T, V_A, V_E = sum(of_t), sum(of_a), sum(of_e)
    V = max(V_T + V_A - V_E, V_T, V_A)
    scale = max(1.0, max_abs_value(table))
    if not max(FLAT * scale, _AGREEMENT * abs(D)) ** 2 < V:
        p, upper = _exact_p_values(D, sizes) if abs(D) > _NONZERO * scale else (None, None)
        return CrossedResult(D, V, V_T, V_A, V_E, nan, None, p, upper, None, sizes, confidence)
    free = [size - 1 for size in (*sizes[:2], *widths)] + [(sizes[i] - 1) * (widths[j] - 1) for i, j in cells]
    df = satterthwaite_df(V, [*of_t, *of_a, *of_e], free)
    over_t, over_a = _sum_reciprocals(*sizes[:2]), _sum_reciprocals(*sizes[2:])
    components = VarianceComponents((V_T - V_E) / over_t, (V_A - V_E) / over_a, V_E / (over_t * over_a))
    if df < LEAST_DF or min(n, m, *widths) < LEAST_TESTED:
        return CrossedResult(D, V, V_T, V_A, V_E, df, None, None, None, components, sizes, confidence)
    spread = math.sqrt(V)
    upper = float(scipy.special.stdtr(df, -D / spread))
    p = 2.0 * float(scipy.special.stdtr(df, -abs(D) / spread))
    widening = 0.0
    exact = [_fisher_two_valued(s, n), *([_fisher_two_valued(r, widths[0])] if len(columns) > 1 else [])]
    for either, greater in filter(None, exact):
        p, upper = max(p, either), max(upper, greater)
        widening = max(abs(D) + float(scipy.special.stdtrit(df, p / 2.0)) * spread, 0.0)
    reach = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0)) * spread + widening
    skewness, hidden = _estimate_skewness(V, [s[part] for part in rows], [r[part] for part in columns])
    interval = D - reach, D + reach
    return CrossedResult(
        D, V, V_T, V_A, V_E, df, interval, p, upper, components, sizes, confidence, skewness, hidden, widening
    )  # fmt: skip


def _fisher_two_valued(values: Floats, first: int) -> tuple[float, float] | None:
    """Compute Fisher's exact test of two sets of values.

    Parameters
    ----------
    values : (n + m,) float64
        Values of both sets.
    first : int
        Number of values of the first set.

    Returns
    -------
    (float, float) or None
        Two-sided p-value, and that of a larger mean of the first set. None if the values are not close to one of two
        numbers, or if neither set has both.
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
    return None if count in (0, n) and total - count in (0, m) else fisher_exact(count, n, total - count, m)


def fisher_exact(count: int, n: int, other_count: int, m: int) -> tuple[float, float]:
    """Compute Fisher's exact test of `count` of `n` against `other_count` of `m`.

    Parameters
    ----------
    count, n : int
        Successes and size of the first sample.
    other_count, m : int
        Successes and size of the second sample.

    Returns
    -------
    (float, float)
        Two-sided p-value, and that of a larger share in the first sample.
    """
    total = count + other_count
    counts = range(max(0, total - m), min(n, total) + 1)
    logs = [log_binomial(n, i) + log_binomial(m, total - i) - log_binomial(n + m, total) for i in counts]
    observed = count - counts[0]
    two_sided = sum(math.exp(log_p) for log_p in logs if log_p <= logs[observed] + _TIE)
    return min(two_sided, 1.0), min(sum(math.exp(log_p) for log_p in logs[observed:]), 1.0)


def _exact_p_values(D: float, sizes: tuple[int, int, int, int]) -> tuple[float, float]:
    """Return the two-sided p-value and that of D > 0 if all words of a set have the same association.

    Only one split of n + m words is as extreme in the direction of D. The opposite one is as extreme if n = m.
    """
    n, m, k, l = sizes  # noqa: E741
    by_rows = math.exp(-log_binomial(n + m, n))
    by_columns = math.exp(-log_binomial(k + l, k)) if l else 0.5**k
    two_sided = max(by_rows * (2.0 if n == m else 1.0), by_columns * (2.0 if k == l or not l else 1.0))
    return two_sided, max(by_rows, by_columns) if D > 0.0 else 1.0


def _estimate_skewness(V: float, *sides: list[Floats]) -> tuple[float, float]:
    """Estimate the skewness of D from the third cumulants of the means of each set, and bound the hidden skewness."""
    estimate = hidden = 0.0
    for sets in sides:
        sizes = [len(values) for values in sets]
        if min(sizes) < 3:
            return nan, 0.0
        skewness = [sample_skewness(values) for values in sets]
        weights = [
            (float(values.var(ddof=1)) / size / V) ** 1.5 / math.sqrt(size)
            for values, size in zip(sets, sizes, strict=True)
        ]
        estimate += sum(sign * g * w for sign, g, w in zip((1.0, -1.0), skewness, weights, strict=False))
        largest = sizes.index(max(sizes))
        evident = abs(skewness[largest]) > _EVIDENT * skewness_error(sizes[largest])
        if evident and min(sizes) < _MUCH_SMALLER * max(sizes):
            hidden += abs(skewness[largest]) * sum(weights)
    return estimate, hidden


def _sum_reciprocals(first: float, second: float) -> float:
    return 1.0 / first + (1.0 / second if second else 0.0)


def _sum_interactions(cell: NDArray[np.floating]) -> float:
    """Sum the squared interactions of a cell, which are its values after double-centring."""
    by_column, overall = cell.mean(axis=0, dtype=np.float64), cell.mean(dtype=np.float64)
    total = 0.0
    for block in iter_row_blocks(cell.shape):
        values = cell[block]
        interactions = values - values.mean(axis=1, keepdims=True, dtype=np.float64) - by_column + overall
        total += float((interactions * interactions).sum())
    return total


def satterthwaite_df(V: float, parts: Sequence[float], part_dfs: Sequence[float]) -> float:
    """Return Satterthwaite's degrees of freedom of a variance, from its parts and their degrees of freedom.

    Parameters
    ----------
    V : float
    parts : sequence of float
        Estimates that `V` is a sum of.
    part_dfs : sequence of float
        Degrees of freedom of every part.

    Returns
    -------
    float

    References
    ----------
    F. E. Satterthwaite (1946). An approximate distribution of estimates of variance components. Biometrics Bulletin 2.
    """
    return 1.0 / float(sum((part / V) ** 2 / df for part, df in zip(parts, part_dfs, strict=True)))


def effects_without(cosines: NDArray[np.floating], n: int, k: int) -> Floats:
    """Compute the effect size by word without each word in turn.

    Parameters
    ----------
    cosines : (targets, attributes) float
    n, k : int
        Number of words of X and of A.

    Returns
    -------
    (targets + attributes,) float64
        In the order X, Y, A, B; NaN for the only word of a set.
    """
    columns = cosines.shape[1]
    signs = np.r_[np.full(k, 1.0 / k), np.full(columns - k, -1.0 / (columns - k))]
    scores = np.concatenate(
        [np.asarray(cosines[block], dtype=np.float64) @ signs for block in iter_row_blocks(cosines.shape)]
    )
    return np.concatenate([_effects_without_targets(scores, n), _effects_without_attributes(cosines, n, k)])


def _effects_without_targets(scores: Floats, n: int) -> Floats:
    """Compute the effect size without each target, from sums minus that target."""
    total = len(scores)
    scores = scores - scores.mean()
    in_x = np.arange(total) < n
    sums = (
        np.where(in_x, scores[:n].sum() - scores, scores[:n].sum()),
        np.where(in_x, scores[n:].sum(), scores[n:].sum() - scores),
    )
    sizes = np.where(in_x, n - 1, n), np.where(in_x, total - n, total - n - 1)
    squares = (scores**2).sum() - scores**2
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = sums[0] / sizes[0] - sums[1] / sizes[1]
        variance = (squares - (sums[0] + sums[1]) ** 2 / (total - 1)) / (total - 2)
        return np.asarray(np.where(variance > FLAT**2, difference / np.sqrt(np.maximum(variance, 0.0)), np.nan))


def _effects_without_attributes(cosines: NDArray[np.floating], n: int, k: int) -> Floats:
    A, B = cosines[:, :k], cosines[:, k:]
    mean_A, mean_B = (columns.mean(axis=1, keepdims=True, dtype=np.float64) for columns in (A, B))
    effects = []
    for columns, mean, other_mean, sign in ((A, mean_A, mean_B, 1.0), (B, mean_B, mean_A, -1.0)):
        size = columns.shape[1]
        set_effects = np.full(size, np.nan)
        for block in iter_row_blocks(columns.T.shape) if size > 1 else ():
            scores = sign * ((mean * size - columns[:, block]) / (size - 1) - other_mean)
            spread = scores.std(axis=0, ddof=1)
            difference = scores[:n].mean(axis=0) - scores[n:].mean(axis=0)
            np.divide(difference, spread, out=set_effects[block], where=spread > FLAT)
        effects.append(set_effects)
    return np.concatenate(effects)
