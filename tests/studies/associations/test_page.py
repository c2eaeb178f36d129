"""Reports of runs over texts and over contexts: numbers, sections, and what they claim."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reporting.pages import Page
from tests.results.made_runs import altered, as_refused, d_span, ordered, with_rows
from tests.studies.associations.publish_runs import changed, measured_in_contexts
from tests.studies.showing import printed

import biassay
from biassay.reporting.document import Heading, Report, Table
from biassay.results.run_data import RunGroup
from biassay.runs.reports import get_presenter, render_report
from biassay.runs.run import Run
from biassay.studies.associations.findings import (
    format_fixed_words_p,
    format_main_p,
    format_published_p,
    list_lost_words,
)
from biassay.studies.associations.paper import methods_sentences
from biassay.studies.associations.report import RunView, make_report
from biassay.studies.associations.results import AssociationRecord
from biassay.studies.registry import get_study


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
    always = ["At a glance", "Findings", "All tests", "Words", "Methods and provenance"]
    assert Page(render_report(measured)).headings() == always
    assert list_headings(measured) == ["Skipped tests and words", "All numbers"]
    whole = (r for r in measured.results if r.status == "measured" and not any(r.oov_words.values()))
    assert list_headings(with_rows(measured, whole)) == ["All numbers"]
    wordless = changed(measured, associations={})
    assert Page(render_report(wordless)).headings() == [name for name in always if name != "Words"]


def as_model(run: Run, name: str) -> tuple[AssociationRecord, ...]:
    return tuple(altered(r, model=name) for r in run.results)


def test_words_that_were_lost_stand_in_the_terminal(measured: Run) -> None:
    lost = {w for r in measured.results if r.status == "measured" for words in r.oov_words.values() for w in words}
    assert lost
    assert lost <= set(re.findall(r"\w+", printed(measured, everything=True)))
    one = altered(measured.results[0], oov_words={"X": ("a1", "b1"), "Y": (), "A": ("c1",), "B": ()})
    rows = tuple(altered(one, test=f"t{i}") for i in range(8))
    assert ["b1" in printed(with_rows(measured, rows[:n]), everything=True) for n in (1, 6, 8)] == [True] * 3
    for rest in (altered(one, oov_words={}), as_refused(one)):
        assert list_lost_words(with_rows(measured, (rest,))) == []


def test_every_test_over_all_models_is_counted(measured: Run) -> None:
    made = with_rows(measured, tuple(r for i in range(5) for r in as_model(measured, f"m{i}")))
    table = table_below(made, "Every test over all models")
    rows = {row.stub[0]: [cell.text for cell in row.cells] for row in table.rows}
    for r in measured.results:
        effects = "–" if r.effect_size is None else ", ".join([f"{r.effect_size:.2f}"] * 3)
        own = [one for one in made.results if one.test == r.test]
        counts = [sum(one.evidence == name for one in own) for name in ("significant", "uncorrected", "not_testable")]
        assert rows[r.test] == [*map(str, (5 * (r.status == "measured"), *counts)), effects]


@pytest.fixture(scope="module")
def run() -> Run:
    return measured_in_contexts()


def test_the_numbers_over_contexts_are_those_of_the_results(run: Run) -> None:
    page = Page(render_report(run))
    first, heads, *rows = page.table("All tests")
    assert first == ["Test", "Claim", "one", "two"]
    assert len(heads) == 8
    by_test = {row[0]: row[2:] for row in rows if len(row) > 1}
    assert list(by_test) == ["C6", "C10", "C9", "C1"]  # by topic
    assert sorted(r.status for r in run.results) == ["measured"] * 6 + ["skipped"] * 2
    for r in run.results:
        shown = by_test[r.test][4 * (r.model == "two") :][:4]
        if r.status == "skipped":
            assert shown == ["skipped", "–", "–", "–"]
        else:
            interval = d_span(r.ci_low, r.ci_high, r.num_words)
            assert shown == [f"{r.effect_size:.2f}", interval, format_main_p(r), format_fixed_words_p(r)]


def test_no_column_and_no_report_shows_q_or_i_squared(run: Run) -> None:
    """Both grow with the number of samples, so they describe the sampling and not the model."""
    page = render_report(run)
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


GERMAN: dict[str, Any] = {
    "name": "berufe",
    "X": ["mann", "bruder", "vater", "sohn"],
    "Y": ["frau", "schwester", "mutter", "tochter"],
    "A": ["beruf", "gehalt", "karriere", "firma"],
    "B": ["familie", "haus", "kind", "hochzeit"],
}


class Hashed:
    """Any word has a vector."""

    def encode(self, texts: Any) -> Any:
        return np.array([np.random.default_rng(sum(map(ord, text))).normal(size=16) for text in texts])


@pytest.mark.parametrize(
    ("language", "drawn"), [(None, False), ("de", False), ("zh", False), ("en", True), ("en-GB", True)]
)
def test_only_tests_that_state_english_have_a_random_baseline(
    language: str | None, drawn: bool, tmp_path: Path
) -> None:
    test = GERMAN | ({} if language is None else {"language": language})
    run = biassay.run({"m": Hashed()}, test, cache=tmp_path)
    (row,) = run.results
    assert (row.share_random is not None, row.language) == (drawn, language)
    text = " ".join(printed(run, everything=True).split())
    assert ("no random baseline" in text) is not drawn
    assert drawn or "of the time" not in text + render_report(run)


@pytest.mark.parametrize("protocol", ["may2019", "caliskan2017"])
def test_under_the_papers_protocols_nothing_speaks_of_other_words(protocol: str, tmp_path: Path) -> None:
    """Their p-values are about these texts only; d is large in most of these tests."""
    run = biassay.run("glove", ["weat3", "sent-weat3", "weat6", "weat8", "weat9"], protocol=protocol, cache=tmp_path)
    methods = " ".join(one.text for one in methods_sentences(run, ()))
    card = get_presenter("associations").card(run, "glove")
    shown = " ".join(printed(run, everything=True).split())
    told = [shown, render_report(run), methods, *card.opening, *card.findings, *card.limits, str(run.findings())]
    assert [text for text in told if "other words" in text] == []
    assert {row.share_random for row in run.results} == {None}
