"""Write tables in LaTeX with booktabs."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from biassay.errors import UsageError
from biassay.reporting.document import Cell, PaperTable, RowGroup, TableRow, drop_spare_columns, narrow_table

__all__ = ["escape", "to_latex", "to_narrow_latex"]

_MODELS, _NUMBERS = 8, 64  # beside each other: models, and characters of their numbers
_GREY = {1: "0.92", 2: "0.82", 3: "0.68"}
_PACKAGES = r"""% \usepackage[T1]{fontenc}
% \usepackage[utf8]{inputenc}
% \usepackage{array,booktabs}
"""
_SHADING = r"""% \usepackage[table]{xcolor}
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


@dataclass(frozen=True)
class _Place:
    """Where a table stands: how many characters a line has, in a caption and in small letters."""

    environment: str
    width: str
    caption: int
    characters: int


_WIDE = _Place("table*", r"\textwidth", 72, 75)  # in a text 345pt wide
_NARROW = _Place("table", r"\columnwidth", 38, 47)  # in footnotes of a column 200pt wide
_FONTS = {"small": 75, "footnotesize": 81, "scriptsize": 92}  # characters in a text 345pt wide
_HEIGHTS = {"small": 11.0, "footnotesize": 9.5, "scriptsize": 8.0}  # of a line, in points
_PAGE, _HEAD = 550.0, 60.0  # points of a page, and of what stands above the rows beside the caption
_LARGER = 52  # characters of numbers, up to which six of them are no smaller than footnotes
_LEAST = 0.2  # of a column, below which labels cannot be read


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


def to_latex(table: PaperTable, label: str = "tab:biassay") -> str:
    """The table, or several where it is wider or longer than a page: as wide as the text, whatever its columns.

    Numbers that are spare are left out where more models then stand beside each other. What the preamble must load
    stands in a comment on top, and what signs mean once, below the last part.
    """
    fewer = list(_across(drop_spare_columns(table)))
    *first, last = fewer if len(fewer) < len(list(_across(table))) else _across(table)
    parts = [*(replace(part, signs=()) for part in first), last]
    return _file([page for part in parts for page in _down(part, _WIDE)], label, _WIDE)


def to_narrow_latex(table: PaperTable, label: str = "tab:biassay") -> str | None:
    """The same for one column of a paper in two, models below each other; None where its numbers are too wide."""
    small = narrow_table(table)
    if _Widths(small, _NARROW).stub < _LEAST:
        return None
    return _file(list(_down(small, _NARROW)), label, _NARROW)


def _file(parts: Sequence[PaperTable], label: str, place: _Place) -> str:
    """What the preamble needs, and the parts; the first of several has the whole caption."""
    if not _LABEL.fullmatch(label):
        raise UsageError(f"a label is made of letters, digits and :._-, got {label!r}")
    written = [_written(part, label, place) for part in parts] if len(parts) == 1 else []
    for i, part in enumerate(parts if len(parts) > 1 else (), start=1):
        caption = part.caption if i == 1 else part.caption.partition(". ")[0].rstrip(".") + "."
        numbered = replace(part, caption=f"{caption} (Part {i} of {len(parts)}.)")
        written.append(_written(numbered, f"{label}-{i}", place))
    shading = _SHADING if any(part.shaded for part in parts) else ""
    return "% The preamble needs:\n" + _PACKAGES + shading + "\n".join(written)


def _across(table: PaperTable) -> Iterator[PaperTable]:
    """As many models beside each other as fit, evenly spread."""
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


def _characters(table: PaperTable) -> Iterator[int]:
    """How many characters the numbers of each model take, with the gaps between them."""
    first = 0
    for span in table.models:
        places = enumerate(span.columns, start=first)
        yield sum(1 + max([len(name), *(_length(row.cells[place]) for row in table.rows)]) for place, name in places)
        first += len(span.columns)


def _length(cell: Cell) -> int:
    """In characters; a power of ten and a sign before it take two more than they are written with here."""
    found = _NUMBER.fullmatch(cell.text)
    wider = 0 if found is None else 2 * bool(found[4]) + 2 * bool(found[1])
    return len(cell.text) + len(cell.mark) + wider


