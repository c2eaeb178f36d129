"""Tables of any study: on a page, in a terminal and in a paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from biassay.files import printable
from biassay.pages.formats import shown
from biassay.pages.publish.layout import Cell, Row, Span, Table, clean
from biassay.pages.publish.layout import Group as Rows
from biassay.pages.section import Renderer, Section, Statement
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.tables import Column, TableSpec

__all__ = [
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

_ROWS = 200
_PRINTED = 30


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
    """A table of a page."""
    cells = cells_of(title, columns, rows, turned=turned)
    section = renderer.section("table", title, **cells, folded=folded and len(rows))
    return Section(f"{renderer.anchor}-{name}", section.title, section.body)


def cells_of(label: str, columns: Sequence[Column], rows: Sequence[Any], *, turned: bool = False) -> dict[str, Any]:
    """What the template of a table is given; one of a study may include it.

    A table of many columns and few rows is ``turned``: what the first column names stands across.
    """
    cells = [[shown(column.format, column.value(row)) for column in columns] for row in rows[:_ROWS]]
    return {"label": label, "columns": columns, "rows": cells, "more": max(0, len(rows) - _ROWS), "turned": turned}


def printed(title: str, columns: Sequence[Column], rows: Sequence[Any], most: int = _PRINTED) -> RichTable:
    """A table of the terminal."""
    table = RichTable(title=Text(printable(title)), title_justify="left")
    for column in columns:
        label = Text(printable(column.label))
        table.add_column(label, justify="left" if column.format == "text" else "right", overflow="fold")
    for row in rows[:most]:
        table.add_row(*(Text(shown(column.format, column.value(row))) for column in columns))
    if len(rows) > most:
        table.caption = f"and {len(rows) - most:,} more rows"
    return table


def print_run(
    console: Console,
    headline: str,
    tables: Sequence[RenderableType],
    findings: Sequence[Statement],
    notes: Sequence[str] = (),
    meaning: Sequence[str] = (),
) -> None:
    """A run in the terminal: what was asked, its tables, findings in words, notes, and what it means."""
    parts: list[RenderableType] = [Text(printable(headline), style="bold"), *tables, Text("")]
    parts += said(findings)
    parts += [Text(printable(note), style="yellow") for note in notes]
    parts += [Text(printable(text), style="dim") for text in meaning]
    console.print(Group(*parts))


def said(statements: Iterable[Statement]) -> Iterator[Text]:
    """Statements in the terminal, each with its points below."""
    for one in statements:
        text = Text(printable(one.text))
        text.stylize("bold", 0, len(one.about))
        yield text
        yield from (Text(printable(f"  • {point}")) for point in one.points)


def paper_table(spec: TableSpec, run: RunData) -> Table:
    """A table of a paper: models across where the table names a key and a number, and else as it is."""
    columns, rows = used(spec, run)
    labels = model_labels(run)
    if spec.key and spec.number:
        numbers = {(item_of(spec, row, columns), labels[model_key(row)]): row for row in rows}
        number = _column(columns, spec.number)
        cells = {place: shown(number.format, number.value(row)) for place, row in numbers.items()}
        stub = ", ".join(_column(columns, name).label for name in spec.key)
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
