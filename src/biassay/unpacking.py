"""Limit what is unpacked: a file of a few kilobytes may hold gigabytes."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.errors import UsageError

if TYPE_CHECKING:
    from biassay.remote import RemoteFile

__all__ = ["LIMIT_VARIABLE", "UnpackLimit", "UnpackedTooLargeError", "get_arrow_size", "open_parquet"]

LIMIT_VARIABLE = "BIASSAY_MAX_UNPACKED"
_RATIO = 200  # logs of repeated prompts reach 100
_ALWAYS = 64 * 2**20  # bytes that any file may hold
_NEVER_MORE = 4 * 2**30
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_CHUNK = 2**16


class UnpackedTooLargeError(UsageError):
    """A compressed file holds more than the limit."""


class UnpackLimit:
    """Count the bytes that come out of one compressed file, and stop at its limit.

    The limit is 200 times the size of the file, at least 64 MiB and at most 4 GiB. The environment variable
    BIASSAY_MAX_UNPACKED replaces it, for example by ``8G``.
    """

    def __init__(self, path: Path | RemoteFile) -> None:
        self._path = path
        packed = path.stat().st_size
        self.most = _limit_by_user() or min(max(_RATIO * packed, _ALWAYS), _NEVER_MORE)
        self._left = self.most

    def count(self, size: int) -> None:
        """Note that so many bytes were unpacked; raise an error if that is too many in all."""
        self.check(size)
        self._left -= size

    def check(self, size: int) -> None:
        """Raise an error if so many bytes more would be too many."""
        if size > self._left:
            raise UnpackedTooLargeError(
                f"{self._path}: holds more than {self.most / 2**20:,.0f} MiB once it is unpacked, which is more than "
                f"such a file should; if you trust it, set {LIMIT_VARIABLE} to a larger size, such as 8G"
            )

    def read_all(self, file: Any) -> bytes:
        """Read a stream of unpacked bytes to its end, in small pieces."""
        pieces = []
        while piece := file.read(_CHUNK):
            self.count(len(piece))
            pieces.append(piece)
        return b"".join(pieces)

    def wrap(self, file: Any) -> io.BufferedReader:
        """Give a stream of unpacked bytes that stops at the limit."""
        return io.BufferedReader(_Counted(file, self), _CHUNK)


class _Counted(io.RawIOBase):
    def __init__(self, file: Any, limit: UnpackLimit) -> None:
        super().__init__()
        self._file, self._limit = file, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(min(len(buffer), _CHUNK))
        self._limit.count(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)


def open_parquet(file: Any) -> Any:
    """Open a Parquet file so that repeated texts stay references to one text.

    A file of 1 kB can hold a text of 9 MB, and refer to it in every row.
    """
    from pyarrow import parquet

    schema = parquet.read_metadata(file).schema
    columns = (schema.column(number) for number in range(len(schema)))
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    if hasattr(file, "seek"):
        file.seek(0)
    return parquet.ParquetFile(file, read_dictionary=texts)


def get_arrow_size(array: Any) -> int:
    """Return the number of bytes of an Arrow array once every reference in it is replaced by its text."""
    from pyarrow import compute, types

    if types.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary)
        return int(compute.sum(lengths.take(array.indices.drop_null())).as_py() or 0)
    if types.is_struct(array.type):
        return sum(map(get_arrow_size, array.flatten()))
    if types.is_list(array.type) or types.is_large_list(array.type) or types.is_map(array.type):
        values = array.flatten() if not types.is_map(array.type) else array.items
        return int(array.offsets.nbytes) + get_arrow_size(values)
    return int(array.nbytes)


def _limit_by_user() -> int | None:
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        return None
    size = re.fullmatch(r"(\d{1,15})\s*([KMGT]?)(I?B)?", given.upper())
    if size is None:
        raise UsageError(f"{LIMIT_VARIABLE} is a number of bytes such as 8G, got {given!r}")
    return int(size[1]) * _UNITS[size[2]]
