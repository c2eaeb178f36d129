"""Findings in words, in tables and in the figure of effects."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import pytest
from rich.console import Console

from biassay.reporting.document import Cell, ColumnSpan, Report, RowGroup, Section, Table, TableRow, Text
from biassay.reporting.document import make_table as make_record_table
from biassay.reporting.findings import (
    describe_power,
    format_title,
    list_skipped,
    make_counts_table,
    make_points,
    make_statements,
    summarize_findings,
)
from biassay.reporting.formats import format_interval, format_p, format_share_of_time
from biassay.reporting.html import draw_overview
from biassay.reporting.terminal import MAX_LINES, print_report, render_table
from biassay.results.outcomes import Evidence, Finding
from biassay.results.tables import Column


def finding(item: str, evidence: Any = "significant", effect: float | None = 0.5, **given: Any) -> Finding:
    fields = {"model": "m", "title": f"title {item}", "topic": "gender", "about": "people", "direction": f"way {item}"}
    return Finding(**fields | {"item": item, "evidence": evidence, "effect": effect} | given)  # type: ignore[arg-type]


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", text)]


def names(findings: list[Finding]) -> list[str]:
    return [name.strip(" ()") for _, name in make_points(findings)]


def test_the_corrected_count_comes_first_and_chance_is_named() -> None:
    people = [finding(s[0], s) for s in ("significant", "uncorrected", "inconclusive", "not_testable")]
    checks = [finding("c", about="method"), finding("d", "uncorrected", about="method")]
    text = summarize_findings([*people, *checks])
    assert text.startswith(
        "1 of 3 social-bias questions is significant after correction. 1 more is significant before correction "
        "only (at most about 0.2 expected by chance). 1 is inconclusive."
    )
    assert "Sanity checks passed: 2 of 2." in text
    assert numbers(summarize_findings([finding("t", "descriptive")])) == [1]
    assert summarize_findings([finding("refused", "skipped", None)]).endswith("refused.")
    assert names(checks) == []
    assert "(Holm over 9 questions)" in summarize_findings([finding("t", family="Holm over 9 questions")])


def test_forms_of_a_question_are_counted_once_and_named_beside_it() -> None:
    forms = [finding("weat6", effect=1.2), *(finding(f"sent{i}", s, 1.9, form_of="weat6") for i, s in
             enumerate(("significant", "uncorrected", "significant")))]  # fmt: skip
    assert summarize_findings(forms).startswith("1 of 1 social-bias question ")
    assert names(forms) == ["weat6, sent0, sent2"]


def test_what_a_finding_survives_is_said_whatever_its_standing_and_never_put_together() -> None:
    evidence = ("significant", "inconclusive", "not_testable")
    given = [finding(f"{s}{i}", s, direction="way", robustness=(f"{i} of 4",)) for s in evidence for i in (1, 2)]
    told = make_points(given)
    assert [name.strip(" ()") for _, name in told] == [one.item for one in given]
    assert all(one.robustness[0] in text for one, (text, _) in zip(given, told, strict=True))


def test_a_point_holds_the_numbers_of_its_finding() -> None:
    p_values = {"crossed": None, "by text": 0.0123, "by text, corrected": 0.5}
    one = finding("t", effect=-0.91, low=-1.5, high=-0.25, p_values=p_values, words=("u", "v", "w", "x"))
    ((text, _),) = make_points([one])
    assert re.findall(r"-?\d?\.\d+", text) == ["-0.91", "-1.50", "-0.25", ".012"]
    assert one.direction in text
    assert "u, v, w" not in text  # on the page
    ((words, _),) = make_points([finding("t", "significant", 5.0, unit="words", words=("u", "v", "w", "x"))])
    assert "u, v, w" in words
    assert "by text" in text
    assert "95%" in text


def test_what_was_not_shown_says_what_would_be_found() -> None:
    """One by one where they are few, and the smallest of them beside the counts."""
    few = [finding(f"t{i}", "inconclusive", smallest=size) for i, size in enumerate((1.1, 0.5, 1.6))]
    assert [float(re.findall(r"[\d.]+\d", text)[2]) for text, _ in make_points(few)] == [1.1, 0.5, 1.6]
    many = [*few, finding("t3", "inconclusive", smallest=1.2)]
    assert make_points(many) == []
    assert re.findall(r"\d\.\d+", summarize_findings(many)) == ["0.50"]
    assert re.findall(r"\d\.\d+", summarize_findings([finding("t", "inconclusive")])) == []


def test_what_is_shown_not_to_matter_is_told_where_it_was_asked() -> None:
    bounds = {"a": 0.04, "b": 0.2, "c": 0.05, "d": 0.123, "few": None}
    text = summarize_findings(
        [finding(item, "inconclusive", margin=0.05, bound=bound) for item, bound in bounds.items()]
    )
    assert re.findall(r"\d[\d.]*\d|\d", text) == ["0", "5", "5", "0.05", "2", "4", "0.123", "0.200"]
    assert "(a, c)" in text
    assert "cosine" in text
    assert "0.05" not in summarize_findings([finding("a", "inconclusive", bound=0.05)])
    unlike = [finding("a", "inconclusive", margin=0.3, bound=0.2), finding("b", "inconclusive", margin=0.01, bound=0.2)]
    assert re.findall(r"\d\.\d+", summarize_findings(unlike)) == ["0.01", "0.3", "0.200"]  # each by its own margin
    assert "(a)" in summarize_findings(unlike)
    assert names(unlike) == ["a"]  # the report names effects shown to be small, although no association is


def test_every_model_has_a_statement_and_very_many_models_have_one() -> None:
    def of(models: int) -> list[Finding]:
        rare = [finding("rare", model="m0"), finding("gone", "skipped", None, model="m1")]
        return [finding("often", effect=0.1 * i, model=f"m{i}") for i in range(models)] + rare

    assert [one.about for one in make_statements(of(12))] == [f"m{i}" for i in range(12)]
    assert all(one.text.startswith(one.about) for one in make_statements(of(12)))
    (found,) = make_statements(of(13))
    assert numbers(found.text) == [13, 14, 14, 1]
    assert found.names == (" (often)", " (rare)")
    assert numbers(found.points[0])[:2] == [13, 13]
    assert "0.60" in found.points[0]  # the median
    assert all(point.endswith(name) for point, name in zip(found.points, found.names, strict=True))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (math.nan, "NaN"),
        (1.0, "1.000"),
        (0.0123, "0.012"),
        (0.001, "0.001"),
        (0.00099, "9.9e-4"),
        (9.97e-5, "1.0e-4"),
        (1.4536675772573553e-09, "1.5e-9"),
        (0.0, "0"),
    ],
)
def test_p_values_are_written_to_two_digits(value: float | None, shown: str) -> None:
    assert format_p(value) == shown


@pytest.mark.parametrize(
    ("share", "drawn", "shown"),
    [
        *((0.0, 1000, "less than 0.1%"), (0.0, 50, "less than 2%"), (0.0, None, "less than 1%")),
        *((0.0002, 10_000, "0.02%"), (0.004, 1000, "0.4%"), (0.012, 1000, "1%"), (0.366, None, "37%")),
        (1.0, 1000, "100%"),
    ],
)
def test_shares_are_told_as_a_share_of_the_time(share: float, drawn: int | None, shown: str) -> None:
    assert format_share_of_time(share, drawn) == f"{shown} of the time"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((-1.912, 1.908), "full range"),
        ((-1.91, 1.89), "[-1.91, 1.89]"),
        ((0.0, 1.91), "[0.00, 1.91]"),
        ((None, 1.91), "–"),
    ],
)
def test_an_interval_of_all_that_can_be_says_so(ends: tuple[float, float], said: str) -> None:
    assert format_interval(*ends, 1.91) == said
    assert format_interval(*ends) == said.replace("full range", "[-1.91, 1.91]")
    ((text, _),) = make_points([finding("t", low=ends[0], high=ends[1], limit=1.91)])
    assert (said in text) is (ends[0] is not None)


def test_questions_outside_a_declared_family_are_counted_as_exploratory() -> None:
    text = summarize_findings([finding("a"), finding("b", "uncorrected", exploratory=True)])
    assert "1 is exploratory, not in the declared family" in text
    assert "exploratory" not in summarize_findings([finding("a")])


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


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("n", [1, 4, 20])
def test_wide_tables_are_split_and_lose_no_cell(n: int, width: int) -> None:
    columns = [Column(f"c{i}", f"head{i}", "A column.", get=f"cell{{}}x{i}".format) for i in range(n)]
    lines = [line.plain for line in render_table(make_record_table("", columns, range(3)), width)]
    assert max(map(len, lines)) <= width
    cells = {f"cell{row}x{i}" for row in range(3) for i in range(n)}
    assert {*re.findall(r"cell\d+x\d+|head\d+", " ".join(lines))} == cells | {f"head{i}" for i in range(n)}


def test_of_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    columns = [Column(name, name, "A column.", get="cell{}".format) for name in ("one", "two")]
    lines = [line.plain for line in render_table(make_record_table("", columns, range(2000), 30), 80)]
    assert sum("cell" in line for line in lines) == 30
    assert "1,970" in lines[-1]
    assert len(make_record_table("", columns, range(2000)).rows) == 2000


def places(page: str) -> list[float]:
    strips = page[page.index("<details") :]
    return [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)%"', strips)]


def heads(page: str) -> list[tuple[str, str]]:
    return re.findall(r'<summary>(.*?) <span class="soft">([^<]*)<', page)


def test_an_interval_beyond_the_usual_scale_is_drawn_whole() -> None:
    page = str(draw_overview([finding("a", "uncorrected", 1.5, low=0.5, high=2.5)]))
    (low, high) = re.findall(r'x1="([\d.]+)%" x2="([\d.]+)%" [^>]*class="span', page)[0]
    assert (float(low), float(high)) == pytest.approx((50.0 + 48.0 * 0.2, 98.0))


def test_findings_of_several_units_have_figures_of_their_own() -> None:
    page = str(draw_overview([finding("a", effect=1.0), finding("b", effect=12.0, unit="score")]))
    assert page.count('class="effects numbered"') == 2
    assert places(page.split("</figure>")[0] + "</figure>") == pytest.approx([74.0])


def test_of_very_many_models_marks_share_a_lane_and_nothing_is_said_of_intervals() -> None:
    many = [finding("a", "uncorrected", value / 10, model=f"m{value}", low=0.0, high=0.1) for value in range(-7, 8)]
    page = str(draw_overview(many))
    assert 'class="span' not in page
    assert "interval" not in page
    assert "significant on 0 of 15 models; median 0.00, from -0.70 to 0.70" in page
