"""Tokenize texts, locate words and report unknown or truncated parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, VectorError
from biassay.models.base import Span

_NO_LIMIT = 1_000_000  # tokenizers without a limit report 1e30

# Why a word has no vector
UNKNOWN = "the word is out of vocabulary"
NOT_COVERED = "no token covers the word"
TOO_LONG = "the word alone exceeds the maximum length of the model"


@dataclass(frozen=True)
class TokenizedTexts:
    """Token ids of several texts, concatenated.

    Attributes
    ----------
    ids : ndarray of int, shape (tokens,)
        Token ids.
    words : ndarray of bool, shape (tokens,)
        True for tokens of the text, False for special tokens.
    lengths, starts : ndarray of int, shape (texts,)
        Number of tokens per text, and index of the first one.
    unknown, truncated_at : list
        As in `TextEmbeddings`.
    padding : int
        Id of the padding token.
    """

    ids: NDArray[np.int64]
    words: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    starts: NDArray[np.int64]
    unknown: list[tuple[Span, ...]]
    truncated_at: list[int | None]
    padding: int

    def padded(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return ids, mask and words of some texts, each of shape (texts, longest), padded on the right."""
        positions = np.arange(self.lengths[rows].max())
        mask = positions < self.lengths[rows, None]
        indices = np.minimum(self.starts[rows, None] + positions, len(self.ids) - 1)
        ids = np.where(mask, self.ids[indices], self.padding)
        return ids, mask.astype(np.int64), (mask & self.words[indices]).astype(np.int64)


class TextTokenizer:
    """Tokenize texts up to the maximum length of a model."""

    def __init__(self, tokenizer: Any, config: Any, label: str) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(f"{label}: its tokenizer has no fast version, which is needed to locate words")
        self._label = label
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self.limit = _get_max_text_tokens(tokenizer, config)
        unknown = tokenizer.unk_token_id
        self._unknown = -1 if unknown is None else int(unknown)
        self._special = {int(i) for i in tokenizer.all_special_ids if i != self._unknown}
        self._padding = next(i for i in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if i is not None)

    @property
    def has_cls(self) -> bool:
        """True if every text starts with a [CLS] token."""
        first = self._backend.encode("a").ids[:1]
        return self._tokenizer.cls_token_id is not None and first == [self._tokenizer.cls_token_id]

    @property
    def folds_case(self) -> bool:
        """True if texts are lower-cased."""
        normalizer = self._backend.normalizer
        return normalizer is not None and "a" in normalizer.normalize_str("A")

    def __call__(self, texts: Sequence[str]) -> TokenizedTexts:
        """Tokenize texts; truncate long ones and report unknown tokens."""
        numbers = [encoding.ids for encoding in self._backend.encode_batch_fast(list(texts), add_special_tokens=True)]
        unknown: list[tuple[Span, ...]] = [()] * len(texts)
        truncated_at: list[int | None] = [None] * len(texts)
        ids, lengths, starts = _flatten(numbers)
        # Offsets are slow to read, so only texts with unknown tokens and long texts are tokenized with them.
        has_unknown = _count_per_text(ids == self._unknown, lengths, starts) > 0
        special_rows = np.flatnonzero(has_unknown | (lengths > self.limit)).tolist()
        for row in special_rows:
            numbers[row], unknown[row], truncated_at[row] = self._tokenize_with_offsets(texts[row])
        if special_rows:
            ids, lengths, starts = _flatten(numbers)
        words = ~np.isin(ids, list(self._special))
        n_words = _count_per_text(words, lengths, starts)
        if not n_words.all():
            text = texts[int(np.argmin(n_words))]
            raise VectorError(f"{self._label}: the text {text!r} consists of special tokens only")
        return TokenizedTexts(ids, words, lengths, starts, unknown, truncated_at, self._padding)

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens per text, without special tokens and truncation."""
        numbers = self._tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return np.array([len(ids) for ids in numbers], dtype=np.int64)

    def locate(self, texts: Sequence[str], spans: Sequence[Span]) -> tuple[TokenizedTexts, list[str | None]]:
        """Tokenize texts and locate one word each; texts that are too long are truncated around the word.

        Returns
        -------
        tuple of (TokenizedTexts, list of str or None)
            Tokenized texts, whose ``words`` mark the tokens of the word, and the reason per text why its word has no
            vector, as in `ContextEmbeddings`. A text without the word is one padding token.
        """
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=True)
        located = [self._locate_word(*each) for each in zip(texts, spans, encodings, strict=True)]
        ids, lengths, starts = _flatten([numbers for numbers, _, _ in located])
        positions, counts, _ = _flatten([positions for _, positions, _ in located])
        words = np.zeros(len(ids), dtype=bool)
        words[np.repeat(starts, counts) + positions] = True
        n = len(texts)
        tokenized = TokenizedTexts(ids, words, lengths, starts, [()] * n, [None] * n, self._padding)
        return tokenized, [reason for *_, reason in located]

    def _locate_word(self, text: str, span: Span, encoding: Any) -> tuple[list[int], Sequence[int], str | None]:
        """Return the token ids of a text, the positions of the word's tokens, and why there are none."""
        ids: list[int] = encoding.ids
        positions = _find_tokens_quickly(encoding, span)
        if positions is None or any(ids[i] in self._special for i in positions):
            positions = [i for i in _find_overlapping_tokens(encoding, span) if ids[i] not in self._special]
        reason = NOT_COVERED if not positions else None
        if positions and all(ids[i] == self._unknown for i in positions):
            reason = UNKNOWN
        if reason is None and len(ids) > self.limit:
            ids, positions = _truncate_around_word(text, encoding, positions, self.limit)
            reason = None if positions else TOO_LONG
        return ([self._padding], (), reason) if reason else (ids, positions, None)

    def _tokenize_with_offsets(self, text: str) -> tuple[list[int], tuple[Span, ...], int | None]:
        """Return token ids, unknown spans and where the text is truncated; special tokens stay at both ends."""
        encoding = self._backend.encode(text)
        ids, offsets = list(encoding.ids), list(encoding.offsets)
        truncated_at = None
        excess = len(ids) - self.limit
        if excess > 0:
            end = len(ids) - encoding.special_tokens_mask[::-1].index(0)
            truncated_at = offsets[end - excess][0]
            del ids[end - excess : end], offsets[end - excess : end]
        spans = tuple(span for token, span in zip(ids, offsets, strict=True) if token == self._unknown)
        return ids, spans, truncated_at


