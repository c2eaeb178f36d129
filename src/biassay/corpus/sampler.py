"""Draw a uniform sample of at most k distinct sentences per stimulus, independent of the order of the corpus.

Every match has a key: a 64-bit hash of the seed, the stimulus, the text of the document and the number of the match
among those of the stimulus in the document. The key of a sentence is the smallest key of its matches. The sample of a
stimulus are the k sentences with the smallest (key, text). Only the first 1,000 matches of a stimulus in one document
can be drawn.

Matches can be dropped early without changing the sample. Let t be the k-th smallest key of the sentences seen so far.
Further matches can only lower t, and every sentence of the final sample has a match with a key of at most the final t.
So matches with a key above t can be dropped, also in other parts of the corpus, and samples of parts can be merged in
any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.corpus.matcher import Matches
from biassay.corpus.reader import PackedDocuments
from biassay.errors import UsageError
from biassay.packages import require

NO_LIMIT = np.uint64(2**64 - 1)
MAX_MATCHES_PER_DOCUMENT = 1000
_MIN_MERGED_ROWS = 10_000
_ORDINALS = [number.to_bytes(2, "little") for number in range(MAX_MATCHES_PER_DOCUMENT)]


class DrawnMatches(NamedTuple):
    """Matches that may be in the sample.

    Attributes
    ----------
    indices : (n,) array of int
        Indices of the matches among all matches.
    ordinal : (n,) array of int
        Number of earlier matches of the same stimulus in the document. They directly precede the match.
    key : (n,) array of uint64
        Keys of the matches.
    """

    indices: NDArray[np.int64]
    ordinal: NDArray[np.int64]
    key: NDArray[np.uint64]


def make_stimulus_seeds(stimuli: Sequence[str], seed: int) -> list[int]:
    """Return one hash seed per stimulus."""
    digest = require("xxhash").xxh3_64_intdigest
    return [digest(f"{seed}\0{stimulus}".encode()) for stimulus in stimuli]


def draw_matches(
    matches: Matches, documents: PackedDocuments, seeds: Sequence[int], limits: NDArray[np.uint64]
) -> DrawnMatches:
    """Draw the keys of matches and select those that may be in the sample.

    Parameters
    ----------
    matches : Matches
        All matches in the documents.
    documents : PackedDocuments
        The documents.
    seeds : sequence of int
        Hash seeds of the stimuli, from `make_stimulus_seeds`.
    limits : (stimuli,) array of uint64
        Largest key per stimulus that may be in the sample; `NO_LIMIT` to select all.
    """
    xxhash = require("xxhash")
    count = len(matches.start)
    groups = matches.document * len(seeds) + matches.stimulus
    is_first = np.concatenate([[True], groups[1:] != groups[:-1]])[:count]
    ordinals = np.arange(count) - np.maximum.accumulate(np.where(is_first, np.arange(count), 0))
    index = np.flatnonzero(ordinals < MAX_MATCHES_PER_DOCUMENT)
    document, stimulus, ordinals = matches.document[index], matches.stimulus[index], ordinals[index]
    numbers = document[np.concatenate([[True], document[1:] != document[:-1]])[: len(document)]]
    spans = zip(numbers.tolist(), documents.starts[numbers].tolist(), documents.stops[numbers].tolist(), strict=True)
    hash_document, hash_key, data = xxhash.xxh3_128_digest, xxhash.xxh3_64_intdigest, documents.data
    digests = {number: hash_document(data[start:stop]) for number, start, stop in spans}
    keys = np.array(
        [
            hash_key(digests[number] + _ORDINALS[ordinal], seeds[word])
            for number, word, ordinal in zip(document.tolist(), stimulus.tolist(), ordinals.tolist(), strict=True)
        ],
        np.uint64,
    )
    selected = keys <= limits[stimulus]
    return DrawnMatches(index[selected], ordinals[selected], keys[selected])


class ContextSample:
    """Sample of all stimuli, as an Arrow table with the columns stimulus, key, text, start, end and source.

    Parameters
    ----------
    stimuli : sequence of str
        Stimuli of the sample.
    k : int
        Largest number of sentences per stimulus.
    """

    def __init__(self, stimuli: Sequence[str], k: int) -> None:
        self.stimuli, self.k = tuple(stimuli), k
        self._table = make_table([], [], [], [], [], [])
        self._is_new = np.empty(0, np.bool_)
        self._pending: list[Any] = []
        self._limits = np.full(len(self.stimuli), NO_LIMIT)

    @classmethod
    def from_table(cls, stimuli: Sequence[str], k: int, table: Any) -> ContextSample:
        """Make a sample of the rows of a table.

        Parameters
        ----------
        stimuli : sequence of str
            Words to sample contexts of.
        k : int
            Contexts per word.
        table : pyarrow.Table
            Matches with their keys.
        """
        sample = cls(stimuli, k)
        sample.add(table)
        return sample

    def add(self, table: Any) -> None:
        """Add rows. They are merged when there are enough of them."""
        if table.num_rows:
            self._pending.append(table.select(self._table.column_names).cast(self._table.schema))
        if sum(map(len, self._pending)) > max(_MIN_MERGED_ROWS, len(self._table) // 4):
            self._merge()

    def get_limits(self) -> NDArray[np.uint64]:
        """Return the key per stimulus above which no match can be in the sample."""
        return self._limits.copy()

    def to_table(self) -> Any:
        """Return the sample, sorted by stimulus and key."""
        self._merge()
        return self._table

    def take_new_rows(self) -> Any:
        """Return the rows that were added since the last call and are in the sample."""
        table = self.to_table()
        if not self._is_new.all():
            table = table.filter(self._is_new)
        self._is_new = np.zeros(len(self._table), np.bool_)
        return table

    def _merge(self) -> None:
        if not self._pending:
            return
        old_count = len(self._table)
        table = require("pyarrow").concat_tables([self._table, *self._pending]).combine_chunks()
        self._pending, self._table = [], make_table([], [], [], [], [], [])  # frees memory
        stimulus, keys = self._get_indices(table), table["key"].to_numpy()
        order = _sort_rows(table, stimulus, keys)
        bounds = np.searchsorted(stimulus[order], np.arange(len(self.stimuli) + 1))
        kept = []
        for index, (begin, end) in enumerate(itertools.pairwise(bounds.tolist())):
            rows = _drop_repeated_texts(table["text"].chunk(0), order[begin:end])[: self.k]
            if len(rows) == self.k:
                self._limits[index] = keys[rows[-1]]
            kept.append(rows)
        selected = np.concatenate(kept)
        self._is_new = np.concatenate([self._is_new, np.ones(len(table) - old_count, np.bool_)])[selected]
        self._table = table.take(selected)
        del table
        require("pyarrow").default_memory_pool().release_unused()

    def _get_indices(self, table: Any) -> NDArray[np.int64]:
        pyarrow, compute = require("pyarrow"), require("pyarrow.compute")
        indices = compute.index_in(table["stimulus"], value_set=pyarrow.array(self.stimuli, pyarrow.large_string()))
        if indices.null_count:
            unknown = table["stimulus"].filter(compute.is_null(indices))[0].as_py()
            raise UsageError(f"the sample is for other stimuli: it has {unknown!r}; scan again")
        return np.asarray(indices.to_numpy(), np.int64)


def make_table(stimulus: Any, key: Any, text: Any, start: Any, end: Any, source: Any) -> Any:
    """Return an Arrow table of sentences.

    Parameters
    ----------
    stimulus, key, text, start, end, source : sequences
        Columns of the table, with a value per sentence.
    """
    pyarrow = require("pyarrow")
    text_type = pyarrow.large_string()
    columns = {
        "stimulus": (stimulus, text_type),
        "key": (key, pyarrow.uint64()),
        "text": (text, text_type),
        "start": (start, pyarrow.int32()),
        "end": (end, pyarrow.int32()),
        "source": (source, text_type),
    }
    return pyarrow.table({name: pyarrow.array(*column) for name, column in columns.items()})


def _sort_rows(table: Any, stimulus: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the order of rows by stimulus, key, text, source, start and end."""
    order = np.lexsort((keys, stimulus))
    is_tied = (np.diff(stimulus[order]) == 0) & (np.diff(keys[order]) == 0)
    tied = np.flatnonzero(np.concatenate([is_tied, [False]]) | np.concatenate([[False], is_tied]))
    rows = table.select(["text", "source", "start", "end"]).take(order[tied]).to_pylist()
    sort_keys = [
        (int(stimulus[index]), int(keys[index]), *row.values(), -int(index))  # the newest of equal rows is first
        for index, row in zip(order[tied], rows, strict=True)
    ]
    order[tied] = [-sort_key[-1] for sort_key in sorted(sort_keys)]
    return order


def _drop_repeated_texts(texts: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keep the first row of each text."""
    codes = texts.take(rows).dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    return rows[np.sort(first)]
