"""Association tests of models side by side: effect sizes from single words in loops and `biassay.holm` as witnesses."""

from __future__ import annotations

import dataclasses
import math
import statistics

import pytest
from tests.results.made_runs import as_refused, with_rows
from tests.studies.associations.compared_runs import TESTS, edited, of, other_model, without
from tests.studies.associations.publish_runs import measured_in_contexts

from biassay.errors import UsageError
from biassay.results.comparison import Comparison
from biassay.runs.run import Run
from biassay.runs.showing import compared
from biassay.stats.effect_interval import difference_interval
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.records import Result


@pytest.fixture(scope="module")
def second(first: Run) -> Run:
    return other_model(first, "second", 1)


@pytest.fixture(scope="module")
def third(first: Run) -> Run:
    return other_model(first, "third", 2)


def row(found: Comparison, test: str) -> AssociationDifference:
    (one,) = [r for r in found.tables["associations"] if r.test == test]
    return one


def effect(result: Result, words: dict[str, list[str]]) -> float:
    """(mean of X less mean of Y) / spread of all, by the book."""
    x, y = ([result.associations[role][word] for word in words[role]] for role in ("X", "Y"))
    return (statistics.fmean(x) - statistics.fmean(y)) / statistics.stdev([*x, *y])


def in_common(one: Result, other: Result) -> dict[str, list[str]]:
    return {role: [w for w in one.associations[role] if w in other.associations[role]] for role in ("X", "Y")}


def test_differences_are_those_of_the_words_in_common(first: Run, second: Run, third: Run) -> None:
    lacking = of(second, "weat7").associations
    second = edited(second, "weat7", associations={**lacking, "X": dict(list(lacking["X"].items())[2:])})
    found = compared({"a": first, "b": second, "c": third})
    assert (found.baseline, found.confidence, found.notes) == ("glove", 0.95, ())
    assert [(r.model, r.test) for r in found.tables["associations"]] == [
        (m, t) for m in ("second", "third") for t in TESTS
    ]
    for r in found.tables["associations"]:
        one, other = of(first, r.test), of(second if r.model == "second" else third, r.test)
        words = in_common(one, other)
        assert (r.effect_baseline, r.effect_model) == pytest.approx((effect(one, words), effect(other, words)))
        assert r.difference == pytest.approx(effect(other, words) - effect(one, words))
        assert (r.baseline, r.title, r.reason) == ("glove", one.title, None)
        assert (r.num_targ1, r.num_targ2) == (len(words["X"]), len(words["Y"]))
    assert [(r.num_targ1, r.num_targ2) for r in found.tables["associations"] if r.test == "weat7"] == [(6, 8), (8, 8)]


def test_simultaneous_intervals_are_paired_ones_of_more_confidence(first: Run, second: Run, third: Run) -> None:
    found = compared({"a": first, "b": second, "c": third})
    shares = len(found.tables["associations"])
    assert shares == 8
    for r in found.tables["associations"]:
        one, other = of(first, r.test), of(second if r.model == "second" else third, r.test)
        numbers = [list(result.associations[role].values()) for result in (one, other) for role in ("X", "Y")]
        paired, wider = (difference_interval(*numbers, confidence=c) for c in (0.95, 1 - 0.05 / shares))
        assert (r.interval_low, r.interval_high) == (paired.low, paired.high)
        assert (r.simultaneous_low, r.simultaneous_high) == (wider.low, wider.high)
        assert r.simultaneous_low < r.interval_low < r.difference < r.interval_high < r.simultaneous_high  # type: ignore[operator]


def test_the_first_model_is_the_baseline_unless_another_is_named(first: Run, second: Run, third: Run) -> None:
    runs = {"a": first, "b": second, "c": third}
    assert compared(runs).baseline == "glove"
    assert compared(dict(reversed(runs.items()))).baseline == "third"
    found = compared(runs, baseline="second")
    assert (found.baseline, {r.baseline for r in found.tables["associations"]}) == ("second", {"second"})
    assert list(dict.fromkeys(r.model for r in found.tables["associations"])) == ["glove", "third"]


def test_another_baseline_turns_the_difference(first: Run, second: Run) -> None:
    runs = {"a": first, "b": second}
    for one, turned in zip(
        compared(runs).tables["associations"], compared(runs, baseline="second").tables["associations"], strict=True
    ):
        assert (one.difference, one.effect_model) == (-(turned.difference or 0.0), turned.effect_baseline)
        ends = (one.interval_low, one.interval_high, one.simultaneous_low, one.simultaneous_high)
        other = (turned.interval_high, turned.interval_low, turned.simultaneous_high, turned.simultaneous_low)
        assert ends == pytest.approx([-(end or 0.0) for end in other])


