"""Read documents from text, JSON Lines, CSV and Parquet files, and clean their text."""

from __future__ import annotations

import csv
import functools
import html
import io
import itertools
import json
import re
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.corpus.files import CorpusFile, CorpusPart, read_json_rows
from biassay.corpus.streams import (
    LOOK_BACK,
    MAX_DOCUMENT_BYTES,
    ByteStream,
    LineBlock,
    iter_blocks,
    split_lines,
    split_paragraphs,
)
from biassay.decompression import UnpackedTooLargeError, UnpackLimit
from biassay.packages import require

TEXT_FIELDS = ("body", "text", "content", "sentence")
_EMPTY_TEXTS = frozenset([None, "[deleted]", "[removed]"])  # Reddit's placeholders
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_EXAMPLES = 5
_FIELD_ROWS, _FIELD_LINES = 100, 10_000
_ROWS_PER_CHUNK = 4096
_COPY_BYTES = 1 << 20


@dataclass
class ReadStats:
    """Counts of documents read, documents that cannot be read (`bad`) and documents that are not UTF-8."""

    documents: int = 0
    bad: int = 0
    undecodable: int = 0
    examples: list[str] = field(default_factory=list)

    def add_bad(self, location: str, reason: str | None) -> None:
        """Count a document that cannot be read. If `reason` is None, it is not valid UTF-8."""
        self.bad += reason is not None
        self.undecodable += reason is None
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(f"{location}: {reason or 'is not UTF-8'}")


@dataclass(frozen=True)
class PackedDocuments:
    """Many documents in one byte string.

    Attributes
    ----------
    data : bytes
        Documents in UTF-8, with a zero byte before each and after the last.
    starts, stops : (n,) array of int
        First byte of each document in `data`, and the byte after its last.
    positions : (n,) array of int
        Byte offset or row of each document in its file.
    """

    data: bytes
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def pack(cls, texts: Sequence[str], positions: Sequence[int] | NDArray[np.int64]) -> PackedDocuments:
        """Encode and join texts. Lone surrogates raise UnicodeEncodeError."""
        data = "\0".join(["", *texts, ""]).encode() if texts else b"\0"
        bounds = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
        if len(bounds) != len(texts) + 1:  # a text contains a zero
            bounds = np.cumsum([0, *(len(text.encode()) + 1 for text in texts)])
        return cls(data, bounds[:-1] + 1, bounds[1:], np.asarray(positions, np.int64))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> bytes:
        return self.data[self.starts[index] : self.stops[index]]


def open_reader(
    part: CorpusPart, field: str | None, document: str, is_html: bool
) -> _LineReader | _CsvReader | _ParquetReader:
    """Return a reader for a part of a corpus. Its `damage` holds the reason if reading stopped early.

    Parameters
    ----------
    part : CorpusPart
        Part to read.
    field : str or None
        Field or column with the text. If None, the first of `TEXT_FIELDS` that the file has.
    document : {"line", "paragraph"}
        Unit of plain text that is a document.
    is_html : bool
        If True, remove tags and resolve entities.
    """
    if part.file.format == "parquet":
        return _ParquetReader(part, field, is_html)
    if part.file.format in ("csv", "tsv"):
        return _CsvReader(part, field, is_html)
    return _LineReader(part, field, document, is_html)


class _LineReader:
    """Reader of plain text and JSON Lines."""

    def __init__(self, part: CorpusPart, field: str | None, document: str, is_html: bool) -> None:
        self.part, self.is_html = part, is_html
        self.damage: str | None = None
        self.is_json = part.file.format == "jsonl"
        self.paragraphs = document == "paragraph" and not self.is_json
        self.field = field or (_find_json_field(part.file) if self.is_json else None)

    def chunks(self) -> Iterator[_LineChunk]:
        file, start = self.part.file, self.part.start
        with ByteStream(file.path, file.compression, max(0, start - LOOK_BACK)) as stream:
            for block in iter_blocks(stream, self.paragraphs, start, self.part.stop):
                yield _LineChunk(self, block)
            self.damage = stream.damage


