"""The GitHub Action: its last step is run as GitHub would run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.cli.small_tests import write_test, write_vectors

STEP = Path(__file__).resolve().parents[1] / "action.yml"


WORKFLOWS = [STEP, *STEP.parent.glob(".github/workflows/*.yml")]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text())
    assert used
    for name, comment in used:
        assert name.startswith("./") or (re.search(r"@[0-9a-f]{40}$", name) and re.match(r" # v\d", comment)), name


def test_images_are_pinned_by_digest() -> None:
    files = [STEP.with_name("Dockerfile"), STEP.with_name("compose.yaml"), *WORKFLOWS]
    images = [name for file in files for name in re.findall(r"(?:^FROM|^ +image:) (\S+)", file.read_text(), re.M)]
    assert len(images) == 6
    assert [name for name in images if not re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", name)] == ["biassay"]


@pytest.mark.parametrize(
    "name", ["OLD", "NEW", "TESTS", "FAIL_IF", "MARGIN", "ALPHA", "MIN_POWER", "JUNIT", "MARKDOWN"]
)
@pytest.mark.parametrize("value", ["--help", "-h", "--json"])
def test_a_value_is_never_taken_for_an_option(name: str, value: str, tmp_path: Path) -> None:
    done = run_step(1, tmp_path, {name: value})
    assert "Usage: biassay compare [OPTIONS]" not in done.stdout
    if name in ("JUNIT", "MARKDOWN"):
        assert (tmp_path / value).is_file()
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 2
        assert value in done.stderr


@pytest.mark.parametrize(("extras", "code"), [("", 0), ("hf,st", 0), ("hf] --index-url=x", 2), ("--help", 2)])
def test_biassay_is_installed_with_constraints(extras: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    done = run_script(script(0), tmp_path, {"PLACE": "/action", "EXTRAS": extras})
    assert done.returncode == code
    if code == 0:
        place = f"/action[{extras}]" if extras else "/action"
        assert done.stdout.split()[-3:] == ["--constraint", "/action/constraints.txt", place]


def script(number: int) -> str:
    steps = STEP.read_text().split("      run: |\n")[1:]
    return textwrap.dedent(steps[number].partition("    - name:")[0])


def run_script(text: str, folder: Path, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    place = {"PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    place["XDG_CACHE_HOME"] = str(folder / "cache")
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, **given, **place},
        capture_output=True,
        text=True,
        check=False,
    )


def run_step(number: int, folder: Path, changed: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step of the action on two models that answer alike."""
    write_test(folder / "own.json", 16)
    write_vectors(folder / "old.txt", 16, frequent=True)
    write_vectors(folder / "new.txt", 16, frequent=True)
    (folder / "biassay").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m biassay "$@"\n')
    (folder / "biassay").chmod(0o755)
    given = {"OLD": "old=vectors:old.txt", "NEW": "new=vectors:new.txt", "TESTS": "own.json", "FAIL_IF": "inconclusive"}
    given |= {"MARGIN": "0.2", "ALPHA": "0.05", "MIN_POWER": "0.2", "JUNIT": "gate.xml", "MARKDOWN": "gate.md"}
    return run_script(script(number), folder, {**given, **changed})


@pytest.mark.parametrize(("lean", "tests", "code"), [(0.0, "own.json", 0), (2.0, "own.json", 3), (0.0, "", 0)])
def test_the_action_fails_where_the_gate_does(lean: float, tests: str, code: int, tmp_path: Path) -> None:
    write_test(tmp_path / "own.json", 16)
    write_vectors(tmp_path / "old.txt", 16, frequent=True)
    write_vectors(tmp_path / "new.txt", 16, lean, frequent=True)
    (tmp_path / "biassay").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m biassay "$@"\n')
    (tmp_path / "biassay").chmod(0o755)
    given = {"OLD": "old=vectors:old.txt", "NEW": "new=vectors:new.txt", "TESTS": tests, "FAIL_IF": "inconclusive"}
    given |= {"MARGIN": "0.2", "ALPHA": "0.05", "MIN_POWER": "0.2", "JUNIT": "gate.xml", "MARKDOWN": "gate.md"}
    if not tests:  # those of the run
        subprocess.run(
            ["./biassay", "run", given["OLD"], "--tests", "own.json", "--out", "run", "--quiet"],
            cwd=tmp_path,
            check=True,
        )
        given["OLD"] = "run"
    done = run_script(script(1), tmp_path, given)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "gate.md").read_text()
    assert (tmp_path / "gate.xml").is_file()
