"""A table in LaTeX, with booktabs."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from biassay.errors import UsageError
from biassay.pages.publish.layout import Cell, Group, Row, Table

__all__ = ["escape", "to_latex"]

_MODELS, _NUMBERS = 8, 64  # beside each other: models, and characters of their numbers
_LINES, _CHARACTERS = 40, 75  # of a page and of a line: more do not fit beside a caption and in a text 345pt wide
_GREY = {1: "0.92", 2: "0.82", 3: "0.68"}
_PACKAGES = r"""% \usepackage[T1]{fontenc}
% \usepackage[utf8]{inputenc}
% \usepackage{array,booktabs}
% \usepackage[table]{xcolor}
"""
_BREAK = "\u200b"
# Braces by name: BibTeX, which uses this too, counts them even behind a backslash.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "$": r"\$", "&": r"\&",
    "%": r"\%", "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
    # These would be read as an option or a star of the line break before them.
    "[": "{[}", "]": "{]}", "*": "{*}",
    "–": "--", "—": "---", "−": "$-$", "×": r"$\times$", "÷": r"$\div$", "≤": r"$\leq$", "≥": r"$\geq$",
    "†": r"\dag{}", "‡": r"\ddag{}", "‘": "`", "’": "'", "“": "``", "”": "''", "…": r"\ldots{}", "\u00a0": "~",
    "²": r"\textsuperscript{2}", "³": r"\textsuperscript{3}", "¹": r"\textsuperscript{1}", "µ": r"$\mu$",
    _BREAK: r"\allowbreak{}",
}  # fmt: skip
_LACKING = "\u00adĦħĸĿŀŉŦŧſ"  # of the Latin letters: neither in the encoding T1 nor built by it
_MARKS = {"*": "*", "†": r"\dagger", "‡": r"\ddagger"}
_LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=,)(?=,)|(?<=')(?=')")
# After a sign that closes or joins, and after a character that is given by its number.
_BREAKABLE = r"(?<=[^\w\s'(\[{{<]|_)(?=[^\s*])|(?<=[^\W_]{{{run}}})(?=[^\W_])|(?<=[^\x00-\u024f])(?=\S)"
_NUMBER = re.compile(r"(<?)(-?)([0-9.]+)(?:e(-?[0-9]+))?")
_LABEL = re.compile(r"[A-Za-z0-9:._-]+")


def escape(text: str) -> str:
    """Text that LaTeX prints as it is; a character that pdflatex lacks is given by its number."""
    normal = _LIGATURES.sub("\0", unicodedata.normalize("NFC", text.replace("\0", "\ufffd")))
    return "".join("{}" if character == "\0" else _one(character) for character in normal)


def _one(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~" or ("¡" <= character <= "ž" and character not in _LACKING):
        return character
    return f"{{[}}U+{ord(character):04X}{{]}}"


def to_latex(table: Table, label: str = "tab:biassay") -> str:
    """The table, or several where it is wider or longer than a page, for papers in one column or in two.

    What the preamble must load stands in a comment on top.
    """
    if not _LABEL.fullmatch(label):
        raise UsageError(f"a label is made of letters, digits and :._-, got {label!r}")
    parts = [page for part in _across(table) for page in _down(part)]
    written = [
        _written(part, label)
        if len(parts) == 1
        else _written(replace(part, caption=f"{part.caption} (Part {i} of {len(parts)}.)"), f"{label}-{i}")
        for i, part in enumerate(parts, start=1)
    ]
    return "% The preamble needs:\n" + _PACKAGES + "\n".join(written)


def _across(table: Table) -> Iterator[Table]:
    """As many models beside each other as fit, evenly spread."""
    fit = max(1, min(_MODELS, _NUMBERS // max(_characters(table), default=1)))
    count = max(1, -(-len(table.models) // fit))
    bounds = [round(i * len(table.models) / count) for i in range(count + 1)]
    for start, stop in pairwise(bounds):
        first, last = (sum(len(span.columns) for span in table.models[:place]) for place in (start, stop))
        groups = tuple(
            Group(group.title, tuple(Row(row.stub, row.cells[first:last]) for row in group.rows))
            for group in table.groups
        )
        yield replace(table, models=table.models[start:stop], groups=groups)


def _characters(table: Table) -> Iterator[int]:
    """How many characters the numbers of each model take, with the gaps between them."""
    first = 0
    for span in table.models:
        places = enumerate(span.columns, start=first)
        yield sum(
            1 + max([len(name), *(len(row.cells[place].text) + len(row.cells[place].mark) for row in table.rows)])
            for place, name in places
        )
        first += len(span.columns)


def _down(table: Table) -> Iterator[Table]:
    """As many rows below each other as fit, evenly spread, for a float does not break; notes stand below the last."""
    widths, above = _Widths(table), 0.0
    places: list[tuple[float, Group, Row]] = []
    for group in table.groups:
        above += 0.5 + _lines(group.title, widths.all) if group.title else 0.0
        for row in group.rows:
            places.append((above, group, row))
            above += _lines(row.stub[0], widths.stub)
    total = above + sum(_lines(note, 1.0) for note in table.notes)
    count = math.ceil(total / _LINES)
    pages: dict[int, dict[Group, list[Row]]] = {}
    for place, group, row in places:
        pages.setdefault(int(place * count / total), {}).setdefault(group, []).append(row)
    *first, last = [
        tuple(Group(group.title, tuple(rows)) for group, rows in page.items()) for page in pages.values()
    ] or [table.groups]
    unnoted = tuple(replace(span, notes=()) for span in table.models)
    yield from (replace(table, models=unnoted, groups=groups, signs=()) for groups in first)
    yield replace(table, groups=last)


def _lines(text: str, width: float) -> int:
    return max(1, math.ceil(len(text) / (_CHARACTERS * width)))


class _Widths:
    """Widths as shares of the text; those of numbers are the least they take."""

    def __init__(self, table: Table) -> None:
        self.numbers = sum(len(span.columns) for span in table.models)
        self.columns = len(table.stub) + self.numbers
        self.number = min(0.13, 0.66 / max(1, self.numbers))
        gaps = 0.012 * (self.columns - 1)  # twice 2pt, in a text 345pt wide
        more = 0.09 * (len(table.stub) - 1)
        self.stub = min(0.5, 1.0 - gaps - more - self.numbers * self.number)
        self.all = min(1.0, self.stub + more + self.numbers * self.number + gaps)
        self.font = "small" if self.numbers <= 4 else "footnotesize" if self.numbers <= 6 else "scriptsize"


def _written(table: Table, label: str) -> str:
    widths = _Widths(table)
    spec = "".join(
        [f"@{{}}>{{\\raggedright\\arraybackslash}}p{{{widths.stub:.3f}\\textwidth}}"]
        + ["l"] * (len(table.stub) - 1)
        + ["r"] * widths.numbers
        + ["@{}"]
    )
    shades = " Light, medium and dark grey: d of at least 0.2, 0.5 and 0.8 in size." if table.shaded else ""
    caption = f"\\caption{{{escape(table.caption + shades)}}}\\label{{{label}}}"
    header = "\n".join(_header(table, widths))
    body = "\n".join(_body(table, widths))
    notes = "".join(f"\\par {_breaking(note)}\n" for note in table.notes)
    size = f"\\{widths.font}\\setlength{{\\tabcolsep}}{{2pt}}"
    below = f"\\par\\smallskip\n\\raggedright\n{notes}" if notes else ""
    return (
        f"\\begin{{table*}}[tp]\n{caption}\\par\\smallskip\n\\centering{size}\n\\begin{{tabular}}{{{spec}}}\n"
        f"\\toprule\n{header}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n{below}\\end{{table*}}\n"
    )


def _header(table: Table, widths: _Widths) -> Iterator[str]:
    """Models over their columns, at the foot of the line; below them the columns' own titles where they have any."""
    cells = list(map(escape, table.stub))
    for span in table.models:
        count = len(span.columns)
        side = "raggedleft" if count == 1 else "centering"
        width = widths.number * count
        cells.append(
            f"\\multicolumn{{{count}}}{{>{{\\{side}\\arraybackslash}}b{{{width:.3f}\\textwidth}}}}"
            f"{{{_breaking(span.title, 6)}}}"
        )
    yield _line(cells)
    if any(column for span in table.models for column in span.columns):
        yield "".join(_rules(table))
        own = [escape(column) for span in table.models for column in span.columns]
        yield _line([""] * len(table.stub) + own)


