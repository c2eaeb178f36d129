"""Differences between models in words, on the page and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.forest import ForestRow, forest
from biassay.pages.charts.style import Style
from biassay.pages.comparing import lay_out_comparison
from biassay.pages.formats import MANY_MODELS, counted, decimals, interval_text
from biassay.pages.gate import by_urgency, gate_meaning, gate_statements, verdict_columns
from biassay.pages.plain_tables import section_of
from biassay.pages.section import Part, Renderer, Section, Statement
from biassay.results.comparison import Comparison
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.comparison_figure import comparison_figure

__all__ = [
    "CHECKS",
    "MEANING_OF_DIFFERENCES",
    "apart",
    "difference_figures",
    "difference_statements",
    "differences_part",
    "family_of",
    "parted",
    "rows_of",
    "words_of",
]

APART = ("interval holds zero", "interval leaves out zero", "so does the simultaneous interval")
CHECKS = "Checks of the method, outside of the simultaneous intervals"
MEANING_OF_DIFFERENCES = (
    "A difference is the calibrated difference on the other model minus that on the first, over the words that both "
    "know: the cosine difference D divided by the SD of cosines between frequent words. Its interval is paired: with "
    "95% confidence it encloses the difference to be expected of other words of the same kinds, targets and attributes."
    " One interval in twenty leaves out zero by chance; the simultaneous ones are wider, so that with 95% confidence "
    "all of them hold together: social-bias tests on all models compared. An interval that holds zero does not show "
    "that two models are equal."
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
    people, checks = parted(rows)
    counts = _counted(people)
    text = f"{model}: of {counted(counts[1], 'difference')} from {baseline} in tests about people, "
    text += f"intervals that leave out zero: {counts[0]} (by chance about {counts[1] / 20:.2g}), "
    text += f"simultaneously: {sum(apart(row) == 2 for row in people)}."
    if checks:
        text += " In checks of the method: {} of {}.".format(*_counted(checks))
    for missing, what in (
        (sum(row.difference is None for row in rows), "could not be compared"),
        (sum(row.difference is not None and row.interval_low is None for row in rows), "without an interval"),
    ):
        text += f" {missing} {what}." if missing else ""
    differing = sorted((r for r in people if apart(r)), key=lambda r: -abs(r.difference or 0.0))
    points = tuple(_point(row) for row in differing[:_NAMED])
    more = (f"and {len(differing) - _NAMED} more",) if len(differing) > _NAMED else ()
    return Statement(text, (*points, *more), model)


def parted(rows: Sequence[AssociationDifference]) -> tuple[list[AssociationDifference], list[AssociationDifference]]:
    """Tests about people, and checks of the method."""
    return [row for row in rows if not row.is_check], [row for row in rows if row.is_check]


def _counted(rows: Sequence[AssociationDifference]) -> tuple[int, int]:
    """Intervals that leave out zero, and all intervals."""
    return sum(apart(row) > 0 for row in rows), sum(row.interval_low is not None for row in rows)


def _point(row: AssociationDifference) -> str:
    sure = " **" if apart(row) == 2 else ""
    effects = f"{decimals(row.effect_baseline)} on {row.baseline}, {decimals(row.effect_model)} on {row.model}"
    interval = interval_text(row.interval_low, row.interval_high)
    return f"{row.test}{sure} ({row.title}): {effects}; difference {decimals(row.difference)} (95% {interval})"


def differences_part(found: Comparison, renderer: Renderer) -> Part:
    """Everything about a comparison: verdicts, and signed differences on demand."""
    sections = [_signed(found, renderer)]
    if not found.verdicts:
        return lay_out_comparison(
            found, difference_statements(found), sections, MEANING_OF_DIFFERENCES, comparison_figure(found)
        )
    verdicts = section_of("verdicts", "Verdicts", verdict_columns(found.verdicts), by_urgency(found.verdicts), renderer)
    said = gate_statements(found.verdicts)
    meaning = gate_meaning(found.verdicts)
    return lay_out_comparison(found, said, [verdicts, *sections], meaning, comparison_figure(found))


def _signed(found: Comparison, renderer: Renderer) -> Section:
    renderer.environment.globals.update(decimals=decimals, span=interval_text, apart=apart, words=words_of)
    renderer.environment.globals.update(apart_names=APART)
    people, checks = parted(rows_of(found))
    return renderer.section(
        "differences",
        "Signed differences",
        groups=[("", people), (CHECKS, checks)],
        family=family_of(found),
        figures=renderer.figures([make for _, make in difference_figures(found)][:MANY_MODELS]),
        baseline=found.baseline,
        meaning=MEANING_OF_DIFFERENCES if found.verdicts else "",
    )


def family_of(found: Comparison) -> str:
    """Which intervals are simultaneous; empty: none."""
    people, _ = parted(rows_of(found))
    family = next((row.family for row in people if row.family), 0)
    if not family:
        return ""
    counts = {
        "with identical cosines": sum(row.identical for row in people),
        "without an interval": sum(row.interval_low is None for row in people),
    }
    left = " and ".join(f"{number} {what}" for what, number in counts.items() if number)
    models = counted(len(found.models), "model")
    said = f"Simultaneous intervals: {family}, of social-bias tests on {models} compared"
    return f"{said}; {left} not counted." if left else f"{said}."


def difference_figures(found: Comparison) -> list[tuple[str, Drawing]]:
    """One a model: tests about people, then checks of the method."""
    made: list[tuple[str, Drawing]] = []
    people, checks = parted(rows_of(found))
    for place, model in enumerate(found.models):
        rows = [_row(r) for r in (*people, *checks) if r.model == model and r.difference is not None]
        if rows:
            title = f"{model} less {found.baseline}"
            made.append((model, partial(_drawn, f"difference-{place + 1}", title, rows)))
    return made


def _row(r: AssociationDifference) -> ForestRow:
    effects = f"{decimals(r.effect_baseline or 0.0)} on {r.baseline}, {decimals(r.effect_model or 0.0)} on {r.model}"
    tip = (
        f"{r.test}: {effects}; difference {decimals(r.difference or 0.0)}, 95% "
        f"{interval_text(r.interval_low, r.interval_high)}; words: {words_of(r)}"
    )
    label = f"{r.test} (check)" if r.is_check else r.test
    return ForestRow(label, r.difference or 0.0, r.interval_low, r.interval_high, apart(r), tip)


def words_of(row: AssociationDifference) -> str:
    """How many words of X, Y, A and B are compared."""
    return ", ".join(map(str, (row.num_targ1, row.num_targ2, row.num_attr1, row.num_attr2)))


def _drawn(name: str, title: str, rows: Sequence[ForestRow], style: Style) -> Figure:
    return forest(name, title, rows, style, axis="difference of calibrated differences, 95%", names=APART)
