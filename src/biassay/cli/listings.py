"""Print lists and records as tables or JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from biassay.cli.common import make_console
from biassay.io import make_printable
from biassay.reporting.formats import shorten
from biassay.reporting.terminal import WIDTH

__all__ = ["format_size", "print_lines", "print_lists", "print_records", "print_rows"]

_NAME = 14  # minimum width of the first column
_GAP = 2


def format_size(count: int) -> str:
    """Format a number of bytes in decimal units, such as 12.3 MB."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def print_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = (), share: float = 1.0
) -> None:
    """Print one line per row, no wider than `WIDTH`: name, text and other columns.

    Parameters
    ----------
    columns : sequence of str
        Headings. The first column is never cut; the second is cut to fit.
    rows : sequence of sequences of str
        Cells.
    right : collection of str
        Columns aligned to the right.
    share : float
        Share of the width for all columns but the last. If below 1, the last column is cut to the rest.
    """
    console = make_console()
    lines = [columns, *([make_printable(cell) for cell in row] for row in rows)]
    others = range(2, len(columns))
    widths = {column: max(cell_len(line[column]) for line in lines) for column in others}
    width = min(WIDTH, console.width)
    if share < 1.0:
        widths[others[-1]] = width - int(width * share) - _GAP
    room = width - sum(widths.values()) - _GAP * len(widths)
    for number, line in enumerate(lines):
        first = line[0].ljust(_NAME) + " " * _GAP
        text = Text(first + shorten(line[1], max(room - cell_len(first), 0)))
        text.append(" " * (room - text.cell_len))
        for column, column_width in widths.items():
            cell = shorten(line[column], column_width)
            padding = " " * (column_width - cell_len(cell))
            text.append(" " * _GAP + (padding + cell if columns[column] in right else cell + padding))
        text.rstrip()
        text.stylize("dim" if number == 0 else "")
        console.print(text, highlight=False, soft_wrap=True)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; cells of the first column are not wrapped."""
    table = Table()
    for index, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=index == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    console = make_console()
    console.print(table, highlight=False, width=min(WIDTH, console.width))


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print records with the same fields as a table or as JSON."""
    if as_json:
        click.echo(json.dumps(records, indent=1, ensure_ascii=False))
        return
    columns = list(records[0]) if records else []
    print_rows([name.replace("_", " ") for name in columns], [[_cell(r[name]) for name in columns] for r in records])


def print_lists(lists: Mapping[str, Sequence[Mapping[str, Any]]], *, as_json: bool) -> None:
    """Print lists of records by name; a single list is printed without its name."""
    if as_json and len(lists) > 1:
        click.echo(json.dumps(lists, indent=1, ensure_ascii=False))
        return
    for records in lists.values():
        print_records(records, as_json=as_json)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return ", ".join(value) if isinstance(value, list | tuple) else str(value or "")
