"""Joint p-value of many specifications, and matching of words by value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MAX_EXACT = 20_000  # splits of words; of more, a sample is drawn
_SAMPLED_SPLITS = 9_999
_BLOCK = 2_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointResult:
    """Joint test of several specifications.

    Attributes
    ----------
    effects : (specifications,) float64
        Effect size of each specification; NaN if all words have the same association.
    median : float
        Median effect size.
    p_value : float
        Two-sided: share of relabellings of the target words with a median effect at least as far from zero.
    splits : int
        Number of relabellings, including the observed one.
    exact : bool
        True if these are all relabellings.
    """

    effects: Floats
    median: float
    p_value: float
    splits: int
    exact: bool


def joint_test(scores: ArrayLike, n: int, *, rng: np.random.Generator | int | None = None) -> JointResult:
    """Test the median effect of several specifications by permuting the labels of the target words.

    Parameters
    ----------
    scores : (specifications, words) array-like
        Associations of the same target words. The first `n` are those of X.
    n : int
        Number of words of X.
    rng : numpy Generator or int, optional
        Used if there are too many relabellings to enumerate.

    Returns
    -------
    JointResult

    Notes
    -----
    Relabelling does not change the spread of all words, so an effect size is a sum over words. All specifications are
    relabelled together, so their correlation needs no model.
    """
    table = np.asarray(scores, dtype=np.float64)
    words = table.shape[1]
    centred = table - table.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, ddof=1)
    flat = spread <= 1e-12 * np.maximum(1.0, np.abs(table).max(axis=1))
    scaled = centred[~flat] / spread[~flat, None]
    effects = np.full(len(table), np.nan)
    effects[~flat] = scaled[:, :n].mean(axis=1) - scaled[:, n:].mean(axis=1)
    if flat.all():
        return JointResult(effects, math.nan, math.nan, 0, exact=False)
    exact = math.comb(words, n) <= _MAX_EXACT
    return _compare_medians(effects, scaled, _iter_split_weights(words, n, exact, np.random.default_rng(rng)), exact)


def joint_sign_test(values: ArrayLike, *, rng: np.random.Generator | int | None = None) -> JointResult:
    """Test the median effect of several specifications by exchanging the signs of sampling units.

    Parameters
    ----------
    values : (specifications, units) array-like
        Contributions of the same sampling units to a score whose expected value without bias is 0.
    rng : numpy Generator or int, optional
        Used if there are too many sign changes to enumerate.

    Returns
    -------
    JointResult

    Notes
    -----
    An effect is the mean over units, in root mean squares, which sign changes leave as they are. The signs of a unit
    change in all specifications together.
    """
    table = np.asarray(values, dtype=np.float64)
    n = table.shape[1]
    effects = np.full(len(table), np.nan)
    spread = np.sqrt((table**2).mean(axis=1)) if n else np.zeros(len(table))
    used = np.isfinite(spread) & (spread > 1e-12)
    if n < 2 or not used.any():
        return JointResult(effects, math.nan, math.nan, 0, exact=False)
    scaled = table[used] / spread[used, None]
    effects[used] = scaled.mean(axis=1)
    exact = 2**n <= _MAX_EXACT
    if exact:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[None] >> np.arange(n)[:, None]) & 1)
    else:
        signs = np.random.default_rng(rng).choice([-1.0, 1.0], (n, _SAMPLED_SPLITS + 1))
        signs[:, 0] = 1.0
    return _compare_medians(effects, scaled, [signs / n], exact)


def _compare_medians(effects: Floats, scaled: Floats, weights: Iterable[Floats], exact: bool) -> JointResult:
    """Test the median effect against its distribution under relabelled units."""
    observed = float(np.nanmedian(effects))
    reached = splits = 0
    for labels in weights:
        reached += int((np.abs(np.median(scaled @ labels, axis=0)) >= abs(observed) - 1e-9).sum())
        splits += labels.shape[1]
    return JointResult(effects, observed, reached / splits, splits, exact)


def _iter_split_weights(words: int, n: int, exact: bool, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield weights (words, splits) of the mean over X minus that over Y; the observed split is among them."""
    if exact:
        splits = combinations(range(words), n)
        while block := list(islice(splits, _BLOCK)):
            yield _split_weights(np.array(block).T, words)
        return
    yield _split_weights(np.arange(n)[:, None], words)
    for start in range(0, _SAMPLED_SPLITS, _BLOCK):
        order = np.argsort(rng.random((words, min(_BLOCK, _SAMPLED_SPLITS - start))), axis=0)
        yield _split_weights(order[:n], words)


def _split_weights(chosen: NDArray[np.intp], words: int) -> Floats:
    n = len(chosen)
    weights = np.full((words, chosen.shape[1]), -1.0 / (words - n))
    np.put_along_axis(weights, chosen, 1.0 / n, axis=0)
    return weights


def match_values(x: Sequence[float], y: Sequence[float], factor: float = 1.0) -> tuple[list[int], list[int]]:
    """Match as many values of `x` and `y` as possible in pairs that differ by at most a factor.

    Parameters
    ----------
    x, y : sequence of float
        Values that are not finite or not positive are not matched.
    factor : float, default 1

    Returns
    -------
    (list of int, list of int)
        Indices of the matched values of x and of y.
    """
    first, second = (sorted((v, i) for i, v in enumerate(values) if math.isfinite(v) and v > 0.0) for values in (x, y))
    x_indices: list[int] = []
    y_indices: list[int] = []
    i = j = 0
    while i < len(first) and j < len(second):
        a, b = first[i][0], second[j][0]
        if a > b * factor:
            j += 1
        elif b > a * factor:
            i += 1
        else:
            x_indices.append(first[i][1])
            y_indices.append(second[j][1])
            i, j = i + 1, j + 1
    return sorted(x_indices), sorted(y_indices)
