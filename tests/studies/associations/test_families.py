"""Families of questions: forms count once, and a declared family is independent of other tests in the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.results.made_runs import result, run_of

import biassay
from biassay.errors import UsageError
from biassay.reporting.document import Cell
from biassay.reporting.findings import make_counts_table

HIGH = 0.4


def form(test: str, p: float | None, of: str | None = None, **given: Any) -> Any:
    return result("m", test, p, question=of or "", level="sentence" if of else "word", **given)


def adjusted(*rows: Any, **settings: Any) -> dict[str, float | None]:
    return {row.test: row.p_adjusted for row in run_of("one", rows, settings=settings).results}


def test_a_form_is_significant_only_if_its_question_is() -> None:
    rows = [form("a", 0.06), form("a1", 1e-9, "a"), form("b", 0.01), form("b1", 0.02, "b"), form("b2", 1e-9, "b")]
    found = {one.item: (one.evidence, one.form_of) for one in run_of("one", rows).findings()}
    assert found == {
        "a": ("inconclusive", None),
        "a1": ("uncorrected", "a"),
        "b": ("significant", None),
        "b1": ("significant", "b"),
        "b2": ("significant", "b"),
    }


def test_the_first_sentence_form_stands_for_a_question_without_a_measured_word_test() -> None:
    refused = form("a", None, status="skipped", reason="too many words")
    rows = [form("a-z", 0.01, "a"), refused, form("a-b", HIGH, "a")]
    assert {one.item: one.form_of for one in run_of("one", rows).findings()} == {"a-z": "a-b", "a": None, "a-b": None}


DECLARED = {"family": ("all",), "declared": {"a": ("a", "a1"), "b": ("b",), "c": ("c",)}}


def test_declared_questions_count_whether_or_not_they_were_run() -> None:
    few = [form("a", 0.01), form("a1", 0.004, "a")]
    many = [*few, form("b", 1e-6), form("c", 1e-9), form("x", 1e-9)]
    assert adjusted(*few, **DECLARED) == {"a": pytest.approx(0.03), "a1": pytest.approx(0.03)}
    assert {name: adjusted(*many, **DECLARED)[name] for name in ("a", "a1")} == adjusted(*few, **DECLARED)


def test_a_question_outside_the_declared_family_is_exploratory() -> None:
    *_, found = run_of("one", [form("a", 0.01), form("x", 1e-9)], settings=DECLARED).findings()
    assert (found.evidence, found.exploratory, found.p_values["crossed, corrected"]) == ("uncorrected", True, None)
    assert any("not in the declared family" in note for note in found.notes)


def test_the_counts_say_how_many_questions_are_outside_the_declared_family() -> None:
    run = run_of("one", [form("a", 0.01), form("x", 1e-9), form("y", HIGH)], settings=DECLARED)
    table = make_counts_table(run.findings())
    assert table is not None
    rows = {row.stub: row.cells for row in table.groups[0].rows}
    assert rows["  exploratory",] == (Cell("2"), Cell("not in the declared family"))


def test_evidence_on_a_declared_question_does_not_depend_on_what_else_was_run(tmp_path: Path) -> None:
    """Today's default corrects over the run; sent-weat6 had another adjusted p-value alone than with 40 others."""
    given: dict[str, Any] = {"cache": tmp_path, "random_sets": 0, "family": "default"}
    alone = biassay.run("glove", ["weat6", "sent-weat6"], **given)
    whole = biassay.run("glove", **given)
    both = [{r.test: r.p_adjusted for r in run.results} for run in (alone, whole)]
    assert both[0] == {test: both[1][test] for test in ("weat6", "sent-weat6")}
    assert {r.family_size for r in alone.results} == {21}
    assert alone.manifest.settings.declared["weat6"] == ("weat6", "sent-weat6")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"family": "default", "protocol": "may2019"}, "corrects over all rows"),
        ({"family": "weat1"}, "names no social-bias test"),
        ({"family": ["run", "weat6"]}, "--family run cannot be combined with tests"),
        ({"family": "wet6"}, "wet6"),
    ],
)
def test_a_family_that_cannot_be_is_refused(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        biassay.run("glove", "weat6", cache=tmp_path, **given)


def test_null_models_have_at_least_one_significant_question_rarely() -> None:
    """Six forms of each of 20 questions, all alike: the share of models with a false claim stays near .05."""
    rng = np.random.default_rng(7)
    false = 0
    for _ in range(200):
        p = rng.random(20)
        rows = [form(f"t{i}", p[i]) for i in range(20)]
        rows += [form(f"t{i}-{j}", p[i], f"t{i}") for i in range(20) for j in range(5)]
        false += any(one.evidence == "significant" for one in run_of("one", rows).findings())
    assert false <= 18  # P(more than 18 of 200 at .05) < .01
