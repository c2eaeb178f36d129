"""Sections and tables of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from biassay.reporting.charts.base import PAGE, Figure, can_draw, render_for_page

if TYPE_CHECKING:
    import jinja2


__all__ = [
    "Cell",
    "ColumnSpan",
    "PaperTable",
    "Renderer",
    "ReportPart",
    "RowGroup",
    "Section",
    "Shade",
    "Statement",
    "TableRow",
    "drop_spare_columns",
    "get_shade",
    "make_environment",
    "narrow_table",
    "read_asset",
]


Shade = Literal[0, 1, 2, 3]
_SHADES: tuple[tuple[float, Shade], ...] = ((0.8, 3), (0.5, 2), (0.2, 1))


@dataclass(frozen=True)
class Cell:
    """A number as it is read, its marks (``*``, ``**``, ``†``, ``‡``), and how dark its ground is (0: not at all)."""

    text: str
    mark: str = ""
    shade: Shade = 0


@dataclass(frozen=True)
class ColumnSpan:
    """The columns of one model; a single one needs no title of its own. ``notes`` are about this model."""

    title: str
    columns: tuple[str, ...] = ("",)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableRow:
    """What the row is about, then a cell for every column of every model."""

    stub: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class RowGroup:
    """Rows under one title; no title, no line for it."""

    title: str
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table in no notation. ``stub`` are the titles of the leading columns, ``signs`` say what signs mean.

    Where there is little room the columns that are ``spare`` are left out, and ``brief`` is the caption.
    """

    caption: str
    stub: tuple[str, ...]
    models: tuple[ColumnSpan, ...]
    groups: tuple[RowGroup, ...]
    signs: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    brief: str = ""

    @property
    def rows(self) -> tuple[TableRow, ...]:
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands below the table."""
        return (*self.signs, *(note for span in self.models for note in span.notes))

    @property
    def shaded(self) -> bool:
        return any(cell.shade for row in self.rows for cell in row.cells)


def drop_spare_columns(table: PaperTable) -> PaperTable:
    """Without the numbers that are spare."""
    spans = tuple(
        replace(span, columns=tuple(name for name in span.columns if name not in table.spare)) for span in table.models
    )
    groups = tuple(
        replace(group, rows=tuple(TableRow(row.stub, tuple(_keep_cells(row, table))) for row in group.rows))
        for group in table.groups
    )
    return replace(table, caption=table.brief or table.caption, models=spans, groups=groups)


def _keep_cells(row: TableRow, table: PaperTable) -> Iterator[Cell]:
    names = (name for span in table.models for name in span.columns)
    return (cell for name, cell in zip(names, row.cells, strict=True) if name not in table.spare)


def narrow_table(table: PaperTable) -> PaperTable:
    """For one column of a paper in two: without what is spare, and several models below each other."""
    small = drop_spare_columns(table)
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
    groups = [RowGroup(f"{title} ({name})" if title else name, _turn_row(row, small)) for title, name, row in rows]
    return replace(small, stub=("",), models=(ColumnSpan("", columns, notes),), groups=tuple(groups))


def _turn_row(row: TableRow, table: PaperTable) -> tuple[TableRow, ...]:
    """A row for every model."""
    cells = iter(row.cells)
    return tuple(TableRow((span.title,), tuple(islice(cells, len(span.columns)))) for span in table.models)


def get_shade(effect_size: float | None) -> Shade:
    """How dark the paper's table over contexts is where an effect has this size."""
    size = abs(effect_size or 0.0)
    return next((shade for least, shade in _SHADES if size >= least), 0)


@dataclass(frozen=True)
class Statement:
    """What was found in a sentence or two, and the associations that it speaks of, one a line.

    ``about`` is the model or run that it is about, where a text begins with its name; ``names`` are the code names, in
    brackets, that the points end with.
    """

    text: str
    points: tuple[str, ...] = ()
    about: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, on demand unless it is ``open``."""

    anchor: str
    title: str
    body: Markup
    open: bool = False


@dataclass(frozen=True)
class ReportPart:
    """What one kind of run has to say, ``figure`` first. ``data`` is for the page's script.

    ``terms`` are words and signs of the sentences, with what they mean. A ``headline`` with a ``tone`` ("bad", "good",
    "unsure") is a verdict.
    """

    anchor: str
    title: str
    headline: str
    summary: Sequence[Statement]
    meaning: str
    sections: Sequence[Section]
    notes: Sequence[str] = ()
    figure: Markup | None = None
    terms: Mapping[str, str] = field(default_factory=dict)
    tone: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Renderer:
    """Makes sections of one part; ``level`` is that of their headings."""

    environment: jinja2.Environment
    anchor: str
    level: int

    def section(self, name: str, title: str, **content: Any) -> Section:
        """From the template NAME.html of the study."""
        anchor = f"{self.anchor}-{name}"
        shown = {**content, "anchor": anchor, "level": self.level, "can_draw": can_draw()}
        return Section(anchor, title, Markup(self.environment.get_template(f"{name}.html").render(shown)))

    def notes(self, notes: Sequence[str]) -> list[Section]:
        """What a reader should know beside the findings, one a line; no section where there is nothing."""
        return [self.section("notes", "Notes", notes=notes)] if notes else []

    def figures(self, make: Sequence[Callable[..., Figure]]) -> list[Markup]:
        """Figures in the colours of the page; none where they cannot be drawn."""
        return [Markup(render_for_page(of(PAGE))) for of in make] if can_draw() else []


def make_environment(package: str | None = None) -> jinja2.Environment:
    """Templates of pages, and those of a study's package; whatever they are given is escaped."""
    import jinja2

    packages = ["biassay.reporting"] if package is None else [package, "biassay.reporting"]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read_asset(name: str) -> str:
    """A file that pages are made with, as it is."""
    return (resources.files("biassay.reporting") / "templates" / name).read_text(encoding="utf-8")
