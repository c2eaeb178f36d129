"""ELMo against the published fixture, against a plain NumPy pass, and against folders that are not right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.encoders.elmo import ElmoEncoder
from biassay.encoders.registry import open_encoder
from biassay.errors import MissingExtraError, ModelError, UnknownNameError, UsageError, VectorError

pytest.importorskip("torch")
h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.extras

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def published(reference: Path) -> Path:
    return reference / "elmo"


def split_sentences(published: Path) -> list[list[list[str]]]:
    return [[text.split() for text in texts] for texts in json.loads((published / "sentences.json").read_text())]


# The published fixture; its own tests ask for 1e-6.


def test_top_layer_equals_the_published_vectors_of_the_first_sentences(published: Path) -> None:
    first = [texts[0] for texts in split_sentences(published)]
    for k, layers in enumerate(opened(published).layers(first)):
        with h5py.File(published / f"lm_embeddings_{k}.hdf5", "r") as file:
            forward, backward = file["0"][()]
        np.testing.assert_allclose(layers[2], np.concatenate([forward, backward], axis=1), rtol=1e-5, atol=1e-6)


def test_all_layers_from_zero_state_equal_the_reference(published: Path) -> None:
    sentences = split_sentences(published)
    with np.load(published / "own_stateless.npz") as expected:
        for k, texts in enumerate(sentences):
            for i, layers in enumerate(opened(published).layers(texts)[:4]):
                np.testing.assert_allclose(layers, expected[f"layers_{k}_{i}"], rtol=1e-5, atol=1e-6)


def test_default_pooling_equals_the_reference(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biassay.encoders.elmo.tokens", lambda text: [(word, (0, 0)) for word in text.split()])
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
    (layers,) = opened(published).layers([words])
    np.testing.assert_allclose(layers[0], np.tile(expected, 2), rtol=1e-5, atol=1e-6)


def test_boundaries_have_the_vectors_of_their_marks(published: Path) -> None:
    from biassay.encoders.elmo_model import TEXT_BEGIN, TEXT_END, character_ids

    assert (character_ids(TEXT_BEGIN, 50), character_ids(TEXT_END, 50)) == ([258, 256, 259], [258, 257, 259])
    words = (published / "vocab_test.txt").read_text().split()
    with h5py.File(published / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][()][[words.index("<S>"), words.index("</S>")]]
    found = opened(published)._model().word_vectors([TEXT_BEGIN, TEXT_END]).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_run_over_the_published_fixture(published: Path) -> None:
    run = biassay.run(f"elmo:{published}", tests="weat6")
    (result,) = run.results
    assert run.manifest.status == "complete"
    assert result.model == "elmo:elmo"
    assert np.isfinite(result.effect_size)


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
    found = opened(write_model(tmp_path / "model", given)).layers(SPLIT)
    for words, layers in zip(SPLIT, found, strict=True):
        assert layers.dtype == np.float32
        np.testing.assert_allclose(layers, plain_layers(words, given), rtol=1e-4, atol=1e-5)


def test_clips_of_the_plain_pass_are_in_effect() -> None:
    """Otherwise the test above would not see them."""
    free = plain_layers(SPLIT[2], options(cell_clip=None, proj_clip=None))
    for changed in (options(cell_clip=None), options(proj_clip=None), OPTIONS):
        assert np.abs(plain_layers(SPLIT[2], changed) - free).max() > 0.01


def test_words_of_equal_first_48_bytes_are_equal(folder: Path) -> None:
    one, other, third = opened(folder)._model().word_vectors(["a" * 48, "a" * 90, "a" * 47]).numpy()
    np.testing.assert_array_equal(one, other)
    assert np.abs(one - third).max() > 1e-4


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


def test_default_is_the_mean_over_words_and_the_sum_over_layers(folder: Path) -> None:
    plain, named = opened(folder), opened(folder, "&layers=sum&pool=mean")
    assert plain.identity == named.identity
    np.testing.assert_array_equal(plain.encode(TEXTS).vectors, named.encode(TEXTS).vectors)


# A text's vector is its own.


def test_vector_is_the_same_alone_and_in_a_batch(folder: Path) -> None:
    """Another batch means another order of float32 sums, no more."""
    encoder = opened(folder)
    together = encoder.encode(TEXTS).vectors
    alone = np.concatenate([opened(folder).encode([text]).vectors for text in TEXTS])
    np.testing.assert_allclose(together, alone, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1]).vectors[::-1], alone, rtol=1e-6, atol=2e-6)


def test_no_state_is_carried_from_one_text_to_the_next(folder: Path) -> None:
    encoder = opened(folder)
    once = encoder.encode(TEXTS[:1]).vectors
    encoder.encode(TEXTS[1:])
    np.testing.assert_array_equal(encoder.encode(TEXTS[:1]).vectors, once)


def test_texts_are_taken_in_parts_that_fit_and_come_back_in_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = opened(folder).encode(TEXTS * 3).vectors
    monkeypatch.setattr("biassay.encoders.elmo_model._PLACES_AT_ONCE", {"cpu": 13})
    monkeypatch.setattr("biassay.encoders.elmo_model._WORDS_AT_ONCE", 2)
    monkeypatch.setattr("biassay.encoders.elmo_model._WORDS_KEPT", 5)
    np.testing.assert_allclose(opened(folder).encode(TEXTS * 3).vectors, whole, rtol=1e-6, atol=2e-6)  # as above


def test_characters_are_convolved_once_for_a_word(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, seen = opened(folder), []
    model = encoder._model()
    convolve = model._from_characters
    monkeypatch.setattr(model, "_from_characters", lambda words: seen.extend(words) or convolve(words))
    encoder.encode(["he is here", "she is here"])
    encoder.encode(["he is there"])
    assert sorted(seen) == ["</S>", "<S>", "he", "here", "is", "she", "there"]


def test_layers_of_no_words_and_of_no_texts(folder: Path) -> None:
    assert [layers.shape for layers in opened(folder).layers([[], ["a"]])] == [(3, 0, 12), (3, 1, 12)]
    assert opened(folder).layers([]) == []


def test_all_is_understood_and_read_to_the_end(folder: Path) -> None:
    encoded = opened(folder).encode(TEXTS)
    assert encoded.unknown == ((),) * len(TEXTS)
    assert encoded.cut == (None,) * len(TEXTS)


def test_a_run_and_its_vectors_from_the_store(folder: Path) -> None:
    first = biassay.run(f"elmo:{folder}?pool=max", tests="weat6").results
    assert biassay.run(f"elmo:{folder}?pool=max", tests="weat6").results == first
    assert [(r.model, r.options) for r in first] == [("elmo:tiny", "pool=max;layers=sum")]


# Opening.


def test_identity_is_that_of_the_files_and_the_settings(tmp_path: Path, folder: Path) -> None:
    identity = opened(folder, "&layers=concat").identity
    assert (identity.name, identity.family) == ("elmo:tiny", "elmo")
    assert identity.settings == (("pool", "mean"), ("layers", "concat"))
    moved = tmp_path / "moved"
    moved.symlink_to(folder)
    assert opened(moved, "&layers=concat").identity.key == identity.key
    assert opened(moved).identity.key != identity.key
    other = options(cell_clip=2)
    assert opened(write_model(tmp_path / "other", other)).identity.revision != identity.revision


def test_the_folder_one_stands_in_has_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert opened(Path(".")).identity.name == "elmo:tiny"


def test_files_may_carry_the_model_name(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").rename(folder / "elmo_2x6_options.json")
    (folder / "weights.hdf5").rename(folder / "elmo_2x6_weights.hdf5")
    assert opened(folder).encode(["a word"]).vectors.shape == (1, 12)


def test_opening_imports_no_heavy_library_and_reads_no_weights(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "weights.hdf5").write_bytes(b"not read yet")
    code = (
        "import sys; from biassay.encoders.registry import open_encoder; "
        f"open_encoder({f'elmo:{folder}'!r}); print([m for m in ('torch', 'h5py') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["torch", "h5py"])
def test_a_missing_extra_is_named(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r'pip install "biassay\[elmo\]"'):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("pool=median", r"unknown pool 'median'.*one of mean, max\)"),
        ("layers=3", r"unknown layers '3'.*one of sum, concat, 0, 1, 2\)"),
        ("layers=-1", r"unknown layers '-1'"),
        ("device=gpu", r"unknown device 'gpu'.*auto, cpu, cuda"),
        ("pooling=mean", r"'pooling'; did you mean 'pool'\?"),
    ],
)
def test_settings_that_there_are_not(folder: Path, settings: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        open_encoder(f"elmo:{folder}?{settings}")


def test_cuda_asked_for_and_absent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match=r"device=cuda.*CUDA"):
        open_encoder(f"elmo:{folder}?device=cuda")
    open_encoder(f"elmo:{folder}?device=auto").prepare(["a"])


# Folders that are not right.


def test_folder_layouts_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent: no such folder; elmo:DIR is a folder with options.json"):
        open_encoder(f"elmo:{tmp_path / 'absent'}")
    with pytest.raises(ModelError, match=r"no options.json \(nor \*options\*.json\) in the folder; it holds nothing"):
        open_encoder(f"elmo:{tmp_path}")
    folder = write_model(tmp_path / "model")
    (folder / "weights.hdf5").rename(folder / "model.hdf5")
    with pytest.raises(ModelError, match=r"no weights.hdf5 .* it holds model.hdf5, options.json"):
        open_encoder(f"elmo:{folder}")
    for name in ("a_weights.hdf5", "b_weights.hdf5"):
        (folder / name).touch()
    with pytest.raises(ModelError, match=r"several files could be weights.hdf5: a_weights.hdf5, b_weights.hdf5"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_options_that_are_no_json(tmp_path: Path, content: bytes) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"options.json: not a JSON file"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize("content", ["3", "[]", "{}", '{"lstm": 1, "char_cnn": {"n_characters": 262}}'])
def test_options_of_something_else(tmp_path: Path, content: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(content)
    with pytest.raises(ModelError, match=r"options.json: the field char_cnn.* is missing; is this the options file"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize("name", [f"{part}.{field}" for part in OPTIONS for field in OPTIONS[part]])
def test_a_missing_field_is_named(tmp_path: Path, name: str) -> None:
    folder, (part, field) = write_model(tmp_path / "model"), name.split(".")
    less = options()
    del less[part][field]
    (folder / "options.json").write_text(json.dumps(less))
    with pytest.raises(ModelError, match=rf"the field {name}.* is missing"):
        open_encoder(f"elmo:{folder}")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("n_characters", 5000, "char_cnn.n_characters must be 261 or 262, got 5000"),
        ("activation", "gelu", "char_cnn.activation must be 'relu' or 'tanh', got 'gelu'"),
        ("filters", [], r"char_cnn.filters must be a list of \[width, count\], got \[\]"),
        ("filters", [[1, 2], [3]], "char_cnn.filters must be a list"),
        ("filters", [[0, 2]], "char_cnn.filters must be a list"),
        ("filters", [[51, 2]], "a filter is 51 characters wide, a word has only 50"),
        ("embedding", {"dim": 0}, "char_cnn.embedding.dim must be a whole number of at least 1, got 0"),
        ("n_highway", -1, "char_cnn.n_highway must be a whole number of at least 0, got -1"),
        ("max_characters_per_token", 2, "max_characters_per_token must be a whole number of at least 3, got 2"),
        ("n_layers", "2", "lstm.n_layers must be a whole number of at least 1, got '2'"),
        ("dim", True, "lstm.dim must be a whole number of at least 1, got True"),
        ("projection_dim", 6.5, "lstm.projection_dim must be a whole number of at least 1, got 6.5"),
        ("cell_clip", 0, "lstm.cell_clip must be a number above 0, or null for no clipping, got 0"),
        ("proj_clip", "3", "lstm.proj_clip must be a number above 0"),
        ("use_skip_connections", 1, "lstm.use_skip_connections must be True or False, got 1"),
    ],
)
def test_a_field_out_of_range_is_named(tmp_path: Path, field: str, value: Any, message: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(json.dumps(options(**{field: value})))
    with pytest.raises(ModelError, match=message):
        open_encoder(f"elmo:{folder}")


# Weights that are not right. They are read in ``prepare``, before anything is encoded.


def refused(folder: Path, message: str) -> None:
    encoder = opened(folder)
    with pytest.raises(ModelError, match=message):
        encoder.prepare(["a"])


@pytest.mark.parametrize("name", sorted(random_weights(OPTIONS)))
def test_every_missing_data_set_is_named_and_never_made_up(tmp_path: Path, name: str) -> None:
    folder = write_model(tmp_path / "model", OPTIONS, **{name: None})
    refused(folder, rf"weights.hdf5: 1 of 29 data sets are missing, the first is {name} of shape \(")


@pytest.mark.parametrize("name", sorted(random_weights(OPTIONS)))
def test_every_data_set_of_the_wrong_shape_is_named(tmp_path: Path, name: str) -> None:
    wrong = random_weights(OPTIONS)[name][..., :-1]
    folder = write_model(tmp_path / "model", OPTIONS, **{name: wrong})
    refused(folder, rf"{name} has the shape \(.*\), the options ask for \(")


def test_data_sets_of_other_content(tmp_path: Path) -> None:
    good = random_weights(OPTIONS)["CNN_proj/b_proj"]
    words = np.array(["x"] * len(good), dtype=h5py.string_dtype())
    for number, (wrong, message) in enumerate(
        [
            (good.astype(np.int64), "CNN_proj/b_proj holds int64, expected floating-point numbers"),
            (words, "CNN_proj/b_proj holds object, expected"),
            (np.where(good > 0, np.nan, good), "CNN_proj/b_proj holds numbers that are not finite"),
            (np.full(good.shape, 1e300), "CNN_proj/b_proj holds numbers that are not finite"),
        ]
    ):
        refused(write_model(tmp_path / str(number), OPTIONS, **{"CNN_proj/b_proj": wrong}), message)


def test_a_group_in_the_place_of_a_data_set_is_a_missing_one(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", OPTIONS, char_embed=None)
    with h5py.File(folder / "weights.hdf5", "a") as file:
        file.create_group("char_embed")
    refused(folder, "the first is char_embed of shape")


@pytest.mark.parametrize(
    ("field", "left_over"), [("n_layers", "Cell1/LSTMCell/B"), ("n_highway", "CNN_high_1/W_carry")]
)
def test_layers_that_the_options_forget_are_not_left_out(tmp_path: Path, field: str, left_over: str) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "options.json").write_text(json.dumps(options(**{field: 1})))
    refused(folder, rf"the data set \S*{left_over} has no place in the network that the options describe")


def test_other_data_sets_may_stand_beside_the_weights(tmp_path: Path) -> None:
    opened(write_model(tmp_path / "model", OPTIONS, softmax=np.ones((3, 3)))).prepare(["a"])


@pytest.mark.parametrize("precision", [np.float16, np.float64])
def test_weights_of_another_precision_are_read(tmp_path: Path, precision: type[np.floating[Any]]) -> None:
    weights = {name: array.astype(precision) for name, array in random_weights(OPTIONS).items()}
    vectors = opened(write_model(tmp_path / "model", OPTIONS, **weights)).encode(TEXTS).vectors
    assert np.isfinite(vectors).all()


def test_files_that_are_no_hdf5_or_end_early(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    content = (folder / "weights.hdf5").read_bytes()
    for damaged in (b"", b"version https://git-lfs.github.com/spec/v1\n", content[:600], content[: len(content) // 2]):
        (folder / "weights.hdf5").write_bytes(damaged)
        refused(folder, r"weights.hdf5: damaged, or not an HDF5 file: .*; fetch it again")


# Texts that are not right.


@pytest.mark.parametrize("text", ["", "  \t\n"])
def test_a_text_without_words_is_an_error(folder: Path, text: str) -> None:
    encoder = opened(folder)
    for use in (encoder.prepare, encoder.encode):
        with pytest.raises(VectorError, match=r"model 'elmo:tiny': the text '.*' has no words, so it has no vector"):
            use(["a word", text])
