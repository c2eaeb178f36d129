"""The report of a run over contexts: numbers, figures and escaping."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.reporting.pages import Drawing, Page
from tests.results.made_runs import d_span
from tests.studies.associations.publish_runs import measured_in_contexts

from biassay.datasets.catalogue import select_tests
from biassay.runs.reports import render_report, write_report
from biassay.runs.run import Run
from biassay.studies.registry import get_study

HOSTILE = "<script>alert(1)</script>"
N = 120
LABELS = ("one", "two")
TESTS = select_tests(["C6", "C9", "C10", "C1"])


@pytest.fixture(scope="module")
def run() -> Run:
    return measured_in_contexts()


@pytest.fixture(scope="module")
def page(run: Run) -> Page:
    return Page(render_report(run))


def is_p(cell: str, value: float) -> bool:
    """Two digits, or three decimals: half a unit in the last place. Of a very small one no more than that it is."""
    if value < 1e-30:
        return cell.rstrip("*") == "<1e-30"
    shown = float(cell.rstrip("*‡"))
    return bool(shown == pytest.approx(value, rel=0.05, abs=0.0005 if value >= 0.001 else 0.0))


def test_the_numbers_on_the_page_are_those_of_results_json(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path)
    page = Page(write_report(run, tmp_path).read_text(encoding="utf-8"))
    results = json.loads(run.to_json())["results"]
    first, heads, *rows = page.table("All tests")
    assert first == ["Test", "Claim", *LABELS]
    assert len(heads) == 8
    by_test = {row[0]: row[2:] for row in rows if len(row) > 1}
    assert list(by_test) == ["C6", "C10", "C9", "C1"]  # by topic
    statuses = []
    for r in results:
        effect, interval, p, by_word = by_test[r["test"]][4 * (r["model"] == "two") :][:4]
        statuses.append(r["status"])
        if r["status"] == "skipped":
            assert (effect, interval, p, by_word) == ("skipped", "–", "–", "–")
            continue
        assert effect == f"{r['effect_size']:.2f}"
        assert interval == d_span(r["ci_low"], r["ci_high"], r["num_words"])
        assert is_p(p, r["p_value"])
        assert p.count("*") == (r["p_value"] <= 0.05) + r["significant"]
        assert is_p(by_word, r["fixed_words_p_value"])
    assert sorted(statuses) == ["measured"] * 6 + ["skipped"] * 2


def test_no_column_and_no_report_shows_q_or_i_squared(run: Run, tmp_path: Path) -> None:
    """Both grow with the number of samples, so they describe the sampling and not the model."""
    run.save(tmp_path)
    page = write_report(run, tmp_path).read_text(encoding="utf-8")
    visible = re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", page, flags=re.S)
    names = [
        column.name.lower() for table in get_study("associations").schema.tables for column in table.get_columns(run)
    ]
    fields = [name.lower() for result in json.loads(run.to_json())["results"] for name in result]
    assert not {"q", "i2", "i_squared", "pooled_q", "heterogeneity"} & {*names, *fields}
    assert "pooled_effect_size" in names
    labels = [label for label, _ in Page(page).data["contexts"]["columns"]]
    assert "pooled effect (CES)" in labels
    for text in (visible, *labels):
        assert not re.search(r"\bQ\b|\bI\s?(²|2|\^2)(?!\w)|Cochran|heterogeneity", text)


def cells_of(page: Page, place: int) -> dict[str, str]:
    """A row of all numbers, by its columns."""
    data = page.data["contexts"]
    return dict(zip([label for label, _ in data["columns"]], data["rows"][place][4:], strict=True))


def distributions(page: Page) -> list[Drawing]:
    return [drawing for drawing in page.drawings if drawing.where[0] == "Variation over contexts"]
