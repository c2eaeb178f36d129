"""Files of word vectors: every format gives the same vectors, or an error with its place."""

from __future__ import annotations

import gzip
import os
import pickle
import shutil
import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, VectorFileError
from biassay.models import vector_files
from biassay.models.registry import open_encoder
from biassay.models.vector_files import HasVocabulary, VocabularyBlock, file_fingerprint, iter_file, read_vectors
from biassay.models.word_vectors import frequent_words, load_embedded_vectors

Matrix = NDArray[np.float32]
PLAIN = ("glove.txt", "word2vec.txt", "word2vec.bin", "newlines.bin", "fasttext.vec")
TEXT = ("glove.txt", "word2vec.txt", "fasttext.vec")
FORMS = (*PLAIN, *(f"{form}.gz" for form in PLAIN), "matrix.npy")
WORDS = ["cat", "dog", "café", "日本", "naïveté", "O'Brien", "well-known", "🙂"]
WIDE = 20  # enough values to reach past the first bytes of a file


def make_matrix(words: Sequence[str], dimension: int = WIDE) -> Matrix:
    return np.random.default_rng(7).normal(size=(len(words), dimension)).astype(np.float32)


def write_text_vectors(words: Sequence[str], matrix: Matrix, end: str = "\n") -> bytes:
    """Nine digits: enough to give back every float32 exactly."""
    rows = (" ".join([word, *(f"{value:.9g}" for value in row)]) for word, row in zip(words, matrix, strict=True))
    return "".join(row + end for row in rows).encode()


def make_header(matrix: Matrix) -> bytes:
    return f"{len(matrix)} {matrix.shape[1]}\n".encode()


def binary_of(words: Sequence[str], matrix: Matrix, end: bytes) -> bytes:
    rows = (word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in zip(words, matrix, strict=True))
    return make_header(matrix) + b"".join(rows)


def content_of(form: str, words: Sequence[str], matrix: Matrix) -> bytes:
    if form.endswith(".gz"):
        return gzip.compress(content_of(form.removesuffix(".gz"), words, matrix), mtime=0)
    if form == "glove.txt":
        return write_text_vectors(words, matrix)
    if form == "word2vec.txt":
        return make_header(matrix) + write_text_vectors(words, matrix)
    if form == "fasttext.vec":  # fastText ends its lines with a blank
        return make_header(matrix) + write_text_vectors(words, matrix, " \n")
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


Read = Callable[..., dict[str, list[float]]]


def _ask(path: Path, words: Sequence[str], file_format: str | None = None) -> dict[str, list[float]]:
    found = read_vectors(path, words, file_format)
    assert all(vector.dtype == np.float32 for vector in found.values())
    return {word: vector.tolist() for word, vector in found.items()}


def _stream(path: Path, _: Sequence[str] = (), file_format: str | None = None) -> dict[str, list[float]]:
    found, vectors = whole(path, file_format)
    assert vectors.dtype == np.float32
    return dict(zip(found, vectors.tolist(), strict=True))


@pytest.fixture(params=[_ask, _stream], ids=["words", "vocabulary"])
def read(request: pytest.FixtureRequest) -> Read:
    return request.param


def _expected(words: Sequence[str], matrix: Matrix) -> dict[str, list[float]]:
    """The first vector of each word."""
    return dict(reversed(list(zip(words, matrix.tolist(), strict=True))))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_first_vector_of_each_word(form: str, tmp_path: Path, read: Read) -> None:
    words = [*WORDS, "Dog", "dog", "fox", "cat"]
    found = read(write(tmp_path, form, words, make_matrix(words)), words)
    assert found == _expected(words, make_matrix(words))
    assert list(found) == [*WORDS, "Dog", "fox"]


@pytest.mark.parametrize("form", FORMS)
def test_only_words_asked_for_are_kept_with_their_places(form: str, tmp_path: Path) -> None:
    found = read_vectors(write(tmp_path, form, WORDS, make_matrix(WORDS)), [WORDS[5], WORDS[2], "none"])
    assert set(found) == {WORDS[2], WORDS[5]}
    assert found.ranks == {WORDS[2]: 3, WORDS[5]: 6}
    assert [word.split(" ")[0] for word in WORDS] == [word.split(" ")[0] for word in found.first_words]


