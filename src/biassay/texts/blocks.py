"""Blocks of whole lines or paragraphs out of a stream: where they end depends on the content alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.texts.streams import Stream

__all__ = ["LONGEST", "LOOK_BACK", "Block", "blocks", "lines_in", "paragraphs_in"]

BLOCK = 1 << 20  # small enough to stay in a processor's cache while it is parsed and searched
LONGEST = 64 << 20
LOOK_BACK = 4096
_BLANK = re.compile(rb"\n[ \t\r]*\n")


@dataclass(frozen=True)
class Block:
    """Whole documents, the position of the first byte, and whether it is a document too long to be read."""

    data: bytes
    offset: int
    too_long: bool = False


def blocks(stream: Stream, paragraphs: bool, start: int, stop: int | None) -> Iterator[Block]:
    """The documents that start at or after ``start`` and before ``stop``; the stream stands at LOOK_BACK before."""
    reader = _Reader(stream, paragraphs)
    if start:
        reader.skip_to(start)
    while stop is None or reader.offset < stop:
        block = reader.next(stop)
        if block is None:
            return
        yield block


class _Reader:
    """What was read of a stream and not yet given out."""

    def __init__(self, stream: Stream, paragraphs: bool) -> None:
        self.stream, self.paragraphs = stream, paragraphs
        self.offset = stream.position
        self.buffer = b""
        self.ended = False

    def next(self, stop: int | None) -> Block | None:
        """The next block, or None at the end."""
        while True:
            if stop is not None and stop - self.offset <= len(self.buffer):
                end = self._start_after(stop - self.offset)
                if end > 0:
                    return self._give(end)
            if self.ended:
                return self._give(self._last_end() if self.stream.damage else len(self.buffer))
            end = self._last_end()
            if end and len(self.buffer) >= BLOCK:
                return self._give(end)
            if not end and len(self.buffer) > LONGEST:
                return self._too_long()
            self._read()

    def skip_to(self, start: int) -> None:
        """Drop what stands before the first document that starts at or after ``start``."""
        while not (end := self._start_after(start - self.offset)) > 0 and not self.ended:
            self._drop(max(0, len(self.buffer) - LOOK_BACK))
            self._read()
        self._drop(end if end > 0 else len(self.buffer))

    def _too_long(self) -> Block:
        at = self.offset
        while not (end := self._start_after(1)) > 0 and not self.ended:
            self._drop(max(0, len(self.buffer) - LOOK_BACK))
            self._read()
        self._drop(end if end > 0 else len(self.buffer))
        return Block(b"", at, too_long=True)

    def _read(self) -> None:
        chunk = self.stream.take(BLOCK)
        self.ended = not chunk
        self.buffer += chunk

    def _give(self, end: int) -> Block | None:
        if not end:
            return None
        block = Block(self.buffer[:end], self.offset)
        self._drop(end)
        return block

    def _drop(self, size: int) -> None:
        self.buffer = self.buffer[size:]
        self.offset += size

    def _last_end(self) -> int:
        """Where the last whole document of the buffer ends; 0 where none does."""
        if not self.paragraphs:
            return self.buffer.rfind(b"\n") + 1
        end = 0
        for match in _BLANK.finditer(self.buffer):
            end = match.end()
        return end

    def _start_after(self, at: int) -> int:
        """The first place not before ``at`` where a document starts; 0 or less where none is known to."""
        if not self.paragraphs:
            return self.buffer.find(b"\n", max(at - 1, 0)) + 1
        ends = (match.end() for match in _BLANK.finditer(self.buffer, max(0, at - LOOK_BACK)))
        return next((end for end in ends if end >= at), 0)


def lines_in(block: Block) -> tuple[list[bytes], NDArray[np.int64]]:
    """The lines of a block without their ends, and the position of each in the file."""
    lines = block.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    sizes = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
    places = np.cumsum(sizes) - sizes + block.offset
    return ([line.removesuffix(b"\r") for line in lines] if b"\r" in block.data else lines), places


def paragraphs_in(block: Block) -> tuple[list[bytes], NDArray[np.int64]]:
    """The paragraphs of a block, their lines joined by blanks, and the position of each in the file."""
    paragraphs, places = [], []
    lines: list[bytes] = []
    for line, place in [*zip(*lines_in(block), strict=True), (b"", 0)]:
        stripped = line.strip()
        if stripped and not lines:
            places.append(place)
        if stripped:
            lines.append(stripped)
        elif lines:
            paragraphs.append(b" ".join(lines))
            lines = []
    return paragraphs, np.array(places, np.int64)
