"""Every damaged file of vectors gives an error that says where, read for some words or as a whole vocabulary."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, UsageError, VectorFileError
from biassay.models.registry import open_encoder
from biassay.models.vector_files import read_vectors
from biassay.models.vocabulary import iter_file

from .vector_forms import FORMS, PLAIN, WIDE, WORDS, binary_of, content_of, matrix_of, text_of, write, write_bytes
from .whole_files import whole

ErrorOf = Callable[..., str]


@pytest.fixture(params=["words", "vocabulary"])
def error_of(request: pytest.FixtureRequest) -> ErrorOf:
    """The message of the error that either way of reading gives."""

    def read(path: Path, wanted: Sequence[str] = ("cat",), file_format: str | None = None) -> str:
        with pytest.raises(VectorFileError) as caught:
            read_vectors(path, wanted, file_format) if request.param == "words" else whole(path, 3, file_format)
        assert str(path) in str(caught.value)
        return str(caught.value)

    return read


@pytest.mark.parametrize("name", ["absent.txt", "absent.bin", "absent.txt.gz"])
def test_missing_file_is_named(name: str, tmp_path: Path, error_of: ErrorOf) -> None:
    assert "No such file" in error_of(tmp_path / name)


def test_folder_is_no_file_of_vectors(tmp_path: Path, error_of: ErrorOf) -> None:
    assert "cannot be read" in error_of(tmp_path)


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_of: ErrorOf) -> None:
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
def test_empty_file_is_refused(name: str, tmp_path: Path, error_of: ErrorOf) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    error_of(write_bytes(tmp_path, name, b""))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0)])
def test_empty_compressed_file_is_refused(content: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    error_of(write_bytes(tmp_path, "v.txt.gz", content))


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
def test_header_without_words_is_refused(name: str, tmp_path: Path, error_of: ErrorOf) -> None:
    content = gzip.compress(b"5 3\n", mtime=0) if name.endswith(".gz") else b"5 3\n"
    assert "of 5" in error_of(write_bytes(tmp_path, name, content))


@pytest.mark.parametrize("content", [b"cat\ndog\n", b"cat\t1\t2\n", b"2 0\ncat\ndog\n", b"\n\n"])
def test_lines_without_values_are_refused(content: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "words.txt", content))


@pytest.mark.parametrize("header", [b"", b"3 4\n"])
def test_truncated_text_gives_its_line(header: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    content = header + b"cat 1 2 3 4\ndog 5 6 7 8\nfox 9 10"
    message = error_of(write_bytes(tmp_path, "v.txt", content), file_format="text")
    assert f"line {4 if header else 3}: expected 4 values, got 2" in message
    assert "truncated" in message


@pytest.mark.parametrize(
    ("content", "line", "got"),
    [
        (b"cat 1 2 3\nfox 1 2\ndog 4 5 6\n", 2, 2),
        (b"cat 1 2 3\nfox\ndog 4 5 6\n", 2, 0),
        (b"cat 1\nfox\n", 2, 0),
        (b"cat 1 2 3\n\ndog 4 5 6\n", 2, 0),
        (b"cat 1 2 3\r\n\r\ndog 4 5 6\r\n", 2, 0),
        # A blank inside a word makes up for the one that a lost value takes away.
        (b"cat 1 2 3\nat home 1 2 3\nfox 1 2\ndog 4 5 6\n", 3, 2),
    ],
)
def test_wrong_number_of_values_gives_the_line_even_of_words_not_asked_for(
    content: bytes, line: int, got: int, tmp_path: Path, error_of: ErrorOf
) -> None:
    expected = 1 if content.startswith(b"cat 1\n") else 3
    message = error_of(write_bytes(tmp_path, "v.txt", content))
    assert f"line {line}: expected {expected} values, got {got}" in message


@pytest.mark.parametrize("values", ["1 two 3", "1 2 3x", "1,5 2 3", "0x1 2 3", "1  3", "1.5.5 2 3", "1.5-2 2 3"])
def test_values_that_are_not_numbers_give_line_and_word(values: str, tmp_path: Path, error_of: ErrorOf) -> None:
    content = "h 1 2 3\n" * 5 + f"cat {values}\ndog 1 2 3\n"
    message = error_of(write_bytes(tmp_path, "v.txt", content.encode()))
    assert "line 6" in message
    assert "'cat" in message


def test_fault_far_within_a_file_gives_its_line(tmp_path: Path, error_of: ErrorOf) -> None:
    """Behind several read chunks and parts of them."""
    values = text_of([""], matrix_of([""], 100))
    lines = [b"w%05d" % i + values for i in range(20_000)]
    lines[17_654] = lines[17_654].replace(b" -", b" -x", 1)
    message = error_of(write_bytes(tmp_path, "v.txt", b"".join(lines)), ["w17654"])
    assert "line 17655: the values of 'w17654' are not all numbers" in message


@pytest.mark.parametrize("form", ["word2vec.txt", "fasttext.vec", "word2vec.txt.gz"])
@pytest.mark.parametrize("declared", [7, 9])
def test_header_count_must_match(form: str, declared: int, tmp_path: Path, error_of: ErrorOf) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    content = gzip.decompress(path.read_bytes()) if form.endswith(".gz") else path.read_bytes()
    content = content.replace(b"8 ", b"%d " % declared, 1)
    path.write_bytes(gzip.compress(content, mtime=0) if form.endswith(".gz") else content)
    message = error_of(path)
    assert "8" in message
    assert str(declared) in message


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("declared", [7, 9])
def test_header_count_of_a_binary_file_must_match(end: bytes, declared: int, tmp_path: Path, error_of: ErrorOf) -> None:
    content = binary_of(WORDS, matrix_of(WORDS), end).replace(b"8 ", b"%d " % declared, 1)
    assert str(declared) in error_of(write_bytes(tmp_path, "v.bin", content))


def test_binary_file_of_another_dimension_is_refused(tmp_path: Path, error_of: ErrorOf) -> None:
    """Otherwise bytes of one vector would be taken for words and values of the next."""
    content = binary_of(WORDS, matrix_of(WORDS), b"").replace(b"8 20\n", b"8 10\n", 1)
    error_of(write_bytes(tmp_path, "v.bin", content))


@pytest.mark.parametrize("form", ["word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("lost", [2, 4 * WIDE + 2, 300])
def test_truncated_binary_gives_the_word_number(form: str, lost: int, tmp_path: Path, error_of: ErrorOf) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    path.write_bytes(path.read_bytes()[:-lost])
    message = error_of(path)
    assert "of 8" in message
    assert "truncated" in message


@pytest.mark.parametrize("content", [b"cat " + np.ones(3, "<f4").tobytes(), b"cat 123412341234", b"3 0\na b c "])
def test_binary_needs_a_header_with_a_dimension(content: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "v.bin", content), file_format="word2vec-binary")


@pytest.mark.parametrize("form", [f"{form}.gz" for form in PLAIN])
@pytest.mark.parametrize("kept", [0.02, 0.5, 0.9, 0.999])
def test_truncated_gzip_is_refused(form: str, kept: float, tmp_path: Path, error_of: ErrorOf) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    assert "compressed file is" in error_of(path)


def test_truncated_gzip_of_many_lines_gives_about_the_line(tmp_path: Path, error_of: ErrorOf) -> None:
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
def test_truncated_gzip_is_refused_when_the_format_is_given(
    kept: int, file_format: str, tmp_path: Path, error_of: ErrorOf
) -> None:
    content = content_of("word2vec.bin.gz", WORDS, matrix_of(WORDS))
    path = write_bytes(tmp_path, "v.bin.gz", content[:kept])
    assert "compressed file is" in error_of(path, file_format=file_format)


@pytest.mark.parametrize("form", [f"{form}.gz" for form in PLAIN])
def test_altered_gzip_is_refused(form: str, tmp_path: Path, error_of: ErrorOf) -> None:
    """A changed checksum: the compressed data itself can still be unpacked."""
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    content = bytearray(path.read_bytes())
    content[-6] ^= 0xFF
    path.write_bytes(content)
    assert "damaged" in error_of(path)


@pytest.mark.parametrize("form", ["glove.txt.gz", "word2vec.bin.gz"])
def test_garbage_within_gzip_is_refused(form: str, tmp_path: Path, error_of: ErrorOf) -> None:
    words = [f"w{i}" for i in range(4000)]
    path = write(tmp_path, form, words, matrix_of(words))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4000] = bytes(4000)
    path.write_bytes(content)
    error_of(path)


@pytest.mark.parametrize("content", [b"cat 1 2 3\n", b"\x1f\x8b and no more than that"])
def test_gz_that_is_no_gzip_is_refused(content: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    assert "damaged" in error_of(write_bytes(tmp_path, "v.txt.gz", content))


@pytest.mark.parametrize("form", FORMS)
def test_zero_vector_names_its_word(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    matrix[2] = 0
    with pytest.raises(VectorFileError, match="'café' is zero"):
        read_vectors(write(tmp_path, form, WORDS, matrix), WORDS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vector_that_is_not_finite_names_its_word(form: str, value: float, tmp_path: Path, error_of: ErrorOf) -> None:
    matrix = matrix_of(WORDS)
    matrix[2, 5] = value
    message = error_of(write(tmp_path, form, WORDS, matrix), WORDS)
    line = 4 if form.startswith(("word2vec.txt", "fasttext")) else 3
    place = {"bin": "word 3", "npy": "row 2"}.get(form.removesuffix(".gz").rpartition(".")[2], f"line {line}")
    assert f"{place}: the vector of 'café' holds a value that is not finite" in message


def test_value_beyond_float32_is_refused_without_a_warning(tmp_path: Path, error_of: ErrorOf) -> None:
    """Warnings are errors in this suite."""
    assert "not finite" in error_of(write_bytes(tmp_path, "v.txt", b"cat 1e50 2 3\n"))
    path = write(tmp_path, "matrix.npy", ["cat"], np.array([[1e50, 1.0]]))  # type: ignore[arg-type]
    assert "not finite" in error_of(path)


@pytest.mark.parametrize("form", FORMS)
def test_bad_vectors_of_words_not_asked_for_do_no_harm(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    matrix[2], matrix[3] = 0, np.nan
    assert set(read_vectors(write(tmp_path, form, WORDS, matrix), ["cat", "🙂"])) == {"cat", "🙂"}


def test_npy_needs_words_beside_it(tmp_path: Path, error_of: ErrorOf) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    (tmp_path / "words.txt").unlink()
    assert str(tmp_path / "words.txt") in error_of(path)


@pytest.mark.parametrize("words", [WORDS[:-1], [*WORDS, "more"], []])
def test_npy_with_another_number_of_words_is_refused(words: list[str], tmp_path: Path, error_of: ErrorOf) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    message = error_of(path)
    assert "(8, 20)" in message
    assert f"{len(words)} words" in message


def test_npy_of_one_axis_is_refused(tmp_path: Path, error_of: ErrorOf) -> None:
    assert "(2,)" in error_of(write(tmp_path, "matrix.npy", ["cat", "dog"], np.ones(2, np.float32)))
    assert "of 0 values" in error_of(write(tmp_path, "matrix.npy", ["cat"], np.zeros((1, 0), dtype=np.float32)))


class _Trap:
    """Marks that it was unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_pickled_npy_is_refused_and_not_run(tmp_path: Path, error_of: ErrorOf) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    mark = tmp_path / "was-run"
    np.save(tmp_path / "objects.npy", np.array([[_Trap(mark)]], dtype=object), allow_pickle=True)
    error_of(tmp_path / "objects.npy")
    error_of(write_bytes(tmp_path, "raw.npy", pickle.dumps(_Trap(mark))))
    assert not mark.exists()


