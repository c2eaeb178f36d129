"""Tables of any study: on a page, in a terminal and in a paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from biassay.pages.formats import printable, shown
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table, clean
from biassay.pages.section import Renderer, Section
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.tables import Column, TableSpec

__all__ = ["item_of", "paper_table", "printed", "section_of", "side_by_side", "used"]

_ROWS = 200
_PRINTED = 30


def used(spec: TableSpec, run: RunData) -> tuple[list[Column], Sequence[Any]]:
    """The columns in which anything stands, and the rows."""
    rows = spec.rows_of(run)
    return [column for column in spec.columns_of(run) if any(column.value(row) not in ("", None) for row in rows)], rows


def section_of(name: str, title: str, columns: Sequence[Column], rows: Sequence[Any], renderer: Renderer) -> Section:
    """A table of a page."""
    cells = [[shown(column.format, column.value(row)) for column in columns] for row in rows[:_ROWS]]
    more = max(0, len(rows) - _ROWS)
    section = renderer.section("table", title, label=title, columns=columns, rows=cells, more=more)
    return Section(f"{renderer.anchor}-{name}", section.title, section.body)


def printed(title: str, columns: Sequence[Column], rows: Sequence[Any]) -> RichTable:
    """A table of the terminal."""
    table = RichTable(title=printable(title), title_justify="left")
    for column in columns:
        table.add_column(Text(column.label), justify="left" if column.format == "text" else "right", overflow="fold")
    for row in rows[:_PRINTED]:
        table.add_row(*(Text(shown(column.format, column.value(row))) for column in columns))
    if len(rows) > _PRINTED:
        table.caption = f"and {len(rows) - _PRINTED:,} more rows"
    return table


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
    return Table(clean(caption), tuple(clean(column.label) for column in texts), spans, (Group("", body),))


def side_by_side(caption: str, stub: str, cells: dict[tuple[str, str], str]) -> Table:
    """A table of a paper, items down and models across."""
    items, models = (list(dict.fromkeys(place[side] for place in cells)) for side in (0, 1))
    body = [Row((clean(item),), tuple(Cell(cells.get((item, model), "–")) for model in models)) for item in items]
    return Table(clean(caption), (clean(stub),), tuple(Span(clean(m)) for m in models), (Group("", tuple(body)),))


def item_of(spec: TableSpec, row: Any, columns: Sequence[Column]) -> str:
    """What a row is about, in the words of its key."""
    return ", ".join(shown("text", _column(columns, name).value(row)) for name in spec.key)


def _column(columns: Sequence[Column], name: str) -> Column:
    return next(column for column in columns if column.name == name)


def _cleaned(columns: Sequence[Column], row: Any) -> tuple[str, ...]:
    return tuple(clean(shown(column.format, column.value(row))) for column in columns)
