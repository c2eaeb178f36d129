"""Files in object storage by their addresses: ``s3://`` and ``gs://`` through Arrow, ``hf://`` and others by fsspec.

Storage fails now and then: whatever is done there is tried again, and what fails for good is an error that names the
address. An object is written whole or not at all.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import io
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

from biassay.errors import MissingExtraError, StorageError, UsageError
from biassay.redaction import has_password, redact_url

__all__ = ["Match", "RemoteFile", "RemoteFolder", "is_address", "matching"]

T = TypeVar("T")
_WAITS = (0.5, 2.0, 8.0)  # seconds before it is tried again
_BLOCK = 16 << 20  # bytes fetched at a time
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError, ValueError)
_TOGETHER = 16  # objects fetched at once
_IN_VAIN = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "redentials")
_OF_ARROW = {"s3": "s3://{}", "gs": "gs://{}?retry_limit_seconds=20", "gcs": "gs://{}?retry_limit_seconds=20"}
_VERSIONS = ("ETag", "etag", "generation", "blob_id", "LastModified", "last_modified", "mtime", "updated", "created")


def is_address(place: object) -> bool:
    """Is it an address in object storage, and not a path?"""
    if isinstance(place, str) and has_password(place):
        raise UsageError(
            f"{redact_url(place)}: a URL must not hold a key or a password; set the environment variables of the "
            "storage, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or download the file"
        )
    if isinstance(place, str) and re.match(r"(s3|gs|gcs|hf):/?[^/]", place):
        raise UsageError(f"{place}: an address has two slashes behind its kind, as s3://BUCKET/DIR has")
    return isinstance(place, str) and "://" in place


def _tried(address: str, do: Callable[[], T]) -> T:
    """What ``do`` gives, in the end."""
    for wait in (*_WAITS, None):
        try:
            return do()
        except _FINAL as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise StorageError(f"{address}: cannot be used: {_said(error)}") from error
        except Exception as error:  # each kind of storage has errors of its own
            if any(word in f"{type(error).__name__} {error}" for word in _IN_VAIN):
                raise StorageError(f"{address}: cannot be used: {_said(error)}") from error
            if wait is None:
                tries = len(_WAITS) + 1
                raise StorageError(f"{address}: no answer after {tries} tries: {_said(error)}") from error
            time.sleep(wait)
    raise AssertionError


def _said(error: BaseException) -> str:
    return redact_url(str(error).strip().partition("\n")[0]) or type(error).__name__


def _scheme(address: str) -> str:
    return address.partition("://")[0].lower()


def _at(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    bucket, slash, rest = address.partition("://")[2].partition("/")
    try:
        if _scheme(address) in _OF_ARROW:
            system, root = _bucket(_OF_ARROW[_scheme(address)].format(bucket))
            return system, root + slash + rest
        from fsspec.core import url_to_fs

        return url_to_fs(address)  # type: ignore[no-any-return]
    except ImportError as error:
        raise MissingExtraError(address, "storage") from error
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{address}: no address that is known: {_said(error)}") from error


@functools.cache
def _bucket(address: str) -> tuple[Any, str]:
    """The file system that a bucket belongs to, with what the environment says of keys, region and endpoint."""
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import FileSystem, FileType

    name = address.partition("?")[0]
    try:
        system, root = _tried(name, lambda: FileSystem.from_uri(address))
        found = _tried(name, lambda: system.get_file_info(root))
    except StorageError as error:
        hint = "is the name of the bucket right? Keys, region and endpoint are those of the environment"
        raise StorageError(f"{error}; {hint}") from error
    if found.type == FileType.NotFound:
        raise UsageError(f"{name}: there is no such bucket")
    return ArrowFSWrapper(system), root


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

    def open(self, mode: str = "rb", buffering: int = -1) -> io.BufferedReader:  # noqa: ARG002  (as a path has it)
        return io.BufferedReader(_Reader(self.address), _BLOCK)


class _Reader(io.RawIOBase):
    """Bytes of an object, each piece by a request of its own: no connection is held that could break."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address, self._position = address, 0
        self._size = RemoteFile(address).stat().st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        start, end = self._position, min(self._position + len(buffer), self._size)
        if start >= end:
            return 0
        piece = _tried(self._address, lambda: _piece(self._address, start, end))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


