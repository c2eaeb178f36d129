"""``biassay cache`` lists what runs have cached, and ``biassay cache prune`` removes no more than it was asked to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from biassay.cache.inventory import list_cache
from biassay.cache_usage import CACHE_TAG

from .conftest import Cli

pytestmark = pytest.mark.usefixtures("measured_once")

DAY = 24 * 3600
HOLD = """
import sys, time
from pathlib import Path
from biassay.cache_usage import lock_cache
with lock_cache(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def vectors(lines: list[str], tmp_path: Path) -> str:
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(lines))
    return f"vectors:{path}"


@pytest.fixture
def filled(cli: Cli, vectors: str, test_file: Path, tmp_path: Path) -> Path:
    """A cache of two models: embeddings and measurements."""
    cache = tmp_path / "cache"
    for model, tests in (("glove", "weat6"), (vectors, test_file)):
        assert cli("run", model, "--tests", tests, "--cache", cache, "--quiet")[0] == 0
    return cache


def age(cache: Path, days: float, names: str = "*") -> None:
    """Let everything in the cache look as if it was last used some days ago."""
    then = time.time() - days * DAY
    for path in cache.rglob(names):
        if not path.is_symlink():
            os.utime(path, (then, then))


def read(cli: Cli, cache: Path, *options: object) -> dict[str, Any]:
    code, stdout, stderr = cli("cache", *options, "--cache", cache, "--json")
    assert code == 0, stderr
    content: dict[str, Any] = json.loads(stdout)
    return content


def rows(content: dict[str, Any], part: str = "entries") -> set[tuple[str, str]]:
    return {(entry["model"], entry["kind"]) for entry in content[part]}


def files_below(folder: Path) -> set[Path]:
    found = {path for path in folder.rglob("*") if path.is_file() or path.is_symlink()}
    return found - {folder / CACHE_TAG}


def test_a_cache_is_listed_by_model(cli: Cli, filled: Path, vectors: str) -> None:
    content = read(cli, filled)
    mine = Path(vectors).name
    embeddings = {entry["model"]: entry for entry in content["entries"] if entry["kind"] == "embeddings"}
    assert {name.rpartition("/")[2].rpartition(":")[2] for name in embeddings} == {"glove", mine}
    assert {model for model, kind in rows(content) if kind == "measurements"} == set(embeddings)
    descriptions = sum(path.stat().st_size for path in filled.glob("*/model.json"))
    assert content["bytes"] + descriptions == sum(path.stat().st_size for path in files_below(filled))
    code, stdout, _ = cli("cache", "--cache", filled)
    assert code == 0
    header, *lines = stdout.splitlines()
    assert header.split() == ["model", "kind", "size", "last", "used"]
    assert [line.split()[:2] for line in lines if line.startswith("glove ")] == [
        ["glove", "embeddings"],
        ["glove", "measurements"],
    ]
    assert str(filled) in lines[-1]


def test_prune_removes_a_model_and_no_other(cli: Cli, filled: Path) -> None:
    before = rows(read(cli, filled))
    dry = read(cli, filled, "prune", "--model", "glove", "--dry-run")
    assert rows(dry, "would_remove") == {("glove", "embeddings"), ("glove", "measurements")}
    assert rows(read(cli, filled)) == before
    done = read(cli, filled, "prune", "--model", "glove", "--yes")
    assert rows(done, "removed") == rows(dry, "would_remove")
    assert done["bytes"] == dry["bytes"]
    assert rows(read(cli, filled)) == {row for row in before if row[0] != "glove"}
    assert cli("run", "glove", "--tests", "weat6", "--cache", filled, "--quiet")[0] == 0
    assert rows(read(cli, filled)) == before


