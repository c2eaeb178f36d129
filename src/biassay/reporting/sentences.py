"""Describe findings in sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from biassay.reporting.document import Statement
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_interval,
    format_p,
    format_percent,
    format_share_of_time,
    unit_name,
)
from biassay.results.findings import Evidence, Finding, count_findings

__all__ = [
    "CLAIMED",
    "format_evidence",
    "make_points",
    "make_sentence",
    "make_statements",
    "passes_check",
    "summarize_findings",
]

_SAID: dict[Evidence, str] = {
    "significant": "significant",
    "uncorrected": "before correction only",
    "descriptive": "descriptive, not tested",
    "inconclusive": "inconclusive",
    "not_testable": "not testable",
}
_SILENT: tuple[Evidence, ...] = ("inconclusive", "not_testable")
CLAIMED: tuple[Evidence, ...] = ("significant", "uncorrected")
"""Evidence against the null hypothesis, after correction or before it only."""
_LEAD = "Before correction only (a lead, not a finding)"
_OPPOSITE = "opposite to the expected direction"
_SCORES = {"bias score", "share above one half", "ss above 50"}
_QUESTIONS = {"d", "score", "share", "log-odds"}
_MOST = 8  # lines of one evidence, and code names in one line
_WORDS = 3  # of the evidence
_FEW = 3  # inconclusive results, beyond which they are only counted
_RARE = 0.05
"""Share of random word sets with an effect as large, up to which a significant effect is called large."""
_ORDINARY = 0.1  # share of random word sets with an effect as large, from which on it belongs to the finding
_Point = tuple[str, str]


def make_sentence(finding: Finding) -> str:
    """One finding in a sentence, and what changes its reading; words only where they are all that there is."""
    if finding.evidence == "descriptive" and finding.words and finding.unit != "d":
        named = f"{finding.direction or finding.title}: {', '.join(finding.words[:_WORDS])}"
        return "; ".join([named, *_effect(finding), *_beside(finding)])
    numbers = [*_effect(finding), *_p(finding)]
    opposite = [_OPPOSITE] if finding.opposite else []
    if finding.about == "people" and finding.direction and finding.unit != "words":
        if finding.evidence == "inconclusive":
            return "; ".join([f"Inconclusive: {finding.direction}", ", ".join(numbers), *_beside(finding)])
        if finding.evidence == "uncorrected":
            said = ", ".join([*numbers, *opposite])
            return "; ".join([f"{_LEAD}: {finding.direction}", said, *_beside(finding)])
    parts = (*numbers, *["large"] * _is_large(finding), format_evidence(finding))
    words = finding.words[:_WORDS] if finding.unit == "words" else ()
    above = f" (above all {', '.join(words)})" if words else ""
    return "; ".join([f"{finding.direction or finding.title}{above}: {', '.join(parts)}", *_beside(finding)])


def format_evidence(finding: Finding) -> str:
    """The evidence for a finding in words, and that it runs against the expected direction."""
    if finding.evidence == "not_testable":
        return f"too few {'permutations' if finding.unit == 'words' else finding.few} to test"
    if finding.about == "method" and finding.evidence in (*CLAIMED, "inconclusive"):
        return "sanity check passed" if passes_check(finding) else "sanity check failed"
    said = _SAID.get(finding.evidence, finding.evidence)
    return f"{said}, {_OPPOSITE}" if finding.opposite else said


def passes_check(finding: Finding) -> bool:
    """Does a sanity check find what it must, in the right direction?"""
    return finding.evidence in CLAIMED and not finding.opposite


def _is_large(finding: Finding) -> bool:
    """Large is what random word sets of the same sizes rarely reach, and only if it is significant."""
    return finding.evidence == "significant" and finding.share_random is not None and finding.share_random <= _RARE


def _effect(finding: Finding) -> Iterator[str]:
    """The number of words is told with what they go with."""
    if finding.effect is None or finding.unit == "words":
        return
    span = f" (no interval: {finding.no_interval})" if finding.no_interval else ""
    if finding.low is not None:
        span = f" ({format_percent(finding.confidence)} {format_interval(finding.low, finding.high, finding.limit)})"
    yield f"{unit_name(finding.unit)} = {format_decimal(finding.effect)}{span}"


def _p(finding: Finding) -> Iterator[str]:
    """The first p-value that was computed; that of the crossed test needs no name."""
    known = [(name, value) for name, value in finding.p_values.items() if value is not None]
    for name, value in known[:1] if finding.evidence != "descriptive" and finding.unit != "words" else ():
        asked = name.removeprefix("crossed").replace("by word", "for these attribute words")
        yield f"{f'p {asked}'.strip()} = {format_p(value)}"


def _beside(finding: Finding) -> Iterator[str]:
    if finding.share_random is not None and finding.share_random >= _ORDINARY and finding.evidence not in _SILENT:
        yield f"random word sets reach this effect {format_share_of_time(finding.share_random, finding.random_sets)}"
    if finding.smallest is not None:
        yield f"80% power for {finding.unit} of {format_decimal(finding.smallest)}"
    yield from finding.survives
    yield from finding.notes


def make_statements(findings: Iterable[Finding]) -> list[Statement]:
    """What was found of every model, in short and then by finding; of very many models what they have in common."""
    by_model: dict[str, list[Finding]] = {}
    for one in findings:
        by_model.setdefault(one.model, []).append(one)
    if len(by_model) > MANY_MODELS:
        return [_statement(f"{len(by_model):,} models", [one for own in by_model.values() for one in own])]
    return [_statement(model, own) for model, own in by_model.items()]


def _statement(about: str, findings: Sequence[Finding]) -> Statement:
    listed = make_points(findings)
    return Statement(
        f"{about}: {summarize_findings(findings)}",
        tuple(f"{text}{name}" for text, name in listed),
        about,
        tuple(name for _, name in listed),
    )


def summarize_findings(findings: Sequence[Finding]) -> str:
    """Count significant questions first, then leads; then sanity checks, power, and what was not measured."""
    people, checks = ([one for one in _measured(findings) if one.about == about] for about in ("people", "method"))
    questions = [one for one in people if one.form_of is None]
    first = _social_bias(questions), _sanity_checks(checks)
    rest = _power(questions), _too_few([*people, *checks]), _equivalent(people), _skipped(findings)
    return " ".join(filter(None, (*first, *rest)))


def _measured(findings: Iterable[Finding]) -> list[Finding]:
    return [one for one in findings if one.evidence != "skipped"]


def _models(findings: Iterable[Finding]) -> int:
    return len({one.model for one in findings})


def _social_bias(findings: Sequence[Finding]) -> str:
    """How many questions are significant after correction, before correction only, and inconclusive."""
    tested = [one for one in findings if one.evidence in (*CLAIMED, "inconclusive")]
    if not tested:
        described = count_findings(findings, "descriptive")
        return f"{format_count(described, 'descriptive figure')}, without a test." if described else ""
    if {one.unit for one in tested} == {"words"}:
        found = count_findings(tested, "significant")
        return f"Words are associated with {found:,} of {format_count(len(tested), 'group')} (false discovery rate)."
    units = {one.unit for one in tested}
    noun = "social-bias question" if units <= _QUESTIONS else "bias score" if units <= _SCORES else "question"
    significant, leads, silent = (
        count_findings(tested, evidence) for evidence in ("significant", "uncorrected", "inconclusive")
    )
    families = list(dict.fromkeys(one.family for one in tested if one.family))
    over = f" ({families[0]})" if len(families) == 1 else ""
    parts = [
        f"{significant:,} of {format_count(len(tested), noun)} {'is' if 1 in (significant, len(tested)) else 'are'} "
        f"significant after correction{over}{_opposite(tested, 'significant')}"
    ]
    if leads:
        parts.append(f"{leads:,} more before correction only{_opposite(tested, 'uncorrected')} ({_by_chance(tested)})")
    if silent:
        parts.append(f"{silent:,} {_are(silent)} inconclusive")
    if outside := sum(one.exploratory for one in tested):
        parts.append(f"{outside:,} {_are(outside)} exploratory, not in the declared family")
    return f"{'; '.join(parts)}."


def _by_chance(findings: Sequence[Finding]) -> str:
    """The number of questions expected to have p at most alpha by chance; fewer if the test is conservative."""
    alphas = [1.0 - one.confidence for one in findings]
    product = f": {alphas[0]:.4g} × {len(alphas):,}" if len(set(alphas)) == 1 else ""
    return f"at most about {sum(alphas):.2g} expected by chance{product}"


def _opposite(findings: Sequence[Finding], evidence: Evidence) -> str:
    number = sum(one.opposite and one.evidence == evidence for one in findings)
    return f", {number:,} of them {_OPPOSITE}" if number else ""


def _power(findings: Sequence[Finding]) -> str:
    """What inconclusive questions could have detected; where they are few, the points say it one by one."""
    found = [(one.smallest, one.unit) for one in findings if one.evidence in _SILENT and one.smallest is not None]
    if not found or (len(found) <= _FEW and _models(findings) == 1):
        return ""
    sizes, (unit, *_) = zip(*found, strict=True)
    ends = list(dict.fromkeys(format_decimal(end) for end in (min(sizes), max(sizes))))
    depending = ", depending on the test" if len(ends) > 1 else ""
    return f"80% power for {unit} of {'–'.join(ends)}{depending}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _too_few(findings: Sequence[Finding]) -> str:
    found: dict[str, list[str]] = {}
    for one in findings:
        if one.evidence == "not_testable" and one.unit != "words":
            found.setdefault(one.few, []).append(one.item)
    several = _models(findings) > 1
    named = {few: format_count(len(own), "result") if several else ", ".join(own) for few, own in found.items()}
    return " ".join(f"Too few {few} to test: {items}." for few, items in named.items())


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
    text = f"D is shown to be smaller than {cosines} in {len(within):,} of {format_count(len(asked), 'test')}{named}"
    if not beyond:
        return f"{text}."
    ends = dict.fromkeys(f"{end:.3f}" for end in (beyond[0], beyond[-1]))
    left = "of the others" if within else "of them"
    return f"{text}; {left} only that it is smaller than {' to '.join(ends)}."


def _within(finding: Finding) -> bool:
    """Is it shown that the difference is smaller than the margin?"""
    return finding.margin is not None and finding.bound is not None and finding.bound <= finding.margin


def _sanity_checks(findings: Sequence[Finding]) -> str:
    findings = [one for one in findings if one.evidence in (*CLAIMED, "inconclusive")]
    if not findings:
        return ""
    passed = sum(map(passes_check, findings))
    advice = "" if passed == len(findings) else " A method that fails them says little about social bias."
    return f"Sanity checks passed: {passed:,} of {len(findings):,}.{advice}"


def _skipped(findings: Sequence[Finding]) -> str:
    items = [one.item for one in findings if one.evidence == "skipped"]
    if not items:
        return ""
    return f"Skipped: {format_count(len(items), 'result') if _models(findings) > 1 else ', '.join(items)}."


def make_points(findings: Sequence[Finding]) -> list[_Point]:
    """List findings about people, significant ones first, then by size: sentences, and the code names they end with.

    A question is one line, which ends with the names of all its forms that have the same evidence.
    """
    people = [one for one in findings if one.about == "people"]
    questions = [one for one in people if one.form_of is None]
    if _models(findings) > 1:
        return _over_models(questions, _models(findings))
    few = [one for one in questions if one.smallest is not None]
    few = few if len(few) <= _FEW else []
    told = [o for o in questions if o.evidence not in _SILENT or o.survives or o in few or _within(o)]
    told += [one for one in people if one.form_of is not None and one.survives]
    forms: dict[str, list[str]] = {}
    for one in people:
        if one.form_of is not None and one not in told:
            forms.setdefault(f"{one.form_of} {one.evidence} {one.opposite}", []).append(one.item)
    return [point for evidence in _SAID for point in _of_standing([o for o in told if o.evidence == evidence], forms)]


def _named(findings: Sequence[Finding]) -> str:
    """The first of them by their code names."""
    more = f" and {len(findings) - _MOST:,} more" if len(findings) > _MOST else ""
    return f"{', '.join(one.item for one in findings[:_MOST])}{more}"


def _of_standing(findings: Iterable[Finding], forms: Mapping[str, Sequence[str]]) -> Iterator[_Point]:
    """Questions with one answer are one line, with the numbers of the largest effect."""
    lines: dict[tuple[object, ...], list[Finding]] = {}
    for one in sorted(findings, key=lambda one: -abs(one.effect or 0.0)):
        lines.setdefault((one.direction or one.title, one.opposite, *one.survives), []).append(one)

    def names(one: Finding) -> str:
        return ", ".join([one.item, *forms.get(f"{one.item} {one.evidence} {one.opposite}", ())])

    for first, *others in list(lines.values())[:_MOST]:
        also = f"; also {', '.join(map(names, others))}" if others else ""
        yield make_sentence(first), f" ({names(first)}{also})"
    if len(lines) > _MOST:
        rest = [one for same in list(lines.values())[_MOST:] for one in same]
        yield f"{len(rest):,} more: {_SAID[rest[0].evidence]}", f" ({_named(rest)})"


def _over_models(findings: Sequence[Finding], models: int) -> list[_Point]:
    """The questions that are significant on most models, with their median effect there; if none is, the leads."""
    sure = count_findings(findings, "significant") > 0
    by_item: dict[str, list[Finding]] = {}
    for one in findings:
        if one.evidence == "significant" or (one.evidence == "uncorrected" and not sure):
            by_item.setdefault(one.item, []).append(one)
    often = sorted(by_item.values(), key=lambda same: -len(same))[:_MOST]
    return [(_over(same, models), f" ({same[0].item})") for same in often]


def _over(findings: Sequence[Finding], models: int) -> str:
    first = findings[0]
    median = format_decimal(statistics.median(one.effect or 0.0 for one in findings))
    said = _SAID[first.evidence] if first.evidence != "uncorrected" else _LEAD[0].lower() + _LEAD[1:]
    on = f"{said} on {len(findings):,} of {models:,} models"
    return f"{first.direction or first.title}: {on}, median {unit_name(first.unit)} = {median}"
