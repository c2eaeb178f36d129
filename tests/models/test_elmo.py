"""ELMo's numbers, against the published fixture and against a plain NumPy pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.errors import VectorError
from biassay.models.base import ContextEmbeddings, Span
from biassay.models.recurrent.elmo import NOT_COVERED
from biassay.models.registry import open_encoder, open_model

from . import elmo_models
from .elmo_models import CELL, OPTIONS, TEXTS, Array, opened, options, random_weights, run_layers, write_model

pytestmark = pytest.mark.extras

folder = elmo_models.folder


@pytest.fixture(scope="module")
def published(reference: Path) -> Path:
    return reference / "elmo"


def split_sentences(published: Path) -> list[list[list[str]]]:
    return [[text.split() for text in texts] for texts in json.loads((published / "sentences.json").read_text())]


# The published fixture; its own tests ask for 1e-6.


def test_top_layer_equals_the_published_vectors_of_the_first_sentences(published: Path) -> None:
    first = [texts[0] for texts in split_sentences(published)]
    for k, layers in enumerate(run_layers(opened(published), first)):
        with h5py.File(published / f"lm_embeddings_{k}.hdf5", "r") as file:
            forward, backward = file["0"][()]
        np.testing.assert_allclose(layers[2], np.concatenate([forward, backward], axis=1), rtol=1e-5, atol=1e-6)


def test_all_layers_from_zero_state_equal_the_reference(published: Path) -> None:
    sentences = split_sentences(published)
    with np.load(published / "own_stateless.npz") as expected:
        for k, texts in enumerate(sentences):
            for i, layers in enumerate(run_layers(opened(published), texts)[:4]):
                np.testing.assert_allclose(layers, expected[f"layers_{k}_{i}"], rtol=1e-5, atol=1e-6)


def test_default_pooling_equals_the_reference(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "biassay.models.recurrent.elmo.tokenize", lambda text: [(word, (0, 0)) for word in text.split()]
    )
    sentences = split_sentences(published)
    with np.load(published / "own_stateless.npz") as expected:
        texts = [" ".join(sentences[k][i]) for k, i in expected["pooled_index"]]
        pooled = expected["pooled_mean_over_tokens_sum_over_layers"]
    np.testing.assert_allclose(opened(published).encode(texts).vectors, pooled, rtol=1e-5, atol=1e-6)


def test_word_vectors_equal_the_458_published_ones(published: Path) -> None:
    """Among them the marks of begin and end, which run through the network but are cut off."""
    words = (published / "vocab_test.txt").read_text().split()
    with h5py.File(published / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][()]
    assert len(words) == len(expected) == 458
    (layers,) = run_layers(opened(published), [words])
    np.testing.assert_allclose(layers[0], np.tile(expected, 2), rtol=1e-5, atol=1e-6)


# A plain NumPy pass, one text and one word at a time, in double precision.


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def clip(x: Array, limit: float | None) -> Array:
    return x if limit is None else np.clip(x, -limit, limit)


def plain_word(word: str, given: dict[str, Any], w: dict[str, Array]) -> Array:
    marks = {"<S>": [256], "</S>": [257]}
    length = given["char_cnn"]["max_characters_per_token"]
    ids = [258, *(marks.get(word) or word.encode()[: length - 2]), 259]
    letters = w["char_embed"][ids + [260] * (length - len(ids))]
    parts = []
    for i, (size, _) in enumerate(given["char_cnn"]["filters"]):
        kernel = w[f"CNN/W_cnn_{i}"][0]
        scores = [np.einsum("pe,pef->f", letters[p : p + size], kernel) for p in range(length - size + 1)]
        parts.append(np.max(scores, axis=0) + w[f"CNN/b_cnn_{i}"])
    x = np.concatenate(parts)
    x = np.maximum(x, 0) if given["char_cnn"]["activation"] == "relu" else np.tanh(x)
    for i in range(given["char_cnn"]["n_highway"] or 0):
        name = f"CNN_high_{i}"
        gate = sigmoid(x @ w[f"{name}/W_carry"] + w[f"{name}/b_carry"])
        x = gate * np.maximum(x @ w[f"{name}/W_transform"] + w[f"{name}/b_transform"], 0) + (1 - gate) * x
    return np.asarray(x @ w["CNN_proj/W_proj"] + w["CNN_proj/b_proj"])


def plain_direction(inputs: Array, name: str, lstm: dict[str, Any], w: dict[str, Array]) -> Array:
    hidden, memory, outputs = np.zeros(lstm["projection_dim"]), np.zeros(lstm["dim"]), []
    for x in inputs:
        i, j, f, o = np.split(np.concatenate([x, hidden]) @ w[f"{name}/W_0"] + w[f"{name}/B"], 4)
        memory = clip(sigmoid(i) * np.tanh(j) + sigmoid(f + 1) * memory, lstm["cell_clip"])
        hidden = clip((sigmoid(o) * np.tanh(memory)) @ w[f"{name}/W_P_0"], lstm["proj_clip"])
        outputs.append(hidden)
    return np.array(outputs)


def plain_layers(words: Sequence[str], given: dict[str, Any] = OPTIONS) -> Array:
    w = {name: array.astype(np.float64) for name, array in random_weights(given).items()}
    x = np.array([plain_word(word, given, w) for word in ["<S>", *words, "</S>"]])
    forward, backward = [x], [x[::-1]]
    for layer in range(given["lstm"]["n_layers"]):
        for direction, states in enumerate((forward, backward)):
            out = plain_direction(states[-1], CELL.format(direction, layer), given["lstm"], w)
            states.append(out + states[-1] if layer and given["lstm"]["use_skip_connections"] else out)
    both = [np.concatenate([f, b[::-1]], axis=1) for f, b in zip(forward, backward, strict=True)]
    return np.array(both)[:, 1:-1]


SPLIT = [
    ["This", "is", "a", "doctor", "."],
    ["she"],
    ["María", "'s", "日本語", "x" * 47, "y" * 60, "z" * 35 + "äöü" * 5],
]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "tanh", "n_characters": 261},
        {"use_skip_connections": False},
        {"n_highway": 0},
        {"n_highway": None},
        {"n_highway": 1, "cell_clip": None, "proj_clip": None},
        {"n_layers": 1},
        {"n_layers": 3},
        {"max_characters_per_token": 8},
    ],
    ids=str,
)
def test_layers_equal_a_plain_pass(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Float32 against float64 through a dozen sums of a few dozen numbers of about 1: errors of some 1e-6."""
    given = options(**changes)
    found = run_layers(opened(write_model(tmp_path / "model", given)), SPLIT)
    for words, layers in zip(SPLIT, found, strict=True):
        assert layers.dtype == np.float32
        np.testing.assert_allclose(layers, plain_layers(words, given), rtol=1e-4, atol=1e-5)