def test_models_of_one_run_are_compared(first: Run, second: Run) -> None:
    """Also where they differ in nothing but their settings or weights."""
    both = with_rows(first, (*first.results, *second.results))
    assert compared({"a": both}).tables["associations"] == compared({"a": first, "b": second}).tables["associations"]
    alike = tuple(dataclasses.replace(r, model="glove", model_revision="other") for r in second.results)
    found = compared({"a": with_rows(first, (*first.results, *alike))})
    assert (found.baseline, {r.model for r in found.tables["associations"]}) == ("glove", {"glove #2"})


def test_one_model_only_is_refused(first: Run) -> None:
    with pytest.raises(UsageError, match=r"one model only \(glove\); name another run"):
        compared({"a": first})


def test_the_same_model_in_two_runs_has_two_names(first: Run) -> None:
    again = dataclasses.replace(first, manifest=dataclasses.replace(first.manifest, run_id="again"))
    found = compared({"x/run": first, "y/run": again})
    assert found.baseline == "glove [x/run]"
    for r in found.tables["associations"]:
        assert r.model == "glove [y/run]"
        assert r.difference == 0.0
        assert (r.interval_low, r.interval_high) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_tests_that_one_model_lacks_are_left_out(first: Run, second: Run) -> None:
    found = compared({"a": without(first, "weat6"), "b": without(second, "weat7")})
    assert [r.test for r in found.tables["associations"]] == ["weat8", "sent-weat6"]
    with pytest.raises(UsageError, match="no test in common"):
        compared({"a": without(first, *TESTS[:2]), "b": without(second, *TESTS[2:])})


def test_what_was_not_measured_on_a_model_is_said_and_has_no_difference(first: Run, second: Run, third: Run) -> None:
    refused, also = (
        with_rows(run, tuple(as_refused(r) if r.test == "sent-weat6" else r for r in run.results))
        for run in (second, third)
    )
    for runs, named in (
        ({"a": first, "b": refused}, "second"),
        ({"b": refused, "a": first}, "second"),
        ({"a": refused, "b": also}, "second and third"),
    ):
        r = row(compared(runs), "sent-weat6")
        assert r.reason == f"not measured on {named}"
        assert (r.difference, r.interval_low, r.simultaneous_high) == (None, None, None)
        assert (r.num_targ1, r.num_targ2) == (0, 0)
        effects = {r.baseline: r.effect_baseline, r.model: r.effect_model}
        assert effects["second"] is None


def test_no_words_in_common_are_said(first: Run, second: Run) -> None:
    associations = of(second, "weat6").associations
    strangers = {**associations, "Y": {f"{word}?": value for word, value in associations["Y"].items()}}
    for given in (strangers, {}, {**associations, "X": dict.fromkeys(associations["X"], math.nan)}):
        r = row(compared({"a": first, "b": edited(second, "weat6", associations=given)}), "weat6")
        assert r.reason == "no words in common that have numbers"
        assert (r.difference, r.interval_low, r.interval_high) == (None, None, None)


def test_of_few_words_in_common_there_is_a_difference_without_an_interval(first: Run, second: Run) -> None:
    associations = of(second, "weat6").associations
    few = {**associations, "X": dict(list(associations["X"].items())[:3])}
    found = compared({"a": first, "b": edited(second, "weat6", associations=few)})
    r = row(found, "weat6")
    words = in_common(of(first, "weat6"), dataclasses.replace(of(second, "weat6"), associations=few))
    assert r.reason == "too few words in common for an interval"
    assert (r.num_targ1, r.num_targ2) == (3, 8)
    assert r.difference == pytest.approx(effect(of(second, "weat6"), words) - effect(of(first, "weat6"), words))
    assert (r.interval_low, r.interval_high, r.simultaneous_low, r.simultaneous_high) == (None,) * 4


def test_words_that_are_all_associated_alike_have_no_difference_and_are_not_called_few(first: Run, second: Run) -> None:
    associations = of(second, "weat6").associations
    flat = {**associations, "X": dict.fromkeys(associations["X"], 0.25), "Y": dict.fromkeys(associations["Y"], 0.25)}
    r = row(compared({"a": first, "b": edited(second, "weat6", associations=flat)}), "weat6")
    assert r.difference is None or math.isnan(r.difference)
    assert r.reason is not None
    assert "few" not in r.reason


def test_tests_over_contexts_are_compared_by_word() -> None:
    one, two = measured_in_contexts(("one",)), measured_in_contexts(("zero", "two"))
    two = with_rows(two, tuple(r for r in two.results if r.model == "two"))
    found = compared({"a": one, "b": two})
    assert [(r.model, r.test) for r in found.tables["associations"]] == [
        ("two (layer=-1)", t) for t in ("C6", "C9", "C10", "C1")
    ]
    for r in found.tables["associations"][:3]:
        results = of(one, r.test), of(two, r.test)
        sizes = [effect(result, in_common(*results)) for result in results]
        assert (r.effect_baseline, r.effect_model) == pytest.approx(sizes)
        assert r.difference == pytest.approx(sizes[1] - sizes[0])
        assert sizes[0] == pytest.approx(results[0].effect_size_by_word)
    assert found.tables["associations"][3].reason == "not measured on one (layer=-1) and two (layer=-1)"
