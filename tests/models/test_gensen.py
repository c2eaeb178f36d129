"""GenSen against the released code's values, and against a GRU and a regression written out in NumPy."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import biassay
from biassay.errors import ModelError, UnknownNameError, UsageError, VectorFileError
from biassay.models.base import TextEmbeddings
from biassay.models.recurrent.gensen import GenSenEncoder, read_pretrained
from biassay.models.recurrent.treebank import tokenize_treebank
from biassay.models.registry import open_encoder, parse_model

pytestmark = pytest.mark.extras

# The reference is float32 itself; its README gives 1e-6.
ROUNDING: dict[str, Any] = {"rtol": 0, "atol": 1e-6}
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "the", "cat", "sat", ".", "café"]
SIZE, HIDDEN = 4, 3
EXPANSIONS = ["vectors.txt", "vectors_original_layout.h5", "vectors_sentbias_layout.h5"]


def encode(model: str, texts: list[str]) -> TextEmbeddings:
    encoder = open_encoder(model)
    encoder.prepare(texts)
    return encoder.encode(texts)


def opened(model: str) -> GenSenEncoder:
    return GenSenEncoder(parse_model(model))


@pytest.fixture
def toy(reference: Path) -> Path:
    return reference / "gensen"


@pytest.fixture
def expected(toy: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((toy / "expected.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture
def arrays(toy: Path) -> Any:
    return np.load(toy / "expected.npz")


def both(folder: Path) -> str:
    return f"gensen:{folder}/toy_one_layer+{folder}/toy_two_layer"


def test_last_states_are_those_of_the_released_code(toy: Path, expected: dict[str, Any], arrays: Any) -> None:
    texts = expected["sentences"]
    for name in ("one_layer", "two_layer"):
        found = encode(f"gensen:{toy}/toy_{name}", texts).vectors
        np.testing.assert_allclose(found, arrays[f"{name}_last"], **ROUNDING)
    np.testing.assert_allclose(encode(both(toy), texts).vectors, arrays["concat_last"], **ROUNDING)


def test_raw_sentences_are_cut_as_the_released_code_cuts(toy: Path, expected: dict[str, Any], arrays: Any) -> None:
    texts = expected["raw_sentences"]
    assert [[word for word, _ in tokenize_treebank(text)] for text in texts] == expected["raw_tokens"]
    assert [[word for word, _ in tokenize_treebank(t)] for t in expected["sentences"]] == [
        text.split() for text in expected["sentences"]
    ]
    np.testing.assert_allclose(encode(both(toy), texts).vectors, arrays["raw_concat_last_tokenized"], **ROUNDING)


@pytest.mark.parametrize("file", EXPANSIONS)
def test_expansion_is_that_of_the_released_code(toy: Path, expected: dict[str, Any], arrays: Any, file: str) -> None:
    if file.endswith(".h5"):
        pytest.importorskip("h5py")
    texts = expected["sentences"]
    found = encode(f"{both(toy)}?expand={toy / file}", texts)
    np.testing.assert_allclose(found.vectors, arrays["concat_last_expanded"], **ROUNDING)
    encoder = opened(f"gensen:{toy}/toy_one_layer?expand={toy / file}")
    np.testing.assert_allclose(encoder.encode(texts).vectors, arrays["one_layer_last_expanded"], **ROUNDING)
    words = np.stack([encoder._models[0].vector(word) for word in expected["task_vocab"]])
    # Numbers up to 6, from a regression in float32 there and in float64 here: a few units of the last place.
    np.testing.assert_allclose(words, arrays["expanded_embeddings_one_layer"], rtol=1e-6, atol=2e-6)
    lost = [text[a:b] for text, spans in zip(texts, found.unknown, strict=True) for a, b in spans]
    assert lost == expected["not_in_vectors_either"]


def test_unknown_words_are_reported_where_they_stand(toy: Path, expected: dict[str, Any]) -> None:
    texts = expected["sentences"]
    found = encode(both(toy), texts).unknown
    lost = [text[a:b] for text, spans in zip(texts, found, strict=True) for a, b in spans]
    assert lost == expected["not_in_model_vocab"]


def test_a_vocabulary_read_as_latin_1_explains_the_values_of_sent_bias(
    toy: Path, expected: dict[str, Any], arrays: Any, tmp_path: Path
) -> None:
    """sent-bias reads it so; here it is UTF-8, and café is known. With its misreading made on purpose, we agree."""
    for name in ("toy_one_layer", "toy_two_layer"):
        shutil.copy(toy / f"{name}.model", tmp_path)
        with (toy / f"{name}_vocab.pkl").open("rb") as file:
            misread = pickle.load(file, encoding="latin-1")  # our own reference file
        (tmp_path / f"{name}_vocab.pkl").write_bytes(pickle.dumps(misread))
    texts = expected["sentences"]
    plain = encode(both(tmp_path), texts).vectors
    np.testing.assert_allclose(plain, arrays["concat_last_vocab_read_latin1"], **ROUNDING)
    expanded = encode(f"{both(tmp_path)}?expand={toy}/vectors.txt", texts).vectors
    np.testing.assert_allclose(expanded, arrays["concat_last_expanded_sentbias"], **ROUNDING)


def write_model(folder: Path, name: str = "m", layers: int = 2, words: list[str] = WORDS, seed: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    shapes = torch.nn.GRU(SIZE, HIDDEN, num_layers=layers, bidirectional=True).state_dict()
    state = {"src_embedding.weight": torch.zeros(len(words), SIZE)} | {f"encoder.{n}": v for n, v in shapes.items()}
    made = {n: torch.tensor(rng.normal(size=v.shape), dtype=torch.float32) for n, v in state.items()}
    torch.save(made, folder / f"{name}.model", _use_new_zipfile_serialization=False)
    vocabulary = {b"word2id": {word.encode(): number for number, word in enumerate(words)}}
    (folder / f"{name}_vocab.pkl").write_bytes(pickle.dumps(vocabulary, protocol=2))
    return folder


def numpy_gru(state: dict[str, Any], inputs: NDArray[np.float64], layer: int, suffix: str) -> NDArray[np.float64]:
    """States of one direction of one layer, in the order of the words: gates r, z, n."""
    parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    w, u, b, c = (state[f"encoder.{part}_l{layer}{suffix}"].double().numpy() for part in parts)
    hidden, out = np.zeros(HIDDEN), []
    for x in inputs[::-1] if suffix else inputs:
        (xr, xz, xn), (hr, hz, hn) = np.split(w @ x + b, 3), np.split(u @ hidden + c, 3)
        reset, update = 1 / (1 + np.exp(-xr - hr)), 1 / (1 + np.exp(-xz - hz))
        hidden = (1 - update) * np.tanh(xn + reset * hn) + update * hidden
        out.append(hidden)
    return np.array(out[::-1] if suffix else out)


def by_hand(folder: Path, vectors: Callable[[Any], list[Any]], layers: int, pool: str) -> NDArray[np.float64]:
    state = torch.load(folder / "m.model", weights_only=True)
    inputs = np.array(vectors(state["src_embedding.weight"].double().numpy()))
    for layer in range(layers):
        forward, backward = (numpy_gru(state, inputs, layer, suffix) for suffix in ("", "_reverse"))
        inputs = np.hstack([forward, backward])
    return inputs.max(axis=0) if pool == "max" else np.concatenate([backward[0], forward[-1]])


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("pool", ["last", "max"])
def test_vectors_agree_with_a_gru_in_numpy(tmp_path: Path, layers: int, pool: str) -> None:
    folder = write_model(tmp_path / "g", layers=layers)
    found = encode(f"gensen:{folder}?pool={pool}", ["the dog sat."])
    rows = [WORDS.index(word) for word in ("<s>", "the", "<unk>", "sat", ".", "</s>")]
    np.testing.assert_allclose(found.vectors[0], by_hand(folder, lambda t: list(t[rows]), layers, pool), **ROUNDING)
    assert found.unknown == (((4, 7),),)


@pytest.mark.parametrize("pool", ["last", "max"])
def test_vector_does_not_depend_on_its_batch(tmp_path: Path, pool: str) -> None:
    encoder = open_encoder(f"gensen:{write_model(tmp_path / 'g')}?pool={pool}")
    texts = ["cat", "the cat sat on the cat. the cat sat.", "", "zzz", "the café"] * 3
    encoder.prepare(texts)
    together = encoder.encode(texts).vectors
    alone = np.concatenate([encoder.encode([text]).vectors for text in texts])
    assert alone.shape == (15, 2 * HIDDEN)
    np.testing.assert_allclose(together, alone, **ROUNDING)
    np.testing.assert_allclose(encoder.encode(texts[::-1]).vectors, together[::-1], **ROUNDING)


def write_vectors(path: Path, words: list[str], size: int = 3) -> Path:
    rng = np.random.default_rng(7)
    path.write_text("".join(f"{w} " + " ".join(map(str, rng.normal(size=size))) + "\n" for w in words))
    return path


def test_words_are_taken_from_pretrained_vectors_one_by_one(tmp_path: Path) -> None:
    """What a word gets does not depend on which texts were prepared, nor when."""
    folder = write_model(tmp_path / "g")
    path = write_vectors(tmp_path / "v.txt", [*WORDS[4:], "dog", "bird"])
    texts = ["the dog", "the bird", "the fish"]
    encoder = opened(f"gensen:{folder}?expand={path}")
    encoder.prepare(texts[:1])
    singly = [encoder.encode([text]) for text in texts]
    together = encode(f"gensen:{folder}?expand={path}", texts)
    np.testing.assert_allclose(np.concatenate([e.vectors for e in singly]), together.vectors, **ROUNDING)
    assert together.unknown == tuple(e.unknown[0] for e in singly) == ((), (), ((4, 8),))
    pretrained = read_pretrained(path, [*WORDS, "dog"])
    table = torch.load(folder / "m.model", weights_only=True)["src_embedding.weight"].double().numpy()
    shared = [word for word in WORDS if word in pretrained]
    design = np.array([[1, *pretrained[word]] for word in shared], dtype=np.float64)
    weights = np.linalg.lstsq(design, table[[WORDS.index(word) for word in shared]])[0]
    np.testing.assert_allclose(encoder._models[0].vector("dog"), [1, *pretrained["dog"]] @ weights, rtol=1e-5)


@pytest.mark.parametrize("change", ["text", "words", "embedding", "count", "flat", "kind", "nan"])
def test_hdf5_files_of_another_form_are_told(tmp_path: Path, change: str) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "v.h5"
    matrix = np.ones((2, 3), dtype=np.float32)
    if change == "text":
        path.write_text("the 1 2 3\n")
    else:
        matrix = {"flat": matrix.ravel(), "kind": matrix.astype(int), "nan": matrix * np.nan}.get(change, matrix)
        with h5py.File(path, "w") as file:
            if change != "words":
                file["words_flatten"] = "the\ncat" if change != "count" else "the\ncat\nsat"
            if change != "embedding":
                file["embedding"] = matrix
    with pytest.raises(VectorFileError, match=r"v\.h5: .*(embedding|vector of 'the')"):
        read_pretrained(path, ["the"])


def test_hdf5_vectors_linked_from_another_file_are_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["embedding"] = np.ones((2, 3), dtype=np.float32)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["words_flatten"] = "the\ncat"
        file["embedding"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/embedding")
    with pytest.raises(ModelError, match="embedding is stored in another file"):
        read_pretrained(tmp_path / "v.h5", ["the"])


def test_a_folder_of_another_layout_is_told(tmp_path: Path, toy: Path) -> None:
    with pytest.raises(ModelError, match=r"got toy_one_layer.model, toy_two_layer.model; write gensen:DIR .*DIR/NAME"):
        open_encoder(f"gensen:{toy}")
    with pytest.raises(ModelError, match=r"expected one \*\.model in the folder, got none"):
        open_encoder(f"gensen:{tmp_path}")
    with pytest.raises(ModelError, match=r"neither a folder .*gone nor a file .*gone\.model; write gensen:DIR"):
        open_encoder(f"gensen:{tmp_path}/gone")
    folder = write_model(tmp_path / "g")
    with pytest.raises(UsageError, match=r"expected one model, or two joined by \+, got 3"):
        open_encoder(f"gensen:{folder}+{folder}+{folder}")
    (folder / "m_vocab.pkl").unlink()
    with pytest.raises(ModelError, match=r"there is no file .*g/m_vocab\.pkl; write gensen:DIR"):
        open_encoder(f"gensen:{folder}")
    with pytest.raises(ModelError, match=r"nor a file .*m_vocab\.pkl"):
        open_encoder(f"gensen:{folder}/m")


def test_settings_that_are_not_there_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_model(tmp_path / "g")
    with pytest.raises(UnknownNameError, match=r"'mean' \(one of last, max\)"):
        open_encoder(f"gensen:{folder}?pool=mean")
    with pytest.raises(UsageError, match=r"lower must be true or false, got 'yes'"):
        open_encoder(f"gensen:{folder}?lower=yes")
    with pytest.raises(VectorFileError, match=r"there is no file of vectors .*gone.txt"):
        open_encoder(f"gensen:{folder}?expand={tmp_path}/gone.txt")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="device=cuda was requested"):
        open_encoder(f"gensen:{folder}?device=cuda").prepare(["joy"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"<s>": 0, "</s>": 1}, "the vocabulary lacks '<unk>'"),
        (
            {"<s>": 0, "</s>": 1, "<unk>": 9},
            "'<unk>' has the number 9, but 'src_embedding.weight' of m.model has 9 rows",
        ),
        ({"<s>": -1, "</s>": 1, "<unk>": 2}, "'<s>' has the number -1"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_told(tmp_path: Path, words: dict[str, int], message: str) -> None:
    folder = write_model(tmp_path / "g")
    (folder / "m_vocab.pkl").write_bytes(pickle.dumps({"word2id": words}))
    with pytest.raises(ModelError, match=message):
        encode(f"gensen:{folder}", ["the"])


def test_a_run_from_front_to_back(tmp_path: Path) -> None:
    roles = {"targ1": "ant bee fly", "targ2": "rose iris lily", "attr1": "good fine", "attr2": "bad ill"}
    content = {role: {"category": role, "examples": words.split()} for role, words in roles.items()}
    (tmp_path / "small.json").write_text(json.dumps(content))
    known = [word for words in roles.values() for word in words.split() if word != "lily"]
    one, two = (write_model(tmp_path / n, words=[*WORDS, *known], seed=s) for s, n in enumerate(("one", "two")))
    path = write_vectors(tmp_path / "v.txt", [*WORDS, *known, "lily"])
    refused, measured = (
        biassay.run(f"gensen:{one}+{two}{query}", tests=str(tmp_path / "small.json")).results[0]
        for query in ("", f"?expand={path}")
    )
    assert refused.status == "skipped"
    assert "lily" in str(refused.reason)
    assert "?lower=1; ?expand=PATH" in str(refused.reason)
    assert (measured.model, measured.options) == ("gensen:one+two", "pool=last;expand=v.txt")
    assert measured.status == "measured"
    assert measured.num_targ2 == 3


def test_expansion_with_too_few_words_in_common_is_told(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "g")
    path = write_vectors(tmp_path / "v.txt", ["the", "cat", "sat", "dog"])
    with pytest.raises(ModelError, match=r"v.txt: 3 words in common with the model are too few .* 3 dimensions"):
        encode(f"gensen:{folder}?expand={path}", ["the dog"])
