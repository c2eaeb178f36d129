"""Associations of words that have many vectors, one for every context: samples of one context per word.

A sample needs one row of every pool. The rows are gathered in blocks that stay in the processor's cache, scaled to unit
length on the way, and the attributes are summed before they meet a target: so no table of cosines is made, and no
second copy of the vectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError, VectorError
from biassay.stats.association import unit_rows

__all__ = ["Pools", "check_draws", "draw_contexts", "mean_directions", "sample_associations"]

_BLOCK_BYTES = 3 << 19  # of gathered rows: fits into the cache of one core
_NORM_ROWS = 1024
_SAFE_LENGTHS = {2: (0.0, np.inf), 4: (1e-30, 1e30), 8: (1e-150, 1e150)}  # by bytes of a number
Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Pools:
    """The context vectors of some words: for each an array (contexts, d), and what makes its rows unit length.

    Attributes
    ----------
    rows : list of (contexts, d) arrays
        As they were given: float16, float32 or float64.
    scales : list of (contexts,) arrays
        One over the length of each row.
    dtype : float32 or float64
        What is computed in.
    """

    rows: list[Floats]
    scales: list[Floats]
    dtype: np.dtype[np.floating]

    @classmethod
    def of(cls, arrays: Sequence[Floats], what: str) -> Pools:
        """Check the pools of one concept. A row without a direction is an error that says where it stands."""
        rows = [_checked(array, f"{what}: word {number}") for number, array in enumerate(arrays)]
        wide = any(array.dtype == np.float64 for array in rows)
        dtype: np.dtype[np.floating] = np.dtype(np.float64) if wide else np.dtype(np.float32)
        scaled = [_scaled(array, f"{what}: word {i}") for i, array in enumerate(rows)]
        return cls([array for array, _ in scaled], [scales.astype(dtype) for _, scales in scaled], dtype)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([len(array) for array in self.rows], dtype=np.int64)

    @property
    def dimension(self) -> int:
        return int(self.rows[0].shape[1])

    def take(self, word: int, at: NDArray[np.integer], out: Floats) -> Floats:
        """Rows of some contexts of one word, into ``out`` (contexts, d), for new memory would cost more than they do.

        What makes them unit length is returned.
        """
        if self.rows[word].dtype == out.dtype and out.flags.c_contiguous:
            np.take(self.rows[word], at, axis=0, out=out, mode="clip")  # the draws were checked
        else:
            out[:] = self.rows[word][at]
        scales: Floats = self.scales[word][at]
        return scales

    def gather(self, word: int, at: NDArray[np.integer], out: Floats) -> None:
        """The same as unit rows."""
        out *= self.take(word, at, out)[:, None]


def _checked(array: Floats, where: str) -> Floats:
    array = np.asarray(array)
    if array.ndim != 2 or 0 in array.shape:
        raise VectorError(f"{where}: expected an array of shape (contexts, d) that is not empty, got {array.shape}")
    kept = array.dtype in (np.float16, np.float32, np.float64)
    return array if kept else array.astype(np.float64)


def _scaled(array: Floats, where: str) -> tuple[Floats, NDArray[np.float64]]:
    """Rows, and one over the length of each. Rows so long or so short that squares overflow or vanish are replaced."""
    lengths = np.empty(len(array))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, len(array), _NORM_ROWS):
            block = array[start : start + _NORM_ROWS].astype(np.float64)
            lengths[start : start + _NORM_ROWS] = np.sqrt(np.einsum("ij,ij->i", block, block))
    shortest, longest = _SAFE_LENGTHS[array.dtype.itemsize]
    odd = np.flatnonzero(~((lengths > shortest) & (lengths < longest)))
    for place in odd.tolist():
        if not (np.isfinite(array[place]).all() and array[place].any()):
            kind = "is zero" if lengths[place] == 0.0 else "holds a value that is not finite"
            raise VectorError(f"{where}: the vector of context {place} {kind}, so it has no direction")
    if len(odd):
        array = array.copy()
        array[odd] = unit_rows(array[odd], where)
        lengths[odd] = 1.0
    return array, np.asarray(1.0 / lengths)


def draw_contexts(sizes: NDArray[np.int64], n_samples: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Which context of every word goes into every sample, (n_samples, words).

    Without replacement for a word that has at least as many contexts as there are samples, with replacement otherwise.
    """
    columns = [
        rng.choice(size, n_samples, replace=False) if size >= n_samples else rng.integers(size, size=n_samples)
        for size in sizes.tolist()
    ]
    return np.stack(columns, axis=1).astype(np.int32)


