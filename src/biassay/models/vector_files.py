"""Read files of word vectors: GloVe, word2vec and fastText text, word2vec binary, NumPy arrays.

`read_vectors` looks up some words; `iter_file` iterates over the whole vocabulary.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol, cast, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, VectorFileError
from biassay.io import content_digest

Format = Literal["text", "word2vec-binary", "npy"]
FORMATS: tuple[Format, ...] = get_args(Format)
BLOCK_ROWS = 8192
N_FIRST_WORDS = 8192  # enough to see how a file orders its words
_CHUNK_BYTES = 1 << 20
_MAX_LINE_BYTES = 1 << 22
_MAX_WORDS, _MAX_DIMENSIONS = 10**12, 100_000  # beyond all models; a header alone never makes us allocate memory
_MAX_WORD_BYTES = 100  # per value of its vector: more than any word has
_GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)


class WordVectors(dict[str, NDArray[np.float32]]):
    """Vectors by word.

    Attributes
    ----------
    dimension : int
        Length of the vectors, known even if no word was found.
    ranks : dict of str to int
        Position of each word in its file, from 1.
    first_words : list of str
        First words of the file, requested or not.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.ranks: dict[str, int] = {}
        self.first_words: list[str] = []


@dataclass(frozen=True, eq=False)
class FileBlock:
    """Consecutive words of a vector file, whose values are parsed on demand.

    Attributes
    ----------
    words : list of bytes
        Words as stored, duplicates included.
    start : int
        Index of the first word in the file, from 0.
    dimension : int
        Length of the vectors.
    unit : {"line", "word", "row"}
        Unit that error messages count.
    offset : int
        Number of the file's first word in that unit.
    done, total : int
        Progress through the file: rows of an array, bytes on disk of any other file.
    parse : callable
        Function from rows of the block to their vectors, float32 of shape (rows, dimension).
    """

    words: list[bytes]
    start: int
    dimension: int
    unit: str
    offset: int
    done: int
    total: int
    parse: Callable[[Sequence[int]], NDArray[np.float32]]

    def locate(self, row: int) -> str:
        """Return the location of a word for error messages, such as ``line 17``."""
        return f"{self.unit} {self.offset + self.start + row}"


def validate_format(file_format: str | None) -> None:
    """Raise UnknownNameError unless the format is known or None."""
    if file_format is not None and file_format not in FORMATS:
        raise UnknownNameError("vector format", file_format, FORMATS, f"(one of {', '.join(FORMATS)})")


def validate_vector(values: NDArray[np.float32], word: str, where: str) -> NDArray[np.float32]:
    """Return a vector unchanged, or raise VectorFileError if it has no direction.

    Parameters
    ----------
    values : ndarray of float32
        The vector.
    word : str
        Its word.
    where : str
        File and line for the error message.

    Returns
    -------
    ndarray of float32
        `values`.
    """
    if not np.isfinite(values).all():
        raise VectorFileError(f"{where}: the vector of {word!r} holds a value that is not finite")
    if not values.any():
        raise VectorFileError(f"{where}: the vector of {word!r} is zero, so it has no direction")
    return values


def file_fingerprint(path: Path) -> str:
    """Return a digest of a vector file, including ``words.txt`` beside an .npy file."""
    words = [path.with_name("words.txt")] if path.suffix.lower() == ".npy" else []
    try:
        digests = [content_digest(part) for part in [path, *(file for file in words if file.is_file())]]
    except OSError as error:
        raise VectorFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    return hashlib.blake2b(" ".join(digests).encode(), digest_size=16).hexdigest()