@pytest.mark.parametrize("form", TEXT)
def test_words_may_hold_blanks_or_be_what_others_take_for_white_space(form: str, tmp_path: Path, read: Read) -> None:
    """GloVe 840B has '. . .', fastText's crawl-300d-2M a tab, GloVe's twitter.27B the character NEL."""
    words = ["cat", ". . .", "at name@domain.com", "1.5 2.5", "\t", "\x85", "\xa0—", "\u3000", "\u2028", "", "dog"]
    path = write(tmp_path, form, words, make_matrix(words))
    assert read(path, words) == _expected(words, make_matrix(words))
    assert not read_vectors(path, ["at", "name@domain.com"])


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "  \r\n", "\t\n"])
@pytest.mark.parametrize("with_header", [True, False])
@pytest.mark.parametrize("after", ["", "end", "end end"])
def test_line_ends_do_not_matter(end: str, with_header: bool, after: str, tmp_path: Path, read: Read) -> None:
    content = write_text_vectors(WORDS, make_matrix(WORDS), end) + after.replace("end", end.strip(" ")).encode()
    if with_header:
        content = make_header(make_matrix(WORDS)).replace(b"\n", end.encode()) + content
    assert read(write_bytes(tmp_path, "v.txt", content), WORDS) == _expected(WORDS, make_matrix(WORDS))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"cat 1 2\ndog 3.5 -4.25", {"cat": [1, 2], "dog": [3.5, -4.25]}),
        (b"cat 1.5\nbig dog 2.5\n", {"cat": [1.5], "big dog": [2.5]}),
        # The first bytes, which distinguish text from binary files, hold several lines.
        (b"2 3\ncat 1 2 3\ndog 4 5 6\n", {"cat": [1, 2, 3], "dog": [4, 5, 6]}),
        (b"2 3\n. . . 1 2 3\ndog 4 5 6\n", {". . .": [1, 2, 3], "dog": [4, 5, 6]}),
        (b"dog 1 2\ncat 1e-3 -2.5E+1\nfox .5 -0\ncow +1 1.\n", None),
    ],
)
def test_short_files(content: bytes, expected: dict[str, list[float]] | None, tmp_path: Path, read: Read) -> None:
    expected = expected or {"dog": [1, 2], "cat": [float(np.float32(1e-3)), -25], "fox": [0.5, 0], "cow": [1, 1]}
    assert read(write_bytes(tmp_path, "v.txt", content), list(expected)) == expected


def test_format_can_be_given(tmp_path: Path, read: Read) -> None:
    matrix = make_matrix(WORDS, 3)
    for file_format, form in [("text", "word2vec.txt"), ("word2vec-binary", "word2vec.bin"), ("npy", "matrix.npy")]:
        assert read(write(tmp_path, form, WORDS, matrix), WORDS, file_format) == _expected(WORDS, matrix)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<f2", "<i4"])
def test_npy_of_any_real_type_is_read(dtype: str, tmp_path: Path, read: Read) -> None:
    """Words stand on lines of any kind, and may hold U+0085 and U+2028, as those of web vocabularies do."""
    path = write(tmp_path, "matrix.npy", [], np.array([[1, 2], [3, -4]], dtype=dtype))
    (tmp_path / "words.txt").write_bytes("a\x85b\r\nc\u2028d\r\n".encode())
    assert read(path, ["a\x85b", "c\u2028d"]) == {"a\x85b": [1, 2], "c\u2028d": [3, -4]}


_word = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)
_value = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def _vocabularies(draw: st.DrawFn) -> tuple[list[str], Matrix]:
    words = draw(st.lists(_word | st.sampled_from(["cat", "dog"]), min_size=1, max_size=6))
    shape = (len(words), draw(st.integers(2, 12)))
    matrix = draw(hnp.arrays(np.float32, shape, elements=_value))
    matrix[~matrix.any(axis=1), 0] = 1
    return words, matrix


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(vocabulary=_vocabularies())
def test_what_is_written_is_read_back(form: str, vocabulary: tuple[list[str], Matrix]) -> None:
    words, matrix = vocabulary
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), form, words, matrix)
        assert _ask(path, words) == _stream(path) == _expected(words, matrix)


