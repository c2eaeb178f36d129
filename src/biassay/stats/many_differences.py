"""Many pairs of tables at once: how much stronger each second association is, as `crossed_difference` has it.

The power of a gate is simulated with hundreds of pairs, and each with many effects. An effect that is added to a table
changes D and nothing else that an interval is made of, so that the tables are looked at once. Names are those of
`crossed_effect`, where the formulas are explained; the first axis of every array is the number of the pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.stats.crossed import LEAST_DF
from biassay.stats.crossed_effect import expected_effect

__all__ = ["ManyPairs"]

Floats = NDArray[np.float64]
Sizes = tuple[int, int, int, int]
Changes = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class _Model:
    """What the intervals of one model need."""

    D: Floats
    V: Floats
    df: Floats
    s_w: Floats


@dataclass(frozen=True)
class _Estimates:
    d: Floats
    low: Floats
    high: Floats
    weights: tuple[Floats, Floats]


class ManyPairs:
    """Pairs of tables (number, targets, attributes) of the same words, in portions; X has ``n`` words, A has ``k``."""

    def __init__(self, portions: Iterable[tuple[Floats, Floats]], n: int, k: int) -> None:
        models: tuple[list[_Model], list[_Model]] = [], []
        products = []
        for pair in portions:
            self.sizes: Sizes = n, pair[0].shape[1] - n, k, pair[0].shape[2] - k
            found = [_looked_at(tables, self.sizes) for tables in pair]
            for of, (model, _) in zip(models, found, strict=True):
                of.append(model)
            products.append(_products([changes for _, of_both in found for changes in of_both]))
        self._models = [_Model(*map(np.concatenate, zip(*map(astuple, of), strict=True))) for of in models]
        self._products = [np.concatenate(part) for part in zip(*products, strict=True)]

    def stronger(self, more: Sequence[float], *, confidence: float) -> tuple[Floats, Floats]:
        """The differences of absolute effect sizes, and lower ends of their intervals (NaN: too few words).

        ``more`` is added to D of the first and of the second tables.
        """
        one, other = (self._estimates(place, more[place], confidence) for place in (0, 1))
        difference = np.abs(other.d) - np.abs(one.d)
        low = np.minimum(self._lower(one, other), difference)
        enough = np.minimum(self._models[0].df, self._models[1].df) >= LEAST_DF
        return difference, np.where(enough, low, np.nan)

    def _estimates(self, place: int, more: float, confidence: float) -> _Estimates:
        n, m = self.sizes[:2]
        N, model = n + m, self._models[place]
        D, V, s_w = model.D + more, model.V, model.s_w
        d = D / np.sqrt(((N - 2) * s_w**2 + n * m / N * D * D) / (N - 1))
        t = np.asarray(scipy.special.stdtrit(np.maximum(model.df, LEAST_DF), 0.5 + confidence / 2.0), dtype=np.float64)
        none = np.zeros_like(D)
        var_s = np.maximum(self._variance(place, (none, none + 1.0)), s_w * s_w / (2 * (N - 2)))
        targets, attributes, residual = (part[:, 2 * place, 2 * place + 1] for part in self._products)
        largest = np.sqrt(V * var_s)
        covariance = np.clip(targets + attributes - residual, -largest, largest)
        low, high = _fieller(D, s_w, V, var_s, covariance, t)
        error, relative = np.sqrt(V) / s_w, np.sqrt(var_s) / s_w
        low, high = (expected_effect(end, error, relative, n, m) for end in (low, high))
        sure = np.abs(D) >= t * np.sqrt(V)
        low = np.where(sure & (D > 0.0), np.maximum(low, 0.0), np.where(sure, low, np.minimum(low, 0.0)))
        high = np.where(sure & (D < 0.0), np.minimum(high, 0.0), np.where(sure, high, np.maximum(high, 0.0)))
        return _Estimates(d, np.minimum(low, d), np.maximum(high, d), (1.0 / s_w, -D / s_w**2))

    def _variance(self, place: int, *weights: tuple[Floats, Floats]) -> Floats:
        """Of a sum of changes of D and s_w, from the model at ``place`` on."""
        by = np.stack([weight for pair in weights for weight in pair], axis=1)
        own = slice(2 * place, 2 * place + by.shape[1])
        targets, attributes, residual = (
            np.einsum("bi,bij,bj->b", by, part[:, own, own], by) for part in self._products
        )
        return np.asarray(np.maximum(targets + attributes - residual, np.maximum(targets, attributes)))

    def _lower(self, one: _Estimates, other: _Estimates) -> Floats:
        """The smallest difference of absolute effect sizes in the ellipse of their intervals."""
        scales = [1.0 / np.sqrt(self._variance(place, of.weights)) for place, of in enumerate((one, other))]
        first, second = (
            (scale * of.weights[0], scale * of.weights[1]) for scale, of in zip(scales, (one, other), strict=True)
        )
        along, apart = (
            np.maximum(self._variance(0, first, (sign * second[0], sign * second[1])), 0.0) for sign in (1.0, -1.0)
        )
        half = np.arctan2(np.sqrt(apart), np.sqrt(along))[:, None]
        turns = _turns(one, other, half)
        x1, x2 = _moved(one, np.cos(turns - half)), _moved(other, np.cos(turns + half))
        low, high = (x2 - x1).min(axis=1), (x2 - x1).max(axis=1)
        least, most = (x2 + x1).min(axis=1), (x2 + x1).max(axis=1)
        low = np.minimum(np.maximum(low, -most), np.maximum(-high, least))
        return np.asarray(np.maximum(low, -np.maximum(np.abs(one.low), np.abs(one.high))))


def _looked_at(tables: Floats, sizes: Sizes) -> tuple[_Model, tuple[Changes, Changes]]:
    n, m, k, _ = sizes
    s = tables[:, :, :k].mean(axis=2) - tables[:, :, k:].mean(axis=2)
    r = tables[:, :n].mean(axis=1) - tables[:, n:].mean(axis=1)
    D = s[:, :n].mean(axis=1) - s[:, n:].mean(axis=1)
    off = _centred(s, n, 1)
    s_w = np.sqrt((off**2).sum(axis=1) / (n + m - 2))
    V, df = _variances(tables, off, _centred(r, k, 1), sizes)
    return _Model(D, V, df, s_w), _left_out(tables, s, off, sizes)


def _products(changes: Sequence[Changes]) -> list[Floats]:
    """Of all changes with each other, over target words, attribute words and the residual."""
    kinds = (np.stack(of_kind, axis=1) for of_kind in zip(*changes, strict=True))
    return [np.einsum("bic,bjc->bij", of_kind, of_kind) for of_kind in kinds]


def _variances(tables: Floats, off: Floats, off_r: Floats, sizes: Sizes) -> tuple[Floats, Floats]:
    """V and its degrees of freedom, as of the crossed test."""
    n, m, k, l = sizes  # noqa: E741
    rows, columns = (slice(0, n), slice(n, None)), (slice(0, k), slice(k, None))
    of_t = [(off[:, part] ** 2).sum(axis=1) / ((size - 1) * size) for part, size in zip(rows, (n, m), strict=True)]
    of_a = [(off_r[:, part] ** 2).sum(axis=1) / ((size - 1) * size) for part, size in zip(columns, (k, l), strict=True)]
    left = _centred(_centred(tables, n, 1), k, 2)
    cells = [(i, j) for i in (0, 1) for j in (0, 1)]
    free = [((n, m)[i] - 1) * ((k, l)[j] - 1) for i, j in cells]
    of_e = [
        (left[:, rows[i], columns[j]] ** 2).sum(axis=(1, 2)) / (own * (n, m)[i] * (k, l)[j])
        for (i, j), own in zip(cells, free, strict=True)
    ]
    V_T, V_A, V_E = sum(of_t), sum(of_a), sum(of_e)
    V = np.maximum(V_T + V_A - V_E, np.maximum(V_T, V_A))
    parts = zip([*of_t, *of_a, *of_e], [n - 1, m - 1, k - 1, l - 1, *free], strict=True)
    return V, 1.0 / sum((part / V) ** 2 / own for part, own in parts)


def _left_out(tables: Floats, s: Floats, off: Floats, sizes: Sizes) -> tuple[Changes, Changes]:
    n, m, k, l = sizes  # noqa: E741
    N = n + m
    words, sign = np.repeat([float(n), float(m)], [n, m]), np.repeat([1.0, -1.0], [n, m])
    others, other_sign = np.repeat([float(k), float(l)], [k, l]), np.repeat([1.0, -1.0], [k, l])
    more = words / (words - 1.0)
    own = off * off
    s_i = _spread(own.sum(axis=1, keepdims=True) - own * more, N - 3)
    without = s[:, :, None] - _centred(tables, k, 2) * (other_sign / (others - 1.0))
    D_j = without[:, :n].mean(axis=1) - without[:, n:].mean(axis=1)
    off_j = _centred(without, n, 1)
    own_j = off_j * off_j
    squares_j = own_j.sum(axis=1)
    s_ij = _spread(squares_j[:, None] - own_j * more[:, None], N - 3)
    by_target, by_attribute = np.sqrt(1.0 - 1.0 / words), np.sqrt(1.0 - 1.0 / others)
    by_D = -sign / (words - 1.0) * by_target
    D_ij = _centred(off_j, k, 2) * by_attribute * by_D[:, None]
    of_s_ij = _centred(_centred(s_ij, n, 1), k, 2) * by_attribute * by_target[:, None]
    number = len(tables)
    of_D = by_D * off, _centred(D_j, k, 1) * by_attribute, D_ij.reshape(number, -1)
    of_s = _centred(s_i, n, 1) * by_target, _centred(_spread(squares_j, N - 2), k, 1) * by_attribute
    return of_D, (*of_s, of_s_ij.reshape(number, -1))


def _spread(squares: Floats, df: int) -> Floats:
    return np.asarray(np.sqrt(np.maximum(squares, 0.0) / df))


def _centred(values: Floats, first: int, axis: int) -> Floats:
    parts = np.split(values, [first], axis=axis)
    return np.concatenate([part - part.mean(axis=axis, keepdims=True) for part in parts], axis=axis)


def _fieller(D: Floats, s: Floats, V: Floats, var_s: Floats, covariance: Floats, t: Floats) -> tuple[Floats, Floats]:
    a, b, c = s * s - t * t * var_s, D * s - t * t * covariance, D * D - t * t * V
    sign = np.where(D > 0.0, 1.0, -1.0)
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        below = sign * b + root
        near = np.where(below > 0.0, c / below, np.inf)
        low = np.where(a > 0.0, (b - root) / a, np.where((c > 0.0) & (sign > 0.0), near, -np.inf))
        high = np.where(a > 0.0, (b + root) / a, np.where((c > 0.0) & (sign < 0.0), -near, np.inf))
    return low, high


def _turns(first: _Estimates, second: _Estimates, half: Floats) -> Floats:
    ups = [(one.high - one.d)[:, None] for one in (first, second)]
    downs = [(one.d - one.low)[:, None] for one in (first, second)]
    slopes = [(p, q) for p in (ups[0], downs[0]) for q in (ups[1], downs[1])]
    sine, cosine = np.sin(half), np.cos(half)
    lines = [np.arctan2((p - q) * sine, (p + q) * cosine) for p, q in slopes]
    lines += [np.arctan2((p + q) * sine, (p - q) * cosine) for p, q in slopes]
    at = np.concatenate([half + math.pi / 2.0, math.pi / 2.0 - half, *lines], axis=1)
    return np.concatenate([at, at + math.pi], axis=1)


def _moved(one: _Estimates, axis: Floats) -> Floats:
    d, low, high = (values[:, None] for values in (one.d, one.low, one.high))
    return np.where(axis > 0.0, d + axis * (high - d), d + axis * (d - low))
