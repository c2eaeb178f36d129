"""Findings of word association tests, with reply counts and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biassay.grouping import group_pairs
from biassay.reporting.document import Statement
from biassay.reporting.formats import (
    format_decimal,
    format_interval,
    format_p,
    format_percent,
)
from biassay.results.outcomes import Evidence, Finding, Result, make_outcome_finding
from biassay.results.run_data import ModelKey, RunData, model_key, model_labels
from biassay.studies.word_association.replies import REPLY_KINDS
from biassay.studies.word_association.results import (
    REPLY_LABELS,
    MissingResponses,
    WordAssociationResult,
    WordResult,
    list_counts,
)

_SHOWN_IF_ANY = ("filtered", "failed", "undecided")


def make_caption(run: RunData) -> str:
    """Describe effects right of zero: for one test by its groups and words, for several by their roles."""
    tests = {row.test: row for row in run.results}
    if len(tests) == 1:
        (row,) = tests.values()
        return "Right of zero: {} with {}, {} with {}.".format(*row.format_concepts())
    return (
        "Right of zero: the stigmatised group is associated with negative words, the default group with positive ones. "
        "Each test names its groups and words."
    )


def count_replies(run: RunData, model: ModelKey) -> dict[str, Mapping[str, int]]:
    """Count the replies of a model by form of prompt and kind; kinds of `_SHOWN_IF_ANY` only if there are any."""
    by_form: dict[str, dict[str, int]] = {}
    for row in run.tables.get("replies", ()):
        if model_key(row) == model:
            counts = by_form.setdefault(row.form, dict.fromkeys(REPLY_KINDS, 0))
            for kind in REPLY_KINDS:
                counts[kind] += getattr(row, kind)
    return {
        form: {kind: n for kind, n in counts.items() if n or kind not in _SHOWN_IF_ANY}
        for form, counts in by_form.items()
        if sum(counts.values())
    }


def describe_responses(run: RunData) -> Iterator[Statement]:
    """Yield statements on the replies of every model by kind, and warnings."""
    for key, label in model_labels(run).items():
        results = [result for result in run.results if model_key(result.record) == key]
        texts = [*_list_reply_counts(run, key, results)]
        warnings = (*_list_warnings(results), *_selective_warnings(run, key))
        counts = [f"{'; '.join(texts)}."] if texts else []
        yield from (Statement(f"{label}: {text}", (), label) for text in (*counts, *warnings))


def _list_reply_counts(run: RunData, model: ModelKey, results: Sequence[Result]) -> Iterator[str]:
    by_form = count_replies(run, model)
    for form, counts in by_form.items():
        what = "decisions" if form == "decision" else "replies"
        yield f"{sum(counts.values()):,} {what}: {list_counts(counts)}"
        if form == "decision" and not counts["complete"]:
            yield "no decision was read, so there is no share"
    if not by_form:  # log-odds
        unanswered = {kind: sum(getattr(row, kind) or 0 for row in results) for kind in REPLY_LABELS}
        if any(unanswered.values()):
            yield f"{sum(row.answers for row in results):,} prompts: {list_counts(unanswered)}"


def _list_warnings(results: Sequence[Result]) -> Iterator[str]:
    """Yield warnings about tests that order effects or missing responses make inconclusive."""
    ordered = [f"{row.test} ({format_decimal(row.first)} for the first)" for row in results if row.follows_order]
    if ordered:
        yield (
            "the responses follow the order of the group words rather than their meaning, so these tests are "
            f"inconclusive: {', '.join(ordered)}."
        )
    reversible = [
        f"{row.test} ({format_interval(row.bound_low, row.bound_high)})"
        for row in results
        if row.may_change_sign and row.evidence == "inconclusive"
    ]
    if reversible:
        yield (
            "missing responses (refused, filtered, failed, unparsed or left out) could reverse the difference, so "
            f"these tests are inconclusive. Difference with all of them counted either way: {', '.join(reversible)}."
        )


def _selective_warnings(run: RunData, model: ModelKey) -> Iterator[str]:
    """Yield factors on which the rate of missing responses depends, corrected for the number of factors of a test."""
    missing: Sequence[MissingResponses] = run.tables.get("missing", ())
    by_factor = group_pairs(((row.test, row.factor), row) for row in missing if model_key(row) == model)
    for (test, factor), rows in by_factor.items():
        n_factors = sum(name == test for name, _ in by_factor)
        p = rows[0].p_value
        if p is not None and p <= run.manifest.settings.alpha / n_factors:
            rates = ", ".join(f"{row.level} {format_percent(round(row.rate, 3))}" for row in rows)
            yield f"missing responses of {test} depend on the {factor}: {rates} (exact p = {format_p(p)})."


_MAX_WORDS = 5
_FEW = {"pairs": "pairs of group words", "answers": "answers", "words": "words"}


def make_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model and test."""
    labels = model_labels(run)
    words = group_words(run)
    results = [(result, model_key(result.record)) for result in run.results]
    return [_make_finding(result, labels[key], words.get((key, result.test), [])) for result, key in results]


