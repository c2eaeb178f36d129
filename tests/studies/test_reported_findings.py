"""Defects that reports once had: each test fails if its defect returns."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.api_server import no_key  # noqa: F401
from tests.reporting.pages import Page
from tests.results.made_runs import altered, with_rows
from tests.studies.answered_runs import bbq
from tests.studies.showing import page_of, printed

import biassay
from biassay.reporting.document import ColumnSpan, Table
from biassay.reporting.findings import make_statements
from biassay.reporting.formats import format_decimal
from biassay.reporting.markdown import to_markdown
from biassay.runs.reports import render_report
from biassay.runs.run import Run
from biassay.studies.associations import metrics
from biassay.studies.associations.metrics import SetScore


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return biassay.run("glove", tests=["weat1", "weat6", "weat7"], cache=tmp_path_factory.mktemp("cache"))


def by_test(figure: Any) -> dict[str, str]:
    """Return the evidence that a figure shows, by the name of the test in a label."""
    rows = figure.spec["data"]["values"]
    return {row.get("row", row.get("test")).rpartition("(")[2].strip(")").split(",")[0]: row["found"] for row in rows}


@pytest.mark.parametrize("opposite", [False, True])
def test_figures_and_report_draw_sanity_checks_as_checks(opposite: bool, run: Run) -> None:
    rows = [altered(row, effect_size=-1.2) if opposite and row.test == "weat1" else row for row in run.results]
    shown = with_rows(run, rows)
    assert shown.results[0].opposite == opposite
    figures = shown.figures()
    forest, matrix = by_test(figures["forest-texts-1"]), by_test(figures["matrix-texts"])
    assert forest == {"weat1": "sanity check", "weat6": "significant", "weat7": "inconclusive"}
    check = "inconclusive" if opposite else "sanity check passed"
    assert matrix == {"weat1": check, "weat6": "significant", "weat7": "inconclusive"}
    assert re.search(rf"Sanity checks\s+passed: {0 if opposite else 1}/1", Page(render_report(shown)).text)


def test_the_example_of_the_axis_is_the_strongest_finding_of_the_run(run: Run) -> None:
    strongest = next(row for row in run.results if row.test == "weat6")
    reading = (
        f"An effect of {format_decimal(strongest.effect_size)} in weat6 reads: male names are associated with career"
    )
    assert reading in render_report(run)
    other = with_rows(run, [row for row in run.results if row.test != "weat6"])
    page = render_report(other)
    assert "in weat6 reads" not in page
    assert "in weat7 reads: math is associated with male terms, arts with female terms" in page


def test_a_score_of_four_sets_has_a_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def score(X: Any, Y: Any, A: Any, B: Any) -> float:
        return float(np.dot(X.mean(axis=0) - Y.mean(axis=0), A.mean(axis=0) - B.mean(axis=0)))

    monkeypatch.setattr(metrics, "_load_plugin_metrics", lambda: {"own": SetScore("own", "own score", score)})
    run = biassay.run("glove", tests=["weat6"], metric="own", cache=tmp_path / "cache")
    page = run.report(tmp_path / "report.html").read_text(encoding="utf-8")
    effect = run.results[0].effect_size
    assert effect is not None
    assert format_decimal(effect) in page
    assert "metric own" in page
    assert format_decimal(effect) in printed(run)


def test_columns_of_a_markdown_table_have_their_own_names() -> None:
    table = Table("Words.", ("word",), (ColumnSpan("", ("score", "q")), ColumnSpan("glove", ("d",))), ())
    assert "| word | score | q | glove: d |" in to_markdown(table)


@pytest.mark.extras
def test_a_benchmark_score_against_the_stereotype_is_marked(tmp_path: Path) -> None:
    run = bbq(tmp_path, "old", 0)
    first, *others = run.tables["results"]
    outcome = dataclasses.replace(first.outcome, effect_size=-0.5, ci_low=-0.7, ci_high=-0.3, p_value=1e-6)
    tables = {**run.tables, "results": (dataclasses.replace(first, outcome=outcome), *others)}
    turned = dataclasses.replace(run, tables=run.study.finalize_tables(run.manifest.settings, tables))
    assert turned.findings()[0].opposite
    assert "opposite to the expected direction" in page_of({"": turned})
    assert "of them opposite" in printed(turned)
    assert "against the expected direction" in printed(turned)  # in the table of counts


@pytest.mark.parametrize(
    ("change", "large"),
    [
        ({}, True),
        ({"share_random": 0.05}, True),
        ({"share_random": 0.06}, False),
        ({"share_random": None}, False),
        ({"evidence": "uncorrected"}, False),
    ],
)
def test_an_effect_is_large_only_if_significant_and_beyond_what_random_words_reach(
    change: dict[str, Any], large: bool, run: Run
) -> None:
    """d = 1.72 is no reason by itself: with few words, random word sets often reach a d that convention calls large."""
    (finding,) = run["weat6"].findings()
    assert finding.effect > 0.8  # large by convention
    (statement,) = make_statements([dataclasses.replace(finding, **change)])
    assert (", large" in statement.points[0]) is large
