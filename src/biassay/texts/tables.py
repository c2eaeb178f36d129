"""Documents out of CSV and Parquet files: one row, one document."""

from __future__ import annotations

import csv
import io
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from biassay.texts.blocks import LONGEST
from biassay.texts.cleaning import clean
from biassay.texts.corpus import Part
from biassay.texts.documents import Documents, Raw, Tally, default_field
from biassay.texts.streams import Stream
from biassay.texts.tools import tool
from biassay.unpacking import UnpackedTooLargeError, UnpackLimit, get_arrow_size, open_parquet

__all__ = ["CsvReader", "ParquetReader"]

_ROWS = 4096
_PIECE = 1 << 20  # bytes
_MOST_TEXT = 64 << 20  # bytes
_SMALL = 16 << 20  # bytes of a Parquet file; for larger ones, `open_parquet` would cost more time than it is worth


@dataclass(frozen=True)
class _Rows:
    """Texts of rows. In place of a text: None where it is empty, an error where the row is bad."""

    name: str
    first: int
    values: list[Any]
    nbytes: int
    markup: bool

    def documents(self, tally: Tally) -> Documents:
        texts, places = [], []
        for place, value in enumerate(self.values, self.first):
            where = f"{self.name}, row {place}"
            try:
                if isinstance(value, Exception):
                    tally.note_bad(where, str(value))
                    continue
                texts.append(clean(value or "", self.markup))
                places.append(place)
            except UnicodeError:
                tally.note_undecodable(where)
        tally.documents += len(texts)
        return Documents.of(texts, places)


class CsvReader:
    """CSV and TSV with a header row. Rows are counted from 1, the header aside."""

    def __init__(self, part: Part, field: str | None, markup: bool) -> None:
        self.part, self.field, self.markup = part, field, markup
        self.damage: str | None = None

    def pieces(self) -> Iterator[Raw]:
        file = self.part.file
        with Stream(file.path, file.compression) as stream:
            # What is not UTF-8 passes as lone surrogates, so that one bad row does not end the file.
            text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", "surrogateescape", newline="")
            rows = _rows(text, "\t" if file.format == "tsv" else ",")
            first: Any = next(rows, None)
            header: list[str] = first if isinstance(first, list) else []
            field = self.field or default_field(header)
            if field is not None and field in header:
                yield from self._pieces(rows, header.index(field), stream)
            elif header:
                self.damage = f"no column {field or 'with a usual name'!r}; there are {', '.join(header[:20])}"
            self.damage = stream.damage or self.damage

    def _pieces(self, rows: Iterator[Any], column: int, stream: Stream) -> Iterator[Raw]:
        first, read = 1, 0
        values = (_cell(row, column) for row in rows if row)
        while chunk := list(itertools.islice(values, _ROWS)):
            yield _Rows(self.part.file.name, first, chunk, stream.position - read, self.markup)
            first, read = first + len(chunk), stream.position


def _rows(text: io.TextIOWrapper, delimiter: str) -> Iterator[Any]:
    """The rows of a CSV file, and in place of one that cannot be read the error."""
    csv.field_size_limit(LONGEST)
    reader = csv.reader(iter(lambda: text.readline(LONGEST), ""), delimiter=delimiter)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield error


def _cell(row: Any, column: int) -> Any:
    if isinstance(row, Exception):
        return row
    return row[column] if column < len(row) else ValueError(f"has {len(row)} cells, the text is cell {column + 1}")


class ParquetReader:
    """Row groups of a Parquet file. Rows are counted from 1."""

    def __init__(self, part: Part, field: str | None, markup: bool) -> None:
        self.part, self.field, self.markup = part, field, markup
        self.damage: str | None = None

    def pieces(self) -> Iterator[Raw]:
        try:
            library = tool("pyarrow.parquet")
            small = self.part.file.path.stat().st_size <= _SMALL
            with self._file() as file, (open_parquet if small else library.ParquetFile)(file) as parquet:
                yield from self._pieces(parquet)
        except (OSError, UnpackedTooLargeError, tool("pyarrow").ArrowException) as error:
            self.damage = self.damage or str(error)

    def _file(self) -> Any:
        """The file; decompressed, where it is compressed as a whole, for Parquet is read from its end."""
        file = self.part.file
        if not file.compression:
            return file.path.open("rb")
        whole = tempfile.TemporaryFile()  # noqa: SIM115  (closed by the caller)
        try:
            limit = UnpackLimit(file.path)
            with Stream(file.path, file.compression) as stream:
                while piece := stream.read(_PIECE):
                    limit.count(len(piece))
                    whole.write(piece)
                self.damage = stream.damage
            whole.seek(0)
        except BaseException:
            whole.close()
            raise
        return whole

    def _pieces(self, parquet: Any) -> Iterator[Raw]:
        names = parquet.schema_arrow.names
        field = self.field or default_field(names)
        if field is None or field not in names:
            self.damage = f"no column {field or 'with a usual name'!r}; there are {', '.join(names[:20])}"
            return
        kind = parquet.schema_arrow.field(field).type
        if not _is_text(kind):
            self.damage = f"the column {field!r} is not text but {kind}"
            return
        yield from self._batches(parquet, field)

    def _batches(self, parquet: Any, field: str) -> Iterator[Raw]:
        stop = self.part.stop if self.part.stop is not None else parquet.num_row_groups
        row = 1 + sum(parquet.metadata.row_group(group).num_rows for group in range(self.part.start))
        groups = list(range(self.part.start, stop))
        for batch in parquet.iter_batches(_ROWS, groups, [field]) if groups else ():
            for column in _split(batch.column(0)):
                plain = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
                values = [_utf8(value) for value in plain.cast("large_binary").to_pylist()]
                yield _Rows(self.part.file.name, row, values, get_arrow_size(column), self.markup)
                row += len(values)


def _split(column: Any) -> Iterator[Any]:
    """Yield a column in parts of at most 64 MB of text, or of one row."""
    if len(column) < 2 or get_arrow_size(column) <= _MOST_TEXT:
        yield column
        return
    half = len(column) // 2
    yield from _split(column.slice(0, half))
    yield from _split(column.slice(half))


def _is_text(kind: Any) -> bool:
    types = tool("pyarrow").types
    plain = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(plain) or types.is_large_string(plain) or types.is_string_view(plain))


def _utf8(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="surrogateescape")
