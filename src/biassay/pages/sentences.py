"""Findings in words: the one place where records become sentences, for terminal, page, model card and JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from biassay.pages.formats import counted, decimals, format_p, interval_text, size_word
from biassay.pages.section import Statement
from biassay.results.findings import Finding, Standing, count

__all__ = ["MANY_MODELS", "in_short", "points", "statements"]

_SAID: dict[Standing, str] = {
    "corrected": "holds after correction",
    "uncorrected": "holds before correction only",
    "opposite": "runs opposite to what the test looks for",
    "described": "described, not tested",
}
_HOLD: tuple[Standing, ...] = ("corrected", "uncorrected")
_MOST = 8  # lines of one standing
MANY_MODELS = 12
"""Beyond which it is said what they have in common."""
_Point = tuple[str, str]


def _said(finding: Finding) -> str:
    """One finding in a sentence."""
    parts = (*_effect(finding), *_p(finding), _SAID[finding.standing])
    above = f" (above all {', '.join(finding.evidence[:3])})" if finding.evidence else ""
    return f"{finding.direction or finding.title}{above}: {', '.join(parts)}"


def _effect(finding: Finding) -> Iterator[str]:
    if finding.effect is None:
        return
    if finding.unit == "d":
        yield size_word(finding.effect)
    number = f"{finding.effect:,.0f}" if finding.unit == "words" else decimals(finding.effect)
    span = "" if finding.low is None else f" (95% {interval_text(finding.low, finding.high)})"
    yield f"{finding.unit} = {number}{span}"


def _p(finding: Finding) -> Iterator[str]:
    """The first p-value that was computed."""
    known = [(name, value) for name, value in finding.p_values.items() if value is not None]
    yield from (f"p {name} {format_p(value)}" for name, value in known[:1])


def statements(findings: Iterable[Finding]) -> list[Statement]:
    """What was found of every model, in short and then by finding; of very many models what they have in common."""
    by_model: dict[str, list[Finding]] = {}
    for one in findings:
        by_model.setdefault(one.model, []).append(one)
    if len(by_model) > MANY_MODELS:
        return [_statement(f"{len(by_model):,} models", [one for own in by_model.values() for one in own])]
    return [_statement(model, own) for model, own in by_model.items()]


def _statement(about: str, findings: Sequence[Finding]) -> Statement:
    listed = points(findings)
    return Statement(
        f"{about}: {in_short(findings)}",
        tuple(f"{text}{name}" for text, name in listed),
        about,
        tuple(name for _, name in listed),
    )


def in_short(findings: Sequence[Finding]) -> str:
    """How many associations hold, whether the method works, and what was not measured."""
    people, checks = ([one for one in _measured(findings) if one.about == about] for about in ("people", "method"))
    sentences = [_about_people(people), _about_method(checks, _models(findings)), _unmeasured(findings)]
    return " ".join(filter(None, sentences))


def _measured(findings: Iterable[Finding]) -> list[Finding]:
    return [one for one in findings if one.standing != "not measured"]


def _models(findings: Iterable[Finding]) -> int:
    return len({one.model for one in findings})


def _about_people(findings: Sequence[Finding]) -> str:
    described = count(findings, "described")
    tested = len(findings) - described
    if not tested:
        return f"About people: {counted(described, 'finding')}, none of which can be tested." if described else ""
    hold, corrected, opposite = count(findings, *_HOLD), count(findings, "corrected"), count(findings, "opposite")
    text = f"About people: {hold:,} of {counted(tested, 'association')} {'holds' if hold == 1 else 'hold'}"
    text += f", {corrected:,} after correction" if hold else ""
    return f"{text}; {opposite:,} {'runs' if opposite == 1 else 'run'} the other way." if opposite else f"{text}."


def _about_method(findings: Sequence[Finding], models: int) -> str:
    if not findings:
        return ""
    hold, checks = count(findings, *_HOLD), counted(len(findings), "check")
    if models > 1:
        return f"The method works by {hold:,} of {checks}."
    return f"The method {'works' if hold == len(findings) else 'may not work'} on this model ({hold:,} of {checks})."


def _unmeasured(findings: Sequence[Finding]) -> str:
    items = [one.item for one in findings if one.standing == "not measured"]
    if not items:
        return ""
    return f"Not measured: {f'{len(items):,} results' if _models(findings) > 1 else ', '.join(items)}."


def points(findings: Sequence[Finding]) -> list[_Point]:
    """What is to be said about people, surest and then largest first: sentences, and the code names they end with."""
    people = [one for one in findings if one.about == "people"]
    if _models(findings) > 1:
        return _over_models(people, _models(findings))
    return [point for standing in _SAID for point in _of_standing([o for o in people if o.standing == standing])]


def _of_standing(findings: Iterable[Finding]) -> Iterator[_Point]:
    """The same said by several tests is one line, with the numbers of the largest effect."""
    lines: dict[str, list[Finding]] = {}
    for one in sorted(findings, key=lambda one: -abs(one.effect or 0.0)):
        lines.setdefault(one.direction or one.title, []).append(one)
    for first, *others in list(lines.values())[:_MOST]:
        also = f"; also {', '.join(one.item for one in others)}" if others else ""
        yield _said(first), f" ({first.item}{also})"
    if len(lines) > _MOST:
        rest = [one for same in list(lines.values())[_MOST:] for one in same]
        yield f"{len(rest):,} more: {_SAID[rest[0].standing]}", f" ({', '.join(one.item for one in rest)})"


def _over_models(findings: Sequence[Finding], models: int) -> list[_Point]:
    """The items that hold in most models, with their median effect there."""
    sure = count(findings, "corrected") > 0
    by_item: dict[str, list[Finding]] = {}
    for one in findings:
        if one.standing == "corrected" or (one.standing == "uncorrected" and not sure):
            by_item.setdefault(one.item, []).append(one)
    often = sorted(by_item.values(), key=lambda same: -len(same))[:_MOST]
    return [(_over(same, models), f" ({same[0].item})") for same in often]


def _over(findings: Sequence[Finding], models: int) -> str:
    first = findings[0]
    median = decimals(statistics.median(one.effect or 0.0 for one in findings))
    holds = f"{_SAID[first.standing]} in {len(findings):,} of {models:,} models"
    return f"{first.direction or first.title}: {holds}, median {first.unit} = {median}"
