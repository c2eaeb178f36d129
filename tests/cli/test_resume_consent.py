"""Resuming an untrusted run folder: no code and no uploads without the user's consent."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.results.made_runs import contexts as context_record
from tests.results.made_runs import run_of, stopped

import biassay
from biassay.results.run_data import ModelRecord
from biassay.runs.run import Run

from .conftest import Cli
from .small_tests import write_test, write_vectors

BAIT = "from pathlib import Path\nPath('ran').touch()\nclass Bait:\n    def encode(self, texts):\n        return []\n"
ELSEWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def bait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a module that leaves a trace when it is imported."""
    (tmp_path / "bait_module.py").write_text(BAIT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-user")
    return tmp_path


def planted(folder: Path, *texts: str, over_contexts: bool = False, **settings: Any) -> Path:
    """Write an untrusted run that was interrupted before its first model."""
    models = tuple(ModelRecord(text, text.partition("?")[0], "", None, {}) for text in texts)
    contexts = context_record() if over_contexts else None
    made = run_of("planted", [], settings=settings, contexts=contexts, status="running", finished=None, models=models)
    return made.save(folder)


@pytest.mark.parametrize("over_contexts", [False, True])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("python:bait_module:Bait", "run the Python code bait_module:Bait"),
        ("hf:./model?trust_remote_code=true", "run code that comes with the model"),
        ("st:./model?trust_remote_code=1&device=cpu", "run code that comes with the model"),
        ("api:m", "send texts to OpenAI, or to the URL in OPENAI_BASE_URL, with your key"),
        ("api:m?dimensions=8", "send texts to OpenAI, or to the URL in OPENAI_BASE_URL, with your key"),
        (f"api:m?base_url={ELSEWHERE}", f"send texts to {ELSEWHERE}"),
        ("api:m?key_env=AWS_SECRET_ACCESS_KEY", "also send the key in AWS_SECRET_ACCESS_KEY"),
        (f"api:m?base_url={ELSEWHERE}&key_env=AWS_SECRET_ACCESS_KEY", "also send the key in AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_what_a_folder_cannot_decide_is_refused_by_every_door(
    bait: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, text: str, shown: str, over_contexts: bool
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("a model was opened")

    monkeypatch.setattr("biassay.runs.models.open_model", opened)
    out = planted(bait / "run", "glove", text, over_contexts=over_contexts)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = f"biassay resume {out} --model {shlex.quote(text)}"
    for door in (("run", "--resume", out), ("resume", out)):
        code, stdout, stderr = cli(*door)
        assert (code, stdout) == (2, "")
        said = " ".join(stderr.split())
        assert shown in said
        assert said.endswith(again)
        assert "secret-of-the-user" not in said
    assert not (bait / "ran").exists()
    assert "bait_module" not in sys.modules
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.extras
@pytest.mark.parametrize("given", [(), ("--model", "python:bait_module:Bait")])
def test_a_folder_of_vectors_is_not_taken_from_a_run(bait: Path, cli: Cli, given: tuple[str, ...]) -> None:
    there = bait / "not theirs"
    out = planted(bait / "run", "glove", *given[1:], over_contexts=True, vectors=str(there))
    again = f"biassay resume {out} {' '.join((*given, '--vectors'))} '{there}'"
    for door in ("run", "--resume", out), ("resume", out):
        code, stdout, stderr = cli(*door, *(given if door[0] == "resume" else given[1:]))
        assert (code, stdout) == (2, "")
        assert " ".join(stderr.split()).endswith(again)
    code, _, stderr = cli(*shlex.split(again)[1:])
    assert "c.parquet" in stderr  # what comes next, and is not there
    assert not there.exists()
    assert not (bait / "ran").exists()


def test_a_folder_of_vectors_that_would_write_to_the_terminal_is_not_shown(bait: Path, cli: Cli) -> None:
    out = planted(bait / "run", "glove", over_contexts=True, vectors="\x1b]0;owned\x07")
    code, _, stderr = cli("resume", out)
    assert (code, "\x1b" in stderr) == (2, False)


@pytest.mark.parametrize(
    "text", ["python:bait_module:Bait\x1b]0;owned\x07", "api:m?base_url=http://h/%1b%5d0;owned%07"]
)
def test_a_name_that_would_write_to_the_terminal_is_not_shown(bait: Path, cli: Cli, text: str) -> None:
    out = planted(bait / "run", text)
    code, _, stderr = cli("run", "--resume", out)
    assert code == 2
    assert "\x1b" not in stderr


def test_the_command_that_is_named_goes_on(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own run, with code of the user's own."""
    source = (
        "import hashlib, numpy as np\n"
        "class Steady:\n"
        "    def encode(self, texts):\n"
        "        seeds = [list(hashlib.blake2b(t.encode(), digest_size=8).digest()) for t in texts]\n"
        "        return np.array([np.random.default_rng(s).normal(size=6) for s in seeds])\n"
    )
    (tmp_path / "own_steady.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    models = (f"vectors:{write_vectors(tmp_path / 'v.txt')}", "python:own_steady:Steady")
    whole = biassay.run(models, tests=str(write_test(tmp_path / "own.json")))
    out = tmp_path / "a run"  # the command holds it in quotes
    stopped(whole).save(out)
    _, _, stderr = cli("run", "--resume", out)
    command = shlex.split(stderr.partition("biassay resume ")[2])
    assert cli("resume", *command)[0] == 0
    assert Run.load(out).results == whole.results


@pytest.mark.extras
def test_the_address_is_shown_before_texts_go_there(tmp_path: Path, cli: Cli) -> None:
    model = f"api:m?base_url={ELSEWHERE}&retries=0"
    code, _, stderr = cli("run", model, "--tests", "weat6", "--out", tmp_path / "run")
    assert code == 1
    assert stderr.splitlines()[:2] == ["m: opening the model", f"m: texts go to {ELSEWHERE}, without a key"]
    assert not any("texts go to" in line for line in cli("run", model, "--tests", "weat6", "--quiet")[2].splitlines())
    assert stderr.splitlines()[-1] == f"to continue: biassay resume {tmp_path / 'run'} --model '{model}'"
