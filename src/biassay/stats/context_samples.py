"""Associations over sampled contexts, and prediction intervals for new contexts.

A sample uses one row of every pool. Rows are read in blocks that fit into the processor's cache and scaled to unit
length there, and attributes are summed before the product with a target. This avoids a table of cosines and a second
copy of the vectors.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.errors import UsageError, VectorError
from biassay.stats.association import unit_rows
from biassay.stats.crossed import CONFIDENCE

_BLOCK_BYTES = 3 << 19  # bytes of rows; fits into the cache of one core
_NORM_ROWS = 1024
_SAFE_LENGTHS = {2: (0.0, np.inf), 4: (1e-30, 1e30), 8: (1e-150, 1e150)}  # by bytes per number
FloatArray = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ContextPools:
    """Context vectors of several words.

    Attributes
    ----------
    rows : list of (contexts, d) arrays
        Vectors of each word in their original type: float16, float32 or float64.
    scales : list of (contexts,) arrays
        One over the length of each row.
    dtype : float32 or float64
        Type of the computation.
    """

    rows: list[FloatArray]
    scales: list[FloatArray]
    dtype: np.dtype[np.floating]

    @classmethod
    def from_arrays(cls, arrays: Sequence[FloatArray], what: str) -> ContextPools:
        """Check the vectors of one word set, named `what`; raise an error if a vector is zero or not finite."""
        rows = [_validate_vectors(array, f"{what}: word {number}") for number, array in enumerate(arrays)]
        wide = any(array.dtype == np.float64 for array in rows)
        dtype: np.dtype[np.floating] = np.dtype(np.float64) if wide else np.dtype(np.float32)
        scaled = [_scale_rows(array, f"{what}: word {i}") for i, array in enumerate(rows)]
        return cls([array for array, _ in scaled], [scales.astype(dtype) for _, scales in scaled], dtype)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of contexts of each word."""
        return np.array([len(array) for array in self.rows], dtype=np.int64)

    @property
    def dimension(self) -> int:
        """Dimension of the vectors."""
        return int(self.rows[0].shape[1])

    def take_rows(self, word: int, at: NDArray[np.integer], out: FloatArray) -> FloatArray:
        """Copy the rows `at` of one word into `out` (contexts, d), because new memory would cost more than the copy.

        Parameters
        ----------
        word : int
            Index of the word.
        at : (contexts,) int
            Rows to copy.
        out : (contexts, d) float
            Array to fill.

        Returns
        -------
        (contexts,) float
            One over the length of each row.
        """
        if self.rows[word].dtype == out.dtype and out.flags.c_contiguous:
            np.take(self.rows[word], at, axis=0, out=out, mode="clip")  # `check_draws` has checked the indices
        else:
            out[:] = self.rows[word][at]
        scales: FloatArray = self.scales[word][at]
        return scales


def _validate_vectors(array: FloatArray, where: str) -> FloatArray:
    array = np.asarray(array)
    if array.ndim != 2 or 0 in array.shape:
        raise VectorError(f"{where}: expected an array of shape (contexts, d) that is not empty, got {array.shape}")
    return array if array.dtype in (np.float16, np.float32, np.float64) else array.astype(np.float64)


def _scale_rows(array: FloatArray, where: str) -> tuple[FloatArray, NDArray[np.float64]]:
    """Return rows, and one over the length of each. Rows whose squares overflow or underflow are rescaled."""
    lengths = np.empty(len(array))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, len(array), _NORM_ROWS):
            block = array[start : start + _NORM_ROWS].astype(np.float64)
            lengths[start : start + _NORM_ROWS] = np.sqrt(np.einsum("ij,ij->i", block, block))
    shortest, longest = _SAFE_LENGTHS[array.dtype.itemsize]
    odd = np.flatnonzero(~((lengths > shortest) & (lengths < longest)))
    for row in odd.tolist():
        if not (np.isfinite(array[row]).all() and array[row].any()):
            kind = "is zero" if lengths[row] == 0.0 else "contains a value that is not finite"
            raise VectorError(f"{where}: the vector of context {row} {kind}, so it has no direction")
    if len(odd):
        array = array.copy()
        array[odd] = unit_rows(array[odd], where)
        lengths[odd] = 1.0
    return array, np.asarray(1.0 / lengths)


