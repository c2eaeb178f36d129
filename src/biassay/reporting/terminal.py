"""Print findings and tables in a terminal."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from biassay.io import make_printable
from biassay.reporting.document import Cell, ColumnSpan, PaperTable, Renderer, Section, Statement, TableRow
from biassay.reporting.document import RowGroup as Rows
from biassay.reporting.findings import rank_evidence
from biassay.reporting.formats import (
    SANITY_CHECK_PASSED,
    clean_line,
    format_decimal,
    format_interval,
    format_p,
    format_percent,
    format_value,
    shorten,
    unit_name,
)
from biassay.results.findings import Finding, count_findings
from biassay.results.run_data import RunData
from biassay.results.tables import Column, TableSpec
from biassay.results.views import model_key, model_labels

__all__ = [
    "BAR",
    "PRINTED",
    "WIDTH",
    "FindingLines",
    "TerminalLine",
    "TerminalTable",
    "cells_of",
    "draw_bar",
    "filled",
    "item_of",
    "make_legend",
    "paper_table",
    "print_run",
    "printed",
    "said",
    "section_of",
    "shown_first",
    "side_by_side",
    "used",
]


BAR = 6
"""Columns of a bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_GAP = 2
_CODE = 12  # columns of a code name that is shown whatever else there is no room for
_TITLE = 24  # columns of a title at least
_SHORT = 12  # columns below which a title beside its code name says nothing
_NAME = 16  # columns of a model's name, for which cells are made wider


