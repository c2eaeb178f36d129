"""Record which cached files are used: when, under which model name, and by runs in progress.

A cached model has a small JSON file that describes it. Its modification time is the time of the last use. A run in
progress holds a lock file in the cache. The operating system releases the lock when the process ends, however it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from biassay.errors import RunFolderError, UsageError
from biassay.io import default_cache, read_json, write_atomically

CACHE_TAG = "CACHEDIR.TAG"
"""File that marks a cache, for biassay and for backup programs (https://bford.info/cachedir)."""
_TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of biassay.\n"
_PREFIX, _SUFFIX = ".run-", ".lock"
_MAX_NAMES = 8


def record_use(path: Path, name: str, description: Mapping[str, Any]) -> None:
    """Record that a cached model is used now.

    Parameters
    ----------
    path : Path
        JSON file that describes the model. It is written if it does not exist or does not hold the name.
    name : str
        Name of the model in this run. Copies of a model share a cache; the file lists the latest names first.
    description : mapping
        Further content of the file.
    """
    with suppress(OSError):  # a cache that cannot be written can still be read
        content = read_description(path)
        names = read_names(content)
        if names[:1] == [name]:
            os.utime(path)
            return
        names = [name, *(other for other in names if other != name)][:_MAX_NAMES]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({**content, **description, "names": names}, indent=1).encode())


def read_description(path: Path) -> dict[str, Any]:
    """Read a JSON object; return an empty one if the file is missing or damaged."""
    with suppress(RunFolderError):
        content = read_json(path)
        return content if isinstance(content, dict) else {}
    return {}


def read_names(content: Mapping[str, Any]) -> list[str]:
    """Return the names of a model from its description, latest first."""
    names = content.get("names")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def is_cache(folder: Path) -> bool:
    """Return whether a folder is a cache of biassay: the default one, or one that a run has marked."""
    with suppress(OSError):
        return (folder / CACHE_TAG).read_bytes() == _TAG
    with suppress(OSError, UsageError):
        return folder.samefile(default_cache())
    return False


@contextmanager
def lock_cache(folder: Path) -> Iterator[None]:
    """Hold a lock file in a cache, so that `biassay cache prune` keeps the entries that are used meanwhile."""
    existed = folder.is_dir()
    name = uuid.uuid4().hex
    path, temporary = folder / f"{_PREFIX}{name}{_SUFFIX}", folder / f".{name}.tmp"
    with ExitStack() as stack:
        with suppress(OSError):  # a cache that cannot be written cannot be pruned either
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / CACHE_TAG).exists():
                (folder / CACHE_TAG).write_bytes(_TAG)
            file = stack.enter_context(temporary.open("xb"))
            _lock(file)
            os.replace(temporary, path)  # under this name the file is always locked
        try:
            yield
        finally:
            stack.close()
            for leftover in (path, temporary):
                with suppress(OSError):
                    leftover.unlink(missing_ok=True)
            with suppress(OSError):
                if not existed and os.listdir(folder) == [CACHE_TAG]:
                    shutil.rmtree(folder, ignore_errors=True)


def get_start_of_oldest_run(folder: Path) -> float | None:
    """Return when the oldest run in progress began (seconds since the epoch), or None if there is none.

    Lock files of processes that have ended are removed.
    """
    starts = []
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(FileNotFoundError):
            start = path.lstat().st_mtime
            if _is_held(path):
                starts.append(start)
            else:
                path.unlink(missing_ok=True)
    return min(starts, default=None)


def _lock(file: BinaryIO) -> None:
    if os.name == "posix":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_held(path: Path) -> bool:
    """Return whether a process holds a lock file. On Windows an open file cannot be deleted."""
    try:
        if os.name != "posix":
            path.unlink(missing_ok=True)
            return False
        with open(path, "rb", opener=_open_regular) as file:
            _lock(file)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _open_regular(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
