"""The example of a package that adds to biassay, as the test environment has it installed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

import biassay
from biassay import packages
from biassay.cli import main
from biassay.runs.run import Run

BOOK = """The nurse said that she was tired. The mechanic said that he was tired. The teacher lived near us, and she
came home late. When the pilot came home, he was hungry. The driver said he would come back. The secretary asked when
she would come back. The farmer knows that he is late. The plumber was there, and he was well. The librarian was there,
and she was well. We asked the cashier when she would be there. We asked the engineer when he would be there. My father
is in the garage with his engine. My mother is in the kitchen with her oven."""


@pytest.fixture(scope="module", autouse=True)
def _seen(example: None) -> None:
    """All of these tests see the example."""


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points as the file of the example declares them, also if an earlier version of it is installed."""
    project = Path(__file__).resolve().parents[2] / "examples" / "plugin" / "pyproject.toml"
    points = {
        group: tuple(metadata.EntryPoint(name, value, group) for name, value in values.items())
        for group, values in tomllib.loads(project.read_text("utf-8"))["project"]["entry-points"].items()
    }
    original = packages._get_entry_points
    monkeypatch.setattr(packages, "_get_entry_points", lambda group: points.get(group) or original(group))
    monkeypatch.setattr(packages, "_loaded", {})


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process: exit code, stdout, stderr."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return call


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("book") / "book.txt"
    path.write_text(BOOK, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def measured(example: None, book: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:  # noqa: ARG001
    """Two models of letters in one run."""
    models = {"short": f"letters:{book}", "long": f"letters:{book}?n=5"}
    return biassay.measure("pronouns", models, cache=tmp_path_factory.mktemp("answers"))
