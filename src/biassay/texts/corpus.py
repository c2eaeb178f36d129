"""Which files a corpus is made of, how each is written, and the parts in which it is scanned."""

from __future__ import annotations

import bisect
import glob
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.errors import UnknownNameError, UsageError
from biassay.remote import RemoteFile, is_address, matching
from biassay.texts.blocks import LOOK_BACK, blocks, lines_in
from biassay.texts.frames import entries
from biassay.texts.streams import Stream
from biassay.texts.tools import tool

__all__ = ["ENDINGS", "FORMATS", "PART_BYTES", "CorpusFile", "Part", "find_files", "first_rows", "split"]

ENDINGS = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
FORMATS = ("text", "jsonl", "csv", "tsv", "parquet")
COMPRESSIONS = {".gz": "gz", ".bz2": "bz2", ".zst": "zst"}
PART_BYTES = 128 << 20
_SNIFF = "?"  # compressed, with no ending inside: the first lines decide
_SNIFFED = 100


@dataclass(frozen=True)
class CorpusFile:
    """A file of the corpus. ``name`` is what results say of it: relative to the folder or pattern that was given."""

    path: Path | RemoteFile
    name: str
    format: str
    compression: str
    size: int
    mtime: int


@dataclass(frozen=True)
class Part:
    """A piece of a file: the documents that start in a range of bytes, or row groups of a Parquet file.

    Bytes are counted as decompressed; ``entry`` is a place before them where decompression can begin, in the file as it
    is and decompressed.
    """

    file: CorpusFile
    start: int = 0
    stop: int | None = None
    entry: tuple[int, int] = (0, 0)

    @property
    def label(self) -> str:
        return self.file.name if self.stop is None and not self.start else f"{self.file.name}[{self.start}]"


def find_files(patterns: Sequence[str | Path], format: str | None = None) -> tuple[CorpusFile, ...]:
    """The files that names, folders and patterns stand for, each once, in the order given."""
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS, f"(there are {', '.join(FORMATS)})")
    found: dict[Path | RemoteFile, CorpusFile] = {}
    for pattern in patterns:
        here = list(_matches(os.path.expanduser(pattern)))
        if not here:
            raise UsageError(f"no file of a corpus at {str(pattern)!r}; {_what_is_read()}")
        for path, name in here:
            found.setdefault(path.resolve(), _corpus_file(path, name, format))
    if not found:
        raise UsageError("no corpus: name at least one file, folder or pattern")
    return tuple(found.values())


def split(files: Sequence[CorpusFile], part_bytes: int = PART_BYTES) -> tuple[Part, ...]:
    """Parts of about ``part_bytes``, decompressed.

    CSV can only be read from the front, and so can most compressed files: one part each. Those of bgzip are cut at
    blocks, and those of zstd at frames that tell their size, as pzstd writes them.
    """
    if part_bytes < 1:
        raise UsageError(f"a part of {part_bytes} bytes; a part has at least one")
    return tuple(part for file in files for part in _parts(file, part_bytes))


def _parts(file: CorpusFile, part_bytes: int) -> Iterator[Part]:
    if file.format in ("csv", "tsv") or (file.compression and file.format == "parquet"):
        yield Part(file)
    elif file.format == "parquet":
        yield from _row_groups(file, part_bytes)
    elif file.compression:
        yield from _entered(file, part_bytes)
    else:
        cuts = [*range(0, file.size, part_bytes)] or [0]
        for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
            yield Part(file, start, stop)


def _entered(file: CorpusFile, part_bytes: int) -> Iterator[Part]:
    """Parts of a compressed file, each with the last entry from which all that it looks at can be read."""
    if isinstance(file.path, RemoteFile):
        yield Part(file)
        return
    places = entries(file.path, file.compression)
    before = [decompressed for _, decompressed in places]
    cuts = [0]
    for decompressed in before[:-1]:
        if decompressed - cuts[-1] >= part_bytes:
            cuts.append(decompressed)
    for start, stop in zip(cuts, [*cuts[1:], None], strict=True):
        yield Part(file, start, stop, places[max(0, bisect.bisect_right(before, start - LOOK_BACK) - 1)])


def _row_groups(file: CorpusFile, part_bytes: int) -> Iterator[Part]:
    try:
        with file.path.open("rb") as stream:
            metadata = tool("pyarrow.parquet").read_metadata(stream)
    except (OSError, tool("pyarrow").ArrowException):
        yield Part(file)  # the scan will say what is wrong with it
        return
    start = size = 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= part_bytes or group == metadata.num_row_groups - 1:
            yield Part(file, start, group + 1)
            start, size = group + 1, 0
    if not metadata.num_row_groups:
        yield Part(file)


def _matches(pattern: str) -> Iterator[tuple[Path | RemoteFile, str]]:
    """Files of one pattern, with their names."""
    if is_address(pattern):
        found = matching(pattern)
        yield from ((one.file, one.name) for one in found if not one.in_folder or _form(one.file)[0])
        return
    path = Path(pattern)
    if path.is_dir():
        yield from _in_folder(path, path)
    elif path.exists():
        yield path, path.name
    elif glob.has_magic(pattern):
        plain = 0
        while plain < len(path.parts) and not glob.has_magic(path.parts[plain]):
            plain += 1
        base = Path(*path.parts[:plain])
        for match in map(Path, sorted(glob.glob(pattern, recursive=True))):
            if match.is_dir() and "**" not in pattern:
                yield from _in_folder(match, base)
            elif match.is_file():
                yield match, match.relative_to(base).as_posix()


def _in_folder(folder: Path, base: Path) -> Iterator[tuple[Path, str]]:
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(at, name)
            if not name.startswith(".") and _form(path)[0] and path.is_file():
                yield path, path.relative_to(base).as_posix()


def _form(path: Path | RemoteFile) -> tuple[str, str]:
    """Format and compression by the ending; an empty format where it says nothing."""
    ending = path.suffix.lower()
    compression = COMPRESSIONS.get(ending, "")
    if not compression:
        return ENDINGS.get(ending, ""), ""
    inner = Path(path.stem).suffix.lower()
    return (ENDINGS.get(inner, "") if inner else _SNIFF), compression


def _corpus_file(path: Path | RemoteFile, name: str, format: str | None) -> CorpusFile:
    known, compression = _form(path)
    chosen = format or known
    if not chosen:
        raise UsageError(f"the ending of {str(path)!r} does not say how it is written; {_what_is_read()}")
    if not path.is_file():
        raise UsageError(f"{str(path)!r} is a pipe or a device; write what it gives to a file, and name that")
    if chosen == _SNIFF:
        rows = list(itertools.islice(first_rows(path, compression), _SNIFFED))
        chosen = "jsonl" if rows and 2 * rows.count(None) <= len(rows) else "text"
    status = path.stat()
    return CorpusFile(path, name, chosen, compression, status.st_size, status.st_mtime_ns)


def first_rows(path: Path | RemoteFile, compression: str) -> Iterator[dict[str, Any] | None]:
    """The lines of a file as JSON objects; None in place of a line that is none. What is too long is passed over."""
    with Stream(path, compression) as stream:
        for block in blocks(stream, False, 0, None):
            yield from (_row(line) for line in lines_in(block)[0] if line.strip())


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _what_is_read() -> str:
    return (
        f"files that end in {', '.join(ENDINGS)} are read, each also with {', '.join(COMPRESSIONS)}; "
        f"for another ending name the format: {', '.join(FORMATS)}"
    )
