"""Where the data of a benchmark is: a file, a folder, or an installed package that holds it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from biassay.errors import StimulusError
from biassay.stimuli.benchmarks.rows import FORMS

__all__ = ["content_of", "data_files"]


def data_files(place: Path | str, wanted: Callable[[Path], bool], what: str, hint: str) -> tuple[Path, ...]:
    """The files of a benchmark, in the order of their names.

    Parameters
    ----------
    place : Path or str
        A file, which is taken as it is; a folder, in which files are sought at every depth; or the name of an installed
        package, whose files are sought without importing it.
    wanted : function
        Whether a file is one of them, by its path within the package, or by the folder's name and its path in it.
    what, hint : str
        The name of the benchmark, and where to get it: for messages.
    """
    path = Path(place).expanduser()
    if path.is_file():
        return (path,)
    if path.is_dir():
        name = Path(os.path.abspath(path)).name  # links are not followed: in a cache of the Hub they lead to blobs
        found = sorted(f for f in path.rglob("*") if _readable(f) and wanted(name / f.relative_to(path)))
    else:
        found = sorted(located for inside, located in _installed(str(place), what, hint) if wanted(inside))
    if not found:
        raise StimulusError(f"{place}: no file of {what} found in it; give the file itself; {hint}")
    return tuple(found)


def content_of(values: Iterable[Any]) -> str:
    """A digest of what was read, as one list, the same for every form of file that holds it."""
    digest, encoder = hashlib.sha256(b"["), json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
    for place, value in enumerate(values):
        digest.update(f"{',' if place else ''}{encoder.encode(value)}".encode("utf-8", "surrogatepass"))
    digest.update(b"]")
    return digest.hexdigest()[:16]


def _readable(path: Path) -> bool:
    return path.is_file() and any(path.name.lower().removesuffix(".gz").endswith(form) for form in FORMS)


def _installed(name: str, what: str, hint: str) -> Iterator[tuple[Path, Path]]:
    try:
        files = metadata.files(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        raise StimulusError(
            f"{name}: neither a file, nor a folder, nor an installed package with the data of {what}; {hint}"
        ) from None
    for file in files:
        if _readable(located := Path(str(file.locate()))):
            yield Path(str(file)), located