def read_vectors(path: Path, wanted: Collection[str], file_format: str | None = None) -> WordVectors:
    """Read the vectors of some words.

    Every line is checked for its number of values, so that a truncated or mixed file raises an
    error with its line. Values are parsed and checked only for the wanted words.

    Parameters
    ----------
    path : Path
        Vector file.
    wanted : collection of str
        Words to look up. Words that the file lacks are left out of the result.
    file_format : {"text", "word2vec-binary", "npy"}, optional
        Format of the file. If None, it is detected from the name and the first lines.

    Returns
    -------
    WordVectors
        Vectors in the order of the file; the first occurrence of a repeated word counts.
    """
    missing = {word.encode(): word for word in wanted}
    vectors = WordVectors(0)
    for block in iter_blocks(path, file_format):
        vectors.dimension = block.dimension
        if len(vectors.first_words) < N_FIRST_WORDS:
            more = block.words[: N_FIRST_WORDS - len(vectors.first_words)]
            vectors.first_words += [word.decode(errors="replace") for word in more]
        if missing.keys().isdisjoint(block.words):
            continue
        first_rows: dict[bytes, int] = {}
        for row, key in enumerate(block.words):
            if key in missing:
                first_rows.setdefault(key, row)
        parsed = block.parse(list(first_rows.values()))
        for (key, row), values in zip(first_rows.items(), parsed, strict=True):
            word = missing.pop(key)
            vectors[word] = validate_vector(values, word, f"{path}: {block.locate(row)}")
            vectors.ranks[word] = block.start + row + 1
    return vectors


def iter_blocks(path: Path, file_format: str | None = None) -> Iterator[FileBlock]:
    """Iterate over a vector file, a few megabytes at a time.

    Parameters
    ----------
    path : Path
        Vector file, gzip-compressed if its name ends with .gz.
    file_format : {"text", "word2vec-binary", "npy"}, optional
        Format of the file. If None, it is detected from the name and the first lines.

    Yields
    ------
    FileBlock
        Words in the order of the file.

    Raises
    ------
    VectorFileError
        If the file cannot be read or is damaged; the message names the file and the line.
    """
    validate_format(file_format)
    try:
        file_format = file_format or _detect_format(path)
        if file_format == "npy":
            yield from _iter_npy(path)
        else:
            with _open(path) as file:
                yield from (_iter_text if file_format == "text" else _iter_binary)(path, file)
    except _GZIP_ERRORS as error:
        raise VectorFileError(f"{path}: the compressed file is truncated or damaged: {error}") from error
    except OSError as error:
        raise VectorFileError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def _open(path: Path) -> Iterator[BufferedReader]:
    if path.name.lower().endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield cast("BufferedReader", file)
    else:
        with path.open("rb") as plain:
            yield plain


def _detect_format(path: Path) -> Format:
    if path.suffix.lower() == ".npy":
        return "npy"
    with _open(path) as file:
        header = _parse_header(path, file.readline(_MAX_LINE_BYTES))
        first = file.readline(_MAX_LINE_BYTES).rstrip()
    if header is None:
        return "text"
    values = first.rsplit(b" ", header[1])[1:]
    try:
        return "text" if len([float(value) for value in values]) == header[1] else "word2vec-binary"
    except ValueError:
        return "word2vec-binary"


def _parse_header(path: Path, line: bytes) -> tuple[int, int] | None:
    """Return words and dimension if the line is a word2vec header."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    words, dimension = map(float, fields)  # int() refuses a number of 5,000 digits
    _validate_size(words, dimension, f"{path}: line 1")
    return int(words), int(dimension)


def _validate_size(words: float, dimension: float, where: str) -> None:
    if not (1 <= words <= _MAX_WORDS and 1 <= dimension <= _MAX_DIMENSIONS):
        raise VectorFileError(
            f"{where}: announces {words:,.15g} words of {dimension:,.15g} values; a file of vectors has from 1 to "
            f"{_MAX_WORDS:,} words of 1 to {_MAX_DIMENSIONS:,} values"
        )


def _read_chunk(path: Path, file: BufferedReader, where: str) -> bytes:
    """Read a few megabytes.

    Data before a fault of the compression are returned first, so that the error names the right line.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        while size < _CHUNK_BYTES and (piece := file.read1(_CHUNK_BYTES)):
            pieces.append(piece)
            size += len(piece)
    except _GZIP_ERRORS as error:
        if not pieces:
            raise VectorFileError(f"{path}: {where}: the compressed file is truncated or damaged: {error}") from error
    return b"".join(pieces)


def _get_position(file: BufferedReader) -> int:
    """Return the number of bytes read from disk, before decompression."""
    return int(getattr(file, "fileobj", file).tell())


# Text


