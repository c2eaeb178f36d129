"""Families of questions: what a declared family holds, and the decisions of a run of association tests."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import Test
from biassay.results.decisions import correct_by_model, correct_declared, correct_rows, make_decision
from biassay.results.outcomes import Decision
from biassay.studies.associations.results import AssociationRecord
from biassay.studies.associations.settings import DEFAULT_FAMILY, PAPER_PROTOCOLS, RUN_FAMILY, AssociationSettings

__all__ = ["decide_associations", "resolve_questions"]


def resolve_questions(family: Sequence[str], tests: Sequence[Test]) -> dict[str, tuple[str, ...]]:
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


def decide_associations(settings: AssociationSettings, records: Sequence[AssociationRecord]) -> tuple[Decision, ...]:
    """Correct over the questions of each model, or a declared family; over all rows under the papers' protocols.

    A test whose words were found by searching the model belongs to no family.
    """
    alpha = settings.alpha_or_default
    rows = [record for record in records if record.protocol in PAPER_PROTOCOLS and not record.searched]
    others = [record for record in records if record.protocol not in PAPER_PROTOCOLS and not record.searched]
    decisions = {id(record): make_decision(record, alpha) for record in records if record.searched}
    decisions |= {id(record): decision for record, decision in zip(rows, correct_rows(rows, alpha), strict=True)}
    if settings.declared:
        decided = correct_declared(others, alpha, settings.declared, ", ".join(settings.family))
    else:
        decided = correct_by_model(others, alpha)
    decisions |= {id(record): decision for record, decision in zip(others, decided, strict=True)}
    return tuple(decisions[id(record)] for record in records)
