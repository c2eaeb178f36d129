"""The folder that a run is written to."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from biassay.errors import BudgetError, MeasurementError, RefusedError, RunFolderError, StorageError, UsageError
from biassay.pages.html import REPORT
from biassay.results.arrays import ARRAYS
from biassay.results.storage import MANIFEST, RESULTS_JSON, RESULTS_TSV, read_content, read_models
from biassay.runs.usage import USAGE

__all__ = ["check_free", "explaining_output", "is_unfinished", "removed_if_empty"]


def is_unfinished(folder: Path) -> bool:
    """Does a folder hold a run that can go on?"""
    return (folder / MANIFEST).exists() and read_content(folder / MANIFEST).get("status") == "running"


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything."""
    if (folder / MANIFEST).exists():
        if is_unfinished(folder):
            raise RunFolderError(f"{folder} holds an interrupted run; go on with it: biassay resume {folder}")
        if any(model.get("failed") for model in read_models(folder)):
            raise RunFolderError(
                f"{folder} holds another run, in which models failed; try them again: biassay resume {folder}; "
                "or choose another folder"
            )
        raise RunFolderError(f"{folder} holds another run, which is finished; choose another folder")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunFolderError(f"{folder} is not an empty folder; choose another")


@contextmanager
def explaining_output(folder: Path, *, resumed: bool = False) -> Iterator[None]:
    """Explain why a file of a run cannot be written, and what to do.

    Parameters
    ----------
    folder : Path
    resumed : bool
        If True, the run goes on in its folder, so that no other can be chosen.
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
def removed_if_empty(folder: Path, run_id: str, is_answered: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Leave nothing behind if the request proves wrong, or the disk full, before any model was measured.

    Nor if measuring fails before anything ``is_answered``: there is nothing to go on with, unless it was the budget
    that ended. Another run, that was begun there in the meantime, is left alone.
    """
    existed = folder.exists()
    try:
        yield
    except (UsageError, MeasurementError, OSError) as error:
        failed = isinstance(error, MeasurementError) and not isinstance(error, (RefusedError, StorageError))
        if failed and (isinstance(error, BudgetError) or is_answered()):
            raise
        if folder.is_dir() and not _holds_results(folder, run_id):
            for name in (MANIFEST, RESULTS_JSON, RESULTS_TSV, REPORT, USAGE):
                (folder / name).unlink(missing_ok=True)
            shutil.rmtree(folder / ARRAYS, ignore_errors=True)
            if not existed:
                folder.rmdir()
        raise


def _holds_results(folder: Path, run_id: str) -> bool:
    if not (folder / MANIFEST).exists():
        return False
    if read_content(folder / MANIFEST).get("run_id") != run_id:
        return True
    return any(model.get("measured") and not model.get("refused") for model in read_models(folder))