@dataclass(frozen=True)
class _LineChunk:
    """A block of lines."""

    reader: _LineReader
    block: LineBlock

    @property
    def nbytes(self) -> int:
        return len(self.block.data)

    def parse(self, stats: ReadStats) -> PackedDocuments:
        if self.block.too_long:
            stats.add_bad(self._locate(self.block.offset), _too_long())
            return PackedDocuments.pack([], [])
        documents = self._parse_block() or self._parse_lines(stats)
        stats.documents += len(documents)
        return documents

    def _parse_block(self) -> PackedDocuments | None:
        """Decode all lines of a JSON block at once; return None if any of them needs a closer look."""
        reader, data = self.reader, self.block.data
        if not reader.is_json or not reader.field or reader.is_html or len(data) > MAX_DOCUMENT_BYTES:
            return None
        msgspec = require("msgspec")
        try:
            data.decode()
            rows = _get_json_decoder(reader.field).decode_lines(data)
            texts = ["" if row.text in _EMPTY_TEXTS else row.text for row in rows]
        except (UnicodeError, RecursionError, msgspec.MsgspecError):
            return None
        line_ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        starts = np.concatenate([[0], line_ends[:-1] if data.endswith(b"\n") else line_ends])
        if len(starts) != len(texts):  # there are blank lines
            return None
        if not unicodedata.is_normalized("NFC", "\0".join([text for text in texts if not text.isascii()])):
            return None
        return PackedDocuments.pack(texts, starts + self.block.offset)

    def _parse_lines(self, stats: ReadStats) -> PackedDocuments:
        lines, positions = (split_paragraphs if self.reader.paragraphs else split_lines)(self.block)
        texts, kept = [], []
        for line, position in zip(lines, positions.tolist(), strict=True):
            if position == 0:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if not line.strip():
                continue
            try:
                texts.append(self._parse_line(line))
                kept.append(position)
            except _BadLineError as error:
                stats.add_bad(self._locate(position), str(error))
            except UnicodeError:
                stats.add_bad(self._locate(position), None)
        return PackedDocuments.pack(texts, kept)

    def _parse_line(self, line: bytes) -> str:
        if len(line) > MAX_DOCUMENT_BYTES:
            raise _BadLineError(_too_long())
        text = line.decode()
        if not self.reader.is_json:
            return _clean(text, self.reader.is_html)
        text = _clean(_parse_json_text(line, text, self.reader.field) or "", self.reader.is_html)
        return "" if text in _EMPTY_TEXTS else text

    def _locate(self, position: int) -> str:
        return f"{self.reader.part.file.name}, byte {position}"


class _BadLineError(Exception):
    """A line without a readable document."""


def _too_long() -> str:
    return f"longer than {MAX_DOCUMENT_BYTES >> 20} MB"


def _parse_json_text(line: bytes, decoded: str, field: str | None) -> str | None:
    """Return the text field of a JSON object, with the errors of `json` for lines that msgspec rejects."""
    if field is not None:
        try:
            text: str | None = _get_json_decoder(field).decode(line).text
            return text
        except (RecursionError, require("msgspec").MsgspecError):
            pass
    try:
        row = json.loads(decoded)
    except (ValueError, RecursionError):
        raise _BadLineError("broken JSON") from None
    if not isinstance(row, dict):
        raise _BadLineError("not a JSON object")
    if field is None or field not in row:
        raise _BadLineError(f"no field {field!r}" if field else f"no field {', '.join(TEXT_FIELDS)}; name yours")
    value = row[field]
    if value is not None and not isinstance(value, str):
        raise _BadLineError(f"the field {field!r} is not text")
    return value


@functools.lru_cache(maxsize=16)
def _get_json_decoder(field: str) -> Any:
    """Return a decoder of objects with one text field; it skips all other fields."""
    msgspec = require("msgspec")
    row_type = msgspec.defstruct("Row", [("text", str | None)], rename={"text": field}, gc=False)
    return msgspec.json.Decoder(row_type)


@functools.cache
def _find_json_field(file: CorpusFile) -> str | None:
    """Return the text field of a file from its first readable lines, so that all parts use the same."""
    lines = itertools.islice(read_json_rows(file.path, file.compression), _FIELD_LINES)
    rows = itertools.islice((row for row in lines if row is not None), _FIELD_ROWS)
    return _choose_field([name for row in rows for name in row])


def _choose_field(names: Sequence[str]) -> str | None:
    return next((field for field in TEXT_FIELDS if field in names), None)


@dataclass(frozen=True)
class _RowChunk:
    """Cells of a table: a text, None for an empty cell, or the error of a bad row."""

    file_name: str
    first_row: int
    cells: list[Any]
    nbytes: int
    is_html: bool

    def parse(self, stats: ReadStats) -> PackedDocuments:
        texts, rows = [], []
        for row, cell in enumerate(self.cells, self.first_row):
            location = f"{self.file_name}, row {row}"
            if isinstance(cell, Exception):
                stats.add_bad(location, str(cell))
                continue
            try:
                texts.append(_clean(cell or "", self.is_html))
                rows.append(row)
            except UnicodeError:
                stats.add_bad(location, None)
        stats.documents += len(texts)
        return PackedDocuments.pack(texts, rows)


class _CsvReader:
    """Reader of CSV and TSV files with a header. Rows are numbered from 1, after the header."""

    def __init__(self, part: CorpusPart, field: str | None, is_html: bool) -> None:
        self.part, self.field, self.is_html = part, field, is_html
        self.damage: str | None = None

    def chunks(self) -> Iterator[_RowChunk]:
        file = self.part.file
        with ByteStream(file.path, file.compression) as stream:
            # Surrogates mark invalid UTF-8, so that one bad row does not end the file.
            text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8-sig", "surrogateescape", newline="")
            rows = _iter_csv_rows(text, "\t" if file.format == "tsv" else ",")
            first: Any = next(rows, None)
            header: list[str] = first if isinstance(first, list) else []
            field = self.field or _choose_field(header)
            if field is not None and field in header:
                yield from self._iter_chunks(rows, header.index(field), stream)
            elif header:
                self.damage = _describe_missing_column(field, header)
            self.damage = stream.damage or self.damage

    def _iter_chunks(self, rows: Iterator[Any], column: int, stream: ByteStream) -> Iterator[_RowChunk]:
        first_row, bytes_read = 1, 0
        cells = (_get_cell(row, column) for row in rows if row)
        while chunk := list(itertools.islice(cells, _ROWS_PER_CHUNK)):
            yield _RowChunk(self.part.file.name, first_row, chunk, stream.position - bytes_read, self.is_html)
            first_row, bytes_read = first_row + len(chunk), stream.position