def draw_bar(value: float, most: float, *, plain: bool = False) -> str:
    """The size of an effect, in eighths of a column; one that runs the other way is drawn light."""
    share = min(abs(value) / most, 1.0) * BAR if most > 0.0 else 0.0
    if plain or value < 0.0:
        return round(share) * ("-" if plain and value < 0.0 else "#" if plain else "░")
    eighths = round(share * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


@dataclass(frozen=True)
class TerminalLine:
    """A test: its title, its code name, and its cells; a line without cells is a heading."""

    title: str
    code: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    indent: int = 2


@dataclass(frozen=True)
class TerminalTable:
    """Lines with the same columns; ``heads`` stand above the cells, ``spans`` above several of them: the models.

    ``left`` are the columns that stand to the left; a cell is a text and its style. If ``codes`` is True, no code is
    left out: one that leaves no room for its title replaces it.
    """

    heads: tuple[str, ...]
    lines: tuple[TerminalLine, ...]
    spans: tuple[str, ...] = ()
    left: frozenset[int] = field(default=frozenset())
    codes: bool = False

    @property
    def widths(self) -> list[int]:
        """Of the columns; the last of a span is as wide as its name needs."""
        rows = [[text for text, _ in line.cells] for line in self.lines if line.cells]
        found = [max(map(cell_len, column)) for column in zip(self.heads, *rows, strict=True)]
        each = len(self.heads) // len(self.spans) if self.spans else 0
        for place, span in enumerate(self.spans if len(self.spans) > 1 else ()):
            own = slice(place * each, (place + 1) * each)
            lacking = min(cell_len(span), _NAME) - sum(found[own]) - _GAP * (each - 1)
            found[(place + 1) * each - 1] += max(0, lacking)
        return found

    def room(self, width: int) -> int:
        """Columns that are left for titles."""
        return width - sum(self.widths) - _GAP * len(self.heads)

    def render(self, width: int, *, whole: bool = False) -> Iterator[Text]:
        """The lines in so many columns; titles are cut to one line, or ``whole``."""
        widths, room = self.widths, max(self.room(width), _TITLE)
        corner = Text(" " * room)
        if len(self.spans) == 1:
            corner = Text(shorten(make_printable(self.spans[0]), room, middle=True).ljust(room), style="bold")
        elif self.spans:
            yield self._spanned(widths, room)
        yield _join_columns(corner, self.heads, ["dim"] * len(widths), widths, self.left)
        for line in self.lines:
            if not line.cells:
                yield Text(make_printable(line.title), style="bold")
                continue
            first, *rest = _layout_names(line, room, whole=whole, codes=self.codes)
            texts, styles = zip(*line.cells, strict=True)
            first.append(" " * (room - first.cell_len))
            yield _join_columns(first, texts, styles, widths, self.left)
            yield from rest

    def _spanned(self, widths: Sequence[int], room: int) -> Text:
        text, each = Text(" " * room), len(widths) // len(self.spans)
        for place, span in enumerate(self.spans):
            wide = sum(widths[place * each : (place + 1) * each]) + _GAP * (each - 1)
            text.append(" " * _GAP + shorten(make_printable(span), wide, middle=True).rjust(wide), style="bold")
        return text


def _join_columns(
    first: Text, texts: Sequence[str], styles: Sequence[str], widths: Sequence[int], left: frozenset[int]
) -> Text:
    line = first.copy()
    for place, (text, style, width) in enumerate(zip(texts, styles, widths, strict=True)):
        filled = " " * (width - cell_len(text))
        line.append(" " * _GAP + (text + filled if place in left else filled + text), style=style)
    line.rstrip()
    return line


def _layout_names(line: TerminalLine, room: int, *, whole: bool, codes: bool) -> list[Text]:
    """The title and, dim, the code name: in one line, or whole."""
    indent, title, code = " " * line.indent, make_printable(line.title), make_printable(line.code)
    fits = cell_len(indent + title + code) + 2 <= room
    if codes and not whole and not fits and cell_len(indent + code) + 2 + _SHORT > room:
        if cell_len(indent + code) <= room:
            return [Text(indent + code)]
        return [Text(indent + shorten(title, room - line.indent, middle=True)), Text(f"{indent}  {code}", "dim")]
    if not whole or fits:
        shown = code if codes or fits or len(code) <= _CODE else ""
        own = shorten(title, room - line.indent - (cell_len(shown) + 2 if shown else 0), middle=True)
        return [Text.assemble(indent, own, (f"  {shown}" if shown else "", "dim"))]
    rows = [Text(row) for row in textwrap.wrap(title, room, initial_indent=indent, subsequent_indent=indent + "  ")]
    if rows[-1].cell_len + 2 + cell_len(code) > room:
        rows.append(Text(indent))
    rows[-1].append(f"  {code}", style="dim")
    return rows


_ROOM, _LEAST = 40, 24  # columns of a title, for which numbers are left out
_SIGNS = ("", "*", "**")
_TOO_FEW = "‡"
_STYLES = ("dim", "cyan", "bold cyan")
_Cell = tuple[str, str]


def _sign(finding: Finding) -> str:
    if finding.about == "method" and finding.opposite and finding.evidence == "uncorrected":
        return ""
    return _TOO_FEW if finding.evidence == "not_testable" else _SIGNS[rank_evidence(finding)]


def make_legend(findings: Sequence[Finding], over: str) -> str:
    """What is told of, and what the signs mean; ``over`` is what is corrected for the number of."""
    alphas = sorted({1.0 - one.confidence for one in findings}) or [0.05]
    units = " or ".join(dict.fromkeys(unit_name(one.unit) for one in findings if one.effect is not None))
    said = [units] if units else []
    levels = " or ".join(f"{alpha:.4g}" for alpha in alphas)
    said.append(f"** significant: p at most {levels} after correction (Holm over {over})")
    passed = any(one.about == "method" and _sign(one) == "*" for one in findings)
    said.append(
        f"* p at most {levels} before correction only: a lead, not a "
        f"finding{f'; {SANITY_CHECK_PASSED}' if passed else ''}"
    )
    few = dict.fromkeys(one.few for one in findings if one.evidence == "not_testable")
    return "; ".join([*said, *([f"{_TOO_FEW} too few {' or '.join(few)} to test"] if few else [])])


@dataclass(frozen=True)
class FindingLines:
    """Findings under headings.

    ``title`` is what the line of a finding begins with, and ``code`` stands behind it; ``more`` are further columns.
    """

    groups: Sequence[tuple[str, Sequence[Finding]]]
    models: Sequence[str]
    title: Callable[[Finding], str]
    code: Callable[[Finding], str] = lambda _: ""
    more: Mapping[str, Callable[[Finding], str]] = field(default_factory=dict)

    def block(self, width: int, *, plain: bool = False) -> TerminalTable:
        """Of one model all numbers; of several those for which there is room beside each other, or what they share."""
        forms = ("full", "numbers", "interval") if len(self.models) == 1 else ("interval", "effect")
        made = [self._beside(form, plain=plain) for form in forms]
        fitting = [one for one in made if one.room(width) >= _ROOM] or made[-1:]
        alone = len(self.models) == 1 or fitting[0].room(width) >= _LEAST
        return fitting[0] if alone else self._over_models()

    @property
    def _findings(self) -> list[Finding]:
        return [one for _, own in self.groups for one in own]

    @property
    def _unit(self) -> str:
        return " or ".join(dict.fromkeys(unit_name(one.unit) for one in self._findings))

    def _beside(self, form: str, *, plain: bool) -> TerminalTable:
        sizes = [abs(one.effect) for one in self._findings if one.effect is not None]
        most = max(sizes, default=0.0) or 1.0
        signs = max((len(_sign(one)) for one in self._findings), default=0)
        spans = " and ".join(dict.fromkeys(format_percent(one.confidence) for one in self._findings))
        head = self._unit.split(" of ")[0] if len(self.models) == 1 else ""
        columns: dict[str, tuple[str, Callable[[Finding], str]]] = {
            "bar": ("", lambda one: draw_bar(one.effect or 0.0, most, plain=plain)),
            "effect": (head, lambda one: format_decimal(one.effect)),
            "signed": (head + " " * signs, lambda one: format_decimal(one.effect) + _sign(one).ljust(signs)),
            "interval": (spans, lambda one: _interval(one)),
            "p": (f"p{' ' * signs}", lambda one: _p(one) + _sign(one).ljust(signs)),
        }
        own = {
            "full": ["bar", "effect", "interval", "p"],
            "numbers": ["effect", "interval", "p"],
            "interval": ["signed", "interval"],
            "effect": ["signed"],
        }[form]
        shown = [columns[name] for name in own]
        shown += [(head, get) for head, get in self.more.items() if form in ("full", "numbers")]
        each = len(shown)
        left = frozenset(place * each for place in range(len(self.models)) if own[0] == "bar")
        return TerminalTable(
            tuple(head for head, _ in shown) * len(self.models),
            tuple(self._lines(lambda found: self._cells(found, [get for _, get in shown], own))),
            tuple(self.models),
            left,
        )

    def _cells(
        self, found: Mapping[str, Finding], gets: Sequence[Callable[[Finding], str]], own: Sequence[str]
    ) -> tuple[_Cell, ...]:
        cells: list[_Cell] = []
        for model in self.models:
            one = found.get(model)
            if one is None:
                cells += [("", "")] * len(gets)
            elif one.effect is None:
                place = own.index("interval") if "interval" in own else 0
                cells += [("skipped" if at == place else "", "dim") for at in range(len(gets))]
            else:
                cells += [(get(one), _STYLES[rank_evidence(one)]) for get in gets]
        return tuple(cells)

    def _over_models(self) -> TerminalTable:
        """On how many models an item is significant, and its effects there."""
        heads = "significant on", "before correction only", f"median {self._unit}", "from", "to"
        return TerminalTable(heads, tuple(self._lines(lambda found: _over(list(found.values())))))

    def _lines(self, cells: Callable[[Mapping[str, Finding]], tuple[_Cell, ...]]) -> Iterator[TerminalLine]:
        for heading, own in self.groups:
            yield TerminalLine(heading)
            items: dict[str, dict[str, Finding]] = {}
            for one in own:
                items.setdefault(one.item, {})[one.model] = one
            for same in items.values():
                first = next(iter(same.values()))
                yield TerminalLine(self.title(first), self.code(first), cells(same))


def _interval(finding: Finding) -> str:
    return "no interval" if finding.low is None else format_interval(finding.low, finding.high, finding.limit)


def _p(finding: Finding) -> str:
    return format_p(next(iter(finding.p_values.values()), None))


def _over(findings: Sequence[Finding]) -> tuple[_Cell, ...]:
    sizes = [one.effect for one in findings if one.effect is not None]
    significant, leads = count_findings(findings, "significant"), count_findings(findings, "uncorrected")
    style = _STYLES[2 if significant else 1 if leads else 0]
    ends = (statistics.median(sizes), min(sizes), max(sizes)) if sizes else (None, None, None)
    return tuple((text, style) for text in (f"{significant} of {len(sizes)}", f"{leads}", *map(format_decimal, ends)))


WIDTH = 100
"""Columns of a terminal that are used at most."""
_ROWS = 200
PRINTED = 30
"""Rows of a table in the terminal, if not all are asked for."""
_TURNED = 3  # rows of a wide table that stand beside each other


def used(spec: TableSpec, run: RunData) -> tuple[list[Column], Sequence[Any]]:
    """The columns in which anything stands, and the rows."""
    rows = spec.rows_of(run)
    return filled(spec.columns_of(run), rows), rows


def shown_first(spec: TableSpec, run: RunData) -> tuple[list[Column], Sequence[Any]]:
    """Of these columns those that a person sees first."""
    columns, rows = used(spec, run)
    return [column for column in columns if not spec.shown or column.name in spec.shown], rows


def filled(columns: Iterable[Column], rows: Sequence[Any]) -> list[Column]:
    """The columns in which anything stands."""
    return [column for column in columns if any(column.value(row) not in ("", None, (), {}) for row in rows)]


def section_of(
    name: str,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Any],
    renderer: Renderer,
    *,
    folded: bool = False,
    turned: bool = False,
) -> Section:
    """A table of a page. Where there are several parts, its label says of which it is: no two may be alike."""
    label = title if renderer.level == 2 else f"{title} ({renderer.anchor})"
    cells = cells_of(label, columns, rows, turned=turned)
    section = renderer.section("table", title, **cells, folded=folded and len(rows))
    return Section(f"{renderer.anchor}-{name}", section.title, section.body)


