"""The figure that a page begins with, made from findings: effects by topic, people first, checks of the method last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup

from biassay.pages.effects import LANES, Effect, EffectRow, EffectRows, draw_effects
from biassay.pages.formats import counted, decimals, topic_name
from biassay.pages.sentences import sentence
from biassay.results.findings import Finding, Standing

__all__ = ["CHECKS", "SURE", "drawable", "effect_of_finding", "overview", "sureness"]

SURE = ("not shown", "holds before correction only", "holds after correction")
"""What the marks of the figure show."""
CHECKS = "Checks of the method, not about people"
_SURE: dict[Standing, int] = {"corrected": 2, "uncorrected": 1, "opposite": 1}
_UNITS: Mapping[str, tuple[str, float]] = {"d": ("effect size d", 2.0), "tau": ("agreement with people, tau", 1.0)}
"""What a unit is called, and how far its scale goes at least."""
_STARS = ("", " *", " **")


def overview(findings: Sequence[Finding], caption: str = "") -> Markup | None:
    """The figure; None where there is no effect to draw."""
    shown = drawable(findings)
    if not shown:
        return None
    models = list(dict.fromkeys(one.model for one in findings))
    name, reach = _UNITS.get(shown[0].unit, (shown[0].unit, 0.0))
    confidence = {one.confidence for one in shown if one.low is not None}
    spans = f" with {100 * confidence.pop():g}% intervals" if len(confidence) == 1 else ""
    return draw_effects(
        list(_groups(shown, models)),
        models,
        title=f"{name[0].upper()}{name[1:]}{spans}.",
        caption=caption,
        sure=_names_used(shown),
        reach=reach,
    )


def drawable(findings: Iterable[Finding]) -> list[Finding]:
    """Those whose effect is a number."""
    return [one for one in findings if one.effect is not None and math.isfinite(one.effect)]


def _names_used(findings: Sequence[Finding]) -> Sequence[str]:
    """What is not corrected is not said to be: a single test, or one that is only described."""
    if all(one.standing == "described" for one in findings):
        return ()
    return SURE


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
    hold = sum(sureness(one) > 0 for one in findings)
    return EffectRows(
        title,
        rows,
        folded,
        f"{hold:,} of {counted(len(findings), 'result')} {'holds' if 1 in (hold, len(findings)) else 'hold'}",
    )


def _row(findings: Sequence[Finding], models: Sequence[str]) -> EffectRow:
    first = findings[0]
    name = "" if first.item == first.title else first.item
    places, told = {model: place for place, model in enumerate(models)}, len(models) <= LANES
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
        number + _STARS[sureness(finding)],
    )


def sureness(finding: Finding) -> int:
    """A place in `SURE`."""
    return _SURE.get(finding.standing, 0)
