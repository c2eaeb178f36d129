"""Print findings and tables in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Literal, get_args

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from biassay.io import make_printable
from biassay.reporting.document import (
    Bullets,
    ColumnSpan,
    Definitions,
    Heading,
    Report,
    Section,
    Statement,
    Table,
    TableRow,
    narrow_table,
)
from biassay.reporting.document import Text as TextBlock
from biassay.reporting.findings import (
    describe_power,
    format_title,
    list_skipped,
    make_checks_table,
    make_counts_table,
    make_evidence_table,
)
from biassay.reporting.formats import (
    shorten,
)
from biassay.results.outcomes import Finding

_GAP = 2
WIDTH = 100
"""Maximum width of the output, in columns."""
MAX_LINES = 26
"""Lines of a report without --all: one screen with the lines before and after it."""
MAX_ROWS = 30
"""Rows of a table in the terminal without --all."""


_MIN_WIDTH, _DEFAULT_WIDTH = 60, 100  # columns


def make_console() -> Console:
    """Create a console for standard output; in a pipe it is as wide as $COLUMNS, or else wide enough for tables."""
    console = Console(emoji=False)
    width = _MIN_WIDTH if os.environ.get("COLUMNS", "").isdigit() else _DEFAULT_WIDTH
    return console if console.is_terminal else Console(width=max(console.width, width), emoji=False)


def render_statements(statements: Iterable[Statement]) -> Iterator[Text | _Point]:
    """Render statements, each with its points below."""
    for statement in statements:
        text = Text(make_printable(statement.text))
        text.stylize("bold", 0, len(statement.about))
        yield text
        for index, point in enumerate(statement.points):
            line = Text(make_printable(point))
            if statement.names and statement.names[index]:
                line.stylize("dim", len(point) - len(statement.names[index]))
            yield _Point(line)


@dataclass(frozen=True)
class _Point:
    """A bullet whose wrapped lines are aligned."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.wrap(console, options.max_width)

    def wrap(self, console: Console, width: int) -> Iterator[Text]:
        """Yield the lines in a width."""
        for index, line in enumerate(self.text.wrap(console, max(width - 4, 1))):
            yield Text.assemble("    " if index else "  • ", line)


_MIN_TEXT = 10  # width to which a text is shortened if a table is too wide
_MIN_NAME, _MIN_STUB, _WIDE_STUB = 14, 16, 36  # width to which names and labels are narrowed if a table is too wide
_MIN_BLOCK = 8  # lines that remain of a shortened block
_MOST_LEADS = 3  # leads per model in the summary of a run
_FEW_FINDINGS = 12  # findings up to which all are listed
_MOST_SIGNIFICANT = 12  # significant results per model in the summary of a run


def print_report(
    report: Report, console: Console, *, everything: bool = False, max_lines: int | None = MAX_LINES
) -> None:
    """Print a report: the verdict, counts, significant results and leads; with `everything` all sections.

    Parameters
    ----------
    report : Report
    console : Console
    everything : bool
        If True, print every finding, remark and section.
    max_lines : int or None
        Largest number of lines unless `everything` is True; None for no limit.
    """
    if everything or max_lines is None:
        max_lines = sys.maxsize
    width = min(WIDTH, console.width)
    for n_leads in (_MOST_LEADS, 2, 1):
        blocks = [
            [line for item in block for line in item.wrap(console, width)]
            for block in _list_parts(report, width, n_leads, everything=everything)
        ]
        if _count_lines(blocks) <= max_lines:
            break
    else:
        _limit_lines(blocks, max_lines)
    console.print(Text("\n\n").join(Text("\n").join(block) for block in blocks), width=width, highlight=False)


def _list_parts(report: Report, width: int, n_leads: int, *, everything: bool) -> Iterator[Sequence[Text | _Point]]:
    """List the parts of a report that are not empty, from the verdict down."""
    findings = report.findings
    counts = make_counts_table(findings) if findings else None
    parts: list[Iterable[Text | _Point]] = [
        _list_verdict(report),
        [Text(make_printable(note), style="yellow") for note in report.notes],
        _list_skips(findings),
        [] if counts is None else render_table(counts, width),
        *(
            render_table(table, width, brief=not everything)
            for table in (*_make_evidence_tables(findings, n_leads), *report.tables)
        ),
        render_statements(report.details),
    ]
    if everything:
        parts += [
            [Text(make_printable(section.title), style="bold"), *_list_blocks(section, width)]
            for section in report.sections
            if section.printed
        ]
        parts += [[Text(make_printable(remark))] for remark in (*report.remarks, report.meaning) if remark]
    elif power := describe_power(findings):
        parts.append([Text(power)])
    return filter(None, map(list, parts))


def _count_lines(blocks: Sequence[Sequence[Text]]) -> int:
    return sum(map(len, blocks)) + len(blocks) - 1


