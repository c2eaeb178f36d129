"""Write tables as Markdown pipe tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from biassay.reporting.document import Cell, Table
from biassay.reporting.formats import clean_line

# Entities replace backslashes where Markdown readers differ, such as before a pipe.
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "\\": "&#92;"}
_SPECIAL = str.maketrans(_ENTITIES | {character: f"\\{character}" for character in "`*_[]~#$"})
_ADDRESS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_LIST = re.compile(r"^([0-9]+)([.)])(?=\s|$)|^([+-])(?=\s|$)")
_EMPHASIS = {0: "", 1: "", 2: "*", 3: "**"}


def escape(text: str) -> str:
    """Escape a text for Markdown and put it on one line."""
    escaped = clean_line(text).translate(_SPECIAL)
    escaped = _ADDRESS.sub(lambda found: f"&#{ord(found[0])};", escaped)
    return _LIST.sub(lambda found: f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[3]}", escaped)


def to_markdown(table: Table) -> str:
    """Render caption, table and notes. Medium effects are in italics and large ones in bold where LaTeX would shade."""
    header = [*table.stub, *(_heading(span.title, column) for span in table.models for column in span.columns)]
    numbers = len(header) - len(table.stub)
    lines = [_line(map(escape, header)), _line(["---"] * len(table.stub) + ["---:"] * numbers)]
    for group in table.groups:
        if group.title:
            lines.append(_line([f"*{escape(group.title)}*", *[""] * (len(header) - 1)]))
        lines += [_line([*map(escape, row.stub), *map(_cell, row.cells)]) for row in group.rows]
    emphasis = "d in italics: at least 0.5 in size; in bold: at least 0.8." if table.shaded else ""
    caption = f"{table.caption} {emphasis}".strip()
    return "\n\n".join([escape(caption), "\n".join(lines), *map(escape, table.notes)]) + "\n"


def _heading(title: str, column: str) -> str:
    return ": ".join(filter(None, (title, column)))


def _cell(cell: Cell) -> str:
    around = _EMPHASIS[cell.shade]
    return f"{around}{escape(cell.text)}{around}{escape(cell.mark)}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
