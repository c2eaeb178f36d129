"""Hits that may be in the sample, with their documents: sentences are cut out when no more hits can be ruled out.

How hits are ruled out before any sentence is cut out. In a line that is ASCII and has no ")" a sentence ends after a
character of ``drawing.ENDS``, blanks and quotes, or with the line. So what stands around a hit, up to the next such
characters, is a part of its sentence; and if the hit is the first of its stimulus in the line, it is the first in the
sentence, and this part, the mark of the hit, depends on the sentence alone. Hits with different marks are in different
sentences: k marks with keys of at most t prove k sentences, and no hit above t can be in the sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.documents import Documents
from biassay.texts.joined import Joined, by_eight
from biassay.texts.sampling import NO_LIMIT, Drawn, by_stimulus
from biassay.texts.segmenting import LONGEST_SENTENCE, REACH, gathered
from biassay.texts.tools import tool

__all__ = ["Held", "Piece"]

_AT_ONCE = 16 << 20
_MARKED = 3  # of about so many hits for each context that is wanted, those with the smallest keys


class Piece(NamedTuple):
    """Documents, the number of the file of each, and hits in them, by document."""

    documents: Documents
    files: NDArray[np.int64]
    drawn: Drawn

    def only(self, hits: NDArray[np.int64]) -> Piece:
        """Some of the hits, and the documents that have any."""
        drawn = self.drawn
        document = drawn.document[hits]
        first = np.ones(len(hits), np.bool_)
        np.not_equal(document[1:], document[:-1], out=first[1:])
        numbers = document[first]
        joined = self.documents.joined
        starts, stops = joined.starts[numbers], joined.stops[numbers]
        ends = np.cumsum(stops - starts)
        data = gathered(joined.data, starts, stops)
        sizes = (drawn.last - drawn.first)[hits]
        last = np.cumsum(sizes)
        earlier = drawn.earlier[np.repeat(drawn.first[hits] - (last - sizes), sizes) + np.arange(sizes.sum())]
        chosen = Drawn(
            drawn.stimulus[hits],
            np.cumsum(first) - 1,
            drawn.start[hits],
            drawn.key[hits],
            last - sizes,
            last,
            earlier,
        )
        documents = Documents(Joined(data, ends - (stops - starts), ends), self.documents.places[numbers])
        return Piece(documents, self.files[numbers], chosen)


class Held:
    """Pieces, and how many bytes and hits they have."""

    def __init__(self) -> None:
        self.size = self.hits = 0
        self._pieces: list[Piece] = []

    def add(self, piece: Piece, hits: NDArray[np.bool_] | None = None) -> None:
        """Take some hits of a piece, or all, with their documents."""
        count = len(piece.drawn.key) if hits is None else int(np.count_nonzero(hits))
        if not count:
            return
        if hits is not None and count < len(hits):
            piece = piece.only(np.flatnonzero(hits))
        self._pieces.append(piece)
        self.hits += count
        self.size += len(piece.documents.joined.data)

    def keys(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Stimulus and key of every hit."""
        none: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        stimulus = np.concatenate([piece.drawn.stimulus for piece in self._pieces] or none)
        return stimulus, np.concatenate([piece.drawn.key for piece in self._pieces] or [np.empty(0, np.uint64)])

    def part(self, chosen: NDArray[np.bool_], others: NDArray[np.bool_]) -> tuple[Held, Held]:
        """Some of the hits, and some others."""
        one, two, at = Held(), Held(), 0
        self._pieces.reverse()  # each is let go of in turn
        while self._pieces:
            piece = self._pieces.pop()
            mine = slice(at, at + len(piece.drawn.key))
            one.add(piece, chosen[mine])
            two.add(piece, others[mine])
            at = mine.stop
        return one, two

    def joined(self) -> Iterator[Piece]:
        """All in fewer pieces; each is let go of when it is given."""
        while self._pieces:
            some, size = [], 0
            while self._pieces and size < _AT_ONCE:
                some.append(self._pieces.pop())
                size += len(some[-1].documents.joined.data)
            yield _one(some)

    def bounds(self, lengths: NDArray[np.int64], limits: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
        """For every stimulus a key that is not below those of k sentences, where k marks are found.

        Keys are spread evenly up to ``limits``, which none exceeds: so it is known without sorting which are small.
        """
        stimulus, key = self.keys()
        counts = np.bincount(stimulus, minlength=len(limits))
        # A share of 1 would give a limit of 2**64, which no 64 bits hold.
        share = np.minimum(_MARKED * (k + np.sqrt(k)) / np.maximum(counts, 1), 1 - 1e-15)
        likely = np.flatnonzero((counts >= k)[stimulus] & (key <= (share * limits).astype(np.uint64)[stimulus]))
        stimulus, key = stimulus[likely], key[likely]
        marks, at = [np.empty(0, np.uint64)], 0
        for piece in self._pieces:
            first, last = np.searchsorted(likely, [at, at + len(piece.drawn.key)])
            marks.append(_marks(piece, lengths, likely[first:last] - at))
            at += len(piece.drawn.key)
        found = np.full(len(limits), NO_LIMIT)
        slots = np.full(1 << (2 * len(key)).bit_length(), -1, np.int64)
        rows, state = (by_stimulus(stimulus, key), stimulus, key), (slots, np.zeros(len(limits), np.int64))
        tool("biassay.texts.drawing").bounds(rows, np.concatenate(marks), k, state, found)
        return found


def _one(pieces: list[Piece]) -> Piece:
    """Some pieces as one."""
    documents, files, drawn = zip(*pieces, strict=True)
    sizes = np.concatenate([one.joined.stops - one.joined.starts for one in documents])
    ends = np.cumsum(sizes)
    joined = Joined(np.concatenate([one.joined.data for one in documents]), ends - sizes, ends)
    moved, earlier, before = [], 0, 0
    for one, hits in zip(documents, drawn, strict=True):
        first, last = hits.first + earlier, hits.last + earlier
        moved.append(hits._replace(document=hits.document + before, first=first, last=last))
        before, earlier = before + len(one.places), earlier + len(hits.earlier)
    places = np.concatenate([one.places for one in documents])
    together = Drawn(*map(np.concatenate, zip(*moved, strict=True)))
    return Piece(Documents(joined, places), np.concatenate(files), together)


def _marks(piece: Piece, lengths: NDArray[np.int64], hits: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The marks of some hits; 0 where nothing can be said."""
    cutting, drawing = tool("biassay.texts.cutting"), tool("biassay.texts.drawing")
    joined, drawn = piece.documents.joined, piece.drawn.hits(hits)
    begin, stop = joined.starts[drawn.document], joined.stops[drawn.document]
    start = begin + drawn.start
    end = start + lengths[drawn.stimulus]
    lines = np.empty((len(start), 2), np.int64)
    texts = joined.data, by_eight(joined.data)
    cutting.find_lines(texts, (start, end), (begin, stop), REACH, lines)
    marks = np.zeros(len(start), np.uint64)
    earlier = begin, drawn.first, drawn.last, drawn.earlier
    drawing.mark(texts, (start, end), lines, earlier, LONGEST_SENTENCE, marks)
    return marks
