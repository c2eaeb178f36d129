"""``biassay report`` of models, tests and folders with long, hostile or equal names."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path

import pytest
from tests.results.made_runs import altered, consistent, with_rows
from tests.studies.associations.publish_runs import NASTY

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import MARK, names, read, renamed


def of_models(run: Run, models: list[str]) -> Run:
    """One run of many models, all with the same results."""
    parts = [renamed(run, model) for model in models]
    results = tuple(r for part in parts for r in part.results)
    return consistent(with_rows(run, results, models=tuple(m for part in parts for m in part.manifest.models)))


def test_hostile_and_long_names_are_safe_and_distinct_names_of_files(cli: Cli, glove: Run, tmp_path: Path) -> None:
    models = [
        *NASTY,
        "../../etc/passwd",
        "CON",
        "a/b",
        "a\\b",
        "A_B",
        "y" * 300 + "1",
        "y" * 300 + "2",
        ".",
        "",
        "\x00",
    ]
    run = of_models(glove, models)
    run = with_rows(run, tuple(r for r in run.results if r.test == "weat6"))
    folder, paper = run.save(tmp_path / "run"), tmp_path / "deep" / "paper"
    before = names(tmp_path)
    code, _, stderr = cli("report", folder, "--publish", paper, "--format", "svg")
    assert code == 0, stderr
    written = names(tmp_path) - before
    assert all(name.startswith("deep/paper/") or name == "run/report.html" for name in written)
    cards = [name for name in names(paper) if name.startswith("model-card-")]
    assert len({name.lower() for name in cards}) == len(cards) == len(models)
    for name in names(paper):
        assert re.fullmatch(r"((figures|\.eval_results)/)?[A-Za-z0-9][A-Za-z0-9._+-]{0,110}", name)
    with (paper / "results-as-published.tsv").open(newline="") as file:
        assert {len(row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)} == {9}


def test_markup_in_names_is_printed_as_it_is(cli: Cli, glove: Run, tmp_path: Path) -> None:
    folder = renamed(glove, "[bold]x[/]").save(tmp_path / "[red]run")
    code, stdout, _ = cli("report", folder)
    assert code == 0
    assert "[bold]x[/]" in stdout
    assert f"open {folder / 'report.html'}" in stdout


@pytest.mark.parametrize("model", ["\x1b[2Jgone", "a\x9bb", "\u202eabc"])
def test_a_name_cannot_steer_the_terminal(model: str, cli: Cli, glove: Run, tmp_path: Path) -> None:
    code, stdout, _ = cli("report", renamed(glove, model).save(tmp_path / "run"))
    assert code == 0
    assert not re.search(r"[\x1b\x9b\u202e]", stdout)


def test_runs_in_folders_of_one_name_are_told_apart(cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    again = dataclasses.replace(glove, manifest=dataclasses.replace(glove.manifest, run_id="again"))
    runs = [run.save(tmp_path / place / "run") for place, run in (("x", glove), ("y", again), ("z", mine))]
    code, stdout, _ = cli("report", *runs, "--out", tmp_path / "p.html", "--publish", tmp_path / "q", "--format", "svg")
    assert code == 0
    text = read(tmp_path / "p.html")
    for shown in (stdout, text):
        assert "glove [x/run]" in shown
        assert "glove [y/run]" in shown
    assert "[z/run]" not in text  # no other run has this model
    cards = {name for name in names(tmp_path / "q") if name.startswith("model-card-glove")}
    assert cards == {"model-card-glove_x_run.md", "model-card-glove_y_run.md"}


def test_very_long_names_are_shown(cli: Cli, glove: Run, tmp_path: Path) -> None:
    run = renamed(glove, "m" * 1000)
    long = tuple(altered(r, test=f"{'t' * 500}{i}", title="title " * 100) for i, r in enumerate(run.results))
    tests = tuple(dataclasses.replace(run.manifest.inputs.tests[0], name=row.test) for row in long)
    inputs = dataclasses.replace(run.manifest.inputs, tests=tests)
    folder = consistent(with_rows(run, long, inputs=inputs)).save(tmp_path / ("r" * 200))
    code, stdout, stderr = cli("report", folder, "--all", "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    for result in glove.results:
        assert f"{result.effect_size:.2f}" in stdout
    assert MARK in (folder / "report.html").read_text()
    assert len([name for name in names(tmp_path / "paper") if name.startswith("model-card-")]) == 1
