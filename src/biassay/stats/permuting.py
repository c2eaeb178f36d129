"""Random permutations of names among groups, and how often they reach the observed statistic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, to_device
from numpy.typing import NDArray

from biassay.errors import UsageError

__all__ = ["PERMUTATIONS_AT_ONCE", "ROUNDING", "Place", "Tally", "check_permutations", "permuted"]

PERMUTATIONS_AT_ONCE = 256
ROUNDING = 1e-5  # of single precision: a permutation that gives the observed groups again must count
Place = Callable[[NDArray[Any]], Any]
"""Takes an array to where permutations are made."""


class Tally:
    """How often permutations reach the observed statistic, by word and hypothesis, until that is often enough."""

    def __init__(self, without: NDArray[np.bool_], stop: int) -> None:
        self._counts = np.zeros(without.shape, dtype=np.int64)
        self._ends = np.zeros(without.shape, dtype=np.int64)
        self._without, self._stop = without, stop

    @property
    def running(self) -> NDArray[np.intp]:
        """The words that need more permutations."""
        return np.flatnonzero(((self._ends == 0) & ~self._without).any(axis=1))

    def add(self, words: NDArray[np.intp], done: int, permuted: Any, seen: Any) -> None:
        """Count where ``permuted`` (questions, words, permutations) reaches ``seen`` (words, questions)."""
        reached = permuted >= seen.T[:, :, None]
        gained = _counted(reached).T
        before = self._counts[words]
        rows, columns = np.nonzero((self._ends[words] == 0) & (before + gained >= self._stop))
        if len(rows):
            wanted = self._stop - before[rows, columns]
            self._ends[words[rows], columns] = done + 1 + _fewer(reached, columns, rows, wanted)
        self._counts[words] = before + gained

    def p_values(self, permutations: int) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            stopped = self._stop / self._ends
        p = np.where(self._ends > 0, stopped, (1 + self._counts) / (1 + permutations))
        return np.where(self._without, np.nan, p)


def _counted(reached: Any) -> NDArray[np.int64]:
    """How many of the last axis are set."""
    if isinstance(reached, np.ndarray):
        return np.asarray(np.bitwise_count(np.packbits(reached, axis=2)).sum(axis=2, dtype=np.int64))
    return np.asarray(to_device(array_namespace(reached).sum(reached, axis=2), "cpu"))


def _fewer(
    reached: Any, first: NDArray[np.intp], second: NDArray[np.intp], wanted: NDArray[np.int64]
) -> NDArray[np.int64]:
    """After how many permutations fewer than so many are set."""
    xp, place = array_namespace(reached), device(reached)
    chosen = reached[xp.asarray(first, device=place), xp.asarray(second, device=place)]
    sums = xp.cumulative_sum(xp.astype(chosen, xp.int32), axis=1, dtype=xp.int32)
    fewer = sums < xp.asarray(wanted, device=place)[:, None]
    return np.asarray(to_device(xp.sum(xp.astype(fewer, xp.int64), axis=1), "cpu"))


def check_permutations(permutations: int) -> None:
    if permutations < 1:
        raise UsageError(f"at least one permutation is needed, got {permutations}")


def permuted(names: int, permutations: int, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Random orders of the names, one a row, in the least memory."""
    if names > np.iinfo(np.uint16).max:
        raise UsageError(f"at most {np.iinfo(np.uint16).max} names can be compared, got {names}")
    orders = np.tile(np.arange(names, dtype=np.uint16), (permutations, 1))
    return np.asarray(rng.permuted(orders, axis=1, out=orders))
