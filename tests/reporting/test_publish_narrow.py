"""Tables for papers in one and two columns: content and width."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.reporting.latex_parts import Parts, number
from tests.studies.associations.publish_runs import measured_in_contexts, measured_in_words, on_models

from biassay.reporting.document import Cell, ColumnSpan, RowGroup, Table, TableRow
from biassay.reporting.latex import to_latex, to_narrow_latex
from biassay.runs.run import Run
from biassay.studies.associations.report import associations_table, pooled_table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def in_contexts() -> Run:
    return measured_in_contexts(("one", "two", "three", "four", "five"))


def test_what_signs_mean_stands_once_below_the_last_part() -> None:
    rows = tuple(TableRow((f"t{i}",), (Cell("0.50"),) * 9) for i in range(60))
    spans = tuple(ColumnSpan(f"m{i}") for i in range(9))
    table = Table("First. Second.", ("Test",), spans, (RowGroup("", rows),), ("the sign",))
    first, *others = to_latex(table, "tab:x").split(r"\begin{table*}")[1:]
    assert len(others) == 3
    assert ["Second" in part for part in (first, *others)] == [True, False, False, False]
    assert ["First" in part for part in others] == [True] * 3
    assert ["the sign" in part for part in (first, *others)] == [False, False, False, True]


def test_a_narrow_table_has_the_models_below_each_other(run: Run) -> None:
    """The numbers of the wide one, less those that are spare."""
    two = on_models(run, ("one", "two"))
    text = to_narrow_latex(associations_table(two), "tab:x")
    assert text is not None
    parts = Parts(text)
    assert set(parts.environments) == {"table", "tabular"}
    assert r"\textwidth" not in text
    rows = [list(map(number, row)) for own in parts.tables for row in own if len(row) == 4]
    found = [row[1:] for row in rows if row[0].endswith(("one", "two"))]
    table = associations_table(two)
    expected = []
    for row in table.rows:
        for start in (0, 4):  # of four columns the last is spare
            cells = row.cells[start : start + 3]
            expected.append([cell.text.replace("e-", "×10^-") + cell.mark for cell in cells])
    assert found == expected


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
def test_tables_stay_within_the_text(run: Run, in_contexts: Run, columns: str, tmp_path: Path) -> None:
    tables = [associations_table(on_models(run, ("all-MiniLM-L6-v2", "bert-base-uncased"))), associations_table(run)]
    tables += [associations_table(in_contexts), pooled_table(in_contexts)]
    texts = [to_latex(table, f"tab:{place}") for place, table in enumerate(tables)]
    if columns == "twocolumn":
        texts += [to_narrow_latex(table, f"tab:n{place}") or "" for place, table in enumerate(tables)]
    packages = {line.removeprefix("% ") for text in texts for line in text.splitlines() if line.startswith("% \\use")}
    begin = rf"\documentclass[{columns}]{{article}}"
    (tmp_path / "t.tex").write_text(
        "\n".join([begin, *sorted(packages), r"\begin{document}", *texts, r"\end{document}"])
    )
    subprocess.run(["pdflatex", "-interaction=batchmode", "t.tex"], cwd=tmp_path, capture_output=True, check=True)
    log = (tmp_path / "t.log").read_text(encoding="latin-1")
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([0-9.]+)pt too wide", log)]
    assert max(wide, default=0.0) < 2.0
    assert "Float too large" not in log
