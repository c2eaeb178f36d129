"""Find the files of a corpus, detect their formats and split them into parts for parallel scanning."""

from __future__ import annotations

import bisect
import glob
import itertools
import json
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.corpus.streams import LOOK_BACK, ByteStream, iter_blocks, split_lines
from biassay.errors import UnknownNameError, UsageError
from biassay.object_storage import RemoteFile, find_remote_files, is_url
from biassay.packages import require

__all__ = [
    "FORMATS",
    "PART_BYTES",
    "CorpusFile",
    "CorpusPart",
    "find_corpus_files",
    "find_seek_points",
    "read_json_rows",
    "split_files",
]

FORMATS = ("text", "jsonl", "csv", "tsv", "parquet")
PART_BYTES = 32 << 20  # small parts keep all workers busy and let limits fall early
_SUFFIXES = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
_COMPRESSIONS = {".gz": "gz", ".bz2": "bz2", ".zst": "zst"}
_DETECT = "detect"  # a compressed file without an inner suffix, such as RC_2019-01.zst
_DETECT_LINES = 100


@dataclass(frozen=True)
class CorpusFile:
    """A file of the corpus.

    Attributes
    ----------
    path : Path or RemoteFile
        Location of the file.
    name : str
        Name for results and messages, relative to the given folder or pattern.
    format : str
        One of `FORMATS`.
    compression : {"", "gz", "bz2", "zst"}
        Compression of the whole file.
    size, mtime : int
        Size in bytes and modification time in nanoseconds.
    """

    path: Path | RemoteFile
    name: str
    format: str
    compression: str
    size: int
    mtime: int


@dataclass(frozen=True)
class CorpusPart:
    """A part of a file that one task scans.

    Attributes
    ----------
    file : CorpusFile
        File that the part belongs to.
    start, stop : int
        Range of decompressed bytes in which the documents start, or of row groups (Parquet).
        None means to the end.
    seek_point : tuple of int
        File offset at which decompression can begin, and its decompressed offset.
    """

    file: CorpusFile
    start: int = 0
    stop: int | None = None
    seek_point: tuple[int, int] = (0, 0)


def find_corpus_files(patterns: Sequence[str | Path], format: str | None = None) -> tuple[CorpusFile, ...]:
    """Return the files that names, folders and patterns refer to, each file once, in the given order."""
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS, f"(there are {', '.join(FORMATS)})")
    files: dict[Path | RemoteFile, CorpusFile] = {}
    for pattern in patterns:
        matches = list(_expand(os.path.expanduser(pattern)))
        if not matches:
            raise UsageError(f"no corpus file at {str(pattern)!r}; {_describe_formats()}")
        for path, name in matches:
            files.setdefault(path.resolve(), _make_corpus_file(path, name, format))
    if not files:
        raise UsageError("no corpus; name at least one file, folder or pattern")
    return tuple(files.values())


def split_files(files: Sequence[CorpusFile], part_bytes: int = PART_BYTES) -> tuple[CorpusPart, ...]:
    """Split files into parts of about `part_bytes` decompressed bytes.

    CSV files and most compressed files can only be read from the front and stay whole. Files written by bgzip and
    pzstd are split between their blocks and frames.
    """
    if part_bytes < 1:
        raise UsageError(f"part_bytes is {part_bytes}; use 1 or more")
    return tuple(part for file in files for part in _split_file(file, part_bytes))


def read_json_rows(path: Path | RemoteFile, compression: str) -> Iterator[dict[str, Any] | None]:
    """Yield each line as a JSON object, or None for a line that is not one. Skip documents that are too long."""
    with ByteStream(path, compression) as stream:
        for block in iter_blocks(stream, False, 0, None):
            yield from (_parse_object(line) for line in split_lines(block)[0] if line.strip())


def find_seek_points(path: Path, compression: str) -> list[tuple[int, int]]:
    """Return the places at which decompression of a file can begin.

    Each is a file offset with the number of decompressed bytes before it; the last may be the end of the file. Only
    zstd frames that state their content size and bgzip blocks can be used. Otherwise the result is ``[(0, 0)]``.
    """
    points = [(0, 0)]
    iter_sizes = {"zst": _iter_zstd_frames, "gz": _iter_bgzip_blocks}.get(compression)
    if iter_sizes is None or not path.stat().st_size:
        return points
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for stored, size in iter_sizes(data):
            offset, decompressed = points[-1]
            if offset + stored > len(data):
                break
            points.append((offset + stored, decompressed + size))
    return points


def _expand(pattern: str) -> Iterator[tuple[Path | RemoteFile, str]]:
    """Yield the files that a pattern matches, with their names."""
    if is_url(pattern):
        yield from (
            (match.file, match.name)
            for match in find_remote_files(pattern)
            if not match.matched_by_folder or _detect(match.file)[0]
        )
        return
    path = Path(pattern)
    if path.is_dir():
        yield from _walk(path, path)
    elif path.exists():
        yield path, path.name
    elif glob.has_magic(pattern):
        base = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
        for match in map(Path, sorted(glob.glob(pattern, recursive=True))):
            if match.is_dir() and "**" not in pattern:
                yield from _walk(match, base)
            elif match.is_file():
                yield match, match.relative_to(base).as_posix()


