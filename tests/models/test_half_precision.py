"""Half precision on a CPU that claims AMX: tried in another process, and refused where that dies."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from biassay.errors import ModelError
from biassay.models.registry import open_encoder, open_model
from biassay.models.transformers.hub import check_half_precision

from . import tiny_models

pytestmark = pytest.mark.extras
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


def half_sentence_transformer(folder: Path) -> str:
    """A model whose weights are stored in half precision and are used so."""
    import transformers

    tiny_models.save_tiny("bert", folder)
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


@pytest.mark.parametrize(("does", "code"), [("kill -ILL $$", "-4"), ("exit 3", "3")])
def test_what_would_end_python_is_refused(python: Python, does: str, code: str) -> None:
    python(does)
    for dtype in (torch.bfloat16, torch.float16):
        with pytest.raises(ModelError, match=rf"code {code}\).*dtype=float32.*ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"):
            check_half_precision("m", torch.nn.Linear(2, 2, dtype=dtype))
    check_half_precision("m", torch.nn.Linear(2, 2))
    check_half_precision("m", torch.nn.Linear(2, 2, dtype=torch.bfloat16, device="meta"))


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


def test_half_precision_runs_where_the_trial_goes_well(python: Python, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    trials = python("exit 0")
    encoder = open_encoder(half_sentence_transformer(tmp_path / "tiny"))
    encoder.prepare(["This is joy."])
    assert trials.exists()
    assert np.isfinite(encoder.encode(["This is joy."]).vectors).all()
