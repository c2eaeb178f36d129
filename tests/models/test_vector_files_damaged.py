"""Damaged vector files: errors that name the location, for some words and for a whole vocabulary."""

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

from biassay.errors import UnknownNameError, VectorFileError
from biassay.models.registry import open_encoder
from biassay.models.vector_files import read_vectors

from .vector_forms import (
    FORMS,
    PLAIN,
    WIDE,
    WORDS,
    binary_of,
    content_of,
    matrix_of,
    text_of,
    whole,
    write,
    write_bytes,
)

ErrorOf = Callable[..., str]


@pytest.fixture(params=["words", "vocabulary"])
def error_of(request: pytest.FixtureRequest) -> ErrorOf:
    """The message of the error that either way of reading gives."""

    def read(path: Path, wanted: Sequence[str] = ("cat",), file_format: str | None = None) -> str:
        with pytest.raises(VectorFileError) as caught:
            read_vectors(path, wanted, file_format) if request.param == "words" else whole(path, file_format)
        assert str(path) in str(caught.value)
        return str(caught.value)

    return read


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_of: ErrorOf) -> None:
    """Refusal is simulated, because root may read everything."""
    assert "cannot be read" in error_of(tmp_path)
    for name in ("absent.txt", "absent.bin", "absent.txt.gz"):
        assert "No such file" in error_of(tmp_path / name)
    path = write(tmp_path, "glove.txt", WORDS, matrix_of(WORDS))
    monkeypatch.setattr(Path, "open", _refuse)
    assert "Permission denied" in error_of(path)
    with pytest.raises(VectorFileError, match="Permission denied"):
        open_encoder(f"vectors:{path}")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        *((name, b"", "") for name in ("v.txt", "v.bin", "v.vec", "v.txt.gz", "v.npy")),
        ("v.txt.gz", gzip.compress(b"", mtime=0), ""),
        ("v.txt", b"5 3\n", "of 5"),
        ("v.txt.gz", gzip.compress(b"5 3\n", mtime=0), "of 5"),
        *(("v.txt", text, "line 1") for text in (b"cat\ndog\n", b"cat\t1\t2\n", b"2 0\ncat\ndog\n", b"\n\n")),
        ("v.txt", b"cat 1 2 3\nfox 1 2\ndog 4 5 6\n", "line 2: expected 3 values, got 2"),
        ("v.txt", b"cat 1 2 3\nfox\ndog 4 5 6\n", "line 2: expected 3 values, got 0"),
        ("v.txt", b"cat 1\nfox\n", "line 2: expected 1 values, got 0"),
        ("v.txt", b"cat 1 2 3\n\ndog 4 5 6\n", "line 2: expected 3 values, got 0"),
        ("v.txt", b"cat 1 2 3\n  \ndog 4 5 6\n", "line 2: expected 3 values, got 0"),
        ("v.txt", b"cat 1 2 3\r\n\r\ndog 4 5 6\r\n", "line 2: expected 3 values, got 0"),
        # A blank inside a word makes up for the one that a lost value takes away.
        ("v.txt", b"cat 1 2 3\nat home 1 2 3\nfox 1 2\ndog 4 5 6\n", "line 3: expected 3 values, got 2"),
        ("v.txt", b"cat 1e50 2 3\n", "not finite"),
        ("v.txt.gz", b"cat 1 2 3\n", "damaged"),
        ("v.txt.gz", b"\x1f\x8b and no more than that", "damaged"),
        # Otherwise bytes of one vector would be taken for words and values of the next.
        ("v.bin", binary_of(WORDS, matrix_of(WORDS), b"").replace(b"8 20\n", b"8 10\n", 1), ""),
    ],
)
def test_damaged_files(name: str, content: bytes, said: str, tmp_path: Path, error_of: ErrorOf) -> None:
    (tmp_path / "words.txt").write_text("cat\n")
    assert said in error_of(write_bytes(tmp_path, name, content))


