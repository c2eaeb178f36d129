"""Word vectors as text: a word and its values a line, with or without a first line that counts them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.errors import VectorFileError

__all__ = ["CHUNK", "DAMAGED", "TextReader", "WordVectors", "checked_vector", "read_chunk", "word2vec_header"]

CHUNK = 1 << 22
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_NEWLINE, _RETURN, _BLANK = 10, 13, 32


class WordVectors(dict[str, NDArray[np.float32]]):
    """Vectors by word, and their dimension even where no word was found."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension


def word2vec_header(line: bytes) -> tuple[int, int] | None:
    """(words, dimension) if the line is a word2vec header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def read_chunk(path: Path, file: BufferedReader, where: str) -> bytes:
    """Some megabytes; what comes before a fault is handed out first, so that the fault gets its line."""
    pieces: list[bytes] = []
    try:
        while sum(map(len, pieces)) < CHUNK and (piece := file.read1(CHUNK)):
            pieces.append(piece)
    except DAMAGED as error:
        if not pieces:
            raise VectorFileError(f"{path}: {where}: the compressed file is truncated or damaged: {error}") from error
    return b"".join(pieces)


def checked_vector(values: NDArray[np.float32], word: str, where: str) -> NDArray[np.float32]:
    """Refuse a vector without a direction."""
    if not np.isfinite(values).all():
        raise VectorFileError(f"{where}: the vector of {word!r} holds a value that is not finite")
    if not values.any():
        raise VectorFileError(f"{where}: the vector of {word!r} is zero, so it has no direction")
    return values


class TextReader:
    """Reads one file, block by block.

    A block whose number of blanks is right is searched for wanted words without making Python objects of its lines;
    any other block is looked at line by line, so that a faulty line is named and a word with blanks inside is found.
    The line of a wanted word is checked in either case.
    """

    def __init__(self, path: Path, wanted: Collection[str]) -> None:
        self._path = path
        self._keys = {word.encode(): word for word in wanted}
        self._table = _beginnings(self._keys)
        self._found = WordVectors(0)
        self._announced: int | None = None
        self._dimension = self._blanks = self._words = self._gap = 0
        self._line = 1

    def read(self, file: BufferedReader) -> WordVectors:
        for block in self._blocks(file):
            self._block(self._begin(block) if not self._dimension else block)
        if not self._dimension:
            raise VectorFileError(f"{self._path}: line 1: the file is empty")
        if self._announced not in (None, self._words):
            count = f"the file has {self._words} of {self._announced} words"
            raise VectorFileError(f"{self._path}: line {self._line}: {count}; is it truncated?")
        self._found.dimension = self._dimension
        return self._found

    def _blocks(self, file: BufferedReader) -> Iterator[bytes]:
        """Whole lines, some megabytes at a time."""
        rest = b""
        while chunk := read_chunk(self._path, file, f"line {self._line}"):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield rest + chunk[:cut]
                rest = chunk[cut:]
            else:
                rest += chunk
        if rest:
            yield rest + b"\n"

    def _begin(self, block: bytes) -> bytes:
        """Learn the dimension from the first line, and take off a header."""
        first, _, rest = block.partition(b"\n")
        header = word2vec_header(first)
        self._announced, self._dimension = header or (None, len(first.rstrip().split(b" ")) - 1)
        if self._dimension < 1:
            raise VectorFileError(f"{self._path}: line 1: expected a word and its values, got {first[:60]!r}")
        if header is None:
            self._blanks = first.count(b" ")
            return block
        self._line = 2
        self._blanks = rest.partition(b"\n")[0].count(b" ")
        return rest

    def _block(self, block: bytes) -> None:
        data = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        starts = np.concatenate([[0], ends + 1])[:-1]
        regular = int(np.count_nonzero(data == _BLANK)) == self._blanks * len(ends)
        for line in _likely_lines(data, starts, self._table) if regular else range(len(ends)):
            self._take(self._line + line, block[starts[line] : ends[line]].rstrip())
        self._count(ends - starts > (data[ends - 1] == _RETURN))

    def _take(self, number: int, line: bytes) -> None:
        """Check one line and keep it if it is wanted. A word may hold blanks: the values are counted from the end."""
        if not line:
            return
        fields = line.rsplit(b" ", self._dimension)
        if len(fields) != self._dimension + 1:
            self._fail(number, len(line.split()) - 1)
        word = self._keys.get(fields[0])
        if word is None or word in self._found:
            return
        try:
            with np.errstate(over="ignore"):  # what becomes infinite is refused below
                values = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            raise VectorFileError(f"{self._path}: line {number}: the values of {word!r} are not all numbers") from error
        self._found[word] = checked_vector(values, word, f"{self._path}: line {number}")

    def _count(self, full: NDArray[np.bool_]) -> None:
        """Count the lines of a block that are not empty; an empty one may stand at the end of the file only."""
        if not full.all():
            self._gap = self._gap or self._line + int(np.argmin(full))
        if self._gap and full.any() and self._line + int(np.flatnonzero(full)[-1]) > self._gap:
            self._fail(self._gap, 0)
        self._line += len(full)
        self._words += int(np.count_nonzero(full))

    def _fail(self, number: int, got: int) -> None:
        raise VectorFileError(
            f"{self._path}: line {number}: expected {self._dimension} values, got {got}; is the file truncated?"
        )


def _beginnings(keys: Collection[bytes]) -> NDArray[np.bool_]:
    """Which first three bytes of a line can begin a wanted word. The blank behind a short word is one of them."""
    table = np.zeros((256, 256, 256), dtype=bool)
    for key in keys:
        table[tuple((key + b" ")[:3])] = True
    return table.ravel()


def _likely_lines(data: NDArray[np.uint8], starts: NDArray[np.intp], table: NDArray[np.bool_]) -> list[int]:
    """Numbers of the lines that may hold a wanted word."""
    code = np.zeros(len(starts), dtype=np.int64)
    for place in range(3):
        code = code << 8 | data[np.minimum(starts + place, len(data) - 1)]
    lines: list[int] = np.flatnonzero(table[code]).tolist()
    return lines
