"""Turn blanks into token queries and group them into forward passes with shared prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.models.base import Span
from biassay.models.transformers.tokenizer import find_tokens
from biassay.prompts.requests import Blank, Slot

if TYPE_CHECKING:
    import torch


WordTokens = tuple[list[int], list[int]]  # tokens before the word, and its own tokens


@dataclass(frozen=True)
class TokenQuery:
    """Query the probability of the token `target` at a position of a sequence.

    For a causal model, `position` is the position before the token.
    """

    ids: tuple[int, ...]
    position: int
    target: int


@dataclass(frozen=True)
class TokenizedBlank:
    """A blank as token queries: number of tokens per word, one query per token, and number of unknown tokens."""

    lengths: tuple[int, ...]
    queries: tuple[TokenQuery, ...]
    unknown: int


class BlankTokenizer:
    """Turn blanks into token queries with the tokenizer of a model."""

    def __init__(self, tokenizer: Any, kind: Literal["masked", "causal"]) -> None:
        self._kind = kind
        self._mask: str = tokenizer.mask_token if kind == "masked" else ""
        self._mask_id, self._unknown = tokenizer.mask_token_id, tokenizer.unk_token_id
        self._backend = tokenizer.backend_tokenizer

    def plan(self, blanks: Sequence[Blank], most: int) -> list[list[int]]:
        """Group the indices of blanks into batches of about `most` queries each.

        Texts with the same beginning are adjacent, so that a causal model can score one while it reads another.
        """
        ids = self._tokenize_texts(["".join(blank.halves(self._mask)) for blank in blanks])
        # The number of tokens of a word hardly depends on the sentence, and is expensive to count.
        samples = list({blank.words: blank for blank in reversed(blanks)}.values())
        sizes = {
            blank.words: sum(tokenized.lengths)
            for blank, tokenized in zip(samples, self.tokenize(samples), strict=True)
        }
        batches: list[list[int]] = []
        room = 0
        for index in sorted(range(len(blanks)), key=ids.__getitem__):
            size = sizes[blanks[index].words]
            if size > room or not batches:
                batches.append([])
                room = most
            batches[-1].append(index)
            room -= size
        return batches

    def tokenize(self, blanks: Sequence[Blank]) -> list[TokenizedBlank]:
        """Return the queries of each blank, word by word."""
        if self._kind == "causal" and any(Slot.MASKED in blank.segments for blank in blanks):
            raise UsageError("a causal model has no mask token, so groups cannot be masked")
        halves = [blank.halves(self._mask) for blank in blanks]
        texts = [before + after for before, after in halves]
        unknown = [ids.count(self._unknown) for ids in self._tokenize_texts(texts)]
        words = self._tokenize_words(blanks, halves)
        if self._kind == "causal":
            queries = [[_make_causal_queries(start, pieces) for start, pieces in blank_words] for blank_words in words]
        else:
            queries = self._query_masks(blanks, halves, words)
        return [
            TokenizedBlank(tuple(len(pieces) for _, pieces in blank_words), tuple(chain.from_iterable(own)), n_unknown)
            for blank_words, own, n_unknown in zip(words, queries, unknown, strict=True)
        ]

    def encode(self, texts: list[str], *, special: bool = True) -> list[Any]:
        """Tokenize texts with offsets; unlike the tokenizer of transformers, thread-safe."""
        encodings: list[Any] = self._backend.encode_batch(texts, add_special_tokens=special)
        return encodings

    def _tokenize_texts(self, texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._backend.encode_batch_fast(texts, add_special_tokens=True)]

    def _tokenize_words(self, blanks: Sequence[Blank], halves: Sequence[tuple[str, str]]) -> list[list[WordTokens]]:
        """Tokenize every word in its blank; a word with an unknown token has no tokens."""
        texts = [
            before + word + after for blank, (before, after) in zip(blanks, halves, strict=True) for word in blank.words
        ]
        encodings = iter(self.encode(texts))
        words = []
        for blank, (before, _) in zip(blanks, halves, strict=True):
            spans = [(len(before), len(before) + len(word)) for word in blank.words]
            words.append([self._split_word(encoding, span) for span, encoding in zip(spans, encodings, strict=False)])
        return words

    def _split_word(self, encoding: Any, span: Span) -> WordTokens:
        ids, positions = encoding.ids, find_tokens(encoding, span)
        start, end = (positions[0], positions[-1] + 1) if positions else (0, 0)
        pieces = ids[start:end]
        return ids[:start], [] if self._unknown in pieces else pieces

    def _query_masks(
        self, blanks: Sequence[Blank], halves: Sequence[tuple[str, str]], words: Sequence[Sequence[WordTokens]]
    ) -> list[list[list[TokenQuery]]]:
        """Query every word in a text with as many masks as the word has tokens."""
        variants = [  # blank, number of masks
            (index, n) for index, own in enumerate(words) for n in sorted({len(pieces) for _, pieces in own} - {0})
        ]
        texts = [halves[index][0] + " ".join([self._mask] * n) + halves[index][1] for index, n in variants]
        masked = {
            (index, n): (ids, self._find_masks(ids, blanks[index]))
            for (index, n), ids in zip(variants, self._tokenize_texts(texts), strict=True)
        }
        return [
            [_make_masked_queries(*masked[index, len(pieces)], pieces) if pieces else [] for _, pieces in own]
            for index, own in enumerate(words)
        ]

    def _find_masks(self, ids: list[int], blank: Blank) -> list[int]:
        """Return the positions of the blank's masks, without that of a masked group."""
        positions = [i for i, token in enumerate(ids) if token == self._mask_id]
        if Slot.MASKED not in blank.segments:
            return positions
        group_first = blank.segments.index(Slot.MASKED) < blank.segments.index(Slot.BLANK)
        return positions[1:] if group_first else positions[:-1]