# Pooling.


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("layers", ["sum", "concat", "0", "1", "2"])
def test_pooling_goes_over_words_then_over_layers(folder: Path, pool: str, layers: str) -> None:
    texts = ["This is a doctor .", "she"]
    vectors = opened(folder, f"&pool={pool}&layers={layers}").encode(texts).vectors
    assert vectors.dtype == np.float32
    for text, vector in zip(texts, vectors, strict=True):
        states = plain_layers(text.split())
        by_layer = states.mean(axis=1) if pool == "mean" else states.max(axis=1)
        direct = {"sum": by_layer.sum(axis=0), "concat": np.concatenate(list(by_layer))}
        expected = direct[layers] if layers in direct else by_layer[int(layers)]
        np.testing.assert_allclose(vector, expected, rtol=1e-4, atol=1e-5)  # float32, as above


def test_vector_is_the_same_alone_and_in_a_batch(folder: Path) -> None:
    """Another batch means another order of float32 sums, no more."""
    encoder = opened(folder)
    together = encoder.encode(TEXTS).vectors
    alone = np.concatenate([opened(folder).encode([text]).vectors for text in TEXTS])
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1]).vectors[::-1], alone, rtol=1e-6, atol=2e-6)


def test_texts_are_taken_in_parts_that_fit_and_come_back_in_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = opened(folder).encode(TEXTS * 3).vectors
    monkeypatch.setattr("biassay.models.recurrent.elmo_network._MAX_BATCH_POSITIONS", {"cpu": 13})
    monkeypatch.setattr("biassay.models.recurrent.elmo_network._MAX_BATCH_WORDS", 2)
    monkeypatch.setattr("biassay.models.recurrent.elmo_network._MAX_CACHED_WORDS", 5)
    np.testing.assert_allclose(opened(folder).encode(TEXTS * 3).vectors, whole, rtol=1e-6, atol=2e-6)  # as above


