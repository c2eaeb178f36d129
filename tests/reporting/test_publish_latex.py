"""LaTeX: its structure by taking it apart, its sense by compiling it where LaTeX is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reporting.latex_parts import Parts, number, read
from tests.results.made_runs import with_rows
from tests.studies.associations.publish_runs import (
    NASTY,
    changed,
    many_tests,
    measured_in_contexts,
    measured_in_words,
    on_models,
    with_first,
)

from biassay.errors import UsageError
from biassay.reporting.document import Cell, ColumnSpan, RowGroup, Table, TableRow
from biassay.reporting.latex import escape, to_latex, to_narrow_latex
from biassay.runs.run import Run
from biassay.studies.associations.report import associations_table, pooled_table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"), protocol="may2019")


@pytest.fixture(scope="module")
def in_contexts() -> Run:
    return measured_in_contexts(("one", "two", "three", "four", "five"))


@pytest.mark.parametrize(
    ("models", "width", "tables"),
    [(1, 4, 1), (8, 4, 1), (9, 4, 2), (10, 4, 2), (17, 4, 3), (4, 15, 1), (5, 15, 2), (3, 32, 3), (2, 99, 2)],
)
def test_as_many_models_stand_beside_each_other_as_fit(models: int, width: int, tables: int) -> None:
    """Eight at most, and 64 characters with the gaps between them."""
    names = tuple(f"m{i}" for i in range(models))
    rows = (TableRow(("t", "w"), (Cell("x" * width),) * models),)
    table = Table("c", ("Test", "Context"), tuple(map(ColumnSpan, names)), (RowGroup("", rows),))
    parts = Parts(to_latex(table, "tab:x"))
    assert parts.labels == (["tab:x"] if tables == 1 else [f"tab:x-{i + 1}" for i in range(tables)])
    heads = [row for rows in parts.tables for row in rows[:1]]
    assert len(heads) == tables
    shown = [re.search(r"\{([^{}]*)\}$", cell) for head in heads for cell in head[2:]]
    assert [found[1] for found in shown if found] == list(names)
    assert max(len(head) for head in heads) <= 10


@pytest.mark.parametrize(("tests", "tables"), [(0, 1), (38, 1), (39, 2), (46, 2), (200, 5)])
def test_a_table_of_many_rows_is_dealt_to_several(tests: int, tables: int) -> None:
    """A float spans both columns of a paper and does not break: a page has room for 42 lines below a caption.

    Title and notes take 3.5 here.
    """
    rows = tuple(TableRow((f"t{i}",), (Cell("0.50"),)) for i in range(tests))
    table = Table("c", ("Test",), (ColumnSpan("m", notes=("note",)),), (RowGroup("g", rows),), ("sign",))
    text = to_latex(table, "tab:x")
    parts = Parts(text)
    assert parts.environments == ["table*", "tabular"] * tables
    assert parts.labels == (["tab:x"] if tables == 1 else [f"tab:x-{i + 1}" for i in range(tables)])
    shown = [[row[0].removeprefix(r"\hspace*{0.6em}") for row in own if "0.50" in row] for own in parts.tables]
    assert [name for names in shown for name in names] == [row.stub[0] for row in rows]
    assert max(map(len, shown)) - min(map(len, shown)) <= 4
    last = text.split(r"\begin{table*}")[-1]
    assert (text.count("note"), last.count("note"), text.count("sign"), last.count("sign")) == (1, 1, 1, 1)


def test_hostile_and_long_names_keep_the_structure(run: Run) -> None:
    Parts(to_latex(associations_table(on_models(run, NASTY))))
    for field in ("test", "title", "options"):
        for nasty in (*NASTY, r"\end{tabular}", r"\\[2cm] & x % y"):
            tables = Parts(to_latex(associations_table(changed(run, **{field: nasty})))).tables
            assert all(len(rows) > 1 for rows in tables)
            assert tables


@given(st.text(alphabet=st.characters(max_codepoint=0x7E, min_codepoint=0x20), max_size=40))
def test_all_of_ascii_is_read_as_it_was_written(text: str) -> None:
    assert read(escape(text)) == text


@given(st.text(max_size=40))
def test_no_text_leaves_its_braces_or_holds_what_pdflatex_lacks(text: str) -> None:
    code = escape(text)
    assert code.count("{") == code.count("}")
    assert not re.search(r"(?<!\\)[%&#]", code)
    assert all(" " <= character <= "~" or "¡" <= character <= "ž" for character in code)


def test_a_label_that_would_break_out_is_refused(run: Run) -> None:
    with pytest.raises(UsageError, match="a label is made of"):
        to_latex(associations_table(run), "x}\\input{y")


@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_it_compiles(run: Run, papers: Run, in_contexts: Run, columns: str, tmp_path: Path) -> None:
    names = (*NASTY, "sentence-transformers/all-MiniLM-L6-v2 (pooling=mean)", "last")
    odd = with_first(changed(run, title="long " * 90), effect_size=float("-inf"))
    latin = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA0, 0x180)]))
    tables = [
        associations_table(on_models(papers, names)),
        associations_table(on_models(many_tests(run, 46), names)),
        associations_table(with_rows(run, ())),
        associations_table(odd),
        associations_table(in_contexts),
        pooled_table(in_contexts),
        pooled_table(on_models(changed(in_contexts, options=""), ("<script>",))),
        Table(
            latin,
            ("†‡−≤",),
            (ColumnSpan("x"),),
            (RowGroup(latin, (TableRow((latin,), (Cell("1.00", "**‡", 3),)),)),),
            (latin,),
        ),
    ]
    texts = [to_latex(table, f"tab:{place}") for place, table in enumerate(tables)]
    small = (to_narrow_latex(table, f"tab:{place}-narrow") for place, table in enumerate(tables))
    texts += [f"\\clearpage\n{text}" for text in small if text is not None and columns == "twocolumn"]
    assert len(texts) > len(tables) or columns == "onecolumn"
    packages = {line.removeprefix("% ") for text in texts for line in text.splitlines() if line.startswith("% \\use")}
    begin = rf"\documentclass[{columns}]{{article}}"
    body = "\n".join([begin, *sorted(packages), r"\begin{document}", *texts, r"\end{document}"])
    (tmp_path / "t.tex").write_text(body, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    log = (tmp_path / "t.log").read_text(encoding="latin-1")
    assert "Missing character" not in log


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
