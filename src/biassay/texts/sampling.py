"""A uniform sample of at most k distinct sentences for every stimulus, the same in whatever order they come.

Every hit has a key: 64 mixed bits of the seed, the stimulus, the document's text and the number of the hit among
those of the stimulus in the document. The key of a sentence is the smallest of its hits' keys, and the sample of a
stimulus is the k sentences with the smallest (key, text).

Why dropping early changes nothing. Let t be the k-th smallest key of what was seen so far. More hits only lower the
keys of sentences and add sentences, so t only falls, and t* of the whole corpus is at most t. A sentence of the
final sample has a hit with a key of at most t*; that hit is never above t and never dropped. So hits above t can be
dropped, in any part of the corpus, for the t of any other part; and the samples of parts, merged in any order, hold
the sample of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.texts.tools import tool

__all__ = ["NO_LIMIT", "Pool", "Row", "Sample", "hit_keys", "rows_table", "stimulus_keys"]

NO_LIMIT = np.uint64(2**64 - 1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LEAST_MERGED = 100_000


def stimulus_keys(stimuli: Sequence[str], seed: int) -> NDArray[np.uint64]:
    """What the seed and each stimulus bring to the keys of its hits."""
    digest = tool("xxhash").xxh3_64_intdigest
    return np.array([digest(f"{seed}\0{stimulus}".encode()) for stimulus in stimuli], np.uint64)


def hit_keys(
    stimulus_key: NDArray[np.uint64], document_id: NDArray[np.uint64], ordinal: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The keys of hits. All arrays have one entry for each hit."""
    return _mix(_mix(stimulus_key ^ document_id) + ordinal.astype(np.uint64) * _GOLDEN)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: one to one, and every bit of the result hangs on every bit given."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Row(NamedTuple):
    """A sentence of a sample, in the order in which one is preferred to another of the same text."""

    key: int
    source: str
    start: int
    end: int
    text: str


class Pool:
    """The sample of one stimulus while a part is scanned. No key above ``limit`` can be of it."""

    def __init__(self, k: int, limit: int) -> None:
        self.k, self.limit = k, limit
        self.rows: list[Row] = []

    def add(
        self,
        keys: NDArray[np.uint64],
        blocks: NDArray[np.int64],
        indices: NDArray[np.int64],
        make: Callable[[int, int, int], Row],
    ) -> None:
        """Take hits by rising key. The row of one is made, from its key, block and index, only if the key is small."""
        known = sorted(self.rows, reverse=True)
        chosen: dict[str, Row] = {}
        for key, block, index in zip(keys.tolist(), blocks.tolist(), indices.tolist(), strict=True):
            while known and known[-1].key <= key and self._takes(chosen, known[-1]):
                known.pop()
            if key > self.limit:
                break
            self._takes(chosen, make(key, block, index))
        while known and self._takes(chosen, known[-1]):
            known.pop()
        self.rows = sorted(chosen.values(), key=lambda row: (row.key, row.text))[: self.k]

    def _takes(self, chosen: dict[str, Row], row: Row) -> bool:
        """Take the next row by key, unless it is above the limit; with the k-th text its key becomes the limit."""
        if row.key > self.limit:
            return False
        chosen[row.text] = min(row, chosen.get(row.text, row))
        if len(chosen) == self.k:
            self.limit = row.key  # equal keys still come in, and are decided by their texts
        return True


class Sample:
    """The sample of all stimuli, as an Arrow table: stimulus, key, text, start, end, source."""

    def __init__(self, stimuli: Sequence[str], k: int) -> None:
        self.stimuli, self.k = tuple(stimuli), k
        self._table = rows_table([], [])
        self._waiting: list[Any] = []
        self._limits = np.full(len(self.stimuli), NO_LIMIT)

    @classmethod
    def from_table(cls, stimuli: Sequence[str], k: int, table: Any) -> Sample:
        sample = cls(stimuli, k)
        sample.add(table)
        return sample

    def add(self, table: Any) -> None:
        """Take the sample of a part. Tables wait until their merging is worth its while."""
        if table.num_rows:
            self._waiting.append(table.select(self._table.column_names).cast(self._table.schema))
        if sum(map(len, self._waiting)) > max(_LEAST_MERGED, len(self._table) // 2):
            self._settle()

    def merge(self, other: Sample) -> None:
        """Take another sample of the same stimuli and size."""
        if (self.stimuli, self.k) != (other.stimuli, other.k):
            raise UsageError("samples of different stimuli or sizes cannot be merged; scan again with one setting")
        self.add(other.to_table())

    def thresholds(self) -> NDArray[np.uint64]:
        """For every stimulus a key above which no hit can matter any more."""
        return self._limits.copy()

    def to_table(self) -> Any:
        """The sample, sorted by stimulus and key."""
        self._settle()
        return self._table

    def _settle(self) -> None:
        if not self._waiting:
            return
        everything = tool("pyarrow").concat_tables([self._table, *self._waiting]).combine_chunks()
        self._waiting = []
        stimulus = self._numbers(everything)
        keys = everything["key"].to_numpy()
        order = _in_order(everything, stimulus, keys)
        order = order[_first_of_each(everything, stimulus, order)]
        rank = _rank(stimulus[order])
        kept = order[rank < self.k]
        full = order[rank == self.k - 1]
        self._limits[stimulus[full]] = keys[full]
        self._table = everything.take(kept)

    def _numbers(self, table: Any) -> NDArray[np.int64]:
        pyarrow, compute = tool("pyarrow"), tool("pyarrow.compute")
        numbers = compute.index_in(table["stimulus"], value_set=pyarrow.array(self.stimuli, pyarrow.large_string()))
        if numbers.null_count:
            strange = table["stimulus"].filter(compute.is_null(numbers))[0].as_py()
            raise UsageError(f"a sample of other stimuli: {strange!r} is not among those asked for; scan again")
        return np.asarray(numbers.to_numpy(), np.int64)


def rows_table(stimuli: Sequence[str], rows: Sequence[Row]) -> Any:
    """A table of rows with their stimuli."""
    pyarrow = tool("pyarrow")
    key, source, start, end, text = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    columns = {
        "stimulus": pyarrow.array(stimuli, pyarrow.large_string()),
        "key": pyarrow.array(key, pyarrow.uint64()),
        "text": pyarrow.array(text, pyarrow.large_string()),
        "start": pyarrow.array(start, pyarrow.int32()),
        "end": pyarrow.array(end, pyarrow.int32()),
        "source": pyarrow.array(source, pyarrow.large_string()),
    }
    return pyarrow.table(columns)


def _in_order(table: Any, stimulus: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Rows by stimulus, key, text, source, start and end. The last four matter to equal keys only, which are few."""
    order = np.lexsort((keys, stimulus))
    same = (np.diff(stimulus[order]) == 0) & (np.diff(keys[order]) == 0)
    tied = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    rows = table.select(["text", "source", "start", "end"]).take(order[tied]).to_pylist()
    places = [
        (int(stimulus[at]), int(keys[at]), *row.values(), int(at)) for at, row in zip(order[tied], rows, strict=True)
    ]
    order[tied] = [place[-1] for place in sorted(places)]
    return order


def _first_of_each(table: Any, stimulus: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places in ``order`` of the first row of every stimulus and text."""
    codes = table["text"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    both = stimulus[order] * (int(codes.max()) + 1) + codes[order]
    return np.sort(np.unique(both, return_index=True)[1])


def _rank(stimulus: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each row among those of its stimulus; they are sorted by stimulus."""
    counts = np.bincount(stimulus)
    return np.arange(len(stimulus)) - (np.cumsum(counts) - counts)[stimulus]
