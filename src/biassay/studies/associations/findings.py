"""What association tests show, as records."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import concept
from biassay.pages.sentences import MANY_MODELS
from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.results.labels import model_key, model_labels
from biassay.stats.effect_interval import Estimate
from biassay.studies.associations.intervals import contributions, interval_of
from biassay.studies.associations.records import Result

__all__ = [
    "cannot_reach",
    "direction_of",
    "effect_by_word",
    "findings_in_short",
    "findings_of",
    "is_opposite",
    "standing_of",
]

_WORDS = 5


def findings_of(run: RunData, label: str | None = None) -> Sequence[Finding]:
    """One finding per model and test, of one model or of all."""
    labels = model_labels(run)
    rows = ((row, labels[model_key(row)]) for row in run.results)
    return [_finding(row, own, interval_of(row), _evidence(row)) for row, own in rows if label in (None, own)]


def findings_in_short(run: RunData) -> Sequence[Finding]:
    """The same as `findings_of`; of very many models without intervals and words, which nobody could read."""
    labels = model_labels(run)
    if len(labels) <= MANY_MODELS:
        return findings_of(run)
    return [_finding(row, labels[model_key(row)], None, ()) for row in run.results]


def _finding(row: Result, label: str, estimate: Estimate | None, evidence: tuple[str, ...]) -> Finding:
    opposite = row.p_value_by_word_opposite
    p_values = {
        **({} if opposite is None else {"by word, other direction": opposite}),
        "by word": row.p_value_by_word,
        "by word, corrected": row.p_value_by_word_holm,
        "by text": row.p_value,
        "by text, corrected": row.p_value_holm,
    }
    return Finding(
        model=label,
        item=row.test,
        title=row.title,
        topic=row.topic or "other",
        about=row.about or "people",
        standing=standing_of(row),
        direction=direction_of(row) if row.effect_size is not None else "",
        effect=effect_by_word(row) if estimate is None else estimate.effect_size,
        low=None if estimate is None else estimate.low,
        high=None if estimate is None else estimate.high,
        unit=row.unit,
        p_values=p_values,
        reason=row.reason,
        evidence=evidence,
    )


def standing_of(row: Result) -> Standing:
    """By word; by text where the words of the texts are not known."""
    if row.status != "measured":
        return "not measured"
    known = row.p_value_by_word is not None
    significant = row.significant_by_word if known else row.significant
    corrected = row.significant_by_word_holm if known else row.significant_holm
    if is_opposite(row):
        return "opposite"
    if significant:
        return "corrected" if corrected else "uncorrected"
    return "too few" if cannot_reach(row) else "not shown"


def effect_by_word(row: Result) -> float | None:
    """The effect that the p-value by word is of; by text where there is none by word."""
    return row.effect_size if row.effect_size_by_word is None else row.effect_size_by_word


def is_opposite(row: Result) -> bool:
    """Significant in the opposite direction; a run that did not compute it claims nothing."""
    if row.p_value_by_word_opposite is not None:
        return row.p_value_by_word_opposite <= row.alpha
    significant = row.significant if row.p_value_by_word is None else row.significant_by_word
    return bool(significant) and (effect_by_word(row) or 0.0) < 0.0


def cannot_reach(row: Result) -> bool:
    """Has the test too few words for any result to be significant by word?"""
    return row.significant_by_word is False and (row.p_floor_by_word or 0.0) > row.alpha


def direction_of(row: Result) -> str:
    """Which targets go with which attributes, as the effect has it."""
    first, second = concept(row.attr1), concept(row.attr2)
    if (effect_by_word(row) or 0.0) < 0.0:
        first, second = second, first
    return f"{concept(row.targ1)} associated with {first}, {concept(row.targ2)} with {second}"


def _evidence(row: Result) -> tuple[str, ...]:
    """The target words that add most to the effect, in its direction."""
    if row.leave_one_out is not None:
        return _without(row)
    found = contributions(row)
    if found is None:
        return ()
    sign = 1.0 if found.effect_size >= 0.0 else -1.0
    shares = {word: share for words in found.targets.values() for word, share in words.items()}
    return tuple(sorted(shares, key=lambda word: -sign * shares[word])[:_WORDS])


def _without(row: Result) -> tuple[str, ...]:
    """The words without which a score of four sets would be nearest to none."""
    scores = {word: score for words in (row.leave_one_out or {}).values() for word, score in words.items()}
    return tuple(sorted(scores, key=lambda word: abs(scores[word]))[:_WORDS])
