"""What every encoder is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from biassay.errors import VectorError
from biassay.texts.requests import Blank

__all__ = [
    "COLUMNS",
    "BlankFiller",
    "Encoded",
    "Encoder",
    "Filled",
    "Identity",
    "InContext",
    "Span",
    "WordEncoder",
    "check_spans",
]

COLUMNS = ("log_p", "log_initial", "log_continuing", "distance")
"""Of a piece of a word: the logarithm of its probability, those of the mass of tokens that begin a word and of those
that continue one, and the distance of the sensitivity test."""

Span = tuple[int, int]
_STORE_FORMAT = 2  # of the files that hold vectors: another format is another folder


@dataclass(frozen=True)
class Identity:
    """What identifies a model.

    Attributes
    ----------
    name : str
        What the user typed, without its settings.
    family : str
        The kind of encoder.
    revision : str or None
        Version or fingerprint of the weights. None: not known, so vectors are never kept.
    settings : tuple of (name, value)
        Everything else that changes the vectors.
    lost_hint : str
        What a user may try when the model does not know a word.
    sends_to : str
        Where texts go, and with which key, if another program is asked.
    """

    name: str
    family: str
    revision: str | None
    settings: tuple[tuple[str, str], ...] = ()
    lost_hint: str = ""
    sends_to: str = field(default="", compare=False)

    @property
    def options(self) -> str:
        """The settings as the papers' ``options`` column writes them."""
        return ";".join(f"{name}={value}" for name, value in self.settings)

    @property
    def content(self) -> str:
        """What stands for the weights in a seed: a copy of a model under another name draws the same."""
        return f"{self.family} {self.name if self.revision is None else self.revision}"

    @property
    def weights(self) -> str:
        """Digest of the weights, whatever the settings; see `weights_digest`."""
        return weights_digest(self.family, self.name, self.revision)

    @property
    def key(self) -> str | None:
        """Name of the store folder: that of the weights and the settings, not of the place where the files lie."""
        if self.revision is None:
            return None
        content = json.dumps([_STORE_FORMAT, self.family, self.revision, self.settings], sort_keys=True)
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def weights_digest(family: str, name: str, revision: str | None) -> str:
    """Return a digest that copies of a model share: of its revision, or of its name if it has none."""
    content = f"{family} {name}" if revision is None else revision
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors of some texts.

    Attributes
    ----------
    vectors : (n, d) float32
    unknown : n tuples of (start, end)
        Spans of each text that the model does not know. A text whose stimulus overlaps with one is lost.
    cut : n of int or None
        The first character that the model did not read because the text was too long. None: read to the end.
    """

    vectors: NDArray[np.float32]
    unknown: tuple[tuple[Span, ...], ...]
    cut: tuple[int | None, ...]

    @classmethod
    def of(
        cls,
        vectors: NDArray[np.float32],
        unknown: Sequence[tuple[Span, ...]] | None = None,
        cut: Sequence[int | None] | None = None,
    ) -> Encoded:
        """Vectors of texts; by default all texts are known and were read to the end."""
        n = len(vectors)
        return cls(vectors, tuple(unknown) if unknown else ((),) * n, tuple(cut) if cut else (None,) * n)

    def rows(self, rows: Sequence[int]) -> Encoded:
        """Some of the texts, in the order asked for."""
        unknown, cut = map(self.unknown.__getitem__, rows), map(self.cut.__getitem__, rows)
        return Encoded(self.vectors[list(rows)], tuple(unknown), tuple(cut))


class Encoder(Protocol):
    """Turns texts into vectors.

    Making one is quick and checks what can be checked; ``prepare`` sees all texts before the first batch is encoded,
    and is where weights are loaded. The length of a batch never changes a vector beyond rounding.

    An encoder may have more:

    folds_case : bool
        True: words that differ only in case are one word to it, and discovery then asks for one of them only.
    readings : tuple of `Reading`
        All that it can give of a text, its own vectors among them. It then has
        ``encode_readings(texts, names) -> {name: Encoded}``, which computes those asked for in one pass.
    count_tokens(texts) -> (n,) whole numbers
        How many tokens every text has, special ones left out; quick, and without the weights.
    rank_words(words) -> (n,) numbers or None
        Places of words in a vocabulary in order of frequency, 1 for the most frequent and NaN for words that it lacks.
        None: the order is another.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def batch_size(self) -> int: ...

    def prepare(self, texts: Sequence[str]) -> None: ...

    def encode(self, texts: Sequence[str]) -> Encoded: ...


