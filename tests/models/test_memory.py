"""Models that hardly fit: batches are halved, models spread over devices, and the numbers stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.blanks import blank

from biassay.errors import ModelError
from biassay.models.registry import open_model
from biassay.models.transformers import hub
from biassay.models.transformers.batches import retry_in_halves, split_in_half
from biassay.prompts.requests import LikelihoodRequest

from .tiny_models import save_tiny

pytestmark = pytest.mark.extras

ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: 12 bytes"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    MemoryError(),
]
TEXTS = ["she is good.", "the person here is good.", "he loves the dog", "who?", "they are flowers, there."]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("room", [1, 2, 3, 7])
def test_what_does_not_fit_is_halved_until_it_does(error: Exception, room: int) -> None:
    def work(batch: list[int]) -> list[int]:
        if len(batch) > room:
            raise error
        return [10 * number for number in batch]

    parts = retry_in_halves("m", work, list(range(7)), split_in_half)
    assert [number for part in parts for number in part] == [10 * number for number in range(7)]
    with pytest.raises(ModelError, match="model 'm': one text does not fit into memory"):
        retry_in_halves("m", lambda batch: work(batch * 9), [1, 2], split_in_half)


def scarce(forward: Callable[..., Any], size: Callable[..., int]) -> Callable[..., Any]:
    """Fails for more than two at a time."""

    def tried(*given: Any, **named: Any) -> Any:
        if size(*given, **named) > 2:
            raise ERRORS[1]
        return forward(*given, **named)

    return tried


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_language_models_with_little_memory_say_the_same(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}"
    model, texts = open_model(name, "blanks"), open_model(name, "likelihoods")
    blanks = [blank(f"{text} is {{trait}}.", "good", "evil", "bad") for text in ("she", "the person", "he")]
    filled, found = model.fill(blanks), texts.likelihoods([LikelihoodRequest(text) for text in TEXTS])
    monkeypatch.setattr(
        "biassay.models.transformers.language_model.LanguageModel._forward",
        scarce(type(model)._forward, lambda _, batch, __: len(batch.sequences)),  # type: ignore[attr-defined]
    )
    for one, other in zip(filled, model.fill(blanks), strict=True):
        np.testing.assert_array_equal(one.pieces, other.pieces)
        np.testing.assert_allclose(one.columns, other.columns, atol=1e-5)
    for first, again in zip(found, texts.likelihoods([LikelihoodRequest(text) for text in TEXTS]), strict=True):
        np.testing.assert_allclose(first.log_p, again.log_p, atol=1e-5)


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were a GPU that is too small, and little memory: some layers are read from disk."""
    monkeypatch.setattr(hub, "_is_too_large", lambda *_: True)
    monkeypatch.setattr(hub, "_get_memory_limits", lambda: {"cpu": 12_000})


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_model_that_is_spread_says_the_same(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    name = f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}"
    asked = [blank("she is {trait}.", "good", "bad"), blank("the person is {trait}.", "good", "bad")]
    vectors, filled = open_model(name, "texts").encode(TEXTS).vectors, open_model(name, "blanks").fill(asked)
    request.getfixturevalue("spread")
    encoder: Any = open_model(name, "texts")
    np.testing.assert_allclose(encoder.encode(TEXTS).vectors, vectors, atol=1e-6)
    assert "disk" in encoder._states._model.hf_device_map.values()
    for one, other in zip(filled, open_model(name, "blanks").fill(asked), strict=True):
        np.testing.assert_allclose(one.columns, other.columns, atol=1e-5)


def test_a_quantised_checkpoint_is_the_model_of_its_rounded_weights(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folders = [save_tiny("llama", tmp_path / name / "m", head=True) for name in ("plain", "quantised")]
    plain: dict[str, Any] = {}
    quantised: dict[str, Any] = {}
    for name, matrix in load_file(folders[0] / "model.safetensors").items():
        plain[name] = quantised[name] = matrix
        if "_proj" in name:
            scale = matrix.abs().max() / 448
            quantised[name] = (matrix / scale).to(torch.float8_e4m3fn)
            quantised[f"{name}_scale_inv"] = scale.reshape(1, 1)
            plain[name] = quantised[name].float() * scale
    for folder, tensors in zip(folders, (plain, quantised), strict=True):
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folders[1] / "config.json").read_text())
    how = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32]}
    (folders[1] / "config.json").write_text(json.dumps(config | {"quantization_config": how}))
    expected, found = (open_model(f"hf:{folder}", "texts").encode(TEXTS).vectors for folder in folders)
    np.testing.assert_allclose(found, expected, atol=1e-5)
