"""What a table is made of, before it is written in any notation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from biassay.report.words import printable, size_word

__all__ = ["Cell", "Group", "Row", "Shade", "Span", "Table", "clean", "effect_text", "p_rounded_up", "shade_of"]

Shade = Literal[0, 1, 2, 3]
_SHADES: dict[str, Shade] = {"negligible": 0, "small": 1, "medium": 2, "large": 3}
_SMALLEST_P = 1e-30  # the paper's; below it a p-value says no more than that it is small
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    """A table in no notation. ``stub`` are the titles of the leading columns, ``signs`` say what signs mean."""

    caption: str
    stub: tuple[str, ...]
    models: tuple[Span, ...]
    groups: tuple[Group, ...]
    signs: tuple[str, ...] = ()

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


def clean(text: str) -> str:
    """One line that can be printed."""
    return printable(" ".join(text.split()))


def effect_text(value: float | None) -> str:
    """An effect size to two decimals; what is no finite number is shown as such."""
    if value is None:
        return "–"
    return "NaN" if math.isnan(value) else f"{value:z.2f}"


def shade_of(effect_size: float | None) -> Shade:
    """None, small, medium and large effects, by convention."""
    return 0 if effect_size is None else _SHADES[size_word(effect_size)]


def p_rounded_up(value: float | None) -> str:
    """A p-value to two digits, never below what it is."""
    if value is None or not math.isfinite(value):
        return effect_text(value)
    if value < _SMALLEST_P:
        return "<10" + "-30".translate(_SUPERSCRIPT)
    # Of the shortest decimal that is this float: 0.2 is a little more in binary and would become 0.21.
    exact = Decimal(repr(value))
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), rounding=ROUND_CEILING)
    exponent = rounded.adjusted()
    if exponent >= -3:
        return f"{rounded:.{1 - exponent}f}"
    return f"{rounded.scaleb(-exponent):.1f}×10{str(exponent).translate(_SUPERSCRIPT)}"
