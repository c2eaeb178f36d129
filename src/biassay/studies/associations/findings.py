"""What association tests show, as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from biassay.pages.formats import MANY_MODELS, concept
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.studies.associations.diagnostics import warnings_of
from biassay.studies.associations.equivalence import bound_of, equivalence_of
from biassay.studies.associations.intervals import contributions
from biassay.studies.associations.lead import effect_of, interval_of, is_opposite, largest, lead_of, standing_of
from biassay.studies.associations.marks import correction_text, is_exploratory
from biassay.studies.associations.records import Diagnostics, Result, explain_searched

__all__ = ["direction_of", "findings_in_short", "findings_of"]

_WORDS = 5
_SINGULAR = ("disease", "math", "science")  # of the labels of targets


def findings_of(run: RunData, label: str | None = None) -> Sequence[Finding]:
    """One finding per model and test, of one model or of all."""
    labels = model_labels(run)
    known = {(model_key(one), one.test): one for one in run.tables.get("diagnostics", ())}
    families = _families(run)
    rows = ((row, labels[model_key(row)]) for row in run.results)
    return [
        _finding(row, own, _evidence(row), families[model_key(row)], known.get((model_key(row), row.test)))
        for row, own in rows
        if label in (None, own)
    ]


def findings_in_short(run: RunData) -> Sequence[Finding]:
    """The same as `findings_of`; of very many models without words, which nobody could read."""
    labels = model_labels(run)
    if len(labels) <= MANY_MODELS:
        return findings_of(run)
    families = _families(run)
    return [_finding(row, labels[model_key(row)], (), families[model_key(row)]) for row in run.results]


def _families(run: RunData) -> dict[ModelKey, str]:
    """The family of every model's p-values, in words."""
    by_model: dict[ModelKey, list[Result]] = {}
    for row in run.results:
        by_model.setdefault(model_key(row), []).append(row)
    return {key: correction_text(rows) for key, rows in by_model.items()}


def _finding(
    row: Result, label: str, evidence: tuple[str, ...], family: str, known: Diagnostics | None = None
) -> Finding:
    low, high = interval_of(row) or (None, None)
    standing = standing_of(row)
    crossed = lead_of(row) == "crossed"
    return Finding(
        model=label,
        item=row.test,
        title=row.title,
        topic=row.topic or "other",
        about=row.about or "people",
        standing=standing,
        direction=direction_of(row, effect_of(row)) if row.effect_size is not None else "",
        effect=effect_of(row),
        low=low,
        high=high,
        confidence=1.0 - row.alpha,
        unit=row.unit,
        p_values=_p_values(row),
        smallest=row.smallest_effect if crossed and standing == "inconclusive" else None,
        reason=row.reason,
        evidence=evidence,
        margin=row.margin if crossed else None,
        bound=bound_of(row) if crossed and row.margin is not None else None,
        share_random=row.share_random if crossed else None,
        random_sets=row.random_sets if crossed else None,
        limit=largest(row) if crossed else None,
        notes=tuple(_notes(row, known)),
        opposite=is_opposite(row),
        form_of=row.form_of,
        family="" if row.about == "method" and row.family is None else family,
        exploratory=is_exploratory(row),
    )


def _notes(row: Result, known: Diagnostics | None) -> Iterator[str]:
    if row.searched:
        yield explain_searched(row.searched_correlation)
    elif is_exploratory(row):
        yield "exploratory: not in the declared family"
    if said := equivalence_of(row):
        yield said
    yield from warnings_of(row, known)


def _p_values(row: Result) -> dict[str, float | None]:
    """All p-values, those that lead first."""
    opposite = row.p_value_by_word_opposite
    crossed = {"crossed": row.p_value_crossed, "crossed, corrected": row.p_value_crossed_holm}
    by_text = {"by text": row.p_value, "by text, corrected": row.p_value_holm}
    by_word = {
        **({} if opposite is None else {"by word, other direction": opposite}),
        "by word": row.p_value_by_word,
        "by word, corrected": row.p_value_by_word_holm,
    }
    found = {
        "crossed": {**crossed, **by_word, **by_text},
        "word": {**by_word, **by_text, **crossed},
        "text": {**by_text, **by_word, **crossed},
    }[lead_of(row)]
    return found if row.p_equivalence is None else {**found, "equivalence": row.p_equivalence}


class _Asked(Protocol):
    """The names of the four sets of a test."""

    @property
    def targ1(self) -> str: ...
    @property
    def targ2(self) -> str: ...
    @property
    def attr1(self) -> str: ...
    @property
    def attr2(self) -> str: ...


def direction_of(row: _Asked, effect: float | None) -> str:
    """Which targets go with which attributes, as the effect has it."""
    first, second = concept(row.attr1), concept(row.attr2)
    if (effect or 0.0) < 0.0:
        first, second = second, first
    targets = concept(row.targ1)
    verb = "goes" if targets.endswith(_SINGULAR) else "go"
    said = f"{targets} {verb} with {first}, {concept(row.targ2)} with {second}"
    return said[0].upper() + said[1:]


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
