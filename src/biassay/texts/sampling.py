"""A uniform sample of at most k distinct sentences for every stimulus, the same in whatever order they come.

Every hit has a key: 64 mixed bits of the seed, the stimulus, the document's text and the number of the hit among
those of the stimulus in the document. The key of a sentence is the smallest of its hits' keys, and the sample of a
stimulus is the k sentences with the smallest (key, text). Of one document only the first 1,000 hits of a stimulus can
be drawn, so that one that repeats a phrase a million times costs no more than others.

Why dropping early changes nothing. Let t be the k-th smallest key of what was seen so far. More hits only lower the
keys of sentences and add sentences, so t only falls, and t* of the whole corpus is at most t. A sentence of the
final sample has a hit with a key of at most t*; that hit is never above t and never dropped. So hits above t can be
dropped, in any part of the corpus, for the t of any other part; and the samples of parts, merged in any order, hold
the sample of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.texts.joined import Joined, by_eight
from biassay.texts.matching import Hits
from biassay.texts.tools import tool

__all__ = [
    "MOST_IN_A_DOCUMENT",
    "NO_LIMIT",
    "Drawn",
    "Sample",
    "by_stimulus",
    "draw",
    "ranks",
    "sample_table",
    "stimulus_keys",
]

NO_LIMIT = np.uint64(2**64 - 1)
MOST_IN_A_DOCUMENT = 1000
_LEAST_MERGED = 10_000


def stimulus_keys(stimuli: Sequence[str], seed: int) -> NDArray[np.uint64]:
    """What the seed and each stimulus bring to the keys of its hits."""
    digest = tool("xxhash").xxh3_64_intdigest
    return np.array([digest(f"{seed}\0{stimulus}".encode()) for stimulus in stimuli], np.uint64)


class Drawn(NamedTuple):
    """Hits that may be in the sample; ``start`` is the first byte in the document.

    Of ``earlier``, ``first`` to ``last`` are the starts of the hits of the same stimulus before, within reach.
    """

    stimulus: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]
    key: NDArray[np.uint64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    earlier: NDArray[np.int64]

    def hits(self, numbers: NDArray[np.int64]) -> Drawn:
        """Some of the hits."""
        return Drawn._make([*(column[numbers] for column in self[:-1]), self.earlier])


def draw(hits: Hits, documents: Joined, keys: NDArray[np.uint64], limits: NDArray[np.uint64], reach: int) -> Drawn:
    """The hits with a key of at most the limit of their stimulus.

    Parameters
    ----------
    keys, limits : (stimuli,) array of uint64
        From ``stimulus_keys``, and ``NO_LIMIT`` or less.
    reach : int
        How many bytes before a hit an earlier one matters.
    """
    compiled = tool("biassay.texts.drawing")
    count = len(hits.start)
    drawn = compiled.Drawn(np.empty(count, np.uint64), np.empty(count, np.int64), np.empty(count, np.bool_))
    text = (documents.data, by_eight(documents.data), documents.starts, documents.stops)
    room = np.empty((2, len(keys)), np.int64)
    compiled.draw((hits.stimulus, hits.document), text, keys, limits, MOST_IN_A_DOCUMENT, drawn, room)
    kept = np.flatnonzero(drawn.kept)
    stops = np.empty(len(kept), np.int64)
    earlier = np.empty(len(kept), np.int64)
    size = compiled.earlier(kept, hits.start, drawn.before, reach, stops, earlier)
    if size > len(earlier):
        earlier = np.empty(size, np.int64)
        compiled.earlier(kept, hits.start, drawn.before, reach, stops, earlier)
    document = hits.document[kept]
    begin = documents.starts[document]
    sizes = stops.copy()
    sizes[1:] -= stops[:-1]
    earlier = earlier[:size] - np.repeat(begin, sizes)
    start = hits.start[kept] - begin
    return Drawn(hits.stimulus[kept], document, start, drawn.key[kept], stops - sizes, stops, earlier)


class Sample:
    """The sample of all stimuli, as an Arrow table: stimulus, key, text, start, end, source."""

    def __init__(self, stimuli: Sequence[str], k: int) -> None:
        self.stimuli, self.k = tuple(stimuli), k
        self._table = sample_table([], [], [], [], [], [])
        self._fresh = np.empty(0, np.bool_)
        self._waiting: list[Any] = []
        self._limits = np.full(len(self.stimuli), NO_LIMIT)

    @classmethod
    def from_table(cls, stimuli: Sequence[str], k: int, table: Any) -> Sample:
        sample = cls(stimuli, k)
        sample.add(table)
        return sample

    def add(self, table: Any) -> None:
        """Take the sample of a part. Tables are merged when there are enough of them."""
        if table.num_rows:
            self._waiting.append(table.select(self._table.column_names).cast(self._table.schema))
        if sum(map(len, self._waiting)) > max(_LEAST_MERGED, len(self._table) // 4):
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

    def keys(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Stimulus, by its number, and key of every row."""
        table = self.to_table()
        return self._numbers(table), table["key"].to_numpy()

    def fresh(self) -> Any:
        """The rows that came in, or came in again, since this was last asked; sorted."""
        table = self.to_table().filter(self._fresh)
        self._fresh = np.zeros(len(self._table), np.bool_)
        return table

    def _settle(self) -> None:
        if not self._waiting:
            return
        old = len(self._table)
        everything = tool("pyarrow").concat_tables([self._table, *self._waiting]).combine_chunks()
        self._waiting, self._table = [], self._table.slice(0, 0)  # so that their memory is free
        stimulus = self._numbers(everything)
        keys = everything["key"].to_numpy()
        kept = _first_of_each(everything["text"], stimulus, _in_order(everything, stimulus, keys), self.k)
        last = np.flatnonzero(np.bincount(stimulus[kept], minlength=len(self.stimuli)) == self.k)
        ends = np.searchsorted(stimulus[kept], last, side="right") - 1
        self._limits[last] = keys[kept[ends]]
        self._fresh = np.concatenate([self._fresh, np.ones(len(everything) - old, np.bool_)])[kept]
        self._table = everything.take(kept)

    def _numbers(self, table: Any) -> NDArray[np.int64]:
        pyarrow, compute = tool("pyarrow"), tool("pyarrow.compute")
        numbers = compute.index_in(table["stimulus"], value_set=pyarrow.array(self.stimuli, pyarrow.large_string()))
        if numbers.null_count:
            strange = table["stimulus"].filter(compute.is_null(numbers))[0].as_py()
            raise UsageError(f"a sample of other stimuli: {strange!r} is not among those asked for; scan again")
        return np.asarray(numbers.to_numpy(), np.int64)


