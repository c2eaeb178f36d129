"""Files in object storage (``s3://``, ``gs://``, ``hf://`` and whatever else fsspec knows), by their addresses.

Storage fails now and then: whatever is done there is tried again, and what fails for good is an error that names the
address. An object is written whole or not at all.
"""

from __future__ import annotations

import glob
import hashlib
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

from biassay.errors import MeasurementError, MissingExtraError, UsageError

__all__ = ["RemoteFile", "RemoteFolder", "is_address", "matching"]

T = TypeVar("T")
_WAITS = (0.5, 2.0, 8.0)  # seconds before it is tried again
_BLOCK = 8 << 20  # bytes fetched at a time
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError, ValueError)
_VERSIONS = ("ETag", "etag", "generation", "LastModified", "last_modified", "mtime", "updated", "created")


def is_address(place: object) -> bool:
    """Is it an address in object storage, and not a path?"""
    return isinstance(place, str) and "://" in place


def _tried(address: str, do: Callable[[], T]) -> T:
    """What ``do`` gives, in the end."""
    for wait in (*_WAITS, None):
        try:
            return do()
        except _FINAL as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise MeasurementError(f"{address}: cannot be used: {_said(error)}") from error
        except Exception as error:  # each kind of storage has errors of its own
            if wait is None or "redentials" in type(error).__name__:
                tries = "" if wait is not None else f" after {len(_WAITS) + 1} tries"
                raise MeasurementError(f"{address}: no answer{tries}: {_said(error)}; run again to continue") from error
            time.sleep(wait)
    raise AssertionError


def _said(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _at(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError(address, "storage") from error
    try:
        return url_to_fs(address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise MissingExtraError(address, "storage") from error
    except ValueError as error:
        raise UsageError(f"{address}: no address that is known: {_said(error)}") from error


class _Status(NamedTuple):
    """What a corpus asks of a file: its size, and a number that changes with its content."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemoteFile:
    """An object, as far as a corpus reads it: it has the methods of a path that are wanted there."""

    address: str

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.address).suffix

    @property
    def stem(self) -> str:
        return PurePosixPath(self.address).stem

    @property
    def parents(self) -> tuple[RemoteFile, ...]:
        return ()

    def resolve(self) -> RemoteFile:
        return self

    def is_file(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.address

    def stat(self) -> _Status:
        system, path = _at(self.address)
        info = _tried(self.address, lambda: system.info(path))
        version = next((str(info[name]) for name in _VERSIONS if info.get(name)), "")
        return _Status(int(info["size"]), int.from_bytes(hashlib.blake2b(version.encode(), digest_size=7).digest()))

    def open(self, mode: str = "rb", buffering: int = -1) -> io.RawIOBase:  # noqa: ARG002  (as a path has it)
        return _Reader(self.address)


class _Reader(io.RawIOBase):
    """Bytes of an object; where the connection breaks it is opened again at the same place."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address, self._position = address, 0
        self._file: Any = None
        self._size: int | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END and self._size is None:
            self._size = RemoteFile(self._address).stat().st_size
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size or 0}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        piece = _tried(self._address, lambda: self._read(len(buffer)))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _read(self, size: int) -> bytes:
        try:
            if self._file is None:
                system, path = _at(self._address)
                self._file = system.open(path, "rb", block_size=_BLOCK)
            if self._file.tell() != self._position:
                self._file.seek(self._position)
            return self._file.read(size)  # type: ignore[no-any-return]
        except Exception:
            self._file = None
            raise

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()


def matching(address: str) -> list[tuple[RemoteFile, str]]:
    """The objects that an address, a folder or a pattern stands for, each with its name below the fixed part."""
    system, path = _at(address)
    if glob.has_magic(path):
        parts = path.split("/")
        plain = next(n for n, part in enumerate(parts) if glob.has_magic(part))
        found, base = _tried(address, lambda: system.glob(path)), "/".join(parts[:plain])
    elif _tried(address, lambda: system.isfile(path)):
        found, base = [path], path.rpartition("/")[0]
    else:
        found, base = _tried(address, lambda: system.find(path)), path.rstrip("/")
    names = ((one, one.removeprefix(base).lstrip("/")) for one in sorted(found) if system.isfile(one))
    return [(RemoteFile(system.unstrip_protocol(one)), name) for one, name in names]


@dataclass(frozen=True)
class RemoteFolder:
    """A folder of objects, named by their content."""

    address: str

    def __truediv__(self, name: str) -> RemoteFolder:
        return RemoteFolder(f"{self.address.rstrip('/')}/{name}")

    def names(self) -> set[str]:
        """Names of all objects in it; none if there is no such folder."""
        system, path = _at(self.address)

        def listed() -> list[str]:
            system.invalidate_cache(path)
            return list(system.ls(path, detail=False))

        try:
            return {one.rpartition("/")[2] for one in _tried(self.address, listed)}
        except FileNotFoundError:
            return set()

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """The content of some objects; one that is gone is left out."""
        system, folder = _at(self.address)
        paths = {f"{folder.rstrip('/')}/{name}": name for name in names}

        def fetched() -> dict[str, Any]:
            found: dict[str, Any] = system.cat(list(paths), on_error="return")
            failed = (one for one in found.values() if isinstance(one, Exception))
            for error in failed:
                if not isinstance(error, FileNotFoundError):
                    raise error
            return found

        contents = _tried(self.address, fetched)
        return {name: contents[path] for path, name in paths.items() if isinstance(contents.get(path), bytes)}

    def write(self, name: str, content: bytes) -> None:
        system, path = _at((self / name).address)

        def put() -> None:
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
            system.pipe_file(path, content)

        _tried((self / name).address, put)
