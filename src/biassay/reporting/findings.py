"""Show findings as an overview figure, a table and a forest plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from markupsafe import Markup

from biassay.grouping import group_pairs
from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.forest import ForestRow, draw_forest
from biassay.reporting.document import Cell, Table
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_interval,
    format_p,
    format_percent,
    topic_name,
    unit_name,
)
from biassay.reporting.html_figures import Effect, EffectRow, EffectRows, draw_effects
from biassay.reporting.sentences import make_sentence, passes_check
from biassay.reporting.terminal import side_by_side
from biassay.results.findings import Finding, count_findings

EVIDENCE_LABELS = ("inconclusive", "before correction only", "significant")
"""Names of the marks of the figure."""
SANITY_CHECKS = "Sanity checks"
_INCONCLUSIVE = "Inconclusive"
_GROUPS = {
    "Significant": "Significant on at least one model",
    "Before correction only: leads, not findings": "Before correction only: leads, not findings, on at least one model",
    _INCONCLUSIVE: "Inconclusive on all models",
}
"""Titles of the groups of rows, for one model and for several."""
_LABELLED, _STEREOTYPE = ("the reverse", "as labelled"), ("against the stereotype", "with the stereotype")
_UNITS: Mapping[str, tuple[str, float, Sequence[str]]] = {
    "d": ("effect size d", 2.0, _LABELLED),
    "tau": ("agreement with people, tau", 1.0, ("disagreement", "agreement")),
    "share": ("difference of shares", 1.0, _LABELLED),
    "log-odds": ("difference of log-odds", 1.0, _LABELLED),
    "bias score": ("bias score", 1.0, _STEREOTYPE),
    "share above one half": ("share of pairs above one half", 0.5, _STEREOTYPE),
    "ss above 50": ("stereotype score (ss) above 50", 50.0, _STEREOTYPE),
}
"""Name of a scale, the smallest end of its axis, which is the natural limit if there is one, and names of both ends."""
_MAX_COUNTED_MODELS = 3
_STARS = ("", " *", " **")


def draw_overview(findings: Sequence[Finding], caption: str = "") -> Markup | None:
    """Draw one figure per unit of effects; return None if there is no effect to draw."""
    shown = select_drawable(findings)
    models = list(dict.fromkeys(finding.model for finding in findings))
    drawn = []
    for unit in dict.fromkeys(finding.unit for finding in shown):
        own = [finding for finding in shown if finding.unit == unit]
        labels = list(models)
        drawn.append(draw_effects(list(_groups(own, models)), labels, caption=caption, **get_scale(own, len(models))))
    return Markup("\n").join(drawn) if drawn else None


def select_drawable(findings: Iterable[Finding]) -> list[Finding]:
    """Select findings whose effect is a number."""
    return [finding for finding in findings if finding.effect is not None and math.isfinite(finding.effect)]


def get_scale(findings: Sequence[Finding], models: int) -> dict[str, Any]:
    """Return title, names of marks, ends and reach of the axis for a figure of one unit."""
    name, reach, ends_of_axis = _UNITS.get(findings[0].unit, (findings[0].unit, 0.0, ()))
    ends = [
        abs(end)
        for finding in findings
        for end in (finding.low, finding.high)
        if end is not None and math.isfinite(end)
    ]
    confidence = sorted({finding.confidence for finding in findings if finding.low is not None})
    spans = (
        f" with {' and '.join(map(format_percent, confidence))} intervals"
        if confidence and models <= MANY_MODELS
        else ""
    )
    described = all(finding.evidence == "descriptive" for finding in findings)
    return {
        "title": f"{name[0].upper()}{name[1:]}{spans}.",
        "sure": () if described else EVIDENCE_LABELS,
        "ends": ends_of_axis,
        "reach": max([reach, *ends]) if reach else 0.0,
    }


def _groups(findings: Sequence[Finding], models: Sequence[str]) -> Iterator[EffectRows]:
    """Group rows by the evidence of their question: significant, leads, inconclusive; sanity checks last."""
    people = [finding for finding in findings if finding.about == "people"]
    by_evidence: dict[str, list[Finding]] = {title: [] for title in _GROUPS}
    for same in _by_question(people):
        best = max(map(_rank_question, same))
        by_evidence[list(_GROUPS)[2 - best]] += same
    described = all(finding.evidence == "descriptive" for finding in people)
    for title, own in by_evidence.items():
        if own and described:
            yield from (
                _rows(topic_name(t), [finding for finding in own if finding.topic == t], models) for t in _topics(own)
            )
        elif own:
            shown = title if len(models) == 1 else _GROUPS[title]
            yield _rows(shown, own, models, folded=title != next(iter(_GROUPS)))
    checks = [finding for finding in findings if finding.about == "method"]
    if checks:
        yield _rows(SANITY_CHECKS, checks, models, folded=True)


def _topics(findings: Iterable[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.topic for finding in findings))


def _by_question(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group findings by question, over all models; the forms of a question follow it."""
    questions = group_pairs((finding.form_of or finding.item, finding) for finding in findings)
    ordered = [sorted(same, key=lambda finding: finding.form_of is not None) for same in questions.values()]
    topics = _topics(findings)
    return sorted(
        ordered, key=lambda same: (topics.index(same[0].topic), -max(abs(finding.effect or 0.0) for finding in same))
    )


