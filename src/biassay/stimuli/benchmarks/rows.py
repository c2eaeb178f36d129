"""Rows of JSON lines, JSON, CSV, TSV and Parquet files; errors about their values tell file, line and field."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TextIO

from biassay.errors import MissingExtraError, StimulusError
from biassay.files import open_file
from biassay.stimuli.fields import kind
from biassay.unpacking import UnpackLimit, get_arrow_size, open_parquet

__all__ = ["FORMS", "Row", "read_rows"]

FORMS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
"""Endings of files that are read; the first two and CSV also with .gz behind."""

_ROWS_AT_ONCE = 1000


@dataclass(frozen=True)
class Row:
    """One row of a file: where it stands, and its values by name."""

    path: Path
    place: str
    values: Mapping[str, Any]
    hint: str = ""

    @property
    def where(self) -> tuple[Path, str]:
        """What is enough to find it again."""
        return self.path, self.place

    def fail(self, field: str, problem: str) -> NoReturn:
        where = f": field {field}" if field else ""
        raise StimulusError(f"{self.path}: {self.place}{where}: {problem}{f'; {self.hint}' if self.hint else ''}")

    def value(self, field: str) -> Any:
        """A value that has to be there; dots lead into objects."""
        found: Any = self.values
        for part in field.split("."):
            if not isinstance(found, Mapping) or found.get(part) is None:
                there = ", ".join(map(str, self.values))
                self.fail(field, f"the field is missing; there are {there[:200]}")
            found = found[part]
        return found

    def has(self, field: str) -> bool:
        return self.values.get(field) is not None

    def text(self, field: str) -> str:
        value = self.value(field)
        if not isinstance(value, str) or not value.strip():
            self.fail(field, f"expected a text that is not empty, got {kind(value)}")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.value(field)
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(v, str) for v in value):
            self.fail(field, f"expected a list of texts, got {kind(value)}")
        return tuple(value)

    def whole(self, field: str, most: int | None = None) -> int:
        """A whole number from 0, also where it is written as a text."""
        value = self.value(field)
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (most is not None and value > most):
            wanted = "from 0" if most is None else f"from 0 to {most}"
            self.fail(field, f"expected a whole number {wanted}, got {kind(value)}")
        return value

    def choice(self, field: str, allowed: Sequence[str]) -> str:
        """One of some names, also where it is written as its place among them, as in files of the Hub."""
        value = self.value(field)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(allowed):
            return allowed[value]
        if value not in allowed:
            self.fail(field, f"expected one of {', '.join(allowed)}, got {kind(value)}")
        return allowed[allowed.index(value)]  # one object, however many rows have it


def read_rows(path: Path, hint: str = "") -> Iterator[Row]:
    """Rows of a file, by its ending. ``hint`` ends every error message: what to do."""
    endings = [ending for ending in path.suffixes if ending != ".gz"]
    form = endings[-1].lower() if endings else ""
    readers = {".jsonl": _json_lines, ".json": _json, ".csv": _table, ".tsv": _table, ".parquet": _parquet}
    if form not in readers:
        raise StimulusError(f"{path}: unknown kind of file {form!r}; expected one of {', '.join(FORMS)}")
    for place, values in readers[form](path):
        row = Row(path, place, values if isinstance(values, Mapping) else {}, hint)
        if not isinstance(values, Mapping):
            row.fail("", f"expected an object of fields, got {kind(values)}")
        yield row


@contextmanager
def _opened(path: Path, newline: str) -> Iterator[TextIO]:
    """The text of a file, of which a part is in memory at a time; ``newline`` is that of `open`."""
    try:
        with ExitStack() as stack:
            file: Any = stack.enter_context(open_file(path))
            if path.suffix == ".gz":
                file = UnpackLimit(path).wrap(stack.enter_context(gzip.GzipFile(fileobj=file)))
            yield stack.enter_context(io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline))
    except (OSError, EOFError, zlib.error) as error:
        raise StimulusError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except UnicodeDecodeError as error:
        near = error.object[max(error.start - 20, 0) : error.end]
        raise StimulusError(f"{path}: not UTF-8 text, at {near!r}") from error


def _parsed(path: Path, text: str, line: int = 1) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise StimulusError(f"{path}: line {line + error.lineno - 1}: not valid JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise StimulusError(f"{path}: line {line}: not valid JSON: {error}") from error


def _json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    with _opened(path, "\n") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield f"line {number}", _parsed(path, line.strip(), number)


def _json(path: Path) -> Iterator[tuple[str, Any]]:
    """The items of a list; an object is one row."""
    with _opened(path, "\n") as file:
        root = _parsed(path, file.read())
    for number, value in enumerate(root if isinstance(root, list) else [root], start=1):
        yield f"item {number}", value


def _table(path: Path) -> Iterator[tuple[str, Any]]:
    with _opened(path, "") as lines:
        first = next(lines, "")
        tabs = "\t" in first  # some files of the Hub are called CSV and have tabs
        reader = csv.DictReader(chain([first], lines), delimiter="\t" if tabs else ",", strict=True)
        try:
            for values in reader:
                if None in values or None in values.values():
                    cells = len(reader.fieldnames or ())
                    raise StimulusError(f"{path}: line {reader.line_num}: expected {cells} cells, as in the header")
                yield f"line {reader.line_num}", values
        except csv.Error as error:
            raise StimulusError(f"{path}: line {reader.line_num}: not valid CSV: {error}") from error


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        from pyarrow import ArrowException
    except ModuleNotFoundError:
        raise MissingExtraError("a Parquet file", "benchmarks") from None
    before = 0
    try:
        limit, file = UnpackLimit(path), open_parquet(path)
        limit.check(sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups)))
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            limit.count(sum(map(get_arrow_size, batch.columns)))
            for number, values in enumerate(batch.to_pylist(), start=before + 1):
                yield f"row {number}", values
            before += len(batch)
    except (OSError, ArrowException) as error:
        raise StimulusError(f"{path}: not a whole Parquet file: {error}") from error
