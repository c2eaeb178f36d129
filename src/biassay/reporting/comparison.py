"""Show differences and verdicts on a page, in a terminal, in Markdown and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from statistics import median
from xml.etree import ElementTree as Xml

from markupsafe import Markup
from rich.console import Console, Group, RenderableType
from rich.text import Text

from biassay.io import make_printable
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
from biassay.reporting.findings import SANITY_CHECKS
from biassay.reporting.formats import (
    MANY_MODELS,
    clean_line,
    format_count,
    format_decimal,
    format_interval,
    format_p,
    unit_name,
)
from biassay.reporting.html_figures import Effect, EffectRow, EffectRows, draw_effects
from biassay.reporting.markdown import escape, to_markdown
from biassay.reporting.methods import MethodsSentence
from biassay.reporting.terminal import WIDTH, TerminalLine, TerminalTable, said, section_of, side_by_side
from biassay.results.comparison import CONFIDENCE, Comparison
from biassay.results.differences import (
    VERDICT_OUTCOMES,
    EffectDifference,
    PowerGap,
    Verdict,
    VerdictOutcome,
    format_outcome,
    summarize_verdicts,
)
from biassay.results.tables import Column

__all__ = [
    "DIFFERENCES",
    "MEANING_OF_COMPARISONS",
    "differences_part",
    "effect_text",
    "format_verdict",
    "format_verdict_outcome",
    "gate_junit",
    "gate_markdown",
    "gate_meaning",
    "gate_power",
    "gate_statements",
    "lay_out_comparison",
    "methods_of_differences",
    "paper_differences",
    "print_differences",
    "print_paired",
    "sort_by_urgency",
    "verdict_columns",
]


MEANING_OF_COMPARISONS = (
    "What is compared is what the runs found of the same groups. Agreement with people is no virtue: people's ratings "
    "are stereotypes too. A difference that is not shown does not show that two models are equal."
)


def _headline(comparison: Comparison) -> str:
    return f"{', '.join(comparison.models)} compared with {comparison.baseline}"


def _tone(comparison: Comparison) -> str:
    """Of the verdict."""
    outcomes = {one.outcome for one in comparison.verdicts if one.decides or one.outcome == "missing"} - {
        "not_measured"
    }
    if outcomes & {"worse", "missing"}:
        return "bad"
    return "" if not comparison.verdicts else "good" if outcomes <= {"no_worse", "better"} else "unsure"


def lay_out_comparison(
    comparison: Comparison,
    statements: Sequence[Statement],
    sections: Sequence[Section],
    meaning: str = MEANING_OF_COMPARISONS,
    figure: Markup | None = None,
) -> ReportPart:
    """The part of a page."""
    return ReportPart(
        anchor="comparison",
        title=_headline(comparison),
        headline=comparison.verdict,
        tone=_tone(comparison),
        summary=statements,
        meaning=meaning,
        sections=sections,
        figure=figure,
        notes=[*(f"What is compared is not alike: {note}." for note in comparison.notes), *comparison.remarks],
    )


def print_differences(
    comparison: Comparison,
    console: Console,
    statements: Sequence[Statement],
    before: Sequence[RenderableType] = (),
    after: Sequence[RenderableType] = (),
) -> None:
    """What is compared, then the statements; what a study has to show beside them stands before and after."""
    parts: list[RenderableType] = [Text(make_printable(_headline(comparison)), style="bold")]
    told = [*(f"not alike: {note}" for note in comparison.notes), *comparison.remarks]
    parts += [Text(make_printable(line), style="yellow") for line in told]
    console.print(Group(*parts, *before, *said(statements), *after))


_MAX_NAMES = 8
_NUMBER = re.compile(r"[\d,]+ ")


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict in words, with its numbers."""
    if verdict.growth is None:
        return f"{format_verdict_outcome(verdict)}: {verdict.reason}"
    towards = "towards the stereotype" if verdict.direction or verdict.over else "in the direction of the test's words"
    said = (
        f"{format_verdict_outcome(verdict)}: growth {towards} {format_decimal(verdict.growth)} "
        f"({_interval_text(verdict)}, margin "
    )
    said += (
        f"{verdict.margin:.3g}); {unit_name(verdict.unit)} {effect_text(verdict.effect_baseline, verdict.D_baseline)} "
    )
    said += f"on {verdict.baseline}, {effect_text(verdict.effect_model, verdict.D_model)} on {verdict.model}"
    if verdict.cosine_sd_baseline is not None and verdict.cosine_sd_model is not None:
        said += f"; cosine SD {verdict.cosine_sd_baseline:.3f} and {verdict.cosine_sd_model:.3f}"
    if verdict.reason is not None:
        return f"{said}; {verdict.reason}"
    return said + (f"; {_seen(verdict)}" if verdict.outcome == "inconclusive" and _seen(verdict) else "")


