"""Corrections and evidence: checked against hand-computed corrections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from biassay.results.outcomes import (
    Outcome,
    ResultRecord,
    correct_by_model,
    correct_declared,
    correct_rows,
    join_decisions,
)


@dataclass(frozen=True, kw_only=True)
class ItemRecord(ResultRecord):
    test: str

    @property
    def item(self) -> str:
        return self.test


def record(test: str, p: float | None, *, effect: float | None = 1.0, model: str = "m", **given: Any) -> ItemRecord:
    outcome = Outcome(effect_size=effect, p_value=p, **given.pop("outcome", {}))
    return ItemRecord(model=model, options="", test=test, outcome=outcome, **given)


def test_holm_runs_over_the_questions_of_each_model() -> None:
    records = [record("a", 0.01), record("b", 0.03), record("c", 0.04), record("a", 0.04, model="other")]
    decisions = correct_by_model(records, 0.05)
    assert [decision.p_adjusted for decision in decisions] == pytest.approx([0.03, 0.06, 0.06, 0.04])
    assert [decision.evidence for decision in decisions] == ["significant", "uncorrected", "uncorrected", "significant"]
    assert [decision.family_size for decision in decisions] == [3, 3, 3, 1]


def test_forms_of_a_question_count_once_and_sanity_checks_are_not_corrected() -> None:
    records = [
        record("sent-a", 0.02, question="a"),
        record("a", 0.01, question="a"),
        record("b", 0.5),
        record("check", 0.001, about="method"),
    ]
    sentence, word, other, check = correct_by_model(records, 0.05)
    assert (word.form_of, sentence.form_of, other.family_size) == (None, "a", 2)
    assert word.p_adjusted == pytest.approx(0.02)
    assert (check.p_adjusted, check.family, check.evidence) == (None, None, "uncorrected")


def test_a_declared_family_is_corrected_by_its_size_whatever_was_run() -> None:
    inside, outside = correct_declared(
        [record("a", 0.01), record("z", 0.0001)], 0.05, {"a": ("a",), "b": ("b",)}, "fam"
    )
    assert (inside.p_adjusted, inside.family_size, inside.exploratory) == (pytest.approx(0.02), 2, False)
    assert (outside.p_adjusted, outside.exploratory, outside.evidence) == (None, True, "uncorrected")


def test_under_a_papers_protocol_all_rows_are_one_family() -> None:
    decisions = correct_rows([record("a", 0.01), record("a", 0.02, model="other")], 0.05)
    assert [decision.p_adjusted for decision in decisions] == pytest.approx([0.02, 0.02])


@pytest.mark.parametrize(
    ("given", "evidence"),
    [
        ({"p": 0.2}, "inconclusive"),
        ({"p": None}, "not_testable"),
        ({"p": 0.5, "outcome": {"p_floor": 0.1}}, "not_testable"),
        ({"p": 0.001, "claim": "descriptive"}, "descriptive"),
        ({"p": 0.001, "claim": "inconclusive", "doubt": "the responses follow the order"}, "inconclusive"),
        ({"p": 0.001, "effect": None}, "skipped"),
        ({"p": 0.001, "status": "skipped"}, "skipped"),
        ({"p": 0.99, "outcome": {"p_opposite": 0.001}}, "uncorrected"),
    ],
)
def test_evidence(given: dict[str, Any], evidence: str) -> None:
    (decision,) = correct_by_model([record("a", **given)], 0.05)
    assert decision.evidence == evidence


def test_a_result_has_the_attributes_of_record_outcome_and_decision() -> None:
    records = [record("a", 0.01)]
    (result,) = join_decisions(records, correct_by_model(records, 0.05))
    assert (result.test, result.effect_size, result.evidence) == ("a", 1.0, "significant")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = result.nothing
