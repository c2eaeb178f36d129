"""Tables in no notation: their numbers are those of the records, their marks and notes follow from them."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest
from tests.results.made_runs import as_by_text, as_by_word, as_refused, d_span, with_rows
from tests.studies.associations.publish_runs import (
    changed,
    measured_in_contexts,
    measured_in_words,
    on_models,
    with_first,
)

from biassay.errors import UsageError
from biassay.reporting.document import Cell, PaperTable
from biassay.reporting.formats import format_decimal, format_p
from biassay.runs.run import Run
from biassay.studies.associations.results import PAPER_COLUMNS
from biassay.studies.associations.signs import format_fixed_words_p, format_published_p
from biassay.studies.associations.tables import associations_table, nine_columns, pooled_table

PAPERS = tuple(column.name for column in PAPER_COLUMNS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"), protocol="may2019")


@pytest.fixture(scope="module")
def in_contexts() -> Run:
    return measured_in_contexts()


def by_test(table: PaperTable) -> dict[str, tuple[Cell, ...]]:
    return {row.stub[0]: row.cells for row in table.rows}


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """Each p-value times the number of those at least as large, and no smaller than one before it."""
    adjusted, largest = {}, 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - place)))
        adjusted[name] = largest
    return adjusted


def test_numbers_and_stars_are_those_of_the_crossed_test(run: Run) -> None:
    table = associations_table(run)
    assert table.models[0].columns == ("d", "95%", "p", "p (these)")
    cells = by_test(table)
    assert set(cells) == {r.test for r in run.results}
    people = {r.test: r.p_value for r in run.results if r.about != "method" and r.p_value is not None}
    corrected = holm(people)
    seen = set()
    for r in run.results:
        if r.status == "skipped":
            assert cells[r.test] == (Cell("–"),) * 4
            continue
        assert None not in (r.effect_size, r.ci_low, r.ci_high, r.p_value, r.fixed_words_p_value)
        d, interval, p, by_word = cells[r.test]
        assert (d, interval) == (Cell(f"{r.effect_size:.2f}"), Cell(d_span(r.ci_low, r.ci_high, r.num_words)))
        stars = (r.p_value <= 0.05) + (corrected.get(r.test, 1.0) <= 0.05)  # type: ignore[operator]
        assert p == Cell(format_p(r.p_value), "*" * stars)
        assert by_word == Cell(format_fixed_words_p(r))
        seen.add(p.mark)
    assert seen == {"", "*", "**"}


def test_under_the_papers_protocol_effect_sizes_are_by_text(papers: Run) -> None:
    table = associations_table(papers)
    assert table.models[0].columns == ("",)
    corrected = holm({r.test: r.p_value for r in papers.results if r.p_value is not None})
    seen = set()
    for r in papers.results:
        (cell,) = by_test(table)[r.test]
        if r.p_value is None:
            assert cell == Cell("–")
            continue
        stars = (r.p_value <= 0.01) + (corrected[r.test] <= 0.01)
        assert cell == Cell(f"{r.effect_size:.2f}", "*" * stars)
        seen.add(cell.mark)
    assert seen == {"", "*", "**"}


def test_what_has_too_few_words_for_the_crossed_test_is_marked(run: Run) -> None:
    few = with_first(run, p_value=None, ci_low=None, ci_high=None)
    table = associations_table(few)
    first = by_test(table)[run.results[0].test]
    assert first[1:3] == (Cell("–"), Cell("–", "‡"))
    assert "‡" in table.caption
    assert "‡" not in associations_table(run).caption


def test_bleached_sentences_stand_under_their_words_and_unbleached_by_themselves(run: Run) -> None:
    table = associations_table(run)
    groups = {group.title: [row.stub for row in group.rows] for group in table.groups}
    assert groups["Male or female names, career or family"] == [("weat6", "word"), ("sent-weat6", "sent")]
    assert len(table.groups) == len(groups)
    contexts = dict(row.stub for row in table.rows)
    kinds = {"none": "word", "bleached": "sent", "unbleached": "sent (u)"}
    assert contexts == {r.test: kinds[str(r.template)] for r in run.results}
    assert set(contexts.values()) == set(kinds.values())
    for r in run.results:
        if r.template == "unbleached":
            assert groups[r.title] == [(r.test, "sent (u)")]


@pytest.mark.parametrize("template", ["other", "given", None])
def test_sentences_of_other_kinds_are_called_sentences(run: Run, template: str | None) -> None:
    contexts = {row.stub[1] for row in associations_table(changed(run, template=template)).rows}
    assert contexts == {"word", "sentences"}


def test_the_caption_has_the_numbers_that_it_needs(run: Run, papers: Run) -> None:
    """Level, family and its size in questions, without sanity checks and other forms."""
    caption = associations_table(run).caption
    people = [r for r in run.results if r.p_value is not None and r.about != "method"]
    family = len({r.asked_question for r in people})
    assert 0 < family < len(people) < sum(r.p_value is not None for r in run.results)
    assert {"0.05", str(family)} <= set(re.findall(r"[\d.]*\d", caption))
    by_text = associations_table(papers).caption
    assert {"0.01", str(sum(r.p_value is not None for r in papers.results))} <= set(re.findall(r"[\d.]*\d", by_text))
    assert ("may2019" in by_text, "may2019" in caption) == (True, False)
    running = with_rows(run, run.results, status="running")
    assert associations_table(running).caption != caption


def test_p_values_are_called_exact_only_where_their_records_say_so(run: Run, in_contexts: Run) -> None:
    for measured in (run, in_contexts):
        assert {r.fixed_words_route for r in measured.results} <= {"enumeration", "counting", None}
        assert " exact" in associations_table(measured).caption
        approximate = with_first(measured, fixed_words_route="saddle-point")
        assert "exact" not in associations_table(approximate).caption
        assert "relative error of 0.1%" in associations_table(approximate).caption


def test_what_has_no_crossed_test_is_marked_and_claims_nothing(run: Run) -> None:
    """Where words are not known: the effect by text, without stars."""
    unknown = as_by_text(run.results[0], effect_size=-1.234, p_value=1e-9, log10_p_value=-9.0)
    table = associations_table(with_rows(run, (unknown, *run.results[1:])))
    first = by_test(table)[run.results[0].test]
    assert first == (Cell("-1.23", "†"), Cell("–"), Cell("1.0e-9"), Cell("–"))
    assert any(note.startswith("†") for note in table.notes)
    assert not any(note.startswith("†") for note in associations_table(run).notes)


def test_a_run_without_any_crossed_test_leads_by_word(run: Run) -> None:
    measured = [r for r in run.results if r.status == "measured"]
    older = with_rows(run, map(as_by_word, measured))
    table = associations_table(older)
    assert table.models[0].columns == ("d", "p (these)")
    for r in older.results:
        d, p = by_test(table)[r.test]
        assert (d.text, p.text) == (format_decimal(r.effect_size), format_fixed_words_p(r))
        assert p.mark.count("*") == (r.p_value <= 0.05) + bool(r.significant)


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "inf"), (-math.inf, "-inf"), (-0.001, "0.00"), (None, "–")]
)
def test_what_is_no_number_is_shown_as_such(value: float | None, text: str, run: Run) -> None:
    assert format_decimal(value) == text
    if value is not None:
        table = associations_table(with_first(run, effect_size=value))
        assert by_test(table)[run.results[0].test][0].text == text


def test_refused_tests_are_named_below_the_table(run: Run) -> None:
    refused = [r.test for r in run.results if r.status == "skipped"]
    assert refused
    assert f"– not measured on glove: {', '.join(refused)}." in associations_table(run).notes
    nothing = with_rows(run, tuple(map(as_refused, run.results)))
    assert {cell for row in associations_table(nothing).rows for cell in row.cells} == {Cell("–")}


def test_a_test_that_is_missing_for_a_model_is_blank(run: Run) -> None:
    two = on_models(run, ("one", "two"))
    table = associations_table(with_rows(two, two.results[:-1]))
    assert table.models[0].title == "one"
    assert by_test(table)[run.results[-1].test][4:] == (Cell(""),) * 4
    assert any(note.startswith("A blank cell") for note in table.notes)
    assert not any(note.startswith("A blank cell") for note in associations_table(two).notes)


def test_models_with_long_names_are_numbered(run: Run) -> None:
    table = associations_table(on_models(run, ("short", "y" * 300)))
    assert [span.title for span in table.models] == ["short", "Model 2"]
    assert f"Model 2: {'y' * 300}." in table.notes


def test_pooled_effects_are_of_runs_over_contexts(run: Run) -> None:
    with pytest.raises(UsageError, match="use associations_table"):
        pooled_table(run)


def test_over_contexts_the_crossed_test_leads_too(in_contexts: Run) -> None:
    table = associations_table(in_contexts)
    assert [span.columns for span in table.models] == [("d", "95%", "p", "p (these)")] * 2
    for place, model in enumerate(("one", "two")):
        for r in (r for r in in_contexts.results if r.model == model and r.status == "measured"):
            d, interval, p, _ = by_test(table)[r.test][4 * place : 4 * place + 4]
            assert d.text == f"{r.effect_size:z.2f}"
            assert interval.text == d_span(r.ci_low, r.ci_high, r.num_words)
            assert p.text == format_p(r.p_value)


def test_pooled_effects_are_those_of_the_results(in_contexts: Run) -> None:
    table = pooled_table(in_contexts)
    assert [span.columns for span in table.models] == [("d", "p")] * 2
    assert [span.title for span in table.models] == ["one", "two"]
    rows = by_test(table)
    measured = {r.test: r.title for r in in_contexts.results if r.status == "measured"}
    assert list(rows) == [f"{test}: {title}" for test, title in measured.items()]
    assert measured.keys() < {r.test for r in in_contexts.results}
    shades = set()
    for place, model in enumerate(("one", "two")):
        for r in (r for r in in_contexts.results if r.model == model):
            if r.status == "skipped":
                continue
            d, p = rows[f"{r.test}: {r.title}"][2 * place : 2 * place + 2]
            assert r.pooled_effect_size is not None
            assert d.text == f"{r.pooled_effect_size:z.2f}"
            assert d.shade == sum(abs(r.pooled_effect_size) >= size for size in (0.2, 0.5, 0.8))
            shades.add(d.shade)
            assert p == Cell(format_published_p(r))
    assert len(shades) > 1
    assert "120" in re.findall(r"\d+", table.caption)


def test_what_one_model_was_measured_with_has_a_row_for_all(in_contexts: Run) -> None:
    """A row is left out where no model has a number; which tests are refused stands below."""
    results = tuple(as_refused(r) if (r.model, r.test) == ("one", "C9") else r for r in in_contexts.results)
    table = pooled_table(with_rows(in_contexts, results))
    cells = next(cells for stub, cells in by_test(table).items() if stub.startswith("C9: "))
    assert cells[:2] == (Cell("–"),) * 2
    assert Cell("–") not in cells[2:]
    assert "– not measured on one: C9, C1." in table.notes
    assert "– not measured on two: C1." in table.notes


def test_the_nine_columns_are_the_papers_and_hold_the_results(run: Run) -> None:
    nasty = with_first(run, model="a\tb\nc", sentences_p_value=math.nan)
    rows = list(csv.DictReader(io.StringIO(nine_columns(nasty)), delimiter="\t"))
    assert tuple(rows[0]) == PAPERS
    assert len(rows) == len(run.results)
    assert rows[0]["model"] == "a b c"
    assert rows[0]["p_value"] == "nan"
    for row, r in zip(rows[1:], run.results[1:], strict=True):
        assert row["test"] == r.test
        for name in ("p_value", "effect_size"):
            value = getattr(r.published, name)
            assert row[name] == "" if value is None else float(row[name]) == value
        assert [int(row[name]) for name in PAPERS[5:]] == [getattr(r, name) for name in PAPERS[5:]]
    assert nine_columns(with_rows(run, ())) == "\t".join(PAPERS) + "\n"
