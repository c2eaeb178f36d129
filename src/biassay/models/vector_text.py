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

__all__ = [
    "BEGINNING",
    "CHUNK",
    "DAMAGED",
    "TextLines",
    "TextReader",
    "WordVectors",
    "check_size",
    "checked_vector",
    "read_chunk",
    "word2vec_header",
]

CHUNK = 1 << 22
BEGINNING = 8192  # words: enough to see in which order a file has them
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)
_NEWLINE, _RETURN, _BLANK = 10, 13, 32
_MOST_WORDS, _MOST_DIMENSIONS = 10**12, 100_000  # beyond all models; memory is never taken on a header's word


class WordVectors(dict[str, NDArray[np.float32]]):
    """Vectors by word, and their dimension even where no word was found.

    Attributes
    ----------
    places : word -> int
        Where in the file each word stands, from 1.
    beginning : list of str
        The first words of the file, whether they were asked for or not.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.places: dict[str, int] = {}
        self.beginning: list[str] = []


def word2vec_header(path: Path, line: bytes) -> tuple[int, int] | None:
    """(words, dimension) if the line is a word2vec header."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    words, dimension = map(float, fields)  # of any length: a whole number of 5,000 digits is refused by int
    check_size(words, dimension, f"{path}: line 1")
    return int(words), int(dimension)


def check_size(words: float, dimension: float, where: str) -> None:
    """Refuse an impossible size."""
    if not (1 <= words <= _MOST_WORDS and 1 <= dimension <= _MOST_DIMENSIONS):
        raise VectorFileError(
            f"{where}: announces {words:,.15g} words of {dimension:,.15g} values; a file of vectors has from 1 to "
            f"{_MOST_WORDS:,} words of 1 to {_MOST_DIMENSIONS:,} values"
        )


def read_chunk(path: Path, file: BufferedReader, where: str) -> bytes:
    """Some megabytes; what comes before a fault is handed out first, so that the fault gets its line."""
    pieces: list[bytes] = []
    try:
        while sum(map(len, pieces)) < CHUNK and (piece := file.read1(CHUNK)):
            pieces.append(piece)
    except DAMAGED as error:
        if not pieces:
            raise damaged(path, where, error) from error
    return b"".join(pieces)


def damaged(path: Path, where: str, error: Exception) -> VectorFileError:
    return VectorFileError(f"{path}: {where}: the compressed file is truncated or damaged: {error}")


def checked_vector(values: NDArray[np.float32], word: str, where: str) -> NDArray[np.float32]:
    """Refuse a vector without a direction."""
    if not np.isfinite(values).all():
        raise VectorFileError(f"{where}: the vector of {word!r} holds a value that is not finite")
    if not values.any():
        raise VectorFileError(f"{where}: the vector of {word!r} is zero, so it has no direction")
    return values


