"""The figure that a page begins with, made from findings: effects by topic, people first, checks of the method last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from biassay.pages.effects import Effect, EffectRow, EffectRows, draw_effects
from biassay.pages.formats import MANY_MODELS, counted, decimals, percent, topic_name
from biassay.pages.sentences import passes, sentence
from biassay.results.findings import Finding, count

__all__ = ["CHECKS", "SURE", "counts_text", "drawable", "effect_of_finding", "overview", "scale_of", "sureness"]

SURE = ("inconclusive", "before correction only", "significant")
"""What the marks of the figure show."""
CHECKS = "Sanity checks"
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


def overview(findings: Sequence[Finding], caption: str = "") -> Markup | None:
    """The figure, or one for each unit; None where there is no effect to draw."""
    shown = drawable(findings)
    models = list(dict.fromkeys(one.model for one in findings))
    drawn = []
    for unit in dict.fromkeys(one.unit for one in shown):
        own = [one for one in shown if one.unit == unit]
        drawn.append(draw_effects(list(_groups(own, models)), models, caption=caption, **scale_of(own, len(models))))
    return Markup("\n").join(drawn) if drawn else None


def drawable(findings: Iterable[Finding]) -> list[Finding]:
    """Those whose effect is a number."""
    return [one for one in findings if one.effect is not None and math.isfinite(one.effect)]


def scale_of(findings: Sequence[Finding], models: int) -> dict[str, Any]:
    """What a figure of findings of one unit is called, what its marks show, and how far its scale goes at least."""
    name, reach = _UNITS.get(findings[0].unit, (findings[0].unit, 0.0))
    ends = [abs(end) for one in findings for end in (one.low, one.high) if end is not None and math.isfinite(end)]
    confidence = sorted({one.confidence for one in findings if one.low is not None})
    spans = f" with {' and '.join(map(percent, confidence))} intervals" if confidence and models <= MANY_MODELS else ""
    described = all(one.standing == "descriptive" for one in findings)
    return {
        "title": f"{name[0].upper()}{name[1:]}{spans}.",
        "sure": () if described else SURE,
        "reach": max([reach, *ends]) if reach else 0.0,
    }


def _groups(findings: Sequence[Finding], models: Sequence[str]) -> Iterator[EffectRows]:
    people = [one for one in findings if one.about == "people"]
    for topic in dict.fromkeys(one.topic for one in people):
        yield _rows(topic_name(topic), [one for one in people if one.topic == topic], models)
    checks = [one for one in findings if one.about == "method"]
    if checks:
        yield _rows(CHECKS, checks, models, folded=True)


def _rows(title: str, findings: Sequence[Finding], models: Sequence[str], *, folded: bool = False) -> EffectRows:
    items: dict[str, list[Finding]] = {}
    for one in findings:
        items.setdefault(one.item, []).append(one)
    rows = tuple(_row(same, models) for same in items.values())
    return EffectRows(title, rows, folded, _counts(findings))


def _counts(findings: Sequence[Finding]) -> str:
    return counts_text([one for one in findings if one.form_of is None or one.about == "method"])


def counts_text(findings: Sequence[Finding]) -> str:
    """How many results are significant, and how many before correction only; of sanity checks, how many pass."""
    if all(one.standing == "descriptive" for one in findings):
        return counted(len(findings), "result")
    of = f"of {counted(len(findings), 'result')}"
    if all(one.about == "method" for one in findings):
        return f"{sum(map(passes, findings)):,} {of} passed"
    leads = count(findings, "uncorrected")
    opposite = sum(one.opposite for one in findings)
    parts = [
        f"{count(findings, 'significant'):,} {of} significant",
        f"{leads:,} before correction only" if leads else "",
        f"{opposite:,} opposite to the expected direction" if opposite else "",
    ]
    return ", ".join(filter(None, parts))


def _row(findings: Sequence[Finding], models: Sequence[str]) -> EffectRow:
    first = findings[0]
    name = "" if first.item == first.title else first.item
    places, told = {model: place for place, model in enumerate(models)}, len(models) <= MANY_MODELS
    effects = tuple(effect_of_finding(one, places[one.model], told=told) for one in findings)
    return EffectRow(first.title, name, effects)


def effect_of_finding(finding: Finding, model: int, *, told: bool = True) -> Effect:
    """A finding as it is drawn, and in words if they are ``told``."""
    effect = finding.effect or 0.0
    known = all(end is not None and math.isfinite(end) for end in (finding.low, finding.high))
    number = f"{effect:,.0f}" if finding.unit == "words" else decimals(effect)
    return Effect(
        model,
        effect,
        finding.low if known else None,
        finding.high if known else None,
        sureness(finding),
        f"{finding.model}: {sentence(finding)}" if told else "",
        number + (" ‡" if finding.standing == "not_testable" else _STARS[sureness(finding)]),
        few=finding.standing == "not_testable",
    )


def sureness(finding: Finding) -> int:
    """The place of a finding's evidence in `SURE`."""
    return {"significant": 2, "uncorrected": 1}.get(finding.standing, 0)
