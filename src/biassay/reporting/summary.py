"""Summarize findings: a title, counts per model, significant results and leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from biassay.grouping import group_pairs
from biassay.reporting.document import Cell, ColumnSpan, RowGroup, Table, TableRow
from biassay.reporting.formats import (
    format_count,
    format_decimal,
    format_examples,
    format_interval,
    format_p,
    format_percent,
)
from biassay.reporting.sentences import passes_check
from biassay.results.findings import Finding, count_findings, sort_by_topic
from biassay.results.outcomes import Evidence

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
    entries: dict[tuple[str, str, bool], tuple[Finding, list[str]]] = {}
    for finding in sorted(sort_by_topic(chosen), key=lambda finding: models.index(finding.model)):
        key = (finding.model, finding.claim or finding.direction or finding.title, finding.opposite)
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


def _get_claim(finding: Finding) -> str:
    claim = finding.claim or finding.direction or finding.title
    return f"{claim} (opposite direction)" if finding.opposite else claim


def _make_cells(finding: Finding, names: Sequence[str], *, has_interval: bool) -> tuple[Cell, ...]:
    effect = "–" if finding.effect is None else format_decimal(finding.effect)
    if finding.unit == "words" and finding.effect is not None:
        effect = f"{finding.effect:,.0f}"
    if has_interval:
        second = "–" if finding.low is None else format_interval(finding.low, finding.high, finding.limit)
    else:
        second = format_p(next((p for p in finding.p_values.values() if p is not None), None))
    return Cell(effect), Cell(second), Cell(", ".join(names))


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
