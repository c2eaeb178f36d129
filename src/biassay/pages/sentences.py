"""Findings in words: the one place where records become sentences, for terminal, page, model card and JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from biassay.pages.formats import (
    MANY_MODELS,
    counted,
    decimals,
    format_p,
    interval_text,
    of_cases,
    percent,
    unit_name,
)
from biassay.pages.section import Statement
from biassay.results.findings import Finding, Standing, count

__all__ = ["HOLD", "LARGE", "in_short", "points", "sentence", "standing_text", "statements"]

_SAID: dict[Standing, str] = {
    "corrected": "holds after correction",
    "uncorrected": "holds before correction only",
    "opposite": "runs opposite to what the test looks for",
    "described": "described, not tested",
    "not shown": "not established",
    "too few": "too few to tell",
}
_SILENT: tuple[Standing, ...] = ("not shown", "too few")
HOLD: tuple[Standing, ...] = ("corrected", "uncorrected")
"""An association that holds, as the test looks for it."""
_SCORES = {"bias score", "share above one half", "ss above 50"}
"""Units of benchmarks, which show biases and no associations."""
_MOST = 8  # lines of one standing, and code names in one line
_WORDS = 3  # of the evidence
_FEW = 3  # of what is not established, beyond which it is only counted
LARGE = 0.8
"""From which on d is called large (Cohen 1988)."""
_ORDINARY = 0.1  # share of random attribute words that do as well, from which on it belongs to the finding
_Point = tuple[str, str]


def sentence(finding: Finding) -> str:
    """One finding in a sentence, and what changes its reading; words only where they are all that there is."""
    if finding.standing == "described" and finding.evidence:
        named = f"{finding.direction or finding.title}: {', '.join(finding.evidence[:_WORDS])}"
        return "; ".join([named, *_effect(finding), *_beside(finding)])
    if finding.standing == "not shown" and finding.direction and finding.unit != "words":
        numbers = ", ".join([*_effect(finding), *_p(finding), *["large"] * _is_large(finding)])
        return "; ".join([f"Not established: {finding.direction}", numbers, *_beside(finding)])
    parts = (*_effect(finding), *_p(finding), standing_text(finding))
    words = finding.evidence[:_WORDS] if finding.unit == "words" else ()
    above = f" (above all {', '.join(words)})" if words else ""
    return "; ".join([f"{finding.direction or finding.title}{above}: {', '.join(parts)}", *_beside(finding)])


def standing_text(finding: Finding) -> str:
    """How sure it is; of a large effect that misses correction both are said at once."""
    if finding.standing == "too few" and finding.unit == "words":
        return "too few permutations to tell"
    if finding.standing == "too few":
        return f"too few {finding.few} to tell"
    if finding.about == "method" and finding.standing in HOLD:
        return "the check holds"
    misses = finding.standing in ("uncorrected", "not shown") and _is_large(finding)
    return f"{'large, but ' if misses else ''}{_SAID.get(finding.standing, finding.standing)}"


def _is_large(finding: Finding) -> bool:
    return finding.unit == "d" and abs(finding.effect or 0.0) >= LARGE


def _effect(finding: Finding) -> Iterator[str]:
    """The number of words is told with what they go with."""
    if finding.effect is None or finding.unit == "words":
        return
    span = f" (no interval: {finding.no_interval})" if finding.no_interval else ""
    if finding.low is not None:
        span = f" ({percent(finding.confidence)} {interval_text(finding.low, finding.high, finding.limit)})"
    yield f"{unit_name(finding.unit)} = {decimals(finding.effect)}{span}"


def _p(finding: Finding) -> Iterator[str]:
    """The first p-value that was computed; that of the crossed test needs no name."""
    known = [(name, value) for name, value in finding.p_values.items() if value is not None]
    for name, value in known[:1] if finding.standing != "described" and finding.unit != "words" else ():
        asked = name.removeprefix("crossed").replace("by word", "for these attribute words")
        yield f"{f'p {asked}'.strip()} = {format_p(value)}"


def _beside(finding: Finding) -> Iterator[str]:
    if finding.share_random is not None and finding.share_random >= _ORDINARY and finding.standing not in _SILENT:
        yield f"random attribute words do as well in {of_cases(finding.share_random, finding.random_sets)}"
    if finding.smallest is not None:
        yield _would_be_found(f"{finding.unit} of {decimals(finding.smallest)}")
    yield from finding.survives
    yield from finding.notes


def _would_be_found(effect: str) -> str:
    return f"a true {effect} would be found in 80 of 100 such tests"


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
    """How many associations hold, whether the method works, what could have been seen, and what was not measured."""
    people, checks = ([one for one in _measured(findings) if one.about == about] for about in ("people", "method"))
    first = _about_people(people), _about_method(checks, _models(findings))
    rest = _not_shown(people), _too_few([*people, *checks]), _equivalent(people), _unmeasured(findings)
    return " ".join(filter(None, (*first, *rest)))


def _measured(findings: Iterable[Finding]) -> list[Finding]:
    return [one for one in findings if one.standing != "not measured"]


def _models(findings: Iterable[Finding]) -> int:
    return len({one.model for one in findings})


def _about_people(findings: Sequence[Finding]) -> str:
    described = count(findings, "described")
    tested = len(findings) - described
    if not tested:
        return f"About people: {counted(described, 'finding')}, none of which can be tested." if described else ""
    if {one.unit for one in findings} == {"words"}:
        return f"About people: words are associated with {count(findings, *HOLD):,} of {counted(tested, 'group')}."
    hold, corrected, opposite = count(findings, *HOLD), count(findings, "corrected"), count(findings, "opposite")
    scores = {one.unit for one in findings} <= _SCORES
    what = ("bias" if tested == 1 else "biases") if scores else "association" if tested == 1 else "associations"
    text = f"About people: {hold:,} of {tested:,} {what} {'holds' if 1 in (hold, tested) else 'hold'}"
    text += f", {corrected:,} after correction" if hold else ""
    return f"{text}; {opposite:,} {'runs' if opposite == 1 else 'run'} the other way." if opposite else f"{text}."


def _not_shown(findings: Sequence[Finding]) -> str:
    """What could have been seen of what was not; where it is little, the points say it one by one."""
    found = [(one.smallest, one.unit) for one in findings if one.standing == "not shown" and one.smallest is not None]
    if not found or (len(found) <= _FEW and _models(findings) == 1):
        return ""
    sizes, (unit, *_) = zip(*found, strict=True)
    seen = " to ".join(dict.fromkeys(decimals(end) for end in (min(sizes), max(sizes))))
    by_test = ", by test," if " to " in seen else ""
    return f"{len(found):,} {_are(len(found))} not established; {_would_be_found(f'{unit} of {seen}{by_test}')}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _too_few(findings: Sequence[Finding]) -> str:
    found: dict[str, list[str]] = {}
    for one in findings:
        if one.standing == "too few" and one.unit != "words":
            found.setdefault(one.few, []).append(one.item)
    several = _models(findings) > 1
    named = {few: counted(len(own), "result") if several else ", ".join(own) for few, own in found.items()}
    return " ".join(f"Too few {few} to tell: {items}." for few, items in named.items())


def _equivalent(findings: Sequence[Finding]) -> str:
    """Of how many it is shown that they do not matter, where that was asked; and what the others could show."""
    asked = [one for one in findings if one.margin is not None and one.bound is not None]
    if not asked:
        return ""
    margins = sorted({f"{one.margin:g}" for one in asked}, key=float)
    within = [one.item for one in asked if _within(one)]
    beyond = sorted(one.bound for one in asked if one.bound is not None and not _within(one))
    named = f" ({', '.join(within)})" if within and _models(findings) == 1 else ""
    cosines = f"{' or '.join(margins)} in cosine units"
    text = f"D is shown to be smaller than {cosines} in {len(within):,} of {counted(len(asked), 'test')}{named}"
    if not beyond:
        return f"{text}."
    ends = dict.fromkeys(f"{end:.3f}" for end in (beyond[0], beyond[-1]))
    left = "of the others" if within else "of them"
    return f"{text}; {left} only that it is smaller than {' to '.join(ends)}."


def _within(finding: Finding) -> bool:
    """Is it shown that the difference is smaller than the margin?"""
    return finding.margin is not None and finding.bound is not None and finding.bound <= finding.margin


def _about_method(findings: Sequence[Finding], models: int) -> str:
    findings = [one for one in findings if one.standing != "too few"]
    if not findings:
        return ""
    hold, checks = count(findings, *HOLD), counted(len(findings), "check")
    if models > 1:
        return f"The method works by {hold:,} of {checks}."
    return f"The method {'works' if hold == len(findings) else 'may not work'} on this model ({hold:,} of {checks})."


def _unmeasured(findings: Sequence[Finding]) -> str:
    items = [one.item for one in findings if one.standing == "not measured"]
    if not items:
        return ""
    return f"Not measured: {counted(len(items), 'result') if _models(findings) > 1 else ', '.join(items)}."


def points(findings: Sequence[Finding]) -> list[_Point]:
    """What is to be said about people, surest and then largest first: sentences, and the code names they end with."""
    people = [one for one in findings if one.about == "people"]
    if _models(findings) > 1:
        return _over_models(people, _models(findings))
    few = [one for one in people if one.smallest is not None]
    few = few if len(few) <= _FEW else []
    told = [o for o in people if o.standing not in _SILENT or o.survives or o in few or _within(o)]
    listed = [point for standing in _SAID for point in _of_standing([o for o in told if o.standing == standing])]
    return [*listed, *_large([o for o in people if o.standing == "not shown" and _is_large(o) and o not in told])]


def _large(findings: Sequence[Finding]) -> Iterator[_Point]:
    """Large effects that are not established, in one line: the largest of them by name."""
    if not findings:
        return
    largest = sorted(findings, key=lambda one: -abs(one.effect or 0.0))
    what = f"{len(largest):,} large effects are" if len(largest) > 1 else "1 large effect is"
    yield (
        f"{what} not established: |d| is {LARGE} or more, but with other words it may be nothing",
        f" ({_named(largest)})",
    )


def _named(findings: Sequence[Finding]) -> str:
    """The first of them by their code names."""
    more = f" and {len(findings) - _MOST:,} more" if len(findings) > _MOST else ""
    return f"{', '.join(one.item for one in findings[:_MOST])}{more}"


def _of_standing(findings: Iterable[Finding]) -> Iterator[_Point]:
    """The same said by several tests is one line, with the numbers of the largest effect."""
    lines: dict[tuple[str, ...], list[Finding]] = {}
    for one in sorted(findings, key=lambda one: -abs(one.effect or 0.0)):
        lines.setdefault((one.direction or one.title, *one.survives), []).append(one)
    for first, *others in list(lines.values())[:_MOST]:
        also = f"; also {', '.join(one.item for one in others)}" if others else ""
        yield sentence(first), f" ({first.item}{also})"
    if len(lines) > _MOST:
        rest = [one for same in list(lines.values())[_MOST:] for one in same]
        yield f"{len(rest):,} more: {_SAID[rest[0].standing]}", f" ({_named(rest)})"


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
    return f"{first.direction or first.title}: {holds}, median {unit_name(first.unit)} = {median}"