def _iter_lines(path: Path, file: BufferedReader) -> Iterator[tuple[int, list[bytes], NDArray[np.uint32]]]:
    """Iterate over lists of lines, with the number of the first line and the count of blanks per line."""
    number, rest = 1, b""
    while chunk := _read_chunk(path, file, f"line {number}"):
        text = rest + chunk
        end = text.rfind(b"\n") + 1
        text, rest = text[:end], text[end:]
        if text:
            lines = text.split(b"\n")[:-1]
            yield number, lines, _count_blanks(text)
            number += len(lines)
        if len(rest) > _MAX_LINE_BYTES:
            raise VectorFileError(
                f"{path}: line {number}: longer than {_MAX_LINE_BYTES:,} bytes; is this a file of vectors?"
            )
    if rest:
        yield number, [rest], _count_blanks(rest + b"\n")


def _count_blanks(text: bytes) -> NDArray[np.uint32]:
    """Count the blanks of each line, except one at its end, with which fastText ends all lines.

    Three times as fast as `bytes.count` line by line.
    """
    data = np.frombuffer(text, dtype=np.uint8)
    is_blank = (data == ord(" ")).view(np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    blanks: NDArray[np.uint32] = np.add.reduceat(is_blank, starts, dtype=np.uint32) - is_blank[ends - 1]
    return blanks


def _iter_text(path: Path, file: BufferedReader) -> Iterator[FileBlock]:
    """Iterate over a text file: one word and its values per line, with or without a word2vec header."""
    header: tuple[int, int] | None = None
    total = path.stat().st_size
    dimension = n_words = empty_line = last_line = 0
    for number, lines, blanks in _iter_lines(path, file):
        last_line = number + len(lines)
        lines = [line.rstrip() for line in lines]
        if number == 1:
            header = _parse_header(path, lines[0])
            dimension = header[1] if header else lines[0].count(b" ")
            if dimension < 1:
                raise VectorFileError(f"{path}: line 1: expected a word and its values, got {lines[0][:60]!r}")
            _validate_size(1, dimension, f"{path}: line 1")
            if header:
                number, lines, blanks = 2, lines[1:], blanks[1:]
        n_lines = len(lines)
        while lines and not lines[-1]:
            lines.pop()
        if lines and empty_line:
            _raise_line_error(path, empty_line, dimension, b"")
        if len(lines) < n_lines:
            empty_line = empty_line or number + len(lines)
        if lines:
            words = _split_words(path, number, lines, blanks[: len(lines)], dimension)
            parse = partial(_parse_lines, path, number, lines, words, dimension)
            yield FileBlock(words, n_words, dimension, "line", 2 if header else 1, _get_position(file), total, parse)
            n_words += len(words)
    if not dimension:
        raise VectorFileError(f"{path}: line 1: the file is empty")
    if header and header[0] != n_words:
        doubt = "; is it truncated?" if n_words < header[0] else ""
        raise VectorFileError(
            f"{path}: line {last_line}: the file has {n_words} words and announces {header[0]}{doubt}"
        )


def _split_words(
    path: Path, number: int, lines: Sequence[bytes], blanks: NDArray[np.uint32], dimension: int
) -> list[bytes]:
    """Return the word of each line; raise VectorFileError where the number of values is wrong."""
    words = [line.partition(b" ")[0] for line in lines]
    for row in np.flatnonzero(blanks != dimension).tolist():  # blanks within the word or at the end, or a fault
        word, *values = lines[row].rsplit(b" ", dimension)
        if len(values) != dimension:
            _raise_line_error(path, number + row, dimension, lines[row])
        words[row] = word
    return words


def _raise_line_error(path: Path, number: int, dimension: int, line: bytes) -> NoReturn:
    n_values = max(len(line.split()) - 1, 0)
    raise VectorFileError(f"{path}: line {number}: expected {dimension} values, got {n_values}; is the file truncated?")


def _parse_lines(
    path: Path, number: int, lines: Sequence[bytes], words: Sequence[bytes], dimension: int, rows: Sequence[int]
) -> NDArray[np.float32]:
    """Parse the values of some lines of a block that starts at line `number`."""
    texts = [lines[row][len(words[row]) + 1 :].decode("ascii", errors="replace") for row in rows]
    with np.errstate(over="ignore"):  # infinite values are refused later
        try:
            return np.loadtxt(texts, dtype=np.float32, delimiter=" ", comments=None, ndmin=2)
        except ValueError:  # a fault, or a rare way to write a number
            vectors = np.empty((len(rows), dimension), dtype=np.float32)
        for vector, row in zip(vectors, rows, strict=True):
            try:
                vector[:] = np.array(lines[row].rsplit(b" ", dimension)[1:], dtype=np.float32)
            except ValueError as error:
                word = words[row].decode(errors="replace")
                raise VectorFileError(
                    f"{path}: line {number + row}: the values of {word!r} are not all numbers"
                ) from error
    return vectors


# word2vec binary


def _iter_binary(path: Path, file: BufferedReader) -> Iterator[FileBlock]:
    """Iterate over a word2vec binary file: a header, then each word, a blank and its values as float32."""
    header = _parse_header(path, file.readline(100))
    if header is None:
        raise VectorFileError(f"{path}: line 1: a word2vec file begins with 'words dimension'")
    count, dimension = header
    total, n_bytes = path.stat().st_size, 4 * dimension
    n_words, rest = 0, b""
    while n_words < count:
        chunk = rest + _read_chunk(path, file, f"word {n_words + 1}")
        words: list[bytes] = []
        values: list[int] = []  # offset of the values of each word
        end = 0
        while n_words + len(words) < count and 0 <= (blank := chunk.find(b" ", end)) < len(chunk) - n_bytes:
            words.append(chunk[end:blank].lstrip(b"\n"))
            values.append(blank + 1)
            end = blank + 1 + n_bytes
        if not words:
            raise VectorFileError(f"{path}: word {n_words + 1} of {count}: the file ends there; is it truncated?")
        parse = partial(_parse_binary, chunk, values, dimension)
        yield FileBlock(words, n_words, dimension, "word", 1, _get_position(file), total, parse)
        n_words += len(words)
        rest = chunk[end:]
    if (rest + _read_chunk(path, file, f"word {count}")).strip(b"\n"):
        raise VectorFileError(f"{path}: the file holds more than the {count} words of {dimension} values in its header")


def _parse_binary(chunk: bytes, values: Sequence[int], dimension: int, rows: Sequence[int]) -> NDArray[np.float32]:
    packed = b"".join(chunk[values[row] : values[row] + 4 * dimension] for row in rows)
    return np.frombuffer(packed, dtype="<f4").reshape(len(rows), dimension).astype(np.float32, copy=False)


# NumPy


def _iter_npy(path: Path) -> Iterator[FileBlock]:
    """Iterate over an array (words, dimension) that stays on disk, with its words in ``words.txt`` beside it."""
    words_path = path.with_name("words.txt")
    if not words_path.is_file():
        raise VectorFileError(f"{path}: an .npy file needs its words beside it, one per line, in {words_path}")
    matrix = _map_array(path)
    if matrix.dtype.kind not in "fiu":
        raise VectorFileError(f"{path}: expected an array of real numbers, got {matrix.dtype}")
    if words_path.stat().st_size > _CHUNK_BYTES + _MAX_WORD_BYTES * matrix.size:
        raise VectorFileError(f"{words_path}: too long to hold the words of an array of shape {matrix.shape}")
    words = _read_words(words_path)
    if matrix.ndim != 2 or len(matrix) != len(words):
        raise VectorFileError(
            f"{path}: an array of shape {matrix.shape} does not fit the {len(words)} words in {words_path}"
        )
    _validate_size(len(matrix), matrix.shape[1], str(path))
    for start in range(0, len(words), BLOCK_ROWS):
        part = words[start : start + BLOCK_ROWS]
        parse = partial(_parse_array, matrix[start : start + BLOCK_ROWS])
        yield FileBlock(part, start, matrix.shape[1], "row", 0, start + len(part), len(words), parse)


def _map_array(path: Path) -> NDArray[Any]:
    try:
        with np.errstate(over="ignore"):  # NumPy multiplies a false shape before it refuses it
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy evaluates the header, so a damaged one raises errors of many types
        raise VectorFileError(f"{path}: not a readable .npy array: {error}") from error
    if not isinstance(matrix, np.ndarray):
        matrix.close()
        raise VectorFileError(f"{path}: expected one array, got an archive of several")
    return matrix


def _read_words(path: Path) -> list[bytes]:
    content = path.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise VectorFileError(f"{path}: not UTF-8 text (byte {error.start})") from error
    return [word.removesuffix(b"\r") for word in content.removesuffix(b"\n").split(b"\n")] if content else []


def _parse_array(matrix: NDArray[Any], rows: Sequence[int]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # infinite values are refused later
        return np.array(matrix[np.asarray(rows)], dtype=np.float32)


# Whole vocabularies


@dataclass(frozen=True, eq=False)
class VocabularyBlock:
    """Some words of a vocabulary with their vectors, in the order of the file.

    Attributes
    ----------
    words : list of str
        Words as written in the file, each once in the whole stream. Bytes that are not UTF-8
        become U+FFFD; words that are equal after this replacement count as one word.
    vectors : ndarray of float32, shape (len(words), dimension)
        Vectors, all finite and none zero.
    done, total : int
        Progress: rows of an array, or bytes on disk of any other file. They are equal in the last
        block, except for a compressed file, which ends with a checksum.
    skipped : int
        Number of words skipped so far because their vector is zero.
    unit : {"words", "bytes"}
        Unit of `done` and `total`.
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

    def vocabulary(self) -> Iterator[VocabularyBlock]:
        """Iterate over all words with their vectors."""


def iter_file(path: Path, file_format: str | None = None) -> Iterator[VocabularyBlock]:
    """Iterate over all words of a vector file.

    Every line is checked. Zero vectors, of which published files hold a few, are skipped and
    counted. Only the words stay in memory, to detect duplicates.

    Parameters
    ----------
    path : Path
        Vector file.
    file_format : {"text", "word2vec-binary", "npy"}, optional
        Format of the file. If None, it is detected from the name and the first lines.

    Yields
    ------
    VocabularyBlock
        `BLOCK_ROWS` words, fewer in the last block; the first occurrence of a repeated word counts.
    """
    seen: set[str] = set()
    skipped, rows = 0, BLOCK_ROWS
    words: list[str] = []
    parts: list[NDArray[np.float32]] = []
    for block in iter_blocks(path, file_format):
        vectors = _parse_all(path, block)
        is_zero = (vectors == 0).all(axis=1)
        new = []
        for row, word in enumerate([word.decode(errors="replace") for word in block.words]):
            if word in seen:
                continue
            seen.add(word)
            if is_zero[row]:
                skipped += 1
            else:
                new.append(row)
                words.append(word)
        parts.append(vectors[new])
        done, total, unit = block.done, block.total, "words" if block.unit == "row" else "bytes"
        # One word is always held back, so that the last block reports the whole file as done.
        n_ready = (len(words) - 1) // rows * rows
        if n_ready > 0:
            matrix = np.concatenate(parts)
            for start in range(0, n_ready, rows):
                stop = start + rows
                yield VocabularyBlock(words[start:stop], matrix[start:stop], done, total, skipped, unit)
            words, parts = words[n_ready:], [matrix[n_ready:]]
    if not words:
        raise VectorFileError(f"{path}: the file holds no vector that has a direction")
    yield VocabularyBlock(words, np.concatenate(parts), done, total, skipped, unit)


def iter_arrays(words: Sequence[str], vectors: NDArray[np.float32]) -> Iterator[VocabularyBlock]:
    """Iterate over distinct words and their vectors in memory, without checking them again."""
    for start in range(0, len(words), BLOCK_ROWS):
        part = list(words[start : start + BLOCK_ROWS])
        yield VocabularyBlock(part, vectors[start : start + BLOCK_ROWS], start + len(part), len(words))


def _parse_all(path: Path, block: FileBlock) -> NDArray[np.float32]:
    """Parse all vectors of a block; raise VectorFileError if one is not finite."""
    vectors = block.parse(range(len(block.words)))
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        row = int(np.argmin(is_finite))
        word = block.words[row].decode(errors="replace")
        validate_vector(vectors[row], word, f"{path}: {block.locate(row)}")
    return vectors