@dataclass(frozen=True, eq=False)
class InContext:
    """Vectors of words, each in a text of its own.

    Attributes
    ----------
    vectors : (n, d) float32
        NaN where the word has no vector.
    missing : n of str or None
        Why a word has no vector. None: it has one.
    """

    vectors: NDArray[np.float32]
    missing: tuple[str | None, ...]

    @classmethod
    def of(
        cls, name: str, texts: Sequence[str], vectors: NDArray[np.float32], missing: Sequence[str | None]
    ) -> InContext:
        """Vectors as the model ``name`` gave them; those of missing words, which mean nothing, become NaN."""
        absent = np.array([reason is not None for reason in missing], dtype=bool)
        broken = ~np.isfinite(vectors).all(axis=1) & ~absent
        if broken.any():
            # Otherwise it would look like a missing word from here on.
            raise VectorError(
                f"model {name!r}: the vector of a word in {texts[int(np.argmax(broken))]!r} is not finite"
            )
        vectors[absent] = np.nan
        return cls(vectors, tuple(missing))


def check_spans(texts: Sequence[str], spans: Sequence[Span]) -> None:
    """Refuse spans that name no part of their text."""
    if len(texts) != len(spans):
        raise VectorError(
            f"{len(texts)} texts and {len(spans)} spans were given; every text needs the span of its word"
        )
    for text, (start, end) in zip(texts, spans, strict=True):
        if not 0 <= start < end <= len(text):
            raise VectorError(f"({start}, {end}) is not a span of characters in the text {text!r}")


class WordEncoder(Protocol):
    """Turns words in their contexts into vectors.

    Every text comes with the span of its word, in characters. Batches are made by what one call holds and nothing
    else, so that the same call gives the same bits again.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def batch_size(self) -> int: ...

    def prepare(self) -> None: ...

    def encode_words(self, texts: Sequence[str], spans: Sequence[Span]) -> InContext: ...


@dataclass(frozen=True, eq=False)
class Filled:
    """What a language model says of the words for a blank, the pieces of one word behind those of the other.

    Attributes
    ----------
    lengths : (words,) int32
        How many pieces every word has; 0: the model does not know the word.
    pieces : (m,) int32
        Numbers of the pieces.
    columns : (m, 4) float32
        Of every piece, the earlier ones of its word put in place: see `COLUMNS`. NaN where the model does not say.
    unknown : int
        How many parts of the text outside the blank the model does not know.
    passes : int
        How many sequences it read to answer.
    """

    lengths: NDArray[np.int32]
    pieces: NDArray[np.int32]
    columns: NDArray[np.float32]
    unknown: int
    passes: int

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the pieces of every word begin."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    @property
    def words(self) -> list[tuple[int, ...] | None]:
        """The pieces of every word; None: the model does not know it."""
        ends = zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(self.pieces[start : start + n].tolist()) if n else None for start, n in ends]


class BlankFiller(Protocol):
    """Says how likely words are in the blanks of texts.

    Making one is quick. ``prepare`` is where the weights are loaded; ``batches`` plans what is asked together, by the
    places of all blanks, asked before or not. One that gives log-probabilities and no other columns has
    ``has_output_layer = False``.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def kind(self) -> Literal["masked", "causal"]: ...

    @property
    def has_mask(self) -> bool: ...

    def prepare(self, blanks: Sequence[Blank]) -> None: ...

    def batches(self, blanks: Sequence[Blank]) -> Sequence[Sequence[int]]: ...

    def fill(self, blanks: Sequence[Blank]) -> list[Filled]: ...
