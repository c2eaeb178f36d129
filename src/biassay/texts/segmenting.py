"""The sentence around a hit. A pure function of the document and the place in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["LONGEST_SENTENCE", "REACH", "sentence_around"]

LONGEST_SENTENCE = 2000
REACH = 10_000  # bytes to each side of a hit that are looked at: a document may be one line of 64 MB
_BREAK = re.compile(rb"[\r\n]")


def sentence_around(
    document: bytes, start: int, length: int, earlier: Sequence[int], segment: Callable[[str], list[str]]
) -> tuple[str, int, int]:
    """The sentence with a hit, and the first place of the stimulus in it.

    Parameters
    ----------
    start, length : int
        The hit, in bytes.
    earlier : sequence of int
        Where the hits of the same stimulus before this one start, in any order.
    """
    if len(document) <= REACH and document.isascii() and b"\n" not in document and b"\r" not in document:
        return _cut(document.decode(), start, start + length, earlier, segment)  # nearly all, and twice as fast
    begin, stop = _line_begin(document, start), _line_stop(document, start + length)
    line = document[begin:stop]
    text = line.decode()
    places = [at - begin for at in (start, start + length, *earlier) if at >= begin]
    if len(text) != len(line):
        places = [len(line[:place].decode()) for place in places]
    return _cut(text, places[0], places[1], places[2:], segment)


def _cut(
    line: str, start: int, end: int, earlier: Sequence[int], segment: Callable[[str], list[str]]
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
