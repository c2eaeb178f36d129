"""Compiled code that cuts sentences out of many documents at once. ``segmenting`` says by which rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.tools import compiled

__all__ = ["Cut", "Lines", "cut", "find_lines", "gather"]

_SPACE = np.array([chr(c).isspace() and c < 128 for c in range(256)])


class Lines(NamedTuple):
    """Lines, each by the place where it begins in the data, the sizes of their sentences, and the first of each."""

    data: NDArray[np.uint8]
    begin: NDArray[np.int64]
    sizes: NDArray[np.int64]
    firsts: NDArray[np.int64]


class Cut(NamedTuple):
    """For every hit where its sentence begins and stops in the data, and the place of the stimulus in it.

    All but what stands in the data is counted in characters; ``clear`` is False where the rules ask for more.
    """

    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    clear: NDArray[np.bool_]


@compiled
def gather(
    data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Copy pieces of data, one after the other."""
    o = 0
    for piece in range(len(starts)):
        for i in range(starts[piece], stops[piece]):
            out[o] = data[i]
            o += 1


@compiled
def find_lines(
    data: NDArray[np.uint8],
    hits: tuple[NDArray[np.int64], NDArray[np.int64]],
    documents: tuple[NDArray[np.int64], NDArray[np.int64]],
    reach: int,
    lines: NDArray[np.int64],
) -> None:
    """Write where the line of every hit begins and stops, given the ends of hits and of their documents in the data.

    -1 where it reaches further than is looked at.
    """
    for hit in range(len(lines)):
        begin, stop = hits[0][hit], hits[1][hit]
        least, most = max(documents[0][hit], begin - reach), min(documents[1][hit], stop + reach)
        while begin > least and data[begin - 1] != 10 and data[begin - 1] != 13:
            begin -= 1
        while stop < most and data[stop] != 10 and data[stop] != 13:
            stop += 1
        cut_short = (begin == least and least > documents[0][hit]) or (stop == most and most < documents[1][hit])
        lines[hit, 0], lines[hit, 1] = (-1, -1) if cut_short else (begin, stop)


@compiled
def cut(
    lines: Lines,
    hits: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    earlier: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    longest: int,
    out: Cut,
) -> None:
    """Find the sentences of hits: the numbers of their lines, and where they start and end in the data.

    ``earlier`` as in ``sampling.Drawn``, and before it where the documents of the hits start.
    """
    data = lines.data
    for hit in range(len(hits[0])):
        line, start, end = hits[0][hit], hits[1][hit], hits[2][hit]
        begin = stop = lines.begin[line]
        for sentence in range(lines.firsts[line], lines.firsts[line + 1]):
            # From the sentence that holds the start of the hit to the one that holds its end.
            if stop <= start:
                begin = stop
            stop += lines.sizes[sentence]
            if stop >= end:
                break
        while _SPACE[data[begin]]:
            begin += 1
        while _SPACE[data[stop - 1]]:
            stop -= 1
        first = start
        for other in range(earlier[1][hit], earlier[2][hit]):
            place = earlier[0][hit] + earlier[3][other]
            if begin <= place < first:
                first = place
        at = _characters(data, begin, first)
        out.begin[hit], out.stop[hit] = begin, stop
        out.start[hit], out.end[hit] = at, at + _characters(data, start, end)
        # What is not ASCII may be a blank.
        out.clear[hit] = stop - begin <= longest and data[begin] < 128 and data[stop - 1] < 128


@compiled
def _characters(data: NDArray[np.uint8], begin: int, stop: int) -> int:
    count = 0
    for i in range(begin, stop):
        count += data[i] & 0xC0 != 0x80
    return count
