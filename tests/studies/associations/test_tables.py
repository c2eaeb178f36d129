"""Tables in no notation: their numbers are those of the records, their marks and notes follow from them."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any

import pytest
from tests.results.made_runs import as_refused, with_rows, with_settings
from tests.studies.associations.publish_runs import (
    changed,
    measured_in_contexts,
    measured_in_words,
    on_models,
    with_first,
)

from biassay.errors import UsageError
from biassay.pages.formats import decimals
from biassay.pages.publish.layout import Cell, Table
from biassay.runs.run import Run
from biassay.studies.associations.columns import PAPER_COLUMNS
from biassay.studies.associations.marks import p_by_text, p_by_word
from biassay.studies.associations.tables import associations_table, contexts_table, nine_columns

PAPERS = tuple(column.name for column in PAPER_COLUMNS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def in_contexts() -> Run:
    return measured_in_contexts()


def by_test(table: Table) -> dict[str, tuple[Cell, ...]]:
    return {row.stub[0]: row.cells for row in table.rows}


@pytest.mark.parametrize("by", ["word", "text"])
def test_effect_sizes_and_stars_are_those_of_the_results(run: Run, by: Any) -> None:
    cells = by_test(associations_table(run, by))
    assert set(cells) == {r.test for r in run.results}
    seen = set()
    for r in run.results:
        (cell,) = cells[r.test]
        if r.status == "refused":
            assert cell == Cell("–")
            continue
        own = (
            (r.significant, r.significant_holm) if by == "text" else (r.significant_by_word, r.significant_by_word_holm)
        )
        too_few = math.comb(sum(r.num_words[role] for role in "XY"), r.num_words["X"]) < 1 / r.alpha
        size = r.effect_size if by == "text" else r.effect_size_by_word
        assert size is not None
        assert cell == Cell(f"{size:.2f}", "*" * sum(map(bool, own)) + ("‡" if too_few else ""))
        seen.add(cell.mark)
    assert {"", "*", "**", "‡"} <= seen


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


@pytest.mark.parametrize("by", ["word", "text"])
def test_the_caption_has_the_numbers_that_it_needs(run: Run, by: Any) -> None:
    caption = associations_table(run, by).caption
    values = [r.p_value_by_word if by == "word" else r.p_value for r in run.results]
    family = sum(value is not None for value in values)
    assert 0 < family < len(run.results)
    assert str(family) in re.findall(r"\d+", caption)
    assert "0.01" in caption
    other = with_settings(run, protocol="may2019")
    assert ("may2019" in associations_table(other, by).caption) is (by == "text")  # by word there is one way only
    running = with_rows(run, run.results, status="running")
    assert associations_table(running, by).caption != caption


def test_p_values_are_called_exact_only_where_their_records_say_so(run: Run, in_contexts: Run) -> None:
    """Else the largest error that they state is told."""
    for measured, table in ((run, associations_table), (in_contexts, contexts_table)):
        assert {r.p_error_by_word for r in measured.results} == {0.0, None}
        assert " exact" in table(measured).caption
        near = with_first(changed(measured, p_error_by_word=1e-12), p_error_by_word=3.21e-7)
        assert "exact" not in table(near).caption
        assert "relative error of 3.2e-7" in table(near).caption


def test_what_has_no_numbers_by_word_is_shown_by_text_with_a_dagger(run: Run) -> None:
    none: dict[str, Any] = dict.fromkeys(
        ("effect_size_by_word", "p_value_by_word", "significant_by_word", "significant_by_word_holm")
    )
    without = with_first(run, **none, effect_size=-1.234, significant=True)
    table = associations_table(without)
    assert by_test(table)[run.results[0].test] == (Cell("-1.23", "†"),)
    assert any(note.startswith("†") for note in table.notes)
    assert not any(note.startswith("†") for note in associations_table(run).notes)
    assert not any(note.startswith("†") for note in associations_table(without, "text").notes)


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "inf"), (-math.inf, "-inf"), (-0.001, "0.00"), (None, "–")]
)
def test_what_is_no_number_is_shown_as_such(value: float | None, text: str, run: Run) -> None:
    assert decimals(value) == text
    if value is not None:
        table = associations_table(with_first(run, effect_size_by_word=value))
        assert by_test(table)[run.results[0].test][0].text == text


def test_refused_tests_are_named_below_the_table(run: Run) -> None:
    refused = [r.test for r in run.results if r.status == "refused"]
    assert refused
    assert f"– not measured on glove: {', '.join(refused)}." in associations_table(run).notes
    nothing = with_rows(run, tuple(map(as_refused, run.results)))
    assert {cell for row in associations_table(nothing).rows for cell in row.cells} == {Cell("–")}


def test_a_test_that_is_missing_for_a_model_is_blank(run: Run) -> None:
    two = on_models(run, ("one", "two"))
    table = associations_table(with_rows(two, two.results[:-1]))
    assert table.models[0].title == "one"
    assert by_test(table)[run.results[-1].test][1] == Cell("")
    assert any(note.startswith("A blank cell") for note in table.notes)
    assert not any(note.startswith("A blank cell") for note in associations_table(two).notes)


def test_models_with_long_names_are_numbered(run: Run) -> None:
    table = associations_table(on_models(run, ("short", "y" * 300)))
    assert [span.title for span in table.models] == ["short", "Model 2"]
    assert f"Model 2: {'y' * 300}." in table.notes


def test_a_run_of_the_other_kind_is_refused(run: Run, in_contexts: Run) -> None:
    with pytest.raises(UsageError, match="use contexts_table"):
        associations_table(in_contexts)
    with pytest.raises(UsageError, match="use associations_table"):
        contexts_table(run)
    with pytest.raises(UsageError, match="'word' or 'text', got 'sample'"):
        associations_table(run, "sample")  # type: ignore[arg-type]


def test_effects_over_contexts_are_those_of_the_results(in_contexts: Run) -> None:
    table = contexts_table(in_contexts)
    assert [span.columns for span in table.models] == [("d", "p", "p by word")] * 2
    assert [span.title for span in table.models] == ["one (layer=-1)", "two (layer=-1)"]
    rows = by_test(table)
    measured = {r.test: r.title for r in in_contexts.results if r.status == "measured"}
    assert list(rows) == [f"{test}: {title}" for test, title in measured.items()]
    assert measured.keys() < {r.test for r in in_contexts.results}
    shades = set()
    for place, model in enumerate(("one", "two")):
        for r in (r for r in in_contexts.results if r.model == model):
            if r.status == "refused":
                continue
            d, p, by_word = rows[f"{r.test}: {r.title}"][3 * place : 3 * place + 3]
            assert r.effect_size is not None
            assert r.p_value_by_word is not None
            assert r.p_value is not None
            assert d.text == f"{r.effect_size:.2f}".replace("-0.00", "0.00")
            assert d.shade == sum(abs(r.effect_size) >= size for size in (0.2, 0.5, 0.8))
            shades.add(d.shade)
            assert p.text == p_by_text(r).rstrip("*")
            assert by_word.mark == "*" * (bool(r.significant_by_word) + bool(r.significant_by_word_holm))
            assert by_word.text + by_word.mark == p_by_word(r)
    assert len(shades) > 1
    assert {"120", "6"} <= set(re.findall(r"\d+", table.caption))  # samples, and p-values corrected


def test_what_one_model_was_measured_with_has_a_row_for_all(in_contexts: Run) -> None:
    """A row is left out where no model has a number; which tests are refused stands below."""
    results = tuple(as_refused(r) if (r.model, r.test) == ("one", "C9") else r for r in in_contexts.results)
    table = contexts_table(with_rows(in_contexts, results))
    cells = next(cells for stub, cells in by_test(table).items() if stub.startswith("C9: "))
    assert cells[:3] == (Cell("–"),) * 3
    assert Cell("–") not in cells[3:]
    assert "– not measured on one (layer=-1): C9, C1." in table.notes
    assert "– not measured on two (layer=-1): C1." in table.notes


def test_the_nine_columns_are_the_papers_and_hold_the_results(run: Run) -> None:
    nasty = with_first(run, model="a\tb\nc", p_value=math.nan)
    rows = list(csv.DictReader(io.StringIO(nine_columns(nasty)), delimiter="\t"))
    assert tuple(rows[0]) == PAPERS
    assert len(rows) == len(run.results)
    assert rows[0]["model"] == "a b c"
    assert rows[0]["p_value"] == "nan"
    for row, r in zip(rows[1:], run.results[1:], strict=True):
        assert row["test"] == r.test
        for name in ("p_value", "effect_size"):
            value = getattr(r, name)
            assert row[name] == "" if value is None else float(row[name]) == value
        assert [int(row[name]) for name in PAPERS[5:]] == [getattr(r, name) for name in PAPERS[5:]]
    assert nine_columns(with_rows(run, ())) == "\t".join(PAPERS) + "\n"