class TextLines:
    """The lines of one file, block by block: what they hold is read by those who derive from this."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._announced: int | None = None
        self._dimension = self._blanks = self._words = self._gap = 0
        self._line = 1

    def _checked_blocks(self, file: BufferedReader) -> Iterator[memoryview]:
        """Blocks of lines without the header, each to be used before the next is asked for.

        The reader counts each by ``_count``; at the end the sum is checked.
        """
        for block in self._blocks(file):
            yield block[self._begin(bytes(block)) :] if not self._dimension else block
        if not self._dimension:
            raise VectorFileError(f"{self._path}: line 1: the file is empty")
        if self._announced not in (None, self._words):
            count = f"the file has {self._words} words and announces {self._announced}"
            doubt = "; is it truncated?" if self._words < (self._announced or 0) else ""
            raise VectorFileError(f"{self._path}: line {self._line}: {count}{doubt}")

    def _blocks(self, file: BufferedReader) -> Iterator[memoryview]:
        """Whole lines, some megabytes at a time, in one place: fresh memory would cost more than reading."""
        buffer = bytearray(2 * CHUNK + 1)
        view, rest = memoryview(buffer), 0
        while read := self._fill(file, view[rest : rest + CHUNK]):
            end = rest + read
            cut = buffer.rfind(b"\n", rest, end) + 1
            if cut:
                yield view[:cut]
                rest = end - cut
                buffer[:rest] = buffer[cut:end]
            else:
                rest = end
                if rest > CHUNK:
                    raise VectorFileError(
                        f"{self._path}: line {self._line}: longer than {CHUNK:,} bytes; is this a file of vectors?"
                    )
        if rest:
            buffer[rest] = _NEWLINE
            yield view[: rest + 1]

    def _fill(self, file: BufferedReader, room: memoryview) -> int:
        """Read until there is no room, or no more; what comes before a fault is handed out first."""
        filled = 0
        try:
            while filled < len(room) and (read := file.readinto1(room[filled:])):
                filled += read
        except DAMAGED as error:
            if not filled:
                raise damaged(self._path, f"line {self._line}", error) from error
        return filled

    def _begin(self, block: bytes) -> int:
        """Learn the dimension from the first line. Where the vectors begin: behind a header."""
        first, _, rest = block.partition(b"\n")
        header = word2vec_header(self._path, first)
        self._announced, self._dimension = header or (None, len(first.rstrip().split(b" ")) - 1)
        if self._dimension < 1:
            raise VectorFileError(f"{self._path}: line 1: expected a word and its values, got {first[:60]!r}")
        check_size(1, self._dimension, f"{self._path}: line 1")
        if header is None:
            self._blanks = first.count(b" ")
            return 0
        self._line = 2
        self._blanks = rest.partition(b"\n")[0].count(b" ")
        return len(first) + 1

    def _count(self, full: NDArray[np.bool_]) -> None:
        """Count the lines of a block that are not empty; an empty one may stand at the end of the file only."""
        if not full.all():
            self._gap = self._gap or self._line + int(np.argmin(full))
        if self._gap and full.any() and self._line + int(np.flatnonzero(full)[-1]) > self._gap:
            self._fail(self._gap, 0)
        self._line += len(full)
        self._words += int(np.count_nonzero(full))

    def _fields(self, number: int, line: bytes) -> list[bytes]:
        """Word and values of one line. A word may hold blanks: the values are counted from the end."""
        fields = line.rsplit(b" ", self._dimension)
        if len(fields) != self._dimension + 1:
            self._fail(number, len(line.split()) - 1)
        return fields

    def _fail(self, number: int, got: int) -> None:
        raise VectorFileError(
            f"{self._path}: line {number}: expected {self._dimension} values, got {got}; is the file truncated?"
        )

    def _no_numbers(self, number: int, word: str) -> VectorFileError:
        return VectorFileError(f"{self._path}: line {number}: the values of {word!r} are not all numbers")


class TextReader(TextLines):
    """Reads the wanted words of one file.

    Only lines that may hold a wanted word, or whose number of blanks is unusual, become Python objects: that is what
    makes it nearly as quick as reading the file. An unusual line is either faulty, or has a word with blanks inside.
    """

    def __init__(self, path: Path, wanted: Collection[str]) -> None:
        super().__init__(path)
        self._keys = {word.encode(): word for word in wanted}
        self._beginnings = _Beginnings(self._keys)
        self._found = WordVectors(0)
        self._mask = np.empty(2 * CHUNK + 1, dtype=bool)

    def read(self, file: BufferedReader) -> WordVectors:
        for block in self._checked_blocks(file):
            self._block(block)
        self._found.dimension = self._dimension
        return self._found

    def _block(self, block: memoryview) -> None:
        data = np.frombuffer(block, dtype=np.uint8)
        mask = self._mask[: len(data)]
        ends = np.flatnonzero(np.equal(data, _NEWLINE, out=mask))
        starts = np.concatenate([[0], ends + 1])[:-1]
        beginning = self._found.beginning
        for start, end in zip(*(array[: BEGINNING - len(beginning)].tolist() for array in (starts, ends)), strict=True):
            beginning.append(bytes(block[start:end]).partition(b" ")[0].decode(errors="replace"))
        blanks = np.diff(_count_before(np.equal(data, _BLANK, out=mask), ends), prepend=0)
        for line in np.flatnonzero(self._beginnings.of(data, starts) | (blanks != self._blanks)).tolist():
            self._take(self._line + line, bytes(block[starts[line] : ends[line]]).rstrip())
        self._count(ends - starts > (data[ends - 1] == _RETURN))

    def _take(self, number: int, line: bytes) -> None:
        """Check one line and keep it if it is wanted."""
        if not line:
            return
        fields = self._fields(number, line)
        word = self._keys.get(fields[0])
        if word is None or word in self._found:
            return
        try:
            with np.errstate(over="ignore"):  # what becomes infinite is refused below
                values = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            raise self._no_numbers(number, word) from error
        self._found[word] = checked_vector(values, word, f"{self._path}: line {number}")
        self._found.places[word] = number if self._announced is None else number - 1


class _Beginnings:
    """How wanted words begin: three bytes rule most lines out, and the first eight of the first word nearly all."""

    def __init__(self, keys: Collection[bytes]) -> None:
        lines = [key + b" " for key in keys]
        table = np.zeros((256, 256, 256), dtype=bool)
        for line in lines:
            table[tuple(line[:3])] = True
        self._three = table.ravel()
        starts = np.cumsum([0, *map(len, lines)])[:-1]
        self._eight = np.unique(_first_words(np.frombuffer(b"".join(lines), dtype=np.uint8), starts))

    def of(self, data: NDArray[np.uint8], starts: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which lines begin as a wanted word does."""
        code = np.zeros(len(starts), dtype=np.int64)
        for place in range(3):
            code = code << 8 | data[np.minimum(starts + place, len(data) - 1)]
        found = self._three[code]
        found[found] = np.isin(_first_words(data, starts[found]), self._eight)
        return np.asarray(found)


def _first_words(data: NDArray[np.uint8], starts: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The first eight bytes of each line as a number, zeros from the first blank on."""
    code, inside = np.zeros(len(starts), dtype=np.uint64), np.ones(len(starts), dtype=bool)
    for place in range(8):
        byte = data[np.minimum(starts + place, len(data) - 1)]
        inside &= byte != _BLANK
        code = code << np.uint64(8) | np.where(inside, byte, 0).astype(np.uint64)
    return code


def _count_before(mask: NDArray[np.bool_], places: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many of ``mask`` are set before each place, by counting bits, 64 at a time."""
    bits = np.packbits(mask, bitorder="little")
    words = np.concatenate([bits, np.zeros(8 + -len(bits) % 8, dtype=np.uint8)]).view("<u8")
    before = np.concatenate([[0], np.cumsum(np.bitwise_count(words), dtype=np.int64)])
    word, bit = places >> 6, (places & 63).astype(np.uint64)
    within = np.bitwise_count(words[word] & ((np.uint64(1) << bit) - np.uint64(1)))
    return np.asarray(before[word] + within, dtype=np.int64)
