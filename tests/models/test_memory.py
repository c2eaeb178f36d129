"""Batches: prefetching, memory, attention kernels and half precision."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.blanks import blank

from biassay.errors import ModelError
from biassay.models.registry import open_encoder, open_model
from biassay.models.transformers import checkpoint
from biassay.models.transformers.batches import BatchPrefetcher, avoid_cudnn_attention, retry_in_halves, split_in_half
from biassay.models.transformers.checkpoint import check_half_precision
from biassay.models.transformers.forward_plan import ForwardPlan, TokenQuery
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

    parts = retry_in_halves("model 'm'", work, list(range(7)), split_in_half)
    assert [number for part in parts for number in part] == [10 * number for number in range(7)]
    with pytest.raises(ModelError, match="model 'm': one text does not fit into memory"):
        retry_in_halves("model 'm'", lambda batch: work(batch * 9), [1, 2], split_in_half)


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
        scarce(type(model)._forward, lambda _, batch, *__: len(batch.sequences)),  # type: ignore[attr-defined]
    )
    for one, other in zip(filled, model.fill(blanks), strict=True):
        np.testing.assert_array_equal(one.pieces, other.pieces)
        np.testing.assert_allclose(one.columns, other.columns, atol=1e-5)
    for first, again in zip(found, texts.likelihoods([LikelihoodRequest(text) for text in TEXTS]), strict=True):
        np.testing.assert_allclose(first.log_p, again.log_p, atol=1e-5)


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were a GPU that is too small, and little memory: some layers are read from disk."""
    monkeypatch.setattr(checkpoint, "_is_too_large", lambda *_: True)
    monkeypatch.setattr(checkpoint, "_get_memory_limits", lambda: {"cpu": 12_000})


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


def test_what_was_announced_is_worked_on_once_and_elsewhere() -> None:
    seen: list[tuple[str, bool]] = []

    def work(batch: Sequence[str]) -> str:
        seen.append(("".join(batch), threading.current_thread() is threading.main_thread()))
        return "".join(batch).upper()

    ahead = BatchPrefetcher(work)
    ahead.prefetch(["a", "b"])
    ahead.prefetch(["c"])
    assert [ahead(["c"]), ahead(["a", "b"]), ahead(["d"])] == ["C", "AB", "D"]
    assert sorted(seen) == [("ab", False), ("ab", True), ("c", False), ("d", True)]  # what lies before c is given up


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_every_question_is_asked_in_a_sequence_that_begins_with_its_own(kind: str) -> None:
    rng = np.random.default_rng(0)
    drawn = [tuple(rng.integers(0, 3, rng.integers(1, 6)).tolist()) for _ in range(200)]
    questions = [TokenQuery(ids, int(rng.integers(len(ids))), int(rng.integers(9))) for ids in drawn]
    passes = ForwardPlan.from_queries(questions, kind)  # type: ignore[arg-type]
    distinct = set(drawn)
    alone = {ids for ids in distinct if not any(ids == other[: len(ids)] for other in distinct - {ids})}
    assert sorted(passes.sequences) == sorted(distinct if kind == "masked" else alone)
    assert [len(ids) for ids in passes.sequences] == sorted(map(len, passes.sequences))
    answered: dict[int, TokenQuery] = {}
    for batch, own in passes.batches(8, 24):
        assert len(batch.sequences) == 1 or len(batch.sequences) * max(map(len, batch.sequences)) <= 24
        padded, mask = batch.padded(-1)
        assert [tuple(row[row >= 0]) for row in padded] == list(batch.sequences)
        assert (mask == (padded >= 0)).all()
        rows, positions, indices = batch.distinct_positions()
        for number, at, target in zip(own.tolist(), indices.tolist(), batch.targets.tolist(), strict=True):
            ids, place = batch.sequences[rows[at]], int(positions[at])
            asked = questions[number]
            assert ids[: len(asked.ids)] == asked.ids
            answered[number] = TokenQuery(asked.ids, place, target)
    assert [answered[number] for number in range(len(questions))] == questions
    everyone = np.arange(len(questions))
    assert passes.count_first_reads(everyone, len(questions)).sum() == len(passes.sequences)


