"""Files: where they are kept, and how to write one so that a reader never sees half of it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

__all__ = ["default_cache", "write_atomically"]


def default_cache() -> Path:
    """Where vectors and converted models are kept: $BIASSAY_CACHE, or the user's cache folder."""
    import platformdirs

    return Path(os.environ.get("BIASSAY_CACHE") or platformdirs.user_cache_path("biassay"))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is either complete or not there, whatever happens in between."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the temporary name says nothing to anyone
    finally:
        temporary.unlink(missing_ok=True)
