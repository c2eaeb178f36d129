"""The folder of a run, the same for every study: how it was made, what was found, and the table of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.errors import RunFolderError
from biassay.files import check_digest, json_pieces, read_json, write_atomically, write_pieces
from biassay.results.arrays import IF_DAMAGED, ArrayFile, array_path, load_arrays, pack_arrays, save_arrays
from biassay.results.codec import shown_value, structured, to_file, unstructured
from biassay.results.data import FORMAT_VERSION, Manifest, RunData, place_finder
from biassay.results.tables import TableSpec, tsv_pieces

__all__ = [
    "MANIFEST",
    "RESULTS_JSON",
    "RESULTS_TSV",
    "Check",
    "Fault",
    "Older",
    "Types",
    "as_json",
    "make_folder",
    "read_content",
    "read_models",
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


class Fault(NamedTuple):
    """Something wrong in a stored run: the file, relative to the run's folder, and what is wrong with it."""

    file: str
    text: str


Check = Callable[[RunData], Iterable[Fault]]
"""Find what a study did not write: values out of range, names that are not there, arrays that give other numbers."""


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
    changed = None if places is None else set(places)
    files = {}
    for model_index, arrays in run.arrays_by_model().items():
        is_new = changed is None or int(model_index) in changed
        files[model_index] = save_arrays(folder, model_index, arrays) if is_new else pack_arrays(arrays)
    stored = {name: map(unstructured, run.tables.get(name, ())) for name in types.stored}
    measured = [record.text for record in run.manifest.models if record.measured]
    about = {"format_version": FORMAT_VERSION, "run_id": run.manifest.run_id, "measured": measured}
    write_pieces(folder / RESULTS_JSON, json_pieces({**about, "tables": stored, "arrays": unstructured(files)}))


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


def read_models(folder: Path) -> list[dict[str, Any]]:
    """Return the models in the manifest of a run of any format; values that are not models are left out."""
    models = read_content(folder / MANIFEST).get("models")
    return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []


def read_run(folder: Path, manifest: Mapping[str, Any], types: Types, check: Check) -> RunData:
    """A run from the parsed content of its manifest and the files beside it."""
    made = _manifest(manifest, types, str(folder / MANIFEST))
    if not (folder / RESULTS_JSON).exists() and made.status == "running":
        return _checked(RunData(made), check, folder)
    content = read_content(folder / RESULTS_JSON)
    where = str(folder / RESULTS_JSON)
    _check_belongs(content, made, where)
    tables = _tables(_part(content, "tables", where), types, where)
    arrays = load_arrays(folder, _array_files(_part(content, "arrays", where), made, where))
    return _checked(_measured_only(RunData(made, tables, arrays)), check, folder)


def _array_files(content: Mapping[str, Any], manifest: Manifest, where: str) -> dict[str, ArrayFile]:
    """Descriptions of the array files of the models that are measured; the file of another may be half written."""
    known = {str(model_index): record for model_index, record in enumerate(manifest.models)}
    for name in content:
        if name not in known:
            raise RunFolderError(f"{where}: arrays: {name!r} is not the index of a model in {MANIFEST}; {IF_DAMAGED}")
        if not isinstance(content[name], dict) or "sha256" not in content[name]:
            raise RunFolderError(
                f"{where}: arrays: no digest of {array_path(name)}; make the run again with this version of biassay"
            )
    measured = {name: described for name, described in content.items() if known[name].measured}
    return structured(measured, dict[str, ArrayFile], f"{where}: arrays")


def _checked(run: RunData, check: Check, folder: Path) -> RunData:
    """The run, if it is one that biassay could have written."""
    is_known = place_finder(run.manifest.models)
    for name, rows in run.tables.items():
        for number, row in enumerate(rows):
            if is_known(row) is None:
                who, where = " ".join(filter(None, (row.model, row.options))), f"tables.{name}[{number}].model"
                raise RunFolderError(
                    f"{folder / RESULTS_JSON}: {where}: {shown_value(who)} is not a model of {MANIFEST}; {IF_DAMAGED}"
                )
    for fault in check(run):
        raise RunFolderError(f"{folder / fault.file}: {fault.text}; {IF_DAMAGED}")
    return run


def _check_belongs(content: Mapping[str, Any], manifest: Manifest, where: str) -> None:
    """Refuse results of another run, or without a model that the manifest says is measured."""
    measured = [record.text for record in manifest.models if record.measured]
    written = structured(content.get("measured", ()), tuple[str, ...], f"{where}: measured")
    if content.get("run_id") != manifest.run_id or not set(measured) <= set(written):
        raise RunFolderError(
            f"{where}: not what the manifest describes (did two processes write the folder?); run anew"
        )


def run_of(parts: Older, types: Types, folder: Path, check: Check) -> RunData:
    """A run from the parsed content of an older folder, brought into the present form."""
    manifest, where = {**parts.manifest, "format_version": FORMAT_VERSION}, str(folder)
    run = RunData(_manifest(manifest, types, where), _tables(parts.tables, types, where), parts.arrays)
    return _checked(run, check, folder)


def _tables(content: Mapping[str, Any], types: Types, where: str) -> dict[str, tuple[Any, ...]]:
    return {
        name: structured(content.get(name, ()), tuple[record, ...], f"{where}: tables.{name}")  # type: ignore[valid-type]
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
