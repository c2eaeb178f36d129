"""A model is measured once: what came of it is kept in the cache, as the folder of a run of this model alone.

`Study.measure` is a pure function of inputs and answers. The name of the folder is a hash of all that decides its
value: the study with its settings and inputs, the answers, the packages that compute, and the state of biassay's files.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Answers
from biassay.errors import RunFolderError, UsageError
from biassay.results.data import Manifest, RunData
from biassay.results.storage import MANIFEST, read_content, read_run, write_data, write_manifest
from biassay.runs.listener import Listener, begin
from biassay.studies.study import Array, Inputs, Lost, Notice, Progress, Row, Study

__all__ = ["Measuring"]

_KEY = re.compile("[0-9a-f]{32}")
_UNUSED_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True)
class Measuring:
    """Measures models by a study; what was measured is kept in ``folder``."""

    study: Study
    inputs: Inputs
    listener: Listener
    folder: Path

    def once(self, alone: Manifest, label: str, model: Answers, everyone: Sequence[Answers]) -> RunData:
        """Rows, arrays and lost words of a model, as a run of it ``alone``: kept ones, if there are any."""
        key = _key(self.study, self.inputs, alone, [model, *everyone])
        kept = None if key is None else _read(self.folder / key, self.study)
        if kept is not None:
            begin(self.listener, label, "as measured before")
            for notice in kept.manifest.models[0].notices:
                self.listener.notice(f"{label}: {notice}")
            return kept
        found = self._now(alone, label, model, everyone)
        if key is not None:
            with suppress(OSError, ValueError, RunFolderError):  # what cannot be kept only costs time
                _remove_unused(self.folder)
                named = _named(found, key)
                write_data(self.folder / key, named, self.study.types)
                write_manifest(self.folder / key, named.manifest)
        return found

    def _now(self, alone: Manifest, label: str, model: Answers, everyone: Sequence[Answers]) -> RunData:
        begin(self.listener, label, "measuring")
        tables: dict[str, list[Any]] = {name: [] for name in self.study.types.stored}
        arrays: dict[str, NDArray[np.float64]] = {}
        lost, notices = set[str](), list[str]()
        for event in self.study.measure(self.inputs, model, everyone):
            match event:
                case Row(table, row) if table in tables:
                    tables[table].append(row)
                case Row(table, _):
                    known = ", ".join(tables)
                    raise UsageError(f"study {self.study.name!r} gives a row of table {table!r}; its tables: {known}")
                case Array(name, values):
                    stored = values.dtype if values.dtype == np.float32 else np.float64
                    arrays[f"0/{name}"] = np.asarray(values, dtype=stored)
                case Progress(unit, done, total):
                    self.listener.progress(label, unit, done, total)
                case Notice(text):
                    self.listener.notice(f"{label}: {text}")
                    notices.append(text)
                case Lost(words):
                    lost.update(words)
                case _:
                    raise UsageError(f"study {self.study.name!r} gives {event!r}, which is no event")
        record = dataclasses.replace(
            alone.models[0], measured=True, words_lost=tuple(sorted(lost)), notices=tuple(notices)
        )
        alone = dataclasses.replace(alone, models=(record,))
        return RunData(alone, {name: tuple(rows) for name, rows in tables.items()}, arrays)


def _key(study: Study, inputs: Inputs, alone: Manifest, everyone: Sequence[Answers]) -> str | None:
    """None: not everything that decides the numbers is known, be it of the study, of answers or of the code."""
    files, decides = [answers.files for answers in everyone], study.decides(inputs)
    if None in files or decides is None or _state_of_code() != _CODE:
        return None
    models = [
        (one.identity, one.identities, one.abilities, one.count_tokens is None, one.rank_words is None)
        for one in everyone
    ]
    digest = hashlib.blake2b(digest_size=16)
    for part in (study.name, inputs.settings, decides, models, files, alone.versions, platform.machine(), _CODE):
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Add a value to a hash by its parts, for there may be very many."""
    parts = list(value.items()) if isinstance(value, Mapping) else value
    if isinstance(parts, list | tuple):
        digest.update(f"{len(parts)} parts: ".encode())
        for part in parts:
            _add(digest, part)
    else:
        text = repr(value).encode(errors="surrogatepass")
        digest.update(f"{len(text)} ".encode() + text)


def _state_of_code() -> list[tuple[str, int, int, int]]:
    """Names, sizes and dates of biassay's files: code that was edited measures anew."""
    found = []
    for folder, folders, names in os.walk(Path(__file__).parents[1]):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for path in (os.path.join(folder, name) for name in names):
            with suppress(OSError):  # a link to nothing is no code
                status = os.stat(path)
                found.append((path, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return sorted(found)


_CODE = _state_of_code()  # that runs here; if files have changed since, nothing is kept


def _read(folder: Path, study: Study) -> RunData | None:
    """What is kept in a folder; None: nothing, or not whole."""
    try:
        if not (folder / MANIFEST).exists():
            return None
        run = read_run(folder, read_content(folder / MANIFEST), study.types, study.check_stored)
    except RunFolderError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    except OSError:
        return None
    with suppress(OSError):
        os.utime(folder / MANIFEST)
    return run if run.manifest.run_id == folder.name else None


def _named(run: RunData, key: str) -> RunData:
    """The run with the key as its name: two processes that measure the same write the same."""
    return dataclasses.replace(run, manifest=dataclasses.replace(run.manifest, run_id=key, status="complete"))


def _remove_unused(folder: Path) -> None:
    """Remove what nobody asked for in a month: most of it is of settings or of a biassay that are no more."""
    for kept in folder.iterdir() if folder.is_dir() else ():
        manifest = kept / MANIFEST
        if _KEY.fullmatch(kept.name):
            with suppress(OSError):
                used = (manifest if manifest.exists() else kept).stat().st_mtime
                if time.time() - used > _UNUSED_SECONDS:
                    shutil.rmtree(kept, ignore_errors=True)
