"""The sentence around a hit. A pure function of the document and the place in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.joined import Joined, by_eight
from biassay.texts.sampling import Drawn
from biassay.texts.tools import tool

__all__ = ["LONGEST_SENTENCE", "REACH", "Sentences", "gathered", "segmenter", "sentence_around", "sentences_around"]

LONGEST_SENTENCE = 2000
REACH = 10_000  # bytes to each side of a hit that are looked at: a document may be one line of 64 MB
_BREAK = re.compile(rb"[\r\n]")
_Segment = Callable[[str], list[str]]


class Sentences(NamedTuple):
    """Sentences with the first place of the stimulus in each, and the numbers of the hits they are of."""

    hit: NDArray[np.int64]
    text: Any
    start: NDArray[np.int64]
    end: NDArray[np.int64]


def segmenter(language: str) -> _Segment:
    """What cuts a line into sentences. A line on which the library gives up stays whole."""
    segment = tool("sentencex").segment

    def cut(line: str) -> list[str]:
        try:
            found: list[str] = segment(language, line)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of compiled code, and no Exception
                raise
            return [line]
        return found

    return cut


def sentences_around(
    documents: Joined, hits: Drawn, lengths: NDArray[np.int64], segment: _Segment
) -> tuple[Sentences, Sentences]:
    """The sentences of many hits, of so many bytes: nearly all, and those that take more care."""
    compiled, data = tool("biassay.texts.cutting"), documents.data
    begin, stop = documents.starts[hits.document], documents.stops[hits.document]
    start = begin + hits.start
    end = start + lengths
    lines = np.empty((len(start), 2), np.int64)
    compiled.find_lines((data, by_eight(data)), (start, end), (begin, stop), REACH, lines)
    begins, first, line = np.unique(lines[:, 0], return_index=True, return_inverse=True)
    segmented = compiled.Lines(data, begins, *_segmented(data, lines[first], segment))
    cut = compiled.Cut(*np.empty((4, len(start)), np.int64), np.empty(len(start), np.bool_))
    compiled.cut(segmented, (line, start, end), (begin, hits.first, hits.last, hits.earlier), LONGEST_SENTENCE, cut)
    clear = cut.clear & (lines[:, 0] >= 0)
    chosen = np.flatnonzero(clear)
    text = _texts(data, cut.begin[chosen], cut.stop[chosen])
    others = _one_by_one(documents, hits, lengths, segment, np.flatnonzero(~clear))
    return Sentences(chosen, text, cut.start[chosen], cut.end[chosen]), others


def _segmented(
    data: NDArray[np.uint8], lines: NDArray[np.int64], segment: _Segment
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sizes in bytes of the sentences of all lines, and the number of the first of each."""
    whole = memoryview(data)  # type: ignore[arg-type]
    counts: list[int] = [0]
    sizes: list[int] = []
    for begin, stop in zip(*lines.T.tolist(), strict=True):  # a list for each line would busy the garbage collector
        text = str(whole[begin:stop], "utf-8") if begin >= 0 else ""
        found = segment(text)
        sizes += map(len, found) if len(text) == stop - begin else (len(sentence.encode()) for sentence in found)
        counts.append(len(sizes))
    return np.array(sizes, np.int64), np.array(counts, np.int64)


def _texts(data: NDArray[np.uint8], begin: NDArray[np.int64], stop: NDArray[np.int64]) -> Any:
    """Pieces of the data as an Arrow array."""
    pyarrow = tool("pyarrow")
    places = np.concatenate([[0], np.cumsum(stop - begin)])
    letters = gathered(data, begin, stop)
    return pyarrow.LargeStringArray.from_buffers(len(begin), pyarrow.py_buffer(places), pyarrow.py_buffer(letters))


def gathered(data: NDArray[np.uint8], begin: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Pieces of the data, one after the other."""
    out = np.empty(int((stop - begin).sum()), np.uint8)
    tool("biassay.texts.cutting").gather((data, by_eight(data)), (begin, stop), out, by_eight(out))
    return out


def _one_by_one(
    documents: Joined, hits: Drawn, lengths: NDArray[np.int64], segment: _Segment, chosen: NDArray[np.int64]
) -> Sentences:
    found = [
        sentence_around(
            documents.document(hits.document[i]),
            int(hits.start[i]),
            int(lengths[i]),
            hits.earlier[hits.first[i] : hits.last[i]].tolist(),
            segment,
        )
        for i in chosen.tolist()
    ]
    texts, starts, ends = zip(*found, strict=True) if found else ((), (), ())
    pyarrow = tool("pyarrow")
    return Sentences(chosen, pyarrow.array(texts, pyarrow.large_string()), np.array(starts, int), np.array(ends, int))


def sentence_around(
    document: bytes, start: int, length: int, earlier: Sequence[int], segment: _Segment
) -> tuple[str, int, int]:
    """The sentence with a hit, and the first place of the stimulus in it.

    Parameters
    ----------
    start, length : int
        The hit, in bytes.
    earlier : sequence of int
        Where the hits of the same stimulus before this one start, in any order.
    """
    begin, stop = _line_begin(document, start), _line_stop(document, start + length)
    line = document[begin:stop]
    text = line.decode()
    places = [at - begin for at in (start, start + length, *earlier) if at >= begin]
    if len(text) != len(line):
        places = [len(line[:place].decode()) for place in places]
    return _cut(text, places[0], places[1], places[2:], segment)


def _cut(line: str, start: int, end: int, earlier: Sequence[int], segment: _Segment) -> tuple[str, int, int]:
    begin = stop = 0
    for sentence in segment(line):
        # From the sentence that holds the start of the hit to the one that holds its end.
        begin, stop = stop if stop <= start else begin, stop + len(sentence)
        if stop >= end:
            break
    text = line[begin:stop]
    begin = stop - len(text.lstrip())
    text = text.strip()
    if len(text) > LONGEST_SENTENCE:
        begin, text = _window(text, begin, start, end)
    # A long sentence is cut around each hit, so that there the hit itself is meant.
    if earlier and len(text) <= LONGEST_SENTENCE:
        first = min((place for place in earlier if place >= begin), default=start)
        start, end = first, first + end - start
    return text, start - begin, end - begin


def _line_begin(document: bytes, start: int) -> int:
    least = max(0, start - REACH)
    found = max(document.rfind(b"\n", least, start), document.rfind(b"\r", least, start)) + 1
    if found or not least:
        return found
    return document.find(b" ", least, start) + 1 or _whole_character(document, least)


def _line_stop(document: bytes, end: int) -> int:
    most = min(len(document), end + REACH)
    found = _BREAK.search(document, end, most)
    if found:
        return found.start()
    if most == len(document):
        return most
    blank = document.rfind(b" ", end, most)
    return blank if blank > 0 else _whole_character(document, most)


def _whole_character(document: bytes, at: int) -> int:
    while at < len(document) and document[at] & 0xC0 == 0x80:
        at += 1
    return at


def _window(text: str, begin: int, start: int, end: int) -> tuple[int, str]:
    """Whole words around the hit, as many as fit, out of a text that begins there; where they begin."""
    start, end = start - begin, end - begin
    spare = max(0, LONGEST_SENTENCE - (end - start)) // 2
    left, right = max(0, start - spare), min(len(text), end + spare)
    if left:
        blank = text.find(" ", left, start)
        left = blank + 1 if blank >= 0 else left
    if right < len(text):
        blank = text.rfind(" ", end, right)
        right = blank if blank >= 0 else right
    cut = text[left:right]
    return begin + right - len(cut.lstrip()), cut.strip()
