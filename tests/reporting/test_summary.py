"""Titles, counts and lists that reports and the terminal begin with."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from biassay.reporting.document import Cell, ColumnSpan, Report, RowGroup, Section, Table, TableRow, Text
from biassay.reporting.document import make_table as make_record_table
from biassay.reporting.findings import describe_power, format_title, list_skipped, make_counts_table
from biassay.reporting.terminal import MAX_LINES, print_report, render_table
from biassay.results.outcomes import Evidence, Finding
from biassay.results.tables import Column


def make_finding(model: str, item: str, evidence: Evidence, effect: float | None = 1.0, **changes: Any) -> Finding:
    values: dict[str, Any] = {
        "title": f"Title of {item}",
        "topic": "gender",
        "about": "people",
        "low": None if effect is None else effect - 0.5,
        "high": None if effect is None else effect + 0.5,
        "p_values": {"crossed": 0.01},
    }
    return Finding(model=model, item=item, evidence=evidence, effect=effect, **{**values, **changes})


FINDINGS = [
    make_finding("glove", "a", "significant", 1.7, claim="men–career, women–family"),
    make_finding("glove", "sent-a", "significant", 1.6, form_of="a"),
    make_finding("glove", "b", "uncorrected", 1.2),
    make_finding("glove", "c", "inconclusive", 0.3, smallest=1.1),
    make_finding("glove", "check", "uncorrected", 1.5, about="method"),
    make_finding("glove", "lost", "skipped", None, reason="3 of 8 words are out of vocabulary; use more"),
    make_finding("USE", "a", "inconclusive", 0.6, smallest=0.8),
    make_finding("USE", "b", "inconclusive", 0.1, smallest=0.9),
    make_finding("USE", "check", "inconclusive", 0.2, about="method"),
]


def cells(table: Table | None) -> dict[str, list[str]]:
    assert table is not None
    return {row.stub[0].strip(): [cell.text for cell in row.cells] for row in table.rows}


def test_the_title_is_the_finding_with_questions_counted_once() -> None:
    assert format_title(FINDINGS) == "glove: 1 of 3 social-bias questions is significant. USE: none of 2"


def test_counts_have_one_denominator_and_what_chance_gives() -> None:
    table = cells(make_counts_table(FINDINGS))
    assert table["Social-bias questions"][:2] == ["3", "2"]
    counted = [table[name][:2] for name in ("significant", "before correction only", "inconclusive")]
    assert [sum(int(row[model]) for row in counted) for model in (0, 1)] == [3, 2]
    assert table["before correction only"][2] == "at most about 0.1 to 0.2 expected by chance"  # 2 × .05, 3 × .05
    assert table["Sanity checks passed"] == ["1/1", "0/1", "failed: do not trust the rest"]
    assert table["Skipped"] == ["1", "0", "lost"]


def test_power_and_skipped_tests_are_named() -> None:
    assert describe_power(FINDINGS).endswith("80% power needs d above 1.10 (glove), 0.80 (USE) at best.")
    assert describe_power(FINDINGS[:1]) == ""
    assert list_skipped(FINDINGS) == ["glove: skipped lost: 3 of 8 words are out of vocabulary; use more"]


def make_table(columns: int, width: int = 8) -> Table:
    spans = tuple(ColumnSpan(f"column {number}".ljust(width, "x")) for number in range(columns))
    rows = tuple(TableRow((f"row {r}",), tuple(Cell(f"{r}.{c}") for c in range(columns))) for r in range(3))
    return Table("Numbers", ("Row",), spans, (RowGroup("", rows),), signs=("* a sign",))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_split_table_repeats_its_labels_and_loses_no_cell(width: int) -> None:
    lines = [line.plain for line in render_table(make_table(9), width)]
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert all(f"{r}.{c}" in text.split() for r in range(3) for c in range(9))
    parts = text.count("(continued)") + 1
    assert text.count("row 0") == parts
    assert (parts > 1) == (width < 80)
    assert text.count("* a sign") == 1


@pytest.mark.parametrize("everything", [False, True])
def test_the_terminal_shows_verdict_first_and_the_rest_on_demand(everything: bool) -> None:
    section = Section("more", "All numbers", (Text("A paragraph."), make_table(2)), printed=True)
    report = Report("A title", "Subject", "", findings=FINDINGS, sections=[section], remarks=["A remark."])
    console = Console(width=100, record=True, file=io.StringIO())
    print_report(report, console, everything=everything)
    text = console.export_text()
    order = ["skipped lost", "Social-bias questions", "Significant", "Before correction only"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    for part in ("All numbers", "A paragraph.", "row 1", "A remark."):
        assert (part in text) == everything
    assert ("Inconclusive does not mean unbiased" in text) != everything


def test_a_report_fits_one_screen_and_keeps_its_claims_whole() -> None:
    claim = "male words–being competent and achievement-oriented, female words–being incompetent and submissive"
    findings = [make_finding(model, str(i), "uncorrected", claim=f"{i} {claim}") for model in "abcd" for i in range(9)]
    console = Console(width=80, record=True, file=io.StringIO())
    print_report(Report("A title", "Subject", "", findings=findings), console)
    lines = console.export_text().splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80
    assert sum("… 8 more" in line for line in lines) == 4
    whole = " ".join(" ".join(line.plain.split()) for line in render_table(make_long_table(claim), 60))
    assert all(word in whole for word in claim.split())
    assert "…" in whole  # a list of names is cut before a claim is


def make_long_table(claim: str) -> Table:
    row = TableRow(("a model", claim), (Cell("1.00"), Cell("first-test, second-test, third-test")))
    return Table("", ("", ""), (ColumnSpan("d"), ColumnSpan("", text=True)), (RowGroup("", (row,)),))


def test_labels_cannot_steer_the_terminal() -> None:
    table = Table(
        "\x1b[2J", ("\x1b[1m",), (ColumnSpan("\x9b"),), (RowGroup("\u202e", (TableRow(("\x1b",), (Cell("\x1b"),)),)),)
    )
    text = "".join(line.plain for line in render_table(table, 80))
    assert not set(text) & {"\x1b", "\x9b", "\u202e"}


def test_of_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    columns = [Column(name, name, "A column.", get="cell{}".format) for name in ("one", "two")]
    lines = [line.plain for line in render_table(make_record_table("", columns, range(2000), 30), 80)]
    assert sum("cell" in line for line in lines) == 30
    assert "1,970" in lines[-1]
    assert len(make_record_table("", columns, range(2000)).rows) == 2000
