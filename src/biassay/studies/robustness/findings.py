"""What robustness shows, as records."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import concept, counted
from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.results.labels import model_key, model_labels
from biassay.studies.robustness.records import Result

__all__ = ["findings_of"]


def findings_of(run: RunData) -> Sequence[Finding]:
    """One finding per model and test: the median effect over all choices, and whether they hold together."""
    labels = model_labels(run)
    return [_finding(row, labels[model_key(row)]) for row in run.results]


def _finding(row: Result, label: str) -> Finding:
    return Finding(
        model=label,
        item=row.test,
        title=row.title,
        topic=row.topic,
        about=row.about,
        standing=_standing(row),
        direction=_direction(row) if row.d_median is not None else "",
        effect=row.d_median,
        unit="median d",
        p_values={"joint": row.p_joint, "joint, corrected": row.p_joint_holm},
        reason=row.reason,
        notes=_notes(row),
    )


def _standing(row: Result) -> Standing:
    if row.d_median is None or row.p_joint is None:
        return "not measured"
    if row.p_joint > row.alpha:
        return "not shown"
    if row.d_median < 0.0:
        return "opposite"
    return "corrected" if row.p_joint_holm is not None and row.p_joint_holm <= row.alpha else "uncorrected"


def _direction(row: Result) -> str:
    first, second = concept(row.attr1), concept(row.attr2)
    if (row.d_median or 0.0) < 0.0:
        first, second = second, first
    return f"{concept(row.targ1)} associated with {first}, {concept(row.targ2)} with {second}"


def _notes(row: Result) -> tuple[str, ...]:
    """In how many choices it is the same."""
    if row.share_sign is None or row.share_significant is None:
        return ()
    same, choices = f"{row.share_sign:.0%}", counted(row.choices, "choice")
    return (f"same sign in {same} of {choices}, and significant in {row.share_significant:.0%}",)
