"""The report document: blocks, sections and tables that every renderer can show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import compress, islice
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup, escape

from biassay.errors import format_install_command
from biassay.reporting.charts.base import PAGE, Drawing, can_draw, render_for_page
from biassay.results.findings import Finding

if TYPE_CHECKING:
    import jinja2


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


@dataclass(frozen=True)
class RenderedSection:
    """A heading with its rendered content, collapsed unless `open` is True."""

    anchor: str
    title: str
    body: Markup
    open: bool = False


@dataclass(frozen=True)
class ReportPart:
    """The rendered report of one kind of run."""

    anchor: str
    report: Report
    sections: Sequence[RenderedSection]
    figure: Markup | None
    counts: Table | None


@dataclass(frozen=True)
class Renderer:
    """Render reports in HTML as parts of a page; `level` is that of the headings of sections."""

    environment: jinja2.Environment
    anchor: str
    level: int

    def report(self, report: Report) -> ReportPart:
        """Render a report as a part of the HTML report."""
        from biassay.reporting.findings import draw_overview
        from biassay.reporting.summary import make_counts_table

        figure = report.figure or draw_overview(report.findings, report.caption)
        if isinstance(figure, Drawings):
            figure = self._render_blocks((figure,), "At a glance")
        sections = [self.blocks(section) for section in report.sections]
        return ReportPart(self.anchor, report, sections, figure, make_counts_table(report.findings))

    def blocks(self, section: Section) -> RenderedSection:
        """Render the blocks of a section."""
        title = section.title if self.level == 2 else f"{section.title} ({self.anchor})"
        body = self._render_blocks(section.blocks, title)
        return RenderedSection(f"{self.anchor}-{section.name}", section.title, body, not section.collapsed)

    def _render_blocks(self, blocks: Sequence[Block], title: str) -> Markup:
        body = self.environment.get_template("blocks.html").render(
            blocks=blocks,
            title=title,
            anchor=self.anchor,
            level=self.level,
            kinds=lambda block: type(block).__name__,
            texts=lambda table: [span.text for span in table.models for _ in span.columns],
            can_draw=can_draw(),
            install=format_install_command("figures"),
            draw=lambda make: Markup(render_for_page(make(PAGE))),
        )
        return Markup(body)


def make_environment() -> jinja2.Environment:
    """Make a template environment that escapes all values."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("biassay.reporting"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = lambda text: escape(text).replace("_", Markup("_<wbr>"))
    return environment


def read_asset(name: str) -> str:
    """Read a file from the templates folder."""
    return (resources.files("biassay.reporting") / "templates" / name).read_text(encoding="utf-8")