def _walk(folder: Path, base: Path) -> Iterator[tuple[Path, str]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and _detect(path)[0] and path.is_file():
                yield path, path.relative_to(base).as_posix()


def _detect(path: Path | RemoteFile) -> tuple[str, str]:
    """Return format and compression by suffix; the format is empty if the suffix is unknown."""
    suffix = path.suffix.lower()
    compression = _COMPRESSIONS.get(suffix, "")
    if not compression:
        return _SUFFIXES.get(suffix, ""), ""
    inner = Path(path.stem).suffix.lower()
    return (_SUFFIXES.get(inner, "") if inner else _DETECT), compression


def _make_corpus_file(path: Path | RemoteFile, name: str, format: str | None) -> CorpusFile:
    detected, compression = _detect(path)
    chosen = format or detected
    if not chosen:
        raise UsageError(f"unknown format of {str(path)!r}; {_describe_formats()}")
    if not path.is_file():
        raise UsageError(f"{str(path)!r} is a pipe or a device; write its content to a file and name that file")
    if chosen == _DETECT:
        rows = list(itertools.islice(read_json_rows(path, compression), _DETECT_LINES))
        chosen = "jsonl" if rows and 2 * rows.count(None) <= len(rows) else "text"
    status = path.stat()
    return CorpusFile(path, name, chosen, compression, status.st_size, status.st_mtime_ns)


def _parse_object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _describe_formats() -> str:
    return (
        f"biassay reads {', '.join(_SUFFIXES)}, each also with {', '.join(_COMPRESSIONS)}; "
        f"for another suffix pass the format: {', '.join(FORMATS)}"
    )


def _split_file(file: CorpusFile, part_bytes: int) -> Iterator[CorpusPart]:
    if file.format in ("csv", "tsv") or (file.compression and file.format == "parquet"):
        yield CorpusPart(file)
    elif file.format == "parquet":
        yield from _split_row_groups(file, part_bytes)
    elif file.compression:
        yield from _split_compressed(file, part_bytes)
    else:
        cuts = [*range(0, file.size, part_bytes)] or [0]
        for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
            yield CorpusPart(file, start, stop)


def _split_compressed(file: CorpusFile, part_bytes: int) -> Iterator[CorpusPart]:
    if isinstance(file.path, RemoteFile):
        yield CorpusPart(file)
        return
    points = find_seek_points(file.path, file.compression)
    decompressed = [position for _, position in points]
    cuts = [0]
    for position in decompressed[:-1]:
        if position - cuts[-1] >= part_bytes:
            cuts.append(position)
    for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
        index = max(0, bisect.bisect_right(decompressed, start - LOOK_BACK) - 1)
        yield CorpusPart(file, start, stop, points[index])


def _split_row_groups(file: CorpusFile, part_bytes: int) -> Iterator[CorpusPart]:
    try:
        with file.path.open("rb") as stream:
            metadata = require("pyarrow.parquet").read_metadata(stream)
    except (OSError, require("pyarrow").ArrowException):
        yield CorpusPart(file)  # the scan reports the damage
        return
    start = size = 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= part_bytes or group == metadata.num_row_groups - 1:
            yield CorpusPart(file, start, group + 1)
            start, size = group + 1, 0
    if not metadata.num_row_groups:
        yield CorpusPart(file)


_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_ZSTD_MAX_HEADER_BYTES = 18
_ZSTD_CHECKSUM_FLAG = 4
_ZSTD_RLE_BLOCK, _ZSTD_RESERVED_BLOCK = 1, 3


def _read_int(data: mmap.mmap, offset: int, size: int) -> int:
    return int.from_bytes(data[offset : offset + size], "little")


def _iter_zstd_frames(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield the stored and the decompressed size of each frame, up to the first that does not state its size."""
    zstandard, offset = require("zstandard"), 0
    while offset + 8 < len(data):
        magic = _read_int(data, offset, 4)
        if magic in _ZSTD_SKIPPABLE:
            stored, size = 8 + _read_int(data, offset + 4, 4), 0
        elif magic == _ZSTD_MAGIC:
            header = data[offset : offset + _ZSTD_MAX_HEADER_BYTES]
            try:
                size = zstandard.get_frame_parameters(header).content_size
                stored = _get_zstd_frame_size(data, offset, zstandard.frame_header_size(header))
            except zstandard.ZstdError:
                return
            if size == zstandard.CONTENTSIZE_UNKNOWN or not stored:
                return
        else:
            return
        yield stored, size
        offset += stored


def _get_zstd_frame_size(data: mmap.mmap, frame: int, header_size: int) -> int:
    """Return the stored size of a frame from its block headers (RFC 8878), or 0 if they are invalid."""
    offset, is_last = frame + header_size, 0
    while not is_last:
        if offset + 3 > len(data):
            return 0
        block = _read_int(data, offset, 3)
        is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
        if kind == _ZSTD_RESERVED_BLOCK:
            return 0
        offset += 3 + (1 if kind == _ZSTD_RLE_BLOCK else size)
    return offset - frame + (4 if data[frame + 4] & _ZSTD_CHECKSUM_FLAG else 0)


def _iter_bgzip_blocks(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield the stored and the decompressed size of each block (SAM specification, section 4.1)."""
    offset = 0
    while data[offset : offset + 4] == b"\x1f\x8b\x08\x04":
        stored = 0
        field, end = offset + 12, offset + 12 + _read_int(data, offset + 10, 2)
        while field + 4 <= end:
            length = _read_int(data, field + 2, 2)
            if data[field : field + 2] == b"BC" and length == 2:
                stored = _read_int(data, field + 4, 2) + 1
            field += 4 + length
        if stored < end - offset or offset + stored > len(data):
            return
        yield stored, _read_int(data, offset + stored - 4, 4)
        offset += stored