def effect_text(effect: float | None, D: float | None) -> str:
    """Return a calibrated difference with the cosine difference that it comes from."""
    return format_decimal(effect) if D is None or effect is None else f"{format_decimal(effect)} (D {D:.3f})"


def format_verdict_outcome(verdict: Verdict) -> str:
    """Return the outcome, and that it does not decide where another form of the question does."""
    name = format_outcome(verdict.outcome)
    return name if verdict.decides else f"{name}, does not decide"


def gate_statements(verdicts: Sequence[Verdict]) -> list[Statement]:
    """Make a statement for each model, with all tests that are not no worse, most urgent first; then the power."""
    made = []
    for model in dict.fromkeys(verdict.model for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.model == model]
        told = [v for outcome in VERDICT_OUTCOMES for v in own if v.outcome == outcome != "no_worse"]
        more = [f"and {len(told) - _MAX_NAMES} more"] if len(told) > _MAX_NAMES else []
        points = [f"{v.test} ({v.title}): {format_verdict(v)}" for v in told[:_MAX_NAMES]]
        made.append(Statement(summarize_verdicts(own), (*points, *more), model))
    return [*made, *(Statement(text) for text in [gate_power(verdicts)] if text)]


def sort_by_urgency(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Sort verdicts: worse first, and within an outcome what grew most; forms that do not decide come last."""
    return sorted(verdicts, key=lambda v: (VERDICT_OUTCOMES.index(v.outcome), not v.decides, -(v.growth or 0.0)))


def verdict_columns(verdicts: Sequence[Verdict]) -> list[Column]:
    """Return the columns of the numbers that verdicts rest on."""
    several = len({verdict.model for verdict in verdicts}) > 1
    unit, old = unit_name(verdicts[0].unit), verdicts[0].baseline
    over = [Column("over", "over", "What else of the same kind the interval generalises to.")] * _others(verdicts)
    power = Column("detectable", "80% power", "True growth that is called worse with 80% power.", "number")
    sds = [
        Column("D_baseline", "old D", "Cosine difference on the old model.", "number"),
        Column("D_model", "new D", "Cosine difference on the new model.", "number"),
        Column("cosine_sd_baseline", "old SD", "SD of cosines between frequent words, old model.", "number"),
        Column("cosine_sd_model", "new SD", "SD of cosines between frequent words, new model.", "number"),
    ]
    calibrated = any(verdict.cosine_sd_baseline is not None for verdict in verdicts)
    return [
        Column("title", "test", "What the test asks.", get=lambda v: f"{v.title} ({v.test})"),
        *[Column("model", "model", "The new model.")] * several,
        Column("outcome", "verdict", "Worse: moved towards the stereotype.", get=format_verdict_outcome),
        Column("effect_baseline", "old", f"The {unit} on {old}.", "number"),
        Column("effect_model", "new", f"The {unit} on the new model.", "number"),
        Column("growth", "growth", "Change towards the stereotype.", "number"),
        Column(
            "low", "interval", f"Paired interval of the growth; alpha {verdicts[0].alpha:g} overall.", "interval", _ends
        ),
        *(over or [power]),
        *(sds if calibrated else []),
        Column("reason", "note", "Why a number is missing, or what makes the verdict inconclusive."),
    ]


def _others(verdicts: Sequence[Verdict]) -> bool:
    """Do they generalise to something else than words?"""
    return any(verdict.over for verdict in verdicts)


def _ends(verdict: Verdict) -> tuple[float | None, float | None]:
    return verdict.low, verdict.high


def gate_meaning(verdicts: Sequence[Verdict]) -> str:
    """Explain how verdicts are made."""
    first = verdicts[0]
    kinds = " or ".join(dict.fromkeys(_NUMBER.sub("", verdict.over) for verdict in verdicts if verdict.over))
    margin = f"{first.margin:.3g}"
    scale = (
        "The calibrated difference is the cosine difference D divided by the SD of cosines between frequent words. "
        if any(verdict.cosine_sd_baseline is not None for verdict in verdicts)
        else ""
    )
    undirected = any(verdict.direction is None and not verdict.over for verdict in verdicts)
    without = (
        " For a test without an expected direction, a growth away from 0 is worse, in either direction."
        if undirected
        else ""
    )
    return (
        f"{scale}Growth is the change from {first.baseline} to the new model, positive towards the stereotype. Worse: "
        f"the interval of the growth lies above the margin, {margin}, also where an association against the stereotype "
        f"fell to 0; or the association turned round and is stronger than before. Better: the interval lies below "
        f"-{margin}. No worse: the interval ends at {margin} or below. Both also need that a reversal past the old "
        f"size is excluded. Inconclusive: none of these; do not read it as a pass.{without} All intervals hold "
        f"together with {1.0 - first.alpha:.4g} confidence, for other "
        f"{kinds or 'words'} of the same kind."
    )


def gate_power(verdicts: Sequence[Verdict]) -> str:
    """Say what the questions can catch; empty if nothing is known of it."""
    judged = [verdict for verdict in verdicts if verdict.family is not None and not verdict.over]
    powers = [verdict.power or 0.0 for verdict in judged]
    if not powers:
        return ""
    over = "" if len(powers) == 1 else f" (median of {format_count(len(powers), 'question')})"
    growth = f"a true growth of {2.0 * judged[0].margin:.3g} would be called worse {median(powers):.0%} of the time"
    return f"Power: {growth}{over}."


def gate_markdown(verdicts: Sequence[Verdict], gaps: Sequence[PowerGap] = ()) -> str:
    """Write the sentence, and a table with one row per test."""
    rows = tuple(
        TableRow(
            (clean_line(v.test), clean_line(v.title), clean_line(v.model)), tuple(map(Cell, (*_numbers(v), _short(v))))
        )
        for v in sort_by_urgency(verdicts)
    )
    unit = unit_name(verdicts[0].unit)
    spans = tuple(ColumnSpan(column) for column in ("old", "new", "growth", "interval", "verdict"))
    table = PaperTable(
        f"{unit[0].upper()}{unit[1:]}. {gate_meaning(verdicts)}",
        ("test", "about", "model"),
        spans,
        (RowGroup("", rows),),
    )
    power = f"{escape(gate_power(verdicts))}\n\n" if gate_power(verdicts) else ""
    low = "".join(f"**{escape(clean_line(f'{gap}.'))}**\n\n" for gap in gaps)
    return f"**{escape(summarize_verdicts(verdicts))}**\n\n{low}{power}{to_markdown(table)}"


def gate_junit(verdicts: Sequence[Verdict], failed: Collection[Verdict], gaps: Sequence[PowerGap] = ()) -> str:
    """Write one test case per test and per power gap; unmeasured tests are skipped."""
    root = Xml.Element("testsuites", name="biassay")
    for model in dict.fromkeys(verdict.model for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.model == model]
        low = [gap for gap in gaps if gap.model == model]
        failures = sum(v in failed for v in own) + len(low)
        counts = {"failures": failures, "skipped": sum(v.outcome == "not_measured" for v in own)}
        name = clean_line(f"{model} compared with {own[0].baseline}")
        numbers = {key: str(number) for key, number in {"tests": len(own) + len(low), "errors": 0, **counts}.items()}
        suite = Xml.SubElement(root, "testsuite", {"name": name, **numbers})
        for verdict in sort_by_urgency(own):
            _case(suite, verdict, verdict in failed)
        for gap in low:
            case = Xml.SubElement(
                suite,
                "testcase",
                classname=f"biassay.{clean_line(model)}",
                name=clean_line(f"power: {gap.topic or 'all'}"),
            )
            Xml.SubElement(case, "failure", type="power", message=clean_line(str(gap))).text = clean_line(str(gap))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _case(suite: Xml.Element, verdict: Verdict, fails: bool) -> None:
    case = Xml.SubElement(
        suite, "testcase", classname=f"biassay.{clean_line(verdict.model)}", name=clean_line(verdict.test)
    )
    said = clean_line(format_verdict(verdict))
    if fails:
        Xml.SubElement(case, "failure", type=verdict.outcome, message=said).text = said
    elif verdict.outcome == "not_measured":
        Xml.SubElement(case, "skipped", message=said)
    else:
        Xml.SubElement(case, "system-out").text = said


def _numbers(verdict: Verdict) -> tuple[str, str, str, str]:
    old = effect_text(verdict.effect_baseline, verdict.D_baseline)
    return (
        old,
        effect_text(verdict.effect_model, verdict.D_model),
        format_decimal(verdict.growth),
        _interval_text(verdict),
    )


def _interval_text(verdict: Verdict) -> str:
    return "–" if verdict.low is None else format_interval(verdict.low, verdict.high)


def _short(verdict: Verdict) -> str:
    name = format_verdict_outcome(verdict)
    if verdict.reason is not None:
        return f"{name} ({verdict.reason})"
    told = verdict.outcome == "inconclusive" and _seen(verdict)
    return f"{name} ({_seen(verdict)})" if told else name


def _seen(verdict: Verdict) -> str:
    if verdict.over:
        return ""
    if verdict.detectable is None:
        return "no growth is called worse with 80% power"
    return f"80% power for a growth of {format_decimal(verdict.detectable)}"


DIFFERENCES = "differences"
_SURE = ("interval holds 0", "leaves out 0", "also after correction")
_STYLES: dict[VerdictOutcome, str] = {
    "worse": "bold red",
    "missing": "bold red",
    "better": "green",
    "no_worse": "green",
}
_STARS = ("", "*", "**")
_MAX_DIFFERENCES = 8
_MEANING = (
    "A difference is the effect on the new model less that on the first, over what both were asked. A difference that "
    "is not shown does not show that two models are equal."
)


def _rows(found: Comparison) -> Sequence[EffectDifference]:
    return found.tables[DIFFERENCES]


def _sure(row: EffectDifference) -> int:
    if row.p_value is None or row.p_value > 1.0 - CONFIDENCE:
        return 0
    return 2 if row.p_value_holm is not None and row.p_value_holm <= 1.0 - CONFIDENCE else 1


def _columns(found: Comparison) -> list[Column]:
    unit = unit_name(_rows(found)[0].unit)
    several = len(found.models) > 1
    return [
        Column("title", "about", "What is asked."),
        *[Column("model", "model", "The model that is compared.")] * several,
        Column("effect_baseline", "first", f"The {unit} on {found.baseline}.", "number"),
        Column("effect_model", "new", f"The {unit} on the model.", "number"),
        Column("difference", "difference", "The second less the first.", "number"),
        Column("interval_low", "95%", "Paired.", "interval", lambda row: (row.interval_low, row.interval_high)),
        Column("p_value", "p", "That there is no difference; two-sided.", "p"),
        Column("p_value_holm", "p, Holm", "After Holm's correction over the items about people of a model.", "p"),
        Column("over", "over", "Of what other ones of the same kind the interval holds."),
        Column("reason", "note", "Why a number is missing."),
    ]


def difference_statements(found: Comparison) -> list[Statement]:
    """What differs, in plain words."""
    return [_about(found, model) for model in found.models]


def _about(found: Comparison, model: str) -> Statement:
    rows = [row for row in _rows(found) if row.model == model]
    tested = [row for row in rows if row.p_value is not None]
    apart = sorted((row for row in tested if _sure(row)), key=lambda row: -abs(row.difference or 0.0))
    text = (
        f"{model}: of {format_count(len(tested), 'difference')} from {found.baseline}, {len(apart)} "
        f"with p at most 0.05, "
    )
    text += f"{sum(_sure(row) == 2 for row in apart)} after correction."
    lost = len(rows) - len(tested)
    text += f" {lost} without a p-value." if lost else ""
    points = [f"{row.title}: {_numbers_text(row)}" for row in apart[:_MAX_DIFFERENCES]]
    more = [f"and {len(apart) - _MAX_DIFFERENCES} more"] if len(apart) > _MAX_DIFFERENCES else []
    return Statement(text, (*points, *more), model)


def _numbers_text(row: EffectDifference) -> str:
    effects = (
        f"{format_decimal(row.effect_baseline)} on {row.baseline}, {format_decimal(row.effect_model)} on {row.model}"
    )
    interval = format_interval(row.interval_low, row.interval_high)
    return f"{effects}; difference {format_decimal(row.difference)} (95% {interval}), p = {format_p(row.p_value)}"


def differences_part(found: Comparison, renderer: Renderer) -> ReportPart:
    """Verdicts, and signed differences with a figure."""
    signed = section_of(DIFFERENCES, "Signed differences", _columns(found), _rows(found), renderer)
    figure = _figure(found)
    if not found.verdicts:
        return lay_out_comparison(found, difference_statements(found), [signed], _MEANING, figure)
    verdicts = section_of(
        "verdicts", "Verdicts", verdict_columns(found.verdicts), sort_by_urgency(found.verdicts), renderer
    )
    said = [*gate_statements(found.verdicts), *difference_statements(found)]
    return lay_out_comparison(found, said, [verdicts, signed], f"{gate_meaning(found.verdicts)} {_MEANING}", figure)


def _figure(found: Comparison) -> Markup | None:
    """Differences of all models from the first, people first."""
    models, rows = found.models, [row for row in _rows(found) if row.difference is not None]
    if not rows or len(models) > MANY_MODELS:
        return None
    groups = []
    for title, about in (("About people", "people"), (SANITY_CHECKS, "method")):
        own = [row for row in rows if row.about == about]
        items: dict[str, list[EffectDifference]] = {}
        for row in own:
            items.setdefault(row.item, []).append(row)
        drawn = tuple(
            EffectRow(same[0].title, "", tuple(_effect(row, models) for row in same)) for same in items.values()
        )
        if drawn:
            groups.append(EffectRows(title, drawn, about == "method", format_count(len(own), "difference")))
    unit = unit_name(rows[0].unit)
    reach = max(
        abs(end) for row in rows for end in (row.difference, row.interval_low, row.interval_high) if end is not None
    )
    return draw_effects(
        groups,
        models,
        title=f"Differences of the {unit} from {found.baseline}, with 95% intervals.",
        caption="Right of zero: larger on the new model.",
        sure=_SURE,
        reach=reach or 1.0,
    )


def _effect(row: EffectDifference, models: Sequence[str]) -> Effect:
    sure = _sure(row)
    number = f"{format_decimal(row.difference)} {_STARS[sure]}".rstrip()
    text = f"{row.model}: {_numbers_text(row)}" + (f"; {row.reason}" if row.reason else "")
    place = models.index(row.model)
    return Effect(place, row.difference or 0.0, row.interval_low, row.interval_high, sure, text, number)


def print_paired(found: Comparison, console: Console) -> None:
    """A line an item, by verdict; then what differs."""
    width = min(WIDTH, console.width)
    before: list[RenderableType] = []
    for model in found.models:
        rows = {row.item: row for row in _rows(found) if row.model == model}
        lines = tuple(_lines(found, model, rows))
        before += TerminalTable(("old", "new", "difference", "95%", "p"), lines, spans=(model,)).render(width)
    before += [Text(f"{unit_name(_rows(found)[0].unit)}; * p at most 0.05; ** also after correction", style="dim")]
    print_differences(found, console, difference_statements(found), before)


def _lines(found: Comparison, model: str, rows: dict[str, EffectDifference]) -> Iterator[TerminalLine]:
    judged = [verdict for verdict in found.verdicts if verdict.model == model]
    for outcome in VERDICT_OUTCOMES:
        own = [verdict for verdict in sort_by_urgency(judged) if verdict.outcome == outcome]
        if own:
            yield TerminalLine(f"{format_outcome(outcome).capitalize()} ({len(own)} of {len(judged)})")
        for verdict in own:
            if verdict.test in rows:
                yield _line(rows[verdict.test], _STYLES.get(outcome, ""))
    others = [row for row in rows.values() if row.item not in {verdict.test for verdict in judged}]
    if others:
        yield TerminalLine(SANITY_CHECKS if judged else "Differences")
        yield from (_line(row, "") for row in others)


def _line(row: EffectDifference, style: str) -> TerminalLine:
    interval = "no interval" if row.interval_low is None else format_interval(row.interval_low, row.interval_high)
    p = "" if row.p_value is None else format_p(row.p_value) + _STARS[_sure(row)]
    texts = (
        format_decimal(row.effect_baseline),
        format_decimal(row.effect_model),
        format_decimal(row.difference),
        interval,
        p,
    )
    return TerminalLine(row.title, "", tuple((text, style) for text in texts))


def paper_differences(found: Comparison) -> PaperTable:
    """Items down, models across: the difference from the first model, with its interval."""
    cells = {
        (row.title, row.model): "–"
        if row.difference is None
        else (
            f"{format_decimal(row.difference)} "
            f"[{format_interval(row.interval_low, row.interval_high)}]{_STARS[_sure(row)]}"
        )
        for row in _rows(found)
    }
    unit = unit_name(_rows(found)[0].unit)
    caption = f"Differences of the {unit} from {found.baseline}, with 95% intervals; * p at most 0.05, ** also after "
    return side_by_side(f"{caption}Holm's correction. {_MEANING}", "Item", cells)


def methods_of_differences(found: Comparison, how: str, works: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """How models were compared; ``how`` says what is paired."""
    models = f"{', '.join(found.models)} {'was' if len(found.models) == 1 else 'were'}"
    sure = "with 95% intervals and two-sided p-values of the differences"
    yield MethodsSentence(f"{models} compared with {found.baseline} {how}, {sure}", works)
    yield MethodsSentence(
        "p-values of differences were corrected by Holm's method over the items of a model", ("holm1979",)
    )
