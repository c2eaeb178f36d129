"""Compiled code that cuts sentences out of many documents at once. ``segmenting`` says by which rules.

The documents are plain: ASCII, in one line, and no longer than what is looked at around a hit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.tools import compiled

__all__ = ["Cut", "Segmented", "cut", "gather", "plain"]

_SPACE = np.array([chr(c).isspace() and c < 128 for c in range(256)])


class Segmented(NamedTuple):
    """Documents in one piece, where each starts, the sizes of their sentences, and the first sentence of each."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    firsts: NDArray[np.int64]


class Cut(NamedTuple):
    """For every hit where its sentence begins and stops in the data, and the place of the stimulus in it."""

    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


@compiled
def gather(data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
    """Copy pieces of data, one after the other."""
    o = 0
    for piece in range(len(starts)):
        for i in range(starts[piece], stops[piece]):
            out[o] = data[i]
            o += 1


@compiled
def plain(
    data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], longest: int, out: NDArray[np.bool_]
) -> None:
    """Which documents are plain."""
    for document in range(len(starts)):
        every, breaks = np.uint8(0), False
        for i in range(starts[document], stops[document]):
            every |= data[i]
            breaks |= (data[i] == 10) | (data[i] == 13)
        out[document] = every < 128 and not breaks and stops[document] - starts[document] <= longest


@compiled
def cut(
    documents: Segmented,
    hits: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    earlier: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    out: Cut,
) -> None:
    """Find the sentences of hits: their documents, starts and lengths; ``earlier`` as in ``sampling.Drawn``."""
    data = documents.data
    for hit in range(len(hits[0])):
        document, start = hits[0][hit], hits[1][hit]
        end = start + hits[2][hit]
        begin = stop = 0
        for sentence in range(documents.firsts[document], documents.firsts[document + 1]):
            # From the sentence that holds the start of the hit to the one that holds its end.
            if stop <= start:
                begin = stop
            stop += documents.sizes[sentence]
            if stop >= end:
                break
        at = documents.starts[document]
        while _SPACE[data[at + begin]]:
            begin += 1
        while _SPACE[data[at + stop - 1]]:
            stop -= 1
        first = start
        for other in range(earlier[0][hit], earlier[1][hit]):
            place = earlier[2][other]
            if begin <= place < first:
                first = place
        out.begin[hit], out.stop[hit] = at + begin, at + stop
        out.start[hit], out.end[hit] = first - begin, first - begin + end - start