def sample_table(stimulus: Any, key: Any, text: Any, start: Any, end: Any, source: Any) -> Any:
    """A table of sentences, from its columns."""
    pyarrow = tool("pyarrow")
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


def by_stimulus(stimulus: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order by stimulus, then key."""
    order = np.argsort(keys)
    # Numbers of 16 bits are sorted in one pass.
    small = stimulus.astype(np.uint16) if len(stimulus) and stimulus.max() < 2**16 else stimulus
    return np.asarray(order[np.argsort(small[order], kind="stable")])


def ranks(stimulus: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the same stimulus come before each, in this order by stimulus."""
    counts = np.bincount(stimulus)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - (np.cumsum(counts) - counts)[stimulus[order]]
    return rank


def _in_order(table: Any, stimulus: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Rows by stimulus, key, text, source, start and end. The last four matter to equal keys only, which are few.

    Of rows that are the same in all the last comes first.
    """
    order = by_stimulus(stimulus, keys)
    same = (np.diff(stimulus[order]) == 0) & (np.diff(keys[order]) == 0)
    tied = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    rows = table.select(["text", "source", "start", "end"]).take(order[tied]).to_pylist()
    places = [
        (int(stimulus[at]), int(keys[at]), *row.values(), -int(at)) for at, row in zip(order[tied], rows, strict=True)
    ]
    order[tied] = [-place[-1] for place in sorted(places)]
    return order


def _first_of_each(texts: Any, stimulus: NDArray[np.int64], order: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Of the rows in their order, the first of every stimulus and text; k of every stimulus."""
    compiled, n = tool("biassay.texts.drawing"), len(order)
    chunk = texts.chunk(0)
    _, places, data = chunk.buffers()
    letters = np.frombuffer(data or bytes(8), np.uint8)
    held = letters, by_eight(letters), np.frombuffer(places, np.int64)[chunk.offset : chunk.offset + n + 1]
    slots = np.full(1 << (2 * n).bit_length(), -1, np.int64)
    state = slots, np.empty(n, np.uint64), np.zeros(int(stimulus.max()) + 1, np.int64)
    kept = np.empty(n, np.int64)
    return kept[: compiled.first_of_each((order, stimulus), held, k, state, kept)]
