"""Show findings as an overview figure, a table and a forest plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.forest import ForestRow, draw_forest
from biassay.reporting.document import Cell, ColumnSpan, PaperTable, RowGroup, TableRow
from biassay.reporting.formats import (
    MANY_MODELS,
    clean_line,
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
from biassay.results.findings import Finding, count_findings

__all__ = [
    "EVIDENCE_LABELS",
    "SANITY_CHECKS",
    "draw_forests",
    "draw_overview",
    "format_counts",
    "get_scale",
    "make_effect",
    "make_findings_table",
    "rank_evidence",
    "select_drawable",
]


EVIDENCE_LABELS = ("inconclusive", "before correction only", "significant")
"""What the marks of the figure show."""
SANITY_CHECKS = "Sanity checks"
_UNITS: Mapping[str, tuple[str, float]] = {
    "d": ("effect size d", 2.0),
    "tau": ("agreement with people, tau", 1.0),
    "share": ("difference of shares", 1.0),
    "log-odds": ("difference of log-odds", 1.0),
    "bias score": ("bias score", 0.2),
    "share above one half": ("share of pairs above one half", 0.1),
    "ss above 50": ("stereotype score (ss) above 50", 10.0),
}
"""What a unit is called, and how far its scale goes at least."""
_STARS = ("", " *", " **")


def draw_overview(findings: Sequence[Finding], caption: str = "") -> Markup | None:
    """The figure, or one for each unit; None where there is no effect to draw."""
    shown = select_drawable(findings)
    models = list(dict.fromkeys(one.model for one in findings))
    drawn = []
    for unit in dict.fromkeys(one.unit for one in shown):
        own = [one for one in shown if one.unit == unit]
        drawn.append(draw_effects(list(_groups(own, models)), models, caption=caption, **get_scale(own, len(models))))
    return Markup("\n").join(drawn) if drawn else None


def select_drawable(findings: Iterable[Finding]) -> list[Finding]:
    """Those whose effect is a number."""
    return [one for one in findings if one.effect is not None and math.isfinite(one.effect)]


def get_scale(findings: Sequence[Finding], models: int) -> dict[str, Any]:
    """What a figure of findings of one unit is called, what its marks show, and how far its scale goes at least."""
    name, reach = _UNITS.get(findings[0].unit, (findings[0].unit, 0.0))
    ends = [abs(end) for one in findings for end in (one.low, one.high) if end is not None and math.isfinite(end)]
    confidence = sorted({one.confidence for one in findings if one.low is not None})
    spans = (
        f" with {' and '.join(map(format_percent, confidence))} intervals"
        if confidence and models <= MANY_MODELS
        else ""
    )
    described = all(one.evidence == "descriptive" for one in findings)
    return {
        "title": f"{name[0].upper()}{name[1:]}{spans}.",
        "sure": () if described else EVIDENCE_LABELS,
        "reach": max([reach, *ends]) if reach else 0.0,
    }


def _groups(findings: Sequence[Finding], models: Sequence[str]) -> Iterator[EffectRows]:
    people = [one for one in findings if one.about == "people"]
    for topic in dict.fromkeys(one.topic for one in people):
        yield _rows(topic_name(topic), [one for one in people if one.topic == topic], models)
    checks = [one for one in findings if one.about == "method"]
    if checks:
        yield _rows(SANITY_CHECKS, checks, models, folded=True)


def _rows(title: str, findings: Sequence[Finding], models: Sequence[str], *, folded: bool = False) -> EffectRows:
    items: dict[str, list[Finding]] = {}
    for one in findings:
        items.setdefault(one.item, []).append(one)
    rows = tuple(_row(same, models) for same in items.values())
    return EffectRows(title, rows, folded, _counts(findings))


def _counts(findings: Sequence[Finding]) -> str:
    return format_counts([one for one in findings if one.form_of is None or one.about == "method"])


def format_counts(findings: Sequence[Finding]) -> str:
    """How many results are significant, and how many before correction only; of sanity checks, how many pass."""
    if all(one.evidence == "descriptive" for one in findings):
        return format_count(len(findings), "result")
    of = f"of {format_count(len(findings), 'result')}"
    if all(one.about == "method" for one in findings):
        return f"{sum(map(passes_check, findings)):,} {of} passed"
    leads = count_findings(findings, "uncorrected")
    opposite = sum(one.opposite for one in findings)
    parts = [
        f"{count_findings(findings, 'significant'):,} {of} significant",
        f"{leads:,} before correction only" if leads else "",
        f"{opposite:,} opposite to the expected direction" if opposite else "",
    ]
    return ", ".join(filter(None, parts))


def _row(findings: Sequence[Finding], models: Sequence[str]) -> EffectRow:
    first = findings[0]
    name = "" if first.item == first.title else first.item
    places, told = {model: place for place, model in enumerate(models)}, len(models) <= MANY_MODELS
    effects = tuple(make_effect(one, places[one.model], told=told) for one in findings)
    return EffectRow(first.title, name, effects)


def make_effect(finding: Finding, model: int, *, told: bool = True) -> Effect:
    """A finding as it is drawn, and in words if they are ``told``."""
    effect = finding.effect or 0.0
    known = all(end is not None and math.isfinite(end) for end in (finding.low, finding.high))
    number = f"{effect:,.0f}" if finding.unit == "words" else format_decimal(effect)
    return Effect(
        model,
        effect,
        finding.low if known else None,
        finding.high if known else None,
        rank_evidence(finding),
        f"{finding.model}: {make_sentence(finding)}" if told else "",
        number + (" ‡" if finding.evidence == "not_testable" else _STARS[rank_evidence(finding)]),
        few=finding.evidence == "not_testable",
    )


def rank_evidence(finding: Finding) -> int:
    """The place of a finding's evidence in `SURE`."""
    return {"significant": 2, "uncorrected": 1}.get(finding.evidence, 0)