def _rank_question(finding: Finding) -> int:
    """Rank the evidence of a question; a form counts only as part of its question."""
    return 0 if finding.form_of is not None else rank_evidence(finding)


def _rows(title: str, findings: Sequence[Finding], models: Sequence[str], *, folded: bool = False) -> EffectRows:
    items = group_pairs((finding.item, finding) for finding in findings)
    rows = tuple(_row(same, models) for same in items.values())
    return EffectRows(
        title, rows, folded, _count_checks(findings) if title == SANITY_CHECKS else _count_questions(items)
    )


def _count_questions(items: Mapping[str, Sequence[Finding]]) -> str:
    questions = sum(any(finding.form_of is None for finding in same) for same in items.values())
    forms = len(items) - questions
    return format_count(questions, "question") + (f", {format_count(forms, 'variant')}" if forms else "")


def _count_checks(findings: Sequence[Finding]) -> str:
    """Count passed sanity checks per model, or in total if there are many models."""
    models = list(dict.fromkeys(finding.model for finding in findings))
    if len(models) > _MAX_COUNTED_MODELS:
        return format_counts(findings)
    by_model = {model: [finding for finding in findings if finding.model == model] for model in models}
    counts = [f"{model} {sum(map(passes_check, own))}/{len(own)}" for model, own in by_model.items()]
    return f"passed: {', '.join(counts)}" if len(models) > 1 else f"passed: {counts[0].rsplit(' ', 1)[1]}"


def format_counts(findings: Sequence[Finding]) -> str:
    """Count significant results and leads; of sanity checks, those that passed."""
    if all(finding.evidence == "descriptive" for finding in findings):
        return format_count(len(findings), "result")
    of = f"of {format_count(len(findings), 'result')}"
    if all(finding.about == "method" for finding in findings):
        return f"{sum(map(passes_check, findings)):,} {of} passed"
    leads = count_findings(findings, "uncorrected")
    opposite = sum(finding.opposite for finding in findings)
    parts = [
        f"{count_findings(findings, 'significant'):,} {of} significant",
        f"{leads:,} before correction only" if leads else "",
        f"{opposite:,} opposite to the expected direction" if opposite else "",
    ]
    return ", ".join(filter(None, parts))


def _row(findings: Sequence[Finding], models: Sequence[str]) -> EffectRow:
    first = findings[0]
    name = "" if first.item == first.title else first.item
    indices, are_few = {model: index for index, model in enumerate(models)}, len(models) <= MANY_MODELS
    effects = tuple(make_effect(finding, indices[finding.model], with_tooltip=are_few) for finding in findings)
    return EffectRow("↳ variant" if first.form_of is not None else first.label or first.title, name, effects)


