"""What a table is made of, before it is written in any notation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

__all__ = ["Cell", "Group", "Row", "Shade", "Span", "Table", "lean", "narrow", "shade_of"]

Shade = Literal[0, 1, 2, 3]
_SHADES: tuple[tuple[float, Shade], ...] = ((0.8, 3), (0.5, 2), (0.2, 1))


@dataclass(frozen=True)
class Cell:
    """A number as it is read, its marks (``*``, ``**``, ``†``, ``‡``), and how dark its ground is (0: not at all)."""

    text: str
    mark: str = ""
    shade: Shade = 0


@dataclass(frozen=True)
class Span:
    """The columns of one model; a single one needs no title of its own. ``notes`` are about this model."""

    title: str
    columns: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """What the row is about, then a cell for every column of every model."""

    stub: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Group:
    """Rows under one title; no title, no line for it."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Table:
    """A table in no notation. ``stub`` are the titles of the leading columns, ``signs`` say what signs mean.

    Where there is little room the columns that are ``spare`` are left out, and ``brief`` is the caption.
    """

    caption: str
    stub: tuple[str, ...]
    models: tuple[Span, ...]
    groups: tuple[Group, ...]
    signs: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    brief: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands below the table."""
        return (*self.signs, *(note for span in self.models for note in span.notes))

    @property
    def shaded(self) -> bool:
        return any(cell.shade for row in self.rows for cell in row.cells)


def lean(table: Table) -> Table:
    """Without the numbers that are spare."""
    spans = tuple(
        replace(span, columns=tuple(name for name in span.columns if name not in table.spare)) for span in table.models
    )
    groups = tuple(
        replace(group, rows=tuple(Row(row.stub, tuple(_kept(row, table))) for row in group.rows))
        for group in table.groups
    )
    return replace(table, caption=table.brief or table.caption, models=spans, groups=groups)


def _kept(row: Row, table: Table) -> Iterator[Cell]:
    names = (name for span in table.models for name in span.columns)
    return (cell for name, cell in zip(names, row.cells, strict=True) if name not in table.spare)


def narrow(table: Table) -> Table:
    """For one column of a paper in two: without what is spare, and several models below each other."""
    small = lean(table)
    kept = [i for i, name in enumerate(table.stub) if i == 0 or name not in table.spare]
    label = ", ".join(table.stub[i] for i in kept)
    rows = [(group.title, ", ".join(row.stub[i] for i in kept), row) for group in small.groups for row in group.rows]
    if len(small.models) == 1:
        groups = [
            replace(group, rows=tuple(replace(row, stub=(", ".join(row.stub[i] for i in kept),)) for row in group.rows))
            for group in small.groups
        ]
        return replace(small, stub=(label,), groups=tuple(groups))
    notes = tuple(note for span in small.models for note in span.notes)
    columns = small.models[0].columns if small.models else ()
    groups = [Group(f"{title} ({name})" if title else name, _turned(row, small)) for title, name, row in rows]
    return replace(small, stub=("",), models=(Span("", columns, notes),), groups=tuple(groups))


def _turned(row: Row, table: Table) -> tuple[Row, ...]:
    """A row for every model."""
    cells = iter(row.cells)
    return tuple(Row((span.title,), tuple(islice(cells, len(span.columns)))) for span in table.models)


def shade_of(effect_size: float | None) -> Shade:
    """How dark the paper's table over contexts is where an effect has this size."""
    size = abs(effect_size or 0.0)
    return next((shade for least, shade in _SHADES if size >= least), 0)
