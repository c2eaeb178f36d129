"""Erase a concept from the vectors of a model: interface and registry of the methods, and the setting ``erase=``.

A method is one object in its own module, and one line in `_MODULES`. It fits an `Eraser` to vectors of words that
differ in a concept. Vectors have length 1 before they are erased, because every measure here compares directions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.concepts import ErasedConcept, load_concept
from biassay.errors import InsufficientVocabularyError, MissingExtraError, UnknownNameError, UsageError
from biassay.models.base import Encoder, Identity, TextEmbeddings
from biassay.packages import import_object

Floats = NDArray[np.float64]
_MODULES = {
    "mean-projection": "biassay.models.erasure.mean_projection:METHOD",
    "hard": "biassay.models.erasure.hard:METHOD",
    "inlp": "biassay.models.erasure.inlp:METHOD",
    "leace": "biassay.models.erasure.leace:METHOD",
}
_FEWEST_WORDS = 10  # of a class
_FEWEST_PAIRS = 5


@dataclass(frozen=True, eq=False)
class FittingWords:
    """Words that a method is fitted to.

    Attributes
    ----------
    words : tuple of str
    vectors : (n, d) float64
        Vectors of length 1.
    labels : (n,) int
        Class of each word.
    pairs : (m, classes) int
        Rows of words that differ in the concept only.
    """

    words: tuple[str, ...]
    vectors: Floats
    labels: NDArray[np.intp]
    pairs: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Eraser:
    """Map the direction x of a vector to ``x - left @ right @ (x - centre)``.

    Attributes
    ----------
    left : (d, k) float64
    right : (k, d) float64
    centre : (d,) float64
    replaced : dict of str to (d,) float64
        Vectors of single words, whatever the model gives.
    """

    left: Floats
    right: Floats
    centre: Floats
    replaced: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def from_basis(cls, basis: Floats, replaced: Mapping[str, Floats] | None = None) -> Eraser:
        """Make the orthogonal projection that removes the span of orthonormal rows (k, d)."""
        return cls(basis.T, basis, np.zeros(basis.shape[1]), replaced or {})

    @property
    def digest(self) -> str:
        """Digest of all numbers."""
        found = hashlib.sha256()
        for values in (self.left, self.right, self.centre, *self.replaced.values()):
            found.update(np.ascontiguousarray(values).tobytes())
        return found.hexdigest()[:16]

    def erase(self, texts: Sequence[str], vectors: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the vectors of texts without the concept; a vector of zeros or NaN is unchanged."""
        rows = np.asarray(vectors, dtype=np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        known = np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0.0)
        units = rows[known] / lengths[known]
        erased = rows.copy()
        erased[known] = units - (units - self.centre) @ self.right.T @ self.left.T
        for row, text in enumerate(texts) if self.replaced else ():
            if known[row] and text in self.replaced:
                erased[row] = self.replaced[text]
        return erased.astype(np.float32)

    def apply(self, texts: Sequence[str], embeddings: TextEmbeddings) -> TextEmbeddings:
        """Return the embeddings of texts without the concept."""
        return replace(embeddings, vectors=self.erase(texts, embeddings.vectors))


@dataclass(frozen=True)
class ErasureMethod:
    """A method that erases a concept.

    Attributes
    ----------
    name, title : str
        Name for commands, and title for reports.
    fit : callable
        Function from `FittingWords` to an `Eraser`.
    removes, weakness, source : str
        What the method removes, what it leaves, and its publication.
    needs_pairs : bool
        If True, the concept must have pairs.
    requires : tuple of str
        Module that it imports and extra that installs it, if any.
    """

    name: str
    title: str
    fit: Callable[[FittingWords], Eraser]
    removes: str
    weakness: str
    source: str
    needs_pairs: bool = False
    requires: tuple[str, ...] = ()

    @property
    def is_installed(self) -> bool:
        """Whether the module that it imports is installed."""
        return not self.requires or find_spec(self.requires[0]) is not None


def erasure_method_names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return tuple(_MODULES)


def get_erasure_method(name: str) -> ErasureMethod:
    """Return a method by name."""
    if name not in _MODULES:
        raise UnknownNameError("erasure method", name, _MODULES, f"(methods: {', '.join(_MODULES)})")
    method: ErasureMethod = import_object(_MODULES[name])
    return method


