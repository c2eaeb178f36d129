"""Print findings and tables in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
            block.append(Text(f"  … {number:,} more lines: --all", style="dim"))


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
    fitting = _render_whole(table, width, shorten_names=not set(table.stub) & set(table.spare))
    if fitting is None and set(table.stub) & set(table.spare):
        table = replace(table.map_rows(lambda row: replace(row, stub=row.stub[:-1])), stub=table.stub[:-1])
        fitting = _render_whole(table, width)
    if fitting is None and len(table.models) > 1 and any(len(span.columns) > 1 for span in table.models):
        fitting = _render_whole(narrow_table(table), width)
    if fitting is not None:
        return fitting
    lines: list[Text] = []
    first, *others = _split_table(table, width)
    if brief and others:
        names = [make_printable(_head(span)) for part in others for span in part.models]
        return [*(_render_whole(first, width, force=True) or []), Text(f"  … {', '.join(names)}: --all", style="dim")]
    for part in (first, *others):
        lines += [Text("")] * bool(lines) + (_render_whole(part, width, force=True) or [])
    return lines


def _render_whole(table: Table, width: int, *, shorten_names: bool = True, force: bool = False) -> list[Text] | None:
    stubs = [[make_printable(text) for text in row.stub] for row in table.rows]
    cells = [[make_printable(f"{cell.text}{cell.mark}") for cell in row.cells] for row in table.rows]
    names = (name for span in table.models for name in (span.columns if len(span.columns) > 1 else (_head(span),)))
    heads, stub = list(map(make_printable, names)), list(map(make_printable, table.stub))
    left = [span.text for span in table.models for _ in span.columns]
    spans = any(span.title and len(span.columns) > 1 for span in table.models)
    stub_widths = [max([cell_len(head), *(cell_len(row[i]) for row in stubs)]) for i, head in enumerate(stub)]
    widths = [max([cell_len(head), *(cell_len(row[i]) for row in cells)]) for i, head in enumerate(heads)]
    indent = 2 if table.caption or any(group.title for group in table.groups) else 0
    total = indent + sum(stub_widths) + sum(widths) + _GAP * (len(stub_widths) + len(widths) - 1)
    last, head_lines = len(stub_widths) - 1, [[head] for head in heads]

    def narrow(columns: list[int], index: int, least: int) -> None:
        nonlocal total
        spare = min(total - width, columns[index] - least)
        if spare > 0:
            columns[index], total = columns[index] - spare, total - spare

    for i, is_text in enumerate(left):  # lists of names first, then heads, then labels
        if is_text:
            narrow(widths, i, max([_MIN_TEXT, *map(cell_len, heads[i].split())]))
            head_lines[i] = _wrap(heads[i], widths[i])
    for i, head in enumerate(heads):
        if not left[i]:
            narrow(widths, i, max([*(cell_len(row[i]) for row in cells), *map(cell_len, head.split()), 0]))
            head_lines[i] = _wrap(head, widths[i])
    if stubs and stub_widths:
        narrow(stub_widths, last, _WIDE_STUB)
        for i in reversed(range(last if shorten_names else 0)):
            narrow(stub_widths, i, _MIN_NAME)
        narrow(stub_widths, last, _MIN_STUB)
    if total > width and not force:
        return None
    offset = indent + sum(stub_widths) + _GAP * (len(stub_widths) - 1)
    lines: list[Text] = []
    caption = make_printable(table.caption)
    if spans:
        lines.append(Text(" " * offset + _join_spans(table, widths), style="bold"))
    if caption and cell_len(caption) > offset:  # the caption needs its own line
        lines.append(Text(caption, style="bold"))
        caption = ""
    if caption or any(heads) or any(stub):
        stub_heads = "  ".join(_pad(shorten(head, wide), wide) for head, wide in zip(stub, stub_widths, strict=True))
        first = Text(_pad(caption or " " * indent + stub_heads, offset), style="bold" if caption else "dim")
        n_lines = max(map(len, head_lines), default=1)
        padded = [[""] * (n_lines - len(head)) + head for head in head_lines]
        above = [[column[i] for column in padded] for i in range(n_lines)]
        lines += [_join_cells(Text(" " * offset), line, widths, left, "dim") for line in above[:-1]]
        lines.append(_join_cells(first, above[-1], widths, left, "dim"))
    index = 0
    for group in table.groups:
        if group.title:
            lines.append(Text(make_printable(group.title), style="bold"))
        for _ in group.rows:
            *leading, label = stubs[index] or [""]
            wrapped = _wrap(label, stub_widths[-1]) if stub_widths else [""]
            shortened = [shorten(text, wide, middle=True) for text, wide in zip(leading, stub_widths, strict=False)]
            texts = map(_pad, [*shortened, wrapped[0] if wrapped else ""], stub_widths)
            lines.append(_join_cells(Text(" " * indent + (" " * _GAP).join(texts)), cells[index], widths, left, ""))
            lines += [Text(" " * (offset - stub_widths[-1] + _GAP) + text) for text in wrapped[1:]]
            index += 1
    lines += [Text(make_printable(note), style="dim") for note in table.notes]
    return lines


def _head(span: ColumnSpan) -> str:
    return " ".join(filter(None, (span.title, *span.columns)))


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cell_len(text))


def _join_cells(first: Text, cells: Sequence[str], widths: Sequence[int], left: Sequence[bool], style: str) -> Text:
    for text, wide, is_left in zip(cells, widths, left, strict=True):
        text = _shorten_list(text, wide) if is_left else shorten(text, wide)
        filled = " " * (wide - cell_len(text))
        first.append(" " * _GAP + (text + filled if is_left else filled + text), style=style)
    first.rstrip()
    return first


def _wrap(text: str, width: int) -> list[str]:
    return [line.plain.rstrip() for line in Text(text).wrap(Console(), width)] if cell_len(text) > width else [text]


def _shorten_list(text: str, width: int) -> str:
    """Shorten a list after one of its items, and any other text at a letter."""
    items = text.split(", ")
    while len(items) > 1 and cell_len(", ".join(items)) > width - (2 if ", ".join(items) != text else 0):
        items.pop()
    kept = ", ".join(items)
    return shorten(text if kept == text or cell_len(kept) > width - 2 else f"{kept} …", width)


def _join_spans(table: Table, widths: Sequence[int]) -> str:
    """Join the titles of the models, each above its columns."""
    text, start = "", 0
    for span in table.models:
        own = widths[start : start + len(span.columns)]
        wide = sum(own) + _GAP * (len(own) - 1)
        text += " " * _GAP + shorten(make_printable(span.title), wide, middle=True).rjust(wide)
        start += len(span.columns)
    return text


def _split_table(table: Table, width: int) -> Iterator[Table]:
    """Split the columns of a table into parts that fit; every part repeats the stubs."""
    columns = [(span, index) for span in table.models for index in range(len(span.columns))]
    parts: list[list[int]] = [[]]
    for position in range(len(columns)):
        if parts[-1] and _render_whole(_select_columns(table, [*parts[-1], position]), width) is None:
            parts.append([])
        parts[-1].append(position)
    for number, part in enumerate(parts):
        yield replace(
            _select_columns(table, part),
            caption=table.caption if number == 0 else f"{table.caption} (continued)".strip(),
            signs=table.signs if number == len(parts) - 1 else (),
        )


def _select_columns(table: Table, positions: Sequence[int]) -> Table:
    columns = [(span, name) for span in table.models for name in span.columns]
    spans = tuple(
        ColumnSpan(" ".join(filter(None, (span.title, name))), text=span.text)
        for span, name in (columns[position] for position in positions)
    )
    fewer = table.map_rows(lambda row: TableRow(row.stub, tuple(row.cells[i] for i in positions)))
    return replace(fewer, models=spans)