def _piece(address: str, start: int, end: int) -> bytes:
    system, path = _at(address)
    if _scheme(address) not in _OF_ARROW:
        return system.cat_file(path, start, end)  # type: ignore[no-any-return]
    with system.fs.open_input_file(path) as file:
        return file.read_at(end - start, start)  # type: ignore[no-any-return]


class Match(NamedTuple):
    """An object, its name below the fixed part of an address, and whether its folder was meant, not it by itself."""

    file: RemoteFile
    name: str
    in_folder: bool


def matching(address: str) -> list[Match]:
    """The objects that an address, a folder or a pattern stands for; those of folders without hidden ones."""
    address = address.rstrip("/")
    system, path = _at(address)
    if _tried(address, lambda: system.isfile(path)):
        return [Match(RemoteFile(address), path.rpartition("/")[2], False)]
    parts = path.split("/")
    plain = next((n for n, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    base, root = "/".join(parts[:plain]), address.removesuffix(path)
    names = [
        one.removeprefix(base).lstrip("/") for one in _tried(address, lambda: _files(address, system, base, deep=True))
    ]
    fits = _fits("/".join(parts[plain:]))
    return [
        Match(RemoteFile(f"{root}{base}/{name}"), name, by_folder)
        for name in sorted(names)
        if not any(part.startswith(".") for part in name.split("/")) and (by_folder := fits(name)) is not None
    ]


def _fits(pattern: str) -> Callable[[str], bool | None]:
    """Says of a name whether it fits only by a folder that it is in; None: it does not fit at all."""
    if not pattern:
        return lambda _: True
    from fsspec.utils import glob_translate

    form, deep = re.compile(glob_translate(pattern)), "**" in pattern

    def fits(name: str) -> bool | None:
        if form.match(name):
            return False
        folders = (str(folder) for folder in PurePosixPath(name).parents)
        return True if not deep and any(map(form.match, folders)) else None

    return fits


def _files(address: str, system: Any, path: str, *, deep: bool) -> list[str]:
    """All objects in a folder; none if there is no such folder.

    Arrow knows a folder of ``gs://`` only if it was made as one, so it lists what is in it and does not ask for it.
    """
    if _scheme(address) in _OF_ARROW:
        from pyarrow.fs import FileSelector

        found = system.fs.get_file_info(FileSelector(path, recursive=deep, allow_not_found=True))
        return [one.path for one in found if one.is_file]
    system.invalidate_cache(path)
    walk = system.walk(path, None if deep else 1, on_error="raise")
    try:
        return [f"{at}/{name}" for at, _, names in walk for name in names]
    except FileNotFoundError:
        return []


@dataclass(frozen=True)
class RemoteFolder:
    """A folder of objects, named by their content."""

    address: str

    def __truediv__(self, name: str) -> RemoteFolder:
        return RemoteFolder(f"{self.address.rstrip('/')}/{name}")

    def names(self) -> set[str]:
        """Names of all objects in it; none if there is no such folder."""
        system, path = _at(self.address)
        found = _tried(self.address, lambda: _files(self.address, system, path, deep=False))
        return {one.rpartition("/")[2] for one in found}

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """The content of some objects; one that is gone is left out."""
        system, folder = _at(self.address)

        def fetched(name: str) -> bytes | None:
            try:
                content: bytes = system.cat_file(f"{folder.rstrip('/')}/{name}")
            except FileNotFoundError:
                return None
            return content

        with ThreadPoolExecutor(_TOGETHER) as threads:
            found = threads.map(lambda name: _tried((self / name).address, lambda: fetched(name)), names)
            return {name: content for name, content in zip(names, found, strict=True) if content is not None}

    def write(self, name: str, content: bytes) -> None:
        system, path = _at((self / name).address)

        def put() -> None:
            try:
                system.pipe_file(path, content)
            except FileNotFoundError:  # storage with folders, and this one is new
                system.makedirs(path.rpartition("/")[0], exist_ok=True)
                system.pipe_file(path, content)

        _tried((self / name).address, put)