def draw_contexts(sizes: NDArray[np.int64], n_samples: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw one context of every word for every sample.

    Parameters
    ----------
    sizes : (words,) int
        Number of contexts of each word.
    n_samples : int
    rng : numpy Generator

    Returns
    -------
    (n_samples, words) int32
        Indices of contexts: without replacement if a word has at least `n_samples` contexts, otherwise with
        replacement.
    """
    columns = [
        rng.choice(size, n_samples, replace=False) if size >= n_samples else rng.integers(size, size=n_samples)
        for size in sizes.tolist()
    ]
    return np.stack(columns, axis=1).astype(np.int32)


def check_draws(draws: NDArray[np.integer], sizes: NDArray[np.int64]) -> None:
    """Raise an error if draws do not fit pools of these sizes."""
    if draws.ndim != 2 or draws.shape[1] != len(sizes) or not np.issubdtype(draws.dtype, np.integer):
        raise UsageError(
            f"draws must be integers of shape (samples, {len(sizes)}), got {draws.dtype} of shape {draws.shape}"
        )
    if len(draws) and ((draws < 0).any() or (draws >= sizes).any()):
        word = int(np.flatnonzero(((draws < 0) | (draws >= sizes)).any(axis=0))[0])
        raise UsageError(f"draws of word {word} must lie between 0 and {sizes[word] - 1}")


def sample_associations(
    targets: ContextPools, a: ContextPools, b: ContextPools, draws: NDArray[np.integer], threads: int | None = None
) -> NDArray[np.float64]:
    """Compute s(w, A, B) of every target in every sample.

    Parameters
    ----------
    targets, a, b : ContextPools
    draws : (samples, words) int
        Indices of contexts, with words in the order targets, A, B.
    threads : int, optional
        Default: one per core.

    Returns
    -------
    (samples, targets) float64
    """
    dtype = np.result_type(targets.dtype, a.dtype, b.dtype)
    n, k = len(targets.rows), len(a.rows)
    scores = np.empty((len(draws), n))

    def block(rows: slice) -> None:
        chosen = draws[rows]
        between, mean, gathered = np.empty((3, len(chosen), targets.dimension), dtype=dtype)
        _average_rows(a, chosen[:, n : n + k], between, gathered)
        _average_rows(b, chosen[:, n + k :], mean, gathered)
        between -= mean
        for word in range(n):
            scales = targets.take_rows(word, chosen[:, word], gathered)
            scores[rows, word] = np.vecdot(gathered, between) * scales

    # Blocks of samples run on all cores. The result does not depend on which thread computes a block.
    step = max(1, _BLOCK_BYTES // max(1, targets.dimension * dtype.itemsize))
    blocks = [slice(start, min(start + step, len(draws))) for start in range(0, len(draws), step)]
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        list(pool.map(block, blocks))
    return scores


def _average_rows(pools: ContextPools, chosen: NDArray[np.integer], out: FloatArray, gathered: FloatArray) -> None:
    """Write the mean over words of the chosen rows, scaled to unit length, into `out` (samples, d)."""
    out[:] = 0.0
    for word in range(len(pools.rows)):
        gathered *= pools.take_rows(word, chosen[:, word], gathered)[:, None]
        out += gathered
    out /= len(pools.rows)


def mean_directions(pools: ContextPools) -> NDArray[np.float64]:
    """Average the unit context vectors of every word, (words, d)."""
    means = np.zeros((len(pools.rows), pools.dimension))
    for total, rows, scales in zip(means, pools.rows, pools.scales, strict=True):
        for start in range(0, len(rows), _NORM_ROWS):
            part = slice(start, start + _NORM_ROWS)
            total += np.einsum("i,ij->j", scales[part].astype(np.float64), rows[part].astype(np.float64))
        total /= len(rows)
    return means


_TINY = math.ulp(0.0)
_MAX_RATIO = 1.0 - 1e-12  # largest ratio of an effect size to the largest possible one, so that its transform is finite

Floats = NDArray[np.float64]
Documents = Sequence[NDArray[np.int64]]


def number_documents(labels: Sequence[Sequence[object]]) -> list[NDArray[np.int64]]:
    """Replace the document labels of each word's contexts by numbers, the same for all words."""
    numbers: dict[object, int] = {}
    return [
        np.array([numbers.setdefault(label, len(numbers)) for label in word_labels], dtype=np.int64)
        for word_labels in labels
    ]


def draw_from_other_documents(
    draws: NDArray[np.integer], documents: Documents, rng: np.random.Generator
) -> NDArray[np.int32] | None:
    """Draw for every context a context of the same word from another document.

    Parameters
    ----------
    draws : (samples, words) int
        Indices of contexts.
    documents : list of (contexts,) arrays of int
        Document of each context, by word.
    rng : numpy Generator

    Returns
    -------
    (samples, words) int32 or None
        None if all contexts of some word come from one document.
    """
    columns = []
    for word, word_documents in enumerate(documents):
        _, document, sizes = np.unique(word_documents, return_inverse=True, return_counts=True)
        if len(sizes) < 2:
            return None
        order, first = np.argsort(document, kind="stable"), np.cumsum(sizes) - sizes
        drawn = document[draws[:, word]]
        position = rng.integers(len(word_documents) - sizes[drawn])  # among the contexts of all other documents
        columns.append(order[position + np.where(position >= first[drawn], sizes[drawn], 0)])
    return np.stack(columns, axis=1).astype(np.int32)


def prediction_interval(
    effects: Floats,
    partners: Floats,
    draws: NDArray[np.integer],
    documents: Documents,
    largest: float,
) -> tuple[float, float]:
    """Predict the effect size of another draw of contexts, from new documents, with 95% probability.

    Parameters
    ----------
    effects : (samples,) array
        Effect sizes with one context per word.
    partners : (pairs,) array
        Effect sizes of the first `pairs` samples after `draw_from_other_documents`.
    draws : (samples, words) array of int
        Contexts of each sample.
    documents : list of (contexts,) arrays of int
        Document of each context, by word.
    largest : float
        Largest effect size that this number of targets can have.

    Returns
    -------
    (float, float)
        Lower and upper end of the prediction interval.

    Notes
    -----
    Effect sizes are transformed by atanh(effect / largest). A sample and its partner share no document in any word, so
    half the mean squared difference of such pairs estimates the variance of new draws, even with two contexts per word.
    The mean over the pool has an error as well, because each word has few contexts and contexts of one document are
    correlated. Its variance is a jackknife over documents: the change of the mean without a document, from the mean
    effects of the samples that contain each context. Degrees of freedom are Satterthwaite's.
    """
    z, z_partners = (np.arctanh(np.clip(values / largest, -_MAX_RATIO, _MAX_RATIO)) for values in (effects, partners))
    centre = float(z.mean())
    between = float(((z[: len(z_partners)] - z_partners) ** 2).mean()) / 2.0
    by_word = [_jackknife_changes(z - centre, draws[:, word], numbers) for word, numbers in enumerate(documents)]
    changes, names = (np.concatenate([word[part] for word in by_word]) for part in (0, 1))
    by_document = np.bincount(np.unique(names, return_inverse=True)[1], weights=changes)
    squares = by_document**2
    centre_variance = max(float(squares.sum()) - draws.shape[1] * between / len(z), 0.0)  # without sampling noise
    variance = between + centre_variance
    if not variance > 0.0:
        return largest * math.tanh(centre), largest * math.tanh(centre)
    effective = np.array([count for _, _, count in by_word])
    word_variances = effective * [float((change**2).sum()) for change, _, _ in by_word]
    word_df = np.maximum(effective - 1.0, 1e-3)
    between_inverse_df = float((word_variances**2 / word_df).sum()) / max(float(word_variances.sum()), _TINY) ** 2
    centre_inverse_df = float((squares**2).sum()) / max(float(squares.sum()), _TINY) ** 2
    inverse_df = (between / variance) ** 2 * between_inverse_df + (centre_variance / variance) ** 2 * centre_inverse_df
    df = 1.0 / min(max(inverse_df, 1e-9), 1.0)
    reach = float(scipy.special.stdtrit(df, 0.5 + CONFIDENCE / 2.0)) * math.sqrt(variance)
    return largest * math.tanh(centre - reach), largest * math.tanh(centre + reach)


def _jackknife_changes(
    centred: Floats, drawn: NDArray[np.integer], documents: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64], float]:
    """Return the change of the mean without each document of one word, scaled so that squares add up to a variance.

    Also return the numbers of these documents, and their effective number (Kish 1965).
    """
    times = np.bincount(drawn, minlength=len(documents))
    used = times > 0
    effects = np.bincount(drawn, weights=centred, minlength=len(documents))[used] / times[used]
    effects -= effects.mean()
    names, document = np.unique(documents[used], return_inverse=True)
    shares = np.bincount(document) / len(effects)
    sums = np.bincount(document, weights=effects) / len(effects)
    rest = np.maximum(1.0 - shares, 1.0 / len(effects))
    scaled = sums / rest * math.sqrt(max(len(names) - 1, 1) / len(names))
    return scaled, names, 1.0 / float((shares**2).sum())
