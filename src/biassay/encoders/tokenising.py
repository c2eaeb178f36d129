"""Texts to token numbers, with the special tokens a model expects; what is unknown or too long is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Span
from biassay.errors import ModelError, VectorError

__all__ = ["Tokenised", "Tokeniser"]

_NO_LIMIT = 1_000_000  # tokenizers without a limit say 1e30


@dataclass(frozen=True)
class Tokenised:
    """Token numbers of some texts, one text behind the other.

    Attributes
    ----------
    ids, words : (tokens,)
        Numbers of all tokens, and which are of the text itself rather than special.
    lengths, starts : (texts,)
        How many tokens a text has, and where they begin.
    unknown, cut
        As in `Encoded`.
    """

    ids: NDArray[np.int64]
    words: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    starts: NDArray[np.int64]
    unknown: list[tuple[Span, ...]]
    cut: list[int | None]
    padding: int

    def padded(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(ids, mask, words) of some texts, each (texts, longest), padded on the right."""
        places = np.arange(self.lengths[rows].max())
        mask = places < self.lengths[rows, None]
        at = np.minimum(self.starts[rows, None] + places, len(self.ids) - 1)
        ids = np.where(mask, self.ids[at], self.padding)
        return ids, mask.astype(np.int64), (mask & self.words[at]).astype(np.int64)


class Tokeniser:
    """A model's tokeniser, with the model's limit of length."""

    def __init__(self, tokenizer: Any, config: Any, name: str) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(f"model {name!r}: its tokenizer has no fast form, which tells where a token stands")
        self._name = name
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self.limit = _limit(tokenizer, config)
        unknown = tokenizer.unk_token_id
        self._unknown = -1 if unknown is None else int(unknown)
        special = [i for i in tokenizer.all_special_ids if i != self._unknown]
        self._special = np.array(special, dtype=np.int64)
        self._padding = next(i for i in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if i is not None)

    @property
    def has_cls(self) -> bool:
        """Is a [CLS] token put in front of every text?"""
        first = self._backend.encode("a").ids[:1]
        return self._tokenizer.cls_token_id is not None and first == [self._tokenizer.cls_token_id]

    def __call__(self, texts: Sequence[str]) -> Tokenised:
        numbers = [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts), add_special_tokens=True)]
        unknown: list[tuple[Span, ...]] = [()] * len(texts)
        cut: list[int | None] = [None] * len(texts)
        for i in self._unusual_rows(numbers):
            numbers[i], unknown[i], cut[i] = self._unusual(texts[i])
        ids, lengths, starts = _flat(numbers)
        words = ~np.isin(ids, self._special)
        own = np.add.reduceat(np.append(words, False).astype(np.int64), starts) * (lengths > 0)
        if not own.all():
            text = texts[int(np.argmin(own))]
            raise VectorError(f"model {self._name!r}: the text {text!r} has no token besides special ones")
        return Tokenised(ids, words, lengths, starts, unknown, cut, self._padding)

    def _unusual_rows(self, numbers: list[list[int]]) -> list[int]:
        """Texts that are too long or hold an unknown token."""
        ids, lengths, starts = _flat(numbers)
        strange = np.add.reduceat(np.append(ids == self._unknown, False).astype(np.int64), starts) * (lengths > 0)
        rows: list[int] = np.flatnonzero((strange > 0) | (lengths > self.limit)).tolist()
        return rows

    def _unusual(self, text: str) -> tuple[list[int], tuple[Span, ...], int | None]:
        """A text with unknown tokens, or too long: its middle is cut so that special tokens stay at both ends."""
        encoding = self._backend.encode(text)
        ids, offsets = list(encoding.ids), list(encoding.offsets)
        special = [bool(mark) for mark in encoding.special_tokens_mask]
        cut = None
        excess = len(ids) - self.limit
        if excess > 0:
            end = len(ids) - next(i for i, mark in enumerate(reversed(special)) if not mark)
            cut = offsets[end - excess][0]
            del ids[end - excess : end], offsets[end - excess : end]
        spans = tuple((a, b) for number, (a, b) in zip(ids, offsets, strict=True) if number == self._unknown)
        return ids, spans, cut


def _flat(numbers: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All numbers in a row, the length of each list, and where it starts."""
    lengths = np.fromiter(map(len, numbers), dtype=np.int64, count=len(numbers))
    ids = np.fromiter(chain.from_iterable(numbers), dtype=np.int64, count=int(lengths.sum()))
    return ids, lengths, np.cumsum(lengths) - lengths


def _limit(tokenizer: Any, config: Any) -> int:
    """The most tokens a text may have: what the tokeniser says, and what the model has positions for."""
    limits = [tokenizer.model_max_length]
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    if positions:
        # RoBERTa and its kin number positions from behind the padding's own number.
        offset = config.pad_token_id + 1 if config.model_type in _POSITIONS_BEHIND_PADDING else 0
        limits.append(positions - offset)
    return int(min(*limits, _NO_LIMIT))


_POSITIONS_BEHIND_PADDING = frozenset(
    ["roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "roberta-prelayernorm", "xlm-roberta-xl", "esm"]
)
