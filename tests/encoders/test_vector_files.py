"""Every format gives the same vectors, and every damaged file an error that says where."""

from __future__ import annotations

import gzip
import os
import pickle
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from biassay.encoders.registry import open_encoder
from biassay.encoders.vector_files import file_fingerprint, read_vectors
from biassay.errors import UnknownNameError, VectorFileError

Matrix = NDArray[np.float32]
PLAIN = ("glove.txt", "word2vec.txt", "word2vec.bin", "newlines.bin", "fasttext.vec")
TEXT = ("glove.txt", "word2vec.txt", "fasttext.vec")
FORMS = (*PLAIN, *(f"{form}.gz" for form in PLAIN), "matrix.npy")
WORDS = ["cat", "dog", "café", "日本", "naïveté", "O'Brien", "well-known", "🙂"]
WIDE = 20  # so many values that they reach past the first bytes of a file


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


def error_of(path: Path, wanted: Sequence[str] = ("cat",), file_format: str | None = None) -> str:
    with pytest.raises(VectorFileError) as caught:
        read_vectors(path, wanted, file_format)
    assert str(path) in str(caught.value)
    return str(caught.value)


# What is read


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


# What is refused


@pytest.mark.parametrize("name", ["absent.txt", "absent.bin", "absent.txt.gz"])
def test_missing_file_is_named(name: str, tmp_path: Path) -> None:
    assert "No such file" in error_of(tmp_path / name)


