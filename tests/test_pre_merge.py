"""The example of a gate before a merge: two small models, one of them made biased."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.small_tests import write_test, write_vectors

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "pre-merge" / "gate.sh"


@pytest.mark.parametrize(("lean", "code", "outcome"), [(0.0, 0, "no worse"), (2.0, 3, "worse")])
def test_a_biased_model_is_not_merged(lean: float, code: int, outcome: str, tmp_path: Path) -> None:
    own = write_test(tmp_path / "own.json", 16)
    write_vectors(tmp_path / "old.txt", 16, frequent=True)
    write_vectors(tmp_path / "new.txt", 16, lean, frequent=True)
    (tmp_path / "biassay").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m biassay "$@"\n')
    (tmp_path / "biassay").chmod(0o755)
    place = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        ["sh", str(SCRIPT), "old=vectors:old.txt", "new=vectors:new.txt", own.name],
        cwd=tmp_path,
        env={**os.environ, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    (row,) = [line for line in (tmp_path / "gate.md").read_text().splitlines() if line.startswith("| own")]
    assert outcome in [cell.strip() for cell in row.split("|")]
    assert (tmp_path / "gate.xml").is_file()
    assert ("Power:" in done.stdout) == (outcome == "worse")  # of the same model there is nothing to catch
