"""The report document: blocks, sections and tables that every renderer can show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress, islice
from typing import Any, Literal

from markupsafe import Markup

from biassay.reporting.charts.base import Drawing
from biassay.reporting.formats import clean_line, format_value
from biassay.results.outcomes import Finding
from biassay.results.run_data import RunData, model_key, model_labels
from biassay.results.tables import Column, TableSpec

Shade = Literal[0, 1, 2, 3]
_SHADES: tuple[tuple[float, Shade], ...] = ((0.8, 3), (0.5, 2), (0.2, 1))


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text : str
    mark : str
        Mark after the text: ``*``, ``**``, ``†``, ``‡``.
    shade : {0, 1, 2, 3}
        Shade of the background in a paper.
    note : str
        Small print in the HTML report.
    tint : float, optional
        Background in the HTML report, from -1 to 1: the sign decides its colour, the size its strength.
    """

    text: str
    mark: str = ""
    shade: Shade = 0
    note: str = ""
    tint: float | None = None


@dataclass(frozen=True)
class ColumnSpan:
    """The columns of one model; a single column needs no title.

    Attributes
    ----------
    title : str
    columns : tuple of str
    notes : tuple of str
        Notes on this model, below the table.
    text : bool
        If True, the columns hold text and are aligned to the left.
    """

    title: str
    columns: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()
    text: bool = False


@dataclass(frozen=True)
class TableRow:
    """Labels of a row, and one cell per column and model."""

    stub: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class RowGroup:
    """Rows under one title, which may be empty."""

    title: str
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class Table:
    """A table that every renderer can show.

    Attributes
    ----------
    caption : str
    stub : tuple of str
        Titles of the leading columns, which name the rows.
    models : tuple of ColumnSpan
        The other columns, by model.
    groups : tuple of RowGroup
    signs : tuple of str
        Meaning of the signs, below the table.
    spare : tuple of str
        Titles of the columns that a narrow table leaves out.
    brief : str
        Caption of the narrow table.
    help : mapping of str to str
        Meaning of columns by title.
    """

    caption: str
    stub: tuple[str, ...]
    models: tuple[ColumnSpan, ...]
    groups: tuple[RowGroup, ...]
    signs: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    brief: str = ""
    help: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """Rows of all groups."""
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """Signs and notes below the table."""
        return (*self.signs, *(note for span in self.models for note in span.notes))

    @property
    def shaded(self) -> bool:
        """Whether any cell has a shaded background."""
        return any(cell.shade for row in self.rows for cell in row.cells)

    def map_rows(self, change: Callable[[TableRow], TableRow]) -> Table:
        """Return the table with every row changed by a function."""
        return replace(self, groups=tuple(replace(group, rows=tuple(map(change, group.rows))) for group in self.groups))


def make_table(title: str, columns: Sequence[Column], rows: Sequence[Any], most: int | None = None) -> Table:
    """Make a table of records: leading text columns name the rows, and `most` limits their number.

    Parameters
    ----------
    title : str
    columns : sequence of Column
    rows : sequence
        Records.
    most : int, optional
        Largest number of rows.
    """
    n_stubs = next((i for i, column in enumerate(columns) if column.format != "text"), len(columns)) or 1
    n_stubs = min(n_stubs, 2)
    body = tuple(
        TableRow(_cleaned(columns[:n_stubs], row), tuple(map(Cell, _cleaned(columns[n_stubs:], row))))
        for row in rows[:most]
    )
    spans = tuple(ColumnSpan(clean_line(column.label), text=column.format == "text") for column in columns[n_stubs:])
    more = len(rows) - len(body)
    return Table(
        clean_line(title),
        tuple(clean_line(column.label) for column in columns[:n_stubs]),
        spans,
        (RowGroup("", body),),
        signs=(f"and {more:,} more rows",) if more > 0 else (),
        help={clean_line(column.label): column.help for column in columns},
    )


def read_table(spec: TableSpec, run: RunData) -> tuple[list[Column], Sequence[Any]]:
    """Return the columns that are not empty, and the rows."""
    rows = spec.get_rows(run)
    return drop_empty_columns(spec.get_columns(run), rows), rows


def read_default_columns(spec: TableSpec, run: RunData) -> tuple[list[Column], Sequence[Any]]:
    """Return the default columns that are not empty, and the rows."""
    columns, rows = read_table(spec, run)
    return [column for column in columns if not spec.default_columns or column.name in spec.default_columns], rows


