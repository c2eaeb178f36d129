"""What a table is made of, before it is written in any notation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from biassay.files import printable

__all__ = ["Cell", "Group", "Row", "Shade", "Span", "Table", "clean", "narrow", "shade_of"]

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


def narrow(table: Table) -> Table:
    """The table for little room: models below each other, without the columns that are spare."""
    kept = [i for i, name in enumerate(table.stub) if i == 0 or name not in table.spare]
    spans = [Span(span.title, tuple(name for name in span.columns if name not in table.spare)) for span in table.models]
    alone, notes = len(spans) == 1, tuple(note for span in table.models for note in span.notes)
    groups: list[Group] = []
    for group in table.groups:
        rows = [(", ".join(row.stub[i] for i in kept), _by_model(row, table)) for row in group.rows]
        if alone:
            groups.append(Group(group.title, tuple(Row((label,), cells[0]) for label, cells in rows)))
        for label, cells in () if alone else rows:
            lines = tuple(Row((span.title,), own) for span, own in zip(spans, cells, strict=True))
            groups.append(Group(f"{group.title} ({label})" if group.title else label, lines))
    return replace(
        table,
        caption=table.brief or table.caption,
        stub=(", ".join(table.stub[i] for i in kept) if alone else "",),
        models=(replace(spans[0], notes=notes),) if alone else (Span("", spans[0].columns if spans else (), notes),),
        groups=tuple(groups),
    )


def _by_model(row: Row, table: Table) -> list[tuple[Cell, ...]]:
    """The cells of every model, less those that are spare."""
    cells = iter(row.cells)
    own = [(span.columns, list(islice(cells, len(span.columns)))) for span in table.models]
    return [tuple(c for name, c in zip(*both, strict=True) if name not in table.spare) for both in own]


def clean(text: str) -> str:
    """One line that can be printed."""
    return printable(" ".join(text.split()))


def shade_of(effect_size: float | None) -> Shade:
    """How dark the paper's table over contexts is where an effect has this size."""
    size = abs(effect_size or 0.0)
    return next((shade for least, shade in _SHADES if size >= least), 0)
