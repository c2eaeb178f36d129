"""Tables in no notation: their numbers are those of the records, their marks and notes follow from them."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest
from tests.results.made_runs import d_span, with_rows
from tests.studies.associations.publish_runs import (
    measured_in_contexts,
    measured_in_words,
    with_first,
)

import biassay
from biassay.errors import UsageError
from biassay.reporting.document import Cell, Table
from biassay.reporting.formats import format_p
from biassay.results.run_data import RunGroup
from biassay.runs.run import Run
from biassay.studies.associations.findings import format_fixed_words_p, format_published_p
from biassay.studies.associations.report import AssociationPresenter, associations_table, pooled_table
from biassay.studies.associations.results import PAPER_COLUMNS


def format_published(run: Run) -> str:
    """Return the file that `biassay report --publish` writes."""
    ((_, _, text),) = AssociationPresenter("", (), lambda _: ()).files([RunGroup(run, {"one": run})])
    return text


PAPERS = tuple(column.name for column in PAPER_COLUMNS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured_in_words(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def in_contexts() -> Run:
    return measured_in_contexts()


def by_test(table: Table) -> dict[str, tuple[Cell, ...]]:
    return {row.stub[0].split(": ")[0]: row.cells for row in table.rows}


def test_numbers_and_stars_are_those_of_the_crossed_test(run: Run) -> None:
    table = associations_table(run)
    assert table.models[0].columns == ("d", "95% CI", "p", "p (these)")
    cells = by_test(table)
    assert set(cells) == {r.test for r in run.results}
    people = {r.test: r.p_value for r in run.results if r.about != "method" and r.p_value is not None}
    corrected = dict(zip(people, biassay.holm(list(people.values()), 0.05).adjusted.tolist(), strict=True))
    seen = set()
    for r in run.results:
        if r.status == "skipped":
            assert cells[r.test] == (Cell("–"),) * 4
            continue
        assert None not in (r.effect_size, r.ci_low, r.ci_high, r.p_value, r.fixed_words_p_value)
        d, interval, p, by_word = cells[r.test]
        assert (d, interval) == (Cell(f"{r.effect_size:.2f}"), Cell(d_span(r.ci_low, r.ci_high, r.num_words)))
        stars = (r.p_value <= 0.05) + (corrected.get(r.test, 1.0) <= 0.05)
        assert p == Cell(format_p(r.p_value), "*" * stars)
        assert by_word == Cell(format_fixed_words_p(r))
        seen.add(p.mark)
    assert seen == {"", "*", "**"}


def test_pooled_effects_are_those_of_the_results(in_contexts: Run) -> None:
    table = pooled_table(in_contexts)
    assert [span.columns for span in table.models] == [("d", "p")] * 2
    assert [span.title for span in table.models] == ["one", "two"]
    rows = by_test(table)
    assert list(rows) == list(dict.fromkeys(r.test for r in in_contexts.results if r.status == "measured"))
    for r in in_contexts.results:
        if r.status == "measured":
            d, p = rows[r.test][2 * (r.model == "two") :][:2]
            shade = sum(abs(r.pooled_effect_size) >= size for size in (0.2, 0.5, 0.8))
            assert (d, p) == (Cell(f"{r.pooled_effect_size:z.2f}", shade=shade), Cell(format_published_p(r)))
    assert "120" in re.findall(r"\d+", table.caption)


def test_the_format_published_results_are_the_papers_and_hold_the_results(run: Run) -> None:
    nasty = with_first(run, model="a\tb\nc", sentences_p_value=math.nan)
    rows = list(csv.DictReader(io.StringIO(format_published(nasty)), delimiter="\t"))
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
    assert format_published(with_rows(run, ())) == "\t".join(PAPERS) + "\n"


def test_pooled_effects_are_of_runs_over_contexts(run: Run) -> None:
    with pytest.raises(UsageError, match="use associations_table"):
        pooled_table(run)