def cells_of(label: str, columns: Sequence[Column], rows: Sequence[Any], *, turned: bool = False) -> dict[str, Any]:
    """What the template of a table is given; one of a study may include it.

    A table of many columns and few rows is ``turned``: what the first column names stands across.
    """
    cells = [[format_value(column.format, column.value(row)) for column in columns] for row in rows[:_ROWS]]
    return {"label": label, "columns": columns, "rows": cells, "more": max(0, len(rows) - _ROWS), "turned": turned}


def printed(title: str, columns: Sequence[Column], rows: Sequence[Any], most: int | None = PRINTED) -> RenderableType:
    """A table of the terminal, of so many rows; turned or split where it is too wide."""
    heads = [make_printable(column.label) for column in columns]
    left = [column.format == "text" for column in columns]
    cells = [[format_value(column.format, column.value(row)) for column in columns] for row in rows[:most]]
    return _Printed(make_printable(title), heads, left, cells, len(rows) - len(cells))


@dataclass(frozen=True)
class _Printed:
    """Rows and columns, laid out when the width is known."""

    title: str
    heads: Sequence[str]
    left: Sequence[bool]
    cells: Sequence[Sequence[str]]
    more: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [
            max([len(head), *(len(row[place]) for row in self.cells)]) + 3 for place, head in enumerate(self.heads)
        ]
        yield Text(self.title, style="bold")
        if sum(widths) <= options.max_width:
            yield self._table(range(len(self.heads)))
        elif len(self.cells) <= _TURNED:
            yield self._turned()
        else:
            yield from map(self._table, _split(widths, options.max_width))
        if self.more:
            yield Text(f"  and {self.more:,} more rows", style="dim")

    def _table(self, places: Sequence[int]) -> RichTable:
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place in places:
            table.add_column(Text(self.heads[place]), justify="left" if self.left[place] else "right", overflow="fold")
        for row in self.cells:
            table.add_row(*(Text(row[place]) for place in places))
        return table

    def _turned(self) -> RichTable:
        """What was across stands down the page."""
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, text in enumerate((self.heads[0], *(row[0] for row in self.cells))):
            table.add_column(Text(text), overflow="fold", style="dim" if place == 0 else "")
        for place, head in list(enumerate(self.heads))[1:]:
            table.add_row(Text(head), *(Text(row[place]) for row in self.cells))
        return table


