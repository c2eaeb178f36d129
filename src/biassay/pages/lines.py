"""Lines of the terminal: a test a line, its numbers under the models, and no line too wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from biassay.files import printable
from biassay.pages.formats import shortened

__all__ = ["BAR", "Block", "Line", "bar"]

BAR = 6
"""Columns of a bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_GAP = 2
_CODE = 12  # columns of a code name that is shown whatever else there is no room for
_TITLE = 24  # columns of a title at least
_SHORT = 12  # columns below which a title beside its code name says nothing
_NAME = 16  # columns of a model's name, for which cells are made wider


def bar(value: float, most: float, *, plain: bool = False) -> str:
    """The size of an effect, in eighths of a column; one that runs the other way is drawn light."""
    share = min(abs(value) / most, 1.0) * BAR if most > 0.0 else 0.0
    if plain or value < 0.0:
        return round(share) * ("-" if plain and value < 0.0 else "#" if plain else "░")
    eighths = round(share * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


@dataclass(frozen=True)
class Line:
    """A test: its title, its code name, and its cells; a line without cells is a heading."""

    title: str
    code: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    indent: int = 2


@dataclass(frozen=True)
class Block:
    """Lines with the same columns; ``heads`` stand above the cells, ``spans`` above several of them: the models.

    ``left`` are the columns that stand to the left; a cell is a text and its style. If ``codes`` is True, no code is
    left out: one that leaves no room for its title replaces it.
    """

    heads: tuple[str, ...]
    lines: tuple[Line, ...]
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
            corner = Text(shortened(printable(self.spans[0]), room, middle=True).ljust(room), style="bold")
        elif self.spans:
            yield self._spanned(widths, room)
        yield _joined(corner, self.heads, ["dim"] * len(widths), widths, self.left)
        for line in self.lines:
            if not line.cells:
                yield Text(printable(line.title), style="bold")
                continue
            first, *rest = _names(line, room, whole=whole, codes=self.codes)
            texts, styles = zip(*line.cells, strict=True)
            first.append(" " * (room - first.cell_len))
            yield _joined(first, texts, styles, widths, self.left)
            yield from rest

    def _spanned(self, widths: Sequence[int], room: int) -> Text:
        text, each = Text(" " * room), len(widths) // len(self.spans)
        for place, span in enumerate(self.spans):
            wide = sum(widths[place * each : (place + 1) * each]) + _GAP * (each - 1)
            text.append(" " * _GAP + shortened(printable(span), wide, middle=True).rjust(wide), style="bold")
        return text


def _joined(
    first: Text, texts: Sequence[str], styles: Sequence[str], widths: Sequence[int], left: frozenset[int]
) -> Text:
    line = first.copy()
    for place, (text, style, width) in enumerate(zip(texts, styles, widths, strict=True)):
        filled = " " * (width - cell_len(text))
        line.append(" " * _GAP + (text + filled if place in left else filled + text), style=style)
    line.rstrip()
    return line


def _names(line: Line, room: int, *, whole: bool, codes: bool) -> list[Text]:
    """The title and, dim, the code name: in one line, or whole."""
    indent, title, code = " " * line.indent, printable(line.title), printable(line.code)
    fits = cell_len(indent + title + code) + 2 <= room
    if codes and not whole and not fits and cell_len(indent + code) + 2 + _SHORT > room:
        if cell_len(indent + code) <= room:
            return [Text(indent + code)]
        return [Text(indent + shortened(title, room - line.indent, middle=True)), Text(f"{indent}  {code}", "dim")]
    if not whole or fits:
        shown = code if codes or fits or len(code) <= _CODE else ""
        own = shortened(title, room - line.indent - (cell_len(shown) + 2 if shown else 0), middle=True)
        return [Text.assemble(indent, own, (f"  {shown}" if shown else "", "dim"))]
    rows = [Text(row) for row in textwrap.wrap(title, room, initial_indent=indent, subsequent_indent=indent + "  ")]
    if rows[-1].cell_len + 2 + cell_len(code) > room:
        rows.append(Text(indent))
    rows[-1].append(f"  {code}", style="dim")
    return rows
