"""Findings in words: the one place where records become sentences, for terminal, page, model card and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from biassay.pages.formats import counted, decimals, format_plain_p, interval_text, size_word
from biassay.pages.section import Statement
from biassay.results.findings import Finding, Standing, count

__all__ = ["in_words", "statements"]

_STANDING: dict[Standing, str] = {
    "corrected": "holds after correction for the number of tests",
    "uncorrected": "holds before correction only",
    "opposite": "runs opposite to what the test looks for",
    "not shown": "not shown",
    "too few": "cannot be shown with so few words",
    "described": "described, not tested",
    "not measured": "not measured",
}
_LISTED: tuple[Standing, ...] = ("corrected", "uncorrected", "opposite", "described")
_MOST = 8
_HOLD: tuple[Standing, ...] = ("corrected", "uncorrected")


def in_words(finding: Finding) -> str:
    """One finding in a sentence."""
    if finding.standing == "not measured":
        return f"{finding.title}: not measured ({finding.reason})"
    parts = [_effect(finding), *(_p(name, value) for name, value in list(finding.p_values.items())[:1]), finding.item]
    said = f"{finding.direction or finding.title}: {_STANDING[finding.standing]} ({'; '.join(filter(None, parts))})"
    return f"{said}, such as {', '.join(finding.evidence[:3])}" if finding.evidence else said


def _effect(finding: Finding) -> str:
    if finding.effect is None:
        return ""
    size = f"{size_word(finding.effect)}, " if finding.unit == "d" else ""
    span = "" if finding.low is None else f", 95% {interval_text(finding.low, finding.high)}"
    number = f"{finding.effect:,.0f}" if finding.unit == "words" else decimals(finding.effect)
    return f"{size}{finding.unit} = {number}{span}"


def _p(name: str, value: float | None) -> str:
    return "" if value is None else f"p {name} {format_plain_p(value)}"


def statements(findings: Iterable[Finding]) -> list[Statement]:
    """What was found of every model: how many hold, whether the method works, then the findings themselves."""
    by_model: dict[str, list[Finding]] = {}
    for one in findings:
        by_model.setdefault(one.model, []).append(one)
    return [_of_model(model, own) for model, own in by_model.items()]


def _of_model(model: str, findings: Sequence[Finding]) -> Statement:
    people = [one for one in findings if one.about == "people" and one.standing != "not measured"]
    checks = [one for one in findings if one.about == "method" and one.standing != "not measured"]
    unmeasured = [one.item for one in findings if one.standing == "not measured"]
    sentences = [_about_people(people), _about_method(checks)]
    if unmeasured:
        sentences.append(f"Not measured: {', '.join(unmeasured)}.")
    return Statement(f"{model}: {' '.join(filter(None, sentences))}", tuple(_points(people)), model)


def _about_people(findings: Sequence[Finding]) -> str:
    described = count(findings, "described")
    tested = len(findings) - described
    if not tested:
        return f"About people: {counted(described, 'finding')}, none of which can be tested." if described else ""
    hold, corrected, opposite = count(findings, *_HOLD), count(findings, "corrected"), count(findings, "opposite")
    text = f"About people: {hold} of {counted(tested, 'association')} {_hold(hold)}, {corrected} after correction"
    return f"{text}; {opposite} {'runs' if opposite == 1 else 'run'} the other way." if opposite else f"{text}."


def _hold(number: int) -> str:
    return "holds" if number == 1 else "hold"


def _about_method(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    hold = count(findings, *_HOLD)
    works = "works" if hold == len(findings) else "may not work"
    return f"The method {works} on this model ({hold} of {counted(len(findings), 'check')} {_hold(hold)})."


def _points(findings: Sequence[Finding]) -> Iterable[str]:
    """Findings that hold, surest and then largest first."""
    listed = [one for one in findings if one.standing in _LISTED]
    listed.sort(key=lambda one: (_LISTED.index(one.standing), -abs(one.effect or 0.0)))
    yield from map(in_words, listed[:_MOST])
    if len(listed) > _MOST:
        yield f"and {len(listed) - _MOST} more"
