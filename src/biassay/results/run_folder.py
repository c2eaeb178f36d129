"""Write, read and check run folders."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from biassay.errors import RunFolderError
from biassay.io import check_digest, iter_json_chunks, read_json, write_atomically, write_chunks
from biassay.results.arrays import DAMAGE_HINT, ArrayFile, array_path, load_arrays, pack_arrays, save_arrays
from biassay.results.codec import format_stored_value, structure_record, to_json_bytes, unstructure_record
from biassay.results.run_data import FORMAT_VERSION, Manifest, RunData, group_rows_by_model, make_model_index_finder
from biassay.results.tables import TableSpec, iter_tsv

__all__ = [
    "MANIFEST_JSON",
    "RESULTS_JSON",
    "RESULTS_TSV",
    "Fault",
    "RunCheck",
    "StudySchema",
    "find_models_without",
    "find_orphans",
    "find_unknown",
    "make_row_fault",
    "make_run_folder",
    "read_models",
    "read_run",
    "read_run_json",
    "to_json_data",
    "write_manifest",
    "write_results",
    "write_run",
]


MANIFEST_JSON, RESULTS_JSON, RESULTS_TSV = "manifest.json", "results.json", "results.tsv"


@dataclass(frozen=True)
class StudySchema:
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


RunCheck = Callable[[RunData], Iterable[Fault]]
"""Find what a study did not write: values out of range, names that are not there, arrays that give other numbers."""


def write_run(folder: Path, run: RunData, schema: StudySchema, places: Iterable[int] | None = None) -> None:
    """Write a run, each file whole or not at all; an earlier state of the same run is brought up to date.

    ``places`` are those of the models whose arrays are new, by default all. The manifest comes last: it says which
    models are measured, and rows of others are left out when it is read.
    """
    if (folder / MANIFEST_JSON).exists() and read_run_json(folder / MANIFEST_JSON).get("run_id") != run.manifest.run_id:
        raise RunFolderError(f"{folder} holds another run; choose another folder")
    if run.tables:
        write_results(folder, run, schema, places)
        table = schema.tables[0]
        write_chunks(folder / RESULTS_TSV, iter_tsv(table.columns_of(run), table.each_row(run)))
    else:
        make_run_folder(folder)
    write_manifest(folder, run.manifest)


def write_results(folder: Path, run: RunData, schema: StudySchema, places: Iterable[int] | None = None) -> None:
    """Write tables and arrays, those that are read back."""
    make_run_folder(folder)
    changed = None if places is None else set(places)
    files = {}
    for model_index, arrays in run.arrays_by_model().items():
        is_new = changed is None or int(model_index) in changed
        files[model_index] = save_arrays(folder, model_index, arrays) if is_new else pack_arrays(arrays)
    stored = {name: map(unstructure_record, run.tables.get(name, ())) for name in schema.stored}
    measured = [record.text for record in run.manifest.models if record.measured]
    about = {"format_version": FORMAT_VERSION, "run_id": run.manifest.run_id, "measured": measured}
    write_chunks(
        folder / RESULTS_JSON, iter_json_chunks({**about, "tables": stored, "arrays": unstructure_record(files)})
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write how a run was made, beside results that are there already."""
    write_atomically(folder / MANIFEST_JSON, to_json_bytes(manifest))


