"""What robustness shows, as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biassay.pages.formats import counted, decimals, interval_text
from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.findings import direction_of
from biassay.studies.associations.lead import is_against
from biassay.studies.robustness.records import Result

__all__ = ["findings_of"]


def findings_of(run: RunData) -> Sequence[Finding]:
    """One finding per model and test: the same as that of association tests, and what it survives."""
    labels = model_labels(run)
    return [_finding(row, labels[model_key(row)]) for row in run.results]


def _finding(row: Result, label: str) -> Finding:
    standing = _standing(row)
    return Finding(
        model=label,
        item=row.test,
        title=row.title,
        topic=row.topic,
        about=row.about,
        standing=standing,
        direction=direction_of(row, row.d) if row.d is not None else "",
        effect=row.d,
        low=row.d_low,
        high=row.d_high,
        confidence=1.0 - row.alpha,
        p_values={
            "crossed": row.p_value_crossed,
            "crossed, corrected": row.p_value_crossed_holm,
            "joint, for these attribute words": row.p_joint,
        },
        reason=row.reason,
        survives=tuple(_survives(row)) if row.d is not None else (),
        form_of=row.form_of,
        opposite=standing in ("significant", "uncorrected") and is_against(row, row.d),
    )


def _standing(row: Result) -> Standing:
    """That of the model as it is, by the crossed test."""
    if row.d is None:
        return "skipped"
    if row.p_value_crossed is None:
        return "not_testable"
    if row.p_value_crossed > row.alpha:
        return "inconclusive"
    corrected = row.p_value_crossed_holm
    return "uncorrected" if corrected is None or corrected > row.alpha else "significant"


def _survives(row: Result) -> Iterator[str]:
    """In how many choices it is the same, how large, and without which word least is left."""
    of = f"same sign in {row.same_sign:,} of {counted(row.choices, 'choice')}, significant in {row.significant:,}"
    yield f"{of}; median d = {decimals(row.d_median)} ({interval_text(row.d_smallest, row.d_largest)})"
    if row.without_word is not None:
        turned = (row.d_without_word or 0.0) * (row.d or 0.0) < 0.0
        yield f"{'turns round' if turned else 'least'} without {row.without_word}: d = {decimals(row.d_without_word)}"
