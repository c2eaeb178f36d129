"""Progress messages: amount done, rate and remaining time."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from biassay.cli.progress import ProgressBars, ProgressLog, make_listener
from biassay.reporting.terminal import make_console

from .conftest import Cli
from .small_tests import write_test, write_vectors


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock whose time is set through a list."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def lines_of(clock: list[float], events: list[tuple[float, str, int, int]], who: str = "hf:org/model") -> list[str]:
    file = io.StringIO()
    with ProgressLog(Console(file=file, width=40)) as lines:
        for at, unit, done, total in events:
            clock[0] = 100.0 + at
            lines.progress(who, unit, done, total)
    return file.getvalue().splitlines()


def test_the_rate_counts_from_when_the_step_was_announced(clock: list[float]) -> None:
    file = io.StringIO()
    with ProgressLog(Console(file=file)) as lines:
        for at, what in ((0, "loading the model"), (20, "encoding 1,000 texts")):
            clock[0] = 100.0 + at
            lines.begin("hf:org/model", what)
        clock[0] = 130.0
        lines.progress("hf:org/model", "texts", 1000, 1000)
    assert file.getvalue().splitlines()[-1] == "model: encoding: 1,000 of 1,000 texts, 100/s"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with make_listener(quiet=True) as listener:
        listener.progress("glove", "tests", 1, 2)
        listener.notice("beware")
    assert capsys.readouterr() == ("", "")


def test_bars_end_a_step_when_the_next_begins() -> None:
    with ProgressBars(Console(file=io.StringIO(), force_terminal=True, width=80)) as bars:
        bars.begin("glove", "opening the model")
        bars.begin("glove", "measuring")
        assert [task.total for task in bars._progress.tasks] == [None]
        bars.progress("glove", "tests", 1, 2)
        assert [task.total for task in bars._progress.tasks] == [2]
        bars.begin("out", "writing the report")
    assert [(task.completed, task.total) for task in bars._progress.tasks] == [(1, 2)]


@pytest.mark.parametrize(("terminal", "kind"), [("xterm", ProgressBars), ("dumb", ProgressLog)])
def test_a_terminal_that_cannot_draw_gets_lines(terminal: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, whatever it is
    assert isinstance(make_listener(quiet=False), kind)


@pytest.mark.parametrize(("columns", "width"), [(None, 100), ("", 100), ("72", 72), ("20", 60)])
def test_a_pipe_is_as_wide_as_it_is_said_to_be(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert make_console().width == width


def test_models_have_their_labels_from_the_first_line_on(tmp_path: Path, cli: Cli) -> None:
    for step in ("step1", "step2"):
        (tmp_path / step).mkdir()
        write_vectors(tmp_path / step / "model.txt", 8, 0.0)
    write_test(tmp_path / "own.json", 8)
    models = [f"vectors:{tmp_path / step / 'model.txt'}" for step in ("step1", "step2")]
    code, _, stderr = cli("run", *models, f"own={models[0]}?case=fold", "--tests", tmp_path / "own.json")
    assert code == 0
    assert {line.partition(":")[0] for line in stderr.splitlines()} == {"step1/model.txt", "step2/model.txt", "own"}
