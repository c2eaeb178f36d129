"""``biassay compare`` of models and folders with long, hostile or equal names."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path

import pytest
from tests.results.made_runs import as_refused, with_rows

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import judged, renamed, told


def test_runs_in_folders_of_one_name_are_told_apart(cli: Cli, glove: Run, tmp_path: Path) -> None:
    again = dataclasses.replace(glove, manifest=dataclasses.replace(glove.manifest, run_id="again"))
    runs = [run.save(tmp_path / place / "run") for place, run in (("x", glove), ("y", again))]
    found = told(cli("compare", *runs, "--json")[1])
    for row in found["associations"]:
        assert (row["baseline"], row["model"]) == ("glove [x/run]", "glove [y/run]")
        assert row["difference"] == 0.0
    stdout = cli("compare", *runs, "--baseline", "glove [y/run]")[1]
    assert stdout.startswith("glove [x/run] compared with glove [y/run]\n")
    assert {row[0] for row in judged(stdout)} == {"no worse"}


@pytest.mark.parametrize("model", ["[/]", "[bold]x", ":smile:", "back\\", "x" * 400])
def test_names_in_the_terminal_are_as_they_are(model: str, cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    """Also where the test was not measured on the model, and the reason names it."""
    other = renamed(mine, model)
    results = tuple(as_refused(r) if r.test == "weat7" else r for r in other.results)
    runs = glove.save(tmp_path / "one"), with_rows(other, results).save(tmp_path / "two")
    code, stdout, stderr = cli("compare", *runs)
    assert code == 0, stderr
    assert "".join(stdout.split()).startswith(model)
    assert f"{model}comparedwithglove" in "".join(stdout.split())
    if len(model) < 20:
        lost, *others = judged(stdout)
        assert (lost[:2], lost[3:], len(others)) == (["missing", "weat7"], ["–"] * 3, 2)
        assert f"weat7: not measured on {model}" in stdout.splitlines()


@pytest.mark.parametrize("model", ["[/]", "[bold]x", ":smile:", "back\\", "x" * 400])
def test_the_baseline_names_its_column_as_it_is(model: str, cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    runs = renamed(mine, model).save(tmp_path / "one"), glove.save(tmp_path / "two")
    code, stdout, stderr = cli("compare", *runs)
    assert code == 0, stderr
    assert f"comparedwith{model}" in "".join(stdout.split())
    verdicts = {v["test"]: v for v in told(cli("compare", *runs, "--json")[1])["verdicts"]}
    assert {row[1]: row[2].split()[0] for row in judged(stdout)} == {
        test: f"{verdict['effect_baseline']:.2f}" for test, verdict in verdicts.items()
    }


@pytest.mark.parametrize("model", ["\x1b[2Jgone", "a\x9bb", "\u202eabc"])
def test_a_name_cannot_steer_the_terminal(model: str, cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    runs = glove.save(tmp_path / "one"), renamed(mine, model).save(tmp_path / "two")
    code, stdout, _ = cli("compare", *runs)
    assert code == 0
    assert not re.search(r"[\x1b\x9b\u202e]", stdout)


def test_a_hostile_name_is_text_on_the_page(cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    runs = glove.save(tmp_path / "one"), renamed(mine, hostile).save(tmp_path / "two")
    assert cli("compare", *runs, "--out", tmp_path / "page.html", "--quiet") == (0, "", "")
    text = (tmp_path / "page.html").read_text()
    assert hostile not in text
    assert f"{hostile} compared with glove" in html.unescape(text)