def make_run_folder(folder: Path) -> None:
    """The folder of a run, or an error that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(
            f"{folder}: cannot create the folder: {error.strerror}; choose another folder with --out DIR (out=)"
        ) from error


def read_run_json(path: Path) -> dict[str, Any]:
    """The JSON of a file of a run, as it was written; a format that is newer than this biassay is refused."""
    try:
        content = read_json(path)
    except RunFolderError as error:
        raise RunFolderError(f"{error}; {DAMAGE_HINT}") from error
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
            f"{path}: damaged: not what was written (the digest differs); {DAMAGE_HINT}; "
            "if it was changed on purpose, remove its field 'digest'"
        )
    return dict(content)


def read_models(folder: Path) -> list[dict[str, Any]]:
    """Return the models in the manifest of a run; values that are not models are left out."""
    models = read_run_json(folder / MANIFEST_JSON).get("models")
    return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []


def read_run(folder: Path, manifest: Mapping[str, Any], schema: StudySchema, check: RunCheck) -> RunData:
    """A run from the parsed content of its manifest and the files beside it."""
    made = _load_manifest(manifest, schema, str(folder / MANIFEST_JSON))
    if not (folder / RESULTS_JSON).exists() and made.status == "running":
        return _check_run(RunData(made), check, folder)
    content = read_run_json(folder / RESULTS_JSON)
    where = str(folder / RESULTS_JSON)
    _check_belongs(content, made, where)
    tables = _load_tables(_get_part(content, "tables", where), schema, where)
    arrays = load_arrays(folder, _load_array_files(_get_part(content, "arrays", where), made, where))
    return _check_run(_drop_unmeasured(RunData(made, tables, arrays)), check, folder)


def _load_array_files(content: Mapping[str, Any], manifest: Manifest, where: str) -> dict[str, ArrayFile]:
    """Descriptions of the array files of the models that are measured; the file of another may be half written."""
    known = {str(model_index): record for model_index, record in enumerate(manifest.models)}
    for name in content:
        if name not in known:
            raise RunFolderError(
                f"{where}: arrays: {name!r} is not the index of a model in {MANIFEST_JSON}; {DAMAGE_HINT}"
            )
        if not isinstance(content[name], dict) or "sha256" not in content[name]:
            raise RunFolderError(
                f"{where}: arrays: no digest of {array_path(name)}; make the run again with this version of biassay"
            )
    measured = {name: described for name, described in content.items() if known[name].measured}
    return structure_record(measured, dict[str, ArrayFile], f"{where}: arrays")


def _check_run(run: RunData, check: RunCheck, folder: Path) -> RunData:
    """The run, if it is one that biassay could have written."""
    is_known = make_model_index_finder(run.manifest.models)
    for name, rows in run.tables.items():
        for number, row in enumerate(rows):
            if is_known(row) is None:
                who, where = " ".join(filter(None, (row.model, row.options))), f"tables.{name}[{number}].model"
                raise RunFolderError(
                    f"{folder / RESULTS_JSON}: {where}: {format_stored_value(who)} is not a model "
                    f"of {MANIFEST_JSON}; {DAMAGE_HINT}"
                )
    for fault in check(run):
        raise RunFolderError(f"{folder / fault.file}: {fault.text}; {DAMAGE_HINT}")
    return run


def _check_belongs(content: Mapping[str, Any], manifest: Manifest, where: str) -> None:
    """Refuse results of another run, or without a model that the manifest says is measured."""
    measured = [record.text for record in manifest.models if record.measured]
    written = structure_record(content.get("measured", ()), tuple[str, ...], f"{where}: measured")
    if content.get("run_id") != manifest.run_id or not set(measured) <= set(written):
        raise RunFolderError(
            f"{where}: not what the manifest describes (did two processes write the folder?); run anew"
        )


def _load_tables(content: Mapping[str, Any], schema: StudySchema, where: str) -> dict[str, tuple[Any, ...]]:
    return {
        name: structure_record(content.get(name, ()), tuple[record, ...], f"{where}: tables.{name}")  # type: ignore[valid-type]
        for name, record in schema.stored.items()
    }


def _get_part(content: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    part = content.get(name)
    if not isinstance(part, dict):
        raise RunFolderError(f"{where}: not the results of a run: {name!r} is missing")
    return part


def _load_manifest(content: Mapping[str, Any], schema: StudySchema, where: str) -> Manifest:
    plain = structure_record({**content, "settings": None, "inputs": None}, Manifest, where)
    own = {
        name: structure_record(content.get(name), getattr(schema, name), f"{where}: {name}")
        for name in ("settings", "inputs")
    }
    return dataclasses.replace(plain, **own)


def _drop_unmeasured(run: RunData) -> RunData:
    """Without rows of a model that was being written when the run was stopped."""
    waiting = [record for record in run.manifest.models if not record.measured]
    if not waiting:
        return run
    is_waiting = make_model_index_finder(waiting)
    tables = {name: tuple(row for row in rows if is_waiting(row) is None) for name, rows in run.tables.items()}
    kept = {str(place) for place, record in enumerate(run.manifest.models) if record.measured}
    arrays = {name: array for name, array in run.arrays.items() if name.partition("/")[0] in kept}
    return RunData(run.manifest, tables, arrays)


def to_json_data(run: RunData, schema: StudySchema) -> dict[str, Any]:
    """Return the manifest and the stored tables for ``--json`` and ``to_json``.

    A result holds its record and, by their names, the columns of its table, which include the decision of the run.
    """
    tables = {table.name: _to_json_rows(run, table) for table in schema.tables if table.record is not None}
    return {"manifest": unstructure_record(run.manifest), **tables}


def _to_json_rows(run: RunData, table: TableSpec) -> list[Any]:
    if table.rows is None:
        return [unstructure_record(row) for row in run.tables.get(table.name, ())]
    columns = table.columns_of(run)
    return [
        unstructure_record(row.record) | {column.name: unstructure_record(column.value(row)) for column in columns}
        for row in table.each_row(run)
    ]


def make_row_fault(table: str, number: int, field: str, text: str) -> Fault:
    """Return a fault of one field of a row."""
    return Fault(RESULTS_JSON, f"tables.{table}[{number}].{field}: {text}")


def find_unknown(run: RunData, table: str, field: str, known: Collection[str]) -> Iterator[Fault]:
    """Yield values of a field, or of a list or the keys of a dict in it, that are not among the known names."""
    for number, row in enumerate(run.tables.get(table, ())):
        value = getattr(row, field)
        for name in (value,) if isinstance(value, str) else value or ():
            if name not in known:
                yield make_row_fault(table, number, field, f"unknown name {format_stored_value(name)}")


def find_orphans(run: RunData, tables: Sequence[str], parent: str, fields: Sequence[str]) -> Iterator[Fault]:
    """Yield rows of tables whose model has no row with the same fields in a parent table."""
    known = {_make_row_key(row, fields) for row in run.tables.get(parent, ())}
    for table in tables:
        for number, row in enumerate(run.tables.get(table, ())):
            if _make_row_key(row, fields) not in known:
                values = ", ".join(f"{field} {format_stored_value(getattr(row, field))}" for field in fields)
                yield make_row_fault(
                    table, number, fields[-1], f"{values} is not in the table {parent!r} for this model"
                )


def find_models_without(run: RunData, table: str) -> Iterator[Fault]:
    """Yield measured models that have no row in a table which every model has a row in."""
    rows = group_rows_by_model(run.manifest.models, run.tables.get(table, ()))
    for index, (record, own) in enumerate(zip(run.manifest.models, rows, strict=True)):
        if record.measured and record.refused is None and not own:
            yield Fault(
                RESULTS_JSON,
                f"tables.{table}: no row of the model {format_stored_value(record.name)} (models[{index}])",
            )


def _make_row_key(row: Any, fields: Sequence[str]) -> tuple[Any, ...]:
    return row.model, row.options, *(getattr(row, field) for field in fields)
