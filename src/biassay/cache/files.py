"""Write files of the cache."""

from __future__ import annotations

import errno
import io
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from biassay.errors import StorageError
from biassay.io import write_atomically

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
