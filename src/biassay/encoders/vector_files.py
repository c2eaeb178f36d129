"""Files of word vectors, read as a stream: only the words asked for are kept."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, VectorFileError

__all__ = ["FORMATS", "Format", "file_fingerprint", "read_vectors"]

Format = Literal["text", "word2vec-binary", "npy"]
FORMATS: tuple[Format, ...] = get_args(Format)
_Found = dict[str, NDArray[np.float32]]
_NUMBER_BYTES = frozenset(b"0123456789eE+-.naifNAIFty \t\r\n")
_CHUNK = 1 << 22
_SAMPLES, _SAMPLE_BYTES = 64, 1 << 16


def file_fingerprint(path: Path) -> str:
    """Tells files apart without reading gigabytes: size, time of change, and 64 blocks spread over the content."""
    status = path.stat()
    digest = hashlib.blake2b(f"{status.st_size} {status.st_mtime_ns}".encode(), digest_size=16)
    with path.open("rb") as file:
        for i in range(_SAMPLES):
            file.seek(i * max(0, status.st_size - _SAMPLE_BYTES) // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def read_vectors(path: Path, wanted: Collection[str], file_format: str | None = None) -> _Found:
    """Vectors of the wanted words that the file has; the first line of a repeated word counts.

    Every line is checked for its number of values, so that a truncated or mixed file is an error with its line.
    """
    if file_format not in (None, *FORMATS):
        raise UnknownNameError("vector format", file_format or "", FORMATS, f"(one of {', '.join(FORMATS)})")
    try:
        chosen = file_format or _detect(path)
        if chosen == "npy":
            return _read_npy(path, wanted)
        with _opened(path) as file:
            return _read_text(path, file, wanted) if chosen == "text" else _read_binary(path, file, wanted)
    except OSError as error:
        raise VectorFileError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path.name.lower().endswith(".gz"):
        with gzip.open(path, "rb") as file:
            yield cast("BinaryIO", file)
    else:
        with path.open("rb", buffering=_CHUNK) as file:
            yield file


def _detect(path: Path) -> Format:
    if path.suffix.lower() == ".npy":
        return "npy"
    with _opened(path) as file:
        try:
            start = file.read(1 << 16)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise VectorFileError(f"{path}: the compressed file is damaged: {error}") from error
    first, _, rest = start.partition(b"\n")
    if _header(first) is None:
        return "text"
    values = rest.partition(b" ")[2][:64]
    return "text" if _NUMBER_BYTES.issuperset(values) else "word2vec-binary"


def _header(line: bytes) -> tuple[int, int] | None:
    """(words, dimension) if the line is a word2vec header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _read_text(path: Path, file: BinaryIO, wanted: Collection[str]) -> _Found:
    keys = {word.encode(): word for word in wanted}
    found: _Found = {}
    lines = _lines(path, file)
    number, first = next(lines, (0, b""))
    header = _header(first)
    dimension = header[1] if header else len(first.split(b" ")) - 1
    if dimension < 1:
        raise VectorFileError(
            f"{path}: line 1: expected a word and its values, or 'words dimension', got {first[:60]!r}"
        )
    if header is None:
        _take(path, number, first, dimension, keys, found)
    for number, line in lines:
        blanks = line.count(b" ")
        if blanks == dimension:
            word = line[: line.index(b" ")]
            if word not in keys:
                continue
        _take(path, number, line, dimension, keys, found)
    if header and number - 1 != header[0]:
        raise VectorFileError(
            f"{path}: line {number}: the file ends after {number - 1} of {header[0]} words; is it truncated?"
        )
    return found


def _lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise VectorFileError(
            f"{path}: line {number + 1}: the compressed file is truncated or damaged: {error}"
        ) from error


def _take(path: Path, number: int, line: bytes, dimension: int, keys: dict[bytes, str], found: _Found) -> None:
    """Check one line and keep it if it is wanted. The word may hold blanks: the values are counted from the end."""
    fields = line.rsplit(b" ", dimension)
    if len(fields) != dimension + 1:
        got = len(line.split()) - 1
        raise VectorFileError(f"{path}: line {number}: expected {dimension} values, got {got}; is the file truncated?")
    word = keys.get(fields[0])
    if word is None or word in found:
        return
    try:
        values = np.array(fields[1:], dtype=np.float32)
    except ValueError as error:
        raise VectorFileError(f"{path}: line {number}: the values of {word!r} are not all numbers") from error
    found[word] = _checked(values, word, f"{path}: line {number}")


def _checked(values: NDArray[np.float32], word: str, where: str) -> NDArray[np.float32]:
    if not np.isfinite(values).all():
        raise VectorFileError(f"{where}: the vector of {word!r} holds a value that is not finite")
    if not values.any():
        raise VectorFileError(f"{where}: the vector of {word!r} is zero, so it has no direction")
    return values


def _read_binary(path: Path, file: BinaryIO, wanted: Collection[str]) -> _Found:
    keys = {word.encode(): word for word in wanted}
    found: _Found = {}
    header = _header(file.readline(100))
    if header is None:
        raise VectorFileError(f"{path}: line 1: a word2vec file begins with 'words dimension'")
    count, dimension = header
    size = 4 * dimension
    buffer, at = b"", 0
    for number in range(1, count + 1):
        blank = buffer.find(b" ", at)
        if blank < 0 or len(buffer) < blank + 1 + size:
            buffer, at = buffer[at:] + _chunk(path, file, number), 0
            blank = buffer.find(b" ", at)
        end = blank + 1 + size
        if blank < 0 or len(buffer) < end:
            raise VectorFileError(f"{path}: word {number} of {count}: the file ends there; is it truncated?")
        word = keys.get(buffer[at:blank].lstrip(b"\n"))
        if word is not None and word not in found:
            values = np.frombuffer(buffer, dtype="<f4", count=dimension, offset=blank + 1)
            found[word] = _checked(values.astype(np.float32), word, f"{path}: word {number}")
        at = end
    return found


def _chunk(path: Path, file: BinaryIO, number: int) -> bytes:
    try:
        return file.read(_CHUNK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise VectorFileError(f"{path}: word {number}: the compressed file is truncated or damaged: {error}") from error


def _read_npy(path: Path, wanted: Collection[str]) -> _Found:
    words_path = path.with_name("words.txt")
    if not words_path.exists():
        raise VectorFileError(f"{path}: an .npy file needs its words beside it, one a line, in {words_path}")
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise VectorFileError(f"{path}: not a readable .npy array: {error}") from error
    words = words_path.read_text(encoding="utf-8").splitlines()
    if matrix.ndim != 2 or len(matrix) != len(words):
        raise VectorFileError(
            f"{path}: an array of shape {matrix.shape} does not fit the {len(words)} words in {words_path}"
        )
    keep, found = frozenset(wanted), {}
    for row, word in enumerate(words):
        if word in keep and word not in found:
            found[word] = _checked(np.asarray(matrix[row], dtype=np.float32), word, f"{path}: row {row}")
    return found
