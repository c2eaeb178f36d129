"""Files of word vectors, read as a stream: only the words asked for are kept."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, VectorFileError
from biassay.files import content_digest
from biassay.models.vector_text import (
    BEGINNING,
    CHUNK,
    DAMAGED,
    TextReader,
    WordVectors,
    check_size,
    checked_vector,
    read_chunk,
    word2vec_header,
)

__all__ = [
    "FORMATS",
    "Format",
    "binary_chunks",
    "binary_header",
    "check_format",
    "detect_format",
    "faults_named",
    "file_fingerprint",
    "npy_contents",
    "opened",
    "read_vectors",
]

Format = Literal["text", "word2vec-binary", "npy"]
FORMATS: tuple[Format, ...] = get_args(Format)
_WORD_BYTES = 100  # for each value of its vector: more than any word has


def check_format(file_format: str) -> None:
    """Refuse an unknown format."""
    if file_format not in FORMATS:
        raise UnknownNameError("vector format", file_format, FORMATS, f"(one of {', '.join(FORMATS)})")


def file_fingerprint(path: Path) -> str:
    """A digest of what a file of vectors holds; of an .npy file also of the words beside it."""
    words = [path.with_name("words.txt")] if path.suffix.lower() == ".npy" else []
    try:
        parts = [content_digest(part) for part in [path, *(file for file in words if file.is_file())]]
    except OSError as error:
        raise VectorFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=16).hexdigest()


def read_vectors(path: Path, wanted: Collection[str], file_format: str | None = None) -> WordVectors:
    """Vectors of the wanted words that the file has; the first line of a repeated word counts.

    Every line is checked for its number of values, so that a truncated or mixed file is an error with its line.
    """
    if file_format is not None:
        check_format(file_format)
    with faults_named(path):
        chosen = file_format or detect_format(path)
        if chosen == "npy":
            return _read_npy(path, wanted)
        with opened(path) as file:
            return TextReader(path, wanted).read(file) if chosen == "text" else _read_binary(path, file, wanted)


@contextmanager
def faults_named(path: Path) -> Iterator[None]:
    """A fault of the system or of the compression becomes an error that names the file."""
    try:
        yield
    except DAMAGED as error:
        raise VectorFileError(f"{path}: the compressed file is truncated or damaged: {error}") from error
    except OSError as error:
        raise VectorFileError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """The file, unpacked if its name ends with .gz."""
    if path.name.lower().endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield cast("BufferedReader", file)
    else:
        with path.open("rb", buffering=CHUNK) as plain:
            yield cast("BufferedReader", plain)


def detect_format(path: Path) -> Format:
    """The format, from the file's name and its first lines."""
    if path.suffix.lower() == ".npy":
        return "npy"
    with opened(path) as file:
        header = word2vec_header(path, file.readline(CHUNK))
        first = file.readline(CHUNK).rstrip()
    if header is None:
        return "text"
    values = first.rsplit(b" ", header[1])[1:]
    return "text" if len(values) == header[1] and all(map(_is_number, values)) else "word2vec-binary"


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def binary_header(path: Path, file: BufferedReader) -> tuple[int, int]:
    """(words, dimension) of a word2vec binary file."""
    header = word2vec_header(path, file.readline(100))
    if header is None:
        raise VectorFileError(f"{path}: line 1: a word2vec file begins with 'words dimension'")
    return header


def binary_chunks(
    path: Path, file: BufferedReader, count: int, dimension: int
) -> Iterator[tuple[bytes, list[tuple[int, int]]]]:
    """Some megabytes at a time, and where in them each word begins and ends. Its values are one byte behind that."""
    size, number, rest = 4 * dimension, 0, b""
    while number < count:
        buffer, places, at = rest + read_chunk(path, file, f"word {number + 1}"), [], 0
        while number < count and 0 <= (blank := buffer.find(b" ", at)) < len(buffer) - size:
            places.append((at, blank))
            at = blank + 1 + size
            number += 1
        if not places:
            raise VectorFileError(f"{path}: word {number + 1} of {count}: the file ends there; is it truncated?")
        rest = buffer[at:]
        yield buffer, places
    if (rest + read_chunk(path, file, f"word {count}")).strip(b"\n"):
        raise VectorFileError(f"{path}: the file holds more than the {count} words of {dimension} values it announces")


def _read_binary(path: Path, file: BufferedReader, wanted: Collection[str]) -> WordVectors:
    keys = {word.encode(): word for word in wanted}
    count, dimension = binary_header(path, file)
    found, first = WordVectors(dimension), 1
    for buffer, places in binary_chunks(path, file, count, dimension):
        for number, (start, blank) in enumerate(places, first):
            key = buffer[start:blank].lstrip(b"\n")
            if number <= BEGINNING:
                found.beginning.append(key.decode(errors="replace"))
            word = keys.get(key)
            if word is not None and word not in found:
                values = np.frombuffer(buffer, dtype="<f4", count=dimension, offset=blank + 1)
                found[word] = checked_vector(values.astype(np.float32), word, f"{path}: word {number}")
                found.places[word] = number
        first += len(places)
    return found


def npy_contents(path: Path, errors: Literal["strict", "replace"] = "strict") -> tuple[NDArray[Any], list[str]]:
    """The array, left on the disk, and the words beside it; ``errors`` says what to do with words not in UTF-8."""
    words_path = path.with_name("words.txt")
    if not words_path.is_file():
        raise VectorFileError(f"{path}: an .npy file needs its words beside it, one a line, in {words_path}")
    matrix = _mapped(path)
    if matrix.dtype.kind not in "fiu":
        raise VectorFileError(f"{path}: expected an array of real numbers, got {matrix.dtype}")
    if words_path.stat().st_size > CHUNK + _WORD_BYTES * matrix.size:
        raise VectorFileError(f"{words_path}: too long to hold the words of an array of shape {matrix.shape}")
    words = _lines(words_path, errors)
    if matrix.ndim != 2 or len(matrix) != len(words):
        raise VectorFileError(
            f"{path}: an array of shape {matrix.shape} does not fit the {len(words)} words in {words_path}"
        )
    check_size(len(matrix), matrix.shape[1], str(path))
    return matrix, words


def _mapped(path: Path) -> NDArray[Any]:
    """The array of an .npy file, left on the disk."""
    try:
        with np.errstate(over="ignore"):  # of the product of a false shape, which NumPy then refuses
            matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # the header is Python source: what a damaged one raises has no one type
        raise VectorFileError(f"{path}: not a readable .npy array: {error}") from error
    if not isinstance(matrix, np.ndarray):
        matrix.close()
        raise VectorFileError(f"{path}: expected one array, got an archive of several")
    return matrix


def _lines(path: Path, errors: Literal["strict", "replace"]) -> list[str]:
    try:
        text = path.read_bytes().decode(errors=errors)
    except UnicodeDecodeError as error:
        raise VectorFileError(f"{path}: not UTF-8 text (byte {error.start})") from error
    return [word.removesuffix("\r") for word in text.removesuffix("\n").split("\n")] if text else []


def _read_npy(path: Path, wanted: Collection[str]) -> WordVectors:
    matrix, words = npy_contents(path)
    keep, found = frozenset(wanted), WordVectors(matrix.shape[1])
    found.beginning = words[:BEGINNING]
    for row, word in enumerate(words):
        if word in keep and word not in found:
            with np.errstate(over="ignore"):
                values = np.asarray(matrix[row], dtype=np.float32)
            found[word] = checked_vector(values, word, f"{path}: row {row}")
            found.places[word] = row + 1
    return found
