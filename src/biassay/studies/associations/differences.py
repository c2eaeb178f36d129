"""Differences between models in words, on the page and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from biassay.files import printable
from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.forest import ForestRow, forest
from biassay.pages.charts.style import Style
from biassay.pages.comparing import lay_out_comparison, print_differences
from biassay.pages.formats import decimals, interval_text
from biassay.pages.section import Part, Renderer, Statement
from biassay.results.comparison import Comparison
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.marks import SIGNS
from biassay.studies.associations.page import MOST_MODELS

__all__ = [
    "apart",
    "difference_figures",
    "difference_statements",
    "differences_part",
    "print_association_differences",
    "rows_of",
]

APART = ("interval holds zero", "interval leaves out zero", "so does the simultaneous interval")
MEANING_OF_DIFFERENCES = (
    "A difference is the effect size by word on the other model less that on the first, over the target words that "
    "both know. Its interval is paired, for the words are the same: with 95% confidence it encloses the difference to "
    "be expected of other target words of the same kinds. One interval in twenty leaves out zero by chance; the "
    "simultaneous ones are wider, so that with 95% confidence all of them hold together. An interval that holds zero "
    "does not show that two models are equal. Over contexts the effects are those by word, "
    "each word averaged over its contexts, and not the pooled ones."
)
_NAMED = 8


def rows_of(found: Comparison) -> tuple[AssociationDifference, ...]:
    """The differences, one a test and model."""
    return found.tables["associations"]


def apart(row: AssociationDifference) -> int:
    """A place in `APART`."""
    if not _leaves_out_zero(row.interval_low, row.interval_high):
        return 0
    return 2 if _leaves_out_zero(row.simultaneous_low, row.simultaneous_high) else 1


def _leaves_out_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and (low > 0.0 or high < 0.0)


def difference_statements(found: Comparison) -> list[Statement]:
    """What differs, in plain words."""
    rows = rows_of(found)
    return [_about(model, [r for r in rows if r.model == model], found.baseline) for model in found.models]


def _about(model: str, rows: Sequence[AssociationDifference], baseline: str) -> Statement:
    compared = [row for row in rows if row.interval_low is not None]
    differing = sorted((r for r in compared if apart(r)), key=lambda r: -abs(r.difference or 0.0))
    sure = sum(apart(row) == 2 for row in compared)
    expected = len(compared) / 20
    counted = "1 difference" if len(compared) == 1 else f"{len(compared)} differences"
    text = (
        f"{model}: of {counted} from {baseline}, intervals that leave out zero: {len(differing)} (by chance about "
        f"{expected:.1f}), simultaneously: {sure}."
    )
    if len(rows) > len(compared):
        text += f" {len(rows) - len(compared)} could not be compared."
    points = tuple(_point(row) for row in differing[:_NAMED])
    more = (f"and {len(differing) - _NAMED} more",) if len(differing) > _NAMED else ()
    return Statement(text, (*points, *more), model)


def _point(row: AssociationDifference) -> str:
    sure = " **" if apart(row) == 2 else ""
    effects = f"{decimals(row.effect_baseline)} on {row.baseline}, {decimals(row.effect_model)} on {row.model}"
    interval = interval_text(row.interval_low, row.interval_high)
    return f"{row.test}{sure} ({row.title}): {effects}; difference {decimals(row.difference)} (95% {interval})"


def differences_part(found: Comparison, renderer: Renderer) -> Part:
    """Everything about a comparison."""
    renderer.environment.globals.update(decimals=decimals, span=interval_text, apart=apart, apart_names=APART)
    figures = renderer.figures([make for _, make in difference_figures(found)][:MOST_MODELS])
    section = renderer.section(
        "differences", "Differences of effect sizes", rows=rows_of(found), figures=figures, baseline=found.baseline
    )
    return lay_out_comparison(found, difference_statements(found), [section], MEANING_OF_DIFFERENCES)


def difference_figures(found: Comparison) -> list[tuple[str, Drawing]]:
    """One a model."""
    made: list[tuple[str, Drawing]] = []
    for place, model in enumerate(dict.fromkeys(row.model for row in rows_of(found))):
        rows = [_row(r) for r in rows_of(found) if r.model == model and r.difference is not None]
        if rows:
            title = f"{model} less {found.baseline}"
            made.append((model, partial(_drawn, f"difference-{place + 1}", title, rows)))
    return made


def _row(r: AssociationDifference) -> ForestRow:
    effects = f"{decimals(r.effect_baseline or 0.0)} on {r.baseline}, {decimals(r.effect_model or 0.0)} on {r.model}"
    tip = (
        f"{r.test}: {effects}; difference {decimals(r.difference or 0.0)}, 95% "
        f"{interval_text(r.interval_low, r.interval_high)}; {r.num_targ1} and {r.num_targ2} words"
    )
    return ForestRow(r.test, r.difference or 0.0, r.interval_low, r.interval_high, apart(r), tip)


def _drawn(name: str, title: str, rows: Sequence[ForestRow], style: Style) -> Figure:
    return forest(name, title, rows, style, axis="difference of effect sizes by word, 95%", names=APART)


def print_association_differences(found: Comparison, console: Console) -> None:
    """Print the table, and the differences in words."""
    unsaid = dict.fromkeys(f"{row.test}: {row.reason}" for row in rows_of(found) if row.difference is None)
    before: list[RenderableType] = [
        _table(found),
        Text("* the interval leaves out zero   ** so does the simultaneous one", style="dim"),
        *(Text(printable(line), style="yellow") for line in unsaid),
    ]
    after = [Text(MEANING_OF_DIFFERENCES, style="dim")]
    print_differences(found, console, difference_statements(found), before, after)


def _table(found: Comparison) -> Table:
    table = Table(show_lines=False)
    table.add_column("test", overflow="fold")
    table.add_column("model", overflow="fold")
    for name in (f"effect on {printable(found.baseline)}", "on the model", "difference", "95%, paired", "words"):
        table.add_column(Text(name), justify="right", no_wrap=name in ("difference", "95%, paired"), overflow="fold")
    for row in rows_of(found):
        table.add_row(*(Text(printable(cell)) for cell in (row.test, row.model, *_printed(row))))
    return table


def _printed(row: AssociationDifference) -> tuple[str, ...]:
    effects = [decimals(effect) for effect in (row.effect_baseline, row.effect_model)]
    if row.difference is None:
        return *effects, "–", "–", ""
    difference = decimals(row.difference) + SIGNS[apart(row)]
    return *effects, difference, interval_text(row.interval_low, row.interval_high), f"{row.num_targ1}, {row.num_targ2}"