def _rules(table: Table) -> Iterator[str]:
    """A line below every model, over its columns."""
    first = len(table.stub) + 1
    for span in table.models:
        last = first + len(span.columns) - 1
        yield f"\\cmidrule(lr){{{first}-{last}}}"
        first = last + 1


def _body(table: Table, widths: _Widths) -> Iterator[str]:
    marks = [max(len(cell.mark) for cell in column) for column in zip(*(row.cells for row in table.rows), strict=True)]
    for place, group in enumerate(table.groups):
        if group.title:
            if place:
                yield "\\addlinespace"
            across = f">{{\\raggedright\\arraybackslash}}p{{{widths.all:.3f}\\textwidth}}"
            yield (
                f"\\multicolumn{{{widths.columns}}}{{@{{}}{across}@{{}}}}{{\\textit{{{_breaking(group.title)}}}}} \\\\*"
            )
        for row in group.rows:
            first = ("\\hspace*{0.6em}" if group.title else "") + _breaking(row.stub[0])
            yield _line([first, *map(escape, row.stub[1:]), *map(_cell, row.cells, marks)])


def _cell(cell: Cell, mark: int) -> str:
    """A number, and room for the marks of its column, so that numbers stand below each other."""
    text = _number(cell.text)
    if mark:
        shown = "".join(_MARKS[character] for character in cell.mark)
        text += f"\\makebox[{0.45 * mark:.2f}em][l]{{{f'$^{{{shown}}}$' if shown else ''}}}"
    return f"\\cellcolor[gray]{{{_GREY[cell.shade]}}}{text}" if cell.shade else text


def _number(text: str) -> str:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return escape(text) if not text.startswith("-") else f"$-${escape(text[1:])}"
    less, minus, digits, power = found.groups(default="")
    if not (less or minus or power):
        return digits
    times = rf"\times10^{{{power}}}" if power else ""
    return f"${less}{minus}{digits}{times}$"


def _breaking(text: str, run: int = 16) -> str:
    """Escaped, and free to be broken inside of names: after signs, and where ``run`` letters follow each other."""
    return escape(re.sub(_BREAKABLE.format(run=run), _BREAK, text))


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\"
