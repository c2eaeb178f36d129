"""Writing to the cache: a folder that was deleted is created again, and errors say what helps."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from biassay.errors import StorageError
from biassay.files import write_atomically

__all__ = ["CACHE_OPTION", "make_cache_folder", "write_to_cache"]

CACHE_OPTION = "--cache DIR (cache=) or BIASSAY_CACHE"
_FULL = {errno.ENOSPC, errno.EDQUOT}


def make_cache_folder(folder: Path) -> None:
    """Create a folder of the cache; a file in its place is an error."""
    with _explaining(folder, CACHE_OPTION):
        folder.mkdir(parents=True, exist_ok=True)


def write_to_cache(path: Path, content: bytes, option: str = CACHE_OPTION, *, durable: bool = True) -> None:
    """Write a file of the cache, all or nothing.

    Parameters
    ----------
    path : Path
        If its folder was deleted in the meantime, it is created again.
    content : bytes
    option : str
        How a user chooses another folder.
    durable : bool
        If False, do not wait for the disk; a power failure may damage the file.
    """
    with _explaining(path.parent, option):
        try:
            write_atomically(path, content, durable=durable)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content, durable=durable)


@contextmanager
def _explaining(folder: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        space = "free some space, or " if error.errno in _FULL else ""
        what = "vectors" if option != CACHE_OPTION else "to the cache"
        raise StorageError(
            f"{folder}: cannot write {what}: {error.strerror}; {space}choose another folder with {option}"
        ) from error