def _iter_csv_rows(text: io.TextIOWrapper, delimiter: str) -> Iterator[Any]:
    """Yield rows, or the error of a row that cannot be parsed."""
    csv.field_size_limit(MAX_DOCUMENT_BYTES)
    reader = csv.reader(iter(lambda: text.readline(MAX_DOCUMENT_BYTES), ""), delimiter=delimiter)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield error


def _get_cell(row: Any, column: int) -> Any:
    if isinstance(row, Exception):
        return row
    return row[column] if column < len(row) else ValueError(f"has {len(row)} cells, the text is cell {column + 1}")


def _describe_missing_column(field: str | None, names: Sequence[str]) -> str:
    wanted = repr(field) if field else f"named {', '.join(TEXT_FIELDS)}"
    return f"no column {wanted}; there are {', '.join(names[:20])}"


class _ParquetReader:
    """Reader of row groups of a Parquet file. Rows are numbered from 1."""

    def __init__(self, part: CorpusPart, field: str | None, is_html: bool) -> None:
        self.part, self.field, self.is_html = part, field, is_html
        self.damage: str | None = None

    def chunks(self) -> Iterator[_RowChunk]:
        try:
            with self._open() as file, require("pyarrow.parquet").ParquetFile(file) as parquet:
                yield from self._iter_chunks(parquet)
        except (OSError, UnpackedTooLargeError, require("pyarrow").ArrowException) as error:
            self.damage = self.damage or str(error)

    def _open(self) -> Any:
        """Open the file. A compressed one is decompressed first, because Parquet is read from its end."""
        file = self.part.file
        if not file.compression:
            return file.path.open("rb")
        decompressed = tempfile.TemporaryFile()  # noqa: SIM115  (closed by the caller)
        try:
            limit = UnpackLimit(file.path)
            with ByteStream(file.path, file.compression) as stream:
                while data := stream.read(_COPY_BYTES):
                    limit.count(len(data))
                    decompressed.write(data)
                self.damage = stream.damage
            decompressed.seek(0)
        except BaseException:
            decompressed.close()
            raise
        return decompressed

    def _iter_chunks(self, parquet: Any) -> Iterator[_RowChunk]:
        names = parquet.schema_arrow.names
        field = self.field or _choose_field(names)
        if field is None or field not in names:
            self.damage = _describe_missing_column(field, names)
            return
        column_type = parquet.schema_arrow.field(field).type
        if not _is_text(column_type):
            self.damage = f"the column {field!r} is not text but {column_type}"
            return
        stop = self.part.stop if self.part.stop is not None else parquet.num_row_groups
        row = 1 + sum(parquet.metadata.row_group(group).num_rows for group in range(self.part.start))
        groups = list(range(self.part.start, stop))
        for batch in parquet.iter_batches(_ROWS_PER_CHUNK, groups, [field]) if groups else ():
            column = batch.column(0)
            plain = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
            cells = [_decode_cell(value) for value in plain.cast("large_binary").to_pylist()]
            yield _RowChunk(self.part.file.name, row, cells, plain.nbytes, self.is_html)
            row += len(cells)


def _is_text(column_type: Any) -> bool:
    types = require("pyarrow").types
    plain = column_type.value_type if types.is_dictionary(column_type) else column_type
    return bool(types.is_string(plain) or types.is_large_string(plain) or types.is_string_view(plain))


def _decode_cell(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="surrogateescape")


_HTML_HIDDEN = re.compile(r"<!--.*?-->|<(script|style)\b[^>]*>.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_HTML_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?:\s[^<>]*|/)?>")
_INLINE_TAG_NAME = re.compile(
    r"a|abbr|acronym|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strike|strong|sub"
    r"|sup|time|tt|u|var|wbr",
    re.IGNORECASE,
)


def strip_html(text: str) -> str:
    """Remove tags and resolve entities. Tags that end a line or a block become line breaks."""
    if "<" in text:
        text = _HTML_TAG.sub(_replace_tag, _HTML_HIDDEN.sub(" ", text))
    return html.unescape(text) if "&" in text else text


def _replace_tag(tag: re.Match[str]) -> str:
    return "" if _INLINE_TAG_NAME.fullmatch(tag[1]) else "\n"


def _clean(text: str, is_html: bool) -> str:
    """Return the text as it is searched: without HTML, in NFC. Raise UnicodeEncodeError for lone surrogates."""
    if is_html:
        text = strip_html(text)
    if text.isascii():
        return text
    text.encode()
    return unicodedata.normalize("NFC", text)
