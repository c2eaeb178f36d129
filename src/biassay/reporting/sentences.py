"""Describe findings in sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from biassay.grouping import group_pairs
from biassay.reporting.document import Statement
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_interval,
    format_p_relation,
    format_percent,
    format_share_of_time,
    unit_name,
)
from biassay.results.findings import Finding, count_findings, sort_by_topic
from biassay.results.outcomes import Evidence

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
_LEADS = "Before correction only (leads, not findings):"
_OPPOSITE = "opposite to the expected direction"
_SCORES = {"bias score", "share above one half", "ss above 50"}
_QUESTIONS = {"d", "score", "share", "log-odds"}
_MOST = 8  # lines per grade of evidence, and code names per line
_WORDS = 3  # words named as evidence
_FEW = 3  # inconclusive results that are listed; more are only counted
_RARE = 0.05
"""A significant effect is called large if at most this share of random word sets reaches it."""
_ORDINARY = 0.1  # share of random word sets with an effect as large, from which the sentence mentions it
_Point = tuple[str, str]


def make_sentence(finding: Finding, *, is_listed: bool = False) -> str:
    """Write a finding in a sentence, with remarks that change its reading.

    Parameters
    ----------
    finding : Finding
    is_listed : bool
        If True, the sentence is in a list whose heading says that leads are significant before correction only.
    """
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
            claim = finding.direction if is_listed else f"{_LEAD}: {finding.direction}"
            separator = ": " if is_listed else "; "
            return "; ".join([f"{claim}{separator}{said}", *_beside(finding)])
    parts = (*numbers, format_evidence(finding), *["large"] * _is_large(finding))
    words = finding.words[:_WORDS] if finding.unit == "words" else ()
    above = f" (above all {', '.join(words)})" if words else ""
    return "; ".join([f"{finding.direction or finding.title}{above}: {', '.join(parts)}", *_beside(finding)])


def format_evidence(finding: Finding) -> str:
    """Format the evidence of a finding, and whether it opposes the expected direction."""
    if finding.evidence == "not_testable":
        return f"too few {'permutations' if finding.unit == 'words' else finding.too_few_of} to test"
    if finding.about == "method" and finding.evidence in (*CLAIMED, "inconclusive"):
        return "sanity check passed" if passes_check(finding) else "sanity check failed"
    said = _SAID.get(finding.evidence, finding.evidence)
    return f"{said}, {_OPPOSITE}" if finding.opposite else said


def passes_check(finding: Finding) -> bool:
    """Return whether a sanity check has a result in the right direction."""
    return finding.evidence in CLAIMED and not finding.opposite


def _is_large(finding: Finding) -> bool:
    """Return whether the effect is large: significant, and rare among random word sets of the same sizes."""
    return finding.evidence == "significant" and finding.share_random is not None and finding.share_random <= _RARE


def _effect(finding: Finding) -> Iterator[str]:
    """Yield the effect with its interval; a number of words is part of the claim."""
    if finding.effect is None or finding.unit == "words":
        return
    span = f" (no interval: {finding.no_interval})" if finding.no_interval else ""
    if finding.low is not None:
        interval = format_interval(finding.low, finding.high, finding.limit)
        span = f", {format_percent(finding.confidence)} CI {interval}"
    yield f"{unit_name(finding.unit)} = {format_decimal(finding.effect)}{span}"


def _p(finding: Finding) -> Iterator[str]:
    """Yield the first computed p-value; the crossed test needs no name."""
    known = [(name, value) for name, value in finding.p_values.items() if value is not None]
    for name, value in known[:1] if finding.evidence != "descriptive" and finding.unit != "words" else ():
        asked = name.removeprefix("crossed").replace("by word", "for these attribute words")
        yield f"{f'p {asked}'.strip()} {format_p_relation(value)}"


def _beside(finding: Finding) -> Iterator[str]:
    if finding.share_random is not None and finding.share_random >= _ORDINARY and finding.evidence not in _SILENT:
        yield f"random word sets reach this effect {format_share_of_time(finding.share_random, finding.random_sets)}"
    if finding.smallest is not None:
        yield f"80% power for {finding.unit} of {format_decimal(finding.smallest)}"
    yield from finding.robustness
    yield from finding.notes


def make_statements(findings: Iterable[Finding]) -> list[Statement]:
    """Summarize the findings of every model, then list them; summarize very many models together."""
    by_model = group_pairs((finding.model, finding) for finding in findings)
    if len(by_model) > MANY_MODELS:
        return [_statement(f"{len(by_model):,} models", [finding for own in by_model.values() for finding in own])]
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
    people, checks = (
        [finding for finding in _measured(findings) if finding.about == about] for about in ("people", "method")
    )
    questions = [finding for finding in people if finding.form_of is None]
    first = _social_bias(questions), _sanity_checks(checks)
    rest = _power(questions), _too_few([*people, *checks]), _equivalent(people), _skipped(findings)
    return " ".join(filter(None, (*first, *rest)))


def _measured(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.evidence != "skipped"]


def _models(findings: Iterable[Finding]) -> int:
    return len({finding.model for finding in findings})


def _social_bias(findings: Sequence[Finding]) -> str:
    """Count questions that are significant after correction, before correction only, and inconclusive."""
    tested = [finding for finding in findings if finding.evidence in (*CLAIMED, "inconclusive")]
    if not tested:
        described = count_findings(findings, "descriptive")
        return f"{format_count(described, 'descriptive figure')}, without a test." if described else ""
    if {finding.unit for finding in tested} == {"words"}:
        found = count_findings(tested, "significant")
        return f"Words are associated with {found:,} of {format_count(len(tested), 'group')} (false discovery rate)."
    units = {finding.unit for finding in tested}
    noun = "social-bias question" if units <= _QUESTIONS else "bias score" if units <= _SCORES else "question"
    significant, leads, silent = (
        count_findings(tested, evidence) for evidence in ("significant", "uncorrected", "inconclusive")
    )
    families = list(dict.fromkeys(finding.family for finding in tested if finding.family))
    over = f" ({families[0]})" if len(families) == 1 else ""
    parts = [
        f"{significant:,} of {format_count(len(tested), noun)} {'is' if 1 in (significant, len(tested)) else 'are'} "
        f"significant after correction{over}{_opposite(tested, 'significant')}"
    ]
    if leads:
        only = f"{leads:,} more {_are(leads)} significant before correction only{_opposite(tested, 'uncorrected')}"
        parts.append(f"{only} ({_by_chance(tested)})")
    if silent:
        parts.append(f"{silent:,} {_are(silent)} inconclusive")
    if outside := sum(finding.exploratory for finding in tested):
        parts.append(f"{outside:,} {_are(outside)} exploratory, not in the declared family")
    return f"{'. '.join(parts)}."


def _by_chance(findings: Sequence[Finding]) -> str:
    """Format the number of questions with p at most alpha expected by chance."""
    alphas = [1.0 - finding.confidence for finding in findings]
    product = f": {alphas[0]:.4g} × {len(alphas):,}" if len(set(alphas)) == 1 else ""
    return f"at most about {sum(alphas):.2g} expected by chance{product}"


def _opposite(findings: Sequence[Finding], evidence: Evidence) -> str:
    number = sum(finding.opposite and finding.evidence == evidence for finding in findings)
    return f", {number:,} of them {_OPPOSITE}" if number else ""


def _power(findings: Sequence[Finding]) -> str:
    """Describe what inconclusive questions could have detected, unless the points list it."""
    found = [
        (finding.smallest, finding.unit)
        for finding in findings
        if finding.evidence in _SILENT and finding.smallest is not None
    ]
    if not found or (len(found) <= _FEW and _models(findings) == 1):
        return ""
    sizes, (unit, *_) = zip(*found, strict=True)
    ends = list(dict.fromkeys(format_decimal(end) for end in (min(sizes), max(sizes))))
    depending = ", depending on the test" if len(ends) > 1 else ""
    return f"80% power for {unit} of {'–'.join(ends)}{depending}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _too_few(findings: Sequence[Finding]) -> str:
    untested = (finding for finding in findings if finding.evidence == "not_testable" and finding.unit != "words")
    found = group_pairs((one.too_few_of, one.item) for one in untested)
    several = _models(findings) > 1
    named = {few: format_count(len(own), "result") if several else ", ".join(own) for few, own in found.items()}
    return " ".join(f"Too few {few} to test: {items}." for few, items in named.items())


def _equivalent(findings: Sequence[Finding]) -> str:
    """Count the tests whose difference is within the margin, and report the bounds of the others."""
    asked = [finding for finding in findings if finding.margin is not None and finding.bound is not None]
    if not asked:
        return ""
    margins = sorted({f"{finding.margin:g}" for finding in asked}, key=float)
    within = [finding.item for finding in asked if _within(finding)]
    beyond = sorted(finding.bound for finding in asked if finding.bound is not None and not _within(finding))
    named = f" ({', '.join(within)})" if within and _models(findings) == 1 else ""
    cosines = f"{' or '.join(margins)} in cosine units"
    text = f"D is shown to be smaller than {cosines} in {len(within):,} of {format_count(len(asked), 'test')}{named}"
    if not beyond:
        return f"{text}."
    ends = dict.fromkeys(f"{end:.3f}" for end in (beyond[0], beyond[-1]))
    left = "of the others" if within else "of them"
    return f"{text}; {left} only that it is smaller than {' to '.join(ends)}."


def _within(finding: Finding) -> bool:
    """Return whether the difference is smaller than the margin, with confidence."""
    return finding.margin is not None and finding.bound is not None and finding.bound <= finding.margin


def _sanity_checks(findings: Sequence[Finding]) -> str:
    findings = [finding for finding in findings if finding.evidence in (*CLAIMED, "inconclusive")]
    if not findings:
        return ""
    passed = sum(map(passes_check, findings))
    advice = "" if passed == len(findings) else " Do not trust a method that fails them."
    return f"Sanity checks passed: {passed:,} of {len(findings):,}.{advice}"


def _skipped(findings: Sequence[Finding]) -> str:
    items = [finding.item for finding in findings if finding.evidence == "skipped"]
    if not items:
        return ""
    return f"Skipped: {format_count(len(items), 'result') if _models(findings) > 1 else ', '.join(items)}."


def make_points(findings: Sequence[Finding]) -> list[_Point]:
    """List social-bias findings, significant ones first, then by size: sentences, and the code names at their end.

    A question is one line, which ends with the names of all its forms that have the same evidence.
    """
    people = [finding for finding in findings if finding.about == "people"]
    questions = [finding for finding in people if finding.form_of is None]
    if _models(findings) > 1:
        return _over_models(questions, _models(findings))
    few = [finding for finding in questions if finding.smallest is not None]
    few = few if len(few) <= _FEW else []
    listed_findings = [o for o in questions if o.evidence not in _SILENT or o.robustness or o in few or _within(o)]
    listed_findings += [finding for finding in people if finding.form_of is not None and finding.robustness]
    unlisted = [finding for finding in people if finding.form_of is not None and finding not in listed_findings]
    forms = group_pairs((f"{one.form_of} {one.evidence} {one.opposite}", one.item) for one in unlisted)
    points: list[_Point] = []
    for evidence in _SAID:
        listed = list(_list_questions([finding for finding in listed_findings if finding.evidence == evidence], forms))
        points += [(_LEADS, ""), *listed] if listed and evidence == "uncorrected" else listed
    return points


def _named(findings: Sequence[Finding]) -> str:
    """List the first findings by code name."""
    more = f" and {len(findings) - _MOST:,} more" if len(findings) > _MOST else ""
    return f"{', '.join(finding.item for finding in findings[:_MOST])}{more}"


def _list_questions(findings: Iterable[Finding], forms: Mapping[str, Sequence[str]]) -> Iterator[_Point]:
    """List questions by topic and effect; questions with one answer are one line, with the largest effect."""
    ordered = sort_by_topic(list(findings))
    lines = group_pairs(
        ((entry.direction or entry.title, entry.opposite, *entry.robustness), entry) for entry in ordered
    )

    def names(finding: Finding) -> str:
        return ", ".join([finding.item, *forms.get(f"{finding.item} {finding.evidence} {finding.opposite}", ())])

    for first, *others in list(lines.values())[:_MOST]:
        also = f"; also {', '.join(map(names, others))}" if others else ""
        yield make_sentence(first, is_listed=True), f" ({names(first)}{also})"
    if len(lines) > _MOST:
        rest = [finding for same in list(lines.values())[_MOST:] for finding in same]
        yield f"{len(rest):,} more: {_SAID[rest[0].evidence]}", f" ({_named(rest)})"


def _over_models(findings: Sequence[Finding], models: int) -> list[_Point]:
    """List the questions that are significant on most models, with their median effect; leads if none is."""
    sure = count_findings(findings, "significant") > 0
    wanted = ("significant",) if sure else ("significant", "uncorrected")
    by_item = group_pairs((finding.item, finding) for finding in findings if finding.evidence in wanted)
    often = sorted(by_item.values(), key=lambda same: -len(same))[:_MOST]
    return [(_over(same, models), f" ({same[0].item})") for same in often]


def _over(findings: Sequence[Finding], models: int) -> str:
    first = findings[0]
    median = format_decimal(statistics.median(finding.effect or 0.0 for finding in findings))
    said = _SAID[first.evidence] if first.evidence != "uncorrected" else _LEAD[0].lower() + _LEAD[1:]
    on = f"{said} on {len(findings):,} of {models:,} models"
    return f"{first.direction or first.title}: {on}, median {unit_name(first.unit)} = {median}"
