"""Differences between models as a table in the terminal."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from biassay.report.words import decimals, printable
from biassay.report.words_comparison import (
    MEANING_OF_DIFFERENCES,
    apart,
    comparison_headline,
    comparison_summary,
    span,
)
from biassay.results.comparison import AssociationDifference, Comparison

__all__ = ["print_comparison"]

_SIGNS = ("", "*", "**")


def print_comparison(found: Comparison, console: Console) -> None:
    """Print the table, and the differences in words."""
    parts: list[RenderableType] = [Text(printable(comparison_headline(found)), style="bold")]
    parts += [Text(printable(f"not alike: {note}"), style="yellow") for note in found.notes]
    if found.associations:
        parts += [_table(found), Text("* the interval leaves out zero   ** so does the simultaneous one", style="dim")]
    unsaid = dict.fromkeys(f"{row.test}: {row.reason}" for row in found.associations if row.difference is None)
    parts += [Text(printable(line), style="yellow") for line in unsaid]
    for finding in comparison_summary(found):
        parts += [Text(printable(finding.text)), *(Text(printable(f"  • {point}")) for point in finding.points)]
    if found.associations:
        parts.append(Text(MEANING_OF_DIFFERENCES, style="dim"))
    console.print(Group(*parts))


def _table(found: Comparison) -> Table:
    table = Table(show_lines=False)
    table.add_column("test", overflow="fold")
    table.add_column("model", overflow="fold")
    for name in (f"effect on {printable(found.baseline)}", "on the model", "difference", "95%, paired", "words"):
        table.add_column(Text(name), justify="right", no_wrap=name in ("difference", "95%, paired"), overflow="fold")
    for row in found.associations:
        table.add_row(*(Text(printable(cell)) for cell in (row.test, row.model, *_cells(row))))
    return table


def _cells(row: AssociationDifference) -> tuple[str, ...]:
    effects = ["–" if effect is None else decimals(effect) for effect in (row.effect_baseline, row.effect_model)]
    if row.difference is None:
        return *effects, "–", "–", ""
    difference = decimals(row.difference) + _SIGNS[apart(row)]
    return *effects, difference, span(row.interval_low, row.interval_high), f"{row.num_targ1}, {row.num_targ2}"
