"""Tables of typed columns, as TSV, HTML and data frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from html import escape
from itertools import islice
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, dataclass_transform

import numpy as np

from biassay.errors import MissingExtraError
from biassay.io import escape_formula, replace_controls

if TYPE_CHECKING:
    import pandas as pd

    from biassay.results.run_data import RunData


_LEFT_STYLE, _MAX_SHORT_TEXT = "text-align:left", 24
_ROWS_PER_PIECE = 2_000  # rows per piece of a file
Format = Literal["text", "count", "number", "p", "share", "flag", "interval"]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        In files and data frames.
    label : str
        Heading in displayed tables.
    help : str
        Description in one sentence.
    format : Format
        Display format of its numbers.
    get : callable, optional
        The value in a row; by default the row's attribute of that name.
    """

    name: str
    label: str
    help: str
    format: Format = "text"
    get: Callable[[Any], Any] | None = None

    def value(self, row: Any) -> Any:
        """Return the value of the column in a row."""
        return getattr(row, self.name) if self.get is None else self.get(row)


_FORMATS: Mapping[str, Format] = {"float": "number", "int": "count", "bool": "flag"}
_T = TypeVar("_T")


def column(
    label: str,
    help: str,
    format: Format | None = None,
    *,
    default: Any = MISSING,
    get: Callable[[Any], Any] | None = None,
) -> Any:
    """Declare a field of a record that is a column of its table.

    Parameters
    ----------
    label, help : str
        Heading in displayed tables, and description in one sentence.
    format : Format, optional
        Display format. By default number, count or flag for a float, int or bool, otherwise text.
    default : object, optional
        Default of the field.
    get : callable, optional
        Function from a row to the displayed value; by default the value of the field.
    """
    metadata = {"column": (label, help, format, get)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def optional(label: str, help: str, format: Format | None = None) -> Any:
    """Declare a field of a record that is a column and that is None if it was not computed; see `column`."""
    return column(label, help, format, default=None)


@dataclass_transform(frozen_default=True, field_specifiers=(column, dataclasses.field))
def table_row(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass whose fields may be declared by `column`."""
    return dataclass(frozen=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(column, dataclasses.field))
def keyword_row(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass as `table_row` does, whose fields are set by name only."""
    return dataclass(frozen=True, kw_only=True)(cls)


def make_columns(record: type[Any], *names: str) -> tuple[Column, ...]:
    """Return the columns that a record declares, in the order of its fields; with names, only these, in their order."""
    declared = {}
    for field in dataclasses.fields(record):
        if "column" in field.metadata:
            label, help, format, get = field.metadata["column"]
            kind = str(getattr(field.type, "__name__", field.type)).removesuffix(" | None")
            declared[field.name] = Column(field.name, label, help, format or _FORMATS.get(kind, "text"), get)
    return tuple(declared[name] for name in names or declared)


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
        By default the columns that the record declares.
    rows : callable, optional
        From a run to the rows; by default those that are stored, outcomes with their decisions.
    key : tuple of str
        Columns that identify the rows of one model; empty if a model has one row.
    value_column : str
        The column that a table with a ``key`` shows in a paper, models side by side.
    default_columns : tuple of str
        Columns shown by default in a notebook or a terminal; empty for all.
    collapsed : bool
        Whether it holds details: folded on a page, in a file, and neither in a terminal nor in a paper.
    on_page : bool
        If False, reports leave it out because it is too large; files have it.
    """

    name: str
    title: str
    record: type | None
    columns: tuple[Column, ...] | Callable[[RunData], tuple[Column, ...]] = ()
    rows: Callable[[RunData], Iterable[Any]] | None = None
    key: tuple[str, ...] = ()
    value_column: str = ""
    default_columns: tuple[str, ...] = ()
    collapsed: bool = False
    on_page: bool = True

    def __post_init__(self) -> None:
        if self.record is not None and self.columns == ():
            object.__setattr__(self, "columns", make_columns(self.record))

    def get_columns(self, run: RunData) -> tuple[Column, ...]:
        """Return the columns of the table in a run."""
        return self.columns(run) if callable(self.columns) else self.columns

    def get_rows(self, run: RunData) -> Sequence[Any]:
        """Return the rows of the table in a run."""
        return tuple(self.iter_rows(run))

    def iter_rows(self, run: RunData) -> Iterable[Any]:
        """Iterate over the rows, made one by one if they are not stored."""
        if self.rows is not None:
            return self.rows(run)
        rows = run.tables.get(self.name, ())
        return run.decided_results if self.name == "results" and rows and hasattr(rows[0], "outcome") else rows


def select_columns(columns: Iterable[Column], *names: str) -> list[Column]:
    """Select columns by name, in the order of the names."""
    by_name = {column.name: column for column in columns}
    return [by_name[name] for name in names]


def drop_columns(columns: Iterable[Column], *names: str) -> list[Column]:
    """Drop columns by name."""
    return [column for column in columns if column.name not in names]


def render_html_table(title: str, head: Mapping[str, str], lines: Iterable[Sequence[str]]) -> str:
    """Render a table for a notebook.

    Parameters
    ----------
    title : str
        Caption; none if empty.
    head : dict of str to str
        Tooltips of the columns by heading.
    lines : iterable of sequence of str
        Rows of cells.

    Returns
    -------
    str
        HTML.
    """
    heads = "".join(
        f'<th title="{escape(about)}" style="{_LEFT_STYLE}">{escape(name)}</th>' for name, about in head.items()
    )
    body = "".join(f"<tr>{''.join(map(_render_html_cell, line))}</tr>" for line in lines)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    top = f"<thead><tr>{heads}</tr></thead>" if head else ""
    return f'<table style="color:inherit">{caption}{top}<tbody>{body}</tbody></table>'


def _render_html_cell(text: str) -> str:
    """Render a cell; numbers and short names stay on one line."""
    style = f"{_LEFT_STYLE};white-space:nowrap" if len(text) <= _MAX_SHORT_TEXT else _LEFT_STYLE
    return f'<td style="{style}">{escape(text)}</td>'


def format_tsv(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Format a table as tab-separated values. An empty cell was not computed."""
    return "".join(iter_tsv(columns, rows))


def iter_tsv(columns: Sequence[Column], rows: Iterable[Any]) -> Iterator[str]:
    """Yield the TSV in pieces, because a table may have a hundred thousand rows.

    Each piece is formatted column by column, and repeated texts only once.
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
    return escape_formula(replace_controls(" ".join(text.split())))


def to_data_frame(content: Mapping[str, list[Any]]) -> pd.DataFrame:
    """Return a data frame; values that were not computed are ``pandas.NA``, which NaN is not."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("to_frame()", "frame") from error
    return pd.DataFrame({name: _make_series(pd, values) for name, values in content.items()})


def _make_series(pd: ModuleType, values: list[Any]) -> Any:
    """Make a masked series of numbers or booleans; leave other values as they are."""
    missing = np.array([value is None for value in values], dtype=bool)
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, float) for value in present):
        return pd.arrays.FloatingArray(np.array([0.0 if v is None else v for v in values], dtype=float), missing)
    if present and all(isinstance(value, bool) for value in present):
        return pd.arrays.BooleanArray(np.array([bool(v) for v in values], dtype=bool), missing)
    return values