def drop_empty_columns(columns: Iterable[Column], rows: Sequence[Any]) -> list[Column]:
    """Select the columns that are not empty."""
    return [column for column in columns if any(column.value(row) not in ("", None, (), {}) for row in rows)]


def join_intervals(columns: Iterable[Column]) -> list[Column]:
    """Replace the two ends of an interval by one column, which is empty if there is no interval."""
    by_name = {column.name: column for column in columns}
    joined = []
    for name, column in by_name.items():
        if name.endswith("ci_low"):
            text = (
                column.help.removesuffix(": lower end.").removeprefix("Lower end of ").removeprefix("the ").rstrip(".")
            )
            label = column.label.removesuffix("low").removesuffix(", ") or "95%"
            ends = partial(_get_ends, column, by_name[name.replace("ci_low", "ci_high")])
            joined.append(
                Column(name.replace("ci_low", "interval"), label, f"{text[:1].upper()}{text[1:]}.", "interval", ends)
            )
        elif not name.endswith("ci_high"):
            joined.append(column)
    return joined


def _get_ends(low: Column, high: Column, row: Any) -> tuple[float, float] | None:
    return None if low.value(row) is None else (low.value(row), high.value(row))


def paper_table(spec: TableSpec, run: RunData) -> Table:
    """Make the table of a paper: models across if the table has a key and a value column."""
    columns, rows = read_table(spec, run)
    if spec.key and spec.value_column:
        every, labels = {column.name: column for column in spec.get_columns(run)}, model_labels(run)
        number, cells = every[spec.value_column], {}
        for row in rows:
            item = ", ".join(format_value("text", every[name].value(row)) for name in spec.key)
            cells[item, labels[model_key(row)]] = format_value(number.format, number.value(row))
        stub = ", ".join(every[name].label for name in spec.key)
        return side_by_side(f"{spec.title}. {number.label}: {number.help}", stub, cells)
    texts = [column for column in columns if column.format == "text"]
    others = [column for column in columns if column.format != "text"]
    body = tuple(TableRow(_cleaned(texts, row), tuple(map(Cell, _cleaned(others, row)))) for row in rows)
    spans = tuple(ColumnSpan(clean_line(column.label)) for column in others)
    caption = " ".join([f"{spec.title}.", *(f"{column.label}: {column.help}" for column in others)])
    return Table(clean_line(caption), tuple(clean_line(column.label) for column in texts), spans, (RowGroup("", body),))


def side_by_side(
    caption: str,
    stub: str,
    cells: Mapping[tuple[str, str], str] | Mapping[tuple[str, str], tuple[Cell, ...]],
    heads: tuple[str, ...] = ("",),
) -> Table:
    """Make a table with items down and models across.

    Parameters
    ----------
    caption : str
        Caption of the table.
    stub : str
        Heading of the column of items.
    cells : dict of (str, str) to str or tuple of Cell
        Text, or one cell per column, by item and model. Missing cells are shown as a dash.
    heads : tuple of str
        Headings of the columns of a model.

    Returns
    -------
    Table
    """
    items, models = (list(dict.fromkeys(index[side] for index in cells)) for side in (0, 1))
    body = []
    for item in items:
        of_models = (cells.get((item, model), (Cell("–"),) * len(heads)) for model in models)
        own = ((Cell(cells),) if isinstance(cells, str) else cells for cells in of_models)
        body.append(TableRow((clean_line(item),), tuple(cell for cells in own for cell in cells)))
    spans = tuple(ColumnSpan(clean_line(model), heads) for model in models)
    return Table(clean_line(caption), (clean_line(stub),), spans, (RowGroup("", tuple(body)),))


def _cleaned(columns: Sequence[Column], row: Any) -> tuple[str, ...]:
    return tuple(clean_line(format_value(column.format, column.value(row))) for column in columns)


def drop_spare_columns(table: Table) -> Table:
    """Drop the spare columns of a table."""
    spans = tuple(
        replace(span, columns=tuple(name for name in span.columns if name not in table.spare)) for span in table.models
    )
    kept = [name not in table.spare for span in table.models for name in span.columns]
    shorter = table.map_rows(lambda row: TableRow(row.stub, tuple(compress(row.cells, kept))))
    return replace(shorter, caption=table.brief or table.caption, models=spans)


