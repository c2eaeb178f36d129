"""What makes a folder the model it is: the content of its parts, and neither its place nor its dates."""

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
from biassay.models import hub
from biassay.models.hub import Source, locate
from biassay.models.registry import parse_model

PARTS = [
    *("config.json", "model.safetensors", "vocab.txt", "bpe.codes", "modules.json", "modeling_own.py", "own/part.py"),
    *("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"),
    "parts/3_Router/deep/model.safetensors",
]


def revision(folder: Path) -> str:
    return locate(parse_model(f"st:{folder}")).fingerprint()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of a sentence-transformers model with code of its own; what they hold does not matter here."""
    place = tmp_path / "model"
    modules = [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "parts/3_Router"}]
    for name in (*PARTS, "README.md", "checkpoint-5/model.safetensors"):
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
    (folder / part).rename(folder / part.replace(".", "-2."))
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
    for name in ("README.md", "checkpoint-9/model.safetensors", "run/manifest.json", ".git/HEAD", "page.html"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("other")
    (folder / "own" / "__pycache__").mkdir()
    (folder / "own" / "__pycache__" / "part.py").touch()
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


@pytest.mark.parametrize("modules", ["", "{", "[1]", '[{"path": 3}]', '[{"path": "/"}, 1]'])
def test_a_list_of_modules_that_is_none_leads_nowhere(folder: Path, modules: str) -> None:
    (folder / "modules.json").write_text(modules)
    (folder.parent / "stranger.bin").write_text("not of the model")
    before = revision(folder)
    (folder.parent / "stranger.bin").write_text("changed")
    assert revision(folder) == before


@pytest.mark.parametrize("path", ["/", "../stranger", "1_Pooling/../../stranger"])
def test_a_module_outside_of_the_folder_is_refused(folder: Path, path: str) -> None:
    (folder / "modules.json").write_text(json.dumps([{"path": ""}, {"path": path}]))
    with pytest.raises(ModelError) as refused:
        revision(folder)
    assert repr(path) in str(refused.value)


def test_a_reader_of_gguf_files_without_a_bar_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace()
    monkeypatch.setattr(hub, "import_module", lambda _: module)
    with hub._without_bar():
        assert vars(module) == {}
    assert vars(module) == {}


@pytest.mark.parametrize("reached", [True, False])
def test_a_name_on_the_hub_is_known_by_its_commit(*, reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(name: str, file: str, revision: str) -> str:
        assert (name, file, revision) == ("owner/name", "config.json", "v1")
        if not reached:
            raise OSError("no such file there")
        return "/cache/models--owner--name/snapshots/c0ffee/config.json"

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    monkeypatch.setattr(hub, "open_config", lambda _: SimpleNamespace(_commit_hash="from the library"))
    found = Source("owner/name", "v1", "hf:owner/name", trusted=False).fingerprint()
    assert found == f"{'c0ffee' if reached else 'from the library'} owner/name"
