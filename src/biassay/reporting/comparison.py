"""Show differences and verdicts on a page, in a terminal, in Markdown and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any
from xml.etree import ElementTree as Xml

from markupsafe import Markup

from biassay.grouping import group_pairs
from biassay.reporting.document import (
    Report,
    RowGroup,
    Section,
    Statement,
    Table,
    Text,
    drop_empty_columns,
    make_table,
    side_by_side,
)
from biassay.reporting.formats import (
    MANY_MODELS,
    clean_line,
    format_count,
    format_decimal,
    format_examples,
    format_interval,
    format_p_relation,
    format_percent,
    unit_name,
)
from biassay.reporting.html import Effect, EffectRow, EffectRows, draw_effects
from biassay.reporting.markdown import escape, to_markdown
from biassay.reporting.methods import MethodsSentence
from biassay.results.comparison import (
    CONFIDENCE,
    DIFFERENCES,
    VERDICT_OUTCOMES,
    Comparison,
    EffectDifference,
    PowerGap,
    Verdict,
    format_outcome,
    summarize_verdicts,
)
from biassay.results.tables import Column, make_columns

MEANING_OF_COMPARISONS = (
    "The comparison covers the groups that all runs have. Agreement with human ratings is not a merit: the ratings are "
    "stereotypes too. A difference that is not significant does not show that two models are equal."
)


def _headline(comparison: Comparison) -> str:
    return f"{', '.join(comparison.models)} compared with {comparison.baseline}"


def _tone(comparison: Comparison) -> str:
    """Return the tone of the verdicts."""
    outcomes = {verdict.outcome for verdict in comparison.verdicts if _is_counted(verdict)} - {"not_measured"}
    if outcomes & {"worse", "missing"}:
        return "bad"
    return "" if not comparison.verdicts else "good" if outcomes <= {"no_worse", "better"} else "unsure"


def make_comparison_report(
    comparison: Comparison,
    statements: Sequence[Statement],
    sections: Sequence[Section],
    meaning: str = MEANING_OF_COMPARISONS,
    *,
    tables: Sequence[Table] = (),
    figure: Markup | None = None,
) -> Report:
    """Make the report of a comparison; its title is the verdict, if there is one.

    Parameters
    ----------
    comparison : Comparison
    statements : sequence of Statement
        Differences in words.
    sections : sequence of Section
    meaning : str
        How to read the numbers.
    tables : sequence of Table
        Tables for the terminal.
    figure : Markup, optional
    """
    subject = _headline(comparison)
    return Report(
        title=comparison.verdict or subject,
        subject=subject,
        headline="",
        tone=_tone(comparison) or "unsure",
        statements=statements,
        meaning=meaning,
        sections=sections,
        figure=figure,
        tables=tables,
        notes=[*(f"The runs differ: {note}." for note in comparison.notes), *comparison.remarks],
    )


def make_verdict_report(comparison: Comparison, sections: Sequence[Section]) -> Report:
    """Make the report of a comparison with verdicts: growth per question with its interval and the margin.

    Parameters
    ----------
    comparison : Comparison
    sections : sequence of Section
        Sections of the study, below the verdicts.
    """
    verdicts = comparison.verdicts
    table = make_table("", _list_columns(Verdict, verdicts, *_VERDICT_COLUMNS), sort_by_urgency(verdicts))
    return make_comparison_report(
        comparison,
        gate_statements(verdicts),
        [Section("verdicts", "Verdicts", (table,)), *sections],
        gate_meaning(verdicts),
        tables=[_make_verdict_table(comparison, model) for model in comparison.models],
        figure=_draw_growth(comparison),
    )


_TERMINAL_COLUMNS = ("title", "effect_baseline", "effect_model", "growth", "low", "detectable")


def _make_verdict_table(comparison: Comparison, model: str) -> Table:
    """Make the table of one model for the terminal: questions by verdict, worse first."""
    own = [verdict for verdict in comparison.verdicts if verdict.model == model]
    columns = make_columns(Verdict, *_TERMINAL_COLUMNS)
    table = make_table("", columns, [])
    count = sum(map(_is_counted, own))
    groups = []
    for outcome in VERDICT_OUTCOMES:
        if same := sort_by_urgency(_list_deciding(own, outcome)):
            title = f"{format_outcome(outcome).capitalize()} ({len(same)} of {count})"
            groups.append(RowGroup(title, make_table("", columns, same).rows))
    label = model if len(comparison.models) > 1 else ""
    return replace(table, stub=(label,), groups=tuple(groups), signs=tuple(_list_verdict_notes(comparison)))


def _is_counted(verdict: Verdict) -> bool:
    """Return whether a verdict counts for the gate."""
    return verdict.decides or verdict.outcome == "missing"


def _list_deciding(verdicts: Sequence[Verdict], outcome: str) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.outcome == outcome and _is_counted(verdict)]


_MAX_REASONS = 3


def _list_verdict_notes(comparison: Comparison) -> Iterator[str]:
    """List reasons for missing numbers, those of skipped tests first, then explain the columns."""
    verdicts = comparison.verdicts
    rows = [row for table in comparison.tables.values() for row in table if hasattr(row, "test")]
    skipped = [verdict for verdict in verdicts if verdict.outcome in ("missing", "not_measured")]
    reasons: dict[str, dict[str, None]] = {}
    for row in (*skipped, *rows, *verdicts):
        if row.reason:
            reasons.setdefault(row.reason, {})[row.test] = None
    lines = [f"{format_examples(tuple(tests), 8)}: {reason}" for reason, tests in reasons.items()]
    yield from lines[:_MAX_REASONS]
    if len(lines) > _MAX_REASONS:
        yield f"{format_count(len(lines) - _MAX_REASONS, 'more note')} in the report."
    sds: dict[str, float] = {}  # of the first test, because sentences have other SDs than words
    for verdict in verdicts:
        if verdict.cosine_sd_baseline is not None and verdict.cosine_sd_model is not None:
            sds.setdefault(comparison.baseline, verdict.cosine_sd_baseline)
            sds.setdefault(verdict.model, verdict.cosine_sd_model)
    if sds:
        numbers = ", ".join(f"{sd:.3f} on {model}" for model, sd in sds.items())
        yield f"old, new: cosine difference D, divided by the SD of cosines between frequent words ({numbers})."
    family = next((verdict for verdict in verdicts if verdict.family), None)
    if family is not None:
        level = format_percent(1.0 - family.alpha)
        over = f", simultaneous over {family.family} questions" if family.family != 1 else ""
        towards = ", positive towards the stereotype" if any(verdict.direction for verdict in verdicts) else ""
        yield (
            f"growth: new minus old{towards}; "
            f"{level} CI{over}{_describe_uncounted(verdicts)}; margin {family.margin:.3g}. "
            "80% power: true growth that is called worse with 80% power; – if none."
        )


def _describe_uncounted(verdicts: Sequence[Verdict]) -> str:
    """Explain why fewer intervals are simultaneous than there are questions; empty if all are."""
    without = [verdict for verdict in verdicts if verdict.family is None and _is_counted(verdict)]
    identical = sum(verdict.identical for verdict in without)
    counts = {"identical on both models": identical, "without an interval": len(without) - identical}
    left = " and ".join(f"{number} {what}" for what, number in counts.items() if number)
    return f" ({left} not counted)" if left else ""


def _draw_growth(comparison: Comparison) -> Markup | None:
    """Draw the growth of every question with its interval, by verdict, and the margin as a band."""
    models, verdicts = comparison.models, [verdict for verdict in comparison.verdicts if verdict.growth is not None]
    if not verdicts or len(models) > MANY_MODELS:
        return None
    parts = [(format_outcome(outcome).capitalize(), _list_deciding(verdicts, outcome)) for outcome in VERDICT_OUTCOMES]
    groups = [_make_growth_rows(title, same, models) for title, same in parts if same]
    variants = [verdict for verdict in verdicts if not _is_counted(verdict)]
    if variants:
        groups.append(_make_growth_rows("Variants, which do not decide", variants, models, folded=True))
    ends = [abs(end) for verdict in verdicts for end in (verdict.low, verdict.high, verdict.growth) if end is not None]
    margins = {verdict.margin for verdict in verdicts}
    confidence = format_percent(1.0 - verdicts[0].alpha)
    return draw_effects(
        groups,
        models,
        title=f"Growth of the {unit_name(verdicts[0].unit)} with {confidence} simultaneous intervals.",
        caption=f"Growth is the change from {comparison.baseline}. "
        f"The band is the margin, {' or '.join(f'{margin:.3g}' for margin in sorted(margins))}.",
        sure=(),
        reach=max(ends),
        ends=("away from the stereotype", "towards the stereotype"),
        band=max(margins),
    )


def _make_growth_rows(
    title: str, verdicts: Sequence[Verdict], models: Sequence[str], *, folded: bool = False
) -> EffectRows:
    items = group_pairs((one.test, one) for one in sort_by_urgency(verdicts))
    rows = tuple(
        EffectRow(same[0].title, test, tuple(_make_growth(verdict, models) for verdict in same))
        for test, same in items.items()
    )
    return EffectRows(title, rows, folded, f"{len(rows):,}")


def _make_growth(verdict: Verdict, models: Sequence[str]) -> Effect:
    sure = 2 if verdict.outcome in ("worse", "better") else 0
    number, text = format_decimal(verdict.growth), f"{verdict.model}: {format_verdict(verdict)}"
    return Effect(models.index(verdict.model), verdict.growth or 0.0, verdict.low, verdict.high, sure, text, number)


_MAX_NAMES = 8
_NUMBER = re.compile(r"[\d,]+ ")


def format_verdict(verdict: Verdict) -> str:
    """Return a verdict in words, with its numbers."""
    if verdict.growth is None:
        return f"{verdict.described_outcome}: {verdict.reason}"
    towards = "towards the stereotype" if verdict.direction or verdict.over else "in the direction of the test's words"
    level = f", {format_percent(1.0 - verdict.alpha)} CI {_interval_text(verdict)}" if verdict.low is not None else ""
    old = effect_text(verdict.effect_baseline, verdict.cosine_difference_baseline)
    new = effect_text(verdict.effect_model, verdict.cosine_difference_model)
    text = (
        f"{verdict.described_outcome}, growth {format_decimal(verdict.growth)}{level} "
        f"(positive is {towards}; margin {verdict.margin:.3g}); {unit_name(verdict.unit)} {old} "
        f"on {verdict.baseline}, {new} on {verdict.model}"
    )
    if verdict.cosine_sd_baseline is not None and verdict.cosine_sd_model is not None:
        text += f"; cosine SD {verdict.cosine_sd_baseline:.3f} and {verdict.cosine_sd_model:.3f}"
    return "; ".join(filter(None, (text, _explain(verdict))))


def effect_text(effect: float | None, D: float | None) -> str:
    """Return a calibrated difference with the cosine difference that it comes from."""
    return format_decimal(effect) if D is None or effect is None else f"{format_decimal(effect)} (D {D:.3f})"


def gate_statements(verdicts: Sequence[Verdict]) -> list[Statement]:
    """Make a statement for each model, with all tests that are not no worse, most urgent first; then the power."""
    made = []
    for model in dict.fromkeys(verdict.model for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.model == model]
        urgent = [v for outcome in VERDICT_OUTCOMES for v in own if v.outcome == outcome != "no_worse"]
        more = [f"and {len(urgent) - _MAX_NAMES} more"] if len(urgent) > _MAX_NAMES else []
        names = ["" if v.name == v.title else f" ({v.test})" for v in urgent[:_MAX_NAMES]]
        points = [f"{v.title}: {format_verdict(v)}{name}" for v, name in zip(urgent, names, strict=False)]
        text = summarize_verdicts(own)
        about = model if text.startswith(model) else ""
        made.append(Statement(text, (*points, *more), about, (*names, *("" for _ in more))))
    return [*made, *(Statement(text) for text in [gate_power(verdicts)] if text)]


def sort_by_urgency(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Sort verdicts: worse first, and within an outcome what grew most; forms that do not decide come last."""
    return sorted(verdicts, key=lambda v: (VERDICT_OUTCOMES.index(v.outcome), not v.decides, -(v.growth or 0.0)))