def narrow_table(table: Table) -> Table:
    """Narrow a table for one column of a two-column paper: drop spare columns and list models below each other."""
    small = drop_spare_columns(table)
    kept = [i for i, name in enumerate(table.stub) if i == 0 or name not in table.spare]
    label = ", ".join(table.stub[i] for i in kept)
    rows = [(group.title, ", ".join(row.stub[i] for i in kept), row) for group in small.groups for row in group.rows]
    if len(small.models) == 1:
        joined = small.map_rows(lambda row: replace(row, stub=(", ".join(row.stub[i] for i in kept),)))
        return replace(joined, stub=(label,))
    notes = tuple(note for span in small.models for note in span.notes)
    columns = small.models[0].columns if small.models else ()
    groups = [RowGroup(f"{title} ({name})" if title else name, _turn_row(row, small)) for title, name, row in rows]
    return replace(small, stub=("",), models=(ColumnSpan("", columns, notes),), groups=tuple(groups))


def _turn_row(row: TableRow, table: Table) -> tuple[TableRow, ...]:
    """Return one row per model."""
    cells = iter(row.cells)
    return tuple(TableRow((span.title,), tuple(islice(cells, len(span.columns)))) for span in table.models)


def get_shade(effect_size: float | None) -> Shade:
    """Return how dark a cell is, by the size of its effect."""
    size = abs(effect_size or 0.0)
    return next((shade for least, shade in _SHADES if size >= least), 0)


@dataclass(frozen=True)
class Statement:
    """A finding in one or two sentences, and the associations that it counts, one per line.

    ``about`` is the model or run that it is about, if the text begins with its name; ``names`` are the code names in
    brackets at the end of the points.
    """

    text: str
    points: tuple[str, ...] = ()
    about: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of statements, each with its points."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Definitions:
    """Terms with their descriptions, such as settings with their values."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Drawings:
    """Charts with captions, drawn if the extra `figures` is installed; several side by side if `small` is True."""

    drawings: tuple[tuple[str, Drawing], ...]
    small: bool = False


@dataclass(frozen=True)
class Explorer:
    """An interactive view of the data of a report: all numbers, a matrix of significance, or words.

    Attributes
    ----------
    kind : {"numbers", "matrix", "words"}
    height : float
        Height in rem to reserve before the script has run.
    fallback : str
        Text for a browser without scripts.
    """

    kind: Literal["numbers", "matrix", "words"]
    height: float
    fallback: str


@dataclass(frozen=True)
class HtmlFigure:
    """A figure that is drawn in HTML; see `draw_effects` and `draw_panels`. Other renderers leave it out."""

    html: Markup


Block = Heading | Text | Bullets | Definitions | Table | Drawings | Explorer | HtmlFigure


@dataclass(frozen=True)
class Section:
    """A heading with blocks.

    Attributes
    ----------
    name : str
        Last part of the anchor in the HTML report.
    title : str
    blocks : tuple of Block
    collapsed : bool
        If True, the HTML report shows the blocks on demand.
    printed : bool
        If True, the terminal prints the section with ``--all``.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    collapsed: bool = True
    printed: bool = False


@dataclass(frozen=True)
class Report:
    """Report of a run or a comparison, independent of the output format.

    Attributes
    ----------
    title : str
        The finding in one sentence.
    subject : str
        Measured items and models.
    headline : str
        The run in one line.
    findings : sequence of Finding
        Findings that the renderers count, list and draw. Empty for a comparison.
    sections : sequence of Section
    statements : sequence of Statement
        Findings in words.
    details : sequence of Statement
        Further statements about the run, such as counts of refusals, which the terminal prints as well.
    meaning : str
        How to read the numbers.
    notes : sequence of str
        Warnings that a reader must see first.
    remarks : sequence of str
        Further notes, which the terminal prints with ``--all``.
    figure : Markup or Drawings, optional
        Leading figure; by default an overview of the findings.
    caption : str
        Caption of the overview.
    terms : mapping of str to str
        Terms of the report with their meaning.
    tone : {"", "bad", "good", "unsure"}
        Tone of a verdict.
    tables : sequence of Table
        Tables that the terminal prints below the summary.
    data : mapping
        Data of the explorers.
    """

    title: str
    subject: str
    headline: str
    findings: Sequence[Finding] = ()
    sections: Sequence[Section] = ()
    statements: Sequence[Statement] = ()
    details: Sequence[Statement] = ()
    meaning: str = ""
    notes: Sequence[str] = ()
    remarks: Sequence[str] = ()
    figure: Markup | Drawings | None = None
    caption: str = ""
    terms: Mapping[str, str] = field(default_factory=dict)
    tone: str = ""
    tables: Sequence[Table] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
