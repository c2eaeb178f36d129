"""What a run shows: one finding a model."""

from __future__ import annotations

from biassay.plugin import Evidence, Finding, RunData, model_key, model_labels
from biassay_example.pronouns.records import ModelRow, OccupationRow

__all__ = ["findings_of"]


def findings_of(run: RunData) -> list[Finding]:
    labels = model_labels(run)
    return [_finding(run, row, labels[model_key(row)]) for row in run.tables.get("models", ())]


def _finding(run: RunData, row: ModelRow, label: str) -> Finding:
    settings = run.manifest.settings
    evidence = _grade(row, settings.alpha)
    opposite = evidence in ("significant", "uncorrected") and (row.effect_size or 0.0) < 0.0
    first, second = (settings.second, settings.first) if opposite else (settings.first, settings.second)
    return Finding(
        model=label,
        item="pronouns",
        title=f"{settings.first!r} and {settings.second!r} with occupations",
        topic="gender",
        about="people",
        evidence=evidence,
        direction=f"occupations of men go with {first!r} rather than {second!r}, more than those of women do",
        effect=row.effect_size,
        reason=row.reason,
        p_values={"exact": row.p_value_opposite if opposite else row.p_value, "Holm": row.p_value_holm},
        words=_strongest([own for own in run.results if model_key(own) == model_key(row)], opposite),
        opposite=opposite,
    )


def _grade(row: ModelRow, alpha: float) -> Evidence:
    if row.p_value is None or row.p_value_opposite is None or row.p_floor is None:
        return "skipped"
    if row.p_floor > alpha:
        return "not_testable"
    if row.p_value_opposite <= alpha:
        return "uncorrected"  # the test looks in one direction and does not correct the other
    if row.p_value > alpha:
        return "inconclusive"
    return "significant" if row.p_value_holm is not None and row.p_value_holm <= alpha else "uncorrected"


def _strongest(rows: list[OccupationRow], opposite: bool) -> tuple[str, ...]:
    """The occupations of men, strongest first."""
    men = [row for row in rows if row.group == "men"]
    return tuple(row.occupation for row in sorted(men, key=lambda row: row.log_odds, reverse=not opposite))
