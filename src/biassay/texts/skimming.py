"""The documents of a block of lines, found by compiled code; lines that are in any way unusual are left to others."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.texts.characters import kinds
from biassay.texts.joined import PADDING, Joined
from biassay.texts.tools import tool

__all__ = ["CLEAR", "UNCLEAR", "WIDE", "Skimmed", "skim"]

UNCLEAR, CLEAR, WIDE = 0, 1, 2  # what is known of a line; WIDE: not ASCII, and not looked at any further
_Lines = tuple[NDArray[Any], ...]


@dataclass
class Skimmed:
    """Lines of a block, and the documents of those that are clear; ``put`` says what the document of another is."""

    block: bytes
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    clear: NDArray[np.bool_]
    _text: NDArray[np.uint8]
    _text_starts: NDArray[np.int64]
    _text_stops: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.kept = np.ones(len(self.starts), np.bool_)
        self._more: list[bytes] = []
        self._size = len(self._text)

    def line(self, number: int) -> bytes:
        """A line without its end."""
        return self.block[self.starts[number] : self.stops[number]].removesuffix(b"\r")

    def put(self, number: int, document: bytes | None) -> None:
        """The document of a line, or None where it holds none."""
        if document is None:
            self.kept[number] = False
            return
        self._text_starts[number], self._text_stops[number] = self._size, self._size + len(document)
        self._more.append(document)
        self._size += len(document) + 1

    def joined(self) -> Joined:
        text = self._text
        if self._more:
            text = np.frombuffer(
                b"".join([text.tobytes(), *(more + b"\0" for more in self._more), bytes(PADDING)]), "u1"
            )
        text.flags.writeable = False
        return Joined(text, self._text_starts[self.kept], self._text_stops[self.kept])


def skim(block: bytes, field: str | None, longest: int) -> Skimmed:
    """The documents of a block: its lines, or one field of each as JSON."""
    data = np.frombuffer(b"%b\n%b" % (block, bytes(PADDING)), np.uint8)
    rows = int(np.count_nonzero(data == ord("\n")))
    lines = (*np.empty((4, rows), np.int64), np.empty(rows, np.uint8))
    text, count = (
        _skim_lines(data, len(block), longest, lines)
        if field is None
        else _skim_json(data, len(block), field, longest, lines)
    )
    start, stop, text_start, text_stop, state = (column[:count] for column in lines)
    clear = state == CLEAR
    wide = np.flatnonzero(state == WIDE)
    spans = zip(start[wide].tolist(), stop[wide].tolist(), strict=True)
    clear[wide] = _are_composed([block[begin:end] for begin, end in spans])
    return Skimmed(block, start, stop, clear, text, text_start, text_stop)


def _skim_lines(data: NDArray[np.uint8], size: int, longest: int, lines: _Lines) -> tuple[NDArray[np.uint8], int]:
    compiled = tool("biassay.texts.lines")
    return data, compiled.skim_lines(data, size, longest, compiled.Lines(*lines))


def _skim_json(
    data: NDArray[np.uint8], size: int, field: str, longest: int, lines: _Lines
) -> tuple[NDArray[np.uint8], int]:
    compiled = tool("biassay.texts.json_lines")
    text = np.empty(len(data) + PADDING, np.uint8)
    work = compiled.Work(data, text, kinds())
    name = np.frombuffer(field.encode(errors="replace"), np.uint8)
    count, written = compiled.skim_json(work, size, name, longest, compiled.Lines(*lines))
    return text[: written + PADDING], count


def _are_composed(lines: list[bytes]) -> bool:
    """Whether lines are all UTF-8 and in composed form. Line feeds between them do not change that."""
    try:
        return unicodedata.is_normalized("NFC", b"\n".join(lines).decode())
    except UnicodeDecodeError:
        return False