def test_truncated_npy_is_refused(tmp_path: Path, error_of: ErrorOf) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    whole = path.read_bytes()
    for length in (4, 100, len(whole) - 1):
        path.write_bytes(whole[:length])
        error_of(path)


def test_npz_named_npy_is_refused(tmp_path: Path, error_of: ErrorOf) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    with (tmp_path / "matrix.npy").open("wb") as file:
        np.savez(file, vectors=np.ones((1, 3)))
    error_of(tmp_path / "matrix.npy")


@pytest.mark.parametrize("matrix", [np.array([["a", "b"]]), np.array([[1j, 2]])])
def test_npy_of_something_else_than_real_numbers_is_refused(
    matrix: NDArray[Any], tmp_path: Path, error_of: ErrorOf
) -> None:
    error_of(write(tmp_path, "matrix.npy", ["cat"], matrix))


def test_words_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "matrix.npy", ["cat", "café"], matrix_of(["cat", "café"]))
    (tmp_path / "words.txt").write_bytes("cat\ncafé\n".encode("latin-1"))
    with pytest.raises(VectorFileError, match=r"words\.txt"):
        read_vectors(path, ["cat"])


@pytest.mark.parametrize("header", [b"1 1000000000", b"0 1000000000", b"9" * 5000 + b" 3", b"3 " + b"9" * 5000])
@pytest.mark.parametrize("file_format", [None, "text", "word2vec-binary"])
def test_header_of_an_absurd_size_is_refused(
    header: bytes, file_format: str | None, tmp_path: Path, error_of: ErrorOf
) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "v.bin", header + b"\n"), file_format=file_format)


