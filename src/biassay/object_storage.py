"""Read and write files in object storage: ``s3://`` and ``gs://`` with Arrow, ``hf://`` and others with fsspec.

Requests are retried, because storage fails now and then. Errors name the URL. An object is written whole or not at all.
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

T = TypeVar("T")
_RETRY_WAITS = (0.5, 2.0, 8.0)  # seconds
_BLOCK = 16 << 20  # bytes per request
_FINAL_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError, ValueError)
_THREADS = 16  # objects read at the same time
_FINAL_MESSAGES = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "redentials")
_ARROW_URLS = {"s3": "s3://{}", "gs": "gs://{}?retry_limit_seconds=20", "gcs": "gs://{}?retry_limit_seconds=20"}
_VERSION_KEYS = (
    *("ETag", "etag", "generation", "blob_id"),
    *("LastModified", "last_modified", "mtime", "updated", "created"),
)


def is_url(location: object) -> bool:
    """Return whether a location is a URL, not a path. Raise UsageError if it is a URL that cannot be used."""
    if not isinstance(location, str):
        return False
    if has_password(location):
        raise UsageError(
            f"{redact_url(location)}: a URL must not contain a key or a password; set the environment variables of the "
            "storage, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or download the file"
        )
    if re.match(r"(s3|gs|gcs|hf):/?[^/]", location):
        raise UsageError(f"{location}: invalid URL; expected two slashes, as in s3://BUCKET/DIR")
    return "://" in location


def _retry(url: str, request: Callable[[], T]) -> T:
    """Return the result of a request, repeating it after errors that may pass."""
    for wait in (*_RETRY_WAITS, None):
        try:
            return request()
        except _FINAL_ERRORS as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise StorageError(f"{url}: cannot be used: {_format_error(error)}") from error
        except Exception as error:  # each library has its own errors
            if any(word in f"{type(error).__name__} {error}" for word in _FINAL_MESSAGES):
                raise StorageError(f"{url}: cannot be used: {_format_error(error)}") from error
            if wait is None:
                tries = len(_RETRY_WAITS) + 1
                raise StorageError(f"{url}: no response after {tries} tries: {_format_error(error)}") from error
            time.sleep(wait)
    raise AssertionError


def _format_error(error: BaseException) -> str:
    return redact_url(str(error).strip().partition("\n")[0]) or type(error).__name__


def _get_scheme(url: str) -> str:
    return url.partition("://")[0].lower()


def _open_filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    bucket, slash, rest = url.partition("://")[2].partition("/")
    try:
        if _get_scheme(url) in _ARROW_URLS:
            system, root = _open_bucket(_ARROW_URLS[_get_scheme(url)].format(bucket))
            return system, root + slash + rest
        from fsspec.core import url_to_fs

        return url_to_fs(url)  # type: ignore[no-any-return]
    except ImportError as error:
        raise MissingExtraError(url, "storage") from error
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{url}: unknown kind of URL: {_format_error(error)}") from error


@functools.cache
def _open_bucket(url: str) -> tuple[Any, str]:
    """Return the file system of a bucket. Keys, region and endpoint come from the environment."""
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import FileSystem, FileType

    name = url.partition("?")[0]
    try:
        system, root = _retry(name, lambda: FileSystem.from_uri(url))
        info = _retry(name, lambda: system.get_file_info(root))
    except StorageError as error:
        hint = "check the name of the bucket, and keys, region and endpoint in the environment"
        raise StorageError(f"{error}; {hint}") from error
    if info.type == FileType.NotFound:
        raise UsageError(f"{name}: the bucket does not exist")
    return ArrowFSWrapper(system), root


class _FileStatus(NamedTuple):
    """Size of a file, and a number that changes with its content."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemoteFile:
    """File in object storage, with the methods of `Path` that reading a corpus needs."""

    url: str

    @property
    def suffix(self) -> str:
        """Suffix of the name, as `Path.suffix`."""
        return PurePosixPath(self.url).suffix

    @property
    def stem(self) -> str:
        """Name without its suffix, as `Path.stem`."""
        return PurePosixPath(self.url).stem

    @property
    def parents(self) -> tuple[RemoteFile, ...]:
        """Always empty; only local folders are searched upwards."""
        return ()

    def resolve(self) -> RemoteFile:
        """Return the file itself."""
        return self

    def is_file(self) -> bool:
        """Return True."""
        return True

    def __str__(self) -> str:
        return self.url

    def stat(self) -> _FileStatus:
        """Return the size, and a hash of the object's version in place of its modification time."""
        system, path = _open_filesystem(self.url)
        info = _retry(self.url, lambda: system.info(path))
        version = next((str(info[name]) for name in _VERSION_KEYS if info.get(name)), "")
        return _FileStatus(int(info["size"]), int.from_bytes(hashlib.blake2b(version.encode(), digest_size=7).digest()))

    def open(self, mode: str = "rb", buffering: int = -1) -> io.BufferedReader:  # noqa: ARG002  (as `Path.open`)
        """Open the object for reading."""
        return io.BufferedReader(_RemoteReader(self.url), _BLOCK)


