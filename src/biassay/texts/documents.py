"""Documents out of parts of a corpus, whatever the format. What cannot be read is counted, shown and passed over."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from biassay.texts.blocks import LONGEST, LOOK_BACK, Block, blocks, lines_in, paragraphs_in
from biassay.texts.cleaning import clean
from biassay.texts.corpus import CorpusFile, Part, first_rows
from biassay.texts.joined import Joined
from biassay.texts.skimming import skim
from biassay.texts.streams import Stream

__all__ = ["FIELDS", "Documents", "Raw", "Reader", "Tally", "default_field", "open_reader"]

FIELDS = ("body", "text", "content", "sentence")
_TAKEN_AWAY = (b"[deleted]", b"[removed]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXAMPLES = 5
_HEAD_ROWS, _HEAD_LINES = 100, 10_000


@dataclass
class Tally:
    """Counts of the rows of a piece of corpus: read, empty, unreadable."""

    documents: int = 0
    bad: int = 0
    undecodable: int = 0
    examples: list[str] = field(default_factory=list)

    def note_bad(self, where: str, why: str) -> None:
        self.bad += 1
        self._show(where, why)

    def note_undecodable(self, where: str) -> None:
        self.undecodable += 1
        self._show(where, "is not UTF-8")

    def _show(self, where: str, why: str) -> None:
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{where}: {why}")


@dataclass(frozen=True)
class Documents:
    """Clean documents, UTF-8, and where each stands in its file: byte offset or row."""

    joined: Joined
    places: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[bytes], places: Sequence[int]) -> Documents:
        return cls(Joined.of(texts), np.array(places, np.int64))


class Raw(Protocol):
    """A piece of input that was read and not yet looked at."""

    @property
    def nbytes(self) -> int: ...

    def documents(self, tally: Tally) -> Documents: ...


class Reader(Protocol):
    """Reads one part, piece by piece. ``damage`` says, after the last piece, why there were no more."""

    damage: str | None

    def pieces(self) -> Iterator[Raw]: ...


def open_reader(part: Part, field: str | None, document: str, markup: bool) -> Reader:
    """The reader for the format of a part."""
    from biassay.texts.tables import CsvReader, ParquetReader

    if part.file.format == "parquet":
        return ParquetReader(part, field, markup)
    if part.file.format in ("csv", "tsv"):
        return CsvReader(part, field, markup)
    return LineReader(part, field, document, markup)


class LineReader:
    """Plain text and JSON lines."""

    def __init__(self, part: Part, field: str | None, document: str, markup: bool) -> None:
        self.part, self.markup = part, markup
        self.damage: str | None = None
        self.json = part.file.format == "jsonl"
        self.paragraphs = document == "paragraph" and not self.json
        self.field = field or (_field_of_file(part.file) if self.json else None)

    def pieces(self) -> Iterator[Raw]:
        file, start = self.part.file, self.part.start
        with Stream(file.path, file.compression, max(0, start - LOOK_BACK), self.part.entry) as stream:
            for block in blocks(stream, self.paragraphs, start, self.part.stop):
                yield _Lines(self, block)
            self.damage = stream.damage


@dataclass(frozen=True)
class _Lines:
    reader: LineReader
    block: Block

    @property
    def nbytes(self) -> int:
        return len(self.block.data)

    def documents(self, tally: Tally) -> Documents:
        reader = self.reader
        if self.block.too_long:
            tally.note_bad(self._where(self.block.offset), f"longer than {LONGEST >> 20} MB")
            return Documents.of([], [])
        if reader.paragraphs:
            read = self._one_by_one(*paragraphs_in(self.block), tally)
        elif reader.markup or (reader.json and not reader.field):
            read = self._one_by_one(*lines_in(self.block), tally)
        else:
            read = self._skimmed(tally)
        tally.documents += len(read.joined)
        return read

    def _skimmed(self, tally: Tally) -> Documents:
        """All that is plainly good at once, and the other lines one by one."""
        skimmed = skim(self.block.data, self.reader.field if self.reader.json else None, LONGEST)
        if self.block.offset == 0 and self.block.data.startswith(_BYTE_ORDER_MARK):
            skimmed.clear[0] = False
        for number in np.flatnonzero(~skimmed.clear).tolist():
            place = self.block.offset + int(skimmed.starts[number])
            skimmed.put(number, self._document(skimmed.line(number), place, tally))
        return Documents(skimmed.joined(), self.block.offset + skimmed.starts[skimmed.kept])

    def _one_by_one(self, lines: list[bytes], places: NDArray[np.int64], tally: Tally) -> Documents:
        texts, kept = [], []
        for line, place in zip(lines, places.tolist(), strict=True):
            text = self._document(line, place, tally)
            if text is not None:
                texts.append(text)
                kept.append(place)
        return Documents.of(texts, kept)

    def _document(self, line: bytes, place: int, tally: Tally) -> bytes | None:
        if place == 0:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line.strip():
            return None
        try:
            if len(line) > LONGEST:
                raise _BadLineError(f"longer than {LONGEST >> 20} MB")
            text = _field_value(line.decode(), self.reader.field) if self.reader.json else line.decode()
            document = clean(text, self.reader.markup)
            return b"" if self.reader.json and document in _TAKEN_AWAY else document
        except _BadLineError as error:
            tally.note_bad(self._where(place), str(error))
        except UnicodeError:
            tally.note_undecodable(self._where(place))
        return None

    def _where(self, place: int) -> str:
        return f"{self.reader.part.file.name}, byte {place}"


class _BadLineError(Exception):
    """Why a line holds no document."""


def _field_value(line: str, field: str | None) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _BadLineError("broken JSON") from None
    if not isinstance(row, dict):
        raise _BadLineError("not a JSON object")
    if field is None or field not in row:
        wanted = f"no field {field!r}" if field else f"no field {', '.join(FIELDS)}; name yours"
        raise _BadLineError(wanted)
    value = row[field]
    if value is not None and not isinstance(value, str):
        raise _BadLineError(f"the field {field!r} is not text")
    return value or ""


def default_field(names: Sequence[str]) -> str | None:
    """The usual name of a text field that stands among these."""
    return next((field for field in FIELDS if field in names), None)


@functools.cache
def _field_of_file(file: CorpusFile) -> str | None:
    """The field of a file, from its first lines that can be read: the same for all its parts."""
    lines = itertools.islice(first_rows(file.path, file.compression), _HEAD_LINES)
    rows = itertools.islice((row for row in lines if row is not None), _HEAD_ROWS)
    return default_field([name for row in rows for name in row])
