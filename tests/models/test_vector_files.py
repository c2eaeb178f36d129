"""Every format gives the same vectors, for the words asked for and as a whole vocabulary."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from biassay.errors import VectorFileError
from biassay.models.registry import open_encoder
from biassay.models.vector_files import HasVocabulary, iter_file, read_vectors
from biassay.models.word_vectors import frequent_words, load_embedded_vectors

from .vector_forms import (
    FORMS,
    TEXT,
    WORDS,
    Matrix,
    binary_of,
    blocks_of,
    header_of,
    joined,
    matrix_of,
    text_of,
    whole,
    write,
    write_bytes,
)

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
    found = read(write(tmp_path, form, words, matrix_of(words)), words)
    assert found == _expected(words, matrix_of(words))
    assert list(found) == [*WORDS, "Dog", "fox"]


@pytest.mark.parametrize("form", FORMS)
def test_only_words_asked_for_are_kept_with_their_places(form: str, tmp_path: Path) -> None:
    found = read_vectors(write(tmp_path, form, WORDS, matrix_of(WORDS)), [WORDS[5], WORDS[2], "none"])
    assert set(found) == {WORDS[2], WORDS[5]}
    assert found.ranks == {WORDS[2]: 3, WORDS[5]: 6}
    assert [word.split(" ")[0] for word in WORDS] == [word.split(" ")[0] for word in found.first_words]


@pytest.mark.parametrize("form", TEXT)
def test_words_may_hold_blanks_or_be_what_others_take_for_white_space(form: str, tmp_path: Path, read: Read) -> None:
    """GloVe 840B has '. . .', fastText's crawl-300d-2M a tab, GloVe's twitter.27B the character NEL."""
    words = ["cat", ". . .", "at name@domain.com", "1.5 2.5", "\t", "\x85", "\xa0—", "\u3000", "\u2028", "", "dog"]
    path = write(tmp_path, form, words, matrix_of(words))
    assert read(path, words) == _expected(words, matrix_of(words))
    assert not read_vectors(path, ["at", "name@domain.com"])


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "  \r\n", "\t\n"])
@pytest.mark.parametrize("with_header", [True, False])
@pytest.mark.parametrize("after", ["", "end", "end end"])
def test_line_ends_do_not_matter(end: str, with_header: bool, after: str, tmp_path: Path, read: Read) -> None:
    content = text_of(WORDS, matrix_of(WORDS), end) + after.replace("end", end.strip(" ")).encode()
    if with_header:
        content = header_of(matrix_of(WORDS)).replace(b"\n", end.encode()) + content
    assert read(write_bytes(tmp_path, "v.txt", content), WORDS) == _expected(WORDS, matrix_of(WORDS))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"cat 1 2\ndog 3.5 -4.25", {"cat": [1, 2], "dog": [3.5, -4.25]}),
        (b"cat 1.5\nbig dog 2.5\n", {"cat": [1.5], "big dog": [2.5]}),
        # Several lines lie within the first bytes, by which text and binary are told apart.
        (b"2 3\ncat 1 2 3\ndog 4 5 6\n", {"cat": [1, 2, 3], "dog": [4, 5, 6]}),
        (b"2 3\n. . . 1 2 3\ndog 4 5 6\n", {". . .": [1, 2, 3], "dog": [4, 5, 6]}),
        (b"dog 1 2\ncat 1e-3 -2.5E+1\nfox .5 -0\ncow +1 1.\n", None),
    ],
)
def test_short_files(content: bytes, expected: dict[str, list[float]] | None, tmp_path: Path, read: Read) -> None:
    expected = expected or {"dog": [1, 2], "cat": [float(np.float32(1e-3)), -25], "fox": [0.5, 0], "cow": [1, 1]}
    assert read(write_bytes(tmp_path, "v.txt", content), list(expected)) == expected


def test_format_can_be_given(tmp_path: Path, read: Read) -> None:
    matrix = matrix_of(WORDS, 3)
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
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    blocks = blocks_of(path, rows=rows)
    assert [len(block.words) for block in blocks] == [min(rows, 8 - at) for at in range(0, 8, rows)]
    words, vectors = joined(blocks)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, matrix_of(WORDS))
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
    matrix = matrix_of(words)
    content = text_of(words, matrix) if form == "v.txt" else binary_of(words, matrix, b"")
    path = write_bytes(tmp_path, form, content.replace(b"caf#", b"caf\xe9"))
    assert _stream(path) == _expected(["cat", "caf\ufffd", "dog"], matrix)


@pytest.mark.parametrize("form", FORMS)
def test_zero_vectors_are_left_out_and_counted(form: str, tmp_path: Path) -> None:
    words = [*WORDS, WORDS[3]]
    matrix = matrix_of(words)
    matrix[[0, 3, 7]] = 0
    matrix[4, 0] = 0
    blocks = blocks_of(write(tmp_path, form, words, matrix), rows=2)
    found, vectors = joined(blocks)
    assert found == [WORDS[row] for row in (1, 2, 4, 5, 6)]  # a word whose first vector is zero has none
    np.testing.assert_array_equal(vectors, matrix[[1, 2, 4, 5, 6]])
    assert blocks[-1].skipped == 3
    with pytest.raises(VectorFileError, match="direction"):
        whole(write(tmp_path, form, WORDS, np.zeros_like(matrix_of(WORDS))))


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
@example("0.1\x00")
def test_a_field_is_read_or_refused_either_way(field: str) -> None:
    """Among good values on both sides, so that one that stops early or runs on would shift its neighbours."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_bytes(Path(folder), "v.txt", f"cat 1.5 2.5 3.5\ndog 4.5 {field} 5.5\nfox 6 7 8\n".encode())
        assert _outcome(_stream, path) == _outcome(_ask, path)


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
    path = write(tmp_path, "matrix.npy", ["cat", "dog"], matrix_of(["cat", "dog"]))
    before = open_encoder(f"vectors:{path}").identity.key
    (tmp_path / "words.txt").write_text("dog\ncat\n")
    assert open_encoder(f"vectors:{path}").identity.key != before
