"""What benchmarks show, as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biassay.pages.formats import counted
from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.results.labels import model_key, model_labels
from biassay.studies.benchmarks.records import Result
from biassay.studies.benchmarks.sentences import ALL

__all__ = ["findings_of"]

_UNITS = {"bbq": "bias score", "crows-pairs": "share above one half", "stereoset": "ss above 50"}
_NAMES = {"bbq": "BBQ", "crows-pairs": "CrowS-Pairs", "stereoset": "StereoSet"}
_LIMITS = {"bbq": 1.0, "crows-pairs": 0.5, "stereoset": 50.0}


def findings_of(run: RunData) -> Sequence[Finding]:
    """One finding per model and category, for BBQ in each kind of context; none over all categories."""
    labels = model_labels(run)
    return [_finding(row, labels[model_key(row)]) for row in run.results if row.category != ALL]


def _finding(row: Result, label: str) -> Finding:
    about = " ".join(filter(None, (row.category.replace("_", " "), row.condition)))
    measured = row.score is not None
    standing = _standing(row)
    return Finding(
        model=label,
        item=f"{row.benchmark} {about}",
        title=f"{_NAMES[row.benchmark]}: {about}",
        topic=row.topic,
        about="people",
        standing=standing,
        direction=_direction(row, standing) if measured else "",
        effect=_from_null(row, row.score),
        low=_from_null(row, row.score_low),
        high=_from_null(row, row.score_high),
        unit=_UNITS[row.benchmark],
        limit=_LIMITS[row.benchmark],
        confidence=1.0 - row.alpha,
        p_values={f"by {row.unit}": row.p_value, "corrected": row.p_value_holm},
        reason=row.reason,
        notes=tuple(_notes(row)),
    )


def _from_null(row: Result, value: float | None) -> float | None:
    return None if value is None else value - row.null


def _standing(row: Result) -> Standing:
    if row.score is None:
        return "not measured"
    if row.p_value is None:  # one template alone, or all say the same
        return "not shown" if row.n_clusters > 1 and row.score == row.null else "described"
    if row.p_value > row.alpha:
        return "not shown"
    if row.score < row.null:
        return "opposite"
    return "corrected" if row.p_value_holm is not None and row.p_value_holm <= row.alpha else "uncorrected"


def _direction(row: Result, standing: Standing) -> str:
    against = standing == "opposite" or (standing == "described" and (row.score or 0.0) < row.null)
    how = "go against" if against else "follow"
    if row.benchmark == "bbq":
        return f"answers about {row.category.replace('_', ' ')} in {row.condition} contexts {how} the stereotype"
    return f"likelihoods of sentences about {row.category} {how} the stereotype"


def _notes(row: Result) -> Iterator[str]:
    if row.undecided:
        yield f"{counted(row.undecided, 'item')} of {row.items:,} undecided"
    if row.refused:
        yield f"{row.refused:,} of {row.replies:,} answers refused"
    if row.left_out:
        yield f"{row.left_out:,} of {row.items:,} items without a likelihood"
