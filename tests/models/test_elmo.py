"""ELMo's numbers, against the published fixture and a plain NumPy pass, and files that are not right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.errors import ModelError, UnknownNameError, VectorError
from biassay.models.base import ContextEmbeddings, Span
from biassay.models.recurrent.elmo import NOT_COVERED, ElmoEncoder
from biassay.models.registry import open_encoder, open_model

Array = NDArray[Any]
CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell"
TEXTS = [
    "This is a doctor.",
    "she",
    "María's mother-in-law — she does not know — sang 日本語 to everybody in the quiet old garden that evening.",
    "Unbelievablyoverlongwordsthatgoonandonandneverseemtoreachanend are here.",
    "He is here.",
]
OPTIONS: dict[str, dict[str, Any]] = {
    "lstm": {
        "use_skip_connections": True,
        "projection_dim": 6,
        "cell_clip": 0.8,
        "proj_clip": 0.3,
        "dim": 10,
        "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu",
        "filters": [[1, 3], [3, 4], [7, 5]],
        "n_highway": 2,
        "embedding": {"dim": 4},
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def options(**changes: Any) -> dict[str, dict[str, Any]]:
    """The options with some fields changed, wherever they stand."""
    return {part: {k: changes.get(k, v) for k, v in fields.items()} for part, fields in OPTIONS.items()}


def random_weights(given: dict[str, dict[str, Any]], seed: int = 3) -> dict[str, Array]:
    lstm, cnn = given["lstm"], given["char_cnn"]
    letters, out, cell = cnn["embedding"]["dim"], lstm["projection_dim"], lstm["dim"]
    width = sum(count for _, count in cnn["filters"])
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, letters)}
    for i, (size, count) in enumerate(cnn["filters"]):
        shapes |= {f"CNN/W_cnn_{i}": (1, size, letters, count), f"CNN/b_cnn_{i}": (count,)}
    for i in range(cnn["n_highway"] or 0):
        shapes |= {f"CNN_high_{i}/W_{gate}": (width, width) for gate in ("carry", "transform")}
        shapes |= {f"CNN_high_{i}/b_{gate}": (width,) for gate in ("carry", "transform")}
    shapes |= {"CNN_proj/W_proj": (width, out), "CNN_proj/b_proj": (out,)}
    for name in (CELL.format(d, layer) for d in (0, 1) for layer in range(lstm["n_layers"])):
        shapes |= {f"{name}/W_0": (2 * out, 4 * cell), f"{name}/B": (4 * cell,), f"{name}/W_P_0": (cell, out)}
    rng = np.random.default_rng(seed)
    return {name: rng.normal(scale=0.4, size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_model(folder: Path, given: dict[str, Any] = OPTIONS, **changed: Array | None) -> Path:
    """A random model in the published format; ``changed`` replaces data sets, None leaves one out."""
    import h5py

    folder.mkdir(exist_ok=True)
    (folder / "options.json").write_text(json.dumps(given))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, array in (random_weights(given) | changed).items():
            if array is not None:
                file[name] = array
    return folder


def opened(folder: Path, settings: str = "") -> ElmoEncoder:
    encoder = open_encoder(f"elmo:{folder}?device=cpu{settings}")
    assert isinstance(encoder, ElmoEncoder)
    return encoder


def run_layers(encoder: ElmoEncoder, texts: Sequence[Sequence[str]]) -> list[Array]:
    """Layers (layers + 1, words, d) of every text."""
    states = dict(encoder.load().run(texts))
    return [states[row].numpy() for row in range(len(texts))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


pytestmark = pytest.mark.extras


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


def test_boundaries_have_the_vectors_of_their_marks(published: Path) -> None:
    from biassay.models.recurrent.elmo_network import TEXT_END, TEXT_START, character_ids

    assert (character_ids(TEXT_START, 50), character_ids(TEXT_END, 50)) == ([258, 256, 259], [258, 257, 259])
    words = (published / "vocab_test.txt").read_text().split()
    with h5py.File(published / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][()][[words.index("<S>"), words.index("</S>")]]
    found = opened(published).load().word_vectors([TEXT_START, TEXT_END]).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


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


def test_identity_is_that_of_the_files_and_the_settings(tmp_path: Path, folder: Path) -> None:
    identity = opened(folder, "&layers=concat").identity
    assert (identity.name, identity.backend) == ("elmo:tiny", "elmo")
    assert identity.settings == (("pool", "mean"), ("layers", "concat"))
    moved = tmp_path / "moved"
    moved.symlink_to(folder)
    assert opened(moved, "&layers=concat").identity.key == identity.key
    assert opened(moved).identity.key != identity.key
    other = options(cell_clip=2)
    assert opened(write_model(tmp_path / "other", other)).identity.revision != identity.revision


def test_opening_imports_no_heavy_library_and_reads_no_weights(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "weights.hdf5").write_bytes(b"not read yet")
    code = (
        "import sys; from biassay.models.registry import open_encoder; "
        f"open_encoder({f'elmo:{folder}'!r}); print([m for m in ('torch', 'h5py') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("pool=median", r"unknown pool of model .*: 'median'.*one of mean, max\)"),
        ("layers=3", r"unknown layers of model .*: '3'.*one of sum, concat, 0, 1, 2\)"),
    ],
)
def test_settings_that_there_are_not(folder: Path, settings: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        open_encoder(f"elmo:{folder}?{settings}")


# Folders that are not right.


def test_folder_layouts_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no folder .*absent; an ELMo folder has options.json and weights"):
        open_encoder(f"elmo:{tmp_path / 'absent'}")
    with pytest.raises(ModelError, match=r"expected one options.json or \*options\*.json, got none; an ELMo folder"):
        open_encoder(f"elmo:{tmp_path}")
    folder = write_model(tmp_path / "model")
    (folder / "weights.hdf5").rename(folder / "a_weights.hdf5")
    (folder / "b_weights.hdf5").touch()
    with pytest.raises(ModelError, match=r"expected one weights.hdf5 or .*, got a_weights.hdf5, b_weights.hdf5"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize("content", ["", "[" * 100_000, "3", "[]", "{}", '{"lstm": 1, "char_cnn": {}}'])
def test_options_of_something_else(tmp_path: Path, content: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(content)
    with pytest.raises(ModelError, match=r"options.json: not the options file of an ELMo"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_characters", 5000, "expected 261 or 262 characters"),
        ("activation", "gelu", "relu or tanh"),
        ("filters", [], "expected 261 or 262 characters, filters"),
        ("filters", [[51, 2]], "a filter is 51 characters wide, but words have only 50"),
        ("embedding", {"dim": 0}, "whole numbers above 0"),
        ("n_layers", "2", "whole numbers above 0"),
    ],
)
def test_a_field_out_of_range_is_named(tmp_path: Path, field: str, value: Any, message: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(json.dumps(options(**{field: value})))
    with pytest.raises(ModelError, match=message):
        open_encoder(f"elmo:{folder}")


def refused(folder: Path, message: str) -> None:
    encoder = opened(folder)
    with pytest.raises(ModelError, match=message):
        encoder.prepare(["a"])


@pytest.mark.parametrize("name", sorted(random_weights(OPTIONS)))
def test_every_missing_data_set_is_named_and_never_made_up(tmp_path: Path, name: str) -> None:
    folder = write_model(tmp_path / "model", OPTIONS, **{name: None})
    refused(folder, rf"weights.hdf5: 1 of 29 data sets are missing; the options require {name} of shape \(")


@pytest.mark.parametrize("name", sorted(random_weights(OPTIONS)))
def test_every_data_set_of_the_wrong_shape_is_named(tmp_path: Path, name: str) -> None:
    wrong = random_weights(OPTIONS)[name][..., :-1]
    folder = write_model(tmp_path / "model", OPTIONS, **{name: wrong})
    refused(folder, rf"{name} has the shape \(.*\); the options require \(")


def test_weights_stored_in_another_file_are_refused(tmp_path: Path) -> None:
    good = random_weights(OPTIONS)["char_embed"].astype(np.float32)
    folder = write_model(tmp_path / "model", OPTIONS, char_embed=None)
    good.tofile(tmp_path / "raw")
    with h5py.File(folder / "weights.hdf5", "a") as file:
        external = [(str(tmp_path / "raw"), 0, good.nbytes)]
        file.create_dataset("char_embed", good.shape, good.dtype, external=external)
    refused(folder, "char_embed is stored in another file")


@pytest.mark.parametrize(
    ("field", "left_over"), [("n_layers", "Cell1/LSTMCell/B"), ("n_highway", "CNN_high_1/W_carry")]
)
def test_layers_that_the_options_forget_are_not_left_out(tmp_path: Path, field: str, left_over: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(json.dumps(options(**{field: 1})))
    refused(folder, rf"the data set \S*{left_over} is not part of the network that the options describe")


def test_files_that_are_no_hdf5_or_end_early(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    content = (folder / "weights.hdf5").read_bytes()
    for damaged in (b"", b"version https://git-lfs.github.com/spec/v1\n", content[:600], content[: len(content) // 2]):
        (folder / "weights.hdf5").write_bytes(damaged)
        refused(folder, r"weights.hdf5: damaged, or not an HDF5 file: .*; download it again")


def test_no_state_is_carried_from_one_text_to_the_next(folder: Path) -> None:
    encoder = opened(folder)
    once = encoder.encode(TEXTS[:1]).vectors
    encoder.encode(TEXTS[1:])
    np.testing.assert_array_equal(encoder.encode(TEXTS[:1]).vectors, once)
