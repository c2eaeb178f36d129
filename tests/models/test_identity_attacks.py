"""A model that changed between two runs is measured again, however it was changed."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.cli import main

from . import tiny_models

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("measured_once", "later")]

SETS = {
    "targ1": ["john", "paul", "he", "him"],
    "targ2": ["amy", "lisa", "she", "her"],
    "attr1": ["career", "office", "salary", "war"],
    "attr2": ["family", "home", "wedding", "peace"],
}
OWN_CLASS = """
from transformers import BertModel

class OwnModel(BertModel):
    def forward(self, *args, **kwargs):
        found = super().forward(*args, **kwargs)
        found.last_hidden_state = found.last_hidden_state.roll(1, -1) * found.last_hidden_state
        return found
"""


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute has passed since the files were written, so that digests are cached."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 60)


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    path = tmp_path / "test.json"
    path.write_text(json.dumps({key: {"category": key, "examples": words} for key, words in SETS.items()}))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose shards are in a subfolder and in a hidden one, with a class of its own."""
    folder = tiny_models.save_tiny("bert", tmp_path / "tiny")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    shards = {"parts/one.safetensors": names[::2], "parts/.two/x.safetensors": names[1::2]}
    for shard, held in shards.items():
        (folder / shard).parent.mkdir(parents=True, exist_ok=True)
        save_file({name: weights[name] for name in held}, folder / shard, metadata={"format": "pt"})
    weight_map = {name: shard for shard, held in shards.items() for name in held}
    (folder / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "own.OwnModel"}}))
    (folder / "own.py").write_text(OWN_CLASS)
    return folder


def measure(model: str, test: Path, cache: Path) -> float:
    run = biassay.run(model, tests=str(test), random_sets=0, cache=cache)
    (row,) = run.table()
    return float(row.effect_size)


def changed_shard(path: Path) -> bytes:
    """The shard with its weights in another order: the same size and the same names."""
    import torch
    from safetensors.torch import load_file, save

    weights = load_file(path)
    name = max(weights, key=lambda name: weights[name].numel())
    weights[name] = weights[name].flip(0).contiguous() * torch.tensor(0.5)
    content = save(weights, metadata={"format": "pt"})
    assert len(content) == path.stat().st_size
    return content


def _in_place(path: Path, content: bytes) -> None:
    status = path.stat()
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replaced(path: Path, content: bytes) -> None:
    """Another inode with the same size and time under the same name."""
    status, other = path.stat(), path.with_suffix(".other")
    other.write_bytes(content)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, path)


def _copied(path: Path, content: bytes) -> None:
    """As `cp -p` does."""
    status, other = path.stat(), path.parent.parent.parent / "other"
    other.write_bytes(content)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    shutil.copy2(other, path)


def _linked(path: Path, content: bytes) -> None:
    other = path.parents[2] / "other"
    other.write_bytes(content)
    path.unlink()
    path.symlink_to(other)


@pytest.mark.parametrize("swap", [_in_place, _replaced, _copied, _linked])
@pytest.mark.parametrize("shard", ["parts/one.safetensors", "parts/.two/x.safetensors"])
def test_a_swapped_shard_is_measured_again(
    folder: Path, test_file: Path, tmp_path: Path, shard: str, swap: Callable[[Path, bytes], None]
) -> None:
    before = measure(f"hf:{folder}", test_file, tmp_path / "cache")
    assert measure(f"hf:{folder}", test_file, tmp_path / "cache") == before
    swap(folder / shard, changed_shard(folder / shard))
    after = measure(f"hf:{folder}", test_file, tmp_path / "cache")
    assert after == measure(f"hf:{folder}", test_file, tmp_path / "fresh")
    assert after != before


def test_trust_gets_the_numbers_of_its_own_class(folder: Path, test_file: Path, tmp_path: Path) -> None:
    found = {}
    for settings in ("", "?trust_remote_code=true", "?trust_remote_code=false", "?trust_remote_code=1"):
        found[settings] = measure(f"hf:{folder}{settings}", test_file, tmp_path / "cache")
    plain, trusted, *again = found.values()
    assert plain != trusted
    assert again == [plain, trusted]
    assert trusted == measure(f"hf:{folder}?trust_remote_code=true", test_file, tmp_path / "fresh")


def test_a_gate_measures_a_changed_model_again(
    folder: Path, test_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old"
    shutil.copytree(folder, old)
    asked = ("--tests", test_file, "--json", "--cache", tmp_path / "cache")
    differences = []
    for _ in range(2):
        with pytest.raises(SystemExit):
            main([*("compare", f"hf:{old}", f"hf:{folder}"), *(str(arg) for arg in asked)])
        (row,) = json.loads(capsys.readouterr().out)["associations"]
        differences.append(row["effect_model"])
        shard = folder / "parts" / "one.safetensors"
        _in_place(shard, changed_shard(shard))
    assert differences[0] != differences[1]


def test_a_changed_chat_template_is_asked_again(tmp_path: Path) -> None:
    from biassay.models.registry import open_model

    folder = tiny_models.save_tiny("llama", tmp_path / "tiny", head=True)
    (folder / "additional_chat_templates").mkdir()
    keys = set()
    for name in ("chat_template.jinja", "additional_chat_templates/tool_use.jinja"):
        for text in ("one", "two"):
            (folder / name).write_text(text)
            keys.add(open_model(f"hf:{folder}", "replies").identity.key)
    assert len(keys) == 4


def test_a_model_that_is_replaced_before_it_is_loaded_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from biassay.errors import ModelError
    from biassay.models.registry import open_encoder
    from biassay.models.transformers import encoder as hf_encoder

    encoder = open_encoder(f"hf:{folder}")
    load: Any = hf_encoder.load_weights  # type: ignore[attr-defined]

    def swap_and_load(*args: Any, **kwargs: Any) -> Any:
        shard = folder / "parts" / "one.safetensors"
        _in_place(shard, changed_shard(shard))
        return load(*args, **kwargs)

    monkeypatch.setattr(hf_encoder, "load_weights", swap_and_load)
    with pytest.raises(ModelError, match=r"parts/one\.safetensors changed while the model was loaded"):
        encoder.prepare(["joy"])
