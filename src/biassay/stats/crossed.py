"""The crossed test: target words and attribute words both are samples of what they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from biassay.errors import UsageError
from biassay.stats.association import FLAT

__all__ = ["CONFIDENCE", "LEAST_DF", "Components", "Crossed", "crossed_test"]

CONFIDENCE = 0.95
LEAST_DF = 2.0
"""With fewer degrees of freedom there are too few words for a p-value."""

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
        """What target words, attribute words and the residual add to it."""
        over_t, over_a = 1.0 / n + 1.0 / m, 1.0 / k + 1.0 / l
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
        Degrees of freedom of t = D / sqrt(V), by Satterthwaite.
    interval : (float, float) or None
        Of D. None: too few words.
    p_value, p_greater : float or None
        Two-sided, and of D > 0. None: too few words.
    components : Components or None
    sizes : (int, int, int, int)
        Words of X, Y, A and B.
    confidence : float
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
        if self.p_value is None:
            return None
        return float(stdtr(self.df, (abs(self.D) - margin) / math.sqrt(self.V)))


def crossed_test(cosines: ArrayLike, n: int, k: int, *, confidence: float = CONFIDENCE) -> Crossed:
    """Are the targets X, more than Y, closer to A than to B, beyond what other words of their kinds would give?

    ``cosines`` (targets, attributes) of words, texts averaged before; the first ``n`` rows are X, the first ``k``
    columns A.
    """
    table = _checked(cosines, n, k, confidence)
    rows, columns = (slice(0, n), slice(n, None)), (slice(0, k), slice(k, None))
    s = table[:, columns[0]].mean(axis=1) - table[:, columns[1]].mean(axis=1)
    r = table[rows[0]].mean(axis=0) - table[rows[1]].mean(axis=0)
    D = float(s[rows[0]].mean() - s[rows[1]].mean())
    sizes = n, len(table) - n, k, table.shape[1] - k
    if min(sizes) < 2:
        return Crossed(D, nan, nan, nan, nan, nan, None, None, None, None, sizes, confidence)
    of_t = [float(s[part].var(ddof=1)) / size for part, size in zip(rows, sizes[:2], strict=True)]
    of_a = [float(r[part].var(ddof=1)) / size for part, size in zip(columns, sizes[2:], strict=True)]
    cells = [(i, j) for i in (0, 1) for j in (2, 3)]
    of_e = [_interaction(table[rows[i], columns[j - 2]]) / (sizes[i] * sizes[j]) for i, j in cells]
    V_T, V_A, V_E = sum(of_t), sum(of_a), sum(of_e)
    V = max(V_T + V_A - V_E, V_T, V_A)
    if not (FLAT * max(1.0, float(np.abs(table).max()))) ** 2 < V:
        return Crossed(D, V, V_T, V_A, V_E, 0.0, None, None, None, None, sizes, confidence)
    free = [size - 1 for size in sizes] + [(sizes[i] - 1) * (sizes[j] - 1) for i, j in cells]
    df = _df(V, [*of_t, *of_a, *of_e], free)
    over_t, over_a = 1.0 / sizes[0] + 1.0 / sizes[1], 1.0 / sizes[2] + 1.0 / sizes[3]
    found = Components((V_T - V_E) / over_t, (V_A - V_E) / over_a, V_E / (over_t * over_a))
    if df < LEAST_DF:
        return Crossed(D, V, V_T, V_A, V_E, df, None, None, None, found, sizes, confidence)
    spread = math.sqrt(V)
    reach = float(stdtrit(df, 0.5 + confidence / 2.0)) * spread
    upper = float(stdtr(df, -D / spread))
    p = 2.0 * float(stdtr(df, -abs(D) / spread))
    return Crossed(D, V, V_T, V_A, V_E, df, (D - reach, D + reach), p, upper, found, sizes, confidence)


def _checked(cosines: ArrayLike, n: int, k: int, confidence: float) -> Floats:
    table = np.asarray(cosines, dtype=np.float64)
    if table.ndim != 2 or not (0 < n < table.shape[0] and 0 < k < table.shape[1]):
        raise UsageError(
            f"the crossed test needs a table of cosines with words of X and Y and of A and B, got shape {table.shape} "
            f"with {n} words of X and {k} of A"
        )
    if not np.isfinite(table).all():
        raise UsageError("cosines must be finite numbers")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"the confidence must lie between 0 and 1, got {confidence}")
    return table


def _interaction(cell: Floats) -> float:
    """The variance that is left in a cell after its rows and columns: its double-centred residual."""
    left = cell - cell.mean(axis=1, keepdims=True) - cell.mean(axis=0) + cell.mean()
    rows, columns = cell.shape
    return float((left * left).sum() / ((rows - 1) * (columns - 1)))


def _df(V: float, parts: list[float], of: list[int]) -> float:
    """Satterthwaite's degrees of freedom of a variance, from its parts and theirs."""
    return 1.0 / float(sum((part / V) ** 2 / own for part, own in zip(parts, of, strict=True)))
