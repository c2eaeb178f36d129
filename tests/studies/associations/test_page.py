"""The page and the table a person reads."""

from __future__ import annotations

import dataclasses
import re

import pytest
from tests.pages.pages import Page
from tests.results.made_runs import as_refused, with_rows
from tests.studies.associations.publish_runs import changed
from tests.studies.showing import page_of, printed

from biassay.runs.run import Run
from biassay.runs.showing import render_report
from biassay.studies.associations.intervals import interval_of
from biassay.studies.associations.marks import mark_of, p_by_text, p_by_word
from biassay.studies.associations.records import Result
from biassay.studies.associations.words_lost import lost_lines


def test_the_page_opens_without_a_network(page: Page) -> None:
    assert page.anchors[0] == "main"
    assert "default-src 'none'" in page.policy
    assert not re.search(r"https?://|//\w+\.", page.source)


def test_the_way_through_the_page_names_its_sections(page: Page) -> None:
    assert page.links == ["To the results", *page.headings()]
    assert len(page.anchors) == len(set(page.anchors))


def test_the_numbers_of_the_script_are_those_of_the_results(measured: Run, page: Page) -> None:
    data = page.data["texts"]
    assert data["models"] == ["glove"]
    assert [test[:2] for test in data["tests"]] == [[r.test, r.title] for r in measured.results]
    assert data["reasons"] == {str(i): r.reason for i, r in enumerate(measured.results) if r.reason}
    for place, (row, r) in enumerate(zip(data["rows"], measured.results, strict=True)):
        assert row[:4] == [0, place, mark_of(r, "word"), mark_of(r, "text")]
        if r.effect_size is None:
            assert row[4:] == [r.status]
            continue
        told = dict(zip([label for label, _ in data["columns"]], row[4:], strict=True))
        found = interval_of(r)
        assert found is not None
        assert told["effect"] == f"{r.effect_size:.2f}"
        assert told["effect by word"] == f"{r.effect_size_by_word:.2f}"
        assert told["95% over words"] == f"{found.low:.2f} to {found.high:.2f}"
        for name, p in (("p by text", r.p_value), ("p by word", r.p_value_by_word)):
            assert float(told[name].rstrip("*‡")) == pytest.approx(p, rel=0.05, abs=0.0005)
        assert float(told["p by word, Holm"]) == pytest.approx(r.p_value_by_word_holm, rel=0.05, abs=0.0005)


def test_without_the_library_that_draws_the_page_says_how_to_get_figures(
    measured: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("biassay.pages.section.can_draw", lambda: False)
    page = Page(render_report(measured))
    assert page.drawings == []
    assert "svg" not in page.tags
    assert 'pip install "biassay[figures]"' in page.text
    assert "Effect sizes with their intervals" in page.headings()


def test_the_numbers_on_the_page_and_in_the_terminal_are_those_of_the_results(measured: Run, page: Page) -> None:
    lines = printed(measured).splitlines()
    on_page = {row[0]: row[1:] for row in page.table("All tests")[2:]}
    for r in measured.results:
        row = next(line for line in lines if re.match(rf"│ {re.escape(r.test)} ", line))
        cells = [cell.strip() for cell in row.strip("│").split("│")]
        assert cells[1:] == on_page[f"{r.test} {r.title}"]
        if r.effect_size is None:
            assert cells[1:] == [r.status, "–", "–"]
        else:
            assert cells[1] == f"{r.effect_size:.2f}"
            assert cells[2] == p_by_text(r)
            assert cells[3] == p_by_word(r)


def test_refusals_say_why_on_the_page_and_in_the_terminal(measured: Run, page: Page) -> None:
    refused = [r for r in measured.results if r.reason]
    assert refused
    for shown in (page.text, " ".join(printed(measured).split())):
        for r in refused:
            assert " ".join(str(r.reason).split()) in shown


def test_sections_stand_only_where_there_is_data(measured: Run, page: Page) -> None:
    always = ["In short", "All tests", "Significance at a glance", "All numbers", "How it was made"]
    of_words = ["Effect sizes with their intervals", "Which words an effect comes from"]
    sections = {
        "Where sentences and words disagree": [
            r for r in measured.results if r.significant and r.significant_by_word is False
        ],
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
    assert "Effect sizes with their intervals" not in page.headings()
    assert page.drawings == []
    assert printed(run).count("too many words") == len(run.results)


def as_model(run: Run, name: str) -> tuple[Result, ...]:
    return tuple(dataclasses.replace(r, model=name) for r in run.results)


def test_every_test_over_all_models_is_counted(measured: Run) -> None:
    results = [r for i in range(5) for r in as_model(measured, f"m{i}")]
    nothing = {"significant_by_word": False, "significant_by_word_holm": False, "p_floor_by_word": 0.0}
    results[0] = dataclasses.replace(results[0], effect_size=1.91, **nothing)
    page = Page(render_report(with_rows(measured, tuple(results))))
    _, *rows = page.table("Every test over all models")
    for row, r in zip(rows, measured.results, strict=True):
        own = [one for one in results if one.test == r.test and one.effect_size is not None]
        sizes = sorted(one.effect_size for one in own)
        found = [one for one in own if one.significant_by_word]
        few = [one for one in own if not one.significant_by_word and (one.p_floor_by_word or 0.0) > one.alpha]
        corrected = sum(bool(one.significant_by_word_holm) for one in found)
        told = ", ".join(f"{size:.2f}" for size in (sizes[0], sizes[2], sizes[4])) if sizes else "–"
        assert row == [f"{r.test} {r.title}", *map(str, (len(own), len(found), corrected, len(few))), told]
    without = Page(render_report(with_rows(measured, tuple(r for i in range(3) for r in as_model(measured, f"{i}")))))
    assert "Every test over all models" not in without.headings()


def test_of_many_models_the_tables_side_by_side_are_left_out(measured: Run) -> None:
    many = with_rows(measured, tuple(r for i in range(13) for r in as_model(measured, f"m{i}")))
    page = Page(render_report(many))
    assert not {"All tests", "Effect sizes with their intervals"} & set(page.headings())
    assert len(page.data["texts"]["rows"]) == len(many.results)


def test_words_that_were_lost_stand_in_the_terminal(measured: Run) -> None:
    lost = {w for r in measured.results if r.status == "measured" for words in r.lost.values() for w in words}
    assert lost
    assert lost <= set(re.findall(r"\w+", printed(measured)))
    one = dataclasses.replace(measured.results[0], lost={"X": ("a1", "b1"), "Y": (), "A": ("c1",), "B": ()})
    rows = tuple(dataclasses.replace(one, test=f"t{i}") for i in range(8))
    assert [printed(with_rows(measured, rows[:n])).count("b1") for n in (1, 6, 8)] == [1, 6, 6]
    for rest in (dataclasses.replace(one, lost={}), as_refused(one)):
        assert lost_lines(with_rows(measured, (rest,))) == []


def test_two_runs_are_corrected_together_and_told_apart(measured: Run) -> None:
    half = with_rows(measured, measured.results[:4], run_id="another", status="running", finished=None)
    page = Page(page_of({"one": measured, "two": half}))
    assert page.data["texts"]["models"] == ["glove [one]", "glove [two]"]
    assert f"4 of {len(measured.results)} results" in page.text
    with_p = sum(r.p_value is not None for r in (*measured.results, *measured.results[:4]))
    (told,) = page.explained("Correction")
    assert re.findall(r"\d+", told)[:2] == [str(with_p), "2"]
