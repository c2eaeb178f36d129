"""How runs are shown of a study that says nothing about it: findings in words, then its tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from biassay.pages.comparing import lay_out_comparison, print_differences
from biassay.pages.formats import counted, shown, unit_name
from biassay.pages.overview import overview
from biassay.pages.plain_differences import (
    LIMIT,
    Difference,
    compare_tables,
    difference_columns,
    in_short,
    paper_differences,
)
from biassay.pages.plain_tables import PRINTED, paper_table, print_run, printed, section_of, shown_first, used
from biassay.pages.presenter import Presenter
from biassay.pages.publish.layout import Table
from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.model_card import Card, card_of_findings, version_of
from biassay.pages.section import Part, Renderer
from biassay.pages.sentences import statements
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.gathering import Gathered
from biassay.results.labels import model_labels, record_labels
from biassay.results.tables import TableSpec, tsv_of

__all__ = ["Plain"]

_MEANING = (
    "A finding speaks of what the model was asked about, and of nothing else. What is not shown is not shown to be "
    "absent."
)


class Plain(Presenter):
    """Findings and tables; models are compared by the tables that name a key and a number."""

    package = "biassay.pages"

    def __init__(
        self, title: str, tables: Sequence[TableSpec], findings: Callable[[RunData], Sequence[Finding]]
    ) -> None:
        self._title, self._tables, self._findings = title, tables, findings

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        run = gathered.run
        findings = self._findings(run)
        settings = {field.name: _setting(run, field.name) for field in dataclasses.fields(run.manifest.settings)}
        return Part(
            anchor=renderer.anchor,
            title=f"{self._title} in {', '.join(_labels(run))}",
            headline=self._headline(run),
            summary=statements(findings),
            meaning=_MEANING,
            figure=overview(findings),
            sections=[
                *(
                    section_of(spec.name, spec.title, *used(spec, run), renderer, folded=spec.detail)
                    for spec in self._tables
                    if spec is self._tables[0] or spec.rows_of(run)
                ),
                renderer.section("plain_made", "How it was made", manifest=run.manifest, settings=settings),
            ],
        )

    def _headline(self, run: RunData) -> str:
        models, rows = len(run.manifest.models), len(self._tables[0].rows_of(run))
        return f"{counted(models, 'model')}, {counted(rows, 'row')}"

    def print(self, gathered: Gathered, console: Console, *, everything: bool = False, **_: Any) -> None:
        run, columns = gathered.run, used if everything else shown_first
        most = None if everything else PRINTED
        told = [spec for spec in self._tables if not spec.detail and spec.rows_of(run)]
        tables = [printed(spec.title, *columns(spec, run), most) for spec in told]
        print_run(console, f"{self._title}: {self._headline(run)}", tables, statements(self._findings(run)))

    def tables(self, gathered: Gathered) -> Iterator[tuple[str, Table]]:
        for spec in self._tables:
            if not spec.detail and spec.rows_of(gathered.run):
                yield f"{gathered.run.manifest.study}-{spec.name}", paper_table(spec, gathered.run)

    def files(self, gathered: Sequence[Gathered]) -> Iterator[tuple[str, str, str]]:
        for one in gathered:
            for spec in self._tables:
                written = tsv_of(spec.columns_of(one.run), spec.rows_of(one.run))
                yield f"{one.run.manifest.study}-{spec.name}", "tsv", written

    def labels(self, run: RunData) -> Sequence[str]:
        return list(dict.fromkeys(one.model for one in self._findings(run)))

    def card(self, run: RunData, label: str) -> Card:
        own = [one for one in self._findings(run) if one.model == label]
        asked = f"{self._title.lower()} (study {run.manifest.study} of {run.manifest.package})"
        return card_of_findings(run, own, asked, [self._entry(one, run) for one in own], [_MEANING])

    def _entry(self, finding: Finding, run: RunData) -> Indexed:
        effect = Metric("effect", f"Effect ({unit_name(finding.unit)})", finding.effect)
        p_values = (Metric(_code(name), f"p-value, {name}", value) for name, value in finding.p_values.items())
        args = {"study": run.manifest.study, "package": run.manifest.package, "biassay": version_of(run)}
        return Indexed("other", self._title, finding.item, finding.title, "", args, (effect, *p_values))

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_tables(runs, self._tables, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        sections = [
            section_of(spec.name, f"Differences: {spec.title.lower()}", difference_columns(spec), rows, renderer)
            for spec, rows in self._differences(comparison)
        ]
        return lay_out_comparison(comparison, in_short(comparison, self._tables), sections, LIMIT)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        tables = [printed(spec.title, difference_columns(spec), rows) for spec, rows in self._differences(comparison)]
        print_differences(comparison, console, in_short(comparison, self._tables), before=tables)

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, Table]]:
        for spec in self._tables:
            if spec.number:
                yield f"{comparison.study}-{spec.name}-differences", paper_differences(comparison, spec)

    def _differences(self, comparison: Comparison) -> Iterator[tuple[TableSpec, Sequence[Difference]]]:
        for spec in self._tables:
            if spec.number:
                yield spec, [row for row in comparison.tables["differences"] if row.table == spec.name]


def _code(name: str) -> str:
    """Of a p-value: p_value_joint_corrected."""
    return "_".join(["p_value", *name.replace(",", " ").split()])


def _setting(run: RunData, name: str) -> str:
    return shown("text", getattr(run.manifest.settings, name)) or "–"


def _labels(run: RunData) -> list[str]:
    return list(model_labels(run).values()) or record_labels(run)