def find_tokens(encoding: Any, span: Span) -> Sequence[int]:
    """Return the positions of the tokens that cover at least one character of a span."""
    positions = _find_tokens_quickly(encoding, span)
    return _find_overlapping_tokens(encoding, span) if positions is None else positions


def _find_tokens_quickly(encoding: Any, span: Span) -> Sequence[int] | None:
    """Find the tokens of a span by three lookups; return None if all offsets must be read, which is ten times slower.

    The lookups do not suffice if several tokens are the bytes of one character (the next token shows that), or if a
    token without characters may lie between others.
    """
    start, end = span
    first, last = encoding.char_to_token(start), encoding.char_to_token(end - 1)
    if first is None or last is None or not 0 <= last - first <= 1:
        return None
    after = encoding.token_to_chars(last + 1)
    return None if after is not None and after[0] < end else range(first, last + 1)


def _find_overlapping_tokens(encoding: Any, span: Span) -> list[int]:
    start, end = span
    return [i for i, (a, b) in enumerate(encoding.offsets) if a < b and a < end and start < b]


def _truncate_around_word(
    text: str, encoding: Any, positions: Sequence[int], limit: int
) -> tuple[list[int], Sequence[int]]:
    """Return the ids of as many tokens around a word as a model can read, and the word's positions among them.

    The special tokens at both ends stay, the word is in the middle as far as possible, and its context is truncated
    between words. There are no positions if the word alone does not fit.
    """
    ids, special = encoding.ids, encoding.special_tokens_mask
    first, stop = positions[0], positions[-1] + 1
    begin, end = special.index(0), len(ids) - special[::-1].index(0)
    room = limit - (len(ids) - end) - begin - (stop - first)
    if room < 0:
        return ids, ()
    left = min(first - begin, max(room // 2, room - (end - stop)))
    right = min(end - stop, room - left)
    a, b = _trim_to_whole_words(text, encoding.offsets, (first - left, first), (stop, stop + right))
    return ids[:begin] + ids[a:b] + ids[end:], [i - a + begin for i in positions]


def _trim_to_whole_words(text: str, offsets: list[Span], left: Span, right: Span) -> Span:
    """Return the first token on the left that starts a word and the end of the last on the right that ends one."""

    def is_gap(index: int) -> bool:
        return index in (0, len(text)) or text[index].isspace() or text[index - 1].isspace()

    begin = next((i for i in range(*left) if is_gap(offsets[i][0])), left[0])
    end = next((i for i in range(right[1], right[0], -1) if is_gap(offsets[i - 1][1])), right[1])
    return begin, end


def _flatten(numbers: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Concatenate lists; return the numbers, the length of each list, and where it starts."""
    lengths = np.fromiter(map(len, numbers), dtype=np.int64, count=len(numbers))
    ids = np.fromiter(chain.from_iterable(numbers), dtype=np.int64, count=int(lengths.sum()))
    return ids, lengths, np.cumsum(lengths) - lengths


def _count_per_text(
    is_counted: NDArray[np.bool_], lengths: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    return np.asarray(np.add.reduceat(np.append(is_counted, False).astype(np.int64), starts) * (lengths > 0))


def _get_max_text_tokens(tokenizer: Any, config: Any) -> int:
    """Return the maximum number of tokens, according to the tokenizer and the model's position embeddings."""
    limits = [tokenizer.model_max_length]
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    if positions:
        # RoBERTa and similar models count positions from the padding id + 1.
        offset = config.pad_token_id + 1 if config.model_type in _POSITIONS_AFTER_PADDING else 0
        limits.append(positions - offset)
    return int(min(*limits, _NO_LIMIT))


_POSITIONS_AFTER_PADDING = frozenset(
    ["roberta", "xlm-roberta", "camembert", "longformer", "mpnet", "roberta-prelayernorm", "xlm-roberta-xl", "esm"]
)