def test_cancelled_batches_are_dropped_and_the_thread_is_idle() -> None:
    running, leave = threading.Event(), threading.Event()
    done: list[str] = []

    def work(batch: Sequence[str]) -> str:
        if batch == ["slow"]:
            running.set()
            while not (leave.is_set() or ahead.stopping.wait(0.01)):
                pass
        done.extend(batch)
        return batch[0]

    ahead = BatchPrefetcher(work)
    ahead.cancel()  # nothing was announced
    ahead.prefetch(["slow"])
    ahead.prefetch(["next"])
    assert running.wait(10)
    ahead.cancel()
    assert done == ["slow"]
    leave.set()
    ahead.prefetch(["next"])
    assert [ahead(["next"]), ahead(["slow"])] == ["next", "slow"]
    assert done == ["slow", "next", "slow"]


@pytest.mark.extras
@pytest.mark.parametrize(("longest", "flash"), [(7, False), (64, False), (65, True)])
def test_kernels_with_plans_are_left_out_for_as_long_as_a_pass_takes(longest: int, flash: bool) -> None:
    from torch.backends import cuda

    def allowed() -> tuple[bool, ...]:
        names = ("cudnn", "flash", "mem_efficient", "math")
        return tuple(getattr(cuda, f"{name}_sdp_enabled")() for name in names)

    before = allowed()
    with avoid_cudnn_attention("cuda", longest):
        assert allowed() == (False, flash, True, True)
    assert allowed() == before
    with avoid_cudnn_attention("cpu", longest):
        assert allowed() == before


Python = Callable[[str], Path]


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Python:
    """A CPU that claims AMX, and an interpreter that does this when asked to try; every trial leaves a mark."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True, raising=False)

    def made(does: str) -> Path:
        script, trials = tmp_path / "python", tmp_path / "trials"
        script.write_text(f"#!/bin/sh\necho >> {trials}\n{does}\n")
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))
        return trials

    return made


@pytest.mark.parametrize(("does", "code"), [("kill -ILL $$", "-4"), ("exit 3", "3")])
def test_what_would_end_python_is_refused(python: Python, does: str, code: str) -> None:
    python(does)
    for dtype in (torch.bfloat16, torch.float16):
        with pytest.raises(ModelError, match=rf"code {code}\).*dtype=float32.*ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"):
            check_half_precision("m", torch.nn.Linear(2, 2, dtype=dtype))
    check_half_precision("m", torch.nn.Linear(2, 2))
    check_half_precision("m", torch.nn.Linear(2, 2, dtype=torch.bfloat16, device="meta"))


def test_half_precision_runs_where_the_trial_goes_well(python: Python, tmp_path: Path) -> None:
    trials = python("exit 0")
    encoder = open_encoder(f"hf:{save_tiny('bert', tmp_path / 'tiny')}?dtype=bfloat16")
    encoder.prepare(["This is joy."])
    assert trials.exists()
    assert np.isfinite(encoder.encode(["This is joy."]).vectors).all()


def half_sentence_transformer(folder: Path) -> str:
    """A model whose weights are stored in half precision and are used so."""
    import transformers

    save_tiny("bert", folder)
    transformers.AutoModel.from_pretrained(folder).to(torch.bfloat16).save_pretrained(folder)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    (folder / "modules.json").write_text(
        json.dumps(
            [
                {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
                for i, (path, kind) in enumerate(modules)
            ]
        )
    )
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"word_embedding_dimension": 32, "pooling_mode_mean_tokens": true}'
    )
    return f"st:{folder}"


def test_every_family_with_half_precision_is_refused(python: Python, reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    trials = python("kill -ILL $$")
    folder = f"hf:{reference / 'masked_lm' / 'bert'}?dtype=bfloat16&device=cpu"
    model, encoder = open_model(folder, "blanks"), open_encoder(folder)
    sentences = open_encoder(half_sentence_transformer(tmp_path / "tiny"))
    with pytest.raises(ModelError, match="code -4"):
        model.prepare()  # type: ignore[call-arg]
    for refused in (encoder, sentences):
        with pytest.raises(ModelError, match="code -4"):
            refused.prepare(["joy"])
    assert trials.read_text() == "\n"  # once is enough
