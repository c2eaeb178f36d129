"""Models compared by the numbers of a table: row by row, those of the same key."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biassay.errors import UsageError
from biassay.pages.formats import counted, shown
from biassay.pages.plain_tables import item_of, side_by_side
from biassay.pages.publish.layout import Table
from biassay.pages.section import Statement
from biassay.results.comparison import Comparison, choose_baseline
from biassay.results.data import Record, RunData
from biassay.results.gathering import Gathered
from biassay.results.labels import model_key, model_labels, numbered
from biassay.results.tables import Column, Format, TableSpec

__all__ = ["LIMIT", "Difference", "compare_tables", "difference_columns", "in_short", "paper_differences"]

LIMIT = (
    "Differences are those of the numbers in the tables, without intervals: they describe these models on these items, "
    "and test nothing."
)
_LARGEST = 5
_LONGEST = 80
_Numbers = dict[str, dict[tuple[str, str], Any]]


@dataclass(frozen=True)
class Difference(Record):
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
    gathered = tuple(Gathered(run, {name: run}) for name, run in runs.items())
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
            labels[key] = numbered(label, found)
            found[labels[key]] = {}
        for spec in specs:
            columns = spec.columns_of(run)
            for column in (column for column in columns if column.name == spec.number):
                for row in spec.rows_of(run):
                    found[labels[model_key(row)]][spec.name, item_of(spec, row, columns)] = column.value(row)
    return found


def _difference(table: str, item: str, first: str, label: str, one: float | None, other: float | None) -> Difference:
    return Difference(table, item, first, label, one, other, None if one is None or other is None else other - one)


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


def in_short(comparison: Comparison, specs: Sequence[TableSpec]) -> list[Statement]:
    """Of every model how much it differs, and in what most."""
    return [_statement(comparison, spec, model) for model in comparison.models for spec in specs if spec.number]


def _statement(comparison: Comparison, spec: TableSpec, model: str) -> Statement:
    rows = comparison.tables["differences"]
    own = [row for row in rows if (row.model, row.table) == (model, spec.name) and row.difference is not None]
    label = next((c.label for c in _columns(spec) if c.name == spec.number), spec.number)
    if not own:
        return Statement(f"{model}: nothing to compare in {spec.title.lower()}.", (), model)
    mean = shown("number", sum(row.difference for row in own) / len(own))
    if not spec.key:
        return Statement(f"{model}: {label} differs by {mean}.", (), model)
    largest = sorted(own, key=lambda row: -abs(row.difference))[:_LARGEST]
    points = tuple(f"{row.item}: {shown('number', row.difference)}" for row in largest)
    text = f"{model}: {label} differs by {mean} on average over {counted(len(own), 'row')}, and most in:"
    return Statement(text, points, model)


def paper_differences(comparison: Comparison, spec: TableSpec) -> Table:
    """Items down, models across: the difference from the first model."""
    rows = [row for row in comparison.tables["differences"] if row.table == spec.name]
    cells = {(row.item or spec.title, row.model): shown("number", row.difference) for row in rows}
    caption = f"{spec.title}: differences of {spec.number.replace('_', ' ')} from {comparison.baseline}. {LIMIT}"
    return side_by_side(caption, "Item", cells)
