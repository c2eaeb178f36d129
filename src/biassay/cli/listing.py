"""Lists of what can be named: groups, templates, traits."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click
from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from biassay.cli.common import console_for_tables
from biassay.files import printable
from biassay.pages.formats import shortened
from biassay.pages.plain_tables import WIDTH

__all__ = ["format_size", "print_lines", "print_lists", "print_records", "print_rows"]

_NAME = 14  # columns of a name, behind which texts stand below each other
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
    """A line a row, no wider than `WIDTH`: name, text, and the other columns.

    A name is never cut; the text is, to what is left of its ``share`` of the room that the short columns leave. Where
    that is not all, the last column is cut too.
    """
    console = console_for_tables()
    lines = [columns, *([printable(cell) for cell in row] for row in rows)]
    others = range(2, len(columns))
    widths = {place: max(cell_len(line[place]) for line in lines) for place in others}
    width = min(WIDTH, console.width)
    if share < 1.0:
        widths[others[-1]] = width - int(width * share) - _GAP
    room = width - sum(widths.values()) - _GAP * len(widths)
    for number, line in enumerate(lines):
        first = line[0].ljust(_NAME) + " " * _GAP
        text = Text(first + shortened(line[1], max(room - cell_len(first), 0)))
        text.append(" " * (room - text.cell_len))
        for place, wide in widths.items():
            cell = shortened(line[place], wide)
            filled = " " * (wide - cell_len(cell))
            text.append(" " * _GAP + (filled + cell if columns[place] in right else cell + filled))
        text.rstrip()
        text.stylize("dim" if number == 0 else "")
        console.print(text, highlight=False, soft_wrap=True)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of texts; names, in the first column, stay in one piece."""
    table = Table()
    for place, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    console = console_for_tables()
    console.print(table, highlight=False, width=min(WIDTH, console.width))


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Records of the same fields as a table, or as JSON."""
    if as_json:
        click.echo(json.dumps(records, indent=1, ensure_ascii=False))
        return
    columns = list(records[0]) if records else []
    print_rows([name.replace("_", " ") for name in columns], [[_cell(r[name]) for name in columns] for r in records])


def print_lists(lists: Mapping[str, Sequence[Mapping[str, Any]]], *, as_json: bool) -> None:
    """Lists of records by their names; one by itself is printed without its name."""
    if as_json and len(lists) > 1:
        click.echo(json.dumps(lists, indent=1, ensure_ascii=False))
        return
    for records in lists.values():
        print_records(records, as_json=as_json)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return ", ".join(value) if isinstance(value, list | tuple) else str(value or "")
