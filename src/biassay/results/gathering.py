"""Run folders of any kind: loaded, named, and put together where their study does so."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from biassay.errors import RunFolderError, UsageError
from biassay.results.codec import from_json
from biassay.results.discovery import KIND as DISCOVERY
from biassay.results.discovery import Discovery
from biassay.results.records import FORMAT_VERSION, Provenance
from biassay.results.run import MANIFEST, Run
from biassay.results.stereotypes import KIND as STEREOTYPES
from biassay.results.stereotypes import Stereotypes

__all__ = ["AnyRun", "Gathered", "check_distinct", "load_found", "name_folders"]


class AnyRun(Protocol):
    """What runs of all studies have: how they were made, and results."""

    @property
    def manifest(self) -> Provenance: ...

    @property
    def results(self) -> tuple[Any, ...]: ...


_R = TypeVar("_R", bound=AnyRun)


@dataclass(frozen=True)
class Gathered(Generic[_R]):
    """One run or several as one: ``run`` is what is shown, ``parts`` are the runs that it came from.

    ``differences`` says in what the runs differ that should be alike; it is empty unless that was asked for.
    """

    run: _R
    parts: Mapping[str, _R]
    differences: tuple[str, ...] = ()


def load_found(folder: str | os.PathLike[str]) -> AnyRun:
    """A run folder of any kind."""
    folder = Path(folder)
    if folder.is_file():
        raise RunFolderError(f"{folder} is a file; name the folder of the run, {folder.parent}")
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: no such folder; name the folder of a run")
    if not (folder / MANIFEST).is_file():
        inside = sorted(str(path.parent) for path in folder.glob(f"*/{MANIFEST}"))[:5]
        hint = f"; runs inside: {', '.join(inside)}" if inside else ""
        raise RunFolderError(f"{folder}: no run there ({MANIFEST} is missing){hint}")
    kind = from_json(folder / MANIFEST, Provenance, FORMAT_VERSION).kind
    if kind == DISCOVERY:
        return Discovery.load(folder)
    if kind == STEREOTYPES:
        return Stereotypes.load(folder)
    if kind != "associations":
        raise RunFolderError(f"{folder}: a run of a kind that this biassay does not know ({kind!r})")
    run = Run.load(folder)
    if not run.results:
        raise RunFolderError(f"{folder}: the run has no results yet; go on with it by --resume, or leave it out")
    return run


def name_folders(folders: Sequence[Path]) -> list[str]:
    """The last part of each folder's path, and as many parts before it as tell the folders apart."""
    whole = [folder.resolve() for folder in folders]
    twice = next((f for i, f in enumerate(whole) if f in whole[:i]), None)
    if twice is not None:
        raise UsageError(f"{folders[whole.index(twice)]} is named twice; name each run once")
    for depth in range(1, max((len(f.parts) for f in whole), default=1) + 1):
        names = [Path(*folder.parts[-depth:]).as_posix() for folder in whole]
        if len(set(names)) == len(names):
            break
    return names


def check_distinct(runs: Mapping[str, AnyRun]) -> None:
    """Copies of one run are refused."""
    by_id: dict[str, str] = {}
    for name, run in runs.items():
        if run.manifest.run_id in by_id:
            raise UsageError(f"{by_id[run.manifest.run_id]} and {name} are copies of one run; leave one of them out")
        by_id[run.manifest.run_id] = name