@pytest.mark.parametrize("header", [b"", b"3 4\n"])
def test_truncated_text_gives_its_line(header: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    content = header + b"cat 1 2 3 4\ndog 5 6 7 8\nfox 9 10"
    message = error_of(write_bytes(tmp_path, "v.txt", content), file_format="text")
    assert f"line {4 if header else 3}: expected 4 values, got 2" in message
    assert "truncated" in message


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


@pytest.mark.parametrize("form", ["word2vec.txt", "fasttext.vec", "word2vec.txt.gz", "word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("declared", [7, 9])
def test_header_count_must_match(form: str, declared: int, tmp_path: Path, error_of: ErrorOf) -> None:
    content = content_of(form.removesuffix(".gz"), WORDS, matrix_of(WORDS)).replace(b"8 ", b"%d " % declared, 1)
    message = error_of(write_bytes(tmp_path, form, gzip.compress(content) if form.endswith(".gz") else content))
    assert str(declared) in message


@pytest.mark.parametrize("form", ["word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("lost", [2, 4 * WIDE + 2, 300])
def test_truncated_binary_gives_the_word_number(form: str, lost: int, tmp_path: Path, error_of: ErrorOf) -> None:
    message = error_of(write_bytes(tmp_path, form, content_of(form, WORDS, matrix_of(WORDS))[:-lost]))
    assert "of 8" in message
    assert "truncated" in message


@pytest.mark.parametrize("content", [b"cat " + np.ones(3, "<f4").tobytes(), b"cat 123412341234", b"3 0\na b c "])
def test_binary_needs_a_header_with_a_dimension(content: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "v.bin", content), file_format="word2vec-binary")


@pytest.mark.parametrize("form", [f"{form}.gz" for form in PLAIN])
def test_damaged_gzip_is_refused(form: str, tmp_path: Path, error_of: ErrorOf) -> None:
    """Cut anywhere; with another checksum, so that the data itself can still be unpacked; with a hole."""
    content = content_of(form, WORDS, matrix_of(WORDS))
    for kept in (5, 14, 0.5, 0.9, 0.999):
        cut = write_bytes(tmp_path, form, content[: int(kept if kept > 1 else kept * len(content))])
        assert "compressed file is" in error_of(cut)
        assert "compressed file is" in error_of(cut, file_format="word2vec-binary" if "bin" in form else "text")
    assert "damaged" in error_of(write_bytes(tmp_path, form, content[:-6] + bytes([content[-6] ^ 0xFF]) + content[-5:]))
    words = [f"w{i}" for i in range(4000)]
    content = content_of(form, words, matrix_of(words))
    middle = len(content) // 2
    error_of(write_bytes(tmp_path, form, content[:middle] + bytes(4000) + content[middle + 4000 :]))


@pytest.mark.parametrize("form", FORMS)
def test_bad_vectors_name_their_word_if_it_is_asked_for(form: str, tmp_path: Path, error_of: ErrorOf) -> None:
    line = 4 if form.startswith(("word2vec.txt", "fasttext")) else 3
    place = {"bin": "word 3", "npy": "row 2"}.get(form.removesuffix(".gz").rpartition(".")[2], f"line {line}")
    matrix = matrix_of(WORDS)
    for value in (np.nan, np.inf, -np.inf):
        matrix[2, 5] = value
        message = error_of(write(tmp_path, form, WORDS, matrix), WORDS)
        assert f"{place}: the vector of 'café' holds a value that is not finite" in message
    matrix[3] = 0
    path = write(tmp_path, form, WORDS, matrix)
    assert set(read_vectors(path, ["cat", "🙂"])) == {"cat", "🙂"}
    with pytest.raises(VectorFileError, match="'日本' is zero"):
        read_vectors(path, ["cat", "日本"])


@pytest.mark.parametrize(
    ("words", "matrix", "said"),
    [
        (WORDS[:-1], matrix_of(WORDS), "(8, 20)"),
        (WORDS[:-1], matrix_of(WORDS), "7 words"),
        ([*WORDS, "more"], matrix_of(WORDS), "9 words"),
        ([], matrix_of(WORDS), "0 words"),
        (["cat", "dog"], np.ones(2, np.float32), "(2,)"),
        (["cat"], np.zeros((1, 0), np.float32), "of 0 values"),
        (["cat"], np.array([[1e50, 1.0]]), "not finite"),
        (["cat"], np.array([["a", "b"]]), ""),
        (["cat"], np.array([[1j, 2]]), ""),
    ],
)
def test_npy_that_does_not_fit_its_words(
    words: list[str], matrix: NDArray[Any], said: str, tmp_path: Path, error_of: ErrorOf
) -> None:
    assert said in error_of(write(tmp_path, "matrix.npy", words, matrix))


def test_words_beside_an_npy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_of: ErrorOf) -> None:
    path = write(tmp_path, "matrix.npy", ["cat", "café"], matrix_of(["cat", "café"]))
    (tmp_path / "words.txt").write_bytes("cat\ncafé\n".encode("latin-1"))
    with pytest.raises(VectorFileError, match=r"words\.txt: not UTF-8 text \(byte 7\)"):
        read_vectors(path, ["cat"])
    (tmp_path / "words.txt").unlink()
    assert str(tmp_path / "words.txt") in error_of(path)
    with (tmp_path / "words.txt").open("ab") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    monkeypatch.setattr(Path, "read_bytes", _refuse)
    with pytest.raises(VectorFileError, match=r"words\.txt: too long"):
        read_vectors(path, ["cat"])


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


def encode_npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode() + b"\n"


SHAPES = [(0, 10**9), (1, 10**12), (10**12, 10**12), (1, 10**26), (2**32, 2**32)]


@pytest.mark.parametrize(
    "header",
    [
        *(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}" for shape in SHAPES),
        *("(" * 90, "{'descr': '<f4', 'shape': (1L,", "{'descr': [[]]", "\0", "[" * 9000),
    ],
)
def test_npy_with_a_broken_header_or_an_absurd_shape(header: str, tmp_path: Path, error_of: ErrorOf) -> None:
    (tmp_path / "words.txt").write_text("cat\n" * ("(0," not in header))
    error_of(write_bytes(tmp_path, "matrix.npy", encode_npy(header)))


def test_truncated_npy_and_npz(tmp_path: Path, error_of: ErrorOf) -> None:
    path = write(tmp_path, "matrix.npy", WORDS, matrix_of(WORDS))
    content = path.read_bytes()
    for length in (4, 100, len(content) - 1):
        error_of(write_bytes(tmp_path, "matrix.npy", content[:length]))
    with path.open("wb") as file:
        np.savez(file, vectors=np.ones((1, 3)))
    error_of(path)


@pytest.mark.parametrize("header", [b"1 1000000000", b"0 1000000000", b"9" * 5000 + b" 3", b"3 " + b"9" * 5000])
@pytest.mark.parametrize("file_format", [None, "text", "word2vec-binary"])
def test_header_of_an_absurd_size_is_refused(
    header: bytes, file_format: str | None, tmp_path: Path, error_of: ErrorOf
) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "v.bin", header + b"\n"), file_format=file_format)


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
        whole(path, given)
