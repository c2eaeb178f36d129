"""Files: where they are kept, and how to write one so that a reader never sees half of it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["default_cache", "write_atomically", "written_whole"]


def default_cache() -> Path:
    """Where vectors and converted models are kept: $BIASSAY_CACHE, or the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("BIASSAY_CACHE") or platformdirs.user_cache_path("biassay"))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is either complete or not there, whatever happens in between."""
    with written_whole(path) as file:
        file.write(content)


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """The same piece by piece: the file appears under its name when the block ends, and not if it fails."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the temporary name says nothing to anyone
    finally:
        temporary.unlink(missing_ok=True)
