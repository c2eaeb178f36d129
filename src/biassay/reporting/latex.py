"""Write tables in LaTeX with booktabs."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from biassay.errors import UsageError
from biassay.reporting.document import Cell, RowGroup, Table, TableRow, drop_spare_columns, narrow_table

_MODELS, _NUMBERS = 8, 64  # side by side: models, and characters of their numbers
_GREY = {1: "0.92", 2: "0.82", 3: "0.68"}
_PACKAGES = r"""% \usepackage[T1]{fontenc}
% \usepackage[utf8]{inputenc}
% \usepackage{array,booktabs}
"""
_SHADING = r"""% \usepackage[table]{xcolor}
"""
_BREAK = "\u200b"
# Braces by name, because BibTeX counts them even after a backslash.
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
_LACKING = "\u00adĦħĸĿŀŉŦŧſ"  # Latin letters that the encoding T1 lacks and cannot compose
_MARKS = {"*": "*", "†": r"\dagger", "‡": r"\ddagger"}
_LIGATURES = re.compile(r"(?<=-)(?=-)|(?<=,)(?=,)|(?<=')(?=')")
# After a closing or joining sign, and after a character given by its number.
_BREAKABLE = r"(?<=[^\w\s'(\[{{<]|_)(?=[^\s*])|(?<=[^\W_]{{{run}}})(?=[^\W_])|(?<=[^\x00-\u024f])(?=\S)"
_NUMBER = re.compile(r"(<?)(-?)([0-9.]+)(?:e(-?[0-9]+))?")
_LABEL = re.compile(r"[A-Za-z0-9:._-]+")


@dataclass(frozen=True)
class _Place:
    """Environment of a table: its width, and characters per line in captions and in small type."""

    environment: str
    width: str
    caption: int
    characters: int


_WIDE = _Place("table*", r"\textwidth", 72, 75)  # in a text 345pt wide
_NARROW = _Place("table", r"\columnwidth", 38, 47)  # in footnotes of a column 200pt wide
_FONTS = {"small": 75, "footnotesize": 81, "scriptsize": 92}  # characters in a text 345pt wide
_HEIGHTS = {"small": 11.0, "footnotesize": 9.5, "scriptsize": 8.0}  # height of a line, in points
_PAGE, _HEAD = 550.0, 60.0  # height of a page, and of everything above the rows except the caption, in points
_LARGER = 52  # characters of numbers up to which six columns fit in footnote size
_LEAST = 0.2  # smallest share of the width for readable labels


def escape(text: str) -> str:
    """Escape a text for LaTeX; characters that pdflatex lacks are given by number."""
    normal = _LIGATURES.sub("\0", unicodedata.normalize("NFC", text.replace("\0", "\ufffd")))
    return "".join("{}" if character == "\0" else _one(character) for character in normal)


def _one(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~" or ("¡" <= character <= "ž" and character not in _LACKING):
        return character
    return f"{{[}}U+{ord(character):04X}{{]}}"


def to_latex(table: Table, label: str = "tab:biassay") -> str:
    """Render a table as wide as the text; as several tables if it is wider or longer than a page.

    Spare columns are left out if more models then fit side by side. A comment at the top lists the packages to load;
    the meaning of signs is below the last part.
    """
    fewer = list(_across(drop_spare_columns(table)))
    *first, last = fewer if len(fewer) < len(list(_across(table))) else _across(table)
    parts = [*(replace(part, signs=()) for part in first), last]
    return _file([page for part in parts for page in _down(part, _WIDE)], label, _WIDE)


def to_narrow_latex(table: Table, label: str = "tab:biassay") -> str | None:
    """Render a table for one column of a two-column paper; None if its numbers are too wide."""
    small = narrow_table(table)
    if _Widths(small, _NARROW).stub < _LEAST:
        return None
    return _file(list(_down(small, _NARROW)), label, _NARROW)


def _file(parts: Sequence[Table], label: str, layout: _Place) -> str:
    """Join the lines for the preamble and the parts; the first part has the whole caption."""
    if not _LABEL.fullmatch(label):
        raise UsageError(f"a label is made of letters, digits and :._-, got {label!r}")
    written = [_written(part, label, layout) for part in parts] if len(parts) == 1 else []
    for i, part in enumerate(parts if len(parts) > 1 else (), start=1):
        caption = part.caption if i == 1 else part.caption.partition(". ")[0].rstrip(".") + "."
        numbered = replace(part, caption=f"{caption} (Part {i} of {len(parts)}.)")
        written.append(_written(numbered, f"{label}-{i}", layout))
    shading = _SHADING if any(part.shaded for part in parts) else ""
    return "% The preamble needs:\n" + _PACKAGES + shading + "\n".join(written)


def _across(table: Table) -> Iterator[Table]:
    """Split models into parts that fit side by side, of about equal size."""
    fit = max(1, min(_MODELS, _NUMBERS // max(_characters(table), default=1)))
    count = max(1, -(-len(table.models) // fit))
    bounds = [round(i * len(table.models) / count) for i in range(count + 1)]
    for start, stop in pairwise(bounds):
        first, last = (sum(len(span.columns) for span in table.models[:place]) for place in (start, stop))
        groups = tuple(
            RowGroup(group.title, tuple(TableRow(row.stub, row.cells[first:last]) for row in group.rows))
            for group in table.groups
        )
        yield replace(table, models=table.models[start:stop], groups=groups)


def _characters(table: Table) -> Iterator[int]:
    """Count the characters that the numbers of each model take, including gaps."""
    first = 0
    for span in table.models:
        places = enumerate(span.columns, start=first)
        yield sum(1 + max([len(name), *(_length(row.cells[place]) for row in table.rows)]) for place, name in places)
        first += len(span.columns)


def _length(cell: Cell) -> int:
    """Return the width in characters; powers of ten and their signs take two more than in this notation."""
    found = _NUMBER.fullmatch(cell.text)
    wider = 0 if found is None else 2 * bool(found[4]) + 2 * bool(found[1])
    return len(cell.text) + len(cell.mark) + wider


def _down(table: Table, layout: _Place) -> Iterator[Table]:
    """Split rows into parts of about equal length, because a float does not break; notes are below the last part."""
    widths, above = _Widths(table, layout), 0.0
    places: list[tuple[float, RowGroup, TableRow]] = []
    for group in table.groups:
        above += 0.5 + widths.lines(group.title, widths.all) if group.title else 0.0
        for row in group.rows:
            places.append((above, group, row))
            above += widths.lines(widths.name(row.stub[0]), widths.stub)
    total = above + sum(widths.lines(note, 1.0) for note in table.notes)
    count = math.ceil(total / widths.fit(table.caption))
    pages: dict[int, dict[RowGroup, list[TableRow]]] = {}
    for at, group, row in places:
        pages.setdefault(int(at * count / total), {}).setdefault(group, []).append(row)
    *first, last = [
        tuple(RowGroup(group.title, tuple(rows)) for group, rows in page.items()) for page in pages.values()
    ] or [table.groups]
    unnoted = tuple(replace(span, notes=()) for span in table.models)
    yield from (replace(table, models=unnoted, groups=groups, signs=()) for groups in first)
    yield replace(table, groups=last)


class _Widths:
    """Widths as shares of the text or column; those of numbers are minimum widths."""

    def __init__(self, table: Table, layout: _Place) -> None:
        self.place = layout
        self.numbers = sum(len(span.columns) for span in table.models)
        self.columns = len(table.stub) + self.numbers
        gaps = 4.0 / 345.0 * (self.columns - 1)  # twice 2pt
        more = 0.09 * (len(table.stub) - 1)
        taken = sum(_characters(table))
        is_small = layout is _NARROW or (4 < self.numbers <= 6 and taken <= _LARGER)
        self.font = "footnotesize" if is_small else "small" if self.numbers <= 4 else "scriptsize"
        self.characters = layout.characters if layout is _NARROW else _FONTS[self.font]
        if layout is _NARROW:
            gaps *= 345.0 / 200.0
            self.number = taken / layout.characters / max(1, self.numbers)  # including a gap for each
        else:
            self.number = min(0.13, 0.66 / max(1, self.numbers))
            if table.models and all(len(span.columns) > 1 for span in table.models):
                self.number = min(self.number, taken / _FONTS[self.font] / self.numbers)
        self.stub = min(0.5, 1.0 - gaps - more - self.numbers * self.number)
        self.all = 0.9 * min(1.0, self.stub + more + self.numbers * self.number + gaps)

    def lines(self, text: str, width: float) -> int:
        """Return the lines that a text takes in a share of the width."""
        return max(1, math.ceil(len(text) / (self.characters * width)))

    def name(self, text: str) -> str:
        """Shorten a word in the middle if it would take more than two lines."""
        room = max(int(self.characters * self.stub) - 4, 8)
        if " " in text or len(text) <= 2 * room:
            return text
        return f"{text[: room - room // 2]}…{text[-(room // 2) :]}"

    def fit(self, caption: str) -> float:
        """Return the number of lines on a page below the caption, which names the part and the meaning of shades."""
        above = 12.0 * math.ceil((len(caption) + 90) / self.place.caption) + _HEAD
        return (_PAGE - above) / _HEIGHTS[self.font]


def _written(table: Table, label: str, layout: _Place) -> str:
    widths = _Widths(table, layout)
    spec = "".join(
        [f"@{{}}>{{\\raggedright\\arraybackslash}}p{{{widths.stub:.3f}{layout.width}}}"]
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
        f"\\begin{{{layout.environment}}}[tp]\n{caption}\\par\\smallskip\n\\centering{size}\n"
        f"\\begin{{tabular}}{{{spec}}}\n\\toprule\n{header}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
        f"{below}\\end{{{layout.environment}}}\n"
    )


def _header(table: Table, widths: _Widths) -> Iterator[str]:
    """Return the heads: models over their columns, then the titles of columns, if any."""
    stub = list(map(escape, table.stub))
    own = [escape(column) for span in table.models for column in span.columns]
    if not any(span.title for span in table.models):
        yield _line([*stub, *own])
        return
    cells = stub[:]
    for span in table.models:
        count = len(span.columns)
        title = _breaking(span.title, 6)
        width = f"{{{widths.number * (count if count == 1 else 0.9 * count):.3f}{widths.place.width}}}"
        if count == 1:
            cells.append(f"\\multicolumn{{1}}{{>{{\\raggedleft\\arraybackslash}}b{width}}}{{{title}}}")
        else:
            box = f"\\makebox[0pt]{{\\parbox[b]{width}{{\\centering {title}}}}}"
            cells.append(f"\\multicolumn{{{count}}}{{c}}{{{box}}}")
    yield _line(cells)
    if any(own):
        yield "".join(_rules(table))
        yield _line([""] * len(table.stub) + own)


def _rules(table: Table) -> Iterator[str]:
    """Return the rules below the models, over their columns."""
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
            # No width: all of it would go to the last column.
            title = f"{{\\raggedright\\textit{{{_breaking(group.title)}}}\\strut}}"
            box = f"\\parbox[t]{{{widths.all:.3f}{widths.place.width}}}{title}"
            yield f"\\multicolumn{{{widths.columns}}}{{@{{}}l@{{}}}}{{\\makebox[0pt][l]{{{box}}}}} \\\\*"
        for row in group.rows:
            first = ("\\hspace*{0.6em}" if group.title else "") + _breaking(widths.name(row.stub[0]))
            yield _line([first, *map(escape, row.stub[1:]), *map(_cell, row.cells, marks)])


def _cell(cell: Cell, mark: int) -> str:
    """Format a number with room for the marks of its column, so that numbers align."""
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
    """Escape a text and allow line breaks inside names: after signs, and within ``run`` letters in a row."""
    return escape(re.sub(_BREAKABLE.format(run=run), _BREAK, text))


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\"
