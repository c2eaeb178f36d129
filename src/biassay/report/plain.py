"""How runs are shown of a study that says nothing about it: findings in words, then its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from biassay.report.formats import counted, printable, shown
from biassay.report.presenter import Presenter
from biassay.report.section import Part, Renderer, Section
from biassay.report.sentences import statements
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.gathering import Gathered
from biassay.results.tables import TableSpec

__all__ = ["Plain"]

_ROWS = 200
_PRINTED = 30


class Plain(Presenter):
    """Findings and tables."""

    package = "biassay.report"

    def __init__(
        self, title: str, tables: Sequence[TableSpec], findings: Callable[[RunData], Sequence[Finding]]
    ) -> None:
        self._title, self._tables, self._findings = title, tables, findings

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        run = gathered.run
        return Part(
            anchor=renderer.anchor,
            title=f"{self._title} in {', '.join(record.name for record in run.manifest.models)}",
            headline=self._headline(run),
            summary=statements(self._findings(run)),
            meaning="",
            sections=[
                *(_section(spec, run, renderer) for spec in self._tables),
                renderer.section("plain_made", "How it was made", manifest=run.manifest),
            ],
        )

    def _headline(self, run: RunData) -> str:
        rows = len(self._tables[0].rows_of(run))
        return f"{counted(rows, 'row')} of {counted(len(run.manifest.models), 'model')}"

    def print(self, gathered: Gathered, console: Console, **_: Any) -> None:
        run = gathered.run
        parts: list[RenderableType] = [Text(f"{self._title}: {self._headline(run)}", style="bold")]
        parts += [_printed(spec, run) for spec in self._tables]
        for one in statements(self._findings(run)):
            parts += [Text(printable(one.text)), *(Text(printable(f"  • {point}")) for point in one.points)]
        console.print(Group(*parts))

    def labels(self, run: RunData) -> Sequence[str]:  # noqa: ARG002
        return ()


def _section(spec: TableSpec, run: RunData, renderer: Renderer) -> Section:
    section = renderer.section("table", spec.title, **_content(spec, run))
    return Section(f"{section.anchor}-{spec.name}", section.title, section.body)


def _content(spec: TableSpec, run: RunData) -> dict[str, Any]:
    columns, rows = spec.columns_of(run), spec.rows_of(run)
    return {
        "name": spec.name,
        "columns": columns,
        "rows": [[shown(column.format, column.value(row)) for column in columns] for row in rows[:_ROWS]],
        "more": max(0, len(rows) - _ROWS),
    }


def _printed(spec: TableSpec, run: RunData) -> RichTable:
    columns, rows = spec.columns_of(run), spec.rows_of(run)
    table = RichTable(title=printable(spec.title))
    for column in columns:
        table.add_column(printable(column.label), justify="left" if column.format == "text" else "right")
    for row in rows[:_PRINTED]:
        table.add_row(*(Text(shown(column.format, column.value(row))) for column in columns))
    if len(rows) > _PRINTED:
        table.caption = f"and {len(rows) - _PRINTED:,} more rows"
    return table
