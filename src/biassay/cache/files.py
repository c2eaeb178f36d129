"""Write files of the cache, and synchronise its folders with object storage.

Files are named by the hash of their content. So remote files never change, several machines may write at the same time,
and damaged downloads are detected.
"""

from __future__ import annotations

import errno
import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from biassay.errors import StorageError
from biassay.io import open_file, write_atomically
from biassay.object_storage import RemoteFolder

STALE_SECONDS = 24 * 3600  # younger temporary files may belong to a process at work
CACHE_OPTION = "--cache DIR (cache=) or BIASSAY_CACHE"
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


def make_cache_folder(folder: Path) -> None:
    """Create a folder of the cache. Raise StorageError if that is impossible."""
    with _translate_write_errors(folder, CACHE_OPTION):
        folder.mkdir(parents=True, exist_ok=True)


def write_to_cache(path: Path, content: bytes, option: str = CACHE_OPTION, *, durable: bool = True) -> None:
    """Write a file of the cache completely or not at all.

    Parameters
    ----------
    path : Path
        If its folder was deleted in the meantime, it is created again.
    content : bytes
    option : str
        Option that chooses another folder, for the error message.
    durable : bool
        If False, do not wait for the disk; a power failure may damage the file.
    """
    with _translate_write_errors(path.parent, option):
        try:
            write_atomically(path, content, durable=durable)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content, durable=durable)


@contextmanager
def _translate_write_errors(folder: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        space = "free some space, or " if error.errno in _DISK_FULL else ""
        what = "vectors" if option != CACHE_OPTION else "to the cache"
        raise StorageError(
            f"{folder}: cannot write {what}: {error.strerror}; {space}choose another folder with {option}"
        ) from error


def remove_stale_files(folder: Path) -> None:
    """Remove temporary files that interrupted processes left in a folder."""
    for leftover in folder.glob(".*.tmp"):
        with suppress(FileNotFoundError):
            if time.time() - leftover.stat().st_mtime > STALE_SECONDS:
                leftover.unlink()


def make_npy_header(shape: tuple[int, ...], dtype: str) -> bytes:
    """Return the header that NumPy writes before an array of this shape.

    Compare it with the bytes of a file: NumPy's parser raises arbitrary errors on a damaged one.
    """
    buffer = io.BytesIO()
    content = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, content)
    return buffer.getvalue()


_FILES_PER_FETCH = 16
IsIntact = Callable[[str, bytes], bool]


@dataclass
class RemoteCache:
    """A cache in object storage.

    Attributes
    ----------
    remote : RemoteFolder
    warn : callable
        Receives a warning when files cannot be uploaded.
    """

    remote: RemoteFolder
    warn: Callable[[str], None]
    _warned: bool = field(default=False, init=False)

    def folder_for(self, folder: Path, is_intact: IsIntact, suffix: str) -> SyncedFolder:
        """Return the remote folder of the same name as a local one.

        Parameters
        ----------
        folder : Path
        is_intact : callable
            Function from the name and content of a file to whether they belong together.
        suffix : str
            Suffix of the files to synchronise.
        """
        return SyncedFolder(self, self.remote / folder.name, folder, is_intact, suffix)

    def warn_once(self, error: StorageError) -> None:
        """Warn that new files stay local, the first time only."""
        if not self._warned:
            self.warn(f"{error}; new responses are cached on this machine only, and uploaded at the next use")
            self._warned = True


@dataclass(frozen=True)
class SyncedFolder:
    """A local folder and its copy in object storage.

    Files whose names differ only after a dash encode the same content, so one of them is enough.
    """

    cache: RemoteCache
    remote: RemoteFolder
    folder: Path
    is_intact: IsIntact
    suffix: str

    def sync(self) -> None:
        """Download remote-only files and upload local-only files."""
        local, remote = self._list_local(), self._list_remote()
        self.fetch([remote[key] for key in sorted(remote.keys() - local.keys())])
        self._upload([local[key] for key in sorted(local.keys() - remote.keys())])

    def push(self) -> None:
        """Upload local-only files. Report failures; never raise."""
        try:
            remote = self._list_remote()
        except StorageError as error:
            self.cache.warn_once(error)
            return
        self._upload([name for key, name in sorted(self._list_local().items()) if key not in remote])

    def _list_local(self) -> dict[str, str]:
        return {_strip_digest(file.name): file.name for file in self.folder.glob(f"*{self.suffix}")}

    def _list_remote(self) -> dict[str, str]:
        names = (name for name in self.remote.list_names() if name.endswith(self.suffix) and not name.startswith("."))
        return {_strip_digest(name): name for name in names}

    def _upload(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                with open_file(self.folder / name) as file:
                    content = file.read()
            except OSError:  # another process removed it as damaged, or merged it
                continue
            if self.is_intact(name, content) and not self.put(name, content):
                return

    def fetch(self, names: Sequence[str]) -> list[str]:
        """Download files; return the names of those that arrived intact."""
        fetched = []
        for start in range(0, len(names), _FILES_PER_FETCH):
            for name, content in self.remote.read(names[start : start + _FILES_PER_FETCH]).items():
                if self.is_intact(name, content):
                    write_to_cache(self.folder / name, content)
                    fetched.append(name)
        return fetched

    def put(self, name: str, content: bytes) -> bool:
        """Upload a file; warn and return False if that fails."""
        try:
            self.remote.write(name, content)
        except StorageError as error:
            self.cache.warn_once(error)
            return False
        return True


def _strip_digest(name: str) -> str:
    return name.partition("-")[0]
