"""``biassay report`` and ``compare`` of models, tests and folders with long, hostile or equal names."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from tests.results.made_runs import consistent, with_rows
from tests.studies.associations.publish_runs import NASTY

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import names, renamed


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


@pytest.mark.parametrize("model", ["\x1b[2Jgone", "a\x9bb", "\u202eabc"])
def test_a_name_cannot_steer_the_terminal(model: str, cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    plain, hostile = glove.save(tmp_path / "one"), renamed(mine, model).save(tmp_path / "two")
    for command in (("report", hostile), ("compare", plain, hostile)):
        code, stdout, _ = cli(*command)
        assert code == 0
        assert not re.search(r"[\x1b\x9b\u202e]", stdout)
