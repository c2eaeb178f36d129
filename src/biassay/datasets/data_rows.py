"""Read the rows of JSON, CSV and Parquet files, and check their values."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

from biassay.datasets.fields import describe_type
from biassay.decompression import UnpackLimit
from biassay.errors import MissingExtraError, StimulusError, find_nearest_names
from biassay.io import open_file

Item = TypeVar("Item")

FILE_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
"""Suffixes of readable files. All but Parquet may be followed by .gz."""

_ROWS_PER_BATCH = 1000


@dataclass(frozen=True)
class DataRow:
    """One row of a file.

    Attributes
    ----------
    path : Path
        File of the row.
    location : str
        Line or number of the row in the file.
    values : mapping
        Values by field.
    hint : str
        End of every error message: what to do.
    """

    path: Path
    location: str
    values: Mapping[str, Any]
    hint: str = ""

    def fail(self, field: str, problem: str) -> NoReturn:
        """Raise StimulusError with the file, the location and the field."""
        where = f": field {field}" if field else ""
        raise StimulusError(f"{self.path}: {self.location}{where}: {problem}{f'; {self.hint}' if self.hint else ''}")

    def value(self, field: str) -> Any:
        """Return a required value; dots in `field` separate the keys of nested objects."""
        value: Any = self.values
        for key in field.split("."):
            if not isinstance(value, Mapping) or value.get(key) is None:
                fields = ", ".join(map(str, self.values))
                self.fail(field, f"the field is missing; found {fields[:200]}")
            value = value[key]
        return value

    def require_columns(self, *columns: str) -> None:
        """Raise StimulusError with a suggestion if the row lacks a column."""
        for column in columns:
            if column not in self.values:
                names = list(map(str, self.values))
                if len(names) == 1 and (separator := next((mark for mark in ";\t|" if mark in names[0]), "")):
                    self.fail("", f"the columns are separated by {separator!r}; separate them by commas")
                similar = find_nearest_names(column, names)
                hint = f"rename {similar[0]!r}" if similar else f"found {', '.join(map(str, self.values))[:200]}"
                self.fail("", f"the column {column!r} is missing; {hint}")

    def has(self, field: str) -> bool:
        """Return whether the row has a value."""
        return self.values.get(field) is not None

    def text(self, field: str) -> str:
        """Return a text that is not empty."""
        value = self.value(field)
        if not isinstance(value, str) or not value.strip():
            self.fail(field, f"expected a text that is not empty, got {describe_type(value)}")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self.value(field)
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(v, str) for v in value):
            self.fail(field, f"expected a list of texts, got {describe_type(value)}")
        return tuple(value)

    def whole_number(self, field: str, most: int | None = None) -> int:
        """Return a whole number from 0 to `most`, which may be written as a text."""
        value = self.value(field)
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (most is not None and value > most):
            limits = "from 0" if most is None else f"from 0 to {most}"
            self.fail(field, f"expected a whole number {limits}, got {describe_type(value)}")
        return value

    def choice(self, field: str, allowed: Sequence[str]) -> str:
        """Return one of the allowed names, which may be given as its index, as in files of the Hub."""
        value = self.value(field)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(allowed):
            return allowed[value]
        if value not in allowed:
            self.fail(field, f"expected one of {', '.join(allowed)}, got {describe_type(value)}")
        return allowed[allowed.index(value)]  # all rows share one string object


def read_rows(path: Path, hint: str = "") -> Iterator[DataRow]:
    """Yield the rows of a file in the format of its suffix. Error messages end with `hint`."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    readers = {
        ".jsonl": _read_json_lines,
        ".json": _read_json_rows,
        ".csv": _read_table,
        ".tsv": _read_table,
        ".parquet": _read_parquet,
    }
    if suffix not in readers:
        raise StimulusError(f"{path}: unknown kind of file {suffix!r}; expected one of {', '.join(FILE_SUFFIXES)}")
    for location, values in readers[suffix](path):
        row = DataRow(path, location, values if isinstance(values, Mapping) else {}, hint)
        if not isinstance(values, Mapping):
            row.fail("", f"expected an object of fields, got {describe_type(values)}")
        yield row


def read_unique_rows(
    rows: Iterable[DataRow], parse: Callable[[DataRow], Item], get_id: Callable[[Item], object], id_field: str
) -> list[Item]:
    """Parse rows to items. Raise StimulusError if two rows have the same id.

    Parameters
    ----------
    rows : iterable of DataRow
        Rows to parse.
    parse : callable
        Function from a row to an item.
    get_id : callable
        Function from an item to its id.
    id_field : str
        Field that an error message names.
    """
    first_rows: dict[object, DataRow] = {}
    items = []
    for row in rows:
        item = parse(row)
        first = first_rows.setdefault(get_id(item), row)
        if first is not row:
            row.fail(id_field, f"{get_id(item)} is also in {first.path}, {first.location}")
        items.append(item)
    return items


@contextmanager
def _open_text(path: Path, newline: str) -> Iterator[TextIO]:
    """Open a text file for streaming; `newline` is that of `open`."""
    try:
        with ExitStack() as stack:
            file: Any = stack.enter_context(open_file(path))
            if path.suffix == ".gz":
                file = UnpackLimit(path).wrap(stack.enter_context(gzip.GzipFile(fileobj=file)))
            yield stack.enter_context(io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline))
    except (OSError, EOFError, zlib.error) as error:
        raise StimulusError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        context = error.object[max(error.start - 20, 0) : error.end]
        raise StimulusError(f"{path}: not UTF-8 text, at {context!r}") from error


def _parse_json_text(path: Path, text: str, line: int = 1) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise StimulusError(f"{path}: line {line + error.lineno - 1}: not valid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise StimulusError(f"{path}: line {line}: not valid JSON: {error}") from error


def _read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    with _open_text(path, "\n") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield f"line {number}", _parse_json_text(path, line.strip(), number)


def _read_json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the items of a list; an object is one row."""
    with _open_text(path, "\n") as file:
        root = _parse_json_text(path, file.read())
    for number, value in enumerate(root if isinstance(root, list) else [root], start=1):
        yield f"item {number}", value


def _read_table(path: Path) -> Iterator[tuple[str, Any]]:
    with _open_text(path, "") as lines:
        first = next(lines, "")
        delimiter = "\t" if "\t" in first else ","  # some CSV files of the Hub have tabs
        reader = csv.DictReader(chain([first], lines), delimiter=delimiter, strict=True)
        try:
            for values in reader:
                if None in values or None in values.values():
                    cells = len(reader.fieldnames or ())
                    raise StimulusError(f"{path}: line {reader.line_num}: expected {cells} cells, as in the header")
                yield f"line {reader.line_num}", values
        except csv.Error as error:
            raise StimulusError(f"{path}: line {reader.line_num}: not valid CSV: {error}") from error


def _read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise MissingExtraError("a Parquet file", "benchmarks") from None
    row_number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(_ROWS_PER_BATCH):
            for values in batch.to_pylist():
                row_number += 1
                yield f"row {row_number}", values
    except (OSError, ArrowException) as error:
        raise StimulusError(f"{path}: not a complete Parquet file: {error}") from error