# As a whole vocabulary


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 3, 8, 9])
def test_length_of_blocks_does_not_change_the_stream(form: str, rows: int, tmp_path: Path) -> None:
    path = write(tmp_path, form, WORDS, make_matrix(WORDS))
    blocks = blocks_of(path, rows=rows)
    assert [len(block.words) for block in blocks] == [min(rows, 8 - at) for at in range(0, 8, rows)]
    words, vectors = joined(blocks)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, make_matrix(WORDS))
    done = [block.done for block in blocks]
    assert done == sorted(done)
    assert {block.total for block in blocks} == {8 if form == "matrix.npy" else path.stat().st_size}
    assert 0 < done[-1] <= blocks[-1].total
    assert form.endswith(".gz") or done[-1] == blocks[-1].total
    assert next(iter_file(path)).words == WORDS  # left early: an open file would be a warning


@pytest.mark.slow
@pytest.mark.parametrize("form", ["glove.txt", "glove.txt.gz", "word2vec.bin", "newlines.bin.gz", "matrix.npy"])
def test_words_across_read_chunks_are_whole(form: str, tmp_path: Path) -> None:
    """Ten megabytes: more than is read at once, and more than one block."""
    words = [f"w{i}" for i in range(9000)]
    matrix = np.tile(np.arange(1, 301, dtype=np.float32), (9000, 1)) + np.arange(9000, dtype=np.float32)[:, None]
    path = write(tmp_path, form, words, matrix)
    blocks = list(iter_file(path))
    assert [len(block.words) for block in blocks] == [8192, 808]
    found, vectors = joined(blocks)
    assert found == words
    np.testing.assert_array_equal(vectors, matrix)
    np.testing.assert_array_equal(np.stack(list(read_vectors(path, words).values())), matrix)


@pytest.mark.parametrize("form", ["v.txt", "v.bin"])
def test_words_that_are_not_utf8_are_kept(form: str, tmp_path: Path) -> None:
    words = ["cat", "caf#", "dog"]
    matrix = make_matrix(words)
    content = write_text_vectors(words, matrix) if form == "v.txt" else binary_of(words, matrix, b"")
    path = write_bytes(tmp_path, form, content.replace(b"caf#", b"caf\xe9"))
    assert _stream(path) == _expected(["cat", "caf\ufffd", "dog"], matrix)


@pytest.mark.parametrize("form", FORMS)
def test_zero_vectors_are_left_out_and_counted(form: str, tmp_path: Path) -> None:
    words = [*WORDS, WORDS[3]]
    matrix = make_matrix(words)
    matrix[[0, 3, 7]] = 0
    matrix[4, 0] = 0
    blocks = blocks_of(write(tmp_path, form, words, matrix), rows=2)
    found, vectors = joined(blocks)
    assert found == [WORDS[row] for row in (1, 2, 4, 5, 6)]  # a word whose first vector is zero has none
    np.testing.assert_array_equal(vectors, matrix[[1, 2, 4, 5, 6]])
    assert blocks[-1].skipped == 3
    with pytest.raises(VectorFileError, match="direction"):
        whole(write(tmp_path, form, WORDS, np.zeros_like(make_matrix(WORDS))))


# Numbers


def _outcome(read: Read, path: Path) -> dict[str, list[float]] | str:
    try:
        return read(path, ["cat", "dog", "fox"])
    except VectorFileError as error:
        return str(error)