_NO_REACH = 0.01


def make_findings_table(
    findings: Sequence[Finding],
    caption: str,
    label: Callable[[Finding], str],
    more: Mapping[str, Callable[[Finding], str]],
    corrected: str,
) -> PaperTable:
    """Effect, interval, p-values and ``more`` of every item, models beside each other.

    ``corrected`` says over what the second p-value is corrected.
    """
    unit = " or ".join(dict.fromkeys(unit_name(one.unit) for one in findings)) or "effect"
    heads = (
        "effect",
        " and ".join(dict.fromkeys(format_percent(one.confidence) for one in findings)) or "95%",
        "p",
        "p, corrected",
        *more,
    )
    models = list(dict.fromkeys(one.model for one in findings))
    found = {(one.item, one.model): one for one in findings}
    none = (Cell("–"),) * len(heads)
    rows = []
    for item in dict.fromkeys(one.item for one in findings):
        first = next(one for one in findings if one.item == item)
        cells = [cell for model in models for cell in _cells(found.get((item, model)), more, none)]
        rows.append(TableRow((clean_line(label(first)),), tuple(cells)))
    spans = tuple(ColumnSpan(clean_line(model), heads) for model in models)
    lacking = any(one.effect is not None and _corrected(one) is None for one in findings)
    note = " No corrected p: a sanity check, or no p-value." if lacking else ""
    told = clean_line(f"{caption} Effect: {unit}. p: two-sided; corrected: over the {corrected}.{note}")
    return PaperTable(told, ("item",), spans, (RowGroup("", tuple(rows)),), spare=tuple(more))


def _cells(
    finding: Finding | None, more: Mapping[str, Callable[[Finding], str]], none: tuple[Cell, ...]
) -> tuple[Cell, ...]:
    if finding is None or finding.effect is None:
        return none
    interval = "none" if finding.low is None else format_interval(finding.low, finding.high, finding.limit)
    p, corrected = format_p(next(iter(finding.p_values.values()), None)), format_p(_corrected(finding))
    shown = format_decimal(finding.effect), interval, p, corrected
    return tuple(map(Cell, (*shown, *(get(finding) for get in more.values()))))


def _corrected(finding: Finding) -> float | None:
    return next((p for name, p in finding.p_values.items() if name.endswith(", corrected")), None)


def draw_forests(findings: Sequence[Finding], name: str, label: Callable[[Finding], str]) -> Iterator[Drawing]:
    """One a model."""
    for place, model in enumerate(dict.fromkeys(one.model for one in findings), start=1):
        own = select_drawable(one for one in findings if one.model == model)
        if own:
            yield partial(_draw_model_forest, f"{name}-{place}", model, own, label)


def _draw_model_forest(
    name: str, model: str, findings: Sequence[Finding], label: Callable[[Finding], str], style: Style
) -> Figure:
    rows = [
        ForestRow(label(one), one.effect or 0.0, one.low, one.high, rank_evidence(one), make_sentence(one))
        for one in findings
    ]
    axis = f"{unit_name(findings[0].unit)}, {format_percent(findings[0].confidence)} intervals"
    return draw_forest(name, model, rows, style, axis=axis, reach=_NO_REACH)
