"""Limit the size of decompressed files."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.errors import UsageError

if TYPE_CHECKING:
    from biassay.object_storage import RemoteFile


LIMIT_VARIABLE = "BIASSAY_MAX_UNPACKED"
_RATIO = 200  # logs of repeated prompts reach 100
_MIN_LIMIT = 64 * 2**20  # bytes that any file may hold
_MAX_LIMIT = 4 * 2**30
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_CHUNK = 2**16


class UnpackedTooLargeError(UsageError):
    """A compressed file holds more than the limit."""


class UnpackLimit:
    """Limit on the decompressed size of one file.

    The limit is 200 times the size of the file, at least 64 MiB and at most 4 GiB. The environment variable
    BIASSAY_MAX_UNPACKED replaces it, for example by ``8G``.
    """

    def __init__(self, path: Path | RemoteFile) -> None:
        self._path = path
        packed = path.stat().st_size
        self.most = _read_user_limit() or min(max(_RATIO * packed, _MIN_LIMIT), _MAX_LIMIT)
        self._left = self.most

    def count(self, size: int) -> None:
        """Add decompressed bytes. Raise UnpackedTooLargeError if the file exceeds its limit."""
        self._left -= size
        if self._left < 0:
            raise UnpackedTooLargeError(
                f"{self._path}: larger than {self.most / 2**20:,.0f} MiB once decompressed, which is unusual for its "
                f"size; if you trust it, set {LIMIT_VARIABLE} to a larger size, such as 8G"
            )

    def wrap(self, file: Any) -> io.BufferedReader:
        """Wrap a decompressed stream so that reading it counts towards the limit."""
        return io.BufferedReader(_LimitedReader(file, self), _CHUNK)


class _LimitedReader(io.RawIOBase):
    def __init__(self, file: Any, limit: UnpackLimit) -> None:
        super().__init__()
        self._file, self._limit = file, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._file.read(min(len(buffer), _CHUNK))
        self._limit.count(len(chunk))
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _read_user_limit() -> int | None:
    value = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not value:
        return None
    size = re.fullmatch(r"(\d{1,15})\s*([KMGT]?)(I?B)?", value.upper())
    if size is None:
        raise UsageError(f"{LIMIT_VARIABLE} must be a number of bytes such as 8G, got {value!r}")
    return int(size[1]) * _UNITS[size[2]]
