"""Iterate over whole vocabularies of word vectors in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError, VectorFileError
from biassay.models.vector_files import BLOCK_ROWS, FileBlock, iter_blocks, validate_format, validate_vector

__all__ = ["HasVocabulary", "VocabularyBlock", "iter_arrays", "iter_file"]


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
        ...


def iter_file(path: Path, file_format: str | None = None, *, rows: int = BLOCK_ROWS) -> Iterator[VocabularyBlock]:
    """Iterate over all words of a vector file.

    Every line is checked. Zero vectors, of which published files hold a few, are skipped and
    counted. Only the words stay in memory, to detect duplicates.

    Parameters
    ----------
    path : Path
        Vector file.
    file_format : {"text", "word2vec-binary", "npy"}, optional
        Format of the file. If None, it is detected from the name and the first lines.
    rows : int
        Number of words per block.

    Returns
    -------
    iterator of VocabularyBlock
        Blocks of equal length except the last; the first occurrence of a repeated word counts.
    """
    if rows < 1:
        raise UsageError(f"a block has at least one row, got rows={rows}")
    validate_format(file_format)
    return _iter_file(path, file_format, rows)


def iter_arrays(
    words: Sequence[str], vectors: NDArray[np.float32], *, rows: int = BLOCK_ROWS
) -> Iterator[VocabularyBlock]:
    """Iterate over words and vectors in memory, which are not checked again.

    Parameters
    ----------
    words : sequence of str
        Distinct words.
    vectors : ndarray of float32, shape (len(words), dimension)
        Their vectors.
    rows : int
        Number of words per block.

    Yields
    ------
    VocabularyBlock
        Blocks of `rows` words, except the last.
    """
    for start in range(0, len(words), rows):
        part = list(words[start : start + rows])
        yield VocabularyBlock(part, vectors[start : start + rows], start + len(part), len(words))


def _iter_file(path: Path, file_format: str | None, rows: int) -> Iterator[VocabularyBlock]:
    seen: set[str] = set()
    skipped = 0
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


def _parse_all(path: Path, block: FileBlock) -> NDArray[np.float32]:
    """Parse all vectors of a block; raise VectorFileError if one is not finite."""
    vectors = block.parse(range(len(block.words)))
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        row = int(np.argmin(is_finite))
        word = block.words[row].decode(errors="replace")
        validate_vector(vectors[row], word, f"{path}: {block.locate(row)}")
    return vectors
