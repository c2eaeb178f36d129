"""Files of word vectors, read as a stream: only the words asked for are kept."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np

from biassay.encoders.vector_text import (
    CHUNK,
    DAMAGED,
    TextReader,
    WordVectors,
    checked_vector,
    read_chunk,
    word2vec_header,
)
from biassay.errors import UnknownNameError, VectorFileError

__all__ = ["FORMATS", "Format", "check_format", "file_fingerprint", "read_vectors"]

Format = Literal["text", "word2vec-binary", "npy"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SAMPLES, _SAMPLE_BYTES = 64, 1 << 16


def check_format(file_format: str) -> None:
    """Refuse the name of a format that there is not."""
    if file_format not in FORMATS:
        raise UnknownNameError("vector format", file_format, FORMATS, f"(one of {', '.join(FORMATS)})")


def file_fingerprint(path: Path) -> str:
    """Tells files apart without reading gigabytes: size, times of change, and 64 blocks spread over the content.

    The system sets the last of the times itself, so that an edit which keeps the others is seen; a copy counts as
    another file.
    """
    digest = hashlib.blake2b(digest_size=16)
    words = [path.with_name("words.txt")] if path.suffix.lower() == ".npy" else []
    try:
        for part in [path, *(file for file in words if file.exists())]:
            status = part.stat()
            digest.update(f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}".encode())
            with part.open("rb") as file:
                for i in range(_SAMPLES):
                    file.seek(i * max(0, status.st_size - _SAMPLE_BYTES) // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise VectorFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()


def read_vectors(path: Path, wanted: Collection[str], file_format: str | None = None) -> WordVectors:
    """Vectors of the wanted words that the file has; the first line of a repeated word counts.

    Every line is checked for its number of values, so that a truncated or mixed file is an error with its line.
    """
    if file_format is not None:
        check_format(file_format)
    try:
        chosen = file_format or _detect(path)
        if chosen == "npy":
            return _read_npy(path, wanted)
        with _opened(path) as file:
            return TextReader(path, wanted).read(file) if chosen == "text" else _read_binary(path, file, wanted)
    except DAMAGED as error:
        raise VectorFileError(f"{path}: the compressed file is truncated or damaged: {error}") from error
    except OSError as error:
        raise VectorFileError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    if path.name.lower().endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield cast("BufferedReader", file)
    else:
        with path.open("rb", buffering=CHUNK) as plain:
            yield cast("BufferedReader", plain)


def _detect(path: Path) -> Format:
    if path.suffix.lower() == ".npy":
        return "npy"
    with _opened(path) as file:
        header = word2vec_header(file.readline(CHUNK))
        first = file.readline(CHUNK).rstrip()
    if header is None or header[1] < 1:
        return "text"
    values = first.rsplit(b" ", header[1])[1:]
    return "text" if len(values) == header[1] and all(map(_is_number, values)) else "word2vec-binary"


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_binary(path: Path, file: BufferedReader, wanted: Collection[str]) -> WordVectors:
    keys = {word.encode(): word for word in wanted}
    header = word2vec_header(file.readline(100))
    if header is None:
        raise VectorFileError(f"{path}: line 1: a word2vec file begins with 'words dimension'")
    count, dimension = header
    size, found = 4 * dimension, WordVectors(dimension)
    buffer, at = b"", 0
    for number in range(1, count + 1):
        blank = buffer.find(b" ", at)
        if blank < 0 or len(buffer) < blank + 1 + size:
            buffer, at = buffer[at:] + read_chunk(path, file, f"word {number}"), 0
            blank = buffer.find(b" ", at)
        end = blank + 1 + size
        if blank < 0 or len(buffer) < end:
            raise VectorFileError(f"{path}: word {number} of {count}: the file ends there; is it truncated?")
        word = keys.get(buffer[at:blank].lstrip(b"\n"))
        if word is not None and word not in found:
            values = np.frombuffer(buffer, dtype="<f4", count=dimension, offset=blank + 1)
            found[word] = checked_vector(values.astype(np.float32), word, f"{path}: word {number}")
        at = end
    if (buffer[at:] + read_chunk(path, file, f"word {count}")).strip(b"\n"):
        raise VectorFileError(f"{path}: the file holds more than the {count} words of {dimension} values it announces")
    return found


def _read_npy(path: Path, wanted: Collection[str]) -> WordVectors:
    words_path = path.with_name("words.txt")
    if not words_path.exists():
        raise VectorFileError(f"{path}: an .npy file needs its words beside it, one a line, in {words_path}")
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        text = words_path.read_bytes().decode()
        words = text.removesuffix("\n").split("\n") if text else []
    except UnicodeDecodeError as error:
        raise VectorFileError(f"{words_path}: not UTF-8 text (byte {error.start})") from error
    except (ValueError, EOFError) as error:
        raise VectorFileError(f"{path}: not a readable .npy array: {error}") from error
    if not isinstance(matrix, np.ndarray):
        matrix.close()
        raise VectorFileError(f"{path}: expected one array, got an archive of several")
    if matrix.dtype.kind not in "fiu":
        raise VectorFileError(f"{path}: expected an array of real numbers, got {matrix.dtype}")
    if matrix.ndim != 2 or len(matrix) != len(words):
        raise VectorFileError(
            f"{path}: an array of shape {matrix.shape} does not fit the {len(words)} words in {words_path}"
        )
    keep, found = frozenset(wanted), WordVectors(matrix.shape[1])
    for row, word in enumerate(word.removesuffix("\r") for word in words):
        if word in keep and word not in found:
            with np.errstate(over="ignore"):
                values = np.asarray(matrix[row], dtype=np.float32)
            found[word] = checked_vector(values, word, f"{path}: row {row}")
    return found
