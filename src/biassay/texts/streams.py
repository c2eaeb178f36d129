"""The bytes of a file, decompressed on the way. Damage ends a stream early and is noted; it never raises."""

from __future__ import annotations

import bz2
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from biassay.remote import RemoteFile
from biassay.texts.tools import tool

__all__ = ["Stream"]

# What is fed to a decompressor at once. All that comes out is held, and zeros shrink a ten-thousandfold.
_FEED = 8 << 10
_PLAIN = 1 << 20
_LONGEST_WINDOW = 2**31  # the dumps of Reddit need it


class Stream(io.RawIOBase):
    """Bytes of a file from ``start``, decompressed, to its end, or to where it is damaged.

    A compressed file is read from ``entry`` on: a place in it, and how many decompressed bytes are before that.
    """

    def __init__(
        self, path: Path | RemoteFile, compression: str = "", start: int = 0, entry: tuple[int, int] = (0, 0)
    ) -> None:
        super().__init__()
        self.damage: str | None = None
        self._pieces = _pieces(path, compression, start, entry[0])
        self._left = b""
        self.position = entry[1] if compression else start
        while self.position < start and self.take(min(_PLAIN, start - self.position)):
            pass

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._left or self._next()
        size = min(len(buffer), len(piece))
        buffer[:size] = piece[:size]
        self._left = piece[size:]
        self.position += size
        return size

    def take(self, size: int) -> bytes:
        """Exactly so many bytes, fewer at the end: where blocks end depends on the content alone."""
        pieces = [self._left] if self._left else []
        have = len(self._left)
        while have < size and (piece := self._next()):
            pieces.append(piece)
            have += len(piece)
        everything = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._left = everything[size:]
        taken = everything[:size]
        self.position += len(taken)
        return taken

    def close(self) -> None:
        if not self.closed:
            self._pieces.close()
        super().close()

    def _next(self) -> bytes:
        try:
            piece: bytes = next(self._pieces, b"")
        except _damages() as error:  # damage is reported, not raised
            self.damage = getattr(error, "strerror", None) or str(error)
            return b""
        return piece


def _damages() -> tuple[type[Exception], ...]:
    """The errors of all decompressors that are in use."""
    zstandard = sys.modules.get("zstandard")
    return (OSError, EOFError, zlib.error, *((zstandard.ZstdError,) if zstandard else ()))


def _pieces(path: Path | RemoteFile, compression: str, start: int, entry: int) -> Any:
    """A generator of pieces, none of them empty."""
    if not compression:
        return _plain(path, start)
    return _members(path, _decompressor(compression), entry, padded=compression == "gz")


def _plain(path: Path | RemoteFile, start: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while piece := file.read(_PLAIN):
            yield piece


def _decompressor(compression: str) -> Callable[[], Any]:
    if compression == "gz":
        return lambda: zlib.decompressobj(wbits=31)
    if compression == "bz2":
        return bz2.BZ2Decompressor
    zstandard = tool("zstandard")
    return lambda: zstandard.ZstdDecompressor(max_window_size=_LONGEST_WINDOW).decompressobj()


def _members(path: Path | RemoteFile, decompressor: Callable[[], Any], entry: int, padded: bool) -> Iterator[bytes]:
    """Members (frames, streams) one after the other, as dumps that were written in parallel have them."""
    with path.open("rb") as file:
        file.seek(entry)
        member, begun = decompressor(), False
        while chunk := file.read(_FEED):
            while chunk:
                if padded and not begun:
                    chunk = chunk.lstrip(b"\0")  # tape drives fill up the last block
                    if not chunk:
                        break
                begun = True
                if piece := member.decompress(chunk):
                    yield piece
                chunk = member.unused_data if member.eof else b""
                if member.eof:
                    member, begun = decompressor(), False
        if begun:
            raise EOFError("the file ends in the middle of its compressed data")
