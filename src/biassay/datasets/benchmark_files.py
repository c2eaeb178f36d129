"""Find the files of a benchmark, and exclude flagged items.

Blodgett et al. (2021) describe kinds of flawed items in CrowS-Pairs and StereoSet, but no list of them was released.
Users bring their own list: a text file with one id per line, or a table with a column ``id``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from biassay.datasets.data_rows import FILE_SUFFIXES, read_rows
from biassay.errors import StimulusError
from biassay.io import read_text


def find_data_files(
    location: Path | str,
    is_wanted: Callable[[Path], bool],
    benchmark: str,
    hint: str,
    suffixes: tuple[str, ...] = FILE_SUFFIXES,
) -> tuple[Path, ...]:
    """Return the files of a benchmark, sorted by name.

    Parameters
    ----------
    location : Path or str
        A file, which is returned as it is; a folder, which is searched at every depth; or the name of an installed
        package, which is searched without importing it.
    is_wanted : callable
        Function from a path to whether it belongs to the benchmark. The path is relative to the package, or starts with
        the name of the folder.
    benchmark : str
        Name of the benchmark, for messages.
    hint : str
        Where to get the benchmark, for messages.
    suffixes : tuple of str
        Suffixes of its files.
    """
    path = Path(location).expanduser()
    if path.is_file():
        return (path,)
    if path.is_dir():
        name = Path(os.path.abspath(path)).name  # without following links, which lead to blobs in a cache of the Hub
        files = sorted(
            f for f in path.rglob("*") if _is_readable(f, suffixes) and is_wanted(name / f.relative_to(path))
        )
    else:
        installed = _iter_installed_files(str(location), benchmark, hint, suffixes)
        files = sorted(file for inner_path, file in installed if is_wanted(inner_path))
    if not files:
        raise StimulusError(f"{location}: no file of {benchmark} in it; name the file itself; {hint}")
    return tuple(files)


def digest_values(values: Iterable[Any]) -> str:
    """Return a hash of values as one JSON list, so that it does not depend on the file format."""
    digest, encoder = hashlib.sha256(b"["), json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
    for index, value in enumerate(values):
        digest.update(f"{',' if index else ''}{encoder.encode(value)}".encode("utf-8", "surrogatepass"))
    digest.update(b"]")
    return digest.hexdigest()[:16]


def _is_readable(path: Path, suffixes: tuple[str, ...]) -> bool:
    return path.is_file() and path.name.lower().removesuffix(".gz").endswith(suffixes)


def _iter_installed_files(
    name: str, benchmark: str, hint: str, suffixes: tuple[str, ...]
) -> Iterator[tuple[Path, Path]]:
    try:
        files = metadata.files(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        raise StimulusError(
            f"{name}: neither a file, nor a folder, nor an installed package with the data of {benchmark}; {hint}"
        ) from None
    for file in files:
        if _is_readable(located := Path(str(file.locate())), suffixes):
            yield Path(str(file)), located


@dataclass(frozen=True)
class FlaggedItems:
    """Ids of items to exclude, each with its location in the file, and a hash of them."""

    path: Path
    ids: dict[str, str]
    digest: str


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


ItemWithId = TypeVar("ItemWithId", bound=_HasId)


@dataclass(frozen=True)
class BenchmarkItems(Generic[ItemWithId]):
    """Items of CrowS-Pairs or StereoSet.

    Attributes
    ----------
    items : tuple
        Items without the flagged ones.
    flagged : int
        Number of flagged items.
    files : tuple of Path
        Files of the items.
    digest : str
        Hash of all items, flagged or not.
    version : str
        Released version; empty if the items differ from all of them.
    """

    items: tuple[ItemWithId, ...]
    flagged: int
    files: tuple[Path, ...]
    digest: str
    version: str


def read_flagged(path: Path | str) -> FlaggedItems:
    """Read a list of ids: a text file with one per line (# starts a comment), or a table with a column ``id``."""
    path = Path(path)
    if path.suffix.lower() in (".txt", ""):
        lines = (line.partition("#")[0].strip() for line in read_text(path).splitlines())
        ids = {text: f"line {number}" for number, text in enumerate(lines, start=1) if text}
    else:
        hint = "expected a column 'id', or a .txt file with one id per line"
        ids = {str(row.value("id")): row.location for row in read_rows(path, hint)}
    if not ids:
        raise StimulusError(f"{path}: the file lists no id; to exclude nothing, omit --flagged")
    return FlaggedItems(path, ids, digest_values(sorted(ids)))


def remove_flagged(items: Sequence[ItemWithId], flagged: FlaggedItems | None) -> tuple[tuple[ItemWithId, ...], int]:
    """Return the items that are not flagged, and the number of flagged ones. Raise StimulusError for an unknown id."""
    ids = {} if flagged is None else flagged.ids
    known = {item.id for item in items}
    for name, location in ids.items():
        if flagged is not None and name not in known:
            raise StimulusError(
                f"{flagged.path}: {location}: no item has the id {name!r}; ids look like "
                f"{', '.join(sorted(known)[:3])}; use a list for this version of the data"
            )
    kept = tuple(item for item in items if item.id not in ids)
    return kept, len(items) - len(kept)
