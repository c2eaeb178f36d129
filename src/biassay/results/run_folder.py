"""Write, read and check run folders: records as JSON, tables and arrays."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import os
import reprlib
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from biassay.cache.files import make_npy_header
from biassay.errors import RunFolderError
from biassay.io import (
    atomic_writer,
    check_digest,
    dump_json_with_digest,
    iter_json_chunks,
    open_file,
    read_json,
    write_atomically,
    write_chunks,
)
from biassay.results.run_data import FORMAT_VERSION, Manifest, RunData, group_rows_by_model, make_model_index_finder
from biassay.results.tables import TableSpec, iter_tsv

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

_T = TypeVar("_T")
_MAX_INT = 2**63 - 1
_MAX_FLOAT = 1e150  # squares of larger numbers overflow
_MAX_FAULTS = 3  # faults that an error lists
DAMAGE_HINT = "copy the whole folder of the run again, or make the run again"
"""Advice for missing or damaged files of a run."""
_SHORT_REPR = reprlib.Repr()
_SPECIAL_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@cache
def _make_converter() -> JsonConverter:
    from cattrs.preconf.json import make_converter  # imported only when a run is read

    converter = make_converter()
    converter.register_structure_hook(float, lambda value, _: _load_float(value))
    converter.register_structure_hook(int, lambda value, _: _load_int(value))
    converter.register_structure_hook(bool, lambda value, _: _load_bool(value))
    converter.register_structure_hook(str, lambda value, _: _load_text(value))
    converter.register_structure_hook(str | dict[str, Any], lambda value, _: _load_text_or_dict(value))
    converter.register_structure_hook(float | None, lambda value, _: None if value is None else _load_float(value))
    converter.register_structure_hook_func(lambda kind: _get_origin(kind) is Literal, _load_literal)
    converter.register_structure_hook_func(lambda kind: _get_origin(kind) is tuple, _load_tuple)
    converter.register_structure_hook_factory(
        lambda kind: _get_origin(kind) is dict, lambda kind: _make_dict_loader(converter, kind)
    )
    return converter


def _get_origin(kind: Any) -> Any:
    return get_origin(kind)


def _dump_float(value: float) -> float | str:
    """Convert NaN and infinities, which JSON cannot express, to strings."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _load_float(value: Any) -> float:
    if isinstance(value, str) and value in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MAX_FLOAT:
        raise ValueError(f"expected a number within ±{_MAX_FLOAT:g}, got {format_stored_value(value)}")
    return float(value)


def _load_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_INT:
        raise ValueError(f"expected a whole number below 2^63, got {format_stored_value(value)}")
    return value


def _load_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {format_stored_value(value)}")
    return value


def _load_text(value: Any) -> str:
    """Check that a text can be written as UTF-8, which half of a surrogate pair cannot."""
    if not isinstance(value, str) or not (value.isascii() or value.isprintable() or _is_utf8(value)):
        raise ValueError(f"expected a text, got {format_stored_value(value)}")
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _load_text_or_dict(value: Any) -> Any:
    if not isinstance(value, dict):
        return _load_text(value)
    if not _is_utf8(json.dumps(value, ensure_ascii=False)):
        raise ValueError("expected a dict of texts that can be written as UTF-8")
    return value


def _load_literal(value: Any, kind: Any) -> str:
    if not isinstance(value, str) or value not in get_args(kind):
        raise ValueError(f"expected {' or '.join(map(repr, get_args(kind)))}, got {format_stored_value(value)}")
    return value


def _load_tuple(value: Any, kind: Any) -> tuple[Any, ...]:
    parts = get_args(kind)
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list, got {format_stored_value(value)}")
    if parts[-1] is ...:
        return tuple(_make_converter().structure(value, list[parts[0]]))  # type: ignore[valid-type]
    if len(value) != len(parts):
        raise ValueError(f"expected {len(parts)} values, got {len(value)}")
    return tuple(_make_converter().structure(one, part) for one, part in zip(value, parts, strict=True))


def _make_dict_loader(converter: JsonConverter, kind: Any) -> Callable[[Any, Any], Any]:
    from cattrs.gen import make_mapping_structure_fn

    structure = make_mapping_structure_fn(kind, converter)

    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"expected names and values, got {format_stored_value(value)}")
        return structure(value, kind)

    return read


