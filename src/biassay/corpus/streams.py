"""Read a corpus file as a stream of decompressed bytes, cut into blocks of whole lines."""

from __future__ import annotations

import bz2
import io
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.object_storage import RemoteFile
from biassay.packages import require

BLOCK_BYTES = 1 << 20
MAX_DOCUMENT_BYTES = 64 << 20
LOOK_BACK = 4096
_COMPRESSED_READ_BYTES = 8 << 10  # a decompressor returns all output at once, up to 10,000 times its input
_PLAIN_READ_BYTES = 1 << 20
_MAX_ZSTD_WINDOW = 2**31  # needed for the Reddit dumps
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


class ByteStream(io.RawIOBase):
    """Decompressed bytes of a file.

    A damaged file ends the stream early. The reason is in `damage`; reading never raises.

    Parameters
    ----------
    path : Path or RemoteFile
        File to read.
    compression : {"", "gz", "bz2", "zst"}
        Compression of the file.
    start : int
        Offset of the first byte to return; only for files that are not compressed.
    """

    def __init__(self, path: Path | RemoteFile, compression: str = "", start: int = 0) -> None:
        super().__init__()
        self.damage: str | None = None
        self.position = start
        self._buffer = b""
        self._chunks = _decompress(path, compression) if compression else _read_chunks(path, start)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer and return the number of bytes."""
        chunk = self._buffer or self._next_chunk()
        size = min(len(buffer), len(chunk))
        buffer[:size] = chunk[:size]
        self._buffer = chunk[size:]
        self.position += size
        return size

    def read_exactly(self, size: int) -> bytes:
        """Return `size` bytes, or fewer at the end of the stream."""
        chunks = [self._buffer] if self._buffer else []
        available = len(self._buffer)
        while available < size and (chunk := self._next_chunk()):
            chunks.append(chunk)
            available += len(chunk)
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        self._buffer = data[size:]
        data = data[:size]
        self.position += len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._chunks.close()
        super().close()

    def _next_chunk(self) -> bytes:
        try:
            return next(self._chunks, b"")
        except _decompression_errors() as error:
            self.damage = getattr(error, "strerror", None) or str(error)
            return b""


def _decompression_errors() -> tuple[type[Exception], ...]:
    zstandard = sys.modules.get("zstandard")
    return (OSError, EOFError, zlib.error, *((zstandard.ZstdError,) if zstandard else ()))


def _read_chunks(path: Path | RemoteFile, start: int) -> Generator[bytes]:
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while chunk := file.read(_PLAIN_READ_BYTES):
            yield chunk


def _decompress(path: Path | RemoteFile, compression: str) -> Generator[bytes]:
    """Yield the output of all members (gzip), streams (bzip2) or frames (zstd) of a file."""
    new_decompressor = _get_decompressor(compression)
    with path.open("rb") as file:
        member, started = new_decompressor(), False
        while data := file.read(_COMPRESSED_READ_BYTES):
            while data:
                if compression == "gz" and not started:
                    data = data.lstrip(b"\0")  # tar pads the last gzip block with zeros
                    if not data:
                        break
                started = True
                if output := member.decompress(data):
                    yield output
                data = member.unused_data if member.eof else b""
                if member.eof:
                    member, started = new_decompressor(), False
        if started:
            raise EOFError("the file ends in the middle of its compressed data")


def _get_decompressor(compression: str) -> Callable[[], Any]:
    if compression == "gz":
        return lambda: zlib.decompressobj(wbits=31)
    if compression == "bz2":
        return bz2.BZ2Decompressor
    zstandard = require("zstandard")
    return lambda: zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW).decompressobj()


class LineBlock(NamedTuple):
    """Whole documents of a stream.

    Attributes
    ----------
    data : bytes
        The documents; empty if `too_long`.
    offset : int
        Decompressed offset of the first byte in its file.
    too_long : bool
        True if the block replaces one document above `MAX_DOCUMENT_BYTES`.
    """

    data: bytes
    offset: int
    too_long: bool = False


def iter_blocks(stream: ByteStream, paragraphs: bool, start: int, stop: int | None) -> Iterator[LineBlock]:
    """Yield the documents that start in a range of bytes, in blocks of about 1 MB.

    Parameters
    ----------
    stream : ByteStream
        Stream positioned `LOOK_BACK` bytes before `start`, or at 0.
    paragraphs : bool
        If True, blank lines separate documents; otherwise every line is a document.
    start, stop : int
        First and last position at which a document may start. None reads to the end.
    """
    buffer = _BlockBuffer(stream, paragraphs)
    if start:
        buffer.skip_to(start)
    while stop is None or buffer.offset < stop:
        block = buffer.next_block(stop)
        if block is None:
            return
        yield block


class _BlockBuffer:
    """Bytes read from a stream that no block holds yet."""

    def __init__(self, stream: ByteStream, paragraphs: bool) -> None:
        self.stream, self.paragraphs = stream, paragraphs
        self.offset = stream.position
        self.data = b""
        self.exhausted = False

    def next_block(self, stop: int | None) -> LineBlock | None:
        while True:
            if stop is not None and stop - self.offset <= len(self.data):
                end = self._find_start(stop - self.offset)
                if end > 0:
                    return self._take(end)
            if self.exhausted:
                return self._take(self._find_last_end() if self.stream.damage else len(self.data))
            end = self._find_last_end()
            if end and len(self.data) >= BLOCK_BYTES:
                return self._take(end)
            if not end and len(self.data) > MAX_DOCUMENT_BYTES:
                offset = self.offset
                self.skip_to(self.offset + 1)
                return LineBlock(b"", offset, too_long=True)
            self._read()

    def skip_to(self, position: int) -> None:
        """Drop everything before the first document that starts at or after `position`."""
        while not (end := self._find_start(max(1, position - self.offset))) > 0 and not self.exhausted:
            self._drop(max(0, len(self.data) - LOOK_BACK))
            self._read()
        self._drop(end if end > 0 else len(self.data))

    def _read(self) -> None:
        chunk = self.stream.read_exactly(BLOCK_BYTES)
        self.exhausted = not chunk
        self.data += chunk

    def _take(self, end: int) -> LineBlock | None:
        if not end:
            return None
        block = LineBlock(self.data[:end], self.offset)
        self._drop(end)
        return block

    def _drop(self, size: int) -> None:
        self.data = self.data[size:]
        self.offset += size

    def _find_last_end(self) -> int:
        """Return where the last complete document ends, or 0."""
        if not self.paragraphs:
            return self.data.rfind(b"\n") + 1
        return max((match.end() for match in _BLANK_LINE.finditer(self.data)), default=0)

    def _find_start(self, position: int) -> int:
        """Return the first start of a document at or after `position`, or 0 if it is not known."""
        if not self.paragraphs:
            return self.data.find(b"\n", max(position - 1, 0)) + 1
        ends = (match.end() for match in _BLANK_LINE.finditer(self.data, max(0, position - LOOK_BACK)))
        return next((end for end in ends if end >= position), 0)


def split_lines(block: LineBlock) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the lines of a block without line ends, and the position of each in the file."""
    lines = block.data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    sizes = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
    positions = np.cumsum(sizes) - sizes + block.offset
    return ([line.removesuffix(b"\r") for line in lines] if b"\r" in block.data else lines), positions


def split_paragraphs(block: LineBlock) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the paragraphs of a block, lines joined by blanks, and the position of each in the file."""
    paragraphs, positions = [], []
    current: list[bytes] = []
    for line, position in [*zip(*split_lines(block), strict=True), (b"", 0)]:
        stripped = line.strip()
        if stripped and not current:
            positions.append(position)
        if stripped:
            current.append(stripped)
        elif current:
            paragraphs.append(b" ".join(current))
            current = []
    return paragraphs, np.array(positions, np.int64)
