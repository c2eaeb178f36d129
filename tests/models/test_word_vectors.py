"""Mean of word vectors, tokenization, and the embedded vectors."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from biassay.models.base import TextEmbeddings
from biassay.models.registry import open_encoder
from biassay.models.word_vectors import load_embedded_vectors, tokenize

DATA = resources.files("biassay.models") / "data"
VOCABULARY = {
    "the": (1, 2, 4),
    "cat": (0.5, -1, 8),
    "Cat": (9, 9, 9),
    "'s": (0, 0, 3),
    "sat": (7, 0, 1),
    ".": (1, 1, 1),
}


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    lines = (f"{word} {' '.join(map(str, values))}\n" for word, values in VOCABULARY.items())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def encode(model: str, *texts: str) -> TextEmbeddings:
    encoder = open_encoder(model)
    encoder.prepare(texts)
    return encoder.encode(texts)


def mean(*words: str) -> np.ndarray:
    return np.mean([VOCABULARY[word] for word in words], axis=0).astype(np.float32)


# Words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("This is a cat.", ["This", "is", "a", "cat", "."]),
        ("the cat's tail", ["the", "cat", "'s", "tail"]),
        ("the cat’s tail", ["the", "cat", "’s", "tail"]),
        ("the cats' tails", ["the", "cats", "'", "tails"]),
        ("a well-known man", ["a", "well-known", "man"]),
        ("a mother-in-law's", ["a", "mother-in-law", "'s"]),
        ("rock-'n'-roll", ["rock", "-", "'", "n", "'", "-", "roll"]),
        ("don't, O'Brien!", ["don't", ",", "O'Brien", "!"]),
        ('"Yes" - (no)', ['"', "Yes", '"', "-", "(", "no", ")"]),
        ("-ward pre-", ["-", "ward", "pre", "-"]),
        ("'so' it's", ["'", "so", "'", "it", "'s"]),
        ("José naïve 日本 42 हिन्दी Jose\u0301", ["José", "naïve", "日本", "42", "हिन्दी", "Jose\u0301"]),
        (" \t\n", []),
        ("", []),
    ],
)
def test_words_possessives_and_marks_are_tokens(text: str, words: list[str]) -> None:
    assert [token for token, _ in tokenize(text)] == words


# Means


def test_text_is_the_mean_of_its_words(vectors: Path) -> None:
    encoded = encode(f"vectors:{vectors}", "the cat sat .", "cat", "the the cat")
    assert encoded.vectors.dtype == np.float32
    np.testing.assert_array_equal(encoded.vectors[0], mean("the", "cat", "sat", "."))
    np.testing.assert_array_equal(encoded.vectors[1], mean("cat"))
    np.testing.assert_array_equal(encoded.vectors[2], mean("the", "the", "cat"))
    assert encoded.unknown == ((), (), ())


# Case


def test_case_is_kept_unless_asked_otherwise(vectors: Path) -> None:
    for model in (f"vectors:{vectors}", f"vectors:{vectors}?case=keep"):
        encoded = encode(model, "Cat", "cat", "CAT")
        np.testing.assert_array_equal(encoded.vectors, [VOCABULARY["Cat"], VOCABULARY["cat"], (0, 0, 0)])
        assert encoded.unknown == ((), (), ((0, 3),))


def test_case_can_be_folded(vectors: Path) -> None:
    encoded = encode(f"vectors:{vectors}?case=fold", "Cat", "THE CAT'S", "Dog")
    np.testing.assert_array_equal(encoded.vectors, [mean("cat"), mean("the", "cat", "'s"), (0, 0, 0)])
    assert encoded.unknown == ((), (), ((0, 3),))


def test_folding_keeps_places_in_the_text_as_written(vectors: Path) -> None:
    """Lower-cased, the first letter of İzmir is two characters long."""
    encoded = encode(f"vectors:{vectors}?case=fold", "İzmir Dog sat", "cat")
    assert encoded.unknown[0] == ((0, 5), (6, 9))


def test_case_is_part_of_what_the_model_is(vectors: Path) -> None:
    keys = {setting: open_encoder(f"vectors:{vectors}{setting}").identity.key for setting in ("", "?case=fold")}
    assert keys[""] != keys["?case=fold"]
    assert open_encoder(f"vectors:{vectors}?case=keep").identity.key == keys[""]


# Files


def test_model_that_knows_no_word_still_has_a_dimension_and_says_what_to_try(vectors: Path) -> None:
    encoded = encode(f"vectors:{vectors}", "SAT THE")
    assert encoded.vectors.shape == (1, 3)
    assert encoded.unknown == (((0, 3), (4, 7)),)
    assert "?case=fold" in open_encoder(f"vectors:{vectors}").identity.oov_hint


@pytest.mark.parametrize("model", ["glove", "vectors"])
def test_texts_are_encoded_without_being_prepared_or_one_after_another(model: str, vectors: Path) -> None:
    name = model if model == "glove" else f"vectors:{vectors}"
    texts = ["the cat", "sat", "qqqq", ""]
    expected, encoder = encode(name, *texts), open_encoder(name)
    for row, text in enumerate(texts):
        found = encoder.encode([text])
        assert found.unknown == (expected.unknown[row],)
        np.testing.assert_array_equal(found.vectors[0], expected.vectors[row])
    assert np.abs(expected.vectors[:2]).sum(axis=1).all()
    assert open_encoder(name).encode([""]).vectors.shape == (1, expected.vectors.shape[1])


# The embedded vectors


def test_embedded_vectors_are_what_their_provenance_says() -> None:
    provenance = json.loads((DATA / "glove.json").read_text(encoding="utf-8"))
    assert hashlib.sha256((DATA / "glove.npz").read_bytes()).hexdigest() == provenance["npz_sha256"]
    words = load_embedded_vectors()
    assert len(words) == provenance["words"]
    assert not words.keys() & set(provenance["catalogue_words_absent"])


def test_embedded_vectors_are_many_whole_and_lower_cased() -> None:
    found = load_embedded_vectors()
    assert len(found) >= 20_000
    matrix = np.stack(list(found.values()))
    assert (matrix.dtype, matrix.shape[1]) == (np.float32, 100)
    assert np.isfinite(matrix).all()
    assert matrix.any(axis=1).all()
    assert all(word == word.lower() and word.strip() == word != "" for word in found)


def test_embedded_vectors_are_those_of_glove_6b() -> None:
    """The first numbers of the first line of glove.6B.100d.txt; float16 keeps eleven bits."""
    published = [-0.038194, -0.24487, 0.72812, -0.39961, 0.083172]
    words = load_embedded_vectors()
    assert next(iter(words)) == "the"
    np.testing.assert_allclose(words["the"][:5], published, rtol=2**-11)


# Tokens and ranks


def test_words_and_marks_are_counted_known_or_not(vectors: Path) -> None:
    counted = open_encoder(f"vectors:{vectors}").count_tokens(["cat", "the cat's tail.", "zebra", ""])  # type: ignore[attr-defined]
    assert counted.tolist() == [1, 5, 1, 0]


@pytest.mark.parametrize(("query", "cat"), [("", 3), ("?case=fold", 2)])
def test_rank_is_the_line_of_a_word(query: str, cat: int, vectors: Path) -> None:
    words = ["the", "Cat", ".", "the cat", "zebra", "", "the"]
    ranks = open_encoder(f"vectors:{vectors}{query}").rank_words(words)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(ranks, [1, cat, 6, np.nan, np.nan, np.nan, 1])


def test_words_in_order_of_the_alphabet_have_no_ranks(tmp_path: Path) -> None:
    words = [f"{a}{b}" for a in "abcde" for b in "VwXyZ"]
    for name, order in (("sorted", words), ("frequent", words[::3] + words[1::3] + words[2::3][::-1])):
        (tmp_path / name).write_text("".join(f"{word} 1 2\n" for word in order))
    assert open_encoder(f"vectors:{tmp_path / 'sorted'}").rank_words(["aV"]) is None  # type: ignore[attr-defined]
    found = open_encoder(f"vectors:{tmp_path / 'frequent'}").rank_words(["aV", "ay"])  # type: ignore[attr-defined]
    assert found.tolist() == [1, 2]


def test_embedded_words_are_ranked_as_far_as_they_are_in_order_of_frequency() -> None:
    words = ["the", "of", "woman", "Man", "azaleas", "blackflies"]
    ranks = open_encoder("glove").rank_words(words)  # type: ignore[attr-defined]
    assert ranks[:2].tolist() == [1, 4]  # behind a comma and a full stop
    assert 4 < ranks[3] < ranks[2] < 2000
    assert np.isnan(ranks[4:]).all()  # the words that tests added, in order of the alphabet, and those it lacks