def format_stored_value(value: Any) -> str:
    """Return a value as an error shows it, shortened."""
    return _SHORT_REPR.repr(value)


def unstructure_record(record: Any) -> Any:
    """Return a record as plain data that JSON can hold."""
    if isinstance(record, float):
        return _dump_float(record)
    if record is None or isinstance(record, str | int):
        return record
    if isinstance(record, Mapping):
        return {key: unstructure_record(value) for key, value in record.items()}
    if isinstance(record, list | tuple | Set):
        return [unstructure_record(value) for value in record]
    if is_dataclass(record):
        return {field.name: unstructure_record(getattr(record, field.name)) for field in fields(record)}
    return record


def to_json(record: Any) -> str:
    """Return a record as JSON."""
    return json.dumps(unstructure_record(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_json_bytes(record: Any) -> bytes:
    """Return a record as JSON with a digest, so that damage is detected."""
    return dump_json_with_digest(unstructure_record(record)).encode()


def structure_record(content: object, kind: type[_T], where: str) -> _T:
    """Read a record from parsed JSON.

    Parameters
    ----------
    content : object
        Parsed JSON.
    kind : type
        The type to read.
    where : str
        The file, and the part of it that `content` is; every error begins with it.

    Raises
    ------
    RunFolderError
        Names the file, the field, and the error in its value.
    """
    from cattrs import transform_error
    from cattrs.errors import BaseValidationError

    try:
        return _make_converter().structure(content, kind)
    except (
        BaseValidationError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        if not isinstance(error, BaseValidationError):
            raise RunFolderError(
                f"{where}: not a record of biassay: {_format_fault(error, None)}; {DAMAGE_HINT}"
            ) from error
        told = [line.rpartition(" @ ") for line in transform_error(error, path="", format_exception=_format_fault)]
        faults = [f"{field.removeprefix('.')}: {fault}" if field else fault for fault, _, field in told]
        more = f"; and {len(faults) - _MAX_FAULTS} more" if len(faults) > _MAX_FAULTS else ""
        listed = f"{'; '.join(faults[:_MAX_FAULTS])}{more}"
        raise RunFolderError(f"{where}: not a record of biassay: {listed}; {DAMAGE_HINT}") from error


def _format_fault(error: BaseException, _: type | None) -> str:
    if isinstance(error, KeyError):
        return "missing"
    if isinstance(error, RecursionError):
        return "brackets are nested too deeply"
    return str(error) if isinstance(error, ValueError) else f"not as expected ({type(error).__name__})"


ARRAYS_FOLDER = "arrays"
_Array = NDArray[np.float64]
_MAX_OVERHEAD = (
    1_024  # bytes per array, beyond its values and twice its name: the header and two entries of the archive
)
_MAX_LENGTH = 2**40  # length of an array along any dimension
# What zipfile raises when an archive was altered, the last two for a method of compression that there is not and for a
# flag that says it is encrypted. All of them become one error that names the file.
DAMAGE_ERRORS = (zipfile.BadZipFile, ValueError, KeyError, OSError, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class ArrayFile:
    """Description of the array file of one model in results.json.

    Attributes
    ----------
    sha256 : str
        Digest of the file.
    shapes : dict
        The shape of every array, by name.
    """

    sha256: str
    shapes: dict[str, tuple[int, ...]]


def array_path(model_index: str) -> str:
    """Return the path of the arrays of a model, relative to the folder of the run."""
    return f"{ARRAYS_FOLDER}/{model_index}.npz"


def save_arrays(folder: Path, model_index: str, arrays: Mapping[str, _Array]) -> ArrayFile:
    """Write the array file of one model.

    Parameters
    ----------
    folder : Path
        Run folder.
    model_index : str
        Index of the model in the manifest.
    arrays : dict of str to array
        Arrays of the model by name.

    Returns
    -------
    ArrayFile
        Description of the file for the results.
    """
    path = folder / array_path(model_index)
    path.parent.mkdir(exist_ok=True)
    with atomic_writer(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            values = np.ascontiguousarray(array, "<f4" if array.dtype == np.float32 else "<f8")
            info = zipfile.ZipInfo(f"{name}.npy")  # without a date: equal arrays give equal bytes
            info.file_size = values.nbytes + _MAX_OVERHEAD  # decides before the first byte whether sizes need 64 bits
            with archive.open(info, "w") as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return _describe_arrays(path, arrays)


def _describe_arrays(path: Path, arrays: Mapping[str, _Array]) -> ArrayFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ArrayFile(digest, {name: array.shape for name, array in arrays.items()})


def load_arrays(folder: Path, files: Mapping[str, ArrayFile]) -> dict[str, _Array]:
    """Read the arrays of every model, checked against their digests and shapes.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    files : mapping
        Descriptions of the array files, by the index of the model.

    Returns
    -------
    dict
        Arrays by "INDEX/NAME".

    Raises
    ------
    RunFolderError
        If a file is missing, or is not the one that the run wrote.
    """
    arrays: dict[str, _Array] = {}
    for model_index, described in files.items():
        path = folder / array_path(model_index)
        try:
            own = _unpack(_read_checked(path, described), described.shapes)
        except FileNotFoundError as error:
            raise RunFolderError(f"{path}: the file is missing; {DAMAGE_HINT}") from error
        except DAMAGE_ERRORS as error:
            raise RunFolderError(f"{path}: not the arrays of this run: {error}; {DAMAGE_HINT}") from error
        arrays |= {f"{model_index}/{name}": array for name, array in own.items()}
    return arrays


def _read_checked(path: Path, described: ArrayFile) -> bytes:
    """Read a file and check its digest. A file larger than arrays of these shapes is not read."""
    if any(not 0 <= length <= _MAX_LENGTH for shape in described.shapes.values() for length in shape):
        raise ValueError("a shape in results.json is negative or too large")
    most = 22 + sum(
        8 * math.prod(shape) + 2 * len(name.encode(errors="surrogatepass")) + _MAX_OVERHEAD
        for name, shape in described.shapes.items()
    )
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise ValueError(f"the file has {size:,} bytes, and arrays of these shapes take at most {most:,}")
        content = file.read(size + 1)
    if hashlib.sha256(content).hexdigest() != described.sha256:
        raise ValueError("the digest of the file differs from the one in results.json")
    return content


def _unpack(content: bytes, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, _Array]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(archive.getinfo(f"{name}.npy").file_size for name in shapes) > len(content):
            raise ValueError("its arrays overlap")
        return {name: _read_array(archive, name, shape) for name, shape in shapes.items()}


def _read_array(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> _Array:
    """Read an array of the archive. Allocate memory for the bytes that exist, whatever size they declare."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is compressed; biassay writes it as it is")
    content = archive.read(info)
    for dtype in ("<f8", "<f4"):
        header = make_npy_header(shape, dtype)
        if content.startswith(header) and len(content) == len(header) + int(dtype[2]) * math.prod(shape):
            return np.frombuffer(content, dtype, offset=len(header)).reshape(shape).copy()
    raise ValueError(f"{info.filename} is not an array {shape} in the form that biassay writes")


MANIFEST_JSON, RESULTS_JSON, RESULTS_TSV = "manifest.json", "results.json", "results.tsv"


@dataclass(frozen=True)
class StudySchema:
    """Types of the settings, inputs and tables of a study; results.tsv is the first table."""

    settings: type
    inputs: type
    tables: tuple[TableSpec, ...]

    @property
    def stored(self) -> dict[str, type]:
        """Types of the stored tables, by name."""
        return {table.name: table.record for table in self.tables if table.record is not None}


class Fault(NamedTuple):
    """A fault of a stored run: the file, relative to the run's folder, and a description."""

    file: str
    text: str


RunCheck = Callable[[RunData], Iterable[Fault]]
"""Find values that the study cannot have written: out of range, unknown names, or arrays that give other numbers."""


def write_run(folder: Path, run: RunData, schema: StudySchema, model_indices: Iterable[int] | None = None) -> None:
    """Write a new run, or update an earlier state of the same run.

    Each file is written whole or not at all. The manifest is written last; it names the measured models, and `read_run`
    drops the rows of others.

    Parameters
    ----------
    folder : Path
        Run folder.
    run : RunData
        Run to write.
    schema : StudySchema
        Tables of the study.
    model_indices : iterable of int, optional
        Indices of the models whose arrays changed. By default all.
    """
    if (folder / MANIFEST_JSON).exists() and read_run_json(folder / MANIFEST_JSON).get("run_id") != run.manifest.run_id:
        raise RunFolderError(f"{folder} holds another run; choose another folder")
    if run.tables:
        write_results(folder, run, schema, model_indices)
        table = schema.tables[0]
        write_chunks(folder / RESULTS_TSV, iter_tsv(table.get_columns(run), table.iter_rows(run)))
    else:
        make_run_folder(folder)
    write_manifest(folder, run.manifest)


def write_results(folder: Path, run: RunData, schema: StudySchema, model_indices: Iterable[int] | None = None) -> None:
    """Write the tables and arrays that `read_run` reads back.

    Parameters
    ----------
    folder : Path
        Run folder.
    run : RunData
        Run to write.
    schema : StudySchema
        Tables of the study.
    model_indices : iterable of int, optional
        Indices of the models whose arrays changed. By default all.
    """
    make_run_folder(folder)
    changed = None if model_indices is None else set(model_indices)
    files = {}
    for model_index, arrays in run.arrays_by_model().items():
        path = folder / array_path(model_index)
        is_new = changed is None or int(model_index) in changed or not path.exists()
        files[model_index] = save_arrays(folder, model_index, arrays) if is_new else _describe_arrays(path, arrays)
    stored = {name: map(unstructure_record, run.tables.get(name, ())) for name in schema.stored}
    measured = [record.text for record in run.manifest.models if record.measured]
    about = {"format_version": FORMAT_VERSION, "run_id": run.manifest.run_id, "measured": measured}
    write_chunks(
        folder / RESULTS_JSON, iter_json_chunks({**about, "tables": stored, "arrays": unstructure_record(files)})
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write only the manifest; results remain."""
    write_atomically(folder / MANIFEST_JSON, to_json_bytes(manifest))


def make_run_folder(folder: Path) -> None:
    """Return the folder of a run, or raise an error that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(
            f"{folder}: cannot create the folder: {error.strerror}; choose another folder with --out DIR (out=)"
        ) from error


def read_run_json(path: Path) -> dict[str, Any]:
    """Read the JSON of a file of a run; raise an error if its format is newer than this biassay."""
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
            f"{path}: damaged: the digest differs; {DAMAGE_HINT}; "
            "if it was changed on purpose, remove its field 'digest'"
        )
    return dict(content)


def read_models(folder: Path) -> list[dict[str, Any]]:
    """Return the models in the manifest of a run; values that are not models are left out."""
    models = read_run_json(folder / MANIFEST_JSON).get("models")
    return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []


def read_run(folder: Path, manifest: Mapping[str, Any], schema: StudySchema, check: RunCheck) -> RunData:
    """Read a run from its parsed manifest and the files beside it.

    Parameters
    ----------
    folder : Path
        Run folder.
    manifest : dict
        Content of the manifest file.
    schema : StudySchema
        Tables of the study.
    check : RunCheck
        Function that yields the faults of a run. Any fault raises an error.

    Returns
    -------
    RunData
    """
    made = _load_manifest(manifest, schema, str(folder / MANIFEST_JSON))
    if not (folder / RESULTS_JSON).exists() and made.status == "running":
        return _check_run(RunData(made), check, folder)
    content = read_run_json(folder / RESULTS_JSON)
    where = str(folder / RESULTS_JSON)
    _check_belongs(content, made, where)
    tables = _load_tables(_get_part(content, "tables", where), schema, where)
    arrays = load_arrays(folder, _load_array_files(_get_part(content, "arrays", where), made, where))
    return _check_run(drop_unmeasured(RunData(made, tables, arrays)), check, folder)


def _load_array_files(content: Mapping[str, Any], manifest: Manifest, where: str) -> dict[str, ArrayFile]:
    """Return the descriptions of the array files of measured models; other files may be incomplete."""
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
    """Return the run if biassay could have written it; otherwise raise an error."""
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
    """Raise an error for results of another run, or without a model that is measured according to the manifest."""
    measured = [record.text for record in manifest.models if record.measured]
    written = structure_record(content.get("measured", ()), tuple[str, ...], f"{where}: measured")
    if content.get("run_id") != manifest.run_id or not set(measured) <= set(written):
        raise RunFolderError(f"{where}: differs from the manifest (did two processes write the folder?); run again")


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


def drop_unmeasured(run: RunData) -> RunData:
    """Drop the rows of a model that was being written when the run stopped."""
    waiting = [record for record in run.manifest.models if not record.measured]
    if not waiting:
        return run
    is_waiting = make_model_index_finder(waiting)
    tables = {name: tuple(row for row in rows if is_waiting(row) is None) for name, rows in run.tables.items()}
    kept = {str(index) for index, record in enumerate(run.manifest.models) if record.measured}
    arrays = {name: array for name, array in run.arrays.items() if name.partition("/")[0] in kept}
    return RunData(run.manifest, tables, arrays)


def to_json_data(run: RunData, schema: StudySchema) -> dict[str, Any]:
    """Return the manifest and the stored tables for ``--json`` and ``to_json``.

    A result holds its record and, by their names, the columns of its table, which include the decision of the run.
    """
    tables = {table.name: _to_json_rows(run, table) for table in schema.tables if table.record is not None}
    return {"manifest": unstructure_record(run.manifest), **tables}


def _to_json_rows(run: RunData, table: TableSpec) -> list[Any]:
    columns = table.get_columns(run)
    return [
        unstructure_record(row.record) | {column.name: unstructure_record(column.value(row)) for column in columns}
        if hasattr(row, "decision")
        else unstructure_record(row)
        for row in table.iter_rows(run)
    ]


def make_row_fault(table: str, number: int, field: str, text: str) -> Fault:
    """Return a fault of one field of a row.

    Parameters
    ----------
    table, field : str
        Names of the table and the field.
    number : int
        Index of the row in the table.
    text : str
        Description of the fault.

    Returns
    -------
    Fault
    """
    return Fault(RESULTS_JSON, f"tables.{table}[{number}].{field}: {text}")


def find_unknown(run: RunData, table: str, field: str, known: Collection[str]) -> Iterator[Fault]:
    """Yield values of a field that are not among the known names.

    Parameters
    ----------
    run : RunData
        Run to check.
    table, field : str
        Names of the table and the field. The field holds a string, a list of strings or a dict with such keys.
    known : collection of str
        Names that may occur.

    Yields
    ------
    Fault
    """
    for number, row in enumerate(run.tables.get(table, ())):
        value = getattr(row, field)
        for name in (value,) if isinstance(value, str) else value or ():
            if name not in known:
                yield make_row_fault(table, number, field, f"unknown name {format_stored_value(name)}")


def find_orphans(run: RunData, tables: Sequence[str], parent: str, fields: Sequence[str]) -> Iterator[Fault]:
    """Yield rows of tables whose model has no row with the same fields in a parent table.

    Parameters
    ----------
    run : RunData
        Run to check.
    tables : sequence of str
        Names of the tables to check.
    parent : str
        Name of the parent table.
    fields : sequence of str
        Fields that identify a row of the parent table, together with the model.

    Yields
    ------
    Fault
    """
    known = {_make_row_key(row, fields) for row in run.tables.get(parent, ())}
    for table in tables:
        for number, row in enumerate(run.tables.get(table, ())):
            if _make_row_key(row, fields) not in known:
                values = ", ".join(f"{field} {format_stored_value(getattr(row, field))}" for field in fields)
                yield make_row_fault(
                    table, number, fields[-1], f"{values} is not in the table {parent!r} for this model"
                )


def find_models_without(run: RunData, table: str) -> Iterator[Fault]:
    """Yield measured models without a row in a table that needs a row of every model."""
    rows = group_rows_by_model(run.manifest.models, run.tables.get(table, ()))
    for index, (record, own) in enumerate(zip(run.manifest.models, rows, strict=True)):
        if record.measured and record.skipped is None and not own:
            yield Fault(
                RESULTS_JSON,
                f"tables.{table}: no row of the model {format_stored_value(record.name)} (models[{index}])",
            )


def _make_row_key(row: Any, fields: Sequence[str]) -> tuple[Any, ...]:
    return row.model, row.options, *(getattr(row, field) for field in fields)
