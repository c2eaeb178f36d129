"""Association tests of models side by side: effect sizes from single cosines in loops, and coverage of intervals."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.results.made_runs import as_by_text, as_by_word, as_refused, with_rows
from tests.studies.associations.compared_runs import (
    TESTS,
    calibrated,
    calibrated_difference,
    edited,
    effect,
    in_common,
    keeping,
    numbers,
    of,
    other_model,
    rows_of,
    simulated,
    without,
    without_clusters,
)
from tests.studies.associations.publish_runs import measured_in_contexts

import biassay
from biassay.errors import UsageError
from biassay.reporting.document import Cell
from biassay.results.comparison import Comparison
from biassay.runs.reports import compare_models
from biassay.runs.run import Run
from biassay.stats.crossed import crossed_test
from biassay.studies.associations.compare import AssociationDifference, difference_table, get_evidence
from biassay.studies.associations.findings import format_label


@pytest.fixture(scope="module")
def third(first: Run) -> Run:
    return other_model(first, "third", 2)


def row(found: Comparison, test: str) -> AssociationDifference:
    (one,) = [r for r in rows_of(found) if r.test == test]
    return one


def test_differences_are_those_of_the_words_in_common(first: Run, second: Run, third: Run) -> None:
    """Targets and attributes."""
    first, second, third = map(without_clusters, (first, second, third))
    result = of(second, "weat7")
    second = keeping(second, "weat7", X=list(result.associations["X"])[2:], B=list(result.associations["B"])[:5])
    first = keeping(first, "weat7", A=list(result.associations["A"])[1:])
    found = compare_models({"a": first, "b": second, "c": third})
    assert (found.baseline, found.confidence, found.notes) == ("glove", 0.95, ())
    assert [(r.model, r.test) for r in rows_of(found)] == [(m, t) for m in ("second", "third") for t in TESTS]
    for r in rows_of(found):
        other = second if r.model == "second" else third
        words = in_common(of(first, r.test), of(other, r.test))
        sizes = effect(first, r.test, words), effect(other, r.test, words)
        assert (r.effect_baseline, r.effect_model) == pytest.approx(sizes)
        deltas = [calibrated_difference(run, r.test, words) for run in (first, other)]
        assert (r.calibrated_baseline, r.calibrated_model) == pytest.approx(deltas)
        assert r.difference == pytest.approx(deltas[1] - deltas[0])
        sds = [calibrated(run, r.test, words)[1] for run in (first, other)]
        assert (r.cosine_sd_baseline, r.cosine_sd_model) == pytest.approx(sds)
        assert (r.cosine_difference_baseline, r.cosine_difference_model) == pytest.approx(
            [delta * sd for delta, sd in zip(deltas, sds, strict=True)]
        )
        assert (r.baseline, r.title, r.reason) == ("glove", format_label(of(first, r.test)), None)
        assert numbers(r) == tuple(len(words[role]) for role in "XYAB")
        tables = [calibrated(run, r.test, words)[0] for run in (first, other)]
        expected = crossed_test(tables[1] - tables[0], len(words["X"]), len(words["A"])).interval
        assert (r.interval_low, r.interval_high) == pytest.approx(expected)
    assert [numbers(r) for r in rows_of(found) if r.test == "weat7"] == [(6, 8, 7, 5), (8, 8, 7, 8)]


def test_a_family_are_tests_about_people_on_all_models_compared(first: Run, second: Run, third: Run) -> None:
    """A check of the method has its own interval only, and widens no other; what has no interval counts for nothing."""
    runs = {"a": first, "b": second, "c": third}
    everything = {(r.model, r.test): r for r in rows_of(compare_models(runs))}
    checked = {name: edited(run, "weat7", about="method") for name, run in runs.items()}
    found = rows_of(compare_models(checked))
    assert {r.test: (r.family, r.simultaneous_low is None) for r in found} == {
        t: (None, True) if t == "weat7" else (6, False) for t in TESTS
    }
    for r in found:
        same = everything[r.model, r.test]
        assert (r.interval_low, r.interval_high) == (same.interval_low, same.interval_high)
        assert r.is_check or r.simultaneous_low > same.simultaneous_low
    two = rows_of(compare_models({"a": checked["a"], "b": checked["b"]}))
    assert {r.family for r in two} == {3, None}
    refused = with_rows(second, tuple(as_refused(r) if r.test == "weat6" else r for r in second.results))
    assert {r.family for r in rows_of(compare_models({"a": first, "b": refused}))} == {3, None}


def test_the_first_model_is_the_baseline_unless_another_is_named(first: Run, second: Run, third: Run) -> None:
    runs = {"a": first, "b": second, "c": third}
    assert compare_models(runs).baseline == "glove"
    assert compare_models(dict(reversed(runs.items()))).baseline == "third"
    found = compare_models(runs, baseline="second")
    assert (found.baseline, {r.baseline for r in rows_of(found)}) == ("second", {"second"})
    assert list(dict.fromkeys(r.model for r in rows_of(found))) == ["glove", "third"]


@pytest.mark.parametrize("role", ["X", "A"])
def test_of_few_words_in_common_there_is_a_difference_without_an_interval(first: Run, second: Run, role: str) -> None:
    few = keeping(second, "weat6", **{role: list(of(second, "weat6").associations[role])[:1]})
    r = row(compare_models({"a": first, "b": few}), "weat6")
    words = in_common(of(first, "weat6"), of(few, "weat6"))
    assert r.reason == "too few words in common for an interval"
    assert numbers(r) == ((1, 8, 8, 8) if role == "X" else (8, 8, 1, 8))
    deltas = [calibrated_difference(run, "weat6", words) for run in (first, second)]
    assert r.difference == pytest.approx(deltas[1] - deltas[0])
    assert (r.interval_low, r.interval_high, r.simultaneous_low, r.simultaneous_high) == (None,) * 4


def test_without_cosines_there_is_no_difference(first: Run, second: Run) -> None:
    """An older run must be measured again."""
    older = dataclasses.replace(second, arrays={})
    misfit = dataclasses.replace(second, arrays={**second.arrays, "0/weat6/cosines": np.zeros((3, 3))})
    scales = {name: array for name, array in second.arrays.items() if "/scales/" not in name}
    for other in (older, misfit, dataclasses.replace(second, arrays=scales)):
        for runs in ({"a": first, "b": other}, {"b": other, "a": first}):
            r = row(compare_models(runs), "weat6")
            assert "measure the model again" in (r.reason or "")
            assert (r.difference, r.interval_low, r.simultaneous_low, r.family) == (None,) * 4


def test_words_of_a_cluster_are_averaged(first: Run, second: Run) -> None:
    words = {role: list(own) for role, own in of(first, "weat6").associations.items()}
    together = {"X": dict.fromkeys(words["X"][:3], words["X"][0]), "B": dict.fromkeys(words["B"][2:4], words["B"][2])}
    runs = {name: edited(run, "weat6", clusters=together) for name, run in (("a", first), ("b", second))}
    r = row(compare_models(runs), "weat6")
    assert numbers(r) == (6, 8, 8, 7)
    tables = []
    for run in (first, second):
        table = calibrated(run, "weat6", words)[0]
        rows = np.vstack([table[:3].mean(axis=0), table[3:]])
        tables.append(np.column_stack([rows[:, :10], rows[:, 10:12].mean(axis=1), rows[:, 12:]]))
    expected = crossed_test(tables[1] - tables[0], 6, 8)
    assert (r.difference, r.interval_low) == pytest.approx((expected.D, expected.interval[0]))  # type: ignore[index]


def test_scores_of_four_sets_and_texts_of_unknown_words_have_no_interval(first: Run, second: Run) -> None:
    plain: dict[str, Any] = {"associations": {}}
    for given, said in (
        (plain, "are unknown"),
        ({"scale": "score", "metric": "own", "associations": {}}, "metric own"),
    ):
        make = as_by_text if given is plain else as_by_word
        one, other = (
            with_rows(run, (make(r, effect_size=e, **given) if r.test == "weat6" else r for r in run.results))
            for run, e in ((first, 0.25), (second, 1.0))
        )
        r = row(compare_models({"a": one, "b": other}), "weat6")
        expected = (None, None, None) if given is plain else (0.25, 1.0, 0.75)
        assert (r.effect_baseline, r.effect_model, r.difference) == expected
        assert (r.interval_low, r.simultaneous_low) == (None, None)
        assert said in (r.reason or "")
        assert "again" not in (r.reason or "")


def test_tests_over_contexts_are_compared_by_word() -> None:
    one, two = measured_in_contexts(("one",)), measured_in_contexts(("zero", "two"))
    two = with_rows(two, tuple(r for r in two.results if r.model == "two"))
    arrays = {f"0/{name.removeprefix('1/')}": array for name, array in two.arrays.items() if name.startswith("1/")}
    found = compare_models({"a": one, "b": two})
    assert [(r.model, r.test) for r in rows_of(found)] == [("two", t) for t in ("C6", "C9", "C10", "C1")]
    two = dataclasses.replace(two, arrays=arrays)
    for r in rows_of(found)[:3]:
        words = in_common(of(one, r.test), of(two, r.test))
        sizes = [effect(run, r.test, words) for run in (one, two)]
        assert (r.effect_baseline, r.effect_model) == pytest.approx(sizes)
        deltas = [calibrated_difference(run, r.test, words) for run in (one, two)]
        assert r.difference == pytest.approx(deltas[1] - deltas[0])
        assert sizes[0] == pytest.approx(of(one, r.test).effect_size)
        assert r.interval_low < r.difference < r.interval_high
    assert rows_of(found)[3].reason == "not measured on one and two"


@pytest.mark.parametrize("role", ["X", "Y", "A", "B"])
def test_no_words_in_common_are_said(first: Run, second: Run, role: str) -> None:
    associations = of(second, "weat6").associations
    strangers = {**associations, role: {f"{word}?": value for word, value in associations[role].items()}}
    r = row(compare_models({"a": first, "b": edited(second, "weat6", associations=strangers)}), "weat6")
    assert r.reason == "no words in common"
    assert (r.difference, r.interval_low, r.interval_high) == (None, None, None)


def test_tests_that_one_model_lacks_are_left_out(first: Run, second: Run) -> None:
    found = compare_models({"a": without(first, "weat6"), "b": without(second, "weat7")})
    assert [r.test for r in rows_of(found)] == ["weat8", "sent-weat6"]
    with pytest.raises(UsageError, match="no test in common"):
        compare_models({"a": without(first, *TESTS[:2]), "b": without(second, *TESTS[2:])})


def test_the_table_of_a_paper_has_the_numbers_of_the_comparison(first: Run, second: Run) -> None:
    checked = [edited(run, "weat8", about="method") for run in (first, second)]
    found = compare_models(dict(zip("ab", checked, strict=True)))
    cells = {row.stub[0]: row.cells for row in difference_table(found).rows}
    assert list(cells) == ["weat6", "weat7", "sent-weat6", "weat8, sanity check"]
    for r in rows_of(found):
        difference, interval = cells[f"{r.test}, sanity check" if r.is_check else r.test]
        assert difference == Cell(f"{r.difference:z.2f}", "*" * get_evidence(r))
        assert interval.text.replace("−", "-") == f"[{r.interval_low:z.2f}, {r.interval_high:z.2f}]"


@pytest.mark.slow
@pytest.mark.parametrize("true", [0.0, 0.08])
def test_models_that_differ_by_noise_alone_are_rarely_told_apart(true: float) -> None:
    """Other words each time, targets and attributes: about one interval in twenty may leave out zero."""
    found = rows_of(biassay.compare(*simulated(np.random.default_rng(5), 8, 600, true)))
    leaving = sum(r.interval_low > 0.0 or r.interval_high < 0.0 for r in found)
    assert 0.02 * 600 <= leaving <= 0.07 * 600
    assert sum(r.simultaneous_low > 0.0 or r.simultaneous_high < 0.0 for r in found) <= 1