def _split(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Columns by what fits beside each other; the first comes again every time."""
    part = [0]
    for place in range(1, len(widths)):
        if len(part) > 1 and sum(widths[one] for one in (*part, place)) > width:
            yield part
            part = [0]
        part.append(place)
    yield part


def print_run(
    console: Console,
    headline: str,
    tables: Sequence[RenderableType],
    findings: Sequence[Statement],
    notes: Sequence[str] = (),
    meaning: Sequence[str] = (),
) -> None:
    """A run in the terminal: what was asked, its tables, notes and what it means, and last the findings in words."""
    parts: list[RenderableType] = [Text(make_printable(headline), style="bold"), Text("")]
    for table in tables:
        parts += [table, Text("")]
    parts += [Text(make_printable(note), style="yellow") for note in notes]
    parts += [Text(make_printable(text), style="dim") for text in meaning]
    parts += [Text("")] * bool(notes or meaning)
    console.print(Group(*parts, *said(findings)), width=min(WIDTH, console.width))


def said(statements: Iterable[Statement]) -> Iterator[RenderableType]:
    """Statements in the terminal, each with its points below."""
    for one in statements:
        text = Text(make_printable(one.text))
        text.stylize("bold", 0, len(one.about))
        yield text
        for place, point in enumerate(one.points):
            line = Text(make_printable(point))
            if one.names and one.names[place]:
                line.stylize("dim", len(point) - len(one.names[place]))
            yield _Point(line)


@dataclass(frozen=True)
class _Point:
    """A line with a bullet; where it is wrapped, the rest stands below its text."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bullet = "-" if options.ascii_only else "•"
        for place, line in enumerate(self.text.wrap(console, max(options.max_width - 4, 1))):
            yield Text.assemble("    " if place else f"  {bullet} ", line)


def paper_table(spec: TableSpec, run: RunData) -> PaperTable:
    """A table of a paper: models across where the table names a key and a number, and else as it is."""
    columns, rows = used(spec, run)
    labels = model_labels(run)
    if spec.key and spec.number:
        every = spec.columns_of(run)
        numbers = {(item_of(spec, row, every), labels[model_key(row)]): row for row in rows}
        number = _column(every, spec.number)
        cells = {place: format_value(number.format, number.value(row)) for place, row in numbers.items()}
        stub = ", ".join(_column(every, name).label for name in spec.key)
        return side_by_side(f"{spec.title}. {number.label}: {number.help}", stub, cells)
    texts = [column for column in columns if column.format == "text"]
    others = [column for column in columns if column.format != "text"]
    body = tuple(TableRow(_cleaned(texts, row), tuple(map(Cell, _cleaned(others, row)))) for row in rows)
    spans = tuple(ColumnSpan(clean_line(column.label)) for column in others)
    caption = " ".join([f"{spec.title}.", *(f"{column.label}: {column.help}" for column in others)])
    return PaperTable(
        clean_line(caption), tuple(clean_line(column.label) for column in texts), spans, (Rows("", body),)
    )


def side_by_side(caption: str, stub: str, cells: dict[tuple[str, str], str]) -> PaperTable:
    """A table of a paper, items down and models across."""
    items, models = (list(dict.fromkeys(place[side] for place in cells)) for side in (0, 1))
    body = [
        TableRow((clean_line(item),), tuple(Cell(cells.get((item, model), "–")) for model in models)) for item in items
    ]
    return PaperTable(
        clean_line(caption),
        (clean_line(stub),),
        tuple(ColumnSpan(clean_line(m)) for m in models),
        (Rows("", tuple(body)),),
    )


def item_of(spec: TableSpec, row: Any, columns: Sequence[Column]) -> str:
    """What a row is about, in the words of its key."""
    return ", ".join(format_value("text", _column(columns, name).value(row)) for name in spec.key)


def _column(columns: Sequence[Column], name: str) -> Column:
    return next(column for column in columns if column.name == name)


def _cleaned(columns: Sequence[Column], row: Any) -> tuple[str, ...]:
    return tuple(clean_line(format_value(column.format, column.value(row))) for column in columns)
