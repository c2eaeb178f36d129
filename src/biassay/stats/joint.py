"""One p-value for many specifications of one test: the same target words are relabelled in all of them at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError

__all__ = ["Joint", "joint_test"]

_ALL = 20_000  # splits of words, beyond which some are drawn
_DRAWN = 9_999
_BLOCK = 2_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Joint:
    """What many specifications say together.

    Attributes
    ----------
    effects : (specifications,) float64
        The effect size of each; NaN where all words have one association.
    median : float
        Their median.
    p_value : float
        Two-sided: the share of relabellings of the target words whose median effect is as far from zero.
    splits : int
        Relabellings that were tried, the observed one among them.
    exact : bool
        Whether these are all there are.
    """

    effects: Floats
    median: float
    p_value: float
    splits: int
    exact: bool


def joint_test(scores: ArrayLike, n: int, *, rng: np.random.Generator | int | None = None) -> Joint:
    """Do the specifications together show an association of these target words?

    ``scores`` (specifications, words) are associations of the same target words, the first ``n`` those of X. The spread
    of all words does not change with their labels, so that an effect size is a sum over words and all specifications
    are relabelled at once; their correlation needs no model.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or not len(table) or not 0 < n < table.shape[1]:
        raise UsageError(f"scores must be a table (specifications, words) with {n} words of X and some of Y")
    if not np.isfinite(table).all():
        raise UsageError("scores must be finite numbers")
    words = table.shape[1]
    centred = table - table.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, ddof=1)
    flat = spread <= 1e-12 * np.maximum(1.0, np.abs(table).max(axis=1))
    scaled = centred[~flat] / spread[~flat, None]
    effects = np.full(len(table), np.nan)
    effects[~flat] = scaled[:, :n].mean(axis=1) - scaled[:, n:].mean(axis=1)
    if flat.all():
        return Joint(effects, math.nan, math.nan, 0, exact=False)
    observed = float(np.median(effects[~flat]))
    exact = math.comb(words, n) <= _ALL
    reached = splits = 0
    for labels in _blocks(words, n, exact, np.random.default_rng(rng)):
        medians = np.median(scaled @ labels, axis=0)
        reached += int((np.abs(medians) >= abs(observed) - 1e-9).sum())
        splits += labels.shape[1]
    return Joint(effects, observed, reached / splits, splits, exact)


def _blocks(words: int, n: int, exact: bool, rng: np.random.Generator) -> Iterator[Floats]:
    """Weights (words, splits) that take the mean over X less that over Y; the observed split is among them."""
    if exact:
        splits = combinations(range(words), n)
        while block := list(islice(splits, _BLOCK)):
            yield _weights(np.array(block).T, words)
        return
    yield _weights(np.arange(n)[:, None], words)
    for start in range(0, _DRAWN, _BLOCK):
        order = np.argsort(rng.random((words, min(_BLOCK, _DRAWN - start))), axis=0)
        yield _weights(order[:n], words)


def _weights(chosen: NDArray[np.intp], words: int) -> Floats:
    n = len(chosen)
    weights = np.full((words, chosen.shape[1]), -1.0 / (words - n))
    np.put_along_axis(weights, chosen, 1.0 / n, axis=0)
    return weights