def check_draws(draws: NDArray[np.integer], sizes: NDArray[np.int64]) -> None:
    """Refuse a table of draws that does not fit the pools."""
    if draws.ndim != 2 or draws.shape[1] != len(sizes) or not np.issubdtype(draws.dtype, np.integer):
        raise UsageError(
            f"draws must be whole numbers of shape (samples, {len(sizes)}), got {draws.dtype} of shape {draws.shape}"
        )
    if len(draws) and ((draws < 0).any() or (draws >= sizes).any()):
        word = int(np.flatnonzero(((draws < 0) | (draws >= sizes)).any(axis=0))[0])
        raise UsageError(f"draws of word {word}: row numbers go from 0 to {sizes[word] - 1}")


def sample_associations(
    targets: Pools, a: Pools, b: Pools, draws: NDArray[np.integer], threads: int | None = None
) -> NDArray[np.float64]:
    """s(w, A, B) of every target in every sample, (samples, targets).

    ``draws`` (samples, words) holds row numbers in the order targets, A, B.
    """
    dtype = np.result_type(targets.dtype, a.dtype, b.dtype)
    n, k = len(targets.rows), len(a.rows)
    found = np.empty((len(draws), n))

    def block(rows: slice) -> None:
        chosen = draws[rows]
        between, mean, gathered = np.empty((3, len(chosen), targets.dimension), dtype=dtype)
        _mean_of(a, chosen[:, n : n + k], between, gathered)
        _mean_of(b, chosen[:, n + k :], mean, gathered)
        between -= mean
        for word in range(n):
            scales = targets.take(word, chosen[:, word], gathered)
            found[rows, word] = np.vecdot(gathered, between) * scales

    _for_blocks(block, len(draws), targets.dimension * dtype.itemsize, threads)
    return found


def _mean_of(pools: Pools, chosen: NDArray[np.integer], out: Floats, gathered: Floats) -> None:
    """Mean over the words of the rows chosen, (samples, d)."""
    out[:] = 0.0
    for word in range(len(pools.rows)):
        pools.gather(word, chosen[:, word], gathered)
        out += gathered
    out /= len(pools.rows)


def mean_directions(pools: Pools) -> NDArray[np.float64]:
    """Mean of the unit context vectors of every word, (words, d)."""
    return np.stack([_mean_direction(pools, word) for word in range(len(pools.rows))])


def _mean_direction(pools: Pools, word: int) -> NDArray[np.float64]:
    total = np.zeros(pools.dimension)
    for start in range(0, len(pools.rows[word]), _NORM_ROWS):
        part = slice(start, start + _NORM_ROWS)
        rows, scales = pools.rows[word][part].astype(np.float64), pools.scales[word][part].astype(np.float64)
        total += np.einsum("i,ij->j", scales, rows)
    return total / len(pools.rows[word])


def _for_blocks(block: Callable[[slice], None], n: int, row_bytes: int, threads: int | None) -> None:
    """Blocks of samples on all cores. A block's numbers do not depend on which thread computes them."""
    parts = list(_slices(n, max(1, _BLOCK_BYTES // max(1, row_bytes))))
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for _ in pool.map(block, parts):
            pass


def _slices(n: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, n)) for start in range(0, n, step))