def test_prune_by_kind_and_age(cli: Cli, filled: Path) -> None:
    age(filled, 40)
    assert cli("run", "glove", "--tests", "weat6", "--cache", filled, "--quiet")[0] == 0
    done = read(cli, filled, "prune", "--kind", "measurements", "--older-than", "30d", "--yes")
    ((removed, kind),) = rows(done, "removed")
    assert (removed != "glove", kind) == (True, "measurements")
    assert (removed, "embeddings") in rows(read(cli, filled))


def test_prune_to_a_size_removes_what_was_not_used_for_longest(cli: Cli, filled: Path) -> None:
    entries = read(cli, filled)["entries"]
    for days, entry in enumerate(entries, start=1):
        age(Path(entry["folder"]), days)
    *kept, second, first = entries
    limit = sum(entry["bytes"] for entry in kept) + second["bytes"] - 1
    done = read(cli, filled, "prune", "--max-size", f"{limit}B", "--yes")
    assert [entry["folder"] for entry in done["removed"]] == [first["folder"], second["folder"]]
    assert read(cli, filled)["bytes"] <= limit
    assert read(cli, filled, "prune", "--max-size", "5GB", "--yes")["removed"] == []


def test_prune_asks_for_consent(cli: Cli, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files_below(filled)
    code, _, stderr = cli("cache", "prune", "--model", "glove", "--cache", filled)
    assert code == 2
    assert "--yes" in stderr
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda _: True})())
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    assert cli("cache", "prune", "--model", "glove", "--cache", filled)[0] == 1
    assert files_below(filled) == before
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "y")
    assert cli("cache", "prune", "--model", "glove", "--cache", filled)[0] == 0
    assert files_below(filled) < before


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ((), "--older-than"),
        (("--all", "--kind", "models"), "--all removes everything"),
        (("--model", "glvoe"), "did you mean 'glove'"),
        (("--older-than", "soon"), "30d"),
        (("--max-size", "-5"), "5GB"),
        (("--kind", "vectors"), "embeddings"),
    ],
)
def test_prune_explains_wrong_options(cli: Cli, filled: Path, options: tuple[str, ...], hint: str) -> None:
    before = files_below(filled)
    code, _, stderr = cli("cache", "prune", *options, "--yes", "--cache", filled)
    assert code == 2
    assert hint in " ".join(stderr.split())
    assert files_below(filled) == before


# Folders that are not caches, foreign files, links


def foreign_home(folder: Path) -> Path:
    """A folder that looks like a cache by names alone."""
    for name in ("digests", "gguf", "models", "measured", "contexts", "a" * 32):
        (folder / name).mkdir(parents=True)
    (folder / "digests" / ("0" * 32)).write_text("mine")
    (folder / "models" / f"{'0' * 32}.json").write_text("{}")
    (folder / ("a" * 32) / f"{'0' * 32}.npz").write_bytes(b"mine")
    return folder


def test_a_folder_that_is_not_a_cache_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    folder = foreign_home(tmp_path / "home")
    before = files_below(folder)
    for arguments in (("cache",), ("cache", "prune", "--all", "--yes")):
        code, stdout, stderr = cli(*arguments, "--cache", folder)
        assert (code, stdout) == (2, "")
        assert "not a biassay cache" in stderr
    assert files_below(folder) == before
    (folder / "file").write_text("")
    assert cli("cache", "--cache", folder / "file")[0] == 2
    assert cli("cache", "--cache", tmp_path / "none")[:2] == (0, f"0 B in {tmp_path / 'none'}\n")
    assert not (tmp_path / "none").exists()