def _make_causal_queries(start: list[int], pieces: Sequence[int]) -> list[TokenQuery]:
    """Query each token of a word after the preceding ones."""
    if pieces and not start:
        raise UsageError("a causal model reads from left to right: a blank needs text before it")
    ids = (*start, *pieces)
    return [TokenQuery(ids[: len(start) + i], len(start) + i - 1, piece) for i, piece in enumerate(pieces)]


def _make_masked_queries(ids: list[int], positions: list[int], pieces: Sequence[int]) -> list[TokenQuery]:
    """Query each token of a word, with the preceding tokens in place of their masks."""
    filled, queries = list(ids), []
    for position, piece in zip(positions, pieces, strict=True):
        queries.append(TokenQuery(tuple(filled), position, piece))
        filled[position] = piece
    return queries


IntArray = NDArray[np.int64]
_MAX_GROUP_SIZE = 128  # sequences
_MIN_SAVING = 1.5  # ratio of tokens read without and with shared prefixes


@dataclass(frozen=True, eq=False)
class ForwardPlan:
    """Sequences that answer a set of queries, in one or more forward passes.

    Attributes
    ----------
    sequences : sequence of tuples of int
        Token ids.
    rows, positions, targets : ndarray of int, shape (n,)
        Per query: row of its sequence, position within it, and queried token.
    """

    sequences: Sequence[tuple[int, ...]]
    rows: IntArray
    positions: IntArray
    targets: IntArray

    @classmethod
    def from_queries(cls, queries: Sequence[TokenQuery], kind: Literal["masked", "causal"]) -> ForwardPlan:
        """Plan one pass over every distinct sequence, shortest first.

        For a causal model, prefixes of longer sequences are left out.
        """
        ordered = sorted({query.ids for query in queries})
        hosts = list(range(len(ordered)))  # the sequence that answers for each
        if kind == "causal":
            for i in range(len(ordered) - 2, -1, -1):
                ids = ordered[i]
                if ordered[i + 1][: len(ids)] == ids:
                    hosts[i] = hosts[i + 1]
        planned = sorted(set(hosts), key=lambda i: len(ordered[i]))
        rows = {i: row for row, i in enumerate(planned)}
        row_by_ids = {ids: rows[host] for ids, host in zip(ordered, hosts, strict=True)}
        return cls(
            [ordered[i] for i in planned],
            np.array([row_by_ids[query.ids] for query in queries], dtype=np.int64),
            np.array([query.position for query in queries], dtype=np.int64),
            np.array([query.target for query in queries], dtype=np.int64),
        )

    def count_first_reads(self, owners: IntArray, count: int) -> IntArray:
        """Count sequences per owner, given the owner of each query. A shared sequence counts for its first query."""
        _, first = np.unique(self.rows, return_index=True)
        return np.bincount(owners[first], minlength=count)

    def select(self, rows: Sequence[int]) -> tuple[ForwardPlan, NDArray[np.intp]]:
        """Return a plan for the given rows in their order, and the indices of its queries in this plan."""
        new_row = np.full(len(self.sequences), -1)
        new_row[list(rows)] = np.arange(len(rows))
        queries = np.flatnonzero(new_row[self.rows] >= 0)
        queries = queries[np.argsort(new_row[self.rows[queries]], kind="stable")]
        sequences = [self.sequences[row] for row in rows]
        return ForwardPlan(
            sequences, new_row[self.rows[queries]], self.positions[queries], self.targets[queries]
        ), queries

    def batches(self, most_rows: int, most_tokens: int) -> Iterator[tuple[ForwardPlan, NDArray[np.intp]]]:
        """Yield batches within the limits, each with the indices of its queries."""
        start = 0
        while start < len(self.sequences):
            n = most_rows
            while n > 1 and n * len(self.sequences[min(start + n, len(self.sequences)) - 1]) > most_tokens:
                n //= 2
            yield self.select(range(start, min(start + n, len(self.sequences))))
            start += n

    def halves(self) -> list[ForwardPlan]:
        """Split the sequences into two halves. Return an empty list for a single sequence."""
        n = len(self.sequences)
        return [self.select(rows)[0] for rows in (range(n // 2), range(n // 2, n))] if n > 1 else []

    def padded(self, padding: int) -> tuple[IntArray, IntArray]:
        """Return ids and mask, each of shape (sequences, longest), padded on the right."""
        lengths = np.array([len(ids) for ids in self.sequences])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.full(mask.shape, padding, dtype=np.int64)
        ids[mask] = np.concatenate([np.array(sequence, dtype=np.int64) for sequence in self.sequences])
        return ids, mask.astype(np.int64)

    def distinct_positions(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the row and position of each distinct queried position, and the index of each query among them."""
        longest = max(map(len, self.sequences))
        keys, indices = np.unique(self.rows * longest + self.positions, return_inverse=True)
        return keys // longest, keys % longest, indices


@dataclass(frozen=True, eq=False)
class PrefixGroups:
    """Groups of sequences that share a prefix, which the model reads once per group.

    Attributes
    ----------
    whole : ForwardPlan
        Whole sequences with their queries.
    groups : ndarray of int, shape (sequences,)
        Group of each sequence, in ascending order.
    lengths : ndarray of int, shape (sequences,)
        Length of the prefix of each sequence.
    """

    whole: ForwardPlan
    groups: IntArray
    lengths: IntArray

    @property
    def prefix_rows(self) -> tuple[IntArray, IntArray]:
        """Row of the first sequence per group, and index of the group per sequence."""
        _, first, index = np.unique(self.groups, return_index=True, return_inverse=True)
        return first, index

    @property
    def in_prefix(self) -> NDArray[np.bool_]:
        """True for queries that the prefix alone answers."""
        return np.asarray(self.whole.positions < self.lengths[self.whole.rows])

    @property
    def prefix_batch(self) -> ForwardPlan:
        """Prefixes with their queries."""
        whole, inside, (first, index) = self.whole, self.in_prefix, self.prefix_rows
        prefixes = [whole.sequences[row][: self.lengths[row]] for row in first]
        return ForwardPlan(prefixes, index[whole.rows[inside]], whole.positions[inside], whole.targets[inside])

    @property
    def suffix_batch(self) -> ForwardPlan:
        """Suffixes with their queries."""
        whole, outside = self.whole, ~self.in_prefix
        suffixes = [ids[length:] for ids, length in zip(whole.sequences, self.lengths, strict=True)]
        positions = (whole.positions - self.lengths[whole.rows])[outside]
        return ForwardPlan(suffixes, whole.rows[outside], positions, whole.targets[outside])

    def halves(self) -> list[PrefixGroups]:
        """Split the groups, or the sequences of a single group, into halves. Return an empty list for one sequence."""
        n, (first, _) = len(self.groups), self.prefix_rows
        row = int(first[len(first) // 2]) or n // 2
        parts = (range(row), range(row, n)) if row else ()
        return [PrefixGroups(self.whole.select(rows)[0], self.groups[rows], self.lengths[rows]) for rows in parts]


@dataclass(eq=False)
class PrefixCache:
    """Attention keys and values of prefixes, passed from one forward pass to the next.

    Attributes
    ----------
    keep : bool
        If True, the next pass stores its keys and values.
    """

    keep: bool = False
    _cache: Any = None
    _mask: Any = None
    _lengths: Any = None

    def model_arguments(self, mask: torch.Tensor) -> dict[str, Any]:
        """Return the arguments of the model besides the token ids."""
        import torch

        if self._lengths is None:
            return {"attention_mask": mask, "use_cache": self.keep}
        return {
            "attention_mask": torch.cat([self._mask, mask], dim=1),
            "position_ids": self._lengths[:, None] + torch.arange(mask.shape[1], device=mask.device),
            "past_key_values": self._cache,
            "use_cache": True,
        }

    def store(self, output: Any, mask: torch.Tensor) -> None:
        """Store the keys and values of a pass if `keep` is True."""
        if self.keep:
            self._cache, self._mask = output.past_key_values, mask

    def select(self, groups: torch.Tensor, lengths: torch.Tensor) -> None:
        """Select the prefix of each sequence of the next pass, and its length."""
        if any(self._cache.is_sliding):
            raise UsageError("a model with sliding-window attention cannot share prefixes of different lengths")
        self._cache.batch_select_indices(groups)
        self._mask, self._lengths, self.keep = self._mask[groups], lengths, False


def group_by_prefix(plan: ForwardPlan, most_rows: int, most_tokens: int) -> list[tuple[PrefixGroups, NDArray[np.intp]]]:
    """Group sequences by shared prefixes.

    Parameters
    ----------
    plan : ForwardPlan
        Sequences and queries.
    most_rows, most_tokens : int
        Maximum number of sequences and of padded tokens per batch.

    Returns
    -------
    list of (PrefixGroups, ndarray of int)
        Batches with the indices of their queries; empty if sharing saves too little.
    """
    if not plan.sequences or len(plan.sequences[0]) == 1:  # a single token has no prefix
        return []
    groups = _find_groups(plan.sequences)
    shared = sum(length + sum(len(plan.sequences[row]) - length for row in rows) for length, rows in groups)
    if sum(map(len, plan.sequences)) < _MIN_SAVING * shared:
        return []
    groups.sort(key=lambda group: group[0])
    batches: list[list[tuple[int, list[int]]]] = [[]]
    n_rows = longest = 0
    for group in groups:
        n_rows += len(group[1])
        longest = max(longest, *(len(plan.sequences[row]) for row in group[1]))
        if batches[-1] and (n_rows > most_rows or n_rows * longest > most_tokens):
            batches.append([])
            n_rows, longest = len(group[1]), max(len(plan.sequences[row]) for row in group[1])
        batches[-1].append(group)
    return [_make_group_batch(plan, batch) for batch in batches]


def _find_groups(sequences: Sequence[tuple[int, ...]]) -> list[tuple[int, list[int]]]:
    """Group neighbours in sorted order that share most tokens; return (prefix length, rows) per group."""
    groups: list[tuple[int, list[int]]] = []
    for row in sorted(range(len(sequences)), key=sequences.__getitem__):
        ids = sequences[row]
        if groups:
            length, rows = groups[-1]
            pairs = zip(sequences[rows[0]][:length], ids[:-1], strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            current = length if len(rows) > 1 else min(length, len(ids) - 1)
            if len(rows) < _MAX_GROUP_SIZE and same and 3 * same >= 2 * current:
                groups[-1] = (same, [*rows, row])
                continue
        groups.append((len(ids) - 1, [row]))
    return groups


def _make_group_batch(
    plan: ForwardPlan, groups: Sequence[tuple[int, list[int]]]
) -> tuple[PrefixGroups, NDArray[np.intp]]:
    whole, queries = plan.select([row for _, rows in groups for row in rows])
    sizes = [len(rows) for _, rows in groups]
    lengths = np.repeat([length for length, _ in groups], sizes)
    return PrefixGroups(whole, np.repeat(np.arange(len(groups)), sizes), lengths), queries
