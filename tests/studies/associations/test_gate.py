"""Whether a new model is worse than the old one: the verdict of each test, and what fails a gate."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.results.made_runs import as_refused, with_rows
from tests.studies.associations.compared_runs import (
    cut,
    edited,
    effect,
    in_common,
    keeping,
    of,
    simulated,
    without,
)

import biassay
from biassay.errors import MeasurementError, UsageError
from biassay.results.comparison import Comparison
from biassay.results.verdicts import Verdict, judged
from biassay.runs.run import Run
from biassay.stats.crossed_effect import crossed_difference
from biassay.stats.stronger import TwoModels


def verdict(found: Comparison, test: str) -> Verdict:
    (one,) = [v for v in found.verdicts if v.test == test]
    return one


def refusing(run: Run, test: str) -> Run:
    return with_rows(run, (as_refused(r) if r.test == test else r for r in run.results))


@pytest.mark.parametrize(
    ("difference", "low", "high", "expected"),
    [
        (0.5, 0.01, 1.0, "worse"),
        (0.5, 0.0, 1.0, "cannot tell"),
        (0.2, 0.1, 0.3, "cannot tell"),
        (0.21, 0.1, 0.3, "worse"),
        (0.1, 0.05, 0.2, "no worse"),
        (0.1, 0.05, 0.201, "cannot tell"),
        (0.0, 0.0, 0.0, "no worse"),
        (-0.5, -1.0, 0.3, "cannot tell"),
        (-0.5, -0.9, -0.1, "no worse"),
    ],
)
def test_the_rule(difference: float, low: float, high: float, expected: str) -> None:
    assert judged(difference, low, high, 0.2) == expected


def test_numbers_are_those_of_the_words_in_common(first: Run, second: Run) -> None:
    words = of(second, "weat7").associations
    second = keeping(second, "weat7", X=list(words["X"])[2:], B=list(words["B"])[:5])
    second = edited(second, "weat8", effect_size_by_word=99.0)  # what was kept is not what is compared
    found = biassay.compare(first, second, margin=0.3, level=0.04)
    for v in found.verdicts:
        common = in_common(of(first, v.test), of(second, v.test))
        d1, d2 = (effect(run, v.test, common) for run in (first, second))
        assert (v.effect_baseline, v.effect_model) == pytest.approx((d1, d2))
        assert v.difference == pytest.approx(abs(d2) - abs(d1))
        tables = [cut(run, v.test, common) for run in (first, second)]
        sizes = len(common["X"]), len(common["A"])
        expected = crossed_difference(*tables, *sizes, confidence=1.0 - 0.04 / 4, absolute=True)
        assert (v.low, v.high) == pytest.approx((expected.low, expected.high))
        assert (v.family, v.margin, v.level) == (4, 0.3, 0.04)


def test_checks_of_the_method_are_not_judged(first: Run, second: Run) -> None:
    runs = [edited(run, "weat6", about="method") for run in (first, second)]
    found = biassay.compare(*runs)
    assert [(v.test, v.family) for v in found.verdicts] == [("weat7", 3), ("weat8", 3), ("sent-weat6", 3)]


def test_a_model_is_no_worse_than_itself(first: Run) -> None:
    again = dataclasses.replace(first, manifest=dataclasses.replace(first.manifest, run_id="again"))
    found = biassay.compare(first, again)
    assert {(v.outcome, v.difference, v.low, v.high) for v in found.verdicts} == {("no worse", 0.0, 0.0, 0.0)}
    assert {(v.family, v.power, v.detectable) for v in found.verdicts} == {(None, None, None)}
    assert found.failed("worse") == found.failed("not-shown") == ()


def test_a_test_that_is_the_same_on_both_is_not_in_the_family(first: Run, second: Run) -> None:
    place = "0/weat7/cosines"
    same = dataclasses.replace(second, arrays={**second.arrays, place: first.arrays[place]})
    found = biassay.compare(first, same)
    assert {v.test: v.family for v in found.verdicts} == {"weat6": 3, "weat7": None, "weat8": 3, "sent-weat6": 3}
    differences = {row.test: row for row in found.tables["associations"]}
    assert {name: row.family for name, row in differences.items()} == {v.test: v.family for v in found.verdicts}
    assert (differences["weat7"].simultaneous_low, differences["weat7"].simultaneous_high) == (0.0, 0.0)
    three = biassay.compare(without(first, "weat7"), without(second, "weat7"))
    assert [v for v in found.verdicts if v.test != "weat7"] == list(three.verdicts)


def test_power_is_that_of_the_words_and_the_family(first: Run, second: Run) -> None:
    for v in biassay.compare(first, second, margin=0.3, level=0.04).verdicts:
        common = in_common(of(first, v.test), of(second, v.test))
        tables = [cut(run, v.test, common) for run in (first, second)]
        seen = TwoModels.of(*tables, len(common["X"]), len(common["A"]), confidence=0.99, margin=0.3, pairs=150)
        assert seen is not None
        assert (v.power, v.detectable) == (seen.power(0.5), seen.smallest())
    powers = {
        level: [v.power or 0.0 for v in biassay.compare(first, second, level=level).verdicts] for level in (0.01, 0.5)
    }
    assert all(one <= other for one, other in zip(*powers.values(), strict=True))
    assert sum(powers[0.01]) < sum(powers[0.5])


def test_a_test_that_is_lost_fails_and_one_that_none_has_does_not(first: Run, second: Run) -> None:
    lost = biassay.compare(first, refusing(second, "weat7"))
    assert verdict(lost, "weat7").outcome == "lost"
    assert verdict(lost, "weat7").reason == "refused: too many words"
    assert verdict(lost, "weat7") in lost.failed("worse")
    left_out = biassay.compare(first, without(second, "weat7"))
    assert verdict(left_out, "weat7") in left_out.failed("worse")
    neither = biassay.compare(refusing(first, "weat7"), refusing(second, "weat7"))
    assert verdict(neither, "weat7").outcome == "not measured"
    assert verdict(neither, "weat7") not in neither.failed("not-shown")
    gained = biassay.compare(refusing(first, "weat7"), second)
    assert verdict(gained, "weat7").outcome == "cannot tell"
    assert verdict(gained, "weat7") in gained.failed("not-shown")
    assert verdict(gained, "weat7") not in gained.failed("worse")
    assert {v.family for v in gained.verdicts if v.low is not None} == {3}


def test_without_cosines_nothing_can_be_told(first: Run, second: Run) -> None:
    found = biassay.compare(first, dataclasses.replace(second, arrays={}))
    assert {(v.outcome, v.low, v.family) for v in found.verdicts} == {("cannot tell", None, None)}
    with pytest.raises(MeasurementError, match="measure again"):
        found.failed("not-shown")


def test_a_gate_needs_something_to_judge(first: Run, second: Run) -> None:
    runs = [with_rows(run, map(as_refused, run.results)) for run in (first, second)]
    with pytest.raises(MeasurementError, match="by any test"):
        biassay.compare(*runs).failed()
    with pytest.raises(UsageError, match="not-shown"):
        biassay.compare(first, second).failed("better")
    for name, wrong in (("margin", (0.0, -0.1, np.nan, np.inf)), ("level", (0.0, 1.0, -1.0, np.nan))):
        for value in wrong:
            with pytest.raises(UsageError, match=name):
                biassay.compare(first, second, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="one model only"):
        biassay.compare("glove")


def test_a_biased_model_is_caught() -> None:
    found = biassay.compare(*simulated(np.random.default_rng(2), 20, 5, 0.0, more=0.3, shared=0.95))
    assert len(found.failed("worse")) == 5
    back = biassay.compare(*simulated(np.random.default_rng(2), 20, 5, 0.3, more=-0.3, shared=0.95))
    assert {v.outcome for v in back.verdicts} == {"no worse"}


@pytest.mark.slow
@pytest.mark.parametrize(("true", "shared"), [(0.0, 0.7), (0.08, 0.7), (0.08, 0.98)])
def test_a_model_that_differs_by_noise_alone_passes(true: float, shared: float) -> None:
    """At least 99 times in 100, three tests each: as the level says, and less often by far where signs are in doubt."""
    rng = np.random.default_rng(11)
    failed = sum(bool(biassay.compare(*simulated(rng, 8, 3, true, shared=shared)).failed("worse")) for _ in range(100))
    assert failed <= 1
