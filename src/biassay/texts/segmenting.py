"""The sentence around a hit. A pure function of the document and the place in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.joined import Joined
from biassay.texts.sampling import Drawn
from biassay.texts.tools import tool

__all__ = ["LONGEST_SENTENCE", "REACH", "Sentences", "sentence_around", "sentences_around"]

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


def sentences_around(
    documents: Joined, hits: Drawn, lengths: NDArray[np.int64], segment: _Segment
) -> tuple[Sentences, Sentences]:
    """The sentences of many hits, of so many bytes: those of documents that are plain, and those of others."""
    compiled = tool("biassay.texts.cutting")
    numbers, document = np.unique(hits.document, return_inverse=True)
    starts, stops = documents.starts[numbers], documents.stops[numbers]
    plain = np.empty(len(numbers), np.bool_)
    compiled.plain(documents.data, starts, stops, REACH, plain)
    segmented = compiled.Segmented(documents.data, starts, *_segmented(documents.data, starts, stops, plain, segment))
    here = np.flatnonzero(plain[document])
    cut = compiled.Cut(*np.empty((4, len(here)), np.int64))
    compiled.cut(
        segmented,
        (document[here], hits.start[here], lengths[here]),
        (hits.first[here], hits.last[here], hits.earlier),
        cut,
    )
    short = cut.stop - cut.begin <= LONGEST_SENTENCE
    others = np.sort(np.concatenate([np.flatnonzero(~plain[document]), here[~short]]))
    begin, stop, start, end = (column[short] for column in cut)
    text = _texts(documents.data, begin, stop)
    return Sentences(here[short], text, start, end), _one_by_one(documents, hits, lengths, segment, others)


def _segmented(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    plain: NDArray[np.bool_],
    segment: _Segment,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sizes of the sentences of all plain documents, and the number of the first of each."""
    whole = str(data.data, "latin-1")  # of one byte a character, so that places are those of the data
    counts, sizes = np.zeros(len(starts), np.int64), []
    for number in np.flatnonzero(plain).tolist():
        found = segment(whole[starts[number] : stops[number]])
        counts[number] = len(found)
        sizes += map(len, found)
    return np.array(sizes, np.int64), np.concatenate([[0], np.cumsum(counts)])


def _texts(data: NDArray[np.uint8], begin: NDArray[np.int64], stop: NDArray[np.int64]) -> Any:
    """Pieces of the data as an Arrow array."""
    pyarrow = tool("pyarrow")
    places = np.concatenate([[0], np.cumsum(stop - begin)])
    letters = np.empty(places[-1], np.uint8)
    tool("biassay.texts.cutting").gather(data, begin, stop, letters)
    return pyarrow.LargeStringArray.from_buffers(len(begin), pyarrow.py_buffer(places), pyarrow.py_buffer(letters))


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


def _cut(
    line: str, start: int, end: int, earlier: Sequence[int], segment: _Segment
) -> tuple[str, int, int]:
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
