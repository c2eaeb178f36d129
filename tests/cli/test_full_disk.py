"""A disk that is full at any moment leaves nothing half-written and a run that can go on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biassay.runs.run import Run

from .conftest import Cli


class Full:
    """The real function, until the disk is full."""

    def __init__(self, call: int, real: Callable[..., Any]) -> None:
        self.left, self.real = call, real

    def __call__(self, *args: Any) -> Any:
        self.left -= 1
        if self.left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.real(*args)


# The manifest, 3 of the store, 3 of what was measured, 4 of the run, the report, 2 at the end. Cached vectors do not
# wait for the disk.
FILES = {"fsync": 13, "replace": 14}


@pytest.mark.slow
@pytest.mark.usefixtures("measured_once")
@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("call", range(1, 16, 2))
def test_a_full_disk_at_any_moment(
    function: str, call: int, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    out = tmp_path / "run"
    full = Full(call, getattr(os, function))
    with monkeypatch.context() as patch:
        patch.setattr(os, function, full)
        code, stdout, stderr = cli("run", "glove", "--tests", "weat6", "--out", out)
    if full.left > 0:
        assert code == 0
        assert call > FILES[function]
        return
    assert (code, stdout) == (1, "")
    assert "No space left on device" in stderr
    assert not [path for folder in (out, own_cache) for path in folder.rglob(".*")]
    assert not [path for path in out.rglob("*") if path.stat().st_size == 0]
    if (out / "manifest.json").exists():
        assert Run.load(out).manifest.status == "running"
        assert f"biassay resume {out}" in " ".join(stderr.split())
        assert cli("run", "--resume", out)[0] == 0
        assert Run.load(out).manifest.status == "complete"


def test_a_disk_that_is_full_from_the_start_does_not_block_the_folder(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    for call in (1, 2, 3):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", Full(call, os.fsync))
            assert cli("run", "glove", "--tests", "weat6", "--out", out)[0] == 1
        assert not out.exists() or not list(out.iterdir())
    assert cli("run", "glove", "--tests", "weat6", "--out", out)[0] == 0