def test_folder_is_no_file_of_vectors(tmp_path: Path) -> None:
    assert "cannot be read" in error_of(tmp_path)


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated, because root may read everything."""
    path = write(tmp_path, "glove.txt", WORDS, matrix_of(WORDS))
    monkeypatch.setattr(Path, "open", _refuse)
    assert "Permission denied" in error_of(path)


def test_unreadable_file_is_named_when_the_model_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "glove.txt", WORDS, matrix_of(WORDS))
    monkeypatch.setattr(Path, "open", _refuse)
    with pytest.raises(VectorFileError, match="Permission denied"):
        open_encoder(f"vectors:{path}")


@pytest.mark.parametrize("name", ["empty.txt", "empty.bin", "empty.vec", "empty.npy"])
def test_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    error_of(write_bytes(tmp_path, name, b""))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0)])
def test_empty_compressed_file_is_refused(content: bytes, tmp_path: Path) -> None:
    error_of(write_bytes(tmp_path, "v.txt.gz", content))


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
def test_header_without_words_is_refused(name: str, tmp_path: Path) -> None:
    content = gzip.compress(b"5 3\n", mtime=0) if name.endswith(".gz") else b"5 3\n"
    assert "of 5" in error_of(write_bytes(tmp_path, name, content))


@pytest.mark.parametrize("content", [b"cat\ndog\n", b"cat\t1\t2\n", b"2 0\ncat\ndog\n", b"\n\n"])
def test_lines_without_values_are_refused(content: bytes, tmp_path: Path) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "words.txt", content))


@pytest.mark.parametrize("header", [b"", b"3 4\n"])
def test_truncated_text_gives_its_line(header: bytes, tmp_path: Path) -> None:
    content = header + b"cat 1 2 3 4\ndog 5 6 7 8\nfox 9 10"
    message = error_of(write_bytes(tmp_path, "v.txt", content), file_format="text")
    assert f"line {4 if header else 3}: expected 4 values, got 2" in message
    assert "truncated" in message


@pytest.mark.parametrize(("values", "got"), [("1 2", 2), ("", 0)])
def test_wrong_dimension_gives_its_line_even_of_words_not_asked_for(values: str, got: int, tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", f"cat 1 2 3\nfox {values}\ndog 4 5 6\n".encode())
    assert f"line 2: expected 3 values, got {got}" in error_of(path)


def test_empty_line_between_words_is_refused(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2 3\n\ndog 4 5 6\n")
    assert "line 2: expected 3 values, got 0" in error_of(path)


def test_long_line_does_not_hide_a_short_one(tmp_path: Path) -> None:
    """A blank inside a word makes up for the one that a lost value takes away."""
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2 3\nat home 1 2 3\nfox 1 2\ndog 4 5 6\n")
    assert "line 3: expected 3 values, got 2" in error_of(path)


@pytest.mark.parametrize("values", ["1 two 3", "1 2 3x", "1,5 2 3", "0x1 2 3"])
def test_values_that_are_not_numbers_give_line_and_word(values: str, tmp_path: Path) -> None:
    message = error_of(write_bytes(tmp_path, "v.txt", f"dog 1 2 3\ncat {values}\n".encode()))
    assert "line 2" in message
    assert "'cat'" in message


@pytest.mark.parametrize("form", ["word2vec.txt", "fasttext.vec", "word2vec.txt.gz"])
@pytest.mark.parametrize("declared", [7, 9])
def test_header_count_must_match(form: str, declared: int, tmp_path: Path) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    content = gzip.decompress(path.read_bytes()) if form.endswith(".gz") else path.read_bytes()
    content = content.replace(b"8 ", b"%d " % declared, 1)
    path.write_bytes(gzip.compress(content, mtime=0) if form.endswith(".gz") else content)
    message = error_of(path)
    assert "8" in message
    assert str(declared) in message


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("declared", [7, 9])
def test_header_count_of_a_binary_file_must_match(end: bytes, declared: int, tmp_path: Path) -> None:
    content = binary_of(WORDS, matrix_of(WORDS), end).replace(b"8 ", b"%d " % declared, 1)
    assert str(declared) in error_of(write_bytes(tmp_path, "v.bin", content))


def test_binary_file_of_another_dimension_is_refused(tmp_path: Path) -> None:
    """Otherwise bytes of one vector would be taken for words and values of the next."""
    content = binary_of(WORDS, matrix_of(WORDS), b"").replace(b"8 20\n", b"8 10\n", 1)
    error_of(write_bytes(tmp_path, "v.bin", content))


@pytest.mark.parametrize("form", ["word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("lost", [2, 4 * WIDE + 2, 300])
def test_truncated_binary_gives_the_word_number(form: str, lost: int, tmp_path: Path) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    path.write_bytes(path.read_bytes()[:-lost])
    message = error_of(path)
    assert "of 8" in message
    assert "truncated" in message


def test_binary_needs_a_header(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.bin", b"cat " + np.ones(3, "<f4").tobytes())
    assert "line 1" in error_of(path, file_format="word2vec-binary")


@pytest.mark.parametrize("form", [f"{form}.gz" for form in PLAIN])
@pytest.mark.parametrize("kept", [0.02, 0.5, 0.9, 0.999])
def test_truncated_gzip_is_refused(form: str, kept: float, tmp_path: Path) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    assert "compressed file is" in error_of(path)


def test_truncated_gzip_of_many_lines_gives_about_the_line(tmp_path: Path) -> None:
    """Half of 26 megabytes: at the break or at the block of four megabytes before it."""
    values = text_of([""], matrix_of([""]))
    lines, length = 100_000, len(values) + 6
    content = gzip.compress(b"".join(b"w%05d" % i + values for i in range(lines)), compresslevel=1, mtime=0)
    message = error_of(write_bytes(tmp_path, "v.txt.gz", content[: len(content) // 2]))
    assert "truncated" in message
    line = int(message.split("line ")[1].split(":")[0])
    slack = lines // 20  # not every line is compressed to the same length
    assert lines // 2 - (1 << 22) // length - slack < line < lines // 2 + slack


@pytest.mark.parametrize("file_format", ["text", "word2vec-binary"])
@pytest.mark.parametrize("kept", [5, 14])
def test_truncated_gzip_is_refused_when_the_format_is_given(kept: int, file_format: str, tmp_path: Path) -> None:
    content = content_of("word2vec.bin.gz", WORDS, matrix_of(WORDS))
    path = write_bytes(tmp_path, "v.bin.gz", content[:kept])
    assert "compressed file is" in error_of(path, file_format=file_format)


@pytest.mark.parametrize("form", [f"{form}.gz" for form in PLAIN])
def test_altered_gzip_is_refused(form: str, tmp_path: Path) -> None:
    """A changed checksum: the compressed data itself can still be unpacked."""
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    content = bytearray(path.read_bytes())
    content[-6] ^= 0xFF
    path.write_bytes(content)
    assert "damaged" in error_of(path)


@pytest.mark.parametrize("form", ["glove.txt.gz", "word2vec.bin.gz"])
def test_garbage_within_gzip_is_refused(form: str, tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(4000)]
    path = write(tmp_path, form, words, matrix_of(words))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4000] = bytes(4000)
    path.write_bytes(content)
    error_of(path)


@pytest.mark.parametrize("content", [b"cat 1 2 3\n", b"\x1f\x8b and no more than that"])
def test_gz_that_is_no_gzip_is_refused(content: bytes, tmp_path: Path) -> None:
    assert "damaged" in error_of(write_bytes(tmp_path, "v.txt.gz", content))


@pytest.mark.parametrize("form", FORMS)
def test_zero_vector_names_its_word(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    matrix[2] = 0
    path = write(tmp_path, form, WORDS, matrix)
    message = error_of(path, WORDS)
    assert "'café'" in message
    assert "zero" in message


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vector_that_is_not_finite_names_its_word(form: str, value: float, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    matrix[2, 5] = value
    message = error_of(write(tmp_path, form, WORDS, matrix), WORDS)
    assert "'café'" in message
    assert "not finite" in message


def test_value_beyond_float32_is_refused_without_a_warning(tmp_path: Path) -> None:
    """Warnings are errors in this suite."""
    assert "not finite" in error_of(write_bytes(tmp_path, "v.txt", b"cat 1e50 2 3\n"))
    path = write(tmp_path, "matrix.npy", ["cat"], np.array([[1e50, 1.0]]))  # type: ignore[arg-type]
    assert "not finite" in error_of(path)


@pytest.mark.parametrize("form", FORMS)
def test_bad_vectors_of_words_not_asked_for_do_no_harm(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    matrix[2], matrix[3] = 0, np.nan
    assert set(read_vectors(write(tmp_path, form, WORDS, matrix), ["cat", "🙂"])) == {"cat", "🙂"}


def test_npy_needs_words_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    (tmp_path / "words.txt").unlink()
    assert str(tmp_path / "words.txt") in error_of(path)


@pytest.mark.parametrize("words", [WORDS[:-1], [*WORDS, "more"], []])
def test_npy_with_another_number_of_words_is_refused(words: list[str], tmp_path: Path) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    message = error_of(path)
    assert "(8, 20)" in message
    assert f"{len(words)} words" in message


def test_npy_of_one_axis_is_refused(tmp_path: Path) -> None:
    assert "(2,)" in error_of(write(tmp_path, "matrix.npy", ["cat", "dog"], np.ones(2, np.float32)))


class _Trap:
    """Marks that it was unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_pickled_npy_is_refused_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    mark = tmp_path / "was-run"
    np.save(tmp_path / "objects.npy", np.array([[_Trap(mark)]], dtype=object), allow_pickle=True)
    error_of(tmp_path / "objects.npy")
    error_of(write_bytes(tmp_path, "raw.npy", pickle.dumps(_Trap(mark))))
    assert not mark.exists()


