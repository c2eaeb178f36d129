"""InferSent against the released code's values and against an LSTM written out in NumPy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import biassay
from biassay.errors import ModelError, UnknownNameError, UsageError, VectorFileError
from biassay.models.base import TextEmbeddings
from biassay.models.recurrent.infersent import tokenize_infersent
from biassay.models.registry import open_encoder

pytestmark = pytest.mark.extras

# The reference is float32 itself; its README gives 1e-6.
ROUNDING: dict[str, Any] = {"rtol": 0, "atol": 1e-6}
WORDS = ["The", "cat", "sat", ".", "doesn", "'t", "does", "n't", "<s>", "</s>", "<p>", "</p>", "café"]
DIMENSION, HIDDEN = 4, 3


def write_model(folder: Path, name: str = "infersent1.pkl", words: list[str] = WORDS, seed: int = 0) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(seed)
    shapes = torch.nn.LSTM(DIMENSION, HIDDEN, bidirectional=True).state_dict()
    state = {f"enc_lstm.{n}": torch.tensor(rng.normal(size=v.shape), dtype=torch.float32) for n, v in shapes.items()}
    torch.save(state, folder / name, _use_new_zipfile_serialization=False)
    lines = [f"{word} " + " ".join(f"{x:.4f}" for x in rng.normal(size=DIMENSION)) + "\n" for word in words]
    (folder / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def encode(model: str, texts: list[str]) -> TextEmbeddings:
    encoder = open_encoder(model)
    encoder.prepare(texts)
    return encoder.encode(texts)


def numpy_lstm(state: dict[str, Any], inputs: NDArray[np.float64], suffix: str) -> NDArray[np.float64]:
    """One direction, step by step: gates i, f, g, o."""
    w, u, b, c = (
        state[f"enc_lstm.{n}_l0{suffix}"].double().numpy() for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    hidden, cell, out = np.zeros(HIDDEN), np.zeros(HIDDEN), []
    for x in inputs[::-1] if suffix else inputs:
        i, f, g, o = np.split(w @ x + u @ hidden + b + c, 4)
        sigmoid = [1 / (1 + np.exp(-gate)) for gate in (i, f, o)]
        cell = sigmoid[1] * cell + sigmoid[0] * np.tanh(g)
        hidden = sigmoid[2] * np.tanh(cell)
        out.append(hidden)
    return np.array(out)


def by_hand(folder: Path, words: list[str]) -> NDArray[np.float64]:
    vectors = {line.split(" ")[0]: line.split(" ")[1:] for line in (folder / "vectors.txt").read_text().splitlines()}
    state = torch.load(folder / "infersent1.pkl", weights_only=True)
    inputs = np.array([vectors[word] for word in words], dtype=np.float64)
    return np.concatenate([numpy_lstm(state, inputs, suffix).max(axis=0) for suffix in ("", "_reverse")])


@pytest.fixture(params=["1", "2"])
def published(request: pytest.FixtureRequest, reference: Path, tmp_path: Path) -> tuple[str, Path, dict[str, Any]]:
    """Return the folder of one version, and the output of the released code."""
    version = request.param
    source = reference / "infersent"
    expected = json.loads((source / "expected.json").read_text(encoding="utf-8"))
    folder = tmp_path / "toy"
    folder.mkdir()
    for name in (expected[f"v{version}"]["checkpoint"], expected[f"v{version}"]["vectors_file"]):
        shutil.copy(source / name, folder)
    return version, folder, expected


def test_vectors_are_those_of_the_released_code(published: tuple[str, Path, dict[str, Any]], reference: Path) -> None:
    version, folder, expected = published
    arrays = np.load(reference / "infersent" / "expected.npz")
    found = encode(f"infersent:{folder}", expected["sentences"]).vectors
    np.testing.assert_allclose(found, arrays[f"v{version}_bsize1"], **ROUNDING)
    if version == "2":  # version 1 lets the padding in: only its batches of one are free of it
        np.testing.assert_allclose(found, arrays["v2_bsize4"], **ROUNDING)
        np.testing.assert_allclose(found, arrays["v2_bsize64"], **ROUNDING)


def test_vectors_agree_with_an_lstm_in_numpy(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    found = encode(f"infersent:{folder}", ["The cat sat.", "cat doesn't unknown"])
    np.testing.assert_allclose(
        found.vectors,
        [
            by_hand(folder, ["<s>", "The", "cat", "sat", ".", "</s>"]),
            by_hand(folder, ["<s>", "cat", "does", "n't", "</s>"]),
        ],
        **ROUNDING,
    )
    assert found.unknown == ((), ((12, 19),))


def test_vector_does_not_depend_on_its_batch(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    texts = ["cat", "The cat sat.", "The The cat sat. The cat sat.", "zzz", "café", "sat"] * 3
    encoder = open_encoder(f"infersent:{folder}")
    encoder.prepare(texts)
    together = encoder.encode(texts).vectors
    alone = np.concatenate([encoder.encode([text]).vectors for text in texts])
    np.testing.assert_allclose(together, alone, **ROUNDING)
    np.testing.assert_allclose(encoder.encode(texts[::-1]).vectors, together[::-1], **ROUNDING)
    assert (alone < 0).any()  # which zeros of a padding would have hidden


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("She doesn't go.", [("She", (0, 3)), ("doesn", (4, 9)), ("'t", (9, 11)), ("go", (12, 14)), (".", (14, 15))]),
        ("They do n't go", [("They", (0, 4)), ("don", (5, 9)), ("'t", (9, 11)), ("go", (12, 14))]),
        ("She doesn't", [("She", (0, 3)), ("does", (4, 8)), ("n't", (8, 11))]),
        ("n't go", [("n't", (0, 3)), ("go", (4, 6))]),
        ("is n't n't so", [("isn", (0, 4)), ("'t", (4, 6)), ("n't", (7, 10)), ("so", (11, 13))]),
    ],
)
def test_version_2_writes_contractions_its_own_way(text: str, words: list[Any]) -> None:
    found = tokenize_infersent(text, "2")
    assert found == words
    released = " ".join(word for word, _ in tokenize_infersent(text, "1")).replace(" n't ", "n 't ").split()
    assert [word for word, _ in found] == released


@pytest.mark.parametrize("text", ["zzz qqq", " ", ""])
def test_a_text_without_a_known_word_has_the_vector_of_its_markers(tmp_path: Path, text: str) -> None:
    folder = write_model(tmp_path / "m")
    found = encode(f"infersent:{folder}", ["cat", text])
    np.testing.assert_allclose(found.vectors[1], by_hand(folder, ["<s>", "</s>"]), **ROUNDING)
    assert found.unknown == ((), ((0, len(text)),))


@pytest.mark.parametrize("ending", [".npy", ".vec.gz"])
def test_word_vectors_of_other_formats(tmp_path: Path, ending: str) -> None:
    folder = write_model(tmp_path / "m")
    before = encode(f"infersent:{folder}", ["The cat sat."]).vectors
    lines = (folder / "vectors.txt").read_text().splitlines()
    (folder / "vectors.txt").unlink()
    if ending == ".npy":
        np.save(folder / "v.npy", np.array([line.split(" ")[1:] for line in lines], dtype=np.float32))
        (folder / "words.txt").write_text("\n".join(line.split(" ")[0] for line in lines))
    else:
        import gzip

        (folder / "v.vec.gz").write_bytes(gzip.compress("\n".join([f"{len(lines)} {DIMENSION}", *lines]).encode()))
    np.testing.assert_array_equal(encode(f"infersent:{folder}", ["The cat sat."]).vectors, before)


def test_version_from_the_setting_else_from_the_name(tmp_path: Path) -> None:
    named = write_model(tmp_path / "a", "InferSent2.pkl")
    assert open_encoder(f"infersent:{named}").identity.options == "version=2"
    assert open_encoder(f"infersent:{named}?version=1").identity.options == "version=1"
    bare = write_model(tmp_path / "b", "model.pt")
    with pytest.raises(UsageError, match=r"'model.pt' does not show its version; add \?version=1 .* or \?version=2"):
        open_encoder(f"infersent:{bare}")
    with pytest.raises(UnknownNameError, match=r"'3' \(1 or 2\)"):
        open_encoder(f"infersent:{bare}?version=3")


def test_a_folder_of_another_layout_is_told(tmp_path: Path, reference: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no folder .*gone; an InferSent folder has one checkpoint"):
        open_encoder(f"infersent:{tmp_path}/gone")
    with pytest.raises(ModelError, match=r"expected one checkpoint .*got none"):
        open_encoder(f"infersent:{tmp_path}")
    with pytest.raises(ModelError, match=r"expected one checkpoint .*got infersent1.pkl, infersent2.pkl"):
        open_encoder(f"infersent:{reference}/infersent")
    folder = write_model(tmp_path / "m")
    (folder / "vectors.txt").rename(folder / "vectors.md")
    with pytest.raises(ModelError, match=r"expected one word-vector file .*\*\.vec.* got none"):
        open_encoder(f"infersent:{folder}")


def test_a_checkpoint_without_a_tensor_is_never_run(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    state = torch.load(folder / "infersent1.pkl", weights_only=True)
    del state["enc_lstm.bias_hh_l0_reverse"]
    torch.save(state, folder / "infersent1.pkl")
    encoder = open_encoder(f"infersent:{folder}")
    with pytest.raises(ModelError, match=r"infersent1.pkl.*lacks the tensor 'enc_lstm.bias_hh_l0_reverse'"):
        encoder.prepare(["cat"])
    torch.save(torch.nn.LSTM(DIMENSION, HIDDEN), folder / "infersent1.pkl")
    with pytest.raises(ModelError, match=r"Convert a pickled module .*to a state dict"):
        open_encoder(f"infersent:{folder}").prepare(["cat"])


def test_a_run_from_front_to_back(tmp_path: Path) -> None:
    roles = {"targ1": "ant bee fly", "targ2": "rose iris lily", "attr1": "good fine", "attr2": "bad ill"}
    content = {role: {"category": role, "examples": words.split()} for role, words in roles.items()}
    (tmp_path / "small.json").write_text(json.dumps(content))
    known = [word for words in roles.values() for word in words.split() if word != "lily"]
    folder = write_model(tmp_path / "toy", words=[*known, "<s>", "</s>"])
    run = biassay.run(f"infersent:{folder}", tests=str(tmp_path / "small.json"), max_unknown=0.4)
    (result,) = run.results
    assert (result.model, result.options, result.status) == ("infersent:toy", "version=1", "measured")
    assert result.num_targ2 == 2
    again = biassay.run(f"infersent:{folder}", tests=str(tmp_path / "small.json"), max_unknown=0.4)
    assert again.manifest.models[0].encoded == 0
    assert again.results == run.results


def test_word_vectors_of_another_size_are_told(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "m")
    (folder / "vectors.txt").write_text("cat 1 2 3\n")
    with pytest.raises(
        ModelError, match=r"vectors.txt: the word vectors have 3 dimensions, but infersent1.pkl expects 4"
    ):
        encode(f"infersent:{folder}", ["cat"])
    (folder / "vectors.txt").write_text("cat 1 2 3 4\nsat 1 2\n")
    with pytest.raises(VectorFileError, match="line 2: expected 4 values, got 2"):
        encode(f"infersent:{folder}", ["cat"])
