"""Rows of debiasing, and the conclusion from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from biassay.reporting.formats import format_decimal
from biassay.results.outcomes import (
    DECISIONS,
    Outcome,
    ResultRecord,
    make_alternative_columns,
    make_result_columns,
)
from biassay.results.tables import TableSpec, column, keyword_row, optional

Part = Literal["association", "probe", "audit", "similarity", "neighbours"]
BEFORE, AFTER = "before", "after"


@keyword_row
class DebiasingResult(ResultRecord):
    """One number of a model before and after a concept is erased.

    The primary outcome is the paired change. The alternatives are "before" and "after".

    Attributes
    ----------
    method, concept : str
        Method, and title of the concept.
    part : {"association", "probe", "audit", "similarity", "neighbours"}
        What is measured.
    name : str
        Test, group of names, or part.
    chance : float or None
        For the probe, its mean accuracy if words are assigned to classes at random.
    """

    outcome_names: ClassVar[tuple[str, ...]] = (BEFORE, AFTER)

    method: str = column("method", "Method of erasure.")
    concept: str = column("concept", "Concept that is erased.")
    part: Part = column("part", "association, probe, audit, similarity or neighbours.")
    name: str = column("name", "Test, group of names, or part.")
    chance: float | None = optional("chance", "Accuracy of the probe on random classes.", "share")

    @property
    def item(self) -> str:
        """Method and name, such as "leace weat6"."""
        return f"{self.method} {self.name}"

    def is_detected(self, when: str, alpha: float) -> bool:
        """Return whether the concept is detected before or after erasure, without correction for several tests."""
        outcome = self.alternatives.get(when, Outcome())
        return outcome.p_value is not None and outcome.p_value <= alpha


def draw_conclusion(rows: Sequence[DebiasingResult], alpha: float) -> tuple[str, str]:
    """Return the tone of the verdict on one method and model, and the verdict in sentences.

    Parameters
    ----------
    rows : sequence of DebiasingResult
        All rows of the method and model.
    alpha : float
        Level of significance.
    """
    tests = [row for row in rows if row.part == "association" and row.is_detected(BEFORE, alpha)]
    left = [row.name for row in tests if row.is_detected(AFTER, alpha)]
    concept = rows[0].concept
    others = [row for row in rows if row.part in ("probe", "audit")]
    found = [_describe_find(row) for row in others if row.is_detected(AFTER, alpha)]
    gone = [row.name for row in tests if row.name not in left]
    said = "No test detects an association before erasure."
    if left:
        said = (
            f"The association is still detected in {', '.join(left)}{', no longer in ' * bool(gone)}{', '.join(gone)}."
        )
    elif gone:
        said = f"The association is no longer detected in {', '.join(gone)}."
    if found:
        so = f"But {concept.lower()} is still there:" if gone and not left else f"{concept} is still there:"
        return "bad", f"{said} {so} {'; '.join(found)}."
    unmeasured = dict.fromkeys(row.part for row in others if row.status != "measured")
    if unmeasured:
        return "unsure", f"{said} Not measured: {', '.join(unmeasured)}."
    nothing = f"The probe and the audit do not detect {concept.lower()}, which does not show that it is gone."
    return ("bad" if left else "unsure"), f"{said} {nothing}"


def _describe_find(row: DebiasingResult) -> str:
    if row.part == "audit":
        return f"the audit finds a difference of {row.name} ({format_outcome(row, AFTER)})"
    return (
        f"a probe recovers it from {format_outcome(row, AFTER)} of held-out words (chance {_format_share(row.chance)})"
    )


def format_outcome(row: DebiasingResult, when: str = "") -> str:
    """Format the change, or the estimate before or after erasure, with its interval; shares in percent."""
    outcome = row.alternatives.get(when, Outcome()) if when else row.outcome
    if outcome.effect_size is None:
        return "–"
    write = _format_share if outcome.scale == "share" else format_decimal
    if outcome.ci_low is None or outcome.ci_high is None:
        return write(outcome.effect_size)
    return f"{write(outcome.effect_size)} [{write(outcome.ci_low)}, {write(outcome.ci_high)}]"


def _format_share(share: float | None) -> str:
    return "–" if share is None else f"{100.0 * share:z.0f}%"


TABLES = (
    TableSpec(
        "results",
        "Before and after",
        DebiasingResult,
        make_result_columns(
            DebiasingResult,
            ("method", "concept", "part", "name"),
            *(
                one
                for when in (BEFORE, AFTER)
                for one in make_alternative_columns(
                    when,
                    effect_size=(when, f"Number {when} erasure."),
                    ci_low=(f"{when}, low", "Lower end of its interval."),
                    ci_high=(f"{when}, high", "Upper end of its interval."),
                    p_value=(
                        f"{when}, p",
                        "P-value of the null hypothesis: no association, no difference, or accuracy at chance.",
                    ),
                )
            ),
            effect_size="Change from before to after erasure, paired by words, or by names and documents.",
        ),
        key=("method", "name"),
        value_column="effect_size",
        default_columns=(
            *("model", "method", "part", "name", "before_effect_size", "after_effect_size"),
            *("effect_size", "ci_low", "ci_high"),
        ),
    ),
    DECISIONS,
)
