"""Tables of any study: on a page, in a terminal and in a paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from biassay.files import printable
from biassay.pages.formats import clean, shown
from biassay.pages.publish.layout import Cell, Row, Span, Table
from biassay.pages.publish.layout import Group as Rows
from biassay.pages.section import Renderer, Section, Statement
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.tables import Column, TableSpec

__all__ = [
    "PRINTED",
    "WIDTH",
    "cells_of",
    "filled",
    "item_of",
    "paper_table",
    "print_run",
    "printed",
    "said",
    "section_of",
    "shown_first",
    "side_by_side",
    "used",
]

WIDTH = 100
"""Columns of a terminal that are used at most."""
_ROWS = 200
PRINTED = 30
"""Rows of a table in the terminal, if not all are asked for."""
_TURNED = 3  # rows of a wide table that stand beside each other


def used(spec: TableSpec, run: RunData) -> tuple[list[Column], Sequence[Any]]:
    """The columns in which anything stands, and the rows."""
    rows = spec.rows_of(run)
    return filled(spec.columns_of(run), rows), rows


def shown_first(spec: TableSpec, run: RunData) -> tuple[list[Column], Sequence[Any]]:
    """Of these columns those that a person sees first."""
    columns, rows = used(spec, run)
    return [column for column in columns if not spec.shown or column.name in spec.shown], rows


def filled(columns: Iterable[Column], rows: Sequence[Any]) -> list[Column]:
    """The columns in which anything stands."""
    return [column for column in columns if any(column.value(row) not in ("", None, (), {}) for row in rows)]


def section_of(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Any],
    renderer: Renderer,
    *,
    folded: bool = False,
    turned: bool = False,
) -> Section:
    """A table of a page. Where there are several parts, its label says of which it is: no two may be alike."""
    label = title if renderer.level == 2 else f"{title} ({renderer.anchor})"
    cells = cells_of(label, columns, rows, turned=turned)
    section = renderer.section("table", title, **cells, folded=folded and len(rows))
    return Section(f"{renderer.anchor}-{name}", section.title, section.body)


def cells_of(label: str, columns: Sequence[Column], rows: Sequence[Any], *, turned: bool = False) -> dict[str, Any]:
    """What the template of a table is given; one of a study may include it.

    A table of many columns and few rows is ``turned``: what the first column names stands across.
    """
    cells = [[shown(column.format, column.value(row)) for column in columns] for row in rows[:_ROWS]]
    return {"label": label, "columns": columns, "rows": cells, "more": max(0, len(rows) - _ROWS), "turned": turned}


def printed(title: str, columns: Sequence[Column], rows: Sequence[Any], most: int | None = PRINTED) -> RenderableType:
    """A table of the terminal, of so many rows; turned or split where it is too wide."""
    heads = [printable(column.label) for column in columns]
    left = [column.format == "text" for column in columns]
    cells = [[shown(column.format, column.value(row)) for column in columns] for row in rows[:most]]
    return _Printed(printable(title), heads, left, cells, len(rows) - len(cells))


@dataclass(frozen=True)
class _Printed:
    """Rows and columns, laid out when the width is known."""

    title: str
    heads: Sequence[str]
    left: Sequence[bool]
    cells: Sequence[Sequence[str]]
    more: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [
            max([len(head), *(len(row[place]) for row in self.cells)]) + 3 for place, head in enumerate(self.heads)
        ]
        yield Text(self.title, style="bold")
        if sum(widths) <= options.max_width:
            yield self._table(range(len(self.heads)))
        elif len(self.cells) <= _TURNED:
            yield self._turned()
        else:
            yield from map(self._table, _split(widths, options.max_width))
        if self.more:
            yield Text(f"  and {self.more:,} more rows", style="dim")

    def _table(self, places: Sequence[int]) -> RichTable:
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place in places:
            table.add_column(Text(self.heads[place]), justify="left" if self.left[place] else "right", overflow="fold")
        for row in self.cells:
            table.add_row(*(Text(row[place]) for place in places))
        return table

    def _turned(self) -> RichTable:
        """What was across stands down the page."""
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, text in enumerate((self.heads[0], *(row[0] for row in self.cells))):
            table.add_column(Text(text), overflow="fold", style="dim" if place == 0 else "")
        for place, head in list(enumerate(self.heads))[1:]:
            table.add_row(Text(head), *(Text(row[place]) for row in self.cells))
        return table


def _split(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Columns by what fits beside each other; the first comes again every time."""
    part = [0]
    for place in range(1, len(widths)):
        if len(part) > 1 and sum(widths[one] for one in (*part, place)) > width:
            yield part
            part = [0]
        part.append(place)
    yield part


