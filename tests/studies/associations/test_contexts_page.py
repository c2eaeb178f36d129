"""The report of a run over contexts: numbers, figures and escaping."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.reporting.pages import Page
from tests.results.made_runs import d_span
from tests.studies.associations.publish_runs import measured_in_contexts

from biassay.runs.reports import write_report
from biassay.runs.run import Run

LABELS = ("one", "two")


@pytest.fixture(scope="module")
def run() -> Run:
    return measured_in_contexts()


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
