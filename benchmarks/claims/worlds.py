"""Worlds in which the truth is known: vectors whose cosines are given, and word vectors with sets drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import biassay
from biassay.models.word_vectors import frequent_words
from biassay.stats.crossed import VarianceComponents

__all__ = [
    "SMALL",
    "Held",
    "Sizes",
    "Tails",
    "context_sets",
    "crossed_table",
    "drawn",
    "glove",
    "glove_rows",
    "made",
    "text_sets",
    "vectors",
]

Floats = NDArray[np.float64]
Sizes = tuple[int, int, int, int]
Tails = Literal["normal", "t3"]
SMALL = 1e-3
"""The unit of cosines: so small that vectors of any such cosines exist."""
_FUNCTION, _FREQUENT = 300, 10_000


def made(rng: np.random.Generator, tails: Tails, *shape: int) -> Floats:
    """Numbers of mean 0 and variance 1."""
    return rng.normal(size=shape) if tails == "normal" else rng.standard_t(3, size=shape) / np.sqrt(3.0)


def crossed_table(
    rng: np.random.Generator, sizes: Sizes, parts: VarianceComponents, D: float = 0.0, tails: Tails = "normal"
) -> Floats:
    """Cosines (targets, attributes) of words drawn anew: every target leans to A or B, every attribute to X or Y."""
    n, m, k, l = sizes  # noqa: E741
    rows, columns = np.repeat([0, 1], [n, m]), np.repeat([0, 1], [k, l])
    of_t = made(rng, tails, n + m, 2) * np.sqrt(max(parts.targets, 0.0) / 2.0)
    of_a = made(rng, tails, 2, k + l) * np.sqrt(max(parts.attributes, 0.0) / 2.0)
    rest = made(rng, tails, n + m, k + l) * np.sqrt(parts.residual)
    shift = D / 4.0 * np.where(rows[:, None] == columns, 1.0, -1.0)
    return np.asarray(of_t[:, columns] + of_a[rows] + rest + shift)


def vectors(table: Floats, n: int, k: int) -> tuple[Floats, Floats, Floats, Floats]:
    """X, Y, A and B with these cosines, in units of `SMALL`: attributes are axes, targets have an axis to spare."""
    cosines = table * SMALL
    rest = np.sqrt(np.maximum(1.0 - (cosines**2).sum(axis=1, keepdims=True), 0.0))
    targets, attributes = np.hstack([cosines, rest]), np.eye(table.shape[1], table.shape[1] + 1)
    return targets[:n], targets[n:], attributes[:k], attributes[k:]


def text_sets(rng: np.random.Generator, table: Floats, texts: int, noise: float) -> Floats:
    """Every word in so many texts, each with noise of its own: (targets * texts, attributes * texts)."""
    table = np.repeat(np.repeat(table, texts, axis=0), texts, axis=1)
    return table + noise * rng.normal(size=table.shape)


def context_sets(
    rng: np.random.Generator, table: Floats, n: int, k: int, contexts: int, noise: float
) -> list[list[Floats]]:
    """X, Y, A and B as lists of contexts: the vector of a word, with noise of its own in every context."""
    sets = vectors(table, n, k)
    spread = noise * SMALL
    return [[word + spread * rng.normal(size=(contexts, len(word))) for word in words] for words in sets]


class Held:
    """A model that is a table of vectors."""

    def __init__(self, table: dict[str, Floats]) -> None:
        self.vectors = table

    def encode(self, texts: Sequence[str]) -> Floats:
        return np.stack([self.vectors[text] for text in texts])


@cache
def glove() -> tuple[list[str], Floats]:
    """Frequent words of the embedded vectors, and their vectors; no function words and no numbers."""
    words = [word for word in frequent_words()[_FUNCTION:_FREQUENT] if word.isalpha()]
    return words, _encoded(words)


@cache
def glove_rows(concept: str) -> Floats:
    """Vectors of the words of a set of a test ("weat6/X") that the embedded vectors know."""
    test, _, role = concept.partition("/")
    found = _encoded(biassay.select_tests(test)[0].concept(role).words)
    return np.asarray(found[np.abs(found).sum(axis=1) > 0.0])


def _encoded(words: Sequence[str]) -> Floats:
    return np.asarray(biassay.open_encoder("glove").encode(list(words)).vectors, dtype=np.float64)


def drawn(rng: np.random.Generator, *sizes: int) -> list[Floats]:
    """Sets of vectors of frequent words, drawn at random; no word twice."""
    _, rows = glove()
    return np.split(rows[rng.permutation(len(rows))[: sum(sizes)]], np.cumsum(sizes)[:-1])
