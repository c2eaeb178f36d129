"""A table of a run as its user holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from biassay.errors import UnknownNameError
from biassay.report.formats import shown
from biassay.results.data import RunData
from biassay.results.storage import Types
from biassay.results.tables import Column, cells, tsv_lines

__all__ = ["Table"]

_SHOWN = 60


@dataclass(frozen=True, repr=False)
class Table:
    """Rows with their columns."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Any]

    @classmethod
    def of(cls, run: RunData, types: Types, name: str | None = None) -> Table:
        """A table of a run by its name, the main one by default."""
        known = {spec.name: spec for spec in types.tables}
        if name is not None and name not in known:
            raise UnknownNameError("table", name, known, f"(tables of this run: {', '.join(known)})")
        spec = types.tables[0] if name is None else known[name]
        return cls(spec.title, spec.columns_of(run), spec.rows_of(run))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def content(self) -> dict[str, list[Any]]:
        """Values by the name of their column."""
        return {column.name: [column.value(row) for row in self.rows] for column in self.columns}

    def to_tsv(self) -> str:
        return tsv_lines([[column.name for column in self.columns], *cells(self.columns, self.rows)])

    def __repr__(self) -> str:
        head = [column.name for column in self.columns]
        lines = [head, *([shown(column.format, column.value(row)) for column in self.columns] for row in self.rows[:_SHOWN])]
        return "\n".join("  ".join(line) for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f'<th title="{escape(column.help)}">{escape(column.label)}</th>' for column in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(shown(c.format, c.value(row)))}</td>' for c in self.columns)}</tr>"
            for row in self.rows[:_SHOWN]
        )
        more = f"<p>and {len(self.rows) - _SHOWN:,} more rows</p>" if len(self.rows) > _SHOWN else ""
        return f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
