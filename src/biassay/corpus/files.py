"""Find the files of a corpus, detect their formats and split them into parts for parallel scanning."""

from __future__ import annotations

import glob
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.corpus.streams import ByteStream, iter_blocks, split_lines
from biassay.errors import UnknownNameError, UsageError
from biassay.object_storage import RemoteFile, find_remote_files, is_url
from biassay.packages import require

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
    """

    file: CorpusFile
    start: int = 0
    stop: int | None = None


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
    """Split files into parts of about `part_bytes`; CSV and compressed files are read from the front and stay whole."""
    return tuple(part for file in files for part in _split_file(file, part_bytes))


def read_json_rows(path: Path | RemoteFile, compression: str) -> Iterator[dict[str, Any] | None]:
    """Yield each line as a JSON object, or None for a line that is not one. Skip documents that are too long."""
    with ByteStream(path, compression) as stream:
        for block in iter_blocks(stream, False, 0, None):
            yield from (_parse_object(line) for line in split_lines(block)[0] if line.strip())


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
    if file.compression or file.format in ("csv", "tsv"):
        yield CorpusPart(file)
    elif file.format == "parquet":
        yield from _split_row_groups(file, part_bytes)
    else:
        cuts = [*range(0, file.size, part_bytes)] or [0]
        for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
            yield CorpusPart(file, start, stop)


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
