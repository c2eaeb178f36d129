"""Texts to token numbers, with the special tokens a model expects; unknown and truncated parts are reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, VectorError
from biassay.models.ahead import uncollected
from biassay.models.base import Span

__all__ = [
    "NOT_COVERED",
    "TOO_LONG",
    "UNKNOWN",
    "Located",
    "Tokenised",
    "Tokeniser",
    "count_tokens",
    "longest_text",
    "tokens_at",
]

_NO_LIMIT = 1_000_000  # tokenizers without a limit say 1e30

# Why a word has no vector
UNKNOWN = "the model does not know the word"
NOT_COVERED = "no token of the model stands for the word"
TOO_LONG = "the word alone is longer than the model can read"


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


@dataclass(frozen=True)
class Located:
    """Texts of which each has a word that was looked for.

    Attributes
    ----------
    tokenised
        Its ``words`` are the tokens of the word alone. Of a text without it, one filling token is left.
    missing
        As in `InContext`.
    """

    tokenised: Tokenised
    missing: list[str | None]


class Tokeniser:
    """A model's tokeniser, with the model's limit of length."""

    def __init__(self, tokenizer: Any, config: Any, name: str) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(f"model {name!r}: its tokenizer has no fast version, which is needed to locate words")
        self._name = name
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self.limit = longest_text(tokenizer, config)
        unknown = tokenizer.unk_token_id
        self._unknown = -1 if unknown is None else int(unknown)
        self._special = {int(i) for i in tokenizer.all_special_ids if i != self._unknown}
        self._padding = next(i for i in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if i is not None)

    @property
    def has_cls(self) -> bool:
        """Is a [CLS] token put in front of every text?"""
        first = self._backend.encode("a").ids[:1]
        return self._tokenizer.cls_token_id is not None and first == [self._tokenizer.cls_token_id]

    @property
    def folds_case(self) -> bool:
        """Are capitals written small?"""
        normalizer = self._backend.normalizer
        return normalizer is not None and "a" in normalizer.normalize_str("A")

    @uncollected()
    def __call__(self, texts: Sequence[str]) -> Tokenised:
        numbers = [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts), add_special_tokens=True)]
        unknown: list[tuple[Span, ...]] = [()] * len(texts)
        cut: list[int | None] = [None] * len(texts)
        ids, lengths, starts = _flat(numbers)
        unusual = self._unusual_rows(ids, lengths, starts)
        for i in unusual:
            numbers[i], unknown[i], cut[i] = self._unusual(texts[i])
        if unusual:
            ids, lengths, starts = _flat(numbers)
        words = ~np.isin(ids, list(self._special))
        own = np.add.reduceat(np.append(words, False).astype(np.int64), starts) * (lengths > 0)
        if not own.all():
            text = texts[int(np.argmin(own))]
            raise VectorError(f"model {self._name!r}: the text {text!r} has no token besides special ones")
        return Tokenised(ids, words, lengths, starts, unknown, cut, self._padding)

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """How many tokens every text has, however long it is, special ones left out."""
        return count_tokens(self._tokenizer, texts)

    @uncollected()
    def locate(self, texts: Sequence[str], spans: Sequence[Span]) -> Located:
        """Texts with the tokens of one word each; what is too long is cut to the words around it."""
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=True)
        found = [self._word(*each) for each in zip(texts, spans, encodings, strict=True)]
        ids, lengths, starts = _flat([numbers for numbers, _, _ in found])
        flat, counts, _ = _flat([places for _, places, _ in found])
        words = np.zeros(len(ids), dtype=bool)
        words[np.repeat(starts, counts) + flat] = True
        n = len(texts)
        return Located(
            Tokenised(ids, words, lengths, starts, [()] * n, [None] * n, self._padding),
            [reason for *_, reason in found],
        )

    def _word(self, text: str, span: Span, encoding: Any) -> tuple[list[int], Sequence[int], str | None]:
        """Token numbers of a text, the places of the word's own ones, and why there are none."""
        ids: list[int] = encoding.ids
        own = _quickly(encoding, span)
        if own is None or any(ids[i] in self._special for i in own):
            own = [i for i in _overlapping(encoding, span) if ids[i] not in self._special]
        reason = NOT_COVERED if not own else UNKNOWN if all(ids[i] == self._unknown for i in own) else None
        if reason is None and len(ids) > self.limit:
            ids, own = _around(text, encoding, own, self.limit)
            reason = None if own else TOO_LONG
        return ([self._padding], (), reason) if reason else (ids, own, None)

    def _unusual_rows(self, ids: NDArray[np.int64], lengths: NDArray[np.int64], starts: NDArray[np.int64]) -> list[int]:
        """Texts that are too long or hold an unknown token."""
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


