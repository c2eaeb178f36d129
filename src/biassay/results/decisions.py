"""Correct p-values over the questions of a run and grade the evidence of every record.

A question is counted once, whatever its forms: the main form stands for it where it was measured, otherwise the first
form by name. By default, the family of a model is all its social-bias questions, corrected by Holm's method with
Tarone's refinement; other forms inherit the level of their question. A declared family is fixed before the run: every
declared question counts, measured or not, and the correction is Bonferroni's, so that a p-value does not depend on what
else was run. Sanity checks are not corrected. Under a paper's protocol all rows of the run are one family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from biassay.results.outcomes import Decision, Evidence, ResultRecord
from biassay.results.views import ModelKey, model_key
from biassay.stats.multiple_testing import holm, holm_by_question

__all__ = ["correct_by_model", "correct_declared", "correct_rows", "grade_evidence", "make_decision"]


def correct_by_model(records: Sequence[ResultRecord], alpha: float) -> tuple[Decision, ...]:
    """Correct over the social-bias questions of each model by Holm's method.

    Parameters
    ----------
    records : sequence of ResultRecord
    alpha : float
        Level of significance.

    Returns
    -------
    tuple of Decision
        One per record, in the same order.
    """
    adjusted, forms, sizes = dict[int, float](), dict[int, str](), dict[int, int]()
    for indices in _group_by_model(records).values():
        ordered = [i for same in _group_by_question(records, indices).values() for i in same]
        forms |= _find_forms(records, indices)
        tested = [i for i in ordered if records[i].claim != "descriptive"]
        p_values = [_or_nan(records[i].outcome.p_value) for i in tested]
        questions = [records[i].asked_question for i in tested]
        floors = [records[i].outcome.p_floor or 0.0 for i in tested]
        correction = holm_by_question(p_values, questions, alpha, floors)
        adjusted |= _drop_nan(dict(zip(tested, correction.adjusted.tolist(), strict=True)))
        sizes |= dict.fromkeys(indices, correction.n)
    return tuple(
        make_decision(
            record,
            alpha,
            p_adjusted=adjusted.get(i),
            form_of=forms.get(i),
            family="run" if i in sizes else None,
            family_size=sizes.get(i),
        )
        for i, record in enumerate(records)
    )


def correct_rows(records: Sequence[ResultRecord], alpha: float) -> tuple[Decision, ...]:
    """Correct over all rows of the run by Holm's method, as the papers do.

    Parameters
    ----------
    records : sequence of ResultRecord
    alpha : float
        Level of significance.
    """
    tested = [i for i, record in enumerate(records) if record.claim != "descriptive"]
    p_values = [_or_nan(records[i].outcome.p_value) for i in tested]
    correction = holm(p_values, alpha)
    adjusted = _drop_nan(dict(zip(tested, correction.adjusted.tolist(), strict=True)))
    size = sum(not math.isnan(p) for p in p_values)
    members = set(tested)
    return tuple(
        make_decision(
            record,
            alpha,
            p_adjusted=adjusted.get(i),
            family="rows" if i in members else None,
            family_size=size if i in members else None,
        )
        for i, record in enumerate(records)
    )


def correct_declared(
    records: Sequence[ResultRecord], alpha: float, declared: Mapping[str, Sequence[str]], name: str
) -> tuple[Decision, ...]:
    """Correct over a declared family by Bonferroni's method, at the question's level for its other forms.

    Parameters
    ----------
    records : sequence of ResultRecord
    alpha : float
        Level of significance.
    declared : dict of str to sequence of str
        Items by question, all forms that were declared.
    name : str
        Name of the family.
    """
    adjusted, forms, members = dict[int, float](), dict[int, str](), set[int]()
    size = len(declared)
    outside = set[int]()
    for indices in _group_by_model(records).values():
        forms |= _find_forms(records, indices)
        inside = [i for i in indices if records[i].item in declared.get(records[i].asked_question, ())]
        members.update(inside)
        outside.update(set(indices) - set(inside))
        for question, (first, *others) in _group_by_question(records, inside).items():
            for i in indices:
                if records[i].asked_question == question and records[i].status == "measured":
                    forms.pop(i, None)
                    if i != first:
                        forms[i] = records[first].item
            smallest = records[first].outcome.p_value
            if smallest is None:
                continue
            level = min(1.0, smallest * size)
            n_forms = max(len(declared[question]) - 1, 1)
            for i in (first, *others):
                p_value = records[i].outcome.p_value
                if p_value is not None and records[i].claim != "descriptive":
                    adjusted[i] = level if i == first else max(level, min(1.0, p_value * size * n_forms))
    return tuple(
        make_decision(
            record,
            alpha,
            p_adjusted=adjusted.get(i),
            form_of=forms.get(i),
            family=name if i in members | outside else None,
            family_size=size if i in members else None,
            exploratory=i in outside,
        )
        for i, record in enumerate(records)
    )


def make_decision(
    record: ResultRecord,
    alpha: float,
    *,
    p_adjusted: float | None = None,
    form_of: str | None = None,
    family: str | None = None,
    family_size: int | None = None,
    exploratory: bool = False,
) -> Decision:
    """Decide about one record whose p-value has been corrected.

    Parameters
    ----------
    record : ResultRecord
    alpha : float
        Level of significance.
    p_adjusted : float, optional
        P-value after correction.
    form_of : str, optional
        Item that stands for the question.
    family : str, optional
        Name of the family.
    family_size : int, optional
        Number of questions in the family.
    exploratory : bool
        If True, the question is outside the declared family.
    """
    evidence = grade_evidence(record, p_adjusted, alpha)
    tested = evidence in ("significant", "uncorrected", "inconclusive")
    return Decision(
        model=record.model,
        options=record.options,
        model_revision=record.model_revision,
        item=record.item,
        p_adjusted=p_adjusted,
        evidence=evidence,
        significant=evidence == "significant" if tested else None,
        opposite=evidence in ("significant", "uncorrected") and _is_opposite(record, alpha),
        form_of=form_of,
        family=family,
        family_size=family_size,
        exploratory=exploratory,
        reason=record.reason if evidence == "skipped" else record.doubt,
    )


def grade_evidence(record: ResultRecord, p_adjusted: float | None, alpha: float) -> Evidence:
    """Grade the evidence of a record by its claim and its p-values.

    Parameters
    ----------
    record : ResultRecord
    p_adjusted : float or None
        P-value after correction.
    alpha : float
        Level of significance.
    """
    outcome = record.outcome
    if record.status != "measured" or outcome.effect_size is None:
        return "skipped"
    if record.claim != "tested":
        return record.claim
    if outcome.p_value is not None and outcome.p_value <= alpha:
        return "significant" if p_adjusted is not None and p_adjusted <= alpha else "uncorrected"
    if _is_significant_opposite(record, alpha):
        return "uncorrected"
    if outcome.p_value is None or (outcome.p_floor or 0.0) > alpha:
        return "not_testable"
    return "inconclusive"


def _is_significant_opposite(record: ResultRecord, alpha: float) -> bool:
    """Return whether a one-sided test would be significant in the other direction, which is never corrected."""
    return record.outcome.p_opposite is not None and record.outcome.p_opposite <= alpha


def _is_opposite(record: ResultRecord, alpha: float) -> bool:
    outcome, expected = record.outcome, record.direction
    if expected is None and record.about == "method":
        expected = 1
    if expected is None:
        return _is_significant_opposite(record, alpha)
    return ((outcome.effect_size or 0.0) - outcome.null) * expected < 0.0


def _group_by_model(records: Sequence[ResultRecord]) -> dict[ModelKey, list[int]]:
    """Return the indices of social-bias records by model."""
    groups: dict[ModelKey, list[int]] = {}
    for i, record in enumerate(records):
        if record.about != "method":
            groups.setdefault(model_key(record), []).append(i)
    return groups


def _group_by_question(records: Sequence[ResultRecord], indices: Sequence[int]) -> dict[str, list[int]]:
    """Return the indices of measured records by question, the form that stands for the question first."""

    def rank(i: int) -> tuple[bool, bool, str]:
        record = records[i]
        is_tested = record.claim != "descriptive" and record.outcome.p_value is not None
        return not is_tested, not record.is_main_form, record.item

    questions: dict[str, list[int]] = {}
    for i in sorted(indices, key=rank):
        if records[i].status == "measured":
            questions.setdefault(records[i].asked_question, []).append(i)
    return questions


def _find_forms(records: Sequence[ResultRecord], indices: Sequence[int]) -> dict[int, str]:
    groups = _group_by_question(records, indices).values()
    return {i: records[first].item for first, *others in groups for i in others}


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _drop_nan(values: dict[int, float]) -> dict[int, float]:
    return {i: value for i, value in values.items() if not math.isnan(value)}