@pytest.mark.slow
@settings(max_examples=300)
@given(field=st.text("0123456789.-+e_xnaif\t\r\x00é", max_size=22))
@example("1.5-2.5")
@example("1e50")
@example("1_0")
@example("-")
@example("-.")
@example("1.")
@example("-1.12345678/")
@example("1.:2345678")
@example("-9.99999999999999")
@example("0.12345678901234567890123")
@example("0.1\x00")
def test_a_field_is_read_or_refused_either_way(field: str) -> None:
    """Among good values on both sides, so that one that stops early or runs on would shift its neighbours."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_bytes(Path(folder), "v.txt", f"cat 1.5 2.5 3.5\ndog 4.5 {field} 5.5\nfox 6 7 8\n".encode())
        assert _outcome(_stream, path) == _outcome(_ask, path)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    values=st.lists(_value | st.floats(-10, 10, allow_nan=False), min_size=1, max_size=40),
    form=st.sampled_from([".9g", ".5g", ".6f", ".4f", ".10f", ".14f", ".15f", ".18e", ""]),
)
def test_numbers_are_those_of_float(values: list[float], form: str) -> None:
    fields = [f"{value:{form}}" for value in values]
    with tempfile.TemporaryDirectory() as folder:
        path = write_bytes(Path(folder), "v.txt", f"cat {' '.join(fields)} 1.0\n".encode())
        with np.errstate(over="ignore"):
            expected = np.array([*map(float, fields), 1.0]).astype(np.float32)
        np.testing.assert_array_equal(whole(path)[1][0], expected)


# Encoders


def test_embedded_vocabulary_is_the_20000_most_frequent_of_the_embedded_vectors() -> None:
    encoder = open_encoder("glove")
    assert isinstance(encoder, HasVocabulary)
    blocks = list(encoder.vocabulary())
    words, vectors = joined(blocks)
    expected = load_embedded_vectors()
    assert words == frequent_words() == list(expected)[:20_000]
    np.testing.assert_array_equal(vectors, np.stack(list(expected.values())[:20_000]))
    assert blocks[-1].done == blocks[-1].total == 20_000


@pytest.mark.parametrize("query", ["", "?case=fold", "?format=text"])
def test_vocabulary_of_a_file_is_as_it_stands_there(query: str, tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"Cat 1 2\ncat 3 4\nThe 5 6\n")
    encoder = open_encoder(f"vectors:{path}{query}")
    assert isinstance(encoder, HasVocabulary)
    words, vectors = joined(list(encoder.vocabulary()))
    assert words == ["Cat", "cat", "The"]
    assert vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    path.write_bytes(b"cat 1 2\ndog 3 4\n")
    with pytest.raises(VectorFileError, match="changed while it was read"):
        list(encoder.vocabulary())


def test_a_copy_under_another_name_and_date_is_the_same_model(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2 3\n")
    before = open_encoder(f"vectors:{path}").identity
    copy = Path(shutil.copyfile(path, tmp_path / "copy.txt"))
    os.utime(copy, ns=(1, 1))
    copy.chmod(0o400)
    after = open_encoder(f"vectors:{copy}").identity
    assert (after.key, after.revision) == (before.key, before.revision)


def test_model_is_another_when_the_words_beside_an_npy_change(tmp_path: Path) -> None:
    """Otherwise stored vectors of the old words would be used."""
    path = write(tmp_path, "matrix.npy", ["cat", "dog"], make_matrix(["cat", "dog"]))
    before = open_encoder(f"vectors:{path}").identity.key
    (tmp_path / "words.txt").write_text("dog\ncat\n")
    assert open_encoder(f"vectors:{path}").identity.key != before


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
    path = write(tmp_path, "glove.txt", WORDS, make_matrix(WORDS))
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
        ("v.bin", binary_of(WORDS, make_matrix(WORDS), b"").replace(b"8 20\n", b"8 10\n", 1), ""),
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
    values = write_text_vectors([""], make_matrix([""], 100))
    lines = [b"w%05d" % i + values for i in range(20_000)]
    lines[17_654] = lines[17_654].replace(b" -", b" -x", 1)
    message = error_of(write_bytes(tmp_path, "v.txt", b"".join(lines)), ["w17654"])
    assert "line 17655: the values of 'w17654' are not all numbers" in message


@pytest.mark.parametrize("form", ["word2vec.txt", "fasttext.vec", "word2vec.txt.gz", "word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("declared", [7, 9])
def test_header_count_must_match(form: str, declared: int, tmp_path: Path, error_of: ErrorOf) -> None:
    content = content_of(form.removesuffix(".gz"), WORDS, make_matrix(WORDS)).replace(b"8 ", b"%d " % declared, 1)
    message = error_of(write_bytes(tmp_path, form, gzip.compress(content) if form.endswith(".gz") else content))
    assert str(declared) in message


@pytest.mark.parametrize("form", ["word2vec.bin", "newlines.bin"])
@pytest.mark.parametrize("lost", [2, 4 * WIDE + 2, 300])
def test_truncated_binary_gives_the_word_number(form: str, lost: int, tmp_path: Path, error_of: ErrorOf) -> None:
    message = error_of(write_bytes(tmp_path, form, content_of(form, WORDS, make_matrix(WORDS))[:-lost]))
    assert "of 8" in message
    assert "truncated" in message


@pytest.mark.parametrize("content", [b"cat " + np.ones(3, "<f4").tobytes(), b"cat 123412341234", b"3 0\na b c "])
def test_binary_needs_a_header_with_a_dimension(content: bytes, tmp_path: Path, error_of: ErrorOf) -> None:
    assert "line 1" in error_of(write_bytes(tmp_path, "v.bin", content), file_format="word2vec-binary")


@pytest.mark.parametrize("form", [f"{form}.gz" for form in PLAIN])
def test_damaged_gzip_is_refused(form: str, tmp_path: Path, error_of: ErrorOf) -> None:
    """Cut anywhere; with another checksum, so that the data itself can still be unpacked; with a hole."""
    content = content_of(form, WORDS, make_matrix(WORDS))
    for kept in (5, 14, 0.5, 0.9, 0.999):
        cut = write_bytes(tmp_path, form, content[: int(kept if kept > 1 else kept * len(content))])
        assert "compressed file is" in error_of(cut)
        assert "compressed file is" in error_of(cut, file_format="word2vec-binary" if "bin" in form else "text")
    assert "damaged" in error_of(write_bytes(tmp_path, form, content[:-6] + bytes([content[-6] ^ 0xFF]) + content[-5:]))
    words = [f"w{i}" for i in range(4000)]
    content = content_of(form, words, make_matrix(words))
    middle = len(content) // 2
    error_of(write_bytes(tmp_path, form, content[:middle] + bytes(4000) + content[middle + 4000 :]))


@pytest.mark.parametrize("form", FORMS)
def test_bad_vectors_name_their_word_if_it_is_asked_for(form: str, tmp_path: Path, error_of: ErrorOf) -> None:
    line = 4 if form.startswith(("word2vec.txt", "fasttext")) else 3
    place = {"bin": "word 3", "npy": "row 2"}.get(form.removesuffix(".gz").rpartition(".")[2], f"line {line}")
    matrix = make_matrix(WORDS)
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
        (WORDS[:-1], make_matrix(WORDS), "(8, 20)"),
        (WORDS[:-1], make_matrix(WORDS), "7 words"),
        ([*WORDS, "more"], make_matrix(WORDS), "9 words"),
        ([], make_matrix(WORDS), "0 words"),
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
    path = write(tmp_path, "matrix.npy", ["cat", "café"], make_matrix(["cat", "café"]))
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
    path = write(tmp_path, "matrix.npy", WORDS, make_matrix(WORDS))
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
    path = write(tmp_path, "glove.txt", WORDS, make_matrix(WORDS))
    with pytest.raises(UnknownNameError, match="text, word2vec-binary, npy"):
        read_vectors(path, ["cat"], given)
    with pytest.raises(UnknownNameError, match="text, word2vec-binary, npy"):
        whole(path, given)


def _write_at(path: Path, offset: int, content: bytes) -> None:
    """Change a file in place and set its time back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_fingerprint_changes_with_any_byte(tmp_path: Path) -> None:
    size = 1 << 20
    path = write_bytes(tmp_path, "v.bin", bytes(size))
    assert file_fingerprint(path) == file_fingerprint(path)
    seen = {file_fingerprint(path)}
    for offset in (0, 1, 65_536, 100_000, size // 2 - 1, size // 2, size - 65_537, size - 1):
        _write_at(path, offset, b"x")
        seen.add(file_fingerprint(path))
    path.write_bytes(path.read_bytes() + b"x")
    assert len({*seen, file_fingerprint(path)}) == 10
