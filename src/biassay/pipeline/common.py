"""What the pipelines share: how they report, and how they treat the folder of a run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from biassay.encoders.base import Identity
from biassay.errors import RunFolderError, UsageError
from biassay.report.html import REPORT
from biassay.results.codec import from_json
from biassay.results.records import FORMAT_VERSION, Provenance
from biassay.results.run import MANIFEST, RESULTS_JSON, RESULTS_TSV, Run
from biassay.results.samples import SAMPLES

__all__ = ["Listener", "PathLike", "Silent", "check_free", "taken_back_if_empty", "tell_where_texts_go"]

PathLike = str | os.PathLike[str]


class Listener(Protocol):
    """Told how the work gets on."""

    def scanning(self, what: str, done: int, total: int) -> None: ...

    def encoding(self, model: str, done: int, total: int) -> None: ...

    def measuring(self, model: str, done: int, total: int) -> None: ...

    def searching(self, model: str, done: int, total: int) -> None: ...

    def asking(self, model: str, done: int, total: int) -> None: ...

    def drawing(self, what: str, done: int, total: int) -> None: ...

    def notice(self, message: str) -> None: ...


class Silent:
    def scanning(self, what: str, done: int, total: int) -> None:
        pass

    def encoding(self, model: str, done: int, total: int) -> None:
        pass

    def drawing(self, what: str, done: int, total: int) -> None:
        pass

    def measuring(self, model: str, done: int, total: int) -> None:
        pass

    def searching(self, model: str, done: int, total: int) -> None:
        pass

    def asking(self, model: str, done: int, total: int) -> None:
        pass

    def notice(self, message: str) -> None:
        pass


def tell_where_texts_go(identity: Identity, listener: Listener) -> None:
    """Say it before the first text goes, where a model is not on this machine."""
    if identity.sends_to:
        listener.notice(f"{identity.name}: texts go to {identity.sends_to}")


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything."""
    if (folder / MANIFEST).exists():
        state = from_json(folder / MANIFEST, Provenance, FORMAT_VERSION).status
        hint = "go on with it by --resume" if state == "running" else "choose another folder"
        kind = "an interrupted run" if state == "running" else "another run"
        raise RunFolderError(f"{folder} holds {kind}; {hint}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunFolderError(f"{folder} is not an empty folder; choose another")


@contextmanager
def taken_back_if_empty(folder: Path, also: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    """Leave nothing behind if the request proves wrong, or the disk full, before anything was measured.

    ``also`` names what else ends a run that cannot be resumed.
    """
    existed = folder.exists()
    ending: tuple[type[BaseException], ...] = (UsageError, OSError, *also)
    try:
        yield
    except ending:
        if folder.is_dir() and not _holds_results(folder):
            for name in (MANIFEST, RESULTS_JSON, RESULTS_TSV, REPORT):
                (folder / name).unlink(missing_ok=True)
            shutil.rmtree(folder / SAMPLES, ignore_errors=True)
            if not existed:
                folder.rmdir()
        raise


def _holds_results(folder: Path) -> bool:
    """Has the run in a folder measured anything? One that is not of association tests is written when it is done."""
    if not (folder / MANIFEST).exists():
        return False
    made = from_json(folder / MANIFEST, Provenance, FORMAT_VERSION)
    return made.status == "complete" if made.kind != "associations" else bool(Run.load(folder).results)
