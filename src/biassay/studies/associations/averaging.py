"""From texts to words: texts of a word are averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError

__all__ = ["Words", "lengths", "mean_rows", "of_words", "padded"]

Words = tuple[Sequence[str], Sequence[str]] | tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]
"""The word of every text of X and Y, or of X, Y, A and B."""


def mean_rows(rows: NDArray[np.float64], words: Sequence[str] | None) -> NDArray[np.float64]:
    """Mean row of every word over its texts, in the order of first appearance; None: every row is a word."""
    if words is None:
        return rows
    index = _word_numbers(words, len(rows))
    counts = np.bincount(index)
    order = np.argsort(index, kind="stable")
    return np.asarray(np.add.reduceat(rows[order], np.cumsum(counts) - counts, axis=0) / counts[:, None])


def of_words(
    table: NDArray[np.float64], sizes: tuple[int, int, int, int], words: Words | None
) -> tuple[NDArray[np.float64], tuple[int, int, int, int]]:
    """A table (targets, attributes) of similarities of texts as that of words, and the numbers of words."""
    x, y, a, b = padded(words)
    rows = [mean_rows(part, of) for part, of in ((table[: sizes[0]], x), (table[sizes[0] :], y))]
    columns = np.concatenate(rows).T
    sets = [mean_rows(part, of) for part, of in ((columns[: sizes[2]], a), (columns[sizes[2] :], b))]
    return np.concatenate(sets).T, lengths([*rows, *sets])


def _word_numbers(words: Sequence[str], texts: int) -> NDArray[np.intp]:
    if len(words) != texts:
        raise UsageError(f"got {len(words)} words for {texts} texts; every text needs its word")
    places = {word: place for place, word in enumerate(dict.fromkeys(words))}
    return np.array([places[word] for word in words], dtype=np.intp)


def padded(words: Words | None) -> tuple[Sequence[str] | None, ...]:
    """The words of all four sets; None: every row of the set is a word."""
    given = () if words is None else tuple(words)
    if len(given) not in (0, 2, 4):
        raise UsageError(f"words are given for X and Y, or for X, Y, A and B; got {len(given)} lists")
    return given + (None,) * (4 - len(given))


def lengths(sets: Sequence[NDArray[np.float64]]) -> tuple[int, int, int, int]:
    """The sizes of four sets."""
    x, y, a, b = map(len, sets)
    return x, y, a, b