def test_truncated_npy_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    whole = path.read_bytes()
    for length in (4, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        error_of(path)


def test_npz_named_npy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    with (tmp_path / "matrix.npy").open("wb") as file:
        np.savez(file, vectors=np.ones((1, 3)))
    error_of(tmp_path / "matrix.npy")


@pytest.mark.parametrize("matrix", [np.array([["a", "b"]]), np.array([[1j, 2]])])
def test_npy_of_something_else_than_real_numbers_is_refused(matrix: NDArray[Any], tmp_path: Path) -> None:
    error_of(write(tmp_path, "matrix.npy", ["cat"], matrix))


def test_words_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "matrix.npy", ["cat", "café"], matrix_of(["cat", "café"]))
    (tmp_path / "words.txt").write_bytes("cat\ncafé\n".encode("latin-1"))
    with pytest.raises(VectorFileError, match=r"words\.txt"):
        read_vectors(path, ["cat"])


@pytest.mark.parametrize("given", ["", "txt", "word2vec"])
def test_unknown_format_lists_the_known_ones(given: str, tmp_path: Path) -> None:
    path = write(tmp_path, "glove.txt", WORDS, matrix_of(WORDS))
    with pytest.raises(UnknownNameError, match="text, word2vec-binary, npy"):
        read_vectors(path, ["cat"], given)


# Which file it is


def _write_at(path: Path, offset: int, content: bytes) -> None:
    """Change a file in place and set its time back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_fingerprint_stays_when_nothing_changes(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2 3\n" * 1000)
    assert file_fingerprint(path) == file_fingerprint(path)


def test_fingerprint_changes_with_any_byte_of_a_small_file(tmp_path: Path) -> None:
    """Up to four megabytes the blocks leave no gap."""
    size = 4 << 20
    path = write_bytes(tmp_path, "v.bin", bytes(size))
    seen = {file_fingerprint(path)}
    for offset in (0, 1, 65_536, 100_000, size // 2 - 1, size // 2, size - 65_537, size - 1):
        _write_at(path, offset, b"x")
        seen.add(file_fingerprint(path))
    assert len(seen) == 9


def test_fingerprint_changes_in_the_middle_of_a_large_file(tmp_path: Path) -> None:
    """64 blocks of 64 KiB spread evenly from the first byte to the last; number 32 is in the middle."""
    size = 48 << 20
    path = write_bytes(tmp_path, "v.bin", bytes(size))
    before = file_fingerprint(path)
    _write_at(path, 32 * (size - 65_536) // 63 + 1000, b"x")
    middle = file_fingerprint(path)
    _write_at(path, size - 1, b"x")
    assert len({before, middle, file_fingerprint(path)}) == 3


def test_fingerprint_changes_with_the_time_of_change(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2 3\n")
    before = file_fingerprint(path)
    changed = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(changed, changed))
    assert file_fingerprint(path) != before


def test_fingerprint_changes_with_the_size(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", bytes(10))
    time = path.stat().st_mtime_ns
    before = file_fingerprint(path)
    path.write_bytes(bytes(11))
    os.utime(path, ns=(time, time))
    assert file_fingerprint(path) != before


def test_model_is_another_when_the_words_beside_an_npy_change(tmp_path: Path) -> None:
    """Otherwise stored vectors of the old words would be used."""
    path = write(tmp_path, "matrix.npy", ["cat", "dog"], matrix_of(["cat", "dog"]))
    before = open_encoder(f"vectors:{path}").identity.key
    (tmp_path / "words.txt").write_text("dog\ncat\n")
    assert open_encoder(f"vectors:{path}").identity.key != before
