"""Check, clean up and load run folders."""

from __future__ import annotations

import errno
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from biassay.errors import (
    BudgetError,
    InsufficientVocabularyError,
    MeasurementError,
    RunFolderError,
    StorageError,
    UsageError,
)
from biassay.reporting.html import REPORT_FILE
from biassay.results.run_data import RunData
from biassay.results.run_folder import (
    ARRAYS_FOLDER,
    MANIFEST_JSON,
    RESULTS_JSON,
    RESULTS_TSV,
    read_models,
    read_run,
    read_run_json,
)
from biassay.runs.progress import PathLike
from biassay.studies.registry import find_run_study

USAGE_LOG = "usage.jsonl"


def is_unfinished(folder: Path) -> bool:
    """Return whether a folder holds an interrupted run."""
    return (folder / MANIFEST_JSON).exists() and read_run_json(folder / MANIFEST_JSON).get("status") == "running"


def ensure_empty(folder: Path) -> None:
    """Raise RunFolderError unless a folder is empty or does not exist."""
    if (folder / MANIFEST_JSON).exists():
        if is_unfinished(folder):
            raise RunFolderError(f"{folder} holds an interrupted run; continue it with: biassay resume {folder}")
        if any(model.get("failed") for model in read_models(folder)):
            raise RunFolderError(
                f"{folder} holds another run, in which models failed; retry them with: biassay resume {folder}; or "
                "choose another folder"
            )
        if any(model.get("part") for model in read_models(folder)):
            raise RunFolderError(
                f"{folder} holds a run that the budget cut short; continue it with: biassay resume {folder} --budget "
                "TOKENS; or choose another folder"
            )
        raise RunFolderError(
            f"{folder} holds a finished run; choose another folder, or show the run with: biassay report {folder}"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunFolderError(f"{folder} is not an empty folder; choose another")


@contextmanager
def explain_write_errors(folder: Path, *, resumed: bool = False) -> Iterator[None]:
    """Add to an error of writing a run what to do about it.

    Parameters
    ----------
    folder : Path
        The run folder.
    resumed : bool
        If True, the run is resumed, so that no other folder can be chosen.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        named = str(folder) if error.filename is None and full else str(error.filename)
        if not Path(named).is_relative_to(folder) or not error.strerror:
            raise
        hint = "free some space" if full else "make the folder writable"
        if isinstance(error, FileNotFoundError):
            hint = "the folder was deleted while the run wrote to it: run again"
        elsewhere = "" if resumed else ", or choose another folder with --out DIR (out=)"
        message = f"cannot write the results of the run: {error.strerror}; {hint}{elsewhere}"
        raise OSError(error.errno, message, named) from error


@contextmanager
def cleanup_on_failure(folder: Path, run_id: str, has_responses: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Remove the run folder if an error leaves nothing to resume.

    That is a wrong request or a full disk before any model was measured, or a failure of the measurement before any
    model responded. A run that exceeds its token budget can be resumed. Another run in the same folder is left alone.

    Parameters
    ----------
    folder : Path
        The run folder.
    run_id : str
        Id of the run in its manifest.
    has_responses : callable
        Function that returns whether any model may have responded.
    """
    existed = folder.exists()
    try:
        yield
    except (UsageError, MeasurementError, OSError) as error:
        is_failure = isinstance(error, MeasurementError) and not isinstance(
            error, (InsufficientVocabularyError, StorageError)
        )
        if is_failure and (isinstance(error, BudgetError) or has_responses()):
            raise
        if folder.is_dir() and not _holds_results(folder, run_id):
            for name in (MANIFEST_JSON, RESULTS_JSON, RESULTS_TSV, REPORT_FILE, USAGE_LOG):
                (folder / name).unlink(missing_ok=True)
            shutil.rmtree(folder / ARRAYS_FOLDER, ignore_errors=True)
            if not existed:
                folder.rmdir()
        raise


def _holds_results(folder: Path, run_id: str) -> bool:
    if not (folder / MANIFEST_JSON).exists():
        return False
    if read_run_json(folder / MANIFEST_JSON).get("run_id") != run_id:
        return True
    return any(model.get("measured") and not model.get("skipped") for model in read_models(folder))


def load_run_data(folder: PathLike) -> RunData:
    """Read the data of a run from its folder."""
    folder = Path(folder)
    _check_run_folder(folder)
    manifest = read_run_json(folder / MANIFEST_JSON)
    name = manifest.get("study")
    if not isinstance(name, str):
        raise RunFolderError(f"{folder / MANIFEST_JSON}: not the manifest of a run; its study is {name!r}")
    try:
        study = find_run_study(name, str(manifest.get("package", "biassay")))
    except RunFolderError as error:
        raise RunFolderError(f"{folder / MANIFEST_JSON}: {error}") from error
    return read_run(folder, manifest, study.schema, study.check_stored)


def _check_run_folder(folder: Path) -> None:
    if folder.is_file():
        raise RunFolderError(f"{folder} is a file; name its run folder, {folder.parent}")
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: no such folder; name a run folder")
    if not (folder / MANIFEST_JSON).is_file():
        inside = sorted(str(path.parent) for path in folder.glob(f"*/{MANIFEST_JSON}"))[:5]
        hint = f"; runs inside: {', '.join(inside)}" if inside else ""
        raise RunFolderError(f"{folder}: not a run folder ({MANIFEST_JSON} is missing){hint}")


def name_folders(folders: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that tell the folders apart."""
    resolved = [folder.resolve() for folder in folders]
    duplicate = next((i for i, folder in enumerate(resolved) if folder in resolved[:i]), None)
    if duplicate is not None:
        raise UsageError(f"{folders[resolved.index(resolved[duplicate])]} is named twice; name each run once")
    for depth in itertools.count(1):
        names = [Path(*folder.parts[-depth:]).as_posix() for folder in resolved]
        if len(set(names)) == len(names):
            return names
    raise AssertionError("different paths differ at some depth")
