"""Compiled code that cuts sentences out of many documents at once. ``segmenting`` says by which rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.tools import compiled

__all__ = ["Cut", "Lines", "cut", "find_lines", "gather"]

_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_FEEDS, _RETURNS = np.uint64(0x0A0A0A0A0A0A0A0A), np.uint64(0x0D0D0D0D0D0D0D0D)
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
    texts: tuple[NDArray[np.uint8], NDArray[np.uint64]],
    pieces: tuple[NDArray[np.int64], NDArray[np.int64]],
    out: NDArray[np.uint8],
    out_words: NDArray[np.uint64],
) -> None:
    """Copy pieces of data, given where they start and stop, one after the other. Both also by eight bytes."""
    data, words = texts
    o = 0
    for piece in range(len(pieces[0])):
        i, stop = pieces[0][piece], pieces[1][piece]
        while i + 8 <= stop:
            out_words[np.uint64(o)] = words[np.uint64(i)]  # unsigned, so that it is not first asked whether negative
            i, o = i + 8, o + 8
        while i < stop:
            out[o] = data[i]
            i, o = i + 1, o + 1


@compiled
def find_lines(
    texts: tuple[NDArray[np.uint8], NDArray[np.uint64]],
    hits: tuple[NDArray[np.int64], NDArray[np.int64]],
    documents: tuple[NDArray[np.int64], NDArray[np.int64]],
    reach: int,
    lines: NDArray[np.int64],
) -> None:
    """Write where the line of every hit begins and stops, given the ends of hits and of their documents in the data.

    -1 where it reaches further than is looked at.
    """
    data, words = texts
    for hit in range(len(lines)):
        start, stop = hits[0][hit], hits[1][hit]
        least, most = max(documents[0][hit], start - reach), min(documents[1][hit], stop + reach)
        begin, i = least, _break(data, words, least, start)
        while i < start:
            begin = i + 1
            i = _break(data, words, begin, start)
        stop = _break(data, words, stop, most)
        cut_short = (begin == least and least > documents[0][hit]) or (stop == most and most < documents[1][hit])
        lines[hit, 0], lines[hit, 1] = (-1, -1) if cut_short else (begin, stop)


@compiled
def _break(data: NDArray[np.uint8], words: NDArray[np.uint64], i: int, stop: int) -> int:
    """The place of the first line break from i on, or where to stop."""
    while i + 8 <= stop:
        eight = words[np.uint64(i)]
        feeds, returns = eight ^ _FEEDS, eight ^ _RETURNS
        if ((feeds - _ONES) & ~feeds | (returns - _ONES) & ~returns) & _HIGH:  # a byte of either is zero
            break
        i += 8
    while i < stop and data[i] != 10 and data[i] != 13:
        i += 1
    return i


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
