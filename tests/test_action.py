"""The GitHub Action: its last step is run as GitHub would run it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.cli.small_tests import write_test, write_vectors

STEP = Path(__file__).resolve().parents[1] / "action.yml"


@pytest.mark.parametrize(("lean", "tests", "code"), [(0.0, "own.json", 0), (2.0, "own.json", 3), (0.0, "", 0)])
def test_the_action_fails_where_the_gate_does(lean: float, tests: str, code: int, tmp_path: Path) -> None:
    write_test(tmp_path / "own.json", 16)
    write_vectors(tmp_path / "old.txt", 16, frequent=True)
    write_vectors(tmp_path / "new.txt", 16, lean, frequent=True)
    (tmp_path / "biassay").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m biassay "$@"\n')
    (tmp_path / "biassay").chmod(0o755)
    script = textwrap.dedent(STEP.read_text().split("      run: |\n")[1])
    given = {"OLD": "old=vectors:old.txt", "NEW": "new=vectors:new.txt", "TESTS": tests, "FAIL_IF": "inconclusive"}
    given |= {"MARGIN": "0.2", "ALPHA": "0.05", "MIN_POWER": "0.2", "JUNIT": "gate.xml", "MARKDOWN": "gate.md"}
    if not tests:  # those of the run
        subprocess.run(
            ["./biassay", "run", given["OLD"], "--tests", "own.json", "--out", "run", "--quiet"],
            cwd=tmp_path,
            check=True,
        )
        given["OLD"] = "run"
    place = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    place["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **given, **place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "gate.md").read_text()
    assert (tmp_path / "gate.xml").is_file()