def print_run(
    console: Console,
    headline: str,
    tables: Sequence[RenderableType],
    findings: Sequence[Statement],
    notes: Sequence[str] = (),
    meaning: Sequence[str] = (),
) -> None:
    """A run in the terminal: what was asked, its tables, notes and what it means, and last the findings in words."""
    parts: list[RenderableType] = [Text(printable(headline), style="bold"), Text("")]
    for table in tables:
        parts += [table, Text("")]
    parts += [Text(printable(note), style="yellow") for note in notes]
    parts += [Text(printable(text), style="dim") for text in meaning]
    parts += [Text("")] * bool(notes or meaning)
    console.print(Group(*parts, *said(findings)), width=min(WIDTH, console.width))


def said(statements: Iterable[Statement]) -> Iterator[RenderableType]:
    """Statements in the terminal, each with its points below."""
    for one in statements:
        text = Text(printable(one.text))
        text.stylize("bold", 0, len(one.about))
        yield text
        for place, point in enumerate(one.points):
            line = Text(printable(point))
            if one.names and one.names[place]:
                line.stylize("dim", len(point) - len(one.names[place]))
            yield _Point(line)


@dataclass(frozen=True)
class _Point:
    """A line with a bullet; where it is wrapped, the rest stands below its text."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bullet = "-" if options.ascii_only else "•"
        for place, line in enumerate(self.text.wrap(console, max(options.max_width - 4, 1))):
            yield Text.assemble("    " if place else f"  {bullet} ", line)


def paper_table(spec: TableSpec, run: RunData) -> Table:
    """A table of a paper: models across where the table names a key and a number, and else as it is."""
    columns, rows = used(spec, run)
    labels = model_labels(run)
    if spec.key and spec.number:
        every = spec.columns_of(run)
        numbers = {(item_of(spec, row, every), labels[model_key(row)]): row for row in rows}
        number = _column(every, spec.number)
        cells = {place: shown(number.format, number.value(row)) for place, row in numbers.items()}
        stub = ", ".join(_column(every, name).label for name in spec.key)
        return side_by_side(f"{spec.title}. {number.label}: {number.help}", stub, cells)
    texts = [column for column in columns if column.format == "text"]
    others = [column for column in columns if column.format != "text"]
    body = tuple(Row(_cleaned(texts, row), tuple(map(Cell, _cleaned(others, row)))) for row in rows)
    spans = tuple(Span(clean(column.label)) for column in others)
    caption = " ".join([f"{spec.title}.", *(f"{column.label}: {column.help}" for column in others)])
    return Table(clean(caption), tuple(clean(column.label) for column in texts), spans, (Rows("", body),))


def side_by_side(caption: str, stub: str, cells: dict[tuple[str, str], str]) -> Table:
    """A table of a paper, items down and models across."""
    items, models = (list(dict.fromkeys(place[side] for place in cells)) for side in (0, 1))
    body = [Row((clean(item),), tuple(Cell(cells.get((item, model), "–")) for model in models)) for item in items]
    return Table(clean(caption), (clean(stub),), tuple(Span(clean(m)) for m in models), (Rows("", tuple(body)),))


def item_of(spec: TableSpec, row: Any, columns: Sequence[Column]) -> str:
    """What a row is about, in the words of its key."""
    return ", ".join(shown("text", _column(columns, name).value(row)) for name in spec.key)


def _column(columns: Sequence[Column], name: str) -> Column:
    return next(column for column in columns if column.name == name)


def _cleaned(columns: Sequence[Column], row: Any) -> tuple[str, ...]:
    return tuple(clean(shown(column.format, column.value(row))) for column in columns)
