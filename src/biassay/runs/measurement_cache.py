"""Cache measurements: every model is measured once per study, settings and outputs.

`Study.measure` is a pure function of inputs and outputs. A measurement is cached as the run folder of one model. Its
name is a hash of everything that decides the result: the study with its settings and inputs, the outputs, the versions
of numerical packages, and the state of biassay's files.
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

from biassay.cache.outputs import ModelOutputs
from biassay.errors import RunFolderError, UsageError
from biassay.results.run_data import Manifest, RunData
from biassay.results.run_folder import MANIFEST_JSON, read_run, read_run_json, write_manifest, write_results
from biassay.runs.progress import Listener, announce_step
from biassay.studies.study import Array, Inputs, Part, Progress, Row, Study, StudyWarning, UnknownWords

_KEY = re.compile("[0-9a-f]{32}")
_UNUSED_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True)
class MeasurementCache:
    """Measure models with a study, and cache the results in `folder`."""

    study: Study
    inputs: Inputs
    listener: Listener
    folder: Path

    def get_or_compute(
        self, manifest: Manifest, label: str, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> RunData:
        """Return the measurement of a model, from the cache if possible.

        Parameters
        ----------
        manifest : Manifest
            Manifest of a run of this model only.
        label : str
            Name of the model in progress and warnings.
        model : ModelOutputs
        all_outputs : sequence of ModelOutputs
            Outputs of all models that the study needs to measure this one.
        """
        judges = [outputs.judge for outputs in all_outputs if outputs.judge is not None]
        key = _make_key(self.study, self.inputs, manifest, [model, *all_outputs, *judges])
        cached = None if key is None else _read_cached(self.folder / key, self.study)
        if cached is not None:
            announce_step(self.listener, label, "using the cached measurement")
            for text in cached.manifest.models[0].warnings:
                self.listener.notice(f"{label}: {text}")
            return cached
        run = self._measure(manifest, label, model, all_outputs)
        if key is not None:
            with suppress(OSError, ValueError, RunFolderError):  # a measurement that cannot be cached only costs time
                _remove_unused(self.folder)
                # With the key as its id, two processes that measure the same model write the same files.
                cached_manifest = dataclasses.replace(run.manifest, run_id=key, status="complete")
                write_results(self.folder / key, dataclasses.replace(run, manifest=cached_manifest), self.study.schema)
                write_manifest(self.folder / key, cached_manifest)
        return run

    def _measure(
        self, manifest: Manifest, label: str, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> RunData:
        announce_step(self.listener, label, "measuring")
        tables: dict[str, list[Any]] = {name: [] for name in self.study.schema.stored}
        arrays: dict[str, NDArray[np.float64]] = {}
        unknown_words, warnings, part = set[str](), list[str](), None
        for event in self.study.measure(self.inputs, model, all_outputs):
            match event:
                case Row(table, row) if table in tables:
                    tables[table].append(row)
                case Row(table, _):
                    known = ", ".join(tables)
                    raise UsageError(f"study {self.study.name!r} has no table {table!r}; its tables: {known}")
                case Array(name, values):
                    stored = values.dtype if values.dtype == np.float32 else np.float64
                    arrays[f"0/{name}"] = np.asarray(values, dtype=stored)
                case Progress(unit, done, total):
                    self.listener.progress(label, unit, done, total)
                case StudyWarning(text):
                    self.listener.notice(f"{label}: {text}")
                    warnings.append(text)
                case Part(text):
                    self.listener.notice(f"{label}: {text}")
                    part = text
                case UnknownWords(words):
                    unknown_words.update(words)
                case _:
                    raise UsageError(f"study {self.study.name!r} yields {event!r}, which is not an event")
        record = dataclasses.replace(
            manifest.models[0],
            measured=True,
            oov_words=tuple(sorted(unknown_words)),
            warnings=tuple(warnings),
            part=part,
        )
        manifest = dataclasses.replace(manifest, models=(record,))
        return RunData(manifest, {name: tuple(rows) for name, rows in tables.items()}, arrays)


def _make_key(study: Study, inputs: Inputs, manifest: Manifest, all_outputs: Sequence[ModelOutputs]) -> str | None:
    """Return the cache key, or None if something that decides the result is unknown."""
    files, inputs_key = [outputs.cache_files for outputs in all_outputs], study.cache_key(inputs)
    if None in files or inputs_key is None or _list_code_files() != _CODE_FILES:
        return None
    models = [
        (o.identity, o.identities, o.capabilities, o.count_tokens is None, o.rank_words is None) for o in all_outputs
    ]
    digest = hashlib.blake2b(digest_size=16)
    parts = (study.name, inputs.settings, inputs_key, models, files, manifest.versions, platform.machine(), _CODE_FILES)
    for part in parts:
        _add_to_digest(digest, part)
    return digest.hexdigest()


def _add_to_digest(digest: Any, value: Any) -> None:
    """Add a value to a hash part by part, because there may be very many."""
    parts = list(value.items()) if isinstance(value, Mapping) else value
    if isinstance(parts, list | tuple):
        digest.update(f"{len(parts)} parts: ".encode())
        for part in parts:
            _add_to_digest(digest, part)
    else:
        text = repr(value).encode(errors="surrogatepass")
        digest.update(f"{len(text)} ".encode() + text)


def _list_code_files() -> list[tuple[str, int, int, int]]:
    """List names, sizes and dates of biassay's files, because edited code measures again."""
    files = []
    for folder, folders, names in os.walk(Path(__file__).parents[1]):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for path in (os.path.join(folder, name) for name in names):
            with suppress(OSError):  # a broken link
                status = os.stat(path)
                files.append((path, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return sorted(files)


_CODE_FILES = _list_code_files()  # as imported; if files have changed since, nothing is cached


def _read_cached(folder: Path, study: Study) -> RunData | None:
    """Return the measurement in a folder, or None if it is missing or damaged."""
    try:
        if not (folder / MANIFEST_JSON).exists():
            return None
        run = read_run(folder, read_run_json(folder / MANIFEST_JSON), study.schema, study.check_stored)
    except RunFolderError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    except OSError:
        return None
    with suppress(OSError):
        os.utime(folder / MANIFEST_JSON)
    return run if run.manifest.run_id == folder.name else None


def _remove_unused(folder: Path) -> None:
    """Remove measurements that were not used for a month: most are of outdated settings or code."""
    for path in folder.iterdir() if folder.is_dir() else ():
        manifest = path / MANIFEST_JSON
        if _KEY.fullmatch(path.name):
            with suppress(OSError):
                last_used = (manifest if manifest.exists() else path).stat().st_mtime
                if time.time() - last_used > _UNUSED_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
