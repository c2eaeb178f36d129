"""Whole files of vectors, block by block: what ``read_vectors`` gives word for word is the witness."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from biassay.errors import VectorFileError
from biassay.models.registry import open_encoder
from biassay.models.vector_files import read_vectors
from biassay.models.vocabulary import HasVocabulary, iter_arrays, iter_file
from biassay.models.word_vectors import frequent_words, load_embedded_vectors

from .vector_forms import (
    FORMS,
    TEXT,
    WORDS,
    binary_of,
    header_of,
    matrix_of,
    text_of,
    write,
    write_bytes,
)
from .whole_files import as_lists, error_of, joined, whole

# What is read


@pytest.mark.parametrize("form", FORMS)
def test_every_format_agrees_with_words_asked_for(form: str, tmp_path: Path) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    words, vectors = whole(path)
    assert words == WORDS
    assert vectors.dtype == np.float32
    found = read_vectors(path, WORDS)
    np.testing.assert_array_equal(vectors, np.stack([found[word] for word in words]))
    np.testing.assert_array_equal(vectors, matrix_of(WORDS))


@pytest.mark.parametrize("form", FORMS)
def test_words_asked_for_come_with_their_places_and_the_beginning_of_the_file(form: str, tmp_path: Path) -> None:
    found = read_vectors(write(tmp_path, form, WORDS, matrix_of(WORDS)), [WORDS[5], WORDS[2], "none"])
    assert found.ranks == {WORDS[2]: 3, WORDS[5]: 6}
    assert [word.split(" ")[0] for word in WORDS] == [word.split(" ")[0] for word in found.first_words]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 3, 7, 8, 9])
def test_length_of_blocks_does_not_change_the_stream(form: str, rows: int, tmp_path: Path) -> None:
    blocks = list(iter_file(write(tmp_path, form, WORDS, matrix_of(WORDS)), rows=rows))
    assert [len(block.words) for block in blocks] == [min(rows, 8 - at) for at in range(0, 8, rows)]
    words, vectors = joined(blocks)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, matrix_of(WORDS))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["glove.txt", "glove.txt.gz", "word2vec.bin", "newlines.bin.gz", "matrix.npy"])
def test_words_across_read_chunks_are_whole(form: str, tmp_path: Path) -> None:
    """Ten megabytes: more than is read at once, and more than one block."""
    words = [f"w{i}" for i in range(9000)]
    matrix = np.tile(np.arange(1, 301, dtype=np.float32), (9000, 1)) + np.arange(9000, dtype=np.float32)[:, None]
    blocks = list(iter_file(write(tmp_path, form, words, matrix)))
    assert [len(block.words) for block in blocks] == [8192, 808]
    found, vectors = joined(blocks)
    assert found == words
    np.testing.assert_array_equal(vectors, matrix)


@pytest.mark.parametrize("form", FORMS)
def test_progress_rises_to_the_whole(form: str, tmp_path: Path) -> None:
    path = write(tmp_path, form, WORDS, matrix_of(WORDS))
    blocks = list(iter_file(path, rows=2))
    done = [block.done for block in blocks]
    assert done == sorted(done)
    assert {block.total for block in blocks} == {8 if form == "matrix.npy" else path.stat().st_size}
    assert 0 < done[-1] <= blocks[-1].total
    assert form.endswith(".gz") or done[-1] == blocks[-1].total


@pytest.mark.parametrize("form", TEXT)
def test_words_with_blanks_inside_do_not_shift_values(form: str, tmp_path: Path) -> None:
    """GloVe 840B has such lines: '. . .', 'at name@domain.com'."""
    words = ["cat", ". . .", "at name@domain.com", "1.5 2.5", "dog"]
    found, vectors = whole(write(tmp_path, form, words, matrix_of(words)))
    assert found == words
    np.testing.assert_array_equal(vectors, matrix_of(words))


@pytest.mark.parametrize("form", TEXT)
def test_words_may_be_what_others_take_for_white_space(form: str, tmp_path: Path) -> None:
    """fastText's crawl-300d-2M has a tab for a word, GloVe's twitter.27B the character NEL, wiki.ru no-break spaces."""
    words = ["cat", "\t", "\x85", "\xa0—", "\u3000", "\u2028", "", "dog"]
    found, vectors = whole(write(tmp_path, form, words, matrix_of(words)))
    assert found == words
    np.testing.assert_array_equal(vectors, matrix_of(words))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_first_of_a_repeated_word_counts(form: str, rows: int, tmp_path: Path) -> None:
    words = ["dog", "cat", "cat", "dog", "Dog", "fox", "cat"]
    matrix = matrix_of(words)
    found, vectors = whole(write(tmp_path, form, words, matrix), rows)
    assert found == ["dog", "cat", "Dog", "fox"]
    np.testing.assert_array_equal(vectors, matrix[[0, 1, 4, 5]])


@pytest.mark.parametrize("end", ["\r\n", " \n", "  \r\n", "\t\n"])
@pytest.mark.parametrize("with_header", [True, False])
@pytest.mark.parametrize("after", ["", "end", "end end"])
def test_line_ends_do_not_matter(end: str, with_header: bool, after: str, tmp_path: Path) -> None:
    content = text_of(WORDS, matrix_of(WORDS), end) + after.replace("end", end.strip(" ")).encode()
    if with_header:
        content = header_of(matrix_of(WORDS)).replace(b"\n", end.encode()) + content
    words, vectors = whole(write_bytes(tmp_path, "v.txt", content))
    assert words == WORDS
    np.testing.assert_array_equal(vectors, matrix_of(WORDS))


def test_last_line_needs_no_newline(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2\ndog 3.5 -4.25")
    assert as_lists(path) == {"cat": [1, 2], "dog": [3.5, -4.25]}


def test_one_value_a_word_is_enough(tmp_path: Path) -> None:
    assert as_lists(write_bytes(tmp_path, "v.txt", b"cat 1.5\nbig dog 2.5\n")) == {"cat": [1.5], "big dog": [2.5]}


@pytest.mark.parametrize("form", ["v.txt", "v.bin", "matrix.npy"])
def test_words_that_are_not_utf8_are_kept(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(["a", "b", "c"])
    if form == "matrix.npy":
        path = write(tmp_path, form, ["a", "b", "c"], matrix)
        (tmp_path / "words.txt").write_bytes(b"cat\ncaf\xe9\ndog\n")
    else:
        content = text_of(["cat", "caf#", "dog"], matrix) if form == "v.txt" else None
        content = content or binary_of(["cat", "caf#", "dog"], matrix, b"")
        path = write_bytes(tmp_path, form, content.replace(b"caf#", b"caf\xe9"))
    words, vectors = whole(path)
    assert words == ["cat", "caf\ufffd", "dog"]
    np.testing.assert_array_equal(vectors, matrix)


@pytest.mark.parametrize("form", FORMS)
def test_zero_vectors_are_left_out_and_counted(form: str, tmp_path: Path) -> None:
    matrix = matrix_of(WORDS)
    matrix[[0, 3, 7]] = 0
    matrix[4, 0] = 0
    blocks = list(iter_file(write(tmp_path, form, WORDS, matrix), rows=2))
    words, vectors = joined(blocks)
    assert words == [WORDS[row] for row in (1, 2, 4, 5, 6)]
    np.testing.assert_array_equal(vectors, matrix[[1, 2, 4, 5, 6]])
    assert blocks[-1].skipped == 3


def test_a_word_whose_first_vector_is_zero_has_none(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 0 0\ndog 1 2\ncat 3 4\n")
    assert as_lists(path) == {"dog": [1, 2]}


@pytest.mark.parametrize("form", FORMS)
def test_file_of_zero_vectors_is_refused(form: str, tmp_path: Path) -> None:
    assert "direction" in error_of(write(tmp_path, form, WORDS, np.zeros_like(matrix_of(WORDS))))


def test_format_can_be_given(tmp_path: Path) -> None:
    matrix = matrix_of(WORDS, 3)
    for file_format, form in [("text", "word2vec.txt"), ("word2vec-binary", "word2vec.bin"), ("npy", "matrix.npy")]:
        np.testing.assert_array_equal(whole(write(tmp_path, form, WORDS, matrix), 3, file_format)[1], matrix)


def test_a_stream_may_be_left_early(tmp_path: Path) -> None:
    """Nothing stays open: a warning would be an error."""
    for form in FORMS:
        stream = iter_file(write(tmp_path, form, WORDS, matrix_of(WORDS)), rows=2)
        assert next(stream).words == WORDS[:2]
        del stream


# Numbers


def _asked_for(path: Path) -> dict[str, list[float]]:
    return {word: vector.tolist() for word, vector in read_vectors(path, ["cat", "dog", "fox"]).items()}


def _outcome(read: Callable[[Path], dict[str, list[float]]], path: Path) -> dict[str, list[float]] | str:
    try:
        return read(path)
    except VectorFileError as error:
        return str(error)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(field=st.text("0123456789.-+e_xnaif\t\r\x00é", max_size=22))
@example("1.5-2.5")
@example("1.5.5")
@example("-")
@example("-.")
@example("1.")
@example("-1.12345678/")
@example("1.:2345678")
@example("0.12345678901234")
@example("-9.99999999999999")
@example("9.999999999999999")
@example("0.12345678901234567890123")
@example("1e50")
@example("1_0")
@example("0.1\x00")
def test_a_field_is_read_or_refused_as_elsewhere(field: str) -> None:
    """Among good values on both sides, so that one that stops early or runs on would shift its neighbours."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_bytes(Path(folder), "v.txt", f"cat 1.5 2.5 3.5\ndog 4.5 {field} 5.5\nfox 6 7 8\n".encode())
        assert _outcome(as_lists, path) == _outcome(_asked_for, path)


