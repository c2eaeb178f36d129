"""Lists of what can be named: groups, templates, traits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from biassay.cli.common import console_for_tables

__all__ = ["print_lists", "print_records", "print_rows"]


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table of texts; names, in the first column, stay in one piece."""
    table = Table()
    for place, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    console_for_tables().print(table, highlight=False)


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
