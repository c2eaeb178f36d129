"""Interrupted ``biassay run`` that resumes with ``--resume``, and a disk that is full at any moment."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biassay.runs.run import Run

from .conftest import Cli
from .small_tests import write_test

BIASSAY = [sys.executable, "-c", "from biassay.cli import main; main()"]

STEADY = """
import hashlib
import numpy as np

def vector(text):
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).normal(size=16)

class Steady:
    revision = "1"
    def encode(self, texts):
        return np.array([vector(text) for text in texts])
"""


NEVER = "python:never_ends:Never"


def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, source: str) -> None:
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_resumed_run_still_says_what_its_first_model_took(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = STEADY + (
        "class Once(Steady):\n"
        "    calls = 0\n"
        "    def encode(self, texts):\n"
        "        type(self).calls += 1\n"
        "        if type(self).calls == 1:\n"
        "            raise KeyboardInterrupt\n"
        "        return super().encode(texts)\n"
    )
    write_module(tmp_path, monkeypatch, "stops_at_once", source)
    out = tmp_path / "run"
    assert cli("run", "glove", "python:stops_at_once:Once", "--tests", "weat6", "--out", out)[0] == 1
    before = Run.load(out).manifest.models[0]
    assert before.texts == before.encoded >= 32
    assert cli("run", "--resume", out, "python:stops_at_once:Once")[0] == 0
    assert Run.load(out).manifest.models[0] == before


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_was_stopped_leaves_a_run_that_resume_completes(
    kill: signal.Signals, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = STEADY + (
        "import pathlib, time\n"
        "class Slow(Steady):\n"
        "    def encode(self, texts):\n"
        "        if len(texts) < 256 and not pathlib.Path('go').exists():\n"
        "            pathlib.Path('waiting').touch()\n"
        "            time.sleep(60)\n"
        "        return super().encode(texts)\n"
    )
    write_module(tmp_path, monkeypatch, "slow_encoder", source)
    monkeypatch.delitem(sys.modules, "slow_encoder", raising=False)
    monkeypatch.chdir(tmp_path)
    args = [*BIASSAY, "run", "python:slow_encoder:Slow", "--tests", "sent-weat6", "--out", "run"]
    with subprocess.Popen(args, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "waiting").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(kill)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (1 if kill is signal.SIGINT else -kill, "")
    if kill is signal.SIGINT:
        assert "biassay resume run --model python:slow_encoder:Slow" in stderr
        assert "Traceback" not in stderr
    assert Run.load(tmp_path / "run").manifest.status == "running"

    (tmp_path / "go").touch()
    code, stdout, stderr = cli("resume", "run", "--model", "python:slow_encoder:Slow", "--json")
    assert code == 0, stderr
    resumed = json.loads(stdout)
    assert 0 < resumed["manifest"]["models"][0]["encoded"] < resumed["manifest"]["models"][0]["texts"]
    _, stdout, _ = cli("run", "python:slow_encoder:Slow", "--tests", "sent-weat6", "--json", "--cache", "fresh")
    assert json.loads(stdout)["results"] == resumed["results"]


def interrupted_run(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, *models: str, test: Path) -> Path:
    source = STEADY + (
        "class Never(Steady):\n    def encode(self, texts):\n        raise KeyboardInterrupt\n"
        "class Bad(Steady):\n    def encode(self, texts):\n        return np.zeros((len(texts), 3))\n"
    )
    write_module(tmp_path, monkeypatch, "never_ends", source)
    out = tmp_path / "run"
    assert cli("run", *models, NEVER, "--tests", test, "--out", out)[0] == 1
    return out


TEMPLATES = """
[sets.s]
plurals = { "x0" = "x" }
[[sets.s.classes]]
name = "some"
rule = "listed"
words = ["x1", "y1"]
templates = ["one {T}."]
[[sets.s.classes]]
name = "all"
rule = "rest"
templates = ["any {T}."]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"one {T}."', '"two {T}."'),
        ('{ "x0" = "x" }', '{ "x0" = "z" }'),
        ('rule = "listed"', 'rule = "listed"\nexcept_ending = "x1"'),
        ('["x1", "y1"]', '["x1"]'),
        ('"y2"', '"y9"'),
    ],
    ids=["template", "plural", "except_ending", "words of a class", "word of a set"],
)
def test_resume_refuses_tests_that_changed(
    before: str, after: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    concepts = "".join(f'[concepts.{c}]\nwords = ["{c}0", "{c}1", "{c}2"]\n' for c in "xyab")
    test = tmp_path / "own.toml"
    test.write_text(f'{concepts}[tests.own]\nX = "x"\nY = "y"\nA = "a"\nB = "b"\ntargets = "s"\n{TEMPLATES}')
    out = interrupted_run(tmp_path, cli, monkeypatch, test=test)
    assert test.read_text().count(before) == 1
    test.write_text(test.read_text().replace(before, after))
    code, _, stderr = cli("run", "--resume", out, NEVER)
    assert code == 2
    assert "'own' has changed" in stderr


def test_a_resume_that_fails_takes_nothing_from_the_folder(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = interrupted_run(tmp_path, cli, monkeypatch, test=write_test(tmp_path / "own.json"))
    (out / "notes.txt").write_text("mine")
    import never_ends  # type: ignore[import-not-found]

    monkeypatch.setattr(never_ends, "Never", never_ends.Bad)
    code, _, stderr = cli("run", "--resume", out, NEVER)
    assert code == 1
    assert "zero vector" in stderr
    assert (out / "notes.txt").read_text() == "mine"
    assert Run.load(out).manifest.status == "running"


class Full:
    """The real function, until the disk is full."""

    def __init__(self, call: int, real: Callable[..., Any]) -> None:
        self.left, self.real = call, real

    def __call__(self, *args: Any) -> Any:
        self.left -= 1
        if self.left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.real(*args)


# The manifest, 3 of the store, 3 of the measurement, 4 of the run, the report, 2 at the end. Cached vectors do not
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


def test_an_interrupted_run_without_a_folder_says_how_to_continue(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("biassay.cli.studies.measure", interrupt)
    code, _, stderr = cli("run", "glove", "--tests", "weat6")
    assert (code, "interrupted\n" in stderr) == (1, True)
    assert "type the same command again" in stderr
