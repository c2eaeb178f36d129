"""From a run folder to a run, whatever it measured and whichever biassay wrote it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from biassay.errors import RunFolderError, UsageError
from biassay.results.data import FORMAT_VERSION, RunData
from biassay.results.storage import MANIFEST, RESULTS_JSON, read_content, read_run, run_of
from biassay.runs.listener import PathLike
from biassay.studies.registry import study_of_run

__all__ = ["load_data", "name_folders"]


def load_data(folder: PathLike) -> RunData:
    """Read a run folder back; the result equals what was saved."""
    folder = Path(folder)
    _check(folder)
    manifest = read_content(folder / MANIFEST)
    name = manifest.get("study", manifest.get("kind", "associations"))
    if not isinstance(name, str):
        raise RunFolderError(f"{folder / MANIFEST}: not the manifest of a run: its study is {name!r}")
    try:
        study = study_of_run(name, str(manifest.get("package", "biassay")))
    except RunFolderError as error:
        raise RunFolderError(f"{folder / MANIFEST}: {error}") from error
    if manifest["format_version"] == FORMAT_VERSION:
        return read_run(folder, manifest, study.types, study.check_stored)
    return _older(folder, manifest)


def _older(folder: Path, manifest: dict[str, Any]) -> RunData:
    version = manifest["format_version"]
    study = study_of_run(manifest.get("kind", "associations"), "biassay")
    if manifest.get("status") != "complete":
        raise RunFolderError(
            f"{folder}: an older biassay began the run (format version {version}) and did not finish it; "
            "start a new run"
        )
    results = read_content(folder / RESULTS_JSON)
    try:
        return run_of(study.upgrade(folder, manifest, results), study.types, folder, study.check_stored)
    except RunFolderError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RunFolderError(f"{folder}: not a run of format version {version}: {error!r}") from error


def _check(folder: Path) -> None:
    if folder.is_file():
        raise RunFolderError(f"{folder} is a file; name the folder of the run, {folder.parent}")
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: no such folder; name the folder of a run")
    if not (folder / MANIFEST).is_file():
        inside = sorted(str(path.parent) for path in folder.glob(f"*/{MANIFEST}"))[:5]
        hint = f"; runs inside: {', '.join(inside)}" if inside else ""
        raise RunFolderError(f"{folder}: no run there ({MANIFEST} is missing){hint}")


def name_folders(folders: Sequence[Path]) -> list[str]:
    """The last part of each folder's path, and as many parts before it as tell the folders apart."""
    whole = [folder.resolve() for folder in folders]
    twice = next((f for i, f in enumerate(whole) if f in whole[:i]), None)
    if twice is not None:
        raise UsageError(f"{folders[whole.index(twice)]} is named twice; name each run once")
    for depth in itertools.count(1):
        names = [Path(*folder.parts[-depth:]).as_posix() for folder in whole]
        if len(set(names)) == len(names):
            return names
    raise AssertionError("different paths differ at some depth")