def _limit_lines(blocks: list[list[Text]], max_lines: int) -> None:
    """Shorten the longest blocks until all of them fit on one screen."""
    cut = [0] * len(blocks)
    while _count_lines(blocks) + sum(map(bool, cut)) > max_lines:
        longest = max(range(len(blocks)), key=lambda index: len(blocks[index]))
        if len(blocks[longest]) <= _MIN_BLOCK:
            break
        blocks[longest].pop()
        cut[longest] += 1
    for block, number in zip(blocks, cut, strict=True):
        if number:
            block.append(Text(f"  … {number:,} more line{'' if number == 1 else 's'}: --all", style="dim"))


def _list_verdict(report: Report) -> Iterator[Text | _Point]:
    """List the title of a report that says more than the counts; also its statements, if it is a verdict."""
    is_alone = bool(report.tone) or not report.findings
    if is_alone or report.title != format_title(report.findings):
        yield Text(make_printable(report.title), style="bold")
    if is_alone:
        yield from render_statements(statement for statement in report.statements if statement.text not in report.title)


def _list_skips(findings: Sequence[Finding]) -> list[Text]:
    """Print why the first skipped test was skipped, and how many more reasons there are."""
    lines = list_skipped(findings)
    if len(findings) > _FEW_FINDINGS:
        lines = [line.split(";")[0] for line in lines]
    more = f"; {len(lines) - 1:,} more: --all" if len(lines) > 1 else ""
    return [Text(make_printable(f"{line}{more}"), style="yellow") for line in lines[:1]]


def _make_evidence_tables(findings: Sequence[Finding], n_leads: int) -> list[Table]:
    """Make tables of significant results and leads; of few findings, of all of them."""
    tables = [
        make_evidence_table(findings, "Significant", "significant", most=_MOST_SIGNIFICANT),
        make_evidence_table(findings, "Before correction only: leads, not findings", "uncorrected", most=n_leads),
        make_evidence_table(findings, "Descriptive: not tested", "descriptive", most=n_leads),
    ]
    if len(findings) <= _FEW_FINDINGS:
        tables += [
            make_evidence_table(findings, "Inconclusive", "inconclusive"),
            make_evidence_table(findings, "Not testable", "not_testable"),
            make_checks_table(findings),
        ]
    return [table for table in tables if table is not None]


def _list_blocks(section: Section, width: int) -> Iterator[Text | _Point]:
    for block in section.blocks:
        if isinstance(block, Heading):
            yield from (Text(""), Text(make_printable(block.text), style="bold"))
        elif isinstance(block, TextBlock):
            yield Text(make_printable(block.text))
        elif isinstance(block, Bullets):
            yield from render_statements(block.statements)
        elif isinstance(block, Definitions):
            yield from (_Point(Text(make_printable(f"{term}: {text}"))) for term, text in block.entries)
        elif isinstance(block, Table):
            yield from render_table(block, width)


def render_table(table: Table, width: int, *, brief: bool = False) -> list[Text]:
    """Render a table in at most `width` columns of text.

    A table that is too wide shortens its labels and drops a spare one; then models go below each other; then columns
    are split into parts, each of which repeats the labels.

    Parameters
    ----------
    table : Table
    width : int
    brief : bool
        If True, leave out columns that do not fit, and name them.
    """
    if not _fits(table, width) and set(table.stub) & set(table.spare):
        table = replace(table.map_rows(lambda row: replace(row, stub=row.stub[:-1])), stub=table.stub[:-1])
    if not _fits(table, width) and len(table.models) > 1 and any(len(span.columns) > 1 for span in table.models):
        table = narrow_table(table)
    first, *others = _split_table(table, width)
    lines = _render_part(first, width)
    if brief and others:
        names = [make_printable(span.title) for part in others for span in part.models]
        return [*lines, Text(f"  … {', '.join(names)}: --all", style="dim")]
    for part in others:
        lines += [Text(""), *_render_part(part, width)]
    return lines


_Kind = Literal["name", "label", "text", "number"]


@dataclass(frozen=True)
class _Column:
    """Head and cells of one column. The kind decides how the cells are shortened and aligned."""

    head: str
    cells: tuple[str, ...]
    kind: _Kind

    @property
    def widest(self) -> int:
        return max(cell_len(self.head), *map(cell_len, self.cells), 0)

    @property
    def least(self) -> int:
        """Return the width to which the column is narrowed if the table is too wide."""
        words = max([0, *map(cell_len, self.head.split())])
        if self.kind == "number":
            return max([words, *map(cell_len, self.cells)])
        return max(_MIN_TEXT, words) if self.kind == "text" else _MIN_STUB if self.kind == "label" else _MIN_NAME

    def align(self, text: str, width: int) -> str:
        """Shorten or pad a text to a width."""
        text = _shorten_list(text, width) if self.kind == "text" else shorten(text, width, middle=self.kind == "name")
        filled = " " * (width - cell_len(text))
        return filled + text if self.kind == "number" else text + filled


def _list_columns(table: Table) -> list[_Column]:
    heads = [*table.stub, *(name for span in table.models for name in _list_heads(span, len(table.models)))]
    rows = [[*row.stub, *(f"{cell.text}{cell.mark}" for cell in row.cells)] for row in table.rows]
    kinds = ["name"] * (len(table.stub) - 1) + ["label"] * bool(table.stub)
    kinds += ["text" if span.text else "number" for span in table.models for _ in span.columns]
    return [
        _Column(make_printable(head), tuple(make_printable(row[i]) for row in rows), kind)  # type: ignore[arg-type]
        for i, (head, kind) in enumerate(zip(heads, kinds, strict=True))
    ]


