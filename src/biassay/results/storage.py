"""The folder of a run, the same for every study: how it was made, what was found, and the table of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import RunFolderError
from biassay.files import check_digest, json_pieces, read_json, write_atomically, write_pieces
from biassay.results.arrays import IF_DAMAGED, load_arrays, save_arrays
from biassay.results.codec import structured, to_file, unstructured
from biassay.results.data import FORMAT_VERSION, Manifest, RunData, place_finder
from biassay.results.tables import TableSpec, tsv_pieces

__all__ = [
    "MANIFEST",
    "RESULTS_JSON",
    "RESULTS_TSV",
    "Older",
    "Types",
    "as_json",
    "make_folder",
    "read_content",
    "read_run",
    "run_of",
    "write_data",
    "write_manifest",
    "write_run",
]

MANIFEST, RESULTS_JSON, RESULTS_TSV = "manifest.json", "results.json", "results.tsv"


@dataclass(frozen=True)
class Types:
    """Of what the settings, inputs and tables of a study are made; the first table is the one in results.tsv."""

    settings: type
    inputs: type
    tables: tuple[TableSpec, ...]

    @property
    def stored(self) -> dict[str, type]:
        return {table.name: table.record for table in self.tables if table.record is not None}


@dataclass(frozen=True)
class Older:
    """An older folder in the present form, parsed and not yet checked."""

    manifest: Mapping[str, Any]
    tables: Mapping[str, Any]
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


def write_run(folder: Path, run: RunData, types: Types, places: Iterable[int] | None = None) -> None:
    """Write a run, each file whole or not at all; an earlier state of the same run is brought up to date.

    ``places`` are those of the models whose arrays are new, by default all. The manifest comes last: it says which
    models are measured, and rows of others are left out when it is read.
    """
    if (folder / MANIFEST).exists() and read_content(folder / MANIFEST).get("run_id") != run.manifest.run_id:
        raise RunFolderError(f"{folder} holds another run; choose another folder")
    if run.tables:
        write_data(folder, run, types, places)
        table = types.tables[0]
        write_pieces(folder / RESULTS_TSV, tsv_pieces(table.columns_of(run), table.each_row(run)))
    else:
        make_folder(folder)
    write_manifest(folder, run.manifest)


def write_data(folder: Path, run: RunData, types: Types, places: Iterable[int] | None = None) -> None:
    """Write tables and arrays, those that are read back."""
    make_folder(folder)
    arrays = run.arrays_by_model()
    for place in range(len(run.manifest.models)) if places is None else places:
        save_arrays(folder, place, arrays.get(str(place), {}))
    shapes = {name: array.shape for name, array in run.arrays.items()}
    stored = {name: map(unstructured, run.tables.get(name, ())) for name in types.stored}
    measured = [record.text for record in run.manifest.models if record.measured]
    about = {"format_version": FORMAT_VERSION, "run_id": run.manifest.run_id, "measured": measured}
    write_pieces(folder / RESULTS_JSON, json_pieces({**about, "tables": stored, "arrays": shapes}))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write how a run was made, beside results that are there already."""
    write_atomically(folder / MANIFEST, to_file(manifest))


def make_folder(folder: Path) -> None:
    """The folder of a run, or an error that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(
            f"{folder}: cannot create the folder: {error.strerror}; choose another folder with --out DIR (out=)"
        ) from error


def read_content(path: Path) -> dict[str, Any]:
    """The JSON of a file of a run, as it was written; a format that is newer than this biassay is refused."""
    try:
        content = read_json(path)
    except RunFolderError as error:
        raise RunFolderError(f"{error}; {IF_DAMAGED}") from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise RunFolderError(f"{path}: not a file of a run: it has no format version")
    if version > FORMAT_VERSION:
        raise RunFolderError(
            f"{path}: written by a newer biassay (format version {version}, this one reads up to {FORMAT_VERSION}); "
            "update biassay to read it"
        )
    if check_digest(content) is False:
        raise RunFolderError(
            f"{path}: damaged: not what was written (the digest differs); {IF_DAMAGED}; "
            "if it was changed on purpose, remove its field 'digest'"
        )
    return dict(content)


def read_run(folder: Path, manifest: Mapping[str, Any], types: Types) -> RunData:
    """A run from the parsed content of its manifest and the files beside it."""
    made = _manifest(manifest, types, str(folder / MANIFEST))
    if not (folder / RESULTS_JSON).exists() and made.status == "running":
        return RunData(made)
    content = read_content(folder / RESULTS_JSON)
    where = str(folder / RESULTS_JSON)
    _check_belongs(content, made, where)
    tables = _tables(_part(content, "tables", where), types, where)
    arrays = load_arrays(folder, structured(_part(content, "arrays", where), dict[str, tuple[int, ...]], where))
    return _measured_only(RunData(made, tables, arrays))


def _check_belongs(content: Mapping[str, Any], manifest: Manifest, where: str) -> None:
    """Refuse results of another run, or without a model that the manifest says is measured."""
    measured = [record.text for record in manifest.models if record.measured]
    if content.get("run_id") != manifest.run_id or not set(measured) <= set(content.get("measured", ())):
        raise RunFolderError(
            f"{where}: not what the manifest describes (did two processes write the folder?); run anew"
        )


def run_of(parts: Older, types: Types, where: str) -> RunData:
    """A run from the parsed content of an older folder, brought into the present form."""
    manifest = {**parts.manifest, "format_version": FORMAT_VERSION}
    return RunData(_manifest(manifest, types, where), _tables(parts.tables, types, where), parts.arrays)


def _tables(content: Mapping[str, Any], types: Types, where: str) -> dict[str, tuple[Any, ...]]:
    return {
        name: structured(content.get(name, ()), tuple[record, ...], where)  # type: ignore[valid-type]
        for name, record in types.stored.items()
    }


def _part(content: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    part = content.get(name)
    if not isinstance(part, dict):
        raise RunFolderError(f"{where}: not the results of a run: {name!r} is missing")
    return part


def _manifest(content: Mapping[str, Any], types: Types, where: str) -> Manifest:
    plain = structured({**content, "settings": None, "inputs": None}, Manifest, where)
    own = {
        name: structured(content.get(name), getattr(types, name), f"{where}: {name}") for name in ("settings", "inputs")
    }
    return dataclasses.replace(plain, **own)


def _measured_only(run: RunData) -> RunData:
    """Without rows of a model that was being written when the run was stopped."""
    waiting = [record for record in run.manifest.models if not record.measured]
    if not waiting:
        return run
    is_waiting = place_finder(waiting)
    tables = {name: tuple(row for row in rows if is_waiting(row) is None) for name, rows in run.tables.items()}
    kept = {str(place) for place, record in enumerate(run.manifest.models) if record.measured}
    arrays = {name: array for name, array in run.arrays.items() if name.partition("/")[0] in kept}
    return RunData(run.manifest, tables, arrays)


def as_json(run: RunData, types: Types) -> dict[str, Any]:
    """Manifest and stored tables, for ``--json`` and ``to_json``."""
    stored: Sequence[str] = list(types.stored)
    return {"manifest": unstructured(run.manifest), **{name: unstructured(run.tables.get(name, ())) for name in stored}}
