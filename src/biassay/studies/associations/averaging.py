"""From texts to words to clusters: average the texts of a word, then the words of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError

__all__ = [
    "Words",
    "associations_of_words",
    "average_clusters",
    "labels_of_words",
    "lengths",
    "mean_rows",
    "of_words",
    "padded",
    "word_labels",
]

Floating = TypeVar("Floating", bound=np.floating[Any])
Words = tuple[Sequence[str], Sequence[str]] | tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]
"""The word of every text of X and Y, or of X, Y, A and B."""


def mean_rows(rows: NDArray[Floating], words: Sequence[str] | None) -> NDArray[Floating]:
    """Mean row of every word over its texts, in the order of first appearance; None: every row is a word."""
    if words is None or len(set(words)) == len(words) == len(rows):
        return rows
    index = _word_numbers(words, len(rows))
    counts = np.bincount(index)
    order = np.argsort(index, kind="stable")
    means = np.add.reduceat(rows[order], np.cumsum(counts) - counts, axis=0, dtype=np.float64) / counts[:, None]
    return np.asarray(means, dtype=rows.dtype)


def of_words(
    table: NDArray[Floating], sizes: tuple[int, int, int, int], words: Words | None
) -> tuple[NDArray[Floating], tuple[int, int, int, int]]:
    """A table (targets, attributes) of similarities of texts as that of words, and the numbers of words."""
    x, y, a, b = padded(words)
    rows = [mean_rows(part, of) for part, of in ((table[: sizes[0]], x), (table[sizes[0] :], y))]
    columns = np.concatenate(rows).T
    sets = [mean_rows(part, of) for part, of in ((columns[: sizes[2]], a), (columns[sizes[2] :], b))]
    return np.concatenate(sets).T, lengths([*rows, *sets])


def average_clusters(
    table: NDArray[Floating], sizes: tuple[int, int, int, int], labels: Words | None
) -> tuple[NDArray[Floating], tuple[int, int, int, int]]:
    """Average a table of words to a table of clusters.

    Parameters
    ----------
    table : (n + m, k + l) float64
        Similarities of words, rows X and Y, columns A and B.
    sizes : (int, int, int, int)
        Words of X, Y, A and B.
    labels : two or four sequences of str, or None
        The cluster of every word of X and Y, or of X, Y, A and B. None: every word is its own cluster.

    Returns
    -------
    table, sizes
        Similarities of clusters, in the order of first appearance, and the numbers of clusters.
    """
    return (table, sizes) if labels is None else of_words(table, sizes, labels)


def associations_of_words(
    table: NDArray[np.floating], sizes: tuple[int, int, int, int], labels: Words | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the association of every target word, and of every attribute word, with clusters on the other side.

    The association of a target is its mean similarity with the clusters of A minus that with the clusters of B; the
    association of an attribute is its mean similarity with the clusters of X minus that with the clusters of Y.
    """
    n, _, k, _ = sizes
    x, y, a, b = padded(labels)
    of_a, of_b = mean_rows(table[:, :k].T, a).T, mean_rows(table[:, k:].T, b).T
    of_x, of_y = mean_rows(table[:n], x), mean_rows(table[n:], y)
    of_targets = of_a.mean(axis=1, dtype=np.float64) - of_b.mean(axis=1, dtype=np.float64)
    return of_targets, of_x.mean(axis=0, dtype=np.float64) - of_y.mean(axis=0, dtype=np.float64)


def labels_of_words(words: Mapping[str, Sequence[str]], clusters: Mapping[str, Mapping[str, str]]) -> Words | None:
    """Return the cluster of every word of X, Y, A and B; None if no cluster has several words."""
    if not any(clusters.values()):
        return None
    x, y, a, b = ([clusters.get(role, {}).get(word, word) for word in words[role]] for role in "XYAB")
    return x, y, a, b


def word_labels(words: Words | None, clusters: Words | None) -> Words | None:
    """Return the cluster of every word, in the order of first appearance, from the words and clusters of all texts."""
    if clusters is None:
        return None
    labels: list[Sequence[str]] = []
    for of_words, of_clusters in zip(padded(words), padded(clusters), strict=True):
        if of_clusters is None:
            break
        rows = [str(row) for row in range(len(of_clusters))] if of_words is None else of_words
        owner: dict[str, str] = {}
        for word, cluster in zip(rows, of_clusters, strict=True):
            if owner.setdefault(word, cluster) != cluster:
                raise UsageError(f"the word {word!r} is in two clusters, {owner[word]!r} and {cluster!r}")
        labels.append(list(owner.values()))
    return tuple(labels)  # type: ignore[return-value]  # two or four


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


def lengths(sets: Sequence[NDArray[np.floating]]) -> tuple[int, int, int, int]:
    """The sizes of four sets."""
    x, y, a, b = map(len, sets)
    return x, y, a, b