_number = st.floats(width=32, allow_nan=False, allow_infinity=False)
_small = st.floats(-10, 10, allow_nan=False)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(_number | _small, min_size=1, max_size=40),
    form=st.sampled_from([".9g", ".5g", ".6f", ".4f", ".10f", ".14f", ".15f", ".18e", ""]),
)
def test_numbers_are_those_of_float(values: list[float], form: str) -> None:
    fields = [f"{value:{form}}" for value in values]
    with tempfile.TemporaryDirectory() as folder:
        path = write_bytes(Path(folder), "v.txt", f"cat {' '.join(fields)} 1.0\n".encode())
        with np.errstate(over="ignore"):
            expected = np.array([*map(float, fields), 1.0]).astype(np.float32)
        np.testing.assert_array_equal(whole(path)[1][0], expected)


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.sampled_from(["cat", "dog", "a b", ". . .", "é", "1 2"]), min_size=1), rows=st.integers(1, 9))
def test_any_order_of_words_gives_each_once(words: list[str], rows: int) -> None:
    matrix = matrix_of(words, 4)
    with tempfile.TemporaryDirectory() as folder:
        path = write_bytes(Path(folder), "v.txt", header_of(matrix) + text_of(words, matrix))
        found, vectors = whole(path, rows)
    assert found == list(dict.fromkeys(words))
    np.testing.assert_array_equal(vectors, matrix[[words.index(word) for word in found]])


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


