"""Families of tests: which questions are corrected together, and significance before and after correction.

A question is counted once, whatever its forms: the test in words stands for it where it was measured, otherwise the
first of its sentence forms by name. By default, a model's family is all social-bias questions of the run, which are
corrected by Holm's method, and other forms inherit the level of their question.

A family declared with ``--family`` is fixed before the run. Every declared question counts, measured or not, and the
correction is Bonferroni's, so that a p-value does not depend on what else was run.

Sanity checks are not corrected. Under the papers' protocols all rows are one family.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from biassay.results.labels import ModelKey, model_key
from biassay.stats.multiple import Correction, holm, holm_by_question
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import Test
from biassay.studies.associations.lead import is_claimed, lead_of, p_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import DEFAULT_FAMILY, PAPERS, RUN_FAMILY, Settings

__all__ = ["declared_questions", "with_corrections"]

_NAMES = {
    "p_value": ("p_value_holm", "significant", "significant_holm"),
    "p_value_by_word": ("p_value_by_word_holm", "significant_by_word", "significant_by_word_holm"),
    "p_value_crossed": ("p_value_crossed_holm", "significant_crossed", "significant_crossed_holm"),
}
_LEADING = {"crossed": "p_value_crossed", "word": "p_value_by_word", "text": "p_value"}
_Changes = list[dict[str, Any]]


def declared_questions(family: Sequence[str], tests: Sequence[Test]) -> dict[str, tuple[str, ...]]:
    """Resolve a declared family to its social-bias questions and their forms; empty for the family of the run.

    Parameters
    ----------
    family : sequence of str
        ``run``, or names, patterns, topics, collections and files of tests; ``default`` for the default tests.
    tests : sequence of Test
        Tests of the run, which may be declared by name although the catalogue does not hold them.
    """
    if tuple(family) == RUN_FAMILY:
        return {}
    own = {test.name: test for test in tests}
    chosen: dict[str, Test] = {}
    for pattern in family:
        found = (own[pattern],) if pattern in own else select_tests(() if pattern == DEFAULT_FAMILY else pattern)
        chosen |= {test.name: test for test in found}
    questions: dict[str, tuple[str, ...]] = {}
    for test in chosen.values():
        if test.about == "people":
            questions[test.question] = (*questions.get(test.question, ()), test.name)
    return questions


def with_corrections(results: Sequence[Result], settings: Settings) -> tuple[Result, ...]:
    """Fill in what depends on the other results: significance before and after correction, and the family."""
    changes: _Changes = [_alone(row, settings.level) for row in results]
    families: dict[ModelKey, list[int]] = {}
    for i, row in enumerate(results):
        if row.protocol not in PAPERS and row.about != "method" and not row.searched:
            families.setdefault(model_key(row), []).append(i)
    papers = [i for i, row in enumerate(results) if row.protocol in PAPERS and not row.searched]
    if papers:
        _correct_papers(results, papers, changes, settings.level)
    for places in families.values():
        _mark_forms(results, places, changes)
        if settings.declared:
            _correct_declared(results, places, changes, settings)
        else:
            _correct_run(results, places, changes, settings.level)
    return tuple(dataclasses.replace(row, **own) for row, own in zip(results, changes, strict=True))


def _alone(row: Result, alpha: float) -> dict[str, Any]:
    """Significance before correction; the family fills in the rest, if the result has one."""
    found: dict[str, Any] = {"family": None, "family_name": None, "form_of": None}
    for name, (adjusted, significant, rejected) in _NAMES.items():
        p = getattr(row, name)
        found |= {adjusted: None, rejected: None, significant: None if p is None else bool(p <= alpha)}
    return found


def _question(row: Result) -> str:
    return row.variant_of or row.test


def _by_question(results: Sequence[Result], places: Sequence[int]) -> dict[str, list[int]]:
    """Places of measured results by question, the form that stands for the question first."""
    ordered = sorted(places, key=lambda i: (not _is_tested(results[i]), results[i].level != "word", results[i].test))
    questions: dict[str, list[int]] = {}
    for i in ordered:
        if results[i].status == "measured":
            questions.setdefault(_question(results[i]), []).append(i)
    return questions


def _is_tested(row: Result) -> bool:
    """Does the result have a p-value that claims something?"""
    return is_claimed(row) and p_of(row) is not None


def _mark_forms(results: Sequence[Result], places: Sequence[int], changes: _Changes) -> None:
    for first, *others in _by_question(results, places).values():
        for i in others:
            changes[i]["form_of"] = results[first].test


def _correct_papers(results: Sequence[Result], places: Sequence[int], changes: _Changes, alpha: float) -> None:
    """Correct over all rows, as the papers do."""
    rows = [results[i] for i in places]
    for name in _NAMES:
        _fill(changes, results, places, name, holm([_or_nan(getattr(row, name)) for row in rows], alpha))
    size = sum(row.p_value is not None for row in rows)
    for i in places:
        changes[i] |= {"family": size, "family_name": "rows"}


def _correct_run(results: Sequence[Result], places: Sequence[int], changes: _Changes, alpha: float) -> None:
    """Correct over the questions of the run; by word with Tarone's refinement, because the smallest p is known."""
    ordered = [i for forms in _by_question(results, places).values() for i in forms]
    rows = [results[i] for i in ordered]
    questions = [_question(row) for row in rows]
    sizes: dict[str, int] = {}
    for name in _NAMES:
        p_values = [_or_nan(getattr(row, name)) for row in rows]
        floors = [row.p_floor_by_word or 0.0 for row in rows] if name == "p_value_by_word" else None
        found = holm_by_question(p_values, questions, alpha, floors)
        sizes[name] = found.n
        _fill(changes, results, ordered, name, found)
    claimed = {_LEADING[lead_of(row)] for row in rows if is_claimed(row)}
    largest = max((sizes[name] for name in claimed), default=0)
    for i in places:
        name = _LEADING[lead_of(results[i])]
        changes[i] |= {"family": sizes[name] if name in claimed else largest, "family_name": "run"}


def _correct_declared(results: Sequence[Result], places: Sequence[int], changes: _Changes, settings: Settings) -> None:
    """Correct over the declared questions by Bonferroni's method, at the question's level for its other forms."""
    declared, label = settings.declared, ", ".join(settings.family)
    for i in places:
        changes[i]["family_name"] = label
    inside = [i for i in places if results[i].test in declared.get(_question(results[i]), ())]
    for i in inside:
        changes[i]["family"] = len(declared)
    for question, (first, *others) in _by_question(results, inside).items():
        for i in places:
            if _question(results[i]) == question and results[i].status == "measured":
                changes[i]["form_of"] = None if i == first else results[first].test
        forms = max(len(declared[question]) - 1, 1)
        for name, (adjusted, _, rejected) in _NAMES.items():
            least = getattr(results[first], name)
            if least is None:
                continue
            gate = min(1.0, least * len(declared))
            for i in (first, *others):
                p = getattr(results[i], name)
                if p is not None:
                    value = gate if i == first else max(gate, min(1.0, p * len(declared) * forms))
                    changes[i] |= {adjusted: value, rejected: bool(value <= settings.level)}


def _fill(changes: _Changes, results: Sequence[Result], places: Sequence[int], name: str, found: Correction) -> None:
    adjusted, _, rejected = _NAMES[name]
    for place, i in enumerate(places):
        if getattr(results[i], name) is not None:
            changes[i] |= {adjusted: _given(found.adjusted[place]), rejected: bool(found.rejected[place])}


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _given(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
