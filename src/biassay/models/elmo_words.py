"""``elmo:DIR`` for words: the layers of a word in its context, summed, side by side, or one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from biassay.models import elmo
from biassay.models.base import Identity, InContext, Span, check_spans
from biassay.models.family import ModelName
from biassay.models.pooling import check_words
from biassay.models.static import tokens

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["NOT_COVERED", "ElmoWordEncoder", "provide"]

NOT_COVERED = "no token of the text stands for the word"
_PARTS = ("last", "first", "mean")
_NO_WORD = ["."]  # stands for a text whose word is not found: its vector is never used


def provide(model: ModelName) -> ElmoWordEncoder:
    check_words(model)
    part = elmo.chosen(model, "word", _PARTS, "last")
    return ElmoWordEncoder(elmo.provide(model), part)


class ElmoWordEncoder:
    """A word that is several tokens is its last one, its first, or the mean of all."""

    def __init__(self, encoder: elmo.ElmoEncoder, part: str) -> None:
        self._encoder, self._part = encoder, part
        self.identity = _of_words(encoder.identity, part)
        self.batch_size = encoder.batch_size

    def prepare(self) -> None:
        self._encoder.load()

    def encode_words(self, texts: Sequence[str], spans: Sequence[Span]) -> InContext:
        import torch

        check_spans(texts, spans)
        found = [_located(text, span) for text, span in zip(texts, spans, strict=True)]
        own = [places for _, places in found]
        done = {row: self._vector(states, own[row]) for row, states in self._encoder.run([words for words, _ in found])}
        vectors = torch.stack([done[row] for row in range(len(texts))]).cpu().numpy()
        missing = [None if places else NOT_COVERED for places in own]
        return InContext.of(self.identity.name, texts, np.asarray(vectors, dtype=np.float32), missing)

    def _vector(self, states: Tensor, own: list[int]) -> Tensor:
        """Of states (layers + 1, words, d) the part that is the word's."""
        own = own or [0]
        if self._part == "mean":
            return self._encoder.joined(states[:, own[0] : own[-1] + 1].mean(dim=1))
        return self._encoder.joined(states[:, own[-1] if self._part == "last" else own[0]])


def _located(text: str, span: Span) -> tuple[list[str], list[int]]:
    """The tokens of a text, and the places of those that overlap with a span."""
    start, end = span
    parts = tokens(text)
    own = [i for i, (_, (a, b)) in enumerate(parts) if a < end and start < b]
    return ([token for token, _ in parts], own) if own else (_NO_WORD, own)


def _of_words(identity: Identity, part: str) -> Identity:
    settings = {"word": part} | {name: value for name, value in identity.settings if name != "pool"}
    return dataclasses.replace(identity, settings=tuple(settings.items()))
