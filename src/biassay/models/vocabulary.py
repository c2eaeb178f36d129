"""Whole vocabularies of word vectors, read as a stream of blocks: of each word sixteen bytes stay in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError, VectorFileError
from biassay.models.decimals import DIGITS, bytes_as, decimals
from biassay.models.seen import SeenWords
from biassay.models.vector_files import (
    binary_chunks,
    binary_header,
    check_format,
    detect_format,
    faults_named,
    npy_contents,
    opened,
)
from biassay.models.vector_text import TextLines, checked_vector

__all__ = ["ROWS", "Block", "HasVocabulary", "array_blocks", "vocabulary_blocks"]

ROWS = 8192
_PART = 1 << 15  # values, so that what is computed of them stays in the processor's cache
_BLANK = 32
_FRONT = bytes(DIGITS)  # ``decimals`` looks as far back from the end of a value


@dataclass(frozen=True, eq=False)
class Block:
    """Some words of a vocabulary, in the order of the file.

    Attributes
    ----------
    words : n of str
        As they stand in the file, each once in the whole stream. What is not UTF-8 became U+FFFD; broken words that
        then look the same are one word.
    vectors : (n, d) float32
        All finite, none zero.
    done, total : int
        Read so far, and in all: rows of an array, bytes of a file as it lies on the disk. In the last block they are
        equal, but for a compressed file, whose end is not data.
    unit : {"words", "bytes"}
        The unit of ``done`` and ``total``.
    skipped : int
        Words left out so far because their vector is zero.
    """

    words: list[str]
    vectors: NDArray[np.float32]
    done: int
    total: int
    skipped: int = 0
    unit: str = "words"


@runtime_checkable
class HasVocabulary(Protocol):
    """An encoder that can list all its words with their vectors."""

    def vocabulary(self) -> Iterator[Block]: ...


@dataclass(frozen=True, eq=False)
class _Piece:
    """What was read at once, and the number of its first line, word or row, by which errors name it."""

    words: list[str]
    vectors: NDArray[np.float32]
    unit: str
    first: int
    done: int


def vocabulary_blocks(path: Path, file_format: str | None = None, *, rows: int = ROWS) -> Iterator[Block]:
    """All words of a file with their vectors, ``rows`` at a time; the first line of a repeated word counts.

    Every line is checked. Published files hold a few zero vectors: those are left out and counted.
    """
    if rows < 1:
        raise UsageError(f"a block has at least one row, got rows={rows}")
    if file_format is not None:
        check_format(file_format)
    return _file_blocks(path, file_format, rows)


def array_blocks(words: Sequence[str], vectors: NDArray[np.float32], *, rows: int = ROWS) -> Iterator[Block]:
    """Words and vectors (n, d) that are in memory and known to be good, ``rows`` at a time."""
    for at in range(0, len(words), rows):
        part = list(words[at : at + rows])
        yield Block(part, vectors[at : at + rows], at + len(part), len(words))


def _file_blocks(path: Path, file_format: str | None, rows: int) -> Iterator[Block]:
    with faults_named(path):
        chosen = file_format or detect_format(path)
        if chosen == "npy":
            matrix, words = npy_contents(path, "replace")
            yield from _Blocks(path, len(words), rows).of(_npy_pieces(matrix, words))
            return
        with opened(path) as file:
            pieces = _TextPieces(path).read(file) if chosen == "text" else _binary_pieces(path, file)
            yield from _Blocks(path, path.stat().st_size, rows, "bytes").of(pieces)


class _Blocks:
    """Makes blocks of equal length of what the formats give, so that the stream does not depend on the format."""

    def __init__(self, path: Path, total: int, rows: int, unit: str = "words") -> None:
        self._path, self._total, self._rows, self._unit = path, total, rows, unit
        self._seen = SeenWords()
        self._skipped = 0

    def of(self, pieces: Iterator[_Piece]) -> Iterator[Block]:
        words: list[str] = []
        parts: list[NDArray[np.float32]] = []
        done = 0
        for piece in pieces:
            kept, done = self._good(piece), piece.done
            words += [piece.words[row] for row in kept]
            parts.append(piece.vectors if len(kept) == len(piece.words) else piece.vectors[kept])
            full = (len(words) - 1) // self._rows * self._rows  # one word stays: the last block then counts everything
            if full > 0:
                matrix = np.concatenate(parts)
                yield from self._cut(words[:full], matrix, done)
                words, parts = words[full:], [matrix[full:]]
        if not words:
            raise VectorFileError(f"{self._path}: the file holds no vector that has a direction")
        yield from self._cut(words, np.concatenate(parts), done)

    def _cut(self, words: list[str], matrix: NDArray[np.float32], done: int) -> Iterator[Block]:
        for at in range(0, len(words), self._rows):
            end = at + self._rows
            yield Block(words[at:end], matrix[at:end], done, self._total, self._skipped, self._unit)

    def _good(self, piece: _Piece) -> list[int]:
        """Rows of words not seen before, whose vectors are not zero."""
        finite = np.isfinite(piece.vectors)
        if not finite.all():
            row = int(np.argmin(finite.all(axis=1)))
            checked_vector(piece.vectors[row], piece.words[row], f"{self._path}: {piece.unit} {piece.first + row}")
        new = self._seen.new(piece.words)
        zero = [row for row in np.flatnonzero(piece.vectors[:, 0] == 0.0).tolist() if not piece.vectors[row].any()]
        self._skipped += int(new[zero].sum())
        new[zero] = False
        return list(np.flatnonzero(new).tolist())


def _npy_pieces(matrix: NDArray[Any], words: list[str]) -> Iterator[_Piece]:
    for at in range(0, len(words), ROWS):
        part = words[at : at + ROWS]
        with np.errstate(over="ignore"):  # what becomes infinite is refused later
            vectors = np.array(matrix[at : at + ROWS], dtype=np.float32)
        yield _Piece(part, vectors, "row", at, at + len(part))


def _binary_pieces(path: Path, file: BufferedReader) -> Iterator[_Piece]:
    count, dimension = binary_header(path, file)
    first = 1
    for buffer, places in binary_chunks(path, file, count, dimension):
        words = [buffer[start:blank].lstrip(b"\n").decode(errors="replace") for start, blank in places]
        values = bytes_as(buffer, f"V{4 * dimension}")[[blank + 1 for _, blank in places]]
        vectors = values.view("<f4").reshape(-1, dimension).astype(np.float32, copy=False)
        yield _Piece(words, vectors, "word", first, _position(file))
        first += len(places)


def _position(file: BufferedReader) -> int:
    return int(getattr(file, "fileobj", file).tell())  # of a compressed file: where its reader stands on the disk


class _TextPieces(TextLines):
    """Reads all lines of one file. Only words become Python objects; values are computed thousands at a time."""

    def read(self, file: BufferedReader) -> Iterator[_Piece]:
        for block in self._checked_blocks(file):
            lines = [line.rstrip() for line in bytes(block).split(b"\n")[:-1]]
            first = self._line
            self._count(np.array([bool(line) for line in lines], dtype=bool))
            lines = [line for line in lines if line]
            if lines:
                yield self._piece(lines, first, _position(file))

    def _piece(self, lines: list[bytes], first: int, done: int) -> _Piece:
        ends = [line.find(b" ") for line in lines]
        text, blanks, counts = _values_text(lines, ends)
        odd = np.flatnonzero(counts != self._dimension).tolist()
        if odd:  # a word with blanks inside, or a fault
            for row in odd:
                ends[row] = len(self._fields(first + row, lines[row])[0])
            text, blanks, _ = _values_text(lines, ends)
        words = [line[:end].decode(errors="replace") for line, end in zip(lines, ends, strict=True)]
        values, fault = _numbers(text, blanks)
        if fault is not None:
            row = fault // self._dimension
            raise self._no_numbers(first + row, words[row])
        return _Piece(words, values.reshape(len(lines), self._dimension), "line", first, done)


def _values_text(lines: list[bytes], ends: list[int]) -> tuple[bytes, NDArray[np.intp], NDArray[np.intp]]:
    """All values in one text, the places of the blanks around them, and how many each line has."""
    parts = [line[end:] for line, end in zip(lines, ends, strict=True)]
    text = b"".join([_FRONT, *parts, b" \n"])
    blanks = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _BLANK)
    starts = np.cumsum([len(_FRONT), *map(len, parts)])
    return text, blanks, np.diff(np.searchsorted(blanks, starts))


def _numbers(text: bytes, blanks: NDArray[np.intp]) -> tuple[NDArray[np.float32], int | None]:
    """The numbers between the blanks, and which one is not a number."""
    values = np.empty(len(blanks) - 1, dtype=np.float32)
    for at in range(0, len(values), _PART):
        around = blanks[at : at + _PART + 1]
        part, plain = decimals(text, around[:-1] + 1, around[1:])
        values[at : at + len(part)] = part
        odd = np.flatnonzero(~plain)
        if len(odd):
            places = zip((around[odd] + 1).tolist(), around[odd + 1].tolist(), strict=True)
            fields = [text[start:end] for start, end in places]
            try:
                values[at + odd] = _converted(fields)
            except ValueError:
                return values, at + int(odd[_first_fault(fields)])
    return values, None


def _converted(fields: list[bytes]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # what becomes infinite is refused later
        return np.array(fields, dtype=np.float32)


def _first_fault(fields: list[bytes]) -> int:
    for place, field in enumerate(fields):
        try:
            _converted([field])
        except ValueError:
            return place
    raise AssertionError("every field is a number")
