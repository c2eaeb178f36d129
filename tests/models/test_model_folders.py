"""What makes a folder the model it is: the content of its parts, and neither its place nor its dates."""

from __future__ import annotations

import hashlib
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
from biassay.models.transformers import hub, model_files
from biassay.models.transformers.hub import CheckpointRef, find_checkpoint

PARTS = [
    *("config.json", "model.safetensors", "vocab.txt", "bpe.codes", "modules.json", "modeling_own.py", "own/part.py"),
    *("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"),
    *("parts/3_Router/deep/model.safetensors", "checkpoint-5/optimizer.pt", "own/__pycache__/part.py"),
    *("additional_chat_templates/tool_use.jinja", ".hidden/weights.bin", ".adapter.safetensors", "LICENSE.py"),
    *("deep/er/a.safetensors", ".git/b.safetensors", ".cache/huggingface/c.bin", "shard.md"),  # an index names them
]
INDEX = {
    "model.safetensors.index.json": ["deep/er/a.safetensors", ".git/b.safetensors", "shard.md"],
    "checkpoint-5/pytorch_model.bin.index.fp16.json": ["optimizer.pt"],
    "pytorch_model.bin.index.json": [".cache/huggingface/c.bin", "missing.bin"],
}


def revision(folder: Path, settings: str = "") -> str:
    return find_checkpoint(parse_model(f"st:{folder}{settings}")).fingerprint()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of a sentence-transformers model with code of its own; what they hold does not matter here."""
    place = tmp_path / "model"
    modules = [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}, {"path": "parts/3_Router"}]
    for name in (*PARTS, "README.md"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(json.dumps(modules) if name == "modules.json" else name)
    for name, shards in INDEX.items():
        (place / name).write_text(json.dumps({"weight_map": dict(enumerate(shards))}))
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


def test_weights_beside_a_run_are_part_of_the_model(folder: Path) -> None:
    _with_more(folder)
    before = revision(folder)
    (folder / "run" / "weights.bin").write_text("weights")
    assert revision(folder) != before


@pytest.mark.parametrize("modules", ["", "{", "[1]", '[{"path": 3}]', '[{"path": ""}, 1]'])
def test_a_list_of_modules_that_is_none_leads_nowhere(folder: Path, modules: str) -> None:
    (folder / "modules.json").write_text(modules)
    (folder.parent / "stranger.bin").write_text("not of the model")
    before = revision(folder)
    (folder.parent / "stranger.bin").write_text("changed")
    assert revision(folder) == before


@pytest.mark.parametrize("path", ["/", "../stranger", "1_Pooling/../../stranger", "C:\\stranger", "..\\stranger"])
@pytest.mark.parametrize("list_name", ["modules.json", "2_Dense/model.safetensors.index.json", "config.json"])
def test_a_file_outside_of_the_folder_is_refused(folder: Path, list_name: str, path: str) -> None:
    content = {"modules.json": [{"path": ""}, {"path": path}], "config.json": {"transformers_weights": path}}
    (folder / list_name).write_text(json.dumps(content.get(list_name, {"weight_map": {"a": "x.bin", "b": path}})))
    with pytest.raises(ModelError) as refused:
        revision(folder)
    assert repr(path) in str(refused.value)
    assert list_name in str(refused.value)


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


def test_a_link_to_a_folder_elsewhere_is_refused(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    (folder / "data").symlink_to(folder.parent / "elsewhere")
    with pytest.raises(ModelError, match="data is a link to a folder outside of the model"):
        revision(folder)


def test_a_file_that_may_not_be_read_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, digest = revision(folder), model_files.content_digest

    def refuse(path: Path) -> str:
        if path.name == "optimizer.pt":
            raise PermissionError
        return digest(path)

    monkeypatch.setattr(model_files, "content_digest", refuse)
    assert revision(folder) != before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_that_an_index_names_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "missing.bin")
    with pytest.raises(ModelError, match=r"missing\.bin.*not a file"):
        revision(folder)


def test_trust_is_part_of_the_identity(folder: Path) -> None:
    assert revision(folder) == revision(folder, "?trust_remote_code=false")
    assert revision(folder) != revision(folder, "?trust_remote_code=true")


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


def test_a_folder_is_called_as_the_user_calls_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "minilm").symlink_to(folder)
    monkeypatch.chdir(folder.parent)
    assert find_checkpoint(parse_model("st:./minilm")).name == f"st:{folder.parent.name}/minilm"
    monkeypatch.chdir(folder)
    assert find_checkpoint(parse_model("st:.")).name == f"st:{folder.parent.name}/model"


def test_files_that_change_while_a_model_is_loaded_are_an_error(folder: Path) -> None:
    source = find_checkpoint(parse_model(f"st:{folder}"))
    source.fingerprint()
    source.check_unchanged()
    (folder / "model.safetensors").write_text("another")
    with pytest.raises(ModelError, match=r"model\.safetensors changed while the model was loaded"):
        source.check_unchanged()


def test_a_reader_of_gguf_files_without_a_bar_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace()
    monkeypatch.setattr(hub, "import_module", lambda _: module)
    with hub._hide_progress_bar():
        assert vars(module) == {}
    assert vars(module) == {}


COMMIT = "c0ffee" * 6 + "c0ff"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in the cache of the hub, as it is laid out there; gives its snapshot."""
    cache = tmp_path / "models--owner--name"
    snapshot = cache / "snapshots" / COMMIT
    (snapshot / "1_Pooling").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "1_Pooling/config.json", "own.py"):
        add_blob(snapshot / name, f"{name} ".encode() * 9)

    def download(name: str, file: str, revision: str) -> str:
        assert (name, file, revision) == ("owner/name", "config.json", "v1")
        return str(snapshot / file)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    return snapshot


