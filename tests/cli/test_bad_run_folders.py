"""Folders that hold something else or a damaged run are refused and left as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.results.made_runs import stopped

import biassay
from biassay.runs.run import Run

from .conftest import Cli


def test_a_folder_that_holds_another_run(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    assert cli("run", "glove", "--tests", "weat6", "--out", out)[0] == 0
    before = {path.name: path.read_bytes() for path in out.rglob("*.*")}
    code, stdout, stderr = cli("run", "glove", "--tests", "weat7", "--out", out)
    assert (code, stdout) == (2, "")
    assert f"{out} holds a finished run; choose another folder, or show the run with: biassay report {out}" in stderr
    assert {path.name: path.read_bytes() for path in out.rglob("*.*")} == before


def test_a_folder_that_holds_an_interrupted_run_says_resume(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    cli("run", "glove", "--tests", "weat6", "--out", out)
    run = Run.load(out)
    stopped(run, 1).save(out)
    before = {path.name: path.read_bytes() for path in out.rglob("*.*")}
    code, stdout, stderr = cli("run", "glove", "--tests", "weat7", "--out", out)
    assert (code, stdout) == (2, "")
    assert f"{out} holds an interrupted run" in stderr
    assert f"biassay resume {out}" in stderr
    assert {path.name: path.read_bytes() for path in out.rglob("*.*")} == before


def test_an_output_path_that_is_a_file_or_under_one(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        code, _, stderr = cli("run", "glove", "--tests", "weat6", "--out", out)
        assert code == 2
        assert str(out) in stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_resume_of_a_folder_without_a_run(tmp_path: Path, cli: Cli) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        code, _, stderr = cli("run", "--resume", folder)
        assert code == 2
        assert str(folder) in stderr


@pytest.mark.parametrize(
    "more",
    [
        *(
            ("--tests", "weat6"),
            ("--out", "x"),
            ("--protocol", "exact"),
            ("--alternative", "two-sided"),
            ("--alpha", 0.01),
        ),
        *(("--max-unknown", 0.2), ("--seed", 0)),
    ],
)
def test_a_setting_beside_resume_is_refused(more: tuple[object, ...], tmp_path: Path, cli: Cli) -> None:
    """Also one that is the default: the run may have been begun with another."""
    out = tmp_path / "run"
    run = biassay.run("glove", "weat6", alpha=0.3, protocol="may2019", seed=4)
    stopped(run).save(out)
    before = {path.name: path.read_bytes() for path in out.rglob("*.*")}
    code, stdout, stderr = cli("run", "--resume", out, *more)
    assert (code, stdout) == (2, "")
    assert " ".join(stderr.split()).endswith(f"of the run; leave out {more[0]}")
    assert {path.name: path.read_bytes() for path in out.rglob("*.*")} == before


@pytest.mark.parametrize("name", ["results.json", "arrays/0.npz", "manifest.json"])
@pytest.mark.parametrize("damaged", [True, False])
def test_a_file_that_is_damaged_or_missing_is_named_with_what_helps(
    name: str, damaged: bool, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "run"
    biassay.run("glove", "weat6", out=out)
    if damaged:
        (out / name).write_bytes((out / name).read_bytes()[:-20])
    else:
        (out / name).unlink()
    code, _, stderr = cli("report", out, "--out", tmp_path / "page.html")
    assert code == 2
    assert f"{out / name}: " in stderr or not damaged
    assert "Errno" not in stderr
    assert "make the run again" in stderr or (name, damaged) == ("manifest.json", False)
