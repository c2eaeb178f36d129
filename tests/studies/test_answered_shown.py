"""Word association tests and benchmarks shown: figures, terminal, comparison, gate, paper."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.models.api_server import no_key  # noqa: F401
from tests.studies.answered_runs import asked, bbq
from tests.studies.showing import card_of, page_of, printed, write_all

from biassay.reporting.formats import format_decimal, format_interval, format_p
from biassay.results.outcomes import Outcome
from biassay.results.paired_comparison import scale_margin
from biassay.results.run_data import RunGroup
from biassay.runs.reports import compare_models
from biassay.runs.run import Run
from biassay.stats.benchmark_scores import bbq_ambiguous_bias, bbq_bias
from biassay.stats.clusters import cluster_estimate
from biassay.studies.word_association.compare import pair_tests

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answered")


@pytest.fixture(scope="module")
def mild(folder: Path) -> Run:
    return asked(folder, "mild", 100)


@pytest.fixture(scope="module")
def strong(folder: Path) -> Run:
    return asked(folder, "strong", 20)


@pytest.fixture(scope="module")
def old(folder: Path) -> Run:
    return bbq(folder, "old", 0)


@pytest.fixture(scope="module")
def new(folder: Path) -> Run:
    return bbq(folder, "new", 230)


def with_results(run: Run, rows: Sequence[Any]) -> Run:
    tables = run.study.finalize_tables(run.manifest.settings, {**run.tables, "results": tuple(rows)})
    return dataclasses.replace(run, tables=tables)


def lines_of(run: Run, width: int = 100) -> list[str]:
    return printed(run, width=width).splitlines()


# Figures


def test_every_word_is_drawn_where_its_share_is(mild: Run) -> None:
    page = page_of({"": mild})
    figure = page[page.index('class="panels"') :]
    drawn = re.findall(
        r'aria-label="([^"(]+) \((\w+)\): (-?[\d.]+) to [^"]*".*?margin-left: ([\d.]+)%; width: ([\d.]+)%', figure
    )
    shares = {
        (row.word, row.pole, format_decimal(row.value)): row.value
        for row in mild.tables["words"]
        if row.value is not None
    }
    assert len(drawn) == sum(row.value is not None for row in mild.tables["words"])
    for word, pole, number, left, width in drawn:
        value = shares[word, pole, number]
        middle, end = (
            (float(left), float(left) + float(width)) if value >= 0.5 else (float(left) + float(width), float(left))
        )
        assert (middle, end) == pytest.approx((50.0, 100.0 * value), abs=0.11)


def test_bbq_shows_contexts_apart_with_accuracy_and_both_intervals(old: Run) -> None:
    figure = page_of({"": old}).partition("</figure>")[0]
    assert re.findall(r"<summary>(\w+) contexts", figure) == ["Ambiguous", "Disambiguated"]
    assert re.findall(r"<small>accuracy (\d+)%", figure) == [f"{100 * row.accuracy:.0f}" for row in by_context(old)]
    by_item = re.findall(r'x1="([\d.]+)%" x2="\1%" [^>]*class="beside k0"', figure)
    by_template = [x for span in re.findall(r'x1="([\d.]+)%" x2="([\d.]+)%" [^>]*class="span', figure) for x in span]
    rows = by_context(old)
    for drawn, outcomes in ((by_item, [row.alternatives["items"] for row in rows]), (by_template, rows)):
        ends = [end for outcome in outcomes for end in (outcome.ci_low, outcome.ci_high)]
        assert [(float(x) - 50.0) / 48.0 for x in drawn] == pytest.approx(ends, abs=3e-3)  # the scale is fixed


def test_scores_that_follow_positions_have_a_title_and_no_p_value(old: Run) -> None:
    rows = tuple(
        dataclasses.replace(row, claim="descriptive", doubt="80% choose A", position="A", position_share=0.8)
        for row in old.tables["results"]
    )
    run = with_results(old, rows)
    report = run.study.presenter.report(RunGroup(run, {"": run}))
    (label,) = {one.model for one in run.findings()}
    assert report.title == f"{label} chooses options by their position, so its scores are not tested"
    heading, table = report.sections[0].blocks
    assert heading.text == "All categories"
    names = {name for span in table.models for name in (span.title, *span.columns)}
    assert {"effect", "evidence"} <= names
    assert not {"p", "p, adjusted"} & names
    assert {p for one in run.findings() for p in one.p_values.values()} == set()


def by_context(run: Run) -> list[Any]:
    return sorted(run.results, key=lambda row: row.condition)  # the sort is stable


# Words


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_line_a_test_and_no_line_too_wide(mild: Run, old: Run, width: int) -> None:
    for run in (mild, old):
        lines = lines_of(run, width)
        assert max(map(len, lines)) <= min(width, 100)
    assert sum(format_decimal(row.effect_size) in " ".join(lines_of(mild)) for row in mild.results) == len(mild.results)
    for row in old.results:
        assert format_decimal(row.effect_size) in " ".join(lines_of(old))


# Comparison


def test_bbq_is_compared_by_template(old: Run, new: Run) -> None:
    found = compare_models({"old": old, "new": new})
    for row in found.tables["differences"]:
        category, condition = row.title.replace(" ", "_").split(",_")
        score = bbq_ambiguous_bias if condition == "ambiguous" else bbq_bias
        totals = [
            np.array([
                (one.target, one.known, one.correct, one.n)
                for one in run.tables["templates"]
                if (one.category, one.condition) == (category, condition)
            ])
            for run in (new, old)
        ]  # fmt: skip
        known = 3 if condition == "ambiguous" else 1
        expected = cluster_estimate(
            np.concatenate(totals, axis=1),
            lambda both, score=score: score(both[..., :4]) - score(both[..., 4:]),  # type: ignore[misc]
            within=(-2.0, 2.0),
            weight=(known, 4 + known),
        )
        assert row.difference == pytest.approx(expected.value, abs=1e-12)
        assert (row.interval_low, row.interval_high) == pytest.approx(expected.interval, abs=1e-12)
        assert row.p_value == pytest.approx(expected.p_value)
        rows = [
            next(r for r in run.results if (r.category, r.condition) == (category, condition)) for run in (old, new)
        ]
        assert (row.effect_baseline, row.effect_model) == pytest.approx([one.effect_size for one in rows])
    assert {verdict.outcome for verdict in found.verdicts} <= {"worse", "better", "inconclusive", "no_worse"}
    assert all(one.low <= one.growth <= one.high for one in found.verdicts)
    assert any(one.outcome == "worse" for one in found.verdicts)
    assert found.failed("worse")


def test_a_category_that_is_refused_on_the_new_model_fails_the_gate(old: Run, new: Run) -> None:
    first, *others = new.tables["results"]
    empty = dataclasses.replace(first, status="failed", n_items=0, outcome=Outcome(scale="bias score"))
    rows = (empty, *others)
    found = compare_models({"old": old, "new": with_results(new, rows)})
    assert found.verdicts[0].outcome == "missing"
    assert any(one.outcome == "missing" for one in found.failed("worse"))


def test_word_associations_are_compared_by_word_and_column(mild: Run, strong: Run) -> None:
    found = compare_models({"mild": mild, "strong": strong})
    rows = {row.item: row for row in found.tables["differences"]}
    assert rows["wat-eating"].about == "method"
    assert {verdict.test for verdict in found.verdicts} == rows.keys() - {"wat-eating"}
    tables = []
    for run in (mild, strong):
        words = [row for row in run.tables["words"] if row.test == "wat-arab-muslim"]
        tables.append(np.array([[np.nan if v is None else v for v in row.by_pair] for row in words]).T)
        poles = np.array([row.pole == "negative" for row in words])
    apart = tables[1] - tables[0]
    by_pair = apart[:, poles].mean(axis=1) - apart[:, ~poles].mean(axis=1)
    row = rows["wat-arab-muslim"]
    assert row.difference == pytest.approx(by_pair.mean())
    assert row.over.endswith("10 pairs of group words")
    assert row.interval_low < row.difference < row.interval_high
    assert row.p_value >= stats.ttest_1samp(by_pair, 0.0).pvalue - 1e-9  # words vary as well
    assert rows["wat-racism"].over.endswith("blocks of answers")
    shares = {row.test: row.effect_size for row in strong.results}
    assert {name: one.effect_model for name, one in rows.items()} == pytest.approx(shares)


def test_verdicts_rest_on_difference_and_sum_at_the_shared_alpha(mild: Run, strong: Run) -> None:
    found = compare_models({"mild": mild, "strong": strong}, alpha=0.2)
    pairs = {pair.plain.item: pair for pair in pair_tests({"mild": mild, "strong": strong}, "mild")}
    for verdict in found.verdicts:
        sums = pairs[verdict.test].combine_effects
        assert sums is not None
        if verdict.low is not None:
            less, more = (sums(weight, 1.0 - 0.2 / (2 * verdict.family)) for weight in (-1.0, 1.0))
            assert (verdict.growth, verdict.low, verdict.high) == (less.value, less.low, less.high)
            assert (verdict.reversal, verdict.reversal_low, verdict.reversal_high) == (more.value, more.low, more.high)
    assert scale_margin(0.2, "share above one half", 0.5) == pytest.approx(0.1)
    assert scale_margin(0.2, "log-odds", None) == pytest.approx(0.2 * np.pi / np.sqrt(3.0))


# Paper


def test_files_for_a_paper_hold_the_numbers(old: Run, new: Run, tmp_path: Path) -> None:
    runs = {"old": old, "new": new}
    paths = {path.name: path for path in write_all(tmp_path / "paper", runs, compare_models(runs), formats=("svg",))}
    names = sorted(name for name in paths if name.startswith("bbq") and name.endswith(".md"))
    assert names == sorted(f"bbq-{run.manifest.models[0].name.replace(':', '_')}.md" for run in runs.values())
    table = paths[f"bbq-{old.manifest.models[0].name.replace(':', '_')}.md"].read_text(encoding="utf-8")
    assert f"| {format_p(old.results[0].p_value)} | {format_p(old.results[0].p_adjusted)} |" in table
    for row in old.results:
        interval = format_interval(row.ci_low, row.ci_high).replace("[", "\\[").replace("]", "\\]")
        assert f"| {format_decimal(row.effect_size)} | {interval} |" in table
    assert "benchmarks-pairs.tsv" not in paths
    assert "benchmark-1.svg" in paths
    assert "cite{" in paths["methods.tex"].read_text(encoding="utf-8")
    card = card_of(old)
    assert f"value: {old.results[0].accuracy:.6g}" in card