def group_words(run: RunData) -> dict[tuple[ModelKey, str], list[WordResult]]:
    """Return the results of words by model and test."""
    return group_pairs(((model_key(word), word.test), word) for word in run.tables.get("words", ()))


def _make_finding(result: Result, label: str, words: Sequence[WordResult]) -> Finding:
    row: WordAssociationResult = result.record  # type: ignore[assignment]
    outcome, decision = row.outcome, result.decision
    p = "by word" if row.generalizes_to == "words" else "crossed"
    is_opposite = (outcome.effect_size or 0.0) < 0.0
    stigmatised, negative, default, positive = row.format_concepts()
    first, second = (positive, negative) if is_opposite else (negative, positive)
    direction = f"{stigmatised} with {first}, {default} with {second}"
    return make_outcome_finding(
        result,
        label,
        direction="" if outcome.effect_size is None else direction[0].upper() + direction[1:],
        claim=_format_claim(row, " / " if is_opposite else ", "),
        label=_format_claim(row, " / "),
        p_values={}
        if decision.evidence == "descriptive"
        else {
            p: outcome.p_value,
            f"{p}, corrected": decision.p_adjusted,
            "for these group words": _get_p_value(row, "fixed_groups"),
            "by word": _get_p_value(row, "fixed_words"),
        },
        words=_list_evidence_words(row, words),
        notes=tuple(_list_notes(row, decision.evidence)),
        too_few_of=_FEW.get(row.generalizes_to or "", "words"),
    )


def _get_p_value(row: WordAssociationResult, name: str) -> float | None:
    return row.alternatives[name].p_value if name in row.alternatives else None


def _format_claim(row: WordAssociationResult, separator: str) -> str:
    stigmatised, negative, default, positive = row.format_concepts()
    return f"{stigmatised}–{negative}{separator}{default}–{positive}"


def _list_evidence_words(row: WordAssociationResult, words: Sequence[WordResult]) -> tuple[str, ...]:
    """Return the words that lean most to the group of their pole, in the direction of the difference."""
    if row.outcome.effect_size is None:
        return ()
    sign = 1.0 if row.outcome.effect_size >= 0.0 else -1.0
    middle = 0.5 if row.outcome.scale == "share" else 0.0
    lean = {
        word.word: sign * (word.value - middle) * (1.0 if word.pole == "negative" else -1.0)
        for word in words
        if word.value is not None
    }
    return tuple(sorted((word for word in lean if lean[word] > 0.0), key=lambda word: -lean[word])[:_MAX_WORDS])


def _list_notes(row: WordAssociationResult, evidence: Evidence) -> Iterator[str]:
    """Yield why the test is not significant, what it generalizes to, and its warnings."""
    if row.doubt:
        yield row.doubt
    p_value = _get_p_value(row, "fixed_groups")
    if evidence in ("descriptive", "not_testable") and row.generalizes_to == "pairs" and p_value is not None:
        yield f"for these group words only, p = {format_p(p_value)}"
    elif row.generalizes_to in ("answers", "words") and evidence in ("significant", "uncorrected"):
        yield "for this pair of group words"
    yield from row.warnings
