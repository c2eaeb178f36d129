"""Find the sentence around a match. The result depends on the document and the position only."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from biassay.packages import require

MAX_SENTENCE_CHARACTERS = 2000
REACH = 10_000  # bytes searched on each side of a match, because a document may be one line of 64 MB

Segmenter = Callable[[str], list[str]]


class TextSpan(NamedTuple):
    """Position of a document in the joined data of several."""

    data: bytes
    start: int
    stop: int


class SentenceMatch(NamedTuple):
    """A sentence, and the first position of the stimulus in it, in characters."""

    text: str
    start: int
    end: int


@functools.lru_cache(maxsize=4)
def get_segmenter(language: str) -> Segmenter:
    """Return a function that splits a line into sentences. A line that the library cannot split stays whole."""
    segment = require("sentencex").segment

    @functools.lru_cache(maxsize=64)  # consecutive matches are often in the same line
    def split(line: str) -> list[str]:
        try:
            sentences: list[str] = segment(language, line)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # raised by Rust code; not an Exception
                raise
            return [line]
        return sentences

    return split


def find_sentence(
    document: TextSpan, start: int, stop: int, earlier: Sequence[int], segmenter: Segmenter
) -> SentenceMatch:
    """Return the sentence that contains a match.

    Parameters
    ----------
    document : TextSpan
        Document in UTF-8.
    start, stop : int
        Position of the match in the data.
    earlier : sequence of int
        Positions of earlier matches of the same stimulus in the document. If one of them is in the same sentence, the
        result points to the first, so that equal sentences give equal results.
    segmenter : callable
        Function from a line to its sentences.
    """
    line_start, line_stop = _find_line_start(document, start), _find_line_stop(document, stop)
    line = document.data[line_start:line_stop]
    text = line.decode()
    offsets = [offset - line_start for offset in (start, stop, *earlier) if offset >= line_start]
    if len(text) != len(line):
        offsets = [len(line[:offset].decode()) for offset in offsets]
    return _cut_sentence(text, offsets[0], offsets[1], offsets[2:], segmenter)


def _cut_sentence(line: str, start: int, end: int, earlier: Sequence[int], segmenter: Segmenter) -> SentenceMatch:
    begin = stop = 0
    for sentence in segmenter(line):
        # A match across sentences takes all of them.
        begin, stop = stop if stop <= start else begin, stop + len(sentence)
        if stop >= end:
            break
    text = line[begin:stop]
    begin = stop - len(text.lstrip())
    text = text.strip()
    if len(text) > MAX_SENTENCE_CHARACTERS:
        begin, text = _cut_window(text, begin, start, end)
    elif earlier:
        first = min((offset for offset in earlier if offset >= begin), default=start)
        start, end = first, first + end - start
    return SentenceMatch(text, start - begin, end - begin)


def _cut_window(text: str, begin: int, start: int, end: int) -> tuple[int, str]:
    """Return the whole words around a match that fit into the longest sentence, and where they begin."""
    start, end = start - begin, end - begin
    margin = max(0, MAX_SENTENCE_CHARACTERS - (end - start)) // 2
    left, right = max(0, start - margin), min(len(text), end + margin)
    if left:
        blank = text.find(" ", left, start)
        left = blank + 1 if blank >= 0 else left
    if right < len(text):
        blank = text.rfind(" ", end, right)
        right = blank if blank >= 0 else right
    window = text[left:right]
    return begin + right - len(window.lstrip()), window.strip()


def _find_line_start(document: TextSpan, start: int) -> int:
    data, limit = document.data, max(document.start, start - REACH)
    line_break = max(data.rfind(b"\n", limit, start), data.rfind(b"\r", limit, start))
    if line_break >= 0:
        return line_break + 1
    if limit == document.start:
        return limit
    blank = data.find(b" ", limit, start)
    return blank + 1 if blank >= 0 else _skip_continuation_bytes(data, limit)


def _find_line_stop(document: TextSpan, stop: int) -> int:
    data, limit = document.data, min(document.stop, stop + REACH)
    breaks = [offset for offset in (data.find(b"\n", stop, limit), data.find(b"\r", stop, limit)) if offset >= 0]
    if breaks:
        return min(breaks)
    if limit == document.stop:
        return limit
    blank = data.rfind(b" ", stop, limit)
    return blank if blank >= 0 else _skip_continuation_bytes(data, limit)


def _skip_continuation_bytes(data: bytes, offset: int) -> int:
    while data[offset] & 0xC0 == 0x80:
        offset += 1
    return offset
