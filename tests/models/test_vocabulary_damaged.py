"""Damaged files of vectors, block by block: an error names the file, and the line, word or row."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from biassay.errors import UnknownNameError, UsageError
from biassay.models.vocabulary import vocabulary_blocks

from .vector_forms import (
    FORMS,
    PLAIN,
    WIDE,
    WORDS,
    content_of,
    matrix_of,
    text_of,
    write,
    write_bytes,
)
from .whole_files import error_of


def test_requests_that_make_no_sense_are_refused_before_reading(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rows=0"):
        vocabulary_blocks(tmp_path / "absent.txt", rows=0)
    with pytest.raises(UnknownNameError, match="text, word2vec-binary, npy"):
        vocabulary_blocks(tmp_path / "absent.txt", "txt")


@pytest.mark.parametrize("name", ["absent.txt", "absent.bin", "absent.txt.gz"])
def test_missing_file_is_named(name: str, tmp_path: Path) -> None:
    assert "No such file" in error_of(tmp_path / name)


@pytest.mark.parametrize("name", ["empty.txt", "empty.txt.gz", "empty.npy"])
def test_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    error_of(write_bytes(tmp_path, name, gzip.compress(b"") if name.endswith(".gz") else b""))


@pytest.mark.parametrize("content", [b"cat\ndog\n", b"cat\t1\t2\n", b"2 0\ncat\ndog\n", b"\n\n"])
def test_lines_without_values_are_refused(content: bytes, tmp_path: Path) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "words.txt", content))


@pytest.mark.parametrize("header", [b"", b"3 4\n"])
def test_truncated_text_gives_its_line(header: bytes, tmp_path: Path) -> None:
    content = header + b"cat 1 2 3 4\ndog 5 6 7 8\nfox 9 10"
    message = error_of(write_bytes(tmp_path, "v.txt", content), "text")
    assert f"line {4 if header else 3}: expected 4 values, got 2; is the file truncated?" in message


@pytest.mark.parametrize(
    ("content", "line", "got"),
    [
        (b"cat 1 2 3\nfox 1 2\ndog 4 5 6\n", 2, 2),
        (b"cat 1 2 3\nfox\ndog 4 5 6\n", 2, 0),
        (b"cat 1\nfox\n", 2, 0),
        (b"cat 1 2 3\n\ndog 4 5 6\n", 2, 0),
        (b"cat 1 2 3\r\n\r\ndog 4 5 6\r\n", 2, 0),
        (b"cat 1 2 3\n  \ndog 4 5 6\n", 2, 0),
        (b"cat 1 2 3\nat home 1 2 3\nfox 1 2\ndog 4 5 6\n", 3, 2),
    ],
)
def test_wrong_number_of_values_gives_the_line(content: bytes, line: int, got: int, tmp_path: Path) -> None:
    expected = 1 if content.startswith(b"cat 1\n") else 3
    message = error_of(write_bytes(tmp_path, "v.txt", content))
    assert f"line {line}: expected {expected} values, got {got}" in message


@pytest.mark.parametrize("values", ["1 two 3", "1 2 3x", "1,5 2 3", "0x1 2 3", "1  3", "1.5.5 2 3", "1.5-2 2 3"])
def test_values_that_are_not_numbers_give_line_and_word(values: str, tmp_path: Path) -> None:
    content = "h 1 2 3\n" * 5 + f"fox {values}\ndog 1 2 3\n"
    message = error_of(write_bytes(tmp_path, "v.txt", content.encode()))
    assert "line 6: the values of 'fox" in message
    assert "not all numbers" in message


def test_fault_far_within_a_file_gives_its_line(tmp_path: Path) -> None:
    """Behind several read chunks and parts of them."""
    values = text_of([""], matrix_of([""], 100))
    lines = [b"w%05d" % i + values for i in range(20_000)]
    lines[17_654] = lines[17_654].replace(b" -", b" -x", 1)
    message = error_of(write_bytes(tmp_path, "v.txt", b"".join(lines)))
    assert "line 17655: the values of 'w17654' are not all numbers" in message


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vector_that_is_not_finite_names_place_and_word(form: str, value: float, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    matrix[2, 5] = value
    message = error_of(write(tmp_path, form, WORDS, matrix))
    line = 4 if form.startswith(("word2vec.txt", "fasttext")) else 3
    place = {"bin": "word 3", "npy": "row 2"}.get(form.removesuffix(".gz").rpartition(".")[2], f"line {line}")
    assert f"{place}: the vector of 'café' holds a value that is not finite" in message


def test_value_beyond_float32_is_refused_without_a_warning(tmp_path: Path) -> None:
    assert "line 2: the vector of 'cat'" in error_of(write_bytes(tmp_path, "v.txt", b"dog 1 2\ncat 1e50 2\n"))
    path = write(tmp_path, "matrix.npy", ["cat"], np.array([[1e50, 1.0]]))  # type: ignore[arg-type]
    assert "not finite" in error_of(path)


@pytest.mark.parametrize("form", ["word2vec.txt", "fasttext.vec", "word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("declared", [7, 9])
def test_header_count_must_match(form: str, declared: int, tmp_path: Path) -> None:
    content = content_of(form, WORDS, matrix_of(WORDS)).replace(b"8 ", b"%d " % declared, 1)
    message = error_of(write_bytes(tmp_path, form, content))
    assert str(declared) in message
    assert ("truncated" in message) == (declared == 9)


@pytest.mark.parametrize("form", ["word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("lost", [2, 4 * WIDE + 2, 300])
def test_truncated_binary_gives_the_word_number(form: str, lost: int, tmp_path: Path) -> None:
    content = content_of(form, WORDS, matrix_of(WORDS))[:-lost]
    message = error_of(write_bytes(tmp_path, form, content))
    assert "of 8" in message
    assert "truncated" in message


@pytest.mark.parametrize("content", [b"cat 123412341234", b"3 0\na b c "])
def test_binary_needs_a_header_with_a_dimension(content: bytes, tmp_path: Path) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "v.bin", content), "word2vec-binary")


@pytest.mark.parametrize("form", [f"{form}.gz" for form in PLAIN])
@pytest.mark.parametrize("kept", [0.02, 0.5, 0.9, 0.999])
def test_truncated_gzip_is_refused(form: str, kept: float, tmp_path: Path) -> None:
    content = content_of(form, WORDS, matrix_of(WORDS))
    assert "compressed file is" in error_of(write_bytes(tmp_path, form, content[: int(kept * len(content))]))


def test_npy_must_fit_its_words(tmp_path: Path) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    (tmp_path / "words.txt").write_text("cat\n")
    assert "(8, 20) does not fit the 1 words" in error_of(path)
    (tmp_path / "words.txt").unlink()
    assert "needs its words beside it" in error_of(path)
    assert "of 0 values" in error_of(write(tmp_path, "matrix.npy", ["cat"], np.zeros((1, 0), dtype=np.float32)))
