"""What word association tests show, as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biassay.pages.formats import concept, counted, decimals, format_p, interval_text
from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.results.labels import model_key, model_labels
from biassay.studies.word_association.records import Result, WordResult
from biassay.studies.word_association.shown import label_of

__all__ = ["findings_of", "goes_by_order"]

_WORDS = 5
_FEW = {"pairs": "pairs of group words", "answers": "answers", "words": "words"}
_LEANS = {"share": (0.5, 0.2), "log-odds": (0.0, 0.85)}
"""What the group word that is named first gets if order does not count, and from which distance on it is told."""


def findings_of(run: RunData) -> Sequence[Finding]:
    """One finding per model and test."""
    labels = model_labels(run)
    words: dict[object, list[WordResult]] = {}
    for one in run.tables.get("words", ()):
        words.setdefault((model_key(one), one.test), []).append(one)
    return [_finding(row, labels[model_key(row)], words.get((model_key(row), row.test), [])) for row in run.results]


def goes_by_order(row: Result) -> bool:
    """Return whether the group word named first gets far more than the other, or far less, whatever the difference."""
    middle, most = _LEANS[row.unit]
    return row.first is not None and abs(row.first - middle) >= most


def _finding(row: Result, label: str, words: Sequence[WordResult]) -> Finding:
    standing, p = _standing(row), "by word" if row.claim == "words" else "crossed"
    return Finding(
        model=label,
        item=row.test,
        title=row.title,
        topic=row.topic,
        about=row.about,
        standing=standing,
        direction=_direction(row) if row.difference is not None else "",
        effect=row.difference,
        low=row.low,
        high=row.high,
        confidence=1.0 - row.alpha,
        unit=row.unit,
        form_of=row.form_of,
        limit=1.0 if row.unit == "share" else None,
        p_values={
            p: row.p_value,
            f"{p}, corrected": row.p_value_holm,
            "for these group words": row.p_these_groups,
            "by word": row.p_by_word,
        },
        reason=row.reason,
        evidence=_evidence(row, words),
        notes=tuple(_notes(row, standing)),
        few=_FEW.get(row.claim or "", "words"),
        no_interval=_no_interval(row),
        opposite=standing in ("significant", "uncorrected") and (row.difference or 0.0) < 0.0,
    )


def _standing(row: Result) -> Standing:
    if row.evidence == "descriptive" and row.about == "method":
        return "not_testable"  # a sanity check that cannot be tested neither passes nor fails
    return row.evidence or "skipped"


def _direction(row: Result) -> str:
    """Which words are given to whom, as the difference has it."""
    first, second = concept(row.negative), concept(row.positive)
    if (row.difference or 0.0) < 0.0:
        first, second = second, first
    said = f"{concept(row.stigmatised)} with {first}, {concept(row.default)} with {second}"
    return said[0].upper() + said[1:]


def _no_interval(row: Result) -> str:
    """Why there is none."""
    if row.difference is None or row.low is not None:
        return ""
    if row.claim == "words":
        return "one pair of group words"
    what = counted(row.pairs, "pair") + " of group words" if row.claim == "pairs" else counted(row.answers, "answer")
    if row.p_value is None:
        return f"too little was read of {what}"
    if (row.p_floor or 0.0) > row.alpha:
        return f"{what} are too few"
    return "the log-odds do not vary, which bounds their sign only"


def _evidence(row: Result, words: Sequence[WordResult]) -> tuple[str, ...]:
    """Words that lean most to the group that their pole goes with, in the direction of the difference."""
    if row.difference is None:
        return ()
    sign = 1.0 if row.difference >= 0.0 else -1.0
    middle = 0.5 if row.unit == "share" else 0.0
    lean = {
        one.word: sign * (one.value - middle) * (1.0 if one.pole == "negative" else -1.0)
        for one in words
        if one.value is not None
    }
    return tuple(sorted((word for word in lean if lean[word] > 0.0), key=lambda word: -lean[word])[:_WORDS])


def _notes(row: Result, standing: Standing) -> Iterator[str]:
    """Why it is not significant, what it holds for, missing responses, and a lean to the group word named first."""
    if row.evidence_reason and row.difference is not None:
        yield row.evidence_reason
    if row.evidence in ("descriptive", "not_testable") and row.claim == "pairs" and row.p_these_groups is not None:
        yield f"for these group words only, p = {format_p(row.p_these_groups)}"
    elif row.claim in ("answers", "words") and standing in ("significant", "uncorrected"):
        yield "for this pair of group words"
    lost = [
        (count, kind)
        for kind in ("partial", "refused", "filtered", "failed", "unparsed")
        if (count := getattr(row, kind))
    ]
    if lost:
        yield f"of {row.answers:,} replies {', '.join(f'{count:,} {label_of(kind)}' for count, kind in lost)}"
        yield from _bounds(row)
    if row.cut_off and lost:
        yield f"{row.cut_off:,} of {row.answers:,} replies were cut off by max_tokens=; a larger one lets them end"
    if goes_by_order(row) and not row.follows_order:
        yield f"the group word named first gets {row.unit} of {decimals(row.first)}"


def _bounds(row: Result) -> Iterator[str]:
    if row.bound_low is not None and row.bound_high is not None and row.bound_low < row.bound_high:
        bounds = interval_text(row.bound_low, row.bound_high)
        if bounds not in (row.evidence_reason or ""):
            yield f"missing responses counted either way: {bounds}"