_VERDICT_COLUMNS = (
    *("title", "model", "outcome", "effect_baseline", "effect_model", "growth", "low", "over", "detectable"),
    *("cosine_difference_baseline", "cosine_difference_model", "cosine_sd_baseline", "cosine_sd_model", "reason"),
)


def _list_columns(record: type[Any], rows: Sequence[Any], *names: str) -> list[Column]:
    """Return the columns to show. Leave out empty ones, and `model` if there is only one model."""
    several = len({row.model for row in rows}) > 1
    columns = drop_empty_columns(make_columns(record, *names), rows)
    return [column for column in columns if several or column.name != "model"]


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
        f"fell to 0; or the association reversed and is stronger than before. Better: the interval lies below "
        f"-{margin}. No worse: the interval ends at {margin} or below. Both also require that a reversal past the old "
        f"size is excluded. Inconclusive: none of these; do not read it as a pass.{without} The intervals are "
        f"simultaneous: with {format_percent(1.0 - first.alpha)} confidence all of them are correct, for other "
        f"{kinds or 'words'} of the same kind."
    )


def gate_power(verdicts: Sequence[Verdict]) -> str:
    """Describe the power of the verdicts; empty if it is not known."""
    judged = [verdict for verdict in verdicts if verdict.family is not None and not verdict.over]
    powers = [verdict.power or 0.0 for verdict in judged]
    if not powers:
        return ""
    over = "" if len(powers) == 1 else f" (median of {format_count(len(powers), 'question')})"
    growth = f"a true growth of {2.0 * judged[0].margin:.3g} would be called worse {median(powers):.0%} of the time"
    return f"Power: {growth}{over}."


