"""Identity of a model folder: the content of its files, not its path or dates."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from biassay.errors import ModelError
from biassay.models.registry import parse_model
from biassay.models.transformers.checkpoint import Checkpoint, find_checkpoint

PARTS = [
    *("config.json", "model.safetensors", "vocab.txt", "bpe.codes", "modules.json", "modeling_own.py", "own/part.py"),
    *("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"),
    *("parts/3_Router/deep/model.safetensors", "checkpoint-5/optimizer.pt", "own/__pycache__/part.py"),
    *("additional_chat_templates/tool_use.jinja", ".hidden/weights.bin", ".adapter.safetensors", "LICENSE.py"),
    "deep/er/a.safetensors",
]


def revision(folder: Path, settings: str = "") -> str:
    return find_checkpoint(parse_model(f"st:{folder}{settings}")).fingerprint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of a sentence-transformers model with code of its own; what they hold does not matter here."""
    place = tmp_path / "model"
    modules = [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "parts/3_Router"}]
    for name in (*PARTS, "README.md"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(json.dumps(modules) if name == "modules.json" else name)
    return place


@pytest.mark.parametrize("part", PARTS)
def test_a_changed_part_is_another_model(folder: Path, part: str) -> None:
    before, status = revision(folder), (folder / part).stat()
    changed = (folder / part).read_bytes()
    (folder / part).write_bytes(changed[:-1] + bytes([changed[-1] ^ 1]))
    os.utime(folder / part, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (folder / part).stat().st_size == status.st_size
    assert revision(folder) != before
    (folder / part).write_bytes(changed)
    assert revision(folder) == before
    (folder / part).rename((folder / part).with_name("renamed.bin"))
    assert revision(folder) != before


def _chmod(folder: Path) -> Path:
    for path in folder.rglob("*.*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    return folder


def _touched(folder: Path) -> Path:
    for path in folder.rglob("*"):
        os.utime(path, ns=(1, 1))
    return folder


def _with_more(folder: Path) -> Path:
    """Documents, what Git and the hub's command write, and a run of biassay."""
    documents = ("README.md", "LICENSE", "Licence.txt", "NOTICE.txt", "page.html", "map.png", "README-fr.txt")
    states = (".git/HEAD", ".gitattributes", ".cache/huggingface/download/x.metadata", "own/__pycache__/part.pyc")
    for name in (*documents, *states, "run/manifest.json", "run/results.json", "run/arrays/0.npz"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text("other")
    (folder / "run" / "manifest.json").write_text(json.dumps({"format_version": 1, "run_id": "x"}))
    return folder


@pytest.mark.parametrize(
    "change",
    [
        *(_chmod, _touched, _with_more, lambda folder: folder.rename(folder.with_name("renamed"))),
        lambda folder: Path(shutil.copytree(folder, folder.parent / "elsewhere" / "copy")),
    ],
    ids=["chmod", "touch", "documents and runs", "rename", "copy"],
)
def test_the_same_content_is_the_same_model(folder: Path, change: Callable[[Path], Path]) -> None:
    before = revision(folder)
    assert revision(change(folder)) == before


def test_links_count_by_what_they_lead_to(folder: Path) -> None:
    other = folder.parent / "blobs"
    other.mkdir()
    (other / "one").write_text("one")
    (folder / "linked.bin").symlink_to(other / "one")
    (folder / "latest").symlink_to("checkpoint-5")
    (folder / "checkpoint-5" / "loop").symlink_to("..")
    before = revision(folder)
    (other / "one").write_text("two")
    assert revision(folder) != before
    (other / "one").write_text("one")
    assert revision(folder) == before
    (folder / "latest").unlink()
    (folder / "latest").symlink_to("2_Dense")
    assert revision(folder) != before


def test_code_and_models_that_a_configuration_names_elsewhere_count(folder: Path) -> None:
    code, base, words = (folder.parent / name for name in ("code", "base", "words.txt"))
    code.mkdir()
    base.mkdir()
    for path in (code / "own.py", base / "config.json", words):
        path.write_text("one")
    (folder / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": f"{code}--own.Own"}}))
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"vocab_file": str(words), "x_file": "/root/x"}))
    for path, settings in ((code / "own.py", "?trust_remote_code=true"), (base / "config.json", ""), (words, "")):
        before = revision(folder, settings)
        path.write_text("two")
        assert revision(folder, settings) != before


def test_files_that_change_while_a_model_is_loaded_are_an_error(folder: Path) -> None:
    source = find_checkpoint(parse_model(f"st:{folder}"))
    _ = source.fingerprint
    source.check_unchanged()
    (folder / "model.safetensors").write_text("another")
    with pytest.raises(ModelError, match=r"model\.safetensors changed while the model was loaded"):
        source.check_unchanged()


COMMIT = "c0ffee" * 6 + "c0ff"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in the cache of the hub, as it is laid out there; gives its snapshot."""
    cache = tmp_path / "models--owner--name"
    snapshot = cache / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")

    def download(name: str, file: str, revision: str) -> str:
        assert (name, file, revision) == ("owner/name", "config.json", "v1")
        return str(snapshot / file)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    return snapshot


def at_hub(settings: str = "") -> Checkpoint:
    return Checkpoint(parse_model(f"hf:owner/name@v1{settings}"), "owner/name", "v1", "hf:owner/name")


@pytest.mark.usefixtures("hub_cache")
def test_an_untouched_hub_model_is_known_by_its_commit() -> None:
    assert at_hub().fingerprint == f"{COMMIT} owner/name"
    assert at_hub("?trust_remote_code=true").fingerprint == f"{COMMIT} owner/name trust_remote_code"
    assert at_hub().options["revision"] == COMMIT


def test_a_hub_model_without_a_commit_is_never_known_by_its_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_: str, revision: str) -> str:
        raise OSError(f"no such file at {revision}")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    monkeypatch.setattr(Checkpoint, "config", None)
    with pytest.raises(ModelError, match=r"no config\.json"):
        _ = at_hub().fingerprint
