"""``biassay run --contexts`` that goes on: with ``--resume``, and with vectors that were kept."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.runs import fetch
from biassay.runs.run import Run

from .ceat_tests import EACH
from .conftest import Cli

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("small_shards")]


@pytest.mark.parametrize("how", ["interrupt", "disk"])
def test_an_interrupted_run_says_how_to_go_on(
    ceat: Cli, cli: Cli, model: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    out, cache = tmp_path / "run", tmp_path / "cache"
    whole = json.loads(ceat(model, other, "--json", "--cache", tmp_path / "elsewhere")[1])["results"]
    write, written = fetch.ShardStore.write, []

    def breaking(self: Any, number: int, vectors: Any) -> None:
        written.append(number)
        if len(written) == 32 + 22:  # in the second model: each has two shards a word
            raise KeyboardInterrupt if how == "interrupt" else OSError(28, "No space left on device", "store")
        write(self, number, vectors)

    with monkeypatch.context() as patched:
        patched.setattr(fetch.ShardStore, "write", breaking)
        code, stdout, stderr = ceat(model, other, "--out", out, "--cache", cache)
    assert (code, stdout) == (1, "")
    *_, what, then = stderr.splitlines()
    assert what == ("interrupted" if how == "interrupt" else "error: store: No space left on device")
    assert then == f"to continue: biassay resume {out} --cache {cache}"
    assert Run.load(out).manifest.status == "running"
    code, _, stderr = ceat(model, other, "--out", out)
    assert code == 2
    assert f"biassay resume {out}" in stderr
    code, stdout, stderr = cli(*then.partition("biassay ")[2].split(), "--json")
    assert (code, json.loads(stdout)["results"]) == (0, whole)
    left = 128 - 10 * EACH - 5  # ten words were there, and one shard of the next
    assert f"{Path(other).name}: encoding: {left} of {left} contexts" in stderr
    assert model not in stderr
    assert (out / "report.html").is_file()


def interrupted(patch: pytest.MonkeyPatch, after: int, call: Callable[[], tuple[int, str, str]]) -> str:
    """What a command says that is interrupted after some shards."""
    write = fetch.ShardStore.write
    written: list[int] = []

    def breaking(self: Any, number: int, vectors: Any) -> None:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(number)
        write(self, number, vectors)

    with patch.context() as patched:
        patched.setattr(fetch.ShardStore, "write", breaking)
        code, stdout, stderr = call()
    assert (code, stdout, len(written)) == (1, "", after)
    return stderr


def test_a_run_goes_on_with_its_own_folder_of_vectors(
    cli: Cli, ceat: Cli, model: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command that is named, and from another folder than the one where all paths were relative."""
    whole = json.loads(ceat(model, "--json", "--cache", tmp_path / "elsewhere")[1])["results"]
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("c.parquet").write_bytes((place / "c.parquet").read_bytes())
    args = ("--contexts", "c.parquet", "--n-samples", 60, "--out", "run", "--vectors", "kept")
    interrupted(monkeypatch, 20, lambda: cli("run", model, *args))
    out, (vectors,) = tmp_path / "here" / "run", (tmp_path / "here" / "kept").iterdir()
    settings = Run.load(out).manifest.settings
    assert (settings.vectors, settings.contexts) == (str(vectors.parent), str(tmp_path / "here" / "c.parquet"))
    before = {path.name: path.stat().st_mtime_ns for path in vectors.glob("*.npy")}
    assert len(before) == 20
    monkeypatch.chdir(tmp_path / "there")
    code, _, stderr = cli("resume", out)
    assert code == 2
    again = shlex.split(stderr.partition("biassay ")[2])
    assert again == ["resume", str(out), "--vectors", str(vectors.parent)]
    code, stdout, stderr = cli(*again, "--cache", tmp_path / "cache", "--json")
    assert (code, json.loads(stdout)["results"]) == (0, whole)
    left = 128 - 10 * EACH
    assert f"{Path(model).name}: encoding: {left} of {left} contexts" in stderr
    after = {path.name: path.stat().st_mtime_ns for path in vectors.glob("*.npy")}
    assert len(after) == 32
    assert before.items() <= after.items()
    assert not (tmp_path / "cache" / "contexts").exists()
    assert list((tmp_path / "there").iterdir()) == []


def test_another_folder_of_vectors_can_be_given_with_resume(
    ceat: Cli, cli: Cli, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, vectors, moved = (tmp_path / name for name in ("run", "vectors", "moved"))
    interrupted(monkeypatch, 20, lambda: ceat(model, "--out", out, "--vectors", vectors))
    vectors.rename(moved)
    code, _, stderr = cli("run", "--resume", out, "--vectors", moved)
    assert code == 0
    assert f"{Path(model).name}: encoding: 48 of 48 contexts" in stderr
    assert not vectors.exists()


def test_a_finished_run_is_shown_again(ceat: Cli, cli: Cli, model: str, tmp_path: Path) -> None:
    _, stdout, _ = ceat(model, "--out", tmp_path / "run")
    code, again, stderr = cli("run", "--resume", tmp_path / "run")
    assert (code, again, stderr) == (0, stdout, "")
    biassay.run("glove", "weat6", out=tmp_path / "weat")
    shown = [cli(*door, tmp_path / "weat") for door in (("run", "--resume"), ("resume",))]
    assert [code for code, _, _ in shown] == [0, 0]
    assert "weat6" in shown[0][1]
    assert len(set(shown)) == 1