def gate_markdown(verdicts: Sequence[Verdict], gaps: Sequence[PowerGap] = ()) -> str:
    """Write the sentence, and a table with one row per test."""
    unit = unit_name(verdicts[0].unit)
    caption = f"{unit[0].upper()}{unit[1:]}. {gate_meaning(verdicts)}"
    columns = [Column("test", "name", "Name of the test."), *_list_columns(Verdict, verdicts, *_VERDICT_COLUMNS)]
    table = make_table(caption, columns, sort_by_urgency(verdicts))
    low = [f"**{escape(clean_line(f'{gap}.'))}**" for gap in gaps]
    power = filter(None, [escape(gate_power(verdicts))])
    return "\n\n".join([f"**{escape(summarize_verdicts(verdicts))}**", *low, *power, to_markdown(table)])


def gate_junit(verdicts: Sequence[Verdict], failed: Collection[Verdict], gaps: Sequence[PowerGap] = ()) -> str:
    """Write a JUnit file with one test case per test and per power gap; unmeasured tests are skipped.

    Parameters
    ----------
    verdicts : sequence of Verdict
        Verdicts on all models.
    failed : collection of Verdict
        Verdicts that count as failures.
    gaps : sequence of PowerGap
        Groups of tests with too little power; each is a failure.

    Returns
    -------
    str
        XML.
    """
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
            text, case = clean_line(format_verdict(verdict)), _add_case(suite, model, verdict.test)
            if verdict in failed:
                _add_failure(case, verdict.outcome, text)
            elif verdict.outcome == "not_measured":
                Xml.SubElement(case, "skipped", message=text)
            else:
                Xml.SubElement(case, "system-out").text = text
        for gap in low:
            _add_failure(_add_case(suite, model, f"power: {gap.topic or 'all'}"), "power", clean_line(str(gap)))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: Xml.Element, model: str, name: str) -> Xml.Element:
    return Xml.SubElement(suite, "testcase", classname=f"biassay.{clean_line(model)}", name=clean_line(name))