def _list_heads(span: ColumnSpan, models: int) -> list[str]:
    """Return the column heads of one model, with its name if there are several models or no other head."""
    return [" ".join(filter(None, (span.title if models > 1 or not name else "", name))) for name in span.columns]


def _choose_widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Choose column widths that fit. Shorten lists first, then heads of numbers, labels and names."""
    widths = [column.widest for column in columns]
    kinds = {kind: [i for i, one in enumerate(columns) if one.kind == kind] for kind in get_args(_Kind)}
    steps = [(i, columns[i].least) for i in (*kinds["text"], *kinds["number"])]
    steps += [(i, _WIDE_STUB) for i in kinds["label"]]
    steps += [(i, columns[i].least) for i in (*reversed(kinds["name"]), *kinds["label"])]
    for index, least in steps:
        too_wide = sum(widths) + _GAP * (len(widths) - 1) - width
        widths[index] -= max(0, min(too_wide, widths[index] - least))
    return widths


def _get_indent(table: Table) -> int:
    return 2 if table.caption or any(group.title for group in table.groups) else 0


def _fits(table: Table, width: int) -> bool:
    room = width - _get_indent(table)
    widths = _choose_widths(_list_columns(table), room)
    return sum(widths) + _GAP * (len(widths) - 1) <= room


def _render_part(table: Table, width: int) -> list[Text]:
    """Render a table that fits into the width."""
    columns, indent, caption = _list_columns(table), _get_indent(table), make_printable(table.caption)
    widths = _choose_widths(columns, width - indent)

    def join(cells: Iterable[str]) -> str:
        texts = (column.align(text, wide) for column, text, wide in zip(columns, cells, widths, strict=True))
        return (" " * indent + (" " * _GAP).join(texts)).rstrip()

    n_stubs = len(table.stub)
    offset = indent + sum(widths[:n_stubs]) + _GAP * (n_stubs - 1)
    is_beside = 0 < cell_len(caption) <= offset and any(column.head for column in columns[n_stubs:])
    shown = ["" if is_beside and i < n_stubs else column.head for i, column in enumerate(columns)]
    wrapped = [_wrap(head, wide)[::-1] for head, wide in zip(shown, widths, strict=True)]
    heads = [join(line) for line in zip_longest(*wrapped, fillvalue="")][::-1]  # align short heads at the bottom
    lines = [Text(head, style="dim") for head in heads if head]
    if is_beside:  # the caption replaces the heads of labels
        lines[-1] = Text.assemble((caption + " " * (offset - cell_len(caption)), "bold"), (heads[-1][offset:], "dim"))
    elif caption:
        lines.insert(0, Text(caption, style="bold"))
    rows = zip(*(column.cells for column in columns), strict=True)
    label = n_stubs - 1
    for group in table.groups:
        if group.title:
            lines.append(Text(make_printable(group.title), style="bold"))
        for cells in islice(rows, len(group.rows)):
            first, *others = _wrap(cells[label], widths[label]) if table.stub else [cells[0]]
            lines.append(Text(join(first if i == label else text for i, text in enumerate(cells))))
            lines += [Text(" " * (offset - widths[label] + _GAP) + text) for text in others]
    return lines + [Text(make_printable(note), style="dim") for note in table.notes]


def _wrap(text: str, width: int) -> list[str]:
    return [line.plain.rstrip() for line in Text(text).wrap(Console(), width)] if cell_len(text) > width else [text]


def _shorten_list(text: str, width: int) -> str:
    """Shorten a list after one of its items, and any other text at a letter."""
    items = text.split(", ")
    while len(items) > 1 and cell_len(", ".join(items)) > width - (2 if ", ".join(items) != text else 0):
        items.pop()
    kept = ", ".join(items)
    return shorten(text if kept == text or cell_len(kept) > width - 2 else f"{kept} …", width)


def _split_table(table: Table, width: int) -> Iterator[Table]:
    """Split the columns of a table into parts that fit; every part repeats the stubs."""
    if _fits(table, width):
        yield table
        return
    parts: list[list[int]] = [[]]
    for position in range(sum(len(span.columns) for span in table.models)):
        if parts[-1] and not _fits(_select_columns(table, [*parts[-1], position]), width):
            parts.append([])
        parts[-1].append(position)
    for number, part in enumerate(parts):
        yield replace(
            _select_columns(table, part),
            caption=table.caption if number == 0 else f"{table.caption} (continued)".strip(),
            signs=table.signs if number == len(parts) - 1 else (),
        )


def _select_columns(table: Table, positions: Sequence[int]) -> Table:
    heads = [(name, span) for span in table.models for name in _list_heads(span, len(table.models))]
    spans = tuple(ColumnSpan(name, text=span.text) for name, span in (heads[position] for position in positions))
    fewer = table.map_rows(lambda row: TableRow(row.stub, tuple(row.cells[i] for i in positions)))
    return replace(fewer, models=spans)