def test_foreign_files_and_links_survive(cli: Cli, filled: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "arrays").mkdir(parents=True)
    for name in ("thesis.tex", f"{'0' * 32}.npz", "manifest.json", "arrays/0.npz"):
        (outside / name).write_text("mine")
    model = next(filled.glob("*/model.json")).parent
    measured = next((filled / "measured").iterdir())
    mine = [filled / "thesis.tex", model / "thesis.tex", measured / "thesis.tex", filled / "more" / "thesis.tex"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    links = [filled / ("b" * 32), filled / "measured" / ("c" * 32), filled / "contexts", model / f"{'d' * 32}.npz"]
    for link in links[:3]:
        link.symlink_to(outside)
    links[3].symlink_to(outside / "thesis.tex")
    age(filled, 40)
    assert read(cli, filled)["other_files"] == len(mine) + len(links)
    read(cli, filled, "prune", "--all", "--yes")
    assert files_below(outside) == {outside / name for name in ("thesis.tex", f"{'0' * 32}.npz", "manifest.json")} | {
        outside / "arrays" / "0.npz"
    }
    assert all(path.read_text() == "mine" for path in mine)
    assert all(link.is_symlink() for link in links)
    left = files_below(filled) - set(mine) - set(links)
    assert {path.name for path in left} <= {"model.json"}


# Caches in use, damaged caches


def test_what_a_run_in_progress_uses_is_kept(cli: Cli, filled: Path) -> None:
    age(filled, 40)
    run = subprocess.Popen([sys.executable, "-c", HOLD, str(filled)], stdout=subprocess.PIPE)
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == b"locked\n"
        assert cli("run", "glove", "--tests", "weat6", "--cache", filled, "--quiet")[0] == 0
        done = read(cli, filled, "prune", "--all", "--yes")
        assert rows(done, "in_use") == {("glove", "embeddings"), ("glove", "measurements")}
        assert "glove" not in {model for model, _ in rows(done, "removed")}
        assert len(done["removed"]) == 2
    finally:
        run.kill()
        run.communicate()
    assert rows(read(cli, filled, "prune", "--all", "--yes"), "removed") == rows(done, "in_use")
    assert not files_below(filled)


def test_damaged_files_are_leftovers(cli: Cli, filled: Path) -> None:
    model = next(path.parent for path in filled.glob("*/model.json") if "glove" in path.read_text())
    batch = next(model.glob("*.npz"))
    batch.write_bytes(batch.read_bytes()[:1000])
    (model / ".x.npz.123.tmp").write_bytes(b"half")
    manifest = next(path for path in filled.glob("measured/*/manifest.json") if '"glove"' in path.read_text())
    manifest.write_text("{")
    age(filled, 2)
    found = {(entry["model"], entry["kind"]) for entry in read(cli, filled)["entries"]}
    assert ("glove", "leftovers") in found
    assert ("(unknown)", "leftovers") in found
    (model / "model.json").write_bytes(b"\xff")
    done = read(cli, filled, "prune", "--kind", "leftovers", "--yes")
    assert len(done["removed"]) == 3
    assert not batch.exists()
    assert not manifest.exists()
    assert cli("run", "glove", "--tests", "weat6", "--cache", filled, "--quiet")[0] == 0


def test_files_that_cannot_be_removed_are_reported(cli: Cli, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:  # noqa: ARG001
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    code, _, stderr = cli("cache", "prune", "--all", "--yes", "--cache", filled)
    assert code == 1
    assert "cannot be removed: Permission denied; 3 more" in stderr


@pytest.mark.extras
@pytest.mark.usefixtures("small_shards")
def test_vectors_in_contexts_are_listed_and_used(ceat: Cli, cli: Cli, model: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert ceat(model, "--cache", cache, "--quiet")[0] == 0
    age(cache, 40)
    assert ceat(model, "--cache", cache, "--quiet")[0] == 0
    entries = [entry for entry in list_cache(cache).entries if entry.folder.parent.name == "contexts"]
    assert [entry.kind for entry in entries] == ["embeddings"]
    assert entries[0].last_used > time.time() - DAY
    assert entries[0].model.startswith("hf:")
    read(cli, cache, "prune", "--model", "hf:*", "--yes")
    assert not files_below(cache)


def test_remote_caches_are_not_listed(cli: Cli) -> None:
    for url in ("s3://bucket/dir", "hf://datasets/a/b"):
        code, _, stderr = cli("cache", "--cache", url)
        assert code == 2
        assert "on this machine only" in stderr