def _add_failure(case: Xml.Element, kind: str, text: str) -> None:
    Xml.SubElement(case, "failure", type=kind, message=text).text = text


def _interval_text(verdict: Verdict) -> str:
    return "–" if verdict.low is None else format_interval(verdict.low, verdict.high)


def _explain(verdict: Verdict) -> str:
    """Return the reason of a verdict, or the power of an inconclusive one."""
    if verdict.reason is not None or verdict.outcome != "inconclusive" or verdict.over:
        return verdict.reason or ""
    if verdict.detectable is None:
        return "no growth is called worse with 80% power"
    return f"80% power for a growth of {format_decimal(verdict.detectable)}"


_STARS = ("", "*", "**")
_MAX_DIFFERENCES = 8
_MEANING = (
    "A difference is the effect on the new model minus the effect on the first, over the items that both have. A "
    "difference that is not significant does not show that two models are equal."
)


def _rows(comparison: Comparison) -> Sequence[EffectDifference]:
    return comparison.tables[DIFFERENCES]


def _sure(row: EffectDifference) -> int:
    if row.p_value is None or row.p_value > 1.0 - CONFIDENCE:
        return 0
    return 2 if row.p_value_holm is not None and row.p_value_holm <= 1.0 - CONFIDENCE else 1


_DIFFERENCE_COLUMNS = (
    *("title", "model", "effect_baseline", "effect_model", "difference", "interval_low", "p_value", "p_value_holm"),
    *("over", "reason"),
)


