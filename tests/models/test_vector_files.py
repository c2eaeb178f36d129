"""Every format gives the same vectors."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from biassay.models.vector_files import read_vectors

from .vector_forms import FORMS, TEXT, WORDS, Matrix, header_of, matrix_of, text_of, write, write_bytes


@pytest.mark.parametrize("form", FORMS)
def test_all_formats_give_the_same_vectors(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    found = read_vectors(write(tmp_path, form, WORDS, matrix), WORDS)
    assert sorted(found) == sorted(WORDS)
    for word, row in zip(WORDS, matrix, strict=True):
        assert found[word].dtype == np.float32
        np.testing.assert_array_equal(found[word], row)


@pytest.mark.parametrize("form", FORMS)
def test_only_words_asked_for_are_kept(form: str, tmp_path: Path) -> None:
    found = read_vectors(write(tmp_path, form, WORDS, matrix_of(WORDS)), {"dog", "日本", "absent"})
    assert set(found) == {"dog", "日本"}


@pytest.mark.parametrize("form", FORMS)
def test_first_of_a_repeated_word_counts(form: str, tmp_path: Path) -> None:
    words = ["dog", "cat", "cat", "dog"]
    matrix = matrix_of(words)
    found = read_vectors(write(tmp_path, form, words, matrix), ["cat", "dog"])
    np.testing.assert_array_equal(found["cat"], matrix[1])
    np.testing.assert_array_equal(found["dog"], matrix[0])


@pytest.mark.parametrize("form", FORMS)
def test_words_are_told_apart_by_case(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(["Cat", "cat"])
    found = read_vectors(write(tmp_path, form, ["Cat", "cat"], matrix), ["cat"])
    assert set(found) == {"cat"}
    np.testing.assert_array_equal(found["cat"], matrix[1])


@pytest.mark.parametrize("form", TEXT)
def test_words_with_blanks_inside_do_not_shift_values(form: str, tmp_path: Path) -> None:
    """GloVe 840B has such lines: '. . .', 'at name@domain.com'."""
    words = ["cat", ". . .", "at name@domain.com", "dog"]
    matrix = matrix_of(words)
    found = read_vectors(write(tmp_path, form, words, matrix), words)
    assert set(found) == set(words)
    for word, row in zip(words, matrix, strict=True):
        np.testing.assert_array_equal(found[word], row)


@pytest.mark.parametrize("form", TEXT)
def test_part_of_a_word_with_blanks_is_not_found(form: str, tmp_path: Path) -> None:
    words = ["cat", "at name@domain.com"]
    assert not read_vectors(write(tmp_path, form, words, matrix_of(words)), ["at", "name@domain.com"])


@pytest.mark.parametrize("end", ["\r\n", " \n", "  \r\n", "\t\n"])
@pytest.mark.parametrize("with_header", [True, False])
def test_line_ends_and_trailing_blanks_do_not_matter(end: str, with_header: bool, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    content = text_of(WORDS, matrix, end)
    if with_header:
        content = header_of(matrix).replace(b"\n", end.encode()) + content
    found = read_vectors(write_bytes(tmp_path, "vectors.txt", content), WORDS)
    np.testing.assert_array_equal(np.stack([found[word] for word in WORDS]), matrix)


def test_last_line_needs_no_newline(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "vectors.txt", b"cat 1 2\ndog 3 4")
    assert read_vectors(path, ["dog"])["dog"].tolist() == [3, 4]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("with_header", [True, False])
def test_empty_lines_at_the_end_do_not_matter(end: str, with_header: bool, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    content = (header_of(matrix) if with_header else b"") + text_of(WORDS, matrix, end) + 2 * end.encode()
    assert set(read_vectors(write_bytes(tmp_path, "v.txt", content), WORDS)) == set(WORDS)


@pytest.mark.parametrize("name", ["v.txt", "v.vec"])
def test_header_is_understood_before_short_lines(name: str, tmp_path: Path) -> None:
    """Several lines lie within the first bytes, by which text and binary are told apart."""
    path = write_bytes(tmp_path, name, b"2 3\ncat 1 2 3\ndog 4 5 6\n")
    found = read_vectors(path, ["cat", "dog"])
    assert {word: vector.tolist() for word, vector in found.items()} == {"cat": [1, 2, 3], "dog": [4, 5, 6]}


def test_header_is_understood_before_a_word_with_blanks(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"2 3\n. . . 1 2 3\ndog 4 5 6\n")
    found = read_vectors(path, [". . .", "dog"])
    assert {word: vector.tolist() for word, vector in found.items()} == {". . .": [1, 2, 3], "dog": [4, 5, 6]}


@pytest.mark.parametrize("values", [b"1e-3 -2.5E+1", b".5 -0", b"+1 1."])
def test_numbers_may_be_written_in_any_common_way(values: bytes, tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"dog 1 2\ncat " + values + b"\n")
    assert read_vectors(path, ["cat"])["cat"] == pytest.approx([float(value) for value in values.split()], rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["word2vec.bin", "newlines.bin.gz", "glove.txt.gz"])
def test_words_across_read_blocks_are_whole(form: str, tmp_path: Path) -> None:
    """Ten megabytes: more than is read at once."""
    words = [f"w{i}" for i in range(8000)]
    matrix = np.tile(np.arange(1, 301, dtype=np.float32), (8000, 1)) + np.arange(8000, dtype=np.float32)[:, None]
    found = read_vectors(write(tmp_path, form, words, matrix), words)
    assert list(found) == words
    np.testing.assert_array_equal(np.stack(list(found.values())), matrix)


def test_format_can_be_given(tmp_path: Path) -> None:
    matrix = matrix_of(WORDS, 3)
    for file_format, form in [("text", "word2vec.txt"), ("word2vec-binary", "word2vec.bin"), ("npy", "matrix.npy")]:
        found = read_vectors(write(tmp_path, form, WORDS, matrix), WORDS, file_format)
        np.testing.assert_array_equal(np.stack([found[word] for word in WORDS]), matrix)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<f2", "<i4"])
def test_npy_of_any_real_type_is_read(dtype: str, tmp_path: Path) -> None:
    matrix = np.array([[1, 2], [3, -4]], dtype=dtype)
    found = read_vectors(write(tmp_path, "matrix.npy", ["cat", "dog"], matrix), ["dog"])
    assert found["dog"].dtype == np.float32
    assert found["dog"].tolist() == [3, -4]


def test_words_file_may_have_crlf(tmp_path: Path) -> None:
    path = write(tmp_path, "matrix.npy", ["cat", "dog"], matrix_of(["cat", "dog"]))
    (tmp_path / "words.txt").write_bytes(b"cat\r\ndog\r\n")
    assert set(read_vectors(path, ["cat", "dog"])) == {"cat", "dog"}


def test_words_file_is_divided_at_newlines_only(tmp_path: Path) -> None:
    """Web vocabularies have words that hold U+0085 and U+2028, which str.splitlines takes for line ends."""
    words = ["a\x85b", "c\u2028d", "dog"]
    matrix = matrix_of(words)
    found = read_vectors(write(tmp_path, "matrix.npy", words, matrix), words)
    assert set(found) == set(words)
    np.testing.assert_array_equal(found["dog"], matrix[2])


_word = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)
_value = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def _vocabularies(draw: st.DrawFn) -> tuple[list[str], Matrix]:
    words = draw(st.lists(_word, min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(2, 12)))
    matrix = draw(hnp.arrays(np.float32, shape, elements=_value))
    matrix[~matrix.any(axis=1), 0] = 1
    return words, matrix


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None)
@given(vocabulary=_vocabularies())
def test_what_is_written_is_read_back(form: str, vocabulary: tuple[list[str], Matrix]) -> None:
    words, matrix = vocabulary
    with tempfile.TemporaryDirectory() as folder:
        found = read_vectors(write(Path(folder), form, words, matrix), words)
    assert set(found) == set(words)
    for word, row in zip(words, matrix, strict=True):
        np.testing.assert_array_equal(found[word], row)
