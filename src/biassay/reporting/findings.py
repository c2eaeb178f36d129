"""Describe findings: sentences, counts, tables and forest plots."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from biassay.grouping import group_pairs
from biassay.reporting.charts.base import Drawing, Figure, Style
from biassay.reporting.charts.forest import ForestRow, draw_forest
from biassay.reporting.document import Cell, ColumnSpan, RowGroup, Statement, Table, TableRow, side_by_side
from biassay.reporting.formats import (
    MANY_MODELS,
    format_count,
    format_decimal,
    format_examples,
    format_interval,
    format_p,
    format_p_relation,
    format_percent,
    format_share_of_time,
    unit_name,
)
from biassay.results.outcomes import Evidence, Finding, count_findings, sort_by_topic

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
    counts = _count("", findings)
    untested = group_pairs(
        (one.too_few_of, one.item) for one in findings if one.evidence == "not_testable" and one.unit != "words"
    )
    parts = [_summarize_questions(findings, counts)]
    if counts.checks:
        advice = "" if counts.checks_passed == counts.checks else " Do not trust a method that fails them."
        parts.append(f"Sanity checks passed: {counts.checks_passed:,} of {counts.checks:,}.{advice}")
    parts += [describe_power(findings)]
    parts += [f"Too few {few} to test: {_name_items(items, findings)}." for few, items in untested.items()]
    parts += [_summarize_bounds(findings)]
    if counts.skipped:
        parts.append(f"Skipped: {_name_items(counts.skipped, findings)}.")
    return " ".join(filter(None, parts))


def _name_items(items: Sequence[str], findings: Sequence[Finding]) -> str:
    """List the items if the findings are of one model; otherwise count them."""
    return format_count(len(items), "result") if _has_models(findings) else ", ".join(items)


def _summarize_questions(findings: Sequence[Finding], counts: ModelCounts) -> str:
    """Count questions that are significant after correction, before correction only, and inconclusive."""
    if not counts.questions:
        return (
            f"{format_count(counts.descriptive, 'descriptive figure')}, without a test." if counts.descriptive else ""
        )
    families = list(dict.fromkeys(finding.family for finding in findings if finding.family))
    over = (f" ({families[0]})" if len(families) == 1 else "") + _count_opposite(findings, "significant")
    of = f"of {format_count(counts.questions, name_questions(findings))}"
    verb = "is" if 1 in (counts.significant, counts.questions) else "are"
    parts = [f"{counts.significant:,} {of} {verb} significant after correction{over}"]
    if counts.uncorrected:
        more = f"{counts.uncorrected:,} more {_are(counts.uncorrected)} significant before correction only"
        more += _count_opposite(findings, "uncorrected")
        parts.append(f"{more} ({_format_expected([counts])})")
    if counts.inconclusive:
        parts.append(f"{counts.inconclusive:,} {_are(counts.inconclusive)} inconclusive")
    if counts.exploratory:
        parts.append(f"{counts.exploratory:,} {_are(counts.exploratory)} exploratory, not in the declared family")
    return f"{'. '.join(parts)}."


def _count_opposite(findings: Sequence[Finding], evidence: Evidence) -> str:
    questions = [one for one in findings if one.about == "people" and one.form_of is None]
    number = sum(one.opposite and one.evidence == evidence for one in questions)
    return f", {number:,} of them {_OPPOSITE}" if number else ""


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _summarize_bounds(findings: Sequence[Finding]) -> str:
    """Count the tests whose difference is within the margin, and give the bounds of the others."""
    asked = [one for one in findings if one.about == "people" and one.margin is not None and one.bound is not None]
    if not asked:
        return ""
    margins = sorted({f"{finding.margin:g}" for finding in asked}, key=float)
    within = [finding.item for finding in asked if _is_within(finding)]
    beyond = sorted(finding.bound for finding in asked if finding.bound is not None and not _is_within(finding))
    named = f" ({', '.join(within)})" if within and not _has_models(findings) else ""
    cosines = f"{' or '.join(margins)} in cosine units"
    text = f"D is shown to be smaller than {cosines} in {len(within):,} of {format_count(len(asked), 'test')}{named}"
    ends = dict.fromkeys(f"{end:.3f}" for end in (beyond[:1] + beyond[-1:]))
    return f"{text}; upper bound in the others: {' to '.join(ends)}." if ends else f"{text}."


def _is_within(finding: Finding) -> bool:
    """Return True if the upper bound of the difference is within the margin."""
    return finding.margin is not None and finding.bound is not None and finding.bound <= finding.margin


def make_points(findings: Sequence[Finding]) -> list[_Point]:
    """List social-bias findings, significant ones first, then by size: sentences, and the code names at their end.

    A question is one line, which ends with the names of all its forms that have the same evidence.
    """
    people = [finding for finding in findings if finding.about == "people"]
    if _has_models(people):
        return _list_over_models([finding for finding in people if finding.form_of is None])
    people = [replace(one, form_of=None) if one.robustness else one for one in people]
    few = [finding for finding in people if finding.form_of is None and finding.smallest is not None]
    few = few if len(few) <= _FEW else []
    points: list[_Point] = []
    for evidence, said in _SAID.items():
        entries = [
            (finding, names)
            for finding, names in list_questions(people, evidence)
            if evidence not in _SILENT or finding.robustness or finding in few or _is_within(finding)
        ]
        lines = [
            (make_sentence(finding, is_listed=True), f" ({', '.join(names)})") for finding, names in entries[:_MOST]
        ]
        if rest := [names[0] for _, names in entries[_MOST:]]:
            lines.append((f"{len(rest):,} more: {said}", f" ({format_examples(rest, _MOST)})"))
        points += [(_LEADS, "")] * (evidence == "uncorrected" and bool(lines)) + lines
    return points


def _list_over_models(findings: Sequence[Finding]) -> list[_Point]:
    """List the questions that are significant on most models, or else those significant before correction only."""
    models = len({finding.model for finding in findings})
    sure = count_findings(findings, "significant") > 0
    wanted = ("significant",) if sure else ("significant", "uncorrected")
    by_item = group_pairs((finding.item, finding) for finding in findings if finding.evidence in wanted)
    points = []
    for same in sorted(by_item.values(), key=lambda same: -len(same))[:_MOST]:
        first, median = same[0], format_decimal(statistics.median(finding.effect or 0.0 for finding in same))
        said = f"{_SAID[first.evidence]} on {len(same):,} of {models:,} models"
        text = f"{first.direction or first.title}: {said}, median {unit_name(first.unit)} = {median}"
        points.append((text, f" ({first.item})"))
    return points


_TESTED: tuple[Evidence, ...] = ("significant", "uncorrected", "inconclusive")
_MAX_TITLE_MODELS = 3
_MAX_SIDE_BY_SIDE = 4  # models
_MAX_SKIPPED = 4  # names of tests


@dataclass(frozen=True)
class ModelCounts:
    """Counts of one model's questions by evidence, and of its sanity checks.

    Attributes
    ----------
    model : str
    questions : int
        Tested questions; a question counts once, whatever its forms.
    significant, uncorrected, inconclusive, not_testable, descriptive : int
    opposite : int
        Significant questions against the expected direction.
    exploratory : int
        Tested questions outside the declared family.
    expected : float
        Questions with a p-value at most alpha that are expected by chance.
    checks, checks_passed : int
        Sanity checks.
    skipped : tuple of str
        Names of skipped tests.
    power : tuple of (float, str), optional
        Smallest effect that an inconclusive question detects with 80% power, and its scale.
    """

    model: str
    questions: int
    significant: int
    uncorrected: int
    inconclusive: int
    not_testable: int
    descriptive: int
    opposite: int
    exploratory: int
    expected: float
    checks: int
    checks_passed: int
    skipped: tuple[str, ...]
    power: tuple[float, str] | None


def count_by_model(findings: Iterable[Finding]) -> list[ModelCounts]:
    """Count the questions of every model by evidence."""
    return [_count(model, own) for model, own in group_pairs((finding.model, finding) for finding in findings).items()]


def _count(model: str, findings: Sequence[Finding]) -> ModelCounts:
    questions = [finding for finding in findings if finding.about == "people" and finding.form_of is None]
    tested = [finding for finding in questions if finding.evidence in _TESTED]
    checks = [finding for finding in findings if finding.about == "method" and finding.evidence in _TESTED]
    powers = [
        (model.smallest, model.unit)
        for model in tested
        if model.evidence == "inconclusive" and model.smallest is not None
    ]
    return ModelCounts(
        model,
        len(tested),
        count_findings(tested, "significant"),
        count_findings(tested, "uncorrected"),
        count_findings(tested, "inconclusive"),
        count_findings(questions, "not_testable"),
        count_findings(questions, "descriptive"),
        sum(model.opposite and model.evidence == "significant" for model in tested),
        sum(model.exploratory for model in tested),
        sum(1.0 - model.confidence for model in tested),
        len(checks),
        sum(map(passes_check, checks)),
        tuple(finding.item for finding in findings if finding.evidence == "skipped"),
        min(powers, default=None),
    )


def name_questions(findings: Iterable[Finding]) -> str:
    """Return the noun for the questions of a study: social-bias question, group, figure."""
    people = [finding for finding in findings if finding.about == "people"]
    if people and {finding.unit for finding in people} == {"words"}:
        return "group"
    if people and all(finding.evidence in ("descriptive", "skipped") for finding in people):
        return "descriptive figure"
    return "social-bias question"


def format_title(findings: Sequence[Finding]) -> str:
    """Format the finding of a report in one sentence per model.

    For example: "glove: 2 of 19 social-bias questions are significant. USE: none of 21".

    More than three models are summarized in one sentence.
    """
    counts, noun = count_by_model(findings), name_questions(findings)
    tested = [model for model in counts if model.questions]
    if not tested:
        described = sum(model.descriptive for model in counts)
        return f"{format_count(described, noun)}, none of them tested" if described else "No result could be tested"
    if len(tested) > _MAX_TITLE_MODELS:
        found = sum(model.significant > 0 for model in tested)
        return f"{found:,} of {len(tested):,} models have a significant {noun}"
    sentences: list[str] = []
    for model in tested:
        total = f" of {format_count(model.questions, noun)}" if not sentences else f" of {model.questions:,}"
        if not model.significant:
            said = f"none{total} is significant" if not sentences else f"none{total}"
        else:
            verb = "is" if model.significant == 1 else "are"
            said = (
                f"{model.significant:,}{total} {verb} significant" if not sentences else f"{model.significant:,}{total}"
            )
        sentences.append(f"{model.model}: {said}")
    return ". ".join(sentences)


def make_counts_table(findings: Sequence[Finding]) -> Table | None:
    """Make the table of counts: models across, or down if they are many. Return None if there is nothing to count."""
    counts, noun = count_by_model(findings), name_questions(findings)
    lines = _list_count_lines(counts, f"{noun[0].upper()}{noun[1:]}s")
    if not lines:
        return None
    if len(counts) <= _MAX_SIDE_BY_SIDE:
        spans = (*(ColumnSpan(model.model) for model in counts), ColumnSpan("", text=True))
        rows = [TableRow((label,), (*(Cell(get(model)) for model in counts), Cell(note))) for label, get, note in lines]
        return Table("", ("",), spans, (RowGroup("", tuple(rows)),))
    spans = tuple(ColumnSpan(label.strip().lower()) for label, _, _ in lines)
    rows = [TableRow((model.model,), tuple(Cell(get(model)) for _, get, _ in lines)) for model in counts]
    return Table("", ("Model",), spans, (RowGroup("", tuple(rows)),))


_CountLine = tuple[str, Callable[[ModelCounts], str], str]


def _list_count_lines(counts: Sequence[ModelCounts], noun: str) -> list[_CountLine]:
    """List the rows of the table of counts: label, cell and note."""
    lines: list[_CountLine] = []
    if any(model.questions for model in counts):
        lines += [
            (noun, lambda model: f"{model.questions:,}", ""),
            ("  significant", lambda model: f"{model.significant:,}", "after correction"),
            ("  before correction only", lambda model: f"{model.uncorrected:,}", _format_expected(counts)),
            ("  inconclusive", lambda model: f"{model.inconclusive:,}", ""),
        ]
        if any(model.exploratory for model in counts):
            lines.append(("  exploratory", lambda model: f"{model.exploratory:,}", "not in the declared family"))
    elif any(model.descriptive for model in counts):
        lines.append((noun, lambda model: f"{model.descriptive:,}", "not tested"))
    if any(model.opposite for model in counts):
        lines.insert(2, ("  of them opposite", lambda model: f"{model.opposite:,}", "against the expected direction"))
    if any(model.not_testable for model in counts):
        lines.append(("Not testable", lambda model: f"{model.not_testable:,}", "too few words or items"))
    if any(model.checks for model in counts):
        advice = "" if all(model.checks == model.checks_passed for model in counts) else "failed: do not trust the rest"
        lines.append(("Sanity checks passed", lambda model: f"{model.checks_passed}/{model.checks}", advice))
    skipped = list(dict.fromkeys(name for model in counts for name in model.skipped))
    if skipped:
        more = f" and {len(skipped) - _MAX_SKIPPED:,} more" if len(skipped) > _MAX_SKIPPED else ""
        lines.append(("Skipped", lambda model: f"{len(model.skipped):,}", f"{', '.join(skipped[:_MAX_SKIPPED])}{more}"))
    return lines


def _format_expected(counts: Sequence[ModelCounts]) -> str:
    expected = sorted(
        {f"{model.expected:.1g}" if model.expected < 1 else f"{model.expected:.0f}" for model in counts}, key=float
    )
    return f"at most about {' to '.join(dict.fromkeys((expected[0], expected[-1])))} expected by chance"


def list_questions(findings: Iterable[Finding], *evidence: Evidence) -> list[tuple[Finding, tuple[str, ...]]]:
    """List the questions of some evidence, largest effect first within a model, with the names of their forms.

    Questions of one model with the same claim are one entry.
    """
    people = [finding for finding in findings if finding.about == "people"]
    forms = group_pairs(
        ((finding.model, finding.form_of, finding.evidence), finding.item)
        for finding in people
        if finding.form_of is not None
    )
    models = list(dict.fromkeys(finding.model for finding in people))
    chosen = [finding for finding in people if finding.evidence in evidence and finding.form_of is None]
    entries: dict[tuple[Any, ...], tuple[Finding, list[str]]] = {}
    for finding in sorted(sort_by_topic(chosen), key=lambda finding: models.index(finding.model)):
        claim = finding.claim or finding.direction or finding.title
        key = (finding.model, claim, finding.opposite, *finding.robustness)
        _, names = entries.setdefault(key, (finding, []))
        names += [finding.item, *forms.get((finding.model, finding.item, finding.evidence), ())]
    return [(finding, tuple(names)) for finding, names in entries.values()]


def make_evidence_table(findings: Sequence[Finding], title: str, *evidence: Evidence, most: int = 0) -> Table | None:
    """Make a table of the questions with some evidence: claim, effect, interval, names of the tests, model if several.

    Parameters
    ----------
    findings : sequence of Finding
    title : str
        Caption of the table.
    *evidence : str
        Evidence of the questions to list.
    most : int
        Largest number of rows per model; 0 for all.
    """
    return _make_entries_table(title, list_questions(findings, *evidence), most, has_models=_has_models(findings))


def make_checks_table(findings: Sequence[Finding]) -> Table | None:
    """Make a table of the sanity checks, each with its result."""
    checks = [finding for finding in findings if finding.about == "method" and finding.evidence in _TESTED]
    results = {True: "passed", False: "failed"}
    entries = [(finding, (finding.item, results[passes_check(finding)])) for finding in checks]
    return _make_entries_table("Sanity checks", entries, 0, has_models=_has_models(findings))


def _has_models(findings: Sequence[Finding]) -> bool:
    return len({finding.model for finding in findings}) > 1


def _make_entries_table(
    title: str, entries: Sequence[tuple[Finding, tuple[str, ...]]], most: int, *, has_models: bool
) -> Table | None:
    """Make a table of entries, with a column of models if there are several."""
    if not entries:
        return None
    confidence = " or ".join(dict.fromkeys(format_percent(finding.confidence) for finding, _ in entries))
    units = list(dict.fromkeys(finding.unit for finding, _ in entries))
    has_interval = any(finding.low is not None for finding, _ in entries)
    rows: list[TableRow] = []
    for model in dict.fromkeys(finding.model for finding, _ in entries):
        own = [(finding, names) for finding, names in entries if finding.model == model]
        for index, (finding, names) in enumerate(own[: most or None]):
            label = (model if index == 0 else "",) * has_models
            rows.append(TableRow((*label, _get_claim(finding)), _make_cells(finding, names, has_interval=has_interval)))
        if most and len(own) > most:
            rows.append(TableRow((*("",) * has_models, f"… {len(own) - most:,} more"), (Cell(""),) * 3))
    second = f"{confidence} CI" if has_interval else "p"
    spans = (ColumnSpan(" or ".join(units)), ColumnSpan(second), ColumnSpan("", text=True))
    return Table(title, ("",) * (1 + has_models), spans, (RowGroup("", tuple(rows)),))


def format_effect(finding: Finding) -> str:
    """Format an effect, without decimals if it is a number of words."""
    is_count = finding.unit == "words" and finding.effect is not None
    return f"{finding.effect:,.0f}" if is_count else format_decimal(finding.effect)


def _get_claim(finding: Finding) -> str:
    claim = finding.claim or finding.direction or finding.title
    return f"{claim} (opposite direction)" if finding.opposite else claim


def _make_cells(finding: Finding, names: Sequence[str], *, has_interval: bool) -> tuple[Cell, ...]:
    if has_interval:
        second = "–" if finding.low is None else format_interval(finding.low, finding.high, finding.limit)
    else:
        second = format_p(finding.p_value)
    return Cell(format_effect(finding)), Cell(second), Cell(", ".join(names))


def list_skipped(findings: Iterable[Finding]) -> list[str]:
    """List the reasons for skipped tests, each once, with the models and tests."""
    skipped = [finding for finding in findings if finding.evidence == "skipped" and finding.reason]
    reasons = group_pairs(((one.model, one.reason), one.item) for one in skipped)
    return [f"{model}: skipped {format_examples(tests, 4)}: {reason}" for (model, reason), tests in reasons.items()]


def describe_power(findings: Sequence[Finding]) -> str:
    """Describe what inconclusive questions could have detected; empty if none is inconclusive."""
    counts = count_by_model(findings)
    if not any(model.inconclusive for model in counts):
        return ""
    powers = [(model.model, model.power) for model in counts if model.power is not None]
    if not powers:
        return "Inconclusive does not mean unbiased."
    unit = powers[0][1][1]
    if len(powers) > _MAX_SIDE_BY_SIDE:
        sizes = [power[0] for _, power in powers]
        best = "–".join(dict.fromkeys(map(format_decimal, (min(sizes), max(sizes)))))
    elif len(powers) == 1:
        best = format_decimal(powers[0][1][0])
    else:
        best = ", ".join(f"{format_decimal(power[0])} ({label})" for label, power in powers)
    return f"Inconclusive does not mean unbiased: 80% power needs {unit} above {best} at best."


SANITY_CHECKS = "Sanity checks"


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
    lacking = any(finding.effect is not None and finding.p_corrected is None for finding in findings)
    note = " No corrected p: a sanity check, or no p-value." if lacking else ""
    whole_caption = f"{caption} Effect: {unit}. p: two-sided; corrected: over the {corrected}.{note}"
    return replace(side_by_side(whole_caption, "item", cells, heads), spare=tuple(more))


def _cells(finding: Finding, more: Mapping[str, Callable[[Finding], str]], count: int) -> tuple[Cell, ...]:
    if finding.effect is None:
        return (Cell("–"),) * count
    interval = "none" if finding.low is None else format_interval(finding.low, finding.high, finding.limit)
    p, corrected = format_p(next(iter(finding.p_values.values()), None)), format_p(finding.p_corrected)
    shown = format_decimal(finding.effect), interval, p, corrected
    return tuple(map(Cell, (*shown, *(get(finding) for get in more.values()))))


def select_drawable(findings: Iterable[Finding]) -> list[Finding]:
    """Select findings whose effect is a number."""
    return [finding for finding in findings if finding.effect is not None and math.isfinite(finding.effect)]


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
