"""The page and the table a person reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.reporting.pages import Page
from tests.results.made_runs import altered, as_refused, with_rows
from tests.studies.associations.publish_runs import changed
from tests.studies.showing import page_of, printed

import biassay
from biassay.reporting.charts.base import PRINT
from biassay.reporting.charts.forest import EVIDENCE_NAMES
from biassay.results.outcomes import Result
from biassay.results.views import RunGroup
from biassay.runs.reports import render_report
from biassay.runs.run import Run
from biassay.studies.associations.diagnostics import list_lost_words
from biassay.studies.associations.report import RunView, forest_figures
from biassay.studies.associations.results import AssociationRecord
from biassay.studies.associations.signs import (
    describe_sides,
    format_fixed_words_p,
    format_main_p,
    format_published_p,
    get_mark,
    make_legend,
)

ONLY = "For these words, not for the concepts"


def test_the_page_opens_without_a_network(page: Page) -> None:
    assert page.anchors[0] == "main"
    assert "default-src 'none'" in page.policy
    assert not re.search(r"https?://|//\w+\.", page.source)


def test_the_way_through_the_page_names_its_sections(page: Page) -> None:
    assert page.links == ["To the results", *page.headings()]
    ways = [anchor for anchor in page.anchors if not anchor.startswith("shape")]
    assert len(ways) == len(set(ways))


def ordered(run: Run) -> list[Result]:
    """As they stand on the page: checks of the method at the end."""
    return [*(r for r in run.results if r.about != "method"), *(r for r in run.results if r.about == "method")]


def told(data: dict[str, Any], row: list[Any]) -> dict[str, str]:
    return dict(zip([label for label, _ in data["columns"]], row[4:], strict=True))


def test_the_numbers_of_the_script_are_those_of_the_results(measured: Run, page: Page) -> None:
    data, rows = page.data["texts"], ordered(measured)
    assert {r.about for r in rows} == {"people", "method"}
    assert data["models"] == ["glove"]
    assert [test[:2] for test in data["tests"]] == [[r.test, r.title] for r in rows]
    assert data["reasons"] == {str(i): r.reason for i, r in enumerate(rows) if r.reason}
    assert sum(count for _, count in data["groups"]) == len(data["columns"])
    for place, (row, r) in enumerate(zip(data["rows"], rows, strict=True)):
        only = (r.fixed_words_p_value or 1.0) <= 0.05 and not (r.p_value or 1.0) <= 0.05
        assert row[:4] == [0, place, get_mark(r), only]
        if r.effect_size is None:
            assert row[4:] == [r.status]
            continue
        cells = told(data, row)
        assert cells["d"] == f"{r.effect_size:.2f}"
        assert cells["95% interval"] == f"{r.ci_low:.2f} to {r.ci_high:.2f}"
        assert cells["D"] == f"{r.cosine_difference:.3f}"
        assert cells["D, 95%"] == f"{r.cosine_ci_low:.3f} to {r.cosine_ci_high:.3f}"
        p_values = {
            "p": r.p_value,
            "p (these words only)": r.fixed_words_p_value,
            "sentence-level p": r.sentences_p_value,
        }
        for name, p in p_values.items():
            assert float(cells[name].rstrip("*‡")) == pytest.approx(p, rel=0.05, abs=0.0005)
        if r.about == "method":
            assert cells["p, corrected"] == "–"
        else:
            assert float(cells["p, corrected"]) == pytest.approx(r.p_adjusted, rel=0.05, abs=0.0005)


def test_under_the_papers_protocols_numbers_by_text_lead(tmp_path: Path) -> None:
    run = biassay.run("glove", tests=["weat6", "sent-weat6", "weat2"], protocol="may2019", cache=tmp_path)
    page = Page(render_report(run))
    data, (_, _, *rows) = page.data["texts"], page.table("All tests")
    by_test = {row[0].split()[-1]: row[1:] for row in rows if len(row) > 1}
    for row, r in zip(data["rows"], ordered(run), strict=True):
        cells = told(data, row)
        assert r.effect_size is not None
        assert next(iter(cells)) == "sentence-level effect"
        assert cells["sentence-level effect"] == f"{r.effect_size:.2f}"
        assert cells["sentence-level p"] == format_main_p(r)
        assert cells["sentence-level p"].rstrip("*") == format_published_p(r)
        assert cells["d"] == f"{r.crossed_effect_size:.2f}"
        assert cells["d, 99%"] == f"{r.crossed_ci_low:.2f} to {r.crossed_ci_high:.2f}"
        assert by_test[r.test] == [f"{r.effect_size:.2f}", format_main_p(r), format_fixed_words_p(r)]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.99])
def test_results_that_hold_for_these_words_only_are_listed(alpha: float, measured: Run) -> None:
    """Those significant by word and not crossed, counted here anew."""
    rows = [
        altered(r, alpha=alpha, p_value=alpha if i % 2 == 0 else alpha + 0.01)
        for i, r in enumerate(r for r in measured.results if r.fixed_words_p_value is not None)
    ]
    page = Page(render_report(with_rows(measured, rows)))
    only = [r.test for r in rows[1::2] if r.alternatives["fixed_words"].p_value <= alpha]
    tests = [r.test for r in ordered(with_rows(measured, rows)) if r.test in only]
    assert [item.split(" on ")[0] for item in page.items if "(these words only)" in item] == tests
    assert (ONLY in page.headings()) == bool(only)


def test_the_first_figure_needs_no_library(measured: Run, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biassay.reporting.document.can_draw", lambda: False)
    strips = Page(render_report(measured)).strips
    assert strips == page.strips
    rows = [r for r in ordered(measured) if r.effect_size is not None]
    topics = list(dict.fromkeys(r.topic for r in rows if r.about == "people"))
    rows.sort(key=lambda r: topics.index(r.topic) if r.about == "people" else len(topics))
    assert [strip.split("\n")[0] for strip in strips] == [f"{r.title} ({r.test})" for r in rows]
    for strip, r in zip(strips, rows, strict=True):
        assert f"{r.ci_low:.2f} to {r.ci_high:.2f}" in strip


def test_the_table_of_all_tests_shows_the_numbers_of_the_results(measured: Run, page: Page) -> None:
    _, heads, *rows = page.table("All tests")
    assert len(heads) == 3
    people = [r for r in measured.results if r.about != "method"]
    assert [len(row) for row in rows].index(1) == len(people)  # the title of the checks
    for row, r in zip([row for row in rows if len(row) > 1], ordered(measured), strict=True):
        assert " ".join(row[0].split()) == f"{r.title} {r.test}"
        if r.effect_size is None:
            assert row[1:] == [r.status, "–", "–"]
        else:
            interval = f"{r.ci_low:.2f} to {r.ci_high:.2f}"
            assert row[1:] == [f"{r.effect_size:.2f} {interval}", format_main_p(r), format_fixed_words_p(r)]


def test_the_figure_shows_effects_with_their_crossed_intervals(measured: Run) -> None:
    ((label, make),) = forest_figures(RunView(RunGroup(measured, {"one": measured})))
    rows = [r for r in ordered(measured) if r.effect_size is not None]
    assert label == "glove"
    for held, r in zip(make(PRINT).spec["data"]["values"], rows, strict=True):
        assert (held["effect"], held["low"], held["high"]) == (r.effect_size, r.ci_low, r.ci_high)
        assert held["found"] == EVIDENCE_NAMES[(r.p_value <= 0.05) + bool(r.significant)]
        assert r.test in held["row"]
        assert held["row"].startswith(r.title[:40])
        assert held["row"].endswith(", check)") == (r.about == "method")


def test_refusals_say_why_on_the_page_and_in_the_terminal(measured: Run, page: Page) -> None:
    refused = [r for r in measured.results if r.reason]
    assert refused
    for shown in (page.text, " ".join(printed(measured, everything=True).split())):
        for r in refused:
            assert " ".join(str(r.reason).split()) in shown


def test_sections_stand_only_where_there_is_data(measured: Run) -> None:
    first, *rest = measured.results
    measured = with_rows(measured, (altered(first, p_value=0.2), *rest))
    page = Page(render_report(measured))
    always = ["At a glance", "In words", "All tests", "All numbers", "How it was made"]
    of_words = ["Which words an effect comes from"]
    sections = {
        ONLY: [r for r in measured.results if (r.fixed_words_p_value or 1.0) <= 0.05 < (r.p_value or 0.0)],
        "Not measured": [r for r in measured.results if r.status != "measured"],
        "Words a model does not know": [r for r in measured.results if any(r.lost.values())],
    }
    assert all(sections.values())
    assert set(page.headings()) == {*always, *of_words, *sections}
    for name, rows in sections.items():
        without = with_rows(measured, tuple(r for r in measured.results if r not in rows))
        assert without.results
        assert name not in Page(render_report(without)).headings()
    plain = [r for r in measured.results if not any(r in rows for rows in sections.values())]
    assert plain
    assert set(Page(render_report(with_rows(measured, tuple(plain)))).headings()) == {*always, *of_words}
    wordless = changed(with_rows(measured, tuple(plain)), associations={})
    headings = Page(render_report(wordless)).headings()
    assert "Which words an effect comes from" not in headings
    assert set(headings) - set(of_words) == set(always)


def test_a_run_with_nothing_but_refusals_is_shown(measured: Run) -> None:
    run = with_rows(measured, tuple(as_refused(r) for r in measured.results))
    page = Page(render_report(run))
    assert "Not measured" in page.headings()
    assert "At a glance" not in page.headings()
    assert page.strips == []
    assert printed(run).count("too many words") == 1  # one reason, said once of all
    assert all(r.test in printed(run, everything=True) for r in run.results)


def as_model(run: Run, name: str) -> tuple[AssociationRecord, ...]:
    return tuple(altered(r, model=name) for r in run.results)


def test_every_test_over_all_models_is_counted(measured: Run) -> None:
    results: list[Any] = [r for i in range(5) for r in as_model(measured, f"m{i}")]
    results[0] = altered(results[0], effect_size=1.91, p_value=None)
    made = with_rows(measured, tuple(results))
    page, results = Page(render_report(made)), list(made.results)
    _, *rows = page.table("Every test over all models")
    for row, r in zip(rows, ordered(measured), strict=True):
        own = [one for one in results if one.test == r.test and one.effect_size is not None]
        sizes = sorted(one.effect_size or 0.0 for one in own)
        found = [one for one in own if one.p_value is not None and one.p_value <= one.alpha]
        corrected = [one for one in found if (one.p_adjusted or 1.0) <= one.alpha and one.about != "method"]
        few = [one for one in own if one.p_value is None]
        told = ", ".join(f"{size:.2f}" for size in (sizes[0], sizes[2], sizes[4])) if sizes else "–"
        assert [" ".join(row[0].split()), *row[1:]] == [
            f"{r.title} {r.test}",
            *(str(count) for count in (len(own), len(corrected), len(found) - len(corrected), len(few))),
            told,
        ]
    without = Page(render_report(with_rows(measured, tuple(r for i in range(3) for r in as_model(measured, f"{i}")))))
    assert "Every test over all models" not in without.headings()


def test_of_many_models_the_tables_side_by_side_are_left_out(measured: Run) -> None:
    many = with_rows(measured, tuple(r for i in range(13) for r in as_model(measured, f"m{i}")))
    page = Page(render_report(many))
    assert "All tests" not in page.headings()
    assert len(page.strips) == len([r for r in measured.results if r.effect_size is not None])
    assert len(page.data["texts"]["rows"]) == len(many.results)


def test_words_that_were_lost_stand_in_the_terminal(measured: Run) -> None:
    lost = {w for r in measured.results if r.status == "measured" for words in r.lost.values() for w in words}
    assert lost
    assert lost <= set(re.findall(r"\w+", printed(measured)))
    one = altered(measured.results[0], lost={"X": ("a1", "b1"), "Y": (), "A": ("c1",), "B": ()})
    rows = tuple(altered(one, test=f"t{i}") for i in range(8))
    assert [printed(with_rows(measured, rows[:n])).count("b1") for n in (1, 6, 8)] == [1, 1, 1]
    for rest in (altered(one, lost={}), as_refused(one)):
        assert list_lost_words(with_rows(measured, (rest,))) == []


def test_what_signs_mean_stands_below_the_table_and_in_how_it_was_made(measured: Run, page: Page) -> None:
    said = f"{make_legend(ordered(measured), '; ')}; {describe_sides(measured.results)}"
    assert page.explained("Signs") == [said]
    assert page.text.count(said) == 3  # also among the terms, for who reads without a script


def test_two_runs_are_told_apart(measured: Run) -> None:
    half = with_rows(measured, measured.results[:4], run_id="another", status="running", finished=None)
    page = Page(page_of({"one": measured, "two": half}))
    assert page.data["texts"]["models"] == ["glove [one]", "glove [two]"]
    assert f"4 of {len(measured.results)} results" in page.text