def test_a_run_and_its_vectors_from_the_store(folder: Path) -> None:
    first = biassay.run(f"elmo:{folder}?pool=max", tests="weat6").results
    assert biassay.run(f"elmo:{folder}?pool=max", tests="weat6").results == first
    assert [(r.model, r.options) for r in first] == [("elmo:tiny", "pool=max;layers=sum")]


@pytest.mark.parametrize("text", ["", "  \t\n"])
def test_a_text_without_words_is_an_error(folder: Path, text: str) -> None:
    encoder = opened(folder)
    for use in (encoder.prepare, encoder.encode):
        with pytest.raises(VectorError, match=r"model 'elmo:tiny': the text '.*' has no words, so it has no vector"):
            use(["a word", text])


# A text, the span of the word, the text's tokens, and which of them are the word's; all written down by hand.
CONTEXTS: list[tuple[str, Span, list[str], slice]] = [
    ("She is a doctor.", (9, 15), ["She", "is", "a", "doctor", "."], slice(3, 4)),
    ("doctor", (0, 6), ["doctor"], slice(0, 1)),
    ("joy is joy", (7, 10), ["joy", "is", "joy"], slice(2, 3)),
    ("joy is joy", (0, 3), ["joy", "is", "joy"], slice(0, 1)),
    ("María 日本 — Zoë's", (11, 14), ["María", "日本", "—", "Zoë", "'s"], slice(3, 4)),
    ("an African American woman", (3, 19), ["an", "African", "American", "woman"], slice(1, 3)),
    ("her mother-in-law sang", (4, 17), ["her", "mother-in-law", "sang"], slice(1, 2)),
    ("her mother-in-law sang", (4, 10), ["her", "mother-in-law", "sang"], slice(1, 2)),
    ("the end of all things", (4, 14), ["the", "end", "of", "all", "things"], slice(1, 4)),
]
CONTEXT_TEXTS, SPANS = [c[0] for c in CONTEXTS], [c[1] for c in CONTEXTS]


def encode(model: str, texts: list[str], spans: list[Span]) -> ContextEmbeddings:
    encoder = open_model(model, "words")
    encoder.prepare()
    return encoder.encode_words(texts, spans)


def all_layers(folder: Path, tokens: list[str]) -> NDArray[Any]:
    """Layers (3, words, d) of a text alone."""
    return run_layers(opened(folder), [tokens])[0]


@pytest.mark.parametrize("layers", ["sum", "concat", "0", "1", "2"])
@pytest.mark.parametrize("part", ["last", "first", "mean"])
def test_words_equal_the_layers_at_their_tokens(part: str, layers: str, folder: Path) -> None:
    found = encode(f"elmo:{folder}?device=cpu&word={part}&layers={layers}", CONTEXT_TEXTS, SPANS)
    assert found.missing == (None,) * len(CONTEXT_TEXTS)
    assert found.vectors.dtype == np.float32
    for (text, _, tokens, own), vector in zip(CONTEXTS, found.vectors, strict=True):
        states = all_layers(folder, tokens)[:, own]
        word = {"last": states[:, -1], "first": states[:, 0], "mean": states.mean(axis=1)}[part]
        expected = {"sum": word.sum(axis=0), "concat": np.concatenate(list(word))}.get(layers)
        expected = word[int(layers)] if expected is None else expected
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6, err_msg=text)


def test_the_last_token_and_the_sum_of_layers_are_the_default(folder: Path) -> None:
    plain = open_model(f"elmo:{folder}", "words")
    assert plain.identity.settings == (("word", "last"), ("layers", "sum"))
    assert plain.identity.key == open_model(f"elmo:{folder}?word=last&layers=sum&device=cpu", "words").identity.key
    assert plain.identity.key != open_encoder(f"elmo:{folder}").identity.key
    assert plain.identity.key != open_model(f"elmo:{folder}?word=mean", "words").identity.key


def test_a_span_without_a_token_is_missing(folder: Path) -> None:
    found = encode(f"elmo:{folder}?device=cpu", ["joy  love", "  ", "joy"], [(3, 5), (0, 1), (0, 3)])
    assert found.missing == (NOT_COVERED, NOT_COVERED, None)
    assert np.isnan(found.vectors).all(axis=1).tolist() == [True, True, False]