def test_blocks_of_an_array_are_its_rows() -> None:
    blocks = list(iter_arrays(WORDS, matrix_of(WORDS), rows=3))
    assert [(block.words, block.done, block.total) for block in blocks] == [
        (WORDS[:3], 3, 8),
        (WORDS[3:6], 6, 8),
        (WORDS[6:], 8, 8),
    ]
    np.testing.assert_array_equal(joined(blocks)[1], matrix_of(WORDS))


@pytest.mark.parametrize("settings", ["", "?case=fold", "?format=text"])
def test_vocabulary_of_a_file_is_as_it_stands_there(settings: str, tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"Cat 1 2\ncat 3 4\nThe 5 6\n")
    encoder = open_encoder(f"vectors:{path}{settings}")
    assert isinstance(encoder, HasVocabulary)
    words, vectors = joined(list(encoder.vocabulary()))
    assert words == ["Cat", "cat", "The"]
    assert vectors.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_file_that_changed_since_the_model_was_opened_is_refused(tmp_path: Path) -> None:
    path = write_bytes(tmp_path, "v.txt", b"cat 1 2\n")
    encoder = open_encoder(f"vectors:{path}")
    assert isinstance(encoder, HasVocabulary)
    path.write_bytes(b"cat 1 2\ndog 3 4\n")
    with pytest.raises(VectorFileError, match="changed while it was read"):
        list(encoder.vocabulary())


def test_not_every_object_has_a_vocabulary() -> None:
    assert not isinstance(object(), HasVocabulary)


def test_a_line_of_blanks_between_words_is_refused(tmp_path: Path) -> None:
    message = error_of(write_bytes(tmp_path, "v.txt", b"cat 1 2 3\n  \ndog 4 5 6\n"))
    assert "line 2: expected 3 values, got 0" in message
