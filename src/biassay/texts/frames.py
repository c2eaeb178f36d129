"""Where reading of a compressed file can begin: frames of zstd that tell their size, and blocks of bgzip.

A plain gzip or bzip2 stream can only be read from its front, and so can a zstd frame that does not tell its size, as a
writer makes it that does not know what is to come.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from biassay.texts.tools import tool

__all__ = ["entries"]

_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_ZSTD = 0xFD2FB528
_HEADER = 18  # bytes: the longest of a frame of zstd
_CHECKSUM = 4  # in the first byte after the magic number of a frame: a checksum stands at its end
_RAW, _REPEATED, _COMPRESSED = 0, 1, 2


def entries(path: Path, compression: str) -> list[tuple[int, int]]:
    """Places of the file, with the number of decompressed bytes before each; the last may be its end.

    They stop before the first piece whose size is not told; a file of one such piece has only its beginning, (0, 0).
    """
    walk = {"zst": _frames, "gz": _blocks}.get(compression)
    found = [(0, 0)]
    if walk is None or not path.stat().st_size:
        return found
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for stored, size in walk(data):
            at, before = found[-1]
            if at + stored > len(data):  # the file ends there
                break
            found.append((at + stored, before + size))
    return found


def _number(data: mmap.mmap, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _frames(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """The stored and the decompressed size of every frame of zstd."""
    zstandard, at = tool("zstandard"), 0
    while at + 8 < len(data):
        magic = _number(data, at, 4)
        if magic in _SKIPPABLE:
            stored, size = 8 + _number(data, at + 4, 4), 0
        elif magic == _ZSTD:
            try:
                header = data[at : at + _HEADER]
                size = zstandard.get_frame_parameters(header).content_size
                stored = _frame_size(data, at, zstandard.frame_header_size(header))
            except zstandard.ZstdError:
                return
            if size == zstandard.CONTENTSIZE_UNKNOWN or not stored:
                return
        else:
            return
        yield stored, size
        at += stored


def _frame_size(data: mmap.mmap, frame: int, header: int) -> int:
    """The stored size of a frame, from the sizes of its blocks; 0 where these make no sense."""
    at, last = frame + header, 0
    while not last:
        if at + 3 > len(data):
            return 0
        block = _number(data, at, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        if kind not in (_RAW, _REPEATED, _COMPRESSED):
            return 0
        at += 3 + (1 if kind == _REPEATED else size)
    return at - frame + (4 if data[frame + 4] & _CHECKSUM else 0)


def _blocks(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """The stored and the decompressed size of every block of bgzip."""
    at = 0
    while data[at : at + 4] == b"\x1f\x8b\x08\x04":
        stored = 0
        field, end = at + 12, at + 12 + _number(data, at + 10, 2)
        while field + 4 <= end:
            length = _number(data, field + 2, 2)
            if data[field : field + 2] == b"BC" and length == 2:
                stored = _number(data, field + 4, 2) + 1
            field += 4 + length
        if stored < end - at or at + stored > len(data):
            return
        yield stored, _number(data, at + stored - 4, 4)
        at += stored