def difference_statements(comparison: Comparison) -> list[Statement]:
    """Describe the differences of every model in a sentence."""
    return [_about(comparison, model) for model in comparison.models]


def _about(comparison: Comparison, model: str) -> Statement:
    rows = [row for row in _rows(comparison) if row.model == model]
    tested = [row for row in rows if row.p_value is not None]
    apart = sorted((row for row in tested if _sure(row)), key=lambda row: -abs(row.difference or 0.0))
    text = (
        f"{model}: {sum(_sure(row) == 2 for row in apart)} of {format_count(len(tested), 'difference')} from "
        f"{comparison.baseline} significant after correction, {len(apart)} before."
    )
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
    return (
        f"{effects}; difference {format_decimal(row.difference)}, 95% CI {interval}, p {format_p_relation(row.p_value)}"
    )


def make_differences_report(comparison: Comparison) -> Report:
    """Make the report of paired differences, with verdicts if the comparison has some."""
    signed = make_table("", _list_columns(EffectDifference, _rows(comparison), *_DIFFERENCE_COLUMNS), _rows(comparison))
    sections = [Section(DIFFERENCES, "Signed differences", (Text(_MEANING), signed), printed=True)]
    if comparison.verdicts:
        return make_verdict_report(comparison, sections)
    statements = difference_statements(comparison)
    return make_comparison_report(comparison, statements, sections, _MEANING, tables=[signed])


def paper_differences(comparison: Comparison) -> Table:
    """Make the table of a paper: items down, models across, differences with intervals."""
    cells = {
        (row.title, row.model): "–"
        if row.difference is None
        else (
            f"{format_decimal(row.difference)} "
            f"{format_interval(row.interval_low, row.interval_high)}{_STARS[_sure(row)]}"
        )
        for row in _rows(comparison)
    }
    unit = unit_name(_rows(comparison)[0].unit)
    caption = (
        f"Differences of the {unit} from {comparison.baseline}, with 95% intervals; * p at most 0.05, ** also after "
    )
    return side_by_side(f"{caption}Holm's correction. {_MEANING}", "Item", cells)


def methods_of_differences(comparison: Comparison, how: str, works: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield sentences on how models were compared.

    Parameters
    ----------
    comparison : Comparison
        Comparison to describe.
    how : str
        Pairing, such as "item by item".
    works : tuple of str
        Keys of the works that the method is from.

    Yields
    ------
    MethodsSentence
    """
    models = f"{', '.join(comparison.models)} {'was' if len(comparison.models) == 1 else 'were'}"
    sure = "with 95% intervals and two-sided p-values of the differences"
    yield MethodsSentence(f"{models} compared with {comparison.baseline} {how}, {sure}", works)
    yield MethodsSentence(
        "p-values of differences were corrected by Holm's method over the items of a model", ("holm1979",)
    )
