"""The page and the table a person reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.reporting.pages import Page
from tests.results.made_runs import altered, as_refused, ordered, with_rows
from tests.studies.associations.publish_runs import changed
from tests.studies.showing import printed

import biassay
from biassay.reporting.document import Heading, Report, Table
from biassay.results.run_data import RunGroup
from biassay.runs.reports import render_report
from biassay.runs.run import Run
from biassay.studies.associations.diagnostics import list_lost_words
from biassay.studies.associations.findings import format_main_p, format_published_p
from biassay.studies.associations.report import RunView, make_report
from biassay.studies.associations.results import AssociationRecord

ONLY = "Small p for these words only"


def test_the_page_opens_without_a_network(page: Page) -> None:
    assert page.anchors[0] == "main"
    assert "default-src 'none'" in page.policy
    assert not re.search(r"https?://|//\w+\.", page.source)


def list_headings(run: Run) -> list[str]:
    """List the headings within the section on all tests."""
    (tests,) = (section for section in report_of(run).sections if section.name == "tests")
    return [block.text for block in tests.blocks if isinstance(block, Heading)]


def report_of(run: Run) -> Report:
    return make_report(RunView(RunGroup(run, {"one": run})))


def table_below(run: Run, heading: str = "") -> Table:
    """Return the first table of the section on all tests below a heading."""
    (tests,) = (section for section in report_of(run).sections if section.name == "tests")
    names = [block.text if isinstance(block, Heading) else "" for block in tests.blocks]
    start = names.index(heading) if heading else 0
    return next(block for block in tests.blocks[start:] if isinstance(block, Table))


def told(data: dict[str, Any], row: list[Any]) -> dict[str, str]:
    return dict(zip([label for label, _ in data["columns"]], row[4:], strict=True))


def test_under_the_papers_protocols_numbers_by_text_lead(tmp_path: Path) -> None:
    run = biassay.run("glove", tests=["weat6", "sent-weat6", "weat2"], protocol="may2019", cache=tmp_path)
    data = Page(render_report(run)).data["texts"]
    by_test = {row.stub[0]: [f"{cell.text}{cell.mark}" for cell in row.cells] for row in table_below(run).rows}
    for row, r in zip(data["rows"], ordered(run), strict=True):
        cells = told(data, row)
        assert r.effect_size is not None
        assert next(iter(cells)) == "sentence-level effect"
        assert cells["sentence-level effect"] == f"{r.effect_size:.2f}"
        assert cells["sentence-level p"] == format_main_p(r)
        assert cells["sentence-level p"].rstrip("*") == format_published_p(r)
        assert cells["d"] == f"{r.crossed_effect_size:.2f}"
        assert cells["d, 99%"] == f"[{r.crossed_ci_low:.2f}, {r.crossed_ci_high:.2f}]"
        assert by_test[r.test] == [f"{r.effect_size:.2f}", format_main_p(r)]


def test_refusals_say_why_on_the_page_and_in_the_terminal(measured: Run, page: Page) -> None:
    refused = [r for r in measured.results if r.reason]
    assert refused
    for shown in (page.text, " ".join(printed(measured, everything=True).split())):
        for r in refused:
            assert " ".join(str(r.reason).split()) in shown


def test_sections_appear_only_with_data(measured: Run) -> None:
    first, *rest = measured.results
    measured = with_rows(measured, (altered(first, p_value=0.2), *rest))
    always = ["At a glance", "Findings", "All tests", "Words", "Methods and provenance"]
    assert Page(render_report(measured)).headings() == always
    concerned = {
        ONLY: [r for r in measured.results if (r.fixed_words_p_value or 1.0) <= 0.05 < (r.p_value or 0.0)],
        "Skipped": [r for r in measured.results if r.status != "measured"],
        "Out-of-vocabulary words": [r for r in measured.results if any(r.oov_words.values())],
    }
    assert all(concerned.values())
    assert list_headings(measured) == [*concerned, "All numbers"]
    for name, rows in concerned.items():
        without = with_rows(measured, tuple(r for r in measured.results if r not in rows))
        assert without.results
        assert name not in list_headings(without)
    wordless = changed(measured, associations={})
    assert Page(render_report(wordless)).headings() == [name for name in always if name != "Words"]


def as_model(run: Run, name: str) -> tuple[AssociationRecord, ...]:
    return tuple(altered(r, model=name) for r in run.results)


def test_every_test_over_all_models_is_counted(measured: Run) -> None:
    results: list[Any] = [r for i in range(5) for r in as_model(measured, f"m{i}")]
    results[0] = altered(results[0], effect_size=1.91, p_value=None)
    made = with_rows(measured, tuple(results))
    results = list(made.results)
    rows = {row.stub[0]: row for row in table_below(made, "Every test over all models").rows}
    for r in measured.results:
        own = [one for one in results if one.test == r.test and one.effect_size is not None]
        sizes = sorted(one.effect_size or 0.0 for one in own)
        found = [one for one in own if one.p_value is not None and one.p_value <= one.alpha]
        corrected = [one for one in found if (one.p_adjusted or 1.0) <= one.alpha and one.about != "method"]
        few = [one for one in own if one.p_value is None]
        effects = ", ".join(f"{size:.2f}" for size in (sizes[0], sizes[2], sizes[4])) if sizes else "–"
        counts = (len(own), len(corrected), len(found) - len(corrected), len(few))
        assert [cell.text for cell in rows[r.test].cells] == [*map(str, counts), effects]
    few_models = with_rows(measured, tuple(r for i in range(3) for r in as_model(measured, f"{i}")))
    assert "Every test over all models" not in list_headings(few_models)


def test_words_that_were_lost_stand_in_the_terminal(measured: Run) -> None:
    lost = {w for r in measured.results if r.status == "measured" for words in r.oov_words.values() for w in words}
    assert lost
    assert lost <= set(re.findall(r"\w+", printed(measured, everything=True)))
    one = altered(measured.results[0], oov_words={"X": ("a1", "b1"), "Y": (), "A": ("c1",), "B": ()})
    rows = tuple(altered(one, test=f"t{i}") for i in range(8))
    assert ["b1" in printed(with_rows(measured, rows[:n]), everything=True) for n in (1, 6, 8)] == [True] * 3
    for rest in (altered(one, oov_words={}), as_refused(one)):
        assert list_lost_words(with_rows(measured, (rest,))) == []
