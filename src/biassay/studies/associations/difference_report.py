"""Report of a comparison of association tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from markupsafe import Markup
from rich.console import Console, RenderableType
from rich.text import Text

from biassay.io import make_printable
from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.forest import ForestRow, draw_forest
from biassay.reporting.comparison import (
    effect_text,
    format_verdict,
    gate_meaning,
    gate_statements,
    lay_out_comparison,
    print_differences,
    sort_by_urgency,
    verdict_columns,
)
from biassay.reporting.document import (
    Cell,
    ColumnSpan,
    PaperTable,
    Renderer,
    ReportPart,
    RowGroup,
    Section,
    Statement,
    TableRow,
)
from biassay.reporting.findings import SANITY_CHECKS, draw_overview, get_scale, make_effect, select_drawable
from biassay.reporting.formats import MANY_MODELS, clean_line, format_count, format_decimal, format_interval
from biassay.reporting.html_figures import EffectRow, EffectRows, draw_effects
from biassay.reporting.terminal import WIDTH, TerminalLine, TerminalTable, section_of
from biassay.results.comparison import Comparison
from biassay.results.differences import VERDICT_OUTCOMES, Verdict, VerdictOutcome, format_outcome
from biassay.results.findings import Finding
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.findings import make_short_findings
from biassay.studies.associations.signs import SIGNS

__all__ = [
    "CHECKS_OUTSIDE_INTERVALS",
    "MEANING_OF_DIFFERENCES",
    "apart",
    "comparison_figure",
    "difference_figures",
    "difference_statements",
    "difference_table",
    "differences_part",
    "family_of",
    "parted",
    "print_association_differences",
    "rows_of",
    "words_of",
]


_TITLES: Mapping[VerdictOutcome, str] = {
    "worse": "Worse",
    "missing": "Measured on the old model only",
    "inconclusive": "Inconclusive",
    "better": "Better",
    "no_worse": "No worse",
    "not_measured": "Measured on neither model",
}


def comparison_figure(found: Comparison) -> Markup | None:
    """Effects on all models, the first of them the one that the others are compared with."""
    (gathered,) = found.gathered
    findings = select_drawable(make_short_findings(gathered.run))
    if not found.verdicts:
        return draw_overview(findings)
    models = [found.baseline, *found.models]
    by_test: dict[str, list[Finding]] = {}
    for one in sorted(findings, key=lambda one: models.index(one.model)):
        by_test.setdefault(one.item, []).append(one)
    caption = "Social-bias tests by verdict: did the association move towards the stereotype? Effect sizes d."
    return draw_effects(
        list(_groups(by_test, found.verdicts, models)), models, caption=caption, **get_scale(findings, len(models))
    )


def _groups(
    by_test: Mapping[str, Sequence[Finding]], verdicts: Sequence[Verdict], models: Sequence[str]
) -> Iterator[EffectRows]:
    for model in models[1:]:
        own = [verdict for verdict in verdicts if verdict.model == model]
        front = f"{model}: " if len(models) > 2 else ""
        for outcome in VERDICT_OUTCOMES:
            same = sort_by_urgency(
                [
                    verdict
                    for verdict in own
                    if verdict.outcome == outcome and _of(by_test.get(verdict.test, ()), models[0], model)
                ]
            )
            if same:
                rows = tuple(_effect_row(_of(by_test[one.test], models[0], model), models, one) for one in same)
                yield EffectRows(f"{front}{_TITLES[outcome]}", rows, said=f"{len(rows):,} of {len(own):,} tests")
    judged = {verdict.test for verdict in verdicts}
    others = [same for test, same in by_test.items() if test not in judged and same[0].about != "method"]
    if others:
        yield EffectRows("Measured on the new model only", tuple(_effect_row(same, models) for same in others))
    checks = tuple(_effect_row(same, models) for same in by_test.values() if same[0].about == "method")
    if checks:
        yield EffectRows(SANITY_CHECKS, checks, folded=True)


def _of(findings: Sequence[Finding], *models: str) -> list[Finding]:
    return [one for one in findings if one.model in models]


def _effect_row(findings: Sequence[Finding], models: Sequence[str], verdict: Verdict | None = None) -> EffectRow:
    first = findings[0]
    effects = tuple(make_effect(one, models.index(one.model)) for one in findings)
    return EffectRow(first.title, first.item, effects, () if verdict is None else (format_verdict(verdict),))


APART = ("interval holds zero", "interval leaves out zero", "so does the simultaneous interval")
CHECKS_OUTSIDE_INTERVALS = "Checks of the method, outside of the simultaneous intervals"
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
    text = f"{model}: of {format_count(counts[1], 'difference')} from {baseline} in tests about people, "
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
    effects = (
        f"{format_decimal(row.effect_baseline)} on {row.baseline}, {format_decimal(row.effect_model)} on {row.model}"
    )
    interval = format_interval(row.interval_low, row.interval_high)
    return f"{row.test}{sure} ({row.title}): {effects}; difference {format_decimal(row.difference)} (95% {interval})"


def differences_part(found: Comparison, renderer: Renderer) -> ReportPart:
    """Everything about a comparison: verdicts, and signed differences on demand."""
    sections = [_signed(found, renderer)]
    if not found.verdicts:
        return lay_out_comparison(
            found, difference_statements(found), sections, MEANING_OF_DIFFERENCES, comparison_figure(found)
        )
    verdicts = section_of(
        "verdicts", "Verdicts", verdict_columns(found.verdicts), sort_by_urgency(found.verdicts), renderer
    )
    said = gate_statements(found.verdicts)
    meaning = gate_meaning(found.verdicts)
    return lay_out_comparison(found, said, [verdicts, *sections], meaning, comparison_figure(found))


def _signed(found: Comparison, renderer: Renderer) -> Section:
    renderer.environment.globals.update(decimals=format_decimal, span=format_interval, apart=apart, words=words_of)
    renderer.environment.globals.update(apart_names=APART)
    people, checks = parted(rows_of(found))
    return renderer.section(
        "differences",
        "Signed differences",
        groups=[("", people), (CHECKS_OUTSIDE_INTERVALS, checks)],
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
    models = format_count(len(found.models), "model")
    said = f"Simultaneous intervals: {family}, of social-bias tests on {models} compared"
    return f"{said}; {left} not counted." if left else f"{said}."


def difference_figures(found: Comparison) -> list[tuple[str, Drawing]]:
    """One a model: tests about people, then checks of the method."""
    made: list[tuple[str, Drawing]] = []
    people, checks = parted(rows_of(found))
    for place, model in enumerate(found.models):
        rows = [_forest_row(r) for r in (*people, *checks) if r.model == model and r.difference is not None]
        if rows:
            title = f"{model} less {found.baseline}"
            made.append((model, partial(_drawn, f"difference-{place + 1}", title, rows)))
    return made


def _forest_row(r: AssociationDifference) -> ForestRow:
    effects = (
        f"{format_decimal(r.effect_baseline or 0.0)} on {r.baseline}, "
        f"{format_decimal(r.effect_model or 0.0)} on {r.model}"
    )
    tip = (
        f"{r.test}: {effects}; difference {format_decimal(r.difference or 0.0)}, 95% "
        f"{format_interval(r.interval_low, r.interval_high)}; words: {words_of(r)}"
    )
    label = f"{r.test} (check)" if r.is_check else r.test
    return ForestRow(label, r.difference or 0.0, r.interval_low, r.interval_high, apart(r), tip)


def words_of(row: AssociationDifference) -> str:
    """How many words of X, Y, A and B are compared."""
    return ", ".join(map(str, (row.num_targ1, row.num_targ2, row.num_attr1, row.num_attr2)))


def _drawn(name: str, title: str, rows: Sequence[ForestRow], style: Style) -> Figure:
    return draw_forest(name, title, rows, style, axis="difference of calibrated differences, 95%", names=APART)


def difference_table(found: Comparison) -> PaperTable:
    """Tests down, models across: the difference from the first model and its interval."""
    people, checks = parted(rows_of(found))
    groups = [
        RowGroup("", _rows(people, found.models)),
        RowGroup(CHECKS_OUTSIDE_INTERVALS, _rows(checks, found.models)),
    ]
    caption = (
        f"Differences of calibrated differences from {found.baseline}, over the words that both models know, with "
        "paired 95% intervals over target and attribute words. * the interval leaves out zero; ** so does the "
        f"simultaneous one. {family_of(found)} An interval that holds zero does not show that two models are equal."
    )
    spans = tuple(ColumnSpan(clean_line(model), ("difference", "95%")) for model in found.models)
    return PaperTable(clean_line(caption), ("Test",), spans, tuple(group for group in groups if group.rows))


def _rows(rows: Sequence[AssociationDifference], models: Sequence[str]) -> tuple[TableRow, ...]:
    cells = {(row.test, row.model): row for row in rows}
    return tuple(
        TableRow((clean_line(test),), tuple(cell for model in models for cell in _cells(cells.get((test, model)))))
        for test in dict.fromkeys(row.test for row in rows)
    )


def _cells(row: AssociationDifference | None) -> tuple[Cell, Cell]:
    if row is None:
        return Cell(""), Cell("")
    if row.difference is None or row.interval_low is None or row.interval_high is None:
        return Cell(format_decimal(row.difference)), Cell("–")
    interval = format_interval(row.interval_low, row.interval_high).replace("-", "−")
    return Cell(format_decimal(row.difference), SIGNS[apart(row)]), Cell(interval)


_STYLES: dict[VerdictOutcome, str] = {
    "worse": "bold red",
    "missing": "bold red",
    "better": "green",
    "no_worse": "green",
}
_HEADS = ("old", "new", "growth", "interval", "80% power")
_CHECK_HEADS = ("old", "new", "difference", "95%, paired")


def print_association_differences(found: Comparison, console: Console) -> None:
    """Print the tests of each model by verdict, worse first, then checks of the method."""
    width = min(WIDTH, console.width)
    before: list[RenderableType] = []
    for model in found.models:
        own = [verdict for verdict in found.verdicts if verdict.model == model]
        before += TerminalTable(_HEADS, tuple(_judged(own)), spans=(model,), codes=True).render(width) if own else ()
    _, checks = parted(rows_of(found))
    for model in found.models if checks else ():
        lines = tuple(_check(row) for row in checks if row.model == model)
        before += TerminalTable(_CHECK_HEADS, (TerminalLine(SANITY_CHECKS), *lines), spans=(model,), codes=True).render(
            width
        )
    before += [Text(line, style="dim") for line in _notes(found, bool(checks))]
    print_differences(found, console, [] if found.verdicts else difference_statements(found), before)


def _judged(verdicts: Sequence[Verdict]) -> Iterator[TerminalLine]:
    deciding = [verdict for verdict in verdicts if verdict.decides or verdict.outcome == "missing"]
    for outcome in VERDICT_OUTCOMES:
        own = sort_by_urgency([v for v in deciding if v.outcome == outcome])
        if own:
            yield TerminalLine(f"{format_outcome(outcome).capitalize()} ({len(own)} of {len(deciding)})")
        yield from (_line(verdict) for verdict in own)
    others = sort_by_urgency([verdict for verdict in verdicts if verdict not in deciding])
    if others:
        yield TerminalLine("Other forms of these questions, which do not decide")
    yield from (_line(verdict) for verdict in others)


def _line(verdict: Verdict) -> TerminalLine:
    style = _STYLES.get(verdict.outcome, "") if verdict.decides else ""
    name = verdict.test if verdict.decides else f"{verdict.test}: {format_outcome(verdict.outcome)}"
    return TerminalLine(verdict.title, name, tuple((text, style) for text in _numbers(verdict)))


def _numbers(verdict: Verdict) -> Iterator[str]:
    yield effect_text(verdict.effect_baseline, verdict.D_baseline)
    yield effect_text(verdict.effect_model, verdict.D_model)
    yield format_decimal(verdict.growth)
    yield "–" if verdict.low is None else format_interval(verdict.low, verdict.high)
    yield format_decimal(verdict.detectable) if verdict.outcome == "inconclusive" else ""


def _check(row: AssociationDifference) -> TerminalLine:
    difference = format_decimal(row.difference) + SIGNS[apart(row)]
    interval = "–" if row.interval_low is None else format_interval(row.interval_low, row.interval_high)
    effects = [
        format_decimal(effect) if D is None else effect_text(calibrated, D)
        for effect, calibrated, D in (
            (row.effect_baseline, row.calibrated_baseline, row.D_baseline),
            (row.effect_model, row.calibrated_model, row.D_model),
        )
    ]
    texts = (*effects, difference, interval)
    return TerminalLine(row.title, row.test, tuple((text, "") for text in texts))


def _growth(verdicts: Sequence[Verdict]) -> str:
    if all(verdict.direction for verdict in verdicts):
        return "change towards the stereotype, from the old model to the new one"
    return "new minus old, towards the stereotype where the test has an expected direction"


def _scales(found: Comparison) -> Iterator[str]:
    """The spread of cosines on both models, once for each pair of values."""
    told = dict.fromkeys((row.model, row.cosine_sd_baseline, row.cosine_sd_model) for row in rows_of(found))
    for model, old, new in told:
        if old is not None and new is not None:
            yield make_printable(f"cosine SD of frequent words: {old:.3f} on {found.baseline}, {new:.3f} on {model}")


def _left_out(verdicts: Sequence[Verdict]) -> str:
    """Explain why fewer intervals hold together than there are questions; empty if all do."""
    without = [one for one in verdicts if one.family is None and (one.decides or one.outcome == "missing")]
    identical = sum(one.identical for one in without)
    counts = {"with identical cosines on both models": identical, "without an interval": len(without) - identical}
    left = " and ".join(f"{number} {what}" for what, number in counts.items() if number)
    return f" ({left} not counted)" if left else ""


def _notes(found: Comparison, checks: bool) -> Iterator[str]:
    """What the numbers are, and why some are not there."""
    family = next((verdict for verdict in found.verdicts if verdict.family), None)
    if family is not None:
        confidence = f"{1.0 - family.alpha:.4g}"
        together = f"all {family.family} hold together" if family.family != 1 else "it holds"
        yield "old, new: calibrated difference, which is the cosine difference D divided by the cosine SD"
        yield f"growth: {_growth(found.verdicts)}"
        yield f"interval: {together} with {confidence} confidence{_left_out(found.verdicts)}; margin {family.margin:g}"
        yield "80% power: true growth that is called worse with 80% power; –: none is"
    yield from _scales(found)
    if checks:
        yield "* the interval of the difference leaves out zero"
    reasons: dict[str, dict[str, None]] = {}
    told = [(row.reason, row.test) for row in rows_of(found)] + [(v.reason, v.test) for v in found.verdicts]
    for reason, test in told:
        if reason:
            reasons.setdefault(reason, {})[test] = None
    yield from (make_printable(f"{', '.join(tests)}: {reason}") for reason, tests in reasons.items())
