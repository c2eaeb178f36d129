"""Print lists and records as tables or JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click
from rich import box
from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from biassay.io import make_printable
from biassay.reporting.formats import shorten
from biassay.reporting.terminal import WIDTH, make_console

_NAME = 14  # minimum width of the first column
_LONG_NAME = 24  # longer names do not widen the first column
_GAP = 2


def format_size(count: int) -> str:
    """Format a number of bytes in decimal units, such as 12.3 MB."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def make_table(
    *columns: str,
    right: Collection[str] = (),
    whole: Collection[str] = (),
    widths: Mapping[str, int] | None = None,
) -> Table:
    """Create an empty table in the style of all tables.

    Parameters
    ----------
    *columns : str
        Headings.
    right : collection of str
        Columns aligned to the right.
    whole : collection of str
        Columns whose cells are never wrapped.
    widths : mapping, optional
        Largest width by column.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, _GAP - 1, 0, 0))
    for column in columns:
        justify: JustifyMethod = "right" if column in right else "left"
        width = (widths or {}).get(column)
        table.add_column(escape(column), overflow="fold", no_wrap=column in whole, justify=justify, max_width=width)
    return table


def print_table(table: Table, *, err: bool = False) -> None:
    """Print a table, no wider than `WIDTH`, without spaces at the end of lines."""
    console = make_console()
    with console.capture() as captured:
        console.print(table, highlight=False, width=min(WIDTH, console.width))
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), err=err)


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    widths: Mapping[str, int] | None = None,
    err: bool = False,
) -> None:
    """Print rows as a table; cells of the first column are not wrapped.

    Parameters
    ----------
    columns : sequence of str
        Headings.
    rows : sequence of sequences of str
        Cells.
    right : collection of str
        Columns aligned to the right.
    widths : mapping, optional
        Largest width by column.
    err : bool
        If True, print to standard error.
    """
    table = make_table(*columns, right=right, whole=columns[:1], widths=widths)
    for row in rows:
        table.add_row(*(escape(make_printable(cell)) for cell in row))
    print_table(table, err=err)


def print_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = (), share: float = 1.0
) -> None:
    """Print a table with one line per row, no wider than `WIDTH`: name, text and other columns.

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
    first_width = max((cell_len(line[0]) for line in lines if cell_len(line[0]) <= _LONG_NAME), default=0)
    for number, line in enumerate(lines):
        first = line[0].ljust(max(_NAME, first_width)) + " " * _GAP
        text = Text(first + shorten(line[1], max(room - cell_len(first), 0)))
        text.append(" " * (room - text.cell_len))
        for column, column_width in widths.items():
            cell = shorten(line[column], column_width)
            padding = " " * (column_width - cell_len(cell))
            text.append(" " * _GAP + (padding + cell if columns[column] in right else cell + padding))
        text.rstrip()
        text.stylize("bold" if number == 0 else "")
        console.print(text, highlight=False, soft_wrap=True)
        if number == 0:
            console.print("─" * width, highlight=False, soft_wrap=True)


def print_fields(fields: Mapping[str, str], whole: Collection[str] = ()) -> None:
    """Print one line per field, with long texts wrapped except those of the fields `whole`."""
    indent = max(map(len, fields)) + _GAP
    for name, text in fields.items():
        lines = textwrap.wrap(text, WIDTH - indent, break_on_hyphens=False) if name not in whole else [text]
        click.echo(f"{name:<{indent}}" + f"\n{' ' * indent}".join(lines))


def print_json(content: object) -> None:
    """Print JSON, indented by one space."""
    click.echo(json.dumps(content, indent=1, ensure_ascii=False))


def print_columns(
    records: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, widths: Mapping[str, int] | None = None
) -> None:
    """Print some fields of records as a table.

    Parameters
    ----------
    records : sequence of mapping
    columns : mapping
        Field by heading.
    widths : mapping, optional
        Largest width by heading.
    """
    rows = [[_format_cell(record[field]) for field in columns.values()] for record in records]
    print_rows(tuple(columns), rows, widths=widths)


def print_records(records: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print records with the same fields as a table or as JSON."""
    if as_json:
        print_json(records)
    else:
        print_columns(records, {field.replace("_", " "): field for field in (records[0] if records else ())})


def print_lists(lists: Mapping[str, Sequence[Mapping[str, Any]]], *, as_json: bool) -> None:
    """Print lists of records by name; a single list is printed without its name."""
    if as_json and len(lists) > 1:
        print_json(lists)
        return
    for records in lists.values():
        print_records(records, as_json=as_json)


def _format_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list | tuple) else str(value or "")