def npy_of(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode() + b"\n"


@pytest.mark.parametrize("shape", [(0, 10**9), (1, 10**12), (10**12, 10**12), (1, 10**26), (2**32, 2**32)])
def test_npy_of_an_absurd_shape_is_refused(shape: tuple[int, int], tmp_path: Path, error_of: ErrorOf) -> None:
    (tmp_path / "words.txt").write_text("cat\n" * (shape[0] > 0))
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"
    error_of(write_bytes(tmp_path, "matrix.npy", npy_of(header)))


@pytest.mark.parametrize("header", ["(" * 90, "{'descr': '<f4', 'shape': (1L,", "{'descr': [[]]", "\0", "[" * 9000])
def test_npy_with_a_broken_header_is_refused(header: str, tmp_path: Path, error_of: ErrorOf) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    error_of(write_bytes(tmp_path, "matrix.npy", npy_of(header)))


def test_words_file_far_too_long_for_its_array_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    with (tmp_path / "words.txt").open("ab") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    monkeypatch.setattr(Path, "read_bytes", _refuse)
    with pytest.raises(VectorFileError, match=r"words\.txt: too long"):
        read_vectors(tmp_path / "matrix.npy", ["cat"])


@pytest.mark.parametrize(("beginning", "line"), [(b"", 1), (b"3 2\n", 2), (b"cat 1 2\ndog 3 4\n", 3)])
def test_line_without_end_is_given_up(beginning: bytes, line: int, tmp_path: Path, error_of: ErrorOf) -> None:
    path = write_bytes(tmp_path, "v.txt", beginning)
    with path.open("ab") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    assert f"v.txt: line {line}: longer than" in error_of(path, file_format="text")


@pytest.mark.parametrize("given", ["", "txt", "word2vec"])
def test_unknown_format_lists_the_known_ones(given: str, tmp_path: Path) -> None:
    path = write(tmp_path, "glove.txt", WORDS, matrix_of(WORDS))
    with pytest.raises(UnknownNameError, match="text, word2vec-binary, npy"):
        read_vectors(path, ["cat"], given)
    with pytest.raises(UnknownNameError, match="text, word2vec-binary, npy"):
        iter_file(path, given)


def test_a_block_has_a_row(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rows=0"):
        iter_file(tmp_path / "absent.txt", rows=0)