def make_effect(finding: Finding, model: int, *, with_tooltip: bool = True) -> Effect:
    """Make the mark of a finding in a chart.

    Parameters
    ----------
    finding : Finding
        A finding without an effect is drawn at zero.
    model : int
        Index of the model, which decides the colour.
    with_tooltip : bool
        If True, add a tooltip.

    Returns
    -------
    Effect
    """
    effect = finding.effect or 0.0
    known = all(end is not None and math.isfinite(end) for end in (finding.low, finding.high))
    number = f"{effect:,.0f}" if finding.unit == "words" else format_decimal(effect)
    return Effect(
        model,
        effect,
        finding.low if known else None,
        finding.high if known else None,
        rank_evidence(finding),
        f"{finding.model}: {make_sentence(finding)}" if with_tooltip else "",
        number + (" ‡" if finding.evidence == "not_testable" else _STARS[rank_evidence(finding)]),
        too_few=finding.evidence == "not_testable",
    )


def rank_evidence(finding: Finding) -> int:
    """Return the rank of the evidence in `EVIDENCE_LABELS`."""
    return {"significant": 2, "uncorrected": 1}.get(finding.evidence, 0)


_NO_REACH = 0.01


def make_findings_table(
    findings: Sequence[Finding],
    caption: str,
    label: Callable[[Finding], str],
    more: Mapping[str, Callable[[Finding], str]],
    corrected: str,
) -> Table:
    """Make a table of effects, intervals, p-values and further columns, models side by side.

    Parameters
    ----------
    findings : sequence of Finding
        Findings of all models; items become rows.
    caption : str
        First sentences of the caption, to which the meaning of the columns is added.
    label : callable
        Function from a finding to the label of its row.
    more : dict of str to callable
        Further columns by heading: functions from a finding to the text of its cell.
    corrected : str
        Plural noun for the family of the second p-value.

    Returns
    -------
    Table
    """
    unit = " or ".join(dict.fromkeys(unit_name(finding.unit) for finding in findings)) or "effect"
    heads = (
        "effect",
        " and ".join(dict.fromkeys(format_percent(finding.confidence) for finding in findings)) or "95%",
        "p",
        "p, corrected",
        *more,
    )
    names = {finding.item: label(finding) for finding in reversed(findings)}
    cells = {(names[finding.item], finding.model): _cells(finding, more, len(heads)) for finding in findings}
    lacking = any(finding.effect is not None and _corrected(finding) is None for finding in findings)
    note = " No corrected p: a sanity check, or no p-value." if lacking else ""
    whole_caption = f"{caption} Effect: {unit}. p: two-sided; corrected: over the {corrected}.{note}"
    return replace(side_by_side(whole_caption, "item", cells, heads), spare=tuple(more))


def _cells(finding: Finding, more: Mapping[str, Callable[[Finding], str]], count: int) -> tuple[Cell, ...]:
    if finding.effect is None:
        return (Cell("–"),) * count
    interval = "none" if finding.low is None else format_interval(finding.low, finding.high, finding.limit)
    p, corrected = format_p(next(iter(finding.p_values.values()), None)), format_p(_corrected(finding))
    shown = format_decimal(finding.effect), interval, p, corrected
    return tuple(map(Cell, (*shown, *(get(finding) for get in more.values()))))


def _corrected(finding: Finding) -> float | None:
    return next((p for name, p in finding.p_values.items() if name.endswith(", corrected")), None)


def draw_forests(findings: Sequence[Finding], name: str, label: Callable[[Finding], str]) -> Iterator[Drawing]:
    """Yield a forest plot per model.

    Parameters
    ----------
    findings : sequence of Finding
        Findings of all models.
    name : str
        First part of the file names, which end with the number of the model.
    label : callable
        Function from a finding to the label of its row.

    Yields
    ------
    Drawing
    """
    for index, model in enumerate(dict.fromkeys(finding.model for finding in findings), start=1):
        own = select_drawable(finding for finding in findings if finding.model == model)
        if own:
            yield partial(_draw_model_forest, f"{name}-{index}", model, own, label)


def _draw_model_forest(
    name: str, model: str, findings: Sequence[Finding], label: Callable[[Finding], str], style: Style
) -> Figure:
    rows = [
        ForestRow(
            label(finding),
            finding.effect or 0.0,
            finding.low,
            finding.high,
            rank_evidence(finding),
            make_sentence(finding),
        )
        for finding in findings
    ]
    axis = f"{unit_name(findings[0].unit)}, {format_percent(findings[0].confidence)} intervals"
    return draw_forest(name, model, rows, style, axis=axis, reach=_NO_REACH)
