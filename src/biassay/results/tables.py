"""Tables of typed columns, as TSV, HTML and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from biassay.errors import MissingExtraError
from biassay.io import escape_formula

if TYPE_CHECKING:
    import pandas as pd

    from biassay.results.run_data import RunData


__all__ = [
    "MODEL_COLUMNS",
    "REVISION_COLUMN",
    "Column",
    "Format",
    "TableSpec",
    "drop_columns",
    "format_tsv",
    "iter_tsv",
    "render_html_table",
    "select_columns",
    "to_data_frame",
]


_LEFT_STYLE, _MAX_SHORT_TEXT = "text-align:left", 24
_ROWS_PER_PIECE = 2_000  # rows of a piece of a file
Format = Literal["text", "count", "number", "p", "share", "flag", "interval"]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        In files and data frames.
    label : str
        At the head of a table that a person reads.
    help : str
        What it holds, in a sentence.
    format : Format
        How a person reads its numbers.
    get : callable, optional
        The value in a row; by default the row's attribute of that name.
    """

    name: str
    label: str
    help: str
    format: Format = "text"
    get: Callable[[Any], Any] | None = None

    def value(self, row: Any) -> Any:
        return getattr(row, self.name) if self.get is None else self.get(row)


MODEL_COLUMNS = (Column("model", "model", "The model's name."), Column("options", "options", "Its settings."))
"""The columns of every table that say which model a row is about."""
REVISION_COLUMN = Column("model_revision", "revision", "Fingerprint of the model's weights.")


@dataclass(frozen=True)
class TableSpec:
    """A table of a study.

    Attributes
    ----------
    name, title : str
    record : type or None
        A frozen dataclass with at least ``model`` and ``options``, whose instances are stored; None: the rows follow
        from other tables and arrays, and are not stored.
    columns : tuple of Column, or callable from a run to one
    rows : callable, optional
        From a run to the rows; by default those that are stored.
    key : tuple of str
        Columns that tell the rows of one model apart; none: a model has one row.
    number : str
        The column by which models are compared, row by row; none: the table is not compared.
    shown : tuple of str
        Columns that a person sees first, in a notebook or a terminal; none: all of them.
    detail : bool
        Whether it holds details: folded on a page, in a file, and neither in a terminal nor in a paper.
    """

    name: str
    title: str
    record: type | None
    columns: tuple[Column, ...] | Callable[[RunData], tuple[Column, ...]]
    rows: Callable[[RunData], Iterable[Any]] | None = None
    key: tuple[str, ...] = ()
    number: str = ""
    shown: tuple[str, ...] = ()
    detail: bool = False

    def columns_of(self, run: RunData) -> tuple[Column, ...]:
        return self.columns(run) if callable(self.columns) else self.columns

    def rows_of(self, run: RunData) -> Sequence[Any]:
        return tuple(self.each_row(run))

    def each_row(self, run: RunData) -> Iterable[Any]:
        """The same, made one after the other where they are not stored."""
        return run.tables.get(self.name, ()) if self.rows is None else self.rows(run)


def select_columns(columns: Iterable[Column], *names: str) -> list[Column]:
    """Some of the columns, in the order of their names."""
    by_name = {column.name: column for column in columns}
    return [by_name[name] for name in names]


def drop_columns(columns: Iterable[Column], *names: str) -> list[Column]:
    return [column for column in columns if column.name not in names]


def render_html_table(title: str, head: Mapping[str, str], lines: Iterable[Sequence[str]]) -> str:
    """A table for a notebook; ``head`` holds the heads of the columns, and what each means."""
    heads = "".join(
        f'<th title="{escape(about)}" style="{_LEFT_STYLE}">{escape(name)}</th>' for name, about in head.items()
    )
    body = "".join(f"<tr>{''.join(map(_render_html_cell, line))}</tr>" for line in lines)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    top = f"<thead><tr>{heads}</tr></thead>" if head else ""
    return f'<table style="color:inherit">{caption}{top}<tbody>{body}</tbody></table>'


def _render_html_cell(text: str) -> str:
    """Numbers and short names stay on one line."""
    style = f"{_LEFT_STYLE};white-space:nowrap" if len(text) <= _MAX_SHORT_TEXT else _LEFT_STYLE
    return f'<td style="{style}">{escape(text)}</td>'


def format_tsv(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Lines of cells below the names of their columns. An empty cell was not computed."""
    return "".join(iter_tsv(columns, rows))


def iter_tsv(columns: Sequence[Column], rows: Iterable[Any]) -> Iterator[str]:
    """The same piece by piece: a table may have a hundred thousand rows.

    A piece is written column by column, and a text that comes again once.
    """
    yield "\t".join(_format_cell(column.name) for column in columns) + "\n"
    coming = iter(rows)
    while piece := list(islice(coming, _ROWS_PER_PIECE)):
        cells = [_format_cells(column, piece) for column in columns]
        yield "".join("\t".join(line) + "\n" for line in zip(*cells, strict=True))


def _format_cells(column: Column, rows: Iterable[Any]) -> list[str]:
    known: dict[str, str] = {}
    values = map(attrgetter(column.name) if column.get is None else column.get, rows)
    return [
        known.get(value) or known.setdefault(value, _format_cell(value)) if type(value) is str else _format_cell(value)
        for value in values
    ]


def _format_cell(value: Any) -> str:
    if isinstance(value, str):
        return _clean_cell(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        parts = (f"{key}: {', '.join(v) if isinstance(v, tuple) else v}" for key, v in value.items() if v)
        return _clean_cell("; ".join(parts))
    if isinstance(value, tuple):
        return _clean_cell(", ".join(map(str, value)))
    return repr(value) if isinstance(value, float) else _clean_cell(str(value))


def _clean_cell(text: str) -> str:
    return escape_formula(" ".join(text.split()))


def to_data_frame(content: Mapping[str, list[Any]]) -> pd.DataFrame:
    """A data frame from its columns; what was not computed is ``pandas.NA``, which NaN is not."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("to_frame()", "frame") from error
    return pd.DataFrame({name: _make_series(pd, values) for name, values in content.items()})


def _make_series(pd: ModuleType, values: list[Any]) -> Any:
    """Numbers and truth values with a mask for those that are missing; anything else as it is."""
    missing = np.array([value is None for value in values], dtype=bool)
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, float) for value in present):
        return pd.arrays.FloatingArray(np.array([0.0 if v is None else v for v in values], dtype=float), missing)
    if present and all(isinstance(value, bool) for value in present):
        return pd.arrays.BooleanArray(np.array([bool(v) for v in values], dtype=bool), missing)
    return values
