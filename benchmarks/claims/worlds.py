"""Simulated data with a known truth: vectors with given cosines, and random sets of word vectors."""

from __future__ import annotations

import zlib
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
    """Draw numbers of mean 0 and variance 1."""
    return rng.normal(size=shape) if tails == "normal" else rng.standard_t(3, size=shape) / np.sqrt(3.0)


def crossed_table(
    rng: np.random.Generator, sizes: Sizes, parts: VarianceComponents, D: float = 0.0, tails: Tails = "normal"
) -> Floats:
    """Draw cosines (targets, attributes) of new words: random effects of targets and of attributes, and a residual."""
    n, m, k, l = sizes  # noqa: E741
    rows, columns = np.repeat([0, 1], [n, m]), np.repeat([0, 1], [k, l])
    of_t = made(rng, tails, n + m, 2) * np.sqrt(max(parts.targets, 0.0) / 2.0)
    of_a = made(rng, tails, 2, k + l) * np.sqrt(max(parts.attributes, 0.0) / 2.0)
    rest = made(rng, tails, n + m, k + l) * np.sqrt(parts.residual)
    shift = D / 4.0 * np.where(rows[:, None] == columns, 1.0, -1.0)
    return np.asarray(of_t[:, columns] + of_a[rows] + rest + shift)


def vectors(table: Floats, n: int, k: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Make X, Y, A and B with these cosines, in units of `SMALL`. Attributes are axes; targets have one more axis."""
    cosines = table * SMALL
    rest = np.sqrt(np.maximum(1.0 - (cosines**2).sum(axis=1, keepdims=True), 0.0))
    targets, attributes = np.hstack([cosines, rest]), np.eye(table.shape[1], table.shape[1] + 1)
    return targets[:n], targets[n:], attributes[:k], attributes[k:]


def text_sets(rng: np.random.Generator, table: Floats, texts: int, noise: float) -> Floats:
    """Repeat every word in several texts with independent noise: (targets * texts, attributes * texts)."""
    table = np.repeat(np.repeat(table, texts, axis=0), texts, axis=1)
    return table + noise * rng.normal(size=table.shape)


def context_sets(
    rng: np.random.Generator, table: Floats, n: int, k: int, contexts: int, noise: float
) -> list[list[Floats]]:
    """Make X, Y, A and B as lists of contexts: the vector of a word plus independent noise per context."""
    sets = vectors(table, n, k)
    spread = noise * SMALL
    return [[word + spread * rng.normal(size=(contexts, len(word))) for word in words] for words in sets]


class Held:
    """A model that is a table of vectors. Other words, such as those of the scale, have random ones."""

    def __init__(self, table: dict[str, Floats]) -> None:
        self.vectors = table

    def encode(self, texts: Sequence[str]) -> Floats:
        return np.stack([self.vectors[text] if text in self.vectors else self._draw(text) for text in texts])

    def _draw(self, text: str) -> Floats:
        size = len(next(iter(self.vectors.values())))
        return np.random.default_rng(zlib.crc32(text.encode())).normal(size=size)


@cache
def glove() -> tuple[list[str], Floats]:
    """Return frequent words of the embedded vectors and their vectors, without function words and numbers."""
    words = [word for word in frequent_words()[_FUNCTION:_FREQUENT] if word.isalpha()]
    return words, _encoded(words)


@cache
def glove_rows(concept: str) -> Floats:
    """Return vectors of the in-vocabulary words of one set of a test, such as "weat6/X"."""
    test, _, role = concept.partition("/")
    found = _encoded(biassay.select_tests(test)[0].concept(role).words)
    return np.asarray(found[np.abs(found).sum(axis=1) > 0.0])


def _encoded(words: Sequence[str]) -> Floats:
    return np.asarray(biassay.open_encoder("glove").encode(list(words)).vectors, dtype=np.float64)


def drawn(rng: np.random.Generator, *sizes: int) -> list[Floats]:
    """Draw disjoint random sets of frequent words and return their vectors."""
    _, rows = glove()
    return np.split(rows[rng.permutation(len(rows))[: sum(sizes)]], np.cumsum(sizes)[:-1])