@dataclass(frozen=True)
class Erasure:
    """A method and the concept that it erases, before it is fitted to a model."""

    method: ErasureMethod
    concept: ErasedConcept

    @classmethod
    def parse(cls, text: str) -> Erasure:
        """Parse ``METHOD:CONCEPT``, where CONCEPT may be a TOML file."""
        name, colon, concept = text.partition(":")
        if not colon or not concept:
            raise UsageError(f"erase={text} lacks a concept; write METHOD:CONCEPT, such as leace:gender")
        return cls.make(name, concept)

    @classmethod
    def make(cls, method: str, concept: str) -> Erasure:
        """Return the erasure of a concept, after checking that the method can erase it."""
        made = cls(get_erasure_method(method), load_concept(concept))
        if made.method.needs_pairs and not made.concept.pairs:
            others = [name for name in _MODULES if not get_erasure_method(name).needs_pairs]
            raise UsageError(
                f"{made.method.title} needs pairs of words, and the concept {made.concept.name!r} has none; use "
                f"another method ({', '.join(others)}), or a concept file with pairs"
            )
        if not made.method.is_installed:
            raise MissingExtraError(f"{made.method.title} uses {made.method.requires[0]} and", made.method.requires[1])
        return made

    @property
    def name(self) -> str:
        """The erasure as in a model string, with the name of the concept instead of its file."""
        return f"{self.method.name}:{self.concept.name}"

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words that the method is fitted to."""
        return tuple(word for word, _ in self.concept.fitting_words)

    def identify(self, identity: Identity) -> Identity:
        """Return the identity of a model whose vectors are erased; it has the digest of the words fitted on."""
        erase = "erase", f"{self.name}@{self.concept.digest}"
        return replace(identity, settings=(*identity.settings, erase))

    def fit(self, embeddings: TextEmbeddings, model: str) -> Eraser:
        """Fit the method to the vectors of `words`.

        Parameters
        ----------
        embeddings : TextEmbeddings
            Vectors of the words, in order.
        model : str
            Name of the model, for errors.
        """
        vectors = embeddings.vectors.astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1)
        known = np.isfinite(lengths) & (lengths > 0.0) & ~np.array([bool(spans) for spans in embeddings.unknown])
        labels = np.array([label for _, label in self.concept.fitting_words], dtype=np.intp)
        rows = np.cumsum(known) - 1
        n_classes, n_pairs = len(self.concept.classes), len(self.concept.pairs)
        paired = np.arange(n_pairs * n_classes).reshape(n_pairs, n_classes)
        pairs = rows[paired[known[paired].all(axis=1)]] if n_pairs else paired
        counts = np.bincount(labels[known], minlength=n_classes)
        self._check_enough(counts.tolist(), len(pairs), model)
        words = tuple(word for word, is_known in zip(self.words, known, strict=True) if is_known)
        return self.method.fit(FittingWords(words, vectors[known] / lengths[known, None], labels[known], pairs))

    def _check_enough(self, counts: Sequence[int], n_pairs: int, model: str) -> None:
        """Raise InsufficientVocabularyError if a model knows too few words."""
        fewest = min(counts)
        if fewest < _FEWEST_WORDS:
            what = f"{fewest} words of the class {self.concept.classes[counts.index(fewest)]!r}"
            needed = f"{_FEWEST_WORDS} of each class"
        elif self.method.needs_pairs and n_pairs < _FEWEST_PAIRS:
            what, needed = f"{n_pairs} pairs", str(_FEWEST_PAIRS)
        else:
            return
        raise InsufficientVocabularyError(
            f"{self.name} cannot be fitted to {model}: it knows {what} of the concept, and at least {needed} are "
            "needed; use a model that knows more of them (vectors:PATH), or a concept file with more words"
        )


class ErasedEncoder:
    """Encode texts as vectors without a concept."""

    def __init__(self, base: Encoder, erasure: Erasure) -> None:
        self.base, self.erasure = base, erasure
        self.identity = erasure.identify(base.identity)
        self.batch_size = base.batch_size

    def prepare(self, texts: Sequence[str]) -> None:
        """Load the weights of the model."""
        self.base.prepare([*texts, *self.erasure.words])

    @cached_property
    def eraser(self) -> Eraser:
        """The eraser that is fitted to the model."""
        return self.erasure.fit(self.base.encode(self.erasure.words), self.base.identity.name)

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text."""
        return self.eraser.apply(texts, self.base.encode(texts))
