"""How benchmarks are shown: scores by category with both intervals, what was answered, tables, and works."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group

from biassay.pages.charts.drawing import Drawing
from biassay.pages.finding_lines import FindingLines, legend_of
from biassay.pages.finding_tables import findings_table, forest_figures
from biassay.pages.formats import decimals
from biassay.pages.paired_differences import differences_part, methods_of_differences, paper_differences, print_paired
from biassay.pages.plain import Plain
from biassay.pages.plain_tables import WIDTH, print_run, printed, used
from biassay.pages.publish.citations import Use
from biassay.pages.publish.layout import Table
from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.methods import Sentence
from biassay.pages.publish.model_card import Card, card_of_findings
from biassay.pages.section import Part, Renderer, Statement
from biassay.pages.sentences import statements
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.gathering import Gathered
from biassay.results.labels import model_labels, record_labels
from biassay.results.verdicts import Verdict
from biassay.studies.benchmarks.compare import compare_benchmarks, pairs_of
from biassay.studies.benchmarks.figure import Placed, conditions, figure_of, placed
from biassay.studies.benchmarks.methods_text import METHODS, SOURCES, sentences_of
from biassay.studies.benchmarks.records import Result
from biassay.studies.benchmarks.shown import (
    MEANING,
    NAMES,
    TERMS,
    answered,
    benchmark_of,
    category_name,
    headline,
    notes_of,
    units_of,
)
from biassay.studies.paired import verdicts_of

__all__ = ["BenchmarkPresenter"]


class BenchmarkPresenter(Plain):
    def anchor(self, gathered: Gathered) -> str:
        return benchmark_of(gathered.run)

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        run = gathered.run
        name, part = benchmark_of(run), super().part(gathered, renderer)
        unit, units = units_of(run)
        return dataclasses.replace(
            part,
            title=f"{NAMES[name]} in {', '.join(model_labels(run).values() or record_labels(run))}",
            summary=[*part.summary, *answered(run), *map(Statement, notes_of(run))],
            meaning=MEANING.format(units=units),
            figure=figure_of(run),
            terms={term: text.format(unit=unit, units=units) for term, text in TERMS[name].items()},
        )

    def _headline(self, run: RunData) -> str:
        return headline(run)

    def print(self, gathered: Gathered, console: Console, *, everything: bool = False, **_: Any) -> None:
        run, found = gathered.run, placed(gathered.run)
        findings = [one for _, one in found.values()]
        width = min(WIDTH, console.width)
        lines = FindingLines(
            list(conditions(found)),
            list(dict.fromkeys(one.model for one in findings)),
            lambda one: category_name(found[one.model, one.item][0].category),
            more=_more(found),
        )
        shown = [Group(*lines.block(width, plain=console.options.ascii_only).render(width))]
        told = [spec for spec in self._tables if everything and spec.rows_of(run)]
        tables = [*shown, *(printed(spec.title, *used(spec, run), None) for spec in told)]
        means = [legend_of(findings, "the categories of a model"), MEANING.format(units=units_of(run)[1])]
        said = [*statements(findings), *answered(run)]
        notes = [*notes_of(run), *_unmeasured(findings)]
        print_run(console, headline(run), tables, said, notes, means)

    def card(self, run: RunData, label: str) -> Card:
        own = [one for one in self._findings(run) if one.model == label]
        told = [one.text for one in answered(run) if one.about == label]
        limits = [MEANING.format(units=units_of(run)[1])]
        return card_of_findings(run, own, headline(run), [self._entry(one, run) for one in own], limits, told)

    def tables(self, gathered: Gathered) -> Iterator[tuple[str, Table]]:
        findings = self._findings(gathered.run)
        yield (
            benchmark_of(gathered.run),
            findings_table(
                findings,
                f"{headline(gathered.run)}.",
                lambda one: one.title.partition(": ")[2],
                _more(placed(gathered.run)),
                "categories of a model",
            ),
        )

    def files(self, gathered: Sequence[Gathered]) -> Iterator[tuple[str, str, str]]:
        filled = {f"benchmarks-{spec.name}" for spec in self._tables for one in gathered if spec.rows_of(one.run)}
        return (file for file in super().files(gathered) if file[0] in filled)

    def _entry(self, finding: Finding, run: RunData) -> Indexed:
        """With what is read beside a score."""
        entry, row = super()._entry(finding, run), placed(run)[finding.model, finding.item][0]
        beside = {"accuracy": ("Accuracy", row.accuracy), "lms": ("lms", row.lms), "icat": ("icat", row.icat)}
        metrics = tuple(Metric(code, name, value) for code, (name, value) in beside.items() if value is not None)
        return dataclasses.replace(entry, metrics=(*entry.metrics, *metrics))

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        return forest_figures(self._findings(gathered.run), "benchmark", lambda one: one.title)

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        for name in dict.fromkeys(benchmark_of(run) for run in runs):
            yield Use(f"the benchmark {NAMES[name]}", SOURCES[name])

    def methods(self, run: RunData) -> Iterator[Use]:
        yield from METHODS[benchmark_of(run)]
        if any(row.p_value_holm is not None for row in run.results):
            yield Use("correction for the number of categories", "holm1979")

    def methods_paragraph(self, run: RunData) -> Iterator[Sentence]:
        return sentences_of(run)

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_benchmarks(runs, baseline=baseline, mixed=mixed)

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        runs = {next(iter(one.parts)): one.run for one in comparison.gathered}
        return verdicts_of(pairs_of(runs, comparison.baseline), margin=margin, alpha=alpha)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        return differences_part(comparison, renderer)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        print_paired(comparison, console)

    def comparison_methods(self, comparison: Comparison) -> Iterator[Sentence]:
        how = "by template, pair or target term, which both were asked"
        return methods_of_differences(comparison, how, ("hall1992",))

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, Table]]:
        yield f"{comparison.study}-differences", paper_differences(comparison)


def _more(found: Placed) -> dict[str, Callable[[Finding], str]]:
    """Columns beside a score that any row has."""

    def of(get: Callable[[Result], str]) -> Callable[[Finding], str]:
        return lambda one: get(found[one.model, one.item][0])

    rows = [row for row, _ in found.values()]
    columns: dict[str, Callable[[Finding], str]] = {}
    if any(row.accuracy is not None for row in rows):
        columns["accuracy"] = of(lambda row: "–" if row.accuracy is None else f"{row.accuracy:.0%}")
    if any(row.lms is not None for row in rows):
        columns["lms"] = of(lambda row: decimals(row.lms))
        columns["icat"] = of(lambda row: decimals(row.icat))
    return columns


def _unmeasured(findings: Sequence[Finding]) -> list[str]:
    """Why something was not measured, each reason once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        if one.reason:
            reasons.setdefault((one.model, one.reason), []).append(one.item)
    return [f"{model}, {', '.join(items)}: {reason}" for (model, reason), items in reasons.items()]