def add_blob(path: Path, content: bytes) -> Path:
    git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    name = hashlib.sha256(content).hexdigest() if path.suffix == ".safetensors" else git
    blobs = next(parent for parent in path.parents if parent.name.startswith("models--")) / "blobs"
    blobs.mkdir(exist_ok=True)
    (blobs / name).write_bytes(content)
    path.unlink(missing_ok=True)
    path.symlink_to(os.path.relpath(blobs / name, path.parent))
    return blobs / name


def hub_revision(*, trusted: bool = False) -> str:
    return CheckpointRef("owner/name", "v1", "hf:owner/name", trusted=trusted).fingerprint()


@pytest.mark.usefixtures("hub_cache")
def test_an_untouched_hub_model_is_known_by_its_commit() -> None:
    assert hub_revision() == f"{COMMIT} owner/name"
    assert CheckpointRef("owner/name", "v1", "hf:owner/name", trusted=False).options["revision"] == COMMIT


def test_files_downloaded_later_change_nothing(hub_cache: Path) -> None:
    before = hub_revision()
    add_blob(hub_cache / "vocab.txt", b"words")
    assert hub_revision() == before


def _edit_blob(path: Path) -> None:
    content, status = path.read_bytes(), path.stat()
    path.write_bytes(content[:-1] + b"?")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_over(path: Path) -> None:
    target, status = Path(os.path.realpath(path)), path.stat()
    other = target.with_name("other")
    other.write_bytes(target.read_bytes()[:-1] + b"?")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, target)


def _relink(path: Path) -> None:
    add_blob(path, b"a blob of another commit, with its right name")


def _unlink(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + b"?")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "1_Pooling/config.json"])
@pytest.mark.parametrize("edit", [_edit_blob, _copy_over, _relink, _unlink])
def test_a_snapshot_edited_in_place_is_another_model(hub_cache: Path, edit: Callable[[Path], None], name: str) -> None:
    before = hub_revision()
    edit(hub_cache / name)
    after = hub_revision()
    assert after != before
    assert after.startswith(f"{COMMIT} owner/name changed ")
    assert hub_revision() == after


def test_code_edited_in_a_snapshot_is_refused_where_it_would_run(hub_cache: Path) -> None:
    assert hub_revision(trusted=True) == f"{COMMIT} owner/name trust_remote_code"
    _edit_blob(hub_cache / "own.py")
    with pytest.raises(ModelError, match=r"own\.py differs from the commit of owner/name"):
        hub_revision(trusted=True)


def test_a_hub_model_without_a_commit_is_never_known_by_its_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_: str, revision: str) -> str:
        raise OSError(f"no such file at {revision}")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))
    monkeypatch.setattr(hub, "open_config", lambda _: SimpleNamespace(_commit_hash=None))
    with pytest.raises(ModelError, match=r"no config\.json"):
        hub_revision()