def _down(table: PaperTable, place: _Place) -> Iterator[PaperTable]:
    """As many rows below each other as fit, evenly spread, for a float does not break; notes stand below the last."""
    widths, above = _Widths(table, place), 0.0
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
    """Widths as shares of the text or of its column; those of numbers are the least they take."""

    def __init__(self, table: PaperTable, place: _Place) -> None:
        self.place = place
        self.numbers = sum(len(span.columns) for span in table.models)
        self.columns = len(table.stub) + self.numbers
        gaps = 4.0 / 345.0 * (self.columns - 1)  # twice 2pt
        more = 0.09 * (len(table.stub) - 1)
        taken = sum(_characters(table))
        is_small = place is _NARROW or (4 < self.numbers <= 6 and taken <= _LARGER)
        self.font = "footnotesize" if is_small else "small" if self.numbers <= 4 else "scriptsize"
        self.characters = place.characters if place is _NARROW else _FONTS[self.font]
        if place is _NARROW:
            gaps *= 345.0 / 200.0
            self.number = taken / place.characters / max(1, self.numbers)  # with a gap to each
        else:
            self.number = min(0.13, 0.66 / max(1, self.numbers))
            if table.models and all(len(span.columns) > 1 for span in table.models):
                self.number = min(self.number, taken / _FONTS[self.font] / self.numbers)
        self.stub = min(0.5, 1.0 - gaps - more - self.numbers * self.number)
        self.all = 0.9 * min(1.0, self.stub + more + self.numbers * self.number + gaps)

    def lines(self, text: str, width: float) -> int:
        """That a text takes in such a share."""
        return max(1, math.ceil(len(text) / (self.characters * width)))

    def name(self, text: str) -> str:
        """A text of one word that would take more than two lines is cut in its middle, to one."""
        room = max(int(self.characters * self.stub) - 4, 8)
        if " " in text or len(text) <= 2 * room:
            return text
        return f"{text[: room - room // 2]}…{text[-(room // 2) :]}"

    def fit(self, caption: str) -> float:
        """Lines that a page has room for below the caption, which says in what part it is, and what shades mean."""
        above = 12.0 * math.ceil((len(caption) + 90) / self.place.caption) + _HEAD
        return (_PAGE - above) / _HEIGHTS[self.font]


def _written(table: PaperTable, label: str, place: _Place) -> str:
    widths = _Widths(table, place)
    spec = "".join(
        [f"@{{}}>{{\\raggedright\\arraybackslash}}p{{{widths.stub:.3f}{place.width}}}"]
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
        f"\\begin{{{place.environment}}}[tp]\n{caption}\\par\\smallskip\n\\centering{size}\n"
        f"\\begin{{tabular}}{{{spec}}}\n\\toprule\n{header}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
        f"{below}\\end{{{place.environment}}}\n"
    )


def _header(table: PaperTable, widths: _Widths) -> Iterator[str]:
    """Models over their columns, at the foot of the line; below them the columns' own titles where they have any."""
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


def _rules(table: PaperTable) -> Iterator[str]:
    """A line below every model, over its columns."""
    first = len(table.stub) + 1
    for span in table.models:
        last = first + len(span.columns) - 1
        yield f"\\cmidrule(lr){{{first}-{last}}}"
        first = last + 1


def _body(table: PaperTable, widths: _Widths) -> Iterator[str]:
    marks = [max(len(cell.mark) for cell in column) for column in zip(*(row.cells for row in table.rows), strict=True)]
    for place, group in enumerate(table.groups):
        if group.title:
            if place:
                yield "\\addlinespace"
            # Without a width of its own, which would all go to the last column.
            title = f"{{\\raggedright\\textit{{{_breaking(group.title)}}}\\strut}}"
            box = f"\\parbox[t]{{{widths.all:.3f}{widths.place.width}}}{title}"
            yield f"\\multicolumn{{{widths.columns}}}{{@{{}}l@{{}}}}{{\\makebox[0pt][l]{{{box}}}}} \\\\*"
        for row in group.rows:
            first = ("\\hspace*{0.6em}" if group.title else "") + _breaking(widths.name(row.stub[0]))
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
