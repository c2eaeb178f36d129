"""A table of a run as its user holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from biassay.errors import UnknownNameError
from biassay.pages.formats import shown
from biassay.results.data import RunData
from biassay.results.storage import Types
from biassay.results.tables import Column, html_table, tsv_of

__all__ = ["Table"]

_SHOWN = 60


@dataclass(frozen=True, repr=False)
class Table:
    """Rows with their columns; those that are shown first, where they are many."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Any]
    shown: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: RunData, types: Types, name: str | None = None) -> Table:
        """A table of a run by its name, the main one by default."""
        known = {spec.name: spec for spec in types.tables}
        if name is not None and name not in known:
            raise UnknownNameError("table", name, known, f"(tables of this run: {', '.join(known)})")
        spec = types.tables[0] if name is None else known[name]
        return cls(spec.title, spec.columns_of(run), spec.rows_of(run), spec.shown)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def content(self) -> dict[str, list[Any]]:
        """Values by the name of their column."""
        return {column.name: [column.value(row) for row in self.rows] for column in self.columns}

    def to_tsv(self) -> str:
        return tsv_of(self.columns, self.rows)

    def __repr__(self) -> str:
        lines = [[column.name for column in self._first], *self._lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self.rows) - _SHOWN:,} more rows</p>" if len(self.rows) > _SHOWN else ""
        return html_table(self.title, {column.label: column.help for column in self._first}, self._lines) + more

    @property
    def _first(self) -> list[Column]:
        """The columns that a person sees first."""
        return [column for column in self.columns if not self.shown or column.name in self.shown]

    @property
    def _lines(self) -> list[list[str]]:
        """The first rows, as a person reads them."""
        return [[shown(c.format, c.value(row)) for c in self._first] for row in self.rows[:_SHOWN]]
