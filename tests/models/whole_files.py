"""Whole files of vectors as lists and arrays, and the error that a damaged one gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from biassay.errors import VectorFileError
from biassay.models.vocabulary import VocabularyBlock, iter_file

from .vector_forms import (
    Matrix,
)


def joined(blocks: list[VocabularyBlock]) -> tuple[list[str], Matrix]:
    return [word for block in blocks for word in block.words], np.concatenate([block.vectors for block in blocks])


def whole(path: Path, rows: int = 3, file_format: str | None = None) -> tuple[list[str], Matrix]:
    return joined(list(iter_file(path, file_format, rows=rows)))


def as_lists(path: Path) -> dict[str, list[float]]:
    words, vectors = whole(path)
    return dict(zip(words, vectors.tolist(), strict=True))


def error_of(path: Path, file_format: str | None = None) -> str:
    with pytest.raises(VectorFileError) as caught:
        whole(path, file_format=file_format)
    assert str(path) in str(caught.value)
    return str(caught.value)
