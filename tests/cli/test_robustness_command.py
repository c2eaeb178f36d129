"""``biassay robustness``: options that take several words, one table in the terminal, files for a paper."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import Cli


def test_a_paper_has_one_table_and_the_specifications_in_a_file(cli: Cli, tmp_path: Path) -> None:
    assert cli("robustness", "glove", "--tests", "weat6,weat7", "--out", tmp_path / "run", "--quiet")[0] == 0
    assert cli("report", tmp_path / "run", "--publish", tmp_path / "paper", "--quiet")[0] == 0
    assert {path.name for path in (tmp_path / "paper").glob("*.t*")} == {
        *("methods.tex", "robustness-results.tex", "robustness-results.tsv", "robustness-specifications.tsv"),
        "robustness-decisions.tsv",
    }
    lines = (tmp_path / "paper" / "robustness-results.tex").read_text().splitlines()
    (weat7,) = [line for line in lines if line.startswith("weat7")]
    assert [cell.strip(" \\") for cell in weat7.split("&")][1:] == [
        *("1.36", "0.143", "1.32", "{[}1.24, 1.42{]}", "4 of 4", "0 of 4", "0.002"),
    ]
    assert "simonsohn2020" in (tmp_path / "paper" / "references.bib").read_text()


def test_the_terminal_shows_a_line_a_test(cli: Cli) -> None:
    _, stdout, _ = cli("robustness", "glove", "--tests", "weat6,weat7")
    rows = [re.split(r" {2,}", line.strip()) for line in stdout.split("Effects under all")[1].splitlines()]
    (place,) = [place for place, row in enumerate(rows) if row[0].endswith("(weat7)")]
    cells = [cell for row in rows[place - 1 : place + 1] for cell in row]  # the label takes two lines
    assert {"1.36", "0.143", "1.32", "[1.24, 1.42]", "4 of 4", "0 of 4", "0.002"} <= set(cells)
    assert rows[2][-1] == "weakest"
    assert rows[3][-1] == "word"