class _RemoteReader(io.RawIOBase):
    """Reader of an object. Every block is a separate request, so that no open connection can break."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url, self._position = url, 0
        self._size = RemoteFile(url).stat().st_size

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
        data = _retry(self._url, lambda: _read_range(self._url, start, end))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _read_range(url: str, start: int, end: int) -> bytes:
    system, path = _open_filesystem(url)
    if _get_scheme(url) not in _ARROW_URLS:
        return system.cat_file(path, start, end)  # type: ignore[no-any-return]
    with system.fs.open_input_file(path) as file:
        return file.read_at(end - start, start)  # type: ignore[no-any-return]


class RemoteMatch(NamedTuple):
    """A file that a URL pattern matches.

    Attributes
    ----------
    file : RemoteFile
        The file.
    name : str
        Its name relative to the part of the URL without wildcards.
    matched_by_folder : bool
        True if the pattern matches a folder above the file, not the file itself.
    """

    file: RemoteFile
    name: str
    matched_by_folder: bool


def find_remote_files(url: str) -> list[RemoteMatch]:
    """Return the files at a URL: one file, all files of a folder, or all matches of a pattern. Skip hidden files."""
    url = url.rstrip("/")
    system, path = _open_filesystem(url)
    if _retry(url, lambda: system.isfile(path)):
        return [RemoteMatch(RemoteFile(url), path.rpartition("/")[2], False)]
    parts = path.split("/")
    depth = next((index for index, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    base, root = "/".join(parts[:depth]), url.removesuffix(path)
    paths = _retry(url, lambda: _list_files(url, system, base, deep=True))
    names = [path.removeprefix(base).lstrip("/") for path in paths]
    match = _make_matcher("/".join(parts[depth:]))
    return [
        RemoteMatch(RemoteFile(f"{root}{base}/{name}"), name, by_folder)
        for name in sorted(names)
        if not any(part.startswith(".") for part in name.split("/")) and (by_folder := match(name)) is not None
    ]


def _make_matcher(pattern: str) -> Callable[[str], bool | None]:
    """Return a function from a name to whether only a folder above it matches, or None if nothing matches."""
    if not pattern:
        return lambda _: True
    from fsspec.utils import glob_translate

    expression, deep = re.compile(glob_translate(pattern)), "**" in pattern

    def match(name: str) -> bool | None:
        if expression.match(name):
            return False
        folders = (str(folder) for folder in PurePosixPath(name).parents)
        return True if not deep and any(map(expression.match, folders)) else None

    return match


def _list_files(url: str, system: Any, path: str, *, deep: bool) -> list[str]:
    """Return the paths of all objects in a folder; none if the folder does not exist.

    Arrow finds a folder of ``gs://`` only if it was created as one, so this lists its content without checking it.
    """
    if _get_scheme(url) in _ARROW_URLS:
        from pyarrow.fs import FileSelector

        infos = system.fs.get_file_info(FileSelector(path, recursive=deep, allow_not_found=True))
        return [info.path for info in infos if info.is_file]
    system.invalidate_cache(path)
    walk = system.walk(path, None if deep else 1, on_error="raise")
    try:
        return [f"{folder}/{name}" for folder, _, names in walk for name in names]
    except FileNotFoundError:
        return []


@dataclass(frozen=True)
class RemoteFolder:
    """Folder in object storage."""

    url: str

    def __truediv__(self, name: str) -> RemoteFolder:
        return RemoteFolder(f"{self.url.rstrip('/')}/{name}")

    def list_names(self) -> set[str]:
        """Return the names of all objects in the folder; none if it does not exist."""
        system, path = _open_filesystem(self.url)
        paths = _retry(self.url, lambda: _list_files(self.url, system, path, deep=False))
        return {path.rpartition("/")[2] for path in paths}

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Read some objects concurrently. Skip those that no longer exist."""
        system, folder = _open_filesystem(self.url)

        def fetch(name: str) -> bytes | None:
            try:
                content: bytes = system.cat_file(f"{folder.rstrip('/')}/{name}")
            except FileNotFoundError:
                return None
            return content

        with ThreadPoolExecutor(_THREADS) as threads:
            contents = threads.map(lambda name: _retry((self / name).url, lambda: fetch(name)), names)
            return {name: content for name, content in zip(names, contents, strict=True) if content is not None}

    def write(self, name: str, content: bytes) -> None:
        """Write one object, and the folder if the storage has folders."""
        system, path = _open_filesystem((self / name).url)

        def put() -> None:
            try:
                system.pipe_file(path, content)
            except FileNotFoundError:  # the storage has folders, and this one is new
                system.makedirs(path.rpartition("/")[0], exist_ok=True)
                system.pipe_file(path, content)

        _retry((self / name).url, put)
