"""Resumed ``biassay run --contexts``: with ``--resume``, and with cached vectors."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biassay.cache.context_vectors import ShardStore
from biassay.runs.run import Run

from .ceat_tests import EACH
from .conftest import Cli

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("small_shards")]


def interrupted(patch: pytest.MonkeyPatch, after: int, call: Callable[[], tuple[int, str, str]]) -> str:
    """Return the output of a command that is interrupted after some shards."""
    write = ShardStore.write
    written: list[int] = []

    def breaking(self: Any, number: int, vectors: Any) -> None:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(number)
        write(self, number, vectors)

    with patch.context() as patched:
        patched.setattr(ShardStore, "write", breaking)
        code, stdout, stderr = call()
    assert (code, stdout, len(written)) == (1, "", after)
    return stderr


def test_a_run_goes_on_with_its_own_folder_of_vectors(
    cli: Cli, ceat: Cli, model: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resume by the suggested command, from another folder although all paths were relative."""
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
