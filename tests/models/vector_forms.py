"""The same vectors written in every form of file, and read back as a whole."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from biassay.models import vector_files
from biassay.models.vector_files import VocabularyBlock

Matrix = NDArray[np.float32]
PLAIN = ("glove.txt", "word2vec.txt", "word2vec.bin", "newlines.bin", "fasttext.vec")
TEXT = ("glove.txt", "word2vec.txt", "fasttext.vec")
FORMS = (*PLAIN, *(f"{form}.gz" for form in PLAIN), "matrix.npy")
WORDS = ["cat", "dog", "café", "日本", "naïveté", "O'Brien", "well-known", "🙂"]
WIDE = 20  # enough values to reach past the first bytes of a file


def matrix_of(words: Sequence[str], dimension: int = WIDE) -> Matrix:
    return np.random.default_rng(7).normal(size=(len(words), dimension)).astype(np.float32)


def text_of(words: Sequence[str], matrix: Matrix, end: str = "\n") -> bytes:
    """Nine digits: enough to give back every float32 exactly."""
    rows = (" ".join([word, *(f"{value:.9g}" for value in row)]) for word, row in zip(words, matrix, strict=True))
    return "".join(row + end for row in rows).encode()


def header_of(matrix: Matrix) -> bytes:
    return f"{len(matrix)} {matrix.shape[1]}\n".encode()


def binary_of(words: Sequence[str], matrix: Matrix, end: bytes) -> bytes:
    rows = (word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in zip(words, matrix, strict=True))
    return header_of(matrix) + b"".join(rows)


def content_of(form: str, words: Sequence[str], matrix: Matrix) -> bytes:
    if form.endswith(".gz"):
        return gzip.compress(content_of(form.removesuffix(".gz"), words, matrix), mtime=0)
    if form == "glove.txt":
        return text_of(words, matrix)
    if form == "word2vec.txt":
        return header_of(matrix) + text_of(words, matrix)
    if form == "fasttext.vec":  # fastText ends its lines with a blank
        return header_of(matrix) + text_of(words, matrix, " \n")
    return binary_of(words, matrix, b"\n" if form == "newlines.bin" else b"")


def write(folder: Path, form: str, words: Sequence[str], matrix: Matrix) -> Path:
    path = folder / form
    if form.endswith(".npy"):
        np.save(path, matrix)
        (folder / "words.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    else:
        path.write_bytes(content_of(form, words, matrix))
    return path


def write_bytes(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def joined(blocks: list[VocabularyBlock]) -> tuple[list[str], Matrix]:
    return [word for block in blocks for word in block.words], np.concatenate([block.vectors for block in blocks])


def blocks_of(path: Path, file_format: str | None = None, rows: int = 3) -> list[VocabularyBlock]:
    with patch.object(vector_files, "BLOCK_ROWS", rows):
        return list(vector_files.iter_file(path, file_format))


def whole(path: Path, file_format: str | None = None) -> tuple[list[str], Matrix]:
    return joined(blocks_of(path, file_format))
