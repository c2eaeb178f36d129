"""Report of a study without its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from biassay.errors import UsageError
from biassay.reporting.comparison import lay_out_comparison, print_differences
from biassay.reporting.document import PaperTable, Renderer, ReportPart, Statement
from biassay.reporting.findings import draw_overview
from biassay.reporting.formats import format_count, format_value, unit_name
from biassay.reporting.model_card import CardMetric, IndexEntry, ModelCard, get_version, make_card
from biassay.reporting.presenter import Presenter
from biassay.reporting.sentences import make_statements
from biassay.reporting.terminal import (
    PRINTED,
    item_of,
    paper_table,
    print_run,
    printed,
    section_of,
    shown_first,
    side_by_side,
    used,
)
from biassay.results.comparison import Comparison, choose_baseline
from biassay.results.findings import Finding
from biassay.results.run_data import BaseRecord, RunData
from biassay.results.tables import Column, Format, TableSpec, format_tsv
from biassay.results.views import RunGroup, make_unique, model_key, model_labels, record_labels

__all__ = [
    "LIMIT",
    "DefaultPresenter",
    "TableDifference",
    "compare_tables",
    "difference_columns",
    "paper_differences",
    "summarize_differences",
]


LIMIT = (
    "Differences are those of the numbers in the tables, without intervals: they describe these models on these items, "
    "and test nothing."
)
_LARGEST = 5
_LONGEST = 80
_Numbers = dict[str, dict[tuple[str, str], Any]]


@dataclass(frozen=True)
class TableDifference(BaseRecord):
    """A number of the first model and of another; None: one of them has no such number."""

    table: str
    item: str
    baseline: str
    model: str
    number_baseline: float | None
    number_model: float | None
    difference: float | None


def compare_tables(
    runs: Mapping[str, RunData], specs: Sequence[TableSpec], *, baseline: str | None, mixed: bool
) -> Comparison:
    """All models with one of them, by every table that names a number."""
    if not any(spec.number for spec in specs):
        raise UsageError(f"{', '.join(runs)}: runs of this kind cannot be compared; `biassay report` shows them")
    notes = tuple(_unlike(runs))
    if notes and not mixed:
        raise UsageError(f"the runs cannot be compared: {'; '.join(notes)} (--mixed compares them all the same)")
    numbers = _numbers(runs, specs)
    first = choose_baseline(list(numbers), baseline)
    found = tuple(
        _difference(*place, first, label, numbers[first][place], own[place])
        for label, own in numbers.items()
        if label != first
        for place in numbers[first]
        if place in own
    )
    if not found:
        raise UsageError("the models have no row in common")
    gathered = tuple(RunGroup(run, {name: run}) for name, run in runs.items())
    study = next(iter(runs.values())).manifest.study
    return Comparison(study, first, {"differences": found}, notes=notes, gathered=gathered)


def _unlike(runs: Mapping[str, RunData]) -> Iterator[str]:
    """Settings and inputs in which the runs differ."""
    for part in ("settings", "inputs"):
        records = {name: getattr(run.manifest, part) for name, run in runs.items()}
        for field in dataclasses.fields(next(iter(records.values()))):
            values = {name: getattr(record, field.name) for name, record in records.items()}
            if len(set(map(str, values.values()))) > 1:
                yield f"{field.name}: " + ", ".join(f"{_short(value)} in {name}" for name, value in values.items())


def _short(value: Any) -> str:
    """A setting as a person reads it: of records their names."""
    if isinstance(value, tuple):
        value = ", ".join(str(getattr(one, "name", one)) for one in value) or "none"
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _numbers(runs: Mapping[str, RunData], specs: Sequence[TableSpec]) -> _Numbers:
    """The numbers of every model, by table and item; a model of several runs gets a number in its label."""
    found: _Numbers = {}
    for run in runs.values():
        labels: dict[Any, str] = {}
        for key, label in model_labels(run).items():
            labels[key] = make_unique(label, found)
            found[labels[key]] = {}
        for spec in specs:
            columns = spec.columns_of(run)
            for column in (column for column in columns if column.name == spec.number):
                for row in spec.rows_of(run):
                    found[labels[model_key(row)]][spec.name, item_of(spec, row, columns)] = column.value(row)
    return found


def _difference(
    table: str, item: str, first: str, label: str, one: float | None, other: float | None
) -> TableDifference:
    return TableDifference(table, item, first, label, one, other, None if one is None or other is None else other - one)


def difference_columns(spec: TableSpec) -> list[Column]:
    """The columns of a table of differences."""
    form: Format = next((c.format for c in _columns(spec) if c.name == spec.number), "number")
    item = [Column("item", ", ".join(c.label for c in _columns(spec) if c.name in spec.key) or "Item", "The item.")]
    return [
        Column("model", "Model", "The model that is compared."),
        *(item if spec.key else []),
        Column("number_baseline", "First model", "The number of the first model.", form),
        Column("number_model", "This model", "The number of this model.", form),
        Column("difference", "Difference", "The number of this model less that of the first.", "number"),
    ]


def _columns(spec: TableSpec) -> Sequence[Column]:
    return () if callable(spec.columns) else spec.columns


def summarize_differences(comparison: Comparison, specs: Sequence[TableSpec]) -> list[Statement]:
    """Of every model how much it differs, and in what most."""
    return [_statement(comparison, spec, model) for model in comparison.models for spec in specs if spec.number]


def _statement(comparison: Comparison, spec: TableSpec, model: str) -> Statement:
    rows = comparison.tables["differences"]
    own = [row for row in rows if (row.model, row.table) == (model, spec.name) and row.difference is not None]
    label = next((c.label for c in _columns(spec) if c.name == spec.number), spec.number)
    if not own:
        return Statement(f"{model}: nothing to compare in {spec.title.lower()}.", (), model)
    mean = format_value("number", sum(row.difference for row in own) / len(own))
    if not spec.key:
        return Statement(f"{model}: {label} differs by {mean}.", (), model)
    largest = sorted(own, key=lambda row: -abs(row.difference))[:_LARGEST]
    points = tuple(f"{row.item}: {format_value('number', row.difference)}" for row in largest)
    text = f"{model}: {label} differs by {mean} on average over {format_count(len(own), 'row')}, and most in:"
    return Statement(text, points, model)


def paper_differences(comparison: Comparison, spec: TableSpec) -> PaperTable:
    """Items down, models across: the difference from the first model."""
    rows = [row for row in comparison.tables["differences"] if row.table == spec.name]
    cells = {(row.item or spec.title, row.model): format_value("number", row.difference) for row in rows}
    caption = f"{spec.title}: differences of {spec.number.replace('_', ' ')} from {comparison.baseline}. {LIMIT}"
    return side_by_side(caption, "Item", cells)


_MEANING = (
    "A finding speaks of what the model was asked about, and of nothing else. What is not shown is not shown to be "
    "absent."
)


class DefaultPresenter(Presenter):
    """Findings and tables; models are compared by the tables that name a key and a number."""

    package = "biassay.reporting"

    def __init__(
        self, title: str, tables: Sequence[TableSpec], findings: Callable[[RunData], Sequence[Finding]]
    ) -> None:
        self._title, self._tables, self._findings = title, tables, findings

    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
        run = gathered.run
        findings = self._findings(run)
        settings = {field.name: _setting(run, field.name) for field in dataclasses.fields(run.manifest.settings)}
        return ReportPart(
            anchor=renderer.anchor,
            title=f"{self._title} in {', '.join(_labels(run))}",
            headline=self._headline(run),
            summary=make_statements(findings),
            meaning=_MEANING,
            figure=draw_overview(findings),
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
        return f"{format_count(models, 'model')}, {format_count(rows, 'row')}"

    def print(self, gathered: RunGroup, console: Console, *, everything: bool = False, **_: Any) -> None:
        run, columns = gathered.run, used if everything else shown_first
        most = None if everything else PRINTED
        told = [spec for spec in self._tables if not spec.detail and spec.rows_of(run)]
        tables = [printed(spec.title, *columns(spec, run), most) for spec in told]
        print_run(console, f"{self._title}: {self._headline(run)}", tables, make_statements(self._findings(run)))

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, PaperTable]]:
        for spec in self._tables:
            if not spec.detail and spec.rows_of(gathered.run):
                yield f"{gathered.run.manifest.study}-{spec.name}", paper_table(spec, gathered.run)

    def files(self, gathered: Sequence[RunGroup]) -> Iterator[tuple[str, str, str]]:
        for one in gathered:
            for spec in self._tables:
                written = format_tsv(spec.columns_of(one.run), spec.rows_of(one.run))
                yield f"{one.run.manifest.study}-{spec.name}", "tsv", written

    def labels(self, run: RunData) -> Sequence[str]:
        return list(dict.fromkeys(one.model for one in self._findings(run)))

    def card(self, run: RunData, label: str) -> ModelCard:
        own = [one for one in self._findings(run) if one.model == label]
        asked = f"{self._title.lower()} (study {run.manifest.study} of {run.manifest.package})"
        return make_card(run, own, asked, [self._entry(one, run) for one in own], [_MEANING])

    def _entry(self, finding: Finding, run: RunData) -> IndexEntry:
        effect = CardMetric("effect", f"Effect ({unit_name(finding.unit)})", finding.effect)
        p_values = (
            CardMetric(_format_metric_code(name), f"p-value, {name}", value) for name, value in finding.p_values.items()
        )
        args = {"study": run.manifest.study, "package": run.manifest.package, "biassay": get_version(run)}
        return IndexEntry("other", self._title, finding.item, finding.title, "", args, (effect, *p_values))

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_tables(runs, self._tables, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> ReportPart:
        sections = [
            section_of(spec.name, f"Differences: {spec.title.lower()}", difference_columns(spec), rows, renderer)
            for spec, rows in self._differences(comparison)
        ]
        return lay_out_comparison(comparison, summarize_differences(comparison, self._tables), sections, LIMIT)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        tables = [printed(spec.title, difference_columns(spec), rows) for spec, rows in self._differences(comparison)]
        print_differences(comparison, console, summarize_differences(comparison, self._tables), before=tables)

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, PaperTable]]:
        for spec in self._tables:
            if spec.number:
                yield f"{comparison.study}-{spec.name}-differences", paper_differences(comparison, spec)

    def _differences(self, comparison: Comparison) -> Iterator[tuple[TableSpec, Sequence[TableDifference]]]:
        for spec in self._tables:
            if spec.number:
                yield spec, [row for row in comparison.tables["differences"] if row.table == spec.name]


def _format_metric_code(name: str) -> str:
    """Of a p-value: p_value_joint_corrected."""
    return "_".join(["p_value", *name.replace(",", " ").split()])


def _setting(run: RunData, name: str) -> str:
    return format_value("text", getattr(run.manifest.settings, name)) or "–"


def _labels(run: RunData) -> list[str]:
    return list(model_labels(run).values()) or record_labels(run)