def tokens_at(encoding: Any, span: Span) -> Sequence[int]:
    """The tokens that stand for at least one character of a span."""
    quick = _quickly(encoding, span)
    return _overlapping(encoding, span) if quick is None else quick


def _quickly(encoding: Any, span: Span) -> Sequence[int] | None:
    """The tokens of a word where three questions settle it; None: read all offsets, which takes ten times as long.

    They do not settle it where several tokens are the bytes of one character (the next token shows that), nor where a
    token without characters may lie between others.
    """
    start, end = span
    first, last = encoding.char_to_token(start), encoding.char_to_token(end - 1)
    if first is None or last is None or not 0 <= last - first <= 1:
        return None
    after = encoding.token_to_chars(last + 1)
    return None if after is not None and after[0] < end else range(first, last + 1)


def _overlapping(encoding: Any, span: Span) -> list[int]:
    """The tokens that stand for at least one character of a span."""
    start, end = span
    return [i for i, (a, b) in enumerate(encoding.offsets) if a < b and a < end and start < b]


def _around(text: str, encoding: Any, own: Sequence[int], limit: int) -> tuple[list[int], Sequence[int]]:
    """The numbers of as many tokens around a word as a model can read, and the word's places among them.

    The special tokens at both ends stay, the word is in the middle as far as the text allows, and what is next to it is
    cut between words if it has any. No places: the word alone does not fit.
    """
    ids, special = encoding.ids, encoding.special_tokens_mask
    first, behind = own[0], own[-1] + 1
    begin, end = special.index(0), len(ids) - special[::-1].index(0)
    room = limit - (len(ids) - end) - begin - (behind - first)
    if room < 0:
        return ids, ()
    left = min(first - begin, max(room // 2, room - (end - behind)))
    right = min(end - behind, room - left)
    a, b = _between_words(text, encoding.offsets, (first - left, first), (behind, behind + right))
    return ids[:begin] + ids[a:b] + ids[end:], [i - a + begin for i in own]


def _between_words(text: str, offsets: list[Span], left: Span, right: Span) -> Span:
    """The first token of the left part that begins a word, and the end of the last one of the right that ends one."""

    def is_gap(place: int) -> bool:
        return place in (0, len(text)) or text[place].isspace() or text[place - 1].isspace()

    begin = next((i for i in range(*left) if is_gap(offsets[i][0])), left[0])
    end = next((i for i in range(right[1], right[0], -1) if is_gap(offsets[i - 1][1])), right[1])
    return begin, end


def _flat(numbers: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All numbers in a row, the length of each list, and where it starts."""
    lengths = np.fromiter(map(len, numbers), dtype=np.int64, count=len(numbers))
    ids = np.fromiter(chain.from_iterable(numbers), dtype=np.int64, count=int(lengths.sum()))
    return ids, lengths, np.cumsum(lengths) - lengths


def count_tokens(tokenizer: Any, texts: Sequence[str]) -> NDArray[np.int64]:
    """How many tokens a tokenizer makes of every text, special ones left out."""
    numbers = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return np.array([len(ids) for ids in numbers], dtype=np.int64)


def longest_text(tokenizer: Any, config: Any) -> int:
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
