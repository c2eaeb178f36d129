"""Verdicts on association tests: their numbers, the deciding form, and gate failures."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from tests.results.made_runs import altered, as_refused, with_rows
from tests.studies.associations.compared_runs import (
    calibrated,
    edited,
    in_common,
    keeping,
    of,
    other_model,
    simulated,
    without,
    without_clusters,
)

import biassay
from biassay.datasets.schema import Direction
from biassay.errors import MeasurementError, UsageError
from biassay.prompts.sentences import load_frequent_words
from biassay.results.comparison import Comparison, Verdict, VerdictOutcome, find_power_gaps
from biassay.runs.run import Run
from biassay.stats.model_difference import REVERSAL_NOT_EXCLUDED, compare_tables


def verdict(found: Comparison, test: str) -> Verdict:
    (one,) = [v for v in found.verdicts if v.test == test]
    return one


def refusing(run: Run, test: str) -> Run:
    return with_rows(run, (as_refused(r) if r.test == test else r for r in run.results))


def with_cosines(run: Run, test: str, table: np.ndarray) -> Run:
    return dataclasses.replace(run, arrays={**run.arrays, f"0/{test}/cosines": table})


SIGN = {"positive": 1, "negative": -1, None: None}


@pytest.mark.parametrize("direction", ["positive", "negative", None])
def test_numbers_are_those_of_the_words_in_common(first: Run, second: Run, direction: Direction | None) -> None:
    first, second = map(without_clusters, (first, second))
    words = of(second, "weat7").associations
    second = keeping(second, "weat7", X=list(words["X"])[2:], B=list(words["B"])[:5])
    runs = [with_rows(r, (altered(x, direction=SIGN[direction]) for x in r.results)) for r in (first, second)]
    found = biassay.compare(*runs, margin=0.3, alpha=0.04)
    for v in found.verdicts:
        common = in_common(of(first, v.test), of(second, v.test))
        tables, sds = zip(*(calibrated(run, v.test, common) for run in (first, second)), strict=True)
        expected = compare_tables(
            tables[0],
            tables[1],
            len(common["X"]),
            len(common["A"]),
            direction=direction,
            margin=0.3,
            confidence=1.0 - 0.04 / (2 * 3),
        )
        assert (v.effect_baseline, v.effect_model) == pytest.approx((expected.old, expected.new))
        assert (v.growth, v.low, v.high) == pytest.approx(
            (expected.growth.value, expected.growth.low, expected.growth.high)
        )
        assert (v.reversal, v.reversal_low) == pytest.approx((expected.reversal.value, expected.reversal.low))
        assert (v.outcome, v.margin, v.alpha, v.direction) == (expected.verdict, 0.3, 0.04, direction)
        assert (v.cosine_sd_baseline, v.cosine_sd_model) == pytest.approx(sds)
        assert expected.power is not None
        assert (v.power, v.detectable) == pytest.approx((expected.power.at_twice_margin, expected.power.detectable))


def test_the_error_of_the_cosine_sds_widens_intervals(first: Run, second: Run) -> None:
    """Frequent words whose cosines differ between the models, with the same standard deviation."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.permutation(array) if "/scales/" in name else array for name, array in second.arrays.items()}
    alike, unlike = (biassay.compare(first, new) for new in (second, dataclasses.replace(second, arrays=arrays)))
    for plain, wider in zip(alike.verdicts, unlike.verdicts, strict=True):
        assert wider.growth == pytest.approx(plain.growth)
        assert wider.low < plain.low < plain.high < wider.high


def test_the_word_form_decides(first: Run, second: Run) -> None:
    sentences = first.arrays["0/sent-weat6/cosines"]
    shift = np.outer(*(np.repeat([1.0, -1.0], [len(of(first, "sent-weat6").associations[r]) for r in sides])
                       for sides in ("XY", "AB")))  # fmt: skip
    same = dataclasses.replace(other_model(first, "new", 0, noise=0.0))
    shift = shift * np.random.default_rng(0).normal(0.5, 0.01, shift.shape)
    runs = first, with_cosines(same, "sent-weat6", sentences + shift)
    found = biassay.compare(*(edited(run, "sent-weat6", direction=1) for run in runs))
    assert (verdict(found, "sent-weat6").outcome, verdict(found, "sent-weat6").decides) == ("worse", False)
    assert {(v.outcome, v.decides) for v in found.verdicts if v.test != "sent-weat6"} == {("no_worse", True)}
    assert found.failed("worse") == found.failed("inconclusive") == ()
    assert found.verdict == "new is no worse than glove: 3 of 3 questions no worse."
    alone = biassay.compare(*(edited(run, "sent-weat6", direction=1) for run in runs), tests="sent-weat6")
    assert [v.decides for v in alone.verdicts] == [True]
    assert len(alone.failed("worse")) == 1
    assert {v.family for v in biassay.compare(first, second).verdicts if v.decides} == {3}
    assert verdict(biassay.compare(first, second), "sent-weat6").family is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rotated_and_rescaled_model_is_a_copy(dtype: type[np.floating]) -> None:
    """Vectors are turned by a random orthogonal matrix and stretched, each by another factor, then measured again."""
    rng = np.random.default_rng(0)
    tests = biassay.select_tests(["weat6", "weat7"])
    words = dict.fromkeys(w for test in tests for role in "XYAB" for w in test.concept(role).words)
    texts = list(words | dict.fromkeys(load_frequent_words()))
    vectors = rng.normal(size=(len(texts), 100)) + 0.5 * rng.normal(size=100)
    turn, _ = np.linalg.qr(rng.normal(size=(100, 100)))
    new = (vectors @ turn) * rng.uniform(0.1, 10.0, size=(len(texts), 1))

    class Model:
        def __init__(self, rows: np.ndarray) -> None:
            self.rows = dict(zip(texts, rows.astype(dtype), strict=True))

        def encode(self, asked: list[str]) -> np.ndarray:
            return np.stack([self.rows[text] for text in asked])

    found = biassay.compare({"old": Model(vectors)}, {"new": Model(new)}, tests=["weat6", "weat7"])
    assert [(v.outcome, v.identical) for v in found.verdicts] == [("no_worse", True)] * 2
    assert found.failed("inconclusive") == found.power_gaps() == ()


def test_an_identical_test_leaves_the_family(first: Run, second: Run) -> None:
    found = biassay.compare(first, with_cosines(second, "weat7", first.arrays["0/weat7/cosines"]))
    assert {v.test: v.family for v in found.verdicts if v.decides} == {"weat6": 2, "weat7": None, "weat8": 2}
    two = biassay.compare(without(first, "weat7"), without(second, "weat7"))
    assert [v for v in found.verdicts if v.test != "weat7"] == list(two.verdicts)


def test_a_missing_test_fails_and_one_that_neither_model_has_does_not(first: Run, second: Run) -> None:
    lost = biassay.compare(first, refusing(second, "weat7"))
    assert (verdict(lost, "weat7").outcome, verdict(lost, "weat7").reason) == ("missing", "skipped: too many words")
    assert verdict(lost, "weat7") in lost.failed("worse")
    for test in ("weat7", "sent-weat6"):  # also a form that does not decide
        left_out = biassay.compare(first, without(second, test))
        assert verdict(left_out, test) in left_out.failed("worse")
    neither = biassay.compare(refusing(first, "weat7"), refusing(second, "weat7"))
    assert verdict(neither, "weat7").outcome == "not_measured"
    assert verdict(neither, "weat7") not in neither.failed("inconclusive")
    gained = biassay.compare(refusing(first, "weat7"), second)
    assert verdict(gained, "weat7").outcome == "inconclusive"
    assert verdict(gained, "weat7") in gained.failed("inconclusive")
    assert verdict(gained, "weat7") not in gained.failed("worse")


def test_a_topic_that_neither_model_has_is_told(first: Run) -> None:
    """Copies pass on measured topics; a topic without any measured test could not have failed."""
    topics = {"weat6": "gender", "weat7": "gender", "weat8": "science", "sent-weat6": "gender"}
    old = with_rows(first, (altered(row, topic=topics[row.test]) for row in first.results))
    new = other_model(old, "new", seed=1, noise=0.0)
    assert biassay.compare(old, new).power_gaps() == ()
    assert biassay.compare(refusing(old, "weat7"), refusing(new, "weat7")).power_gaps() == ()
    found = biassay.compare(refusing(old, "weat8"), refusing(new, "weat8"))
    (gap,) = found.power_gaps()
    assert (gap.topic, gap.questions, gap.power) == ("science", ("weat8",), 0.0)
    assert "Neither model was measured" in str(gap)
    assert found.power_gaps(0.0) == ()


def test_the_margin_that_a_power_gap_advises_gives_the_power(first: Run) -> None:
    new = other_model(first, "new", seed=1, noise=2.0)
    for gap in biassay.compare(first, new).power_gaps():
        advised = re.search(r"--margin ([\d.]+) gives 80% power", gap.advice)
        assert advised is not None
        verdicts = biassay.compare(first, new, margin=float(advised[1])).verdicts
        best = max(v.power or 0.0 for v in verdicts if v.decides and v.topic == gap.topic)
        assert best == pytest.approx(0.8, abs=0.02)
        return
    pytest.fail("no gap")


def test_without_cosines_nothing_can_be_judged(first: Run, second: Run) -> None:
    found = biassay.compare(first, dataclasses.replace(second, arrays={}))
    assert {(v.outcome, v.low, v.family) for v in found.verdicts} == {("inconclusive", None, None)}
    with pytest.raises(MeasurementError, match="measure the model again"):
        found.failed("inconclusive")


def test_a_gate_needs_something_to_judge(first: Run, second: Run) -> None:
    runs = [with_rows(run, map(as_refused, run.results)) for run in (first, second)]
    with pytest.raises(MeasurementError, match="by any social-bias test"):
        biassay.compare(*runs).failed()
    with pytest.raises(UsageError, match="'worse' or 'inconclusive'"):
        biassay.compare(first, second).failed("better")
    for name, wrong in (("margin", (0.0, -0.1, np.nan, np.inf)), ("alpha", (0.0, 1.0, -1.0, np.nan))):
        for value in wrong:
            with pytest.raises(UsageError, match=name):
                biassay.compare(first, second, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="only one model given"):
        biassay.compare("glove")


def test_a_biased_model_is_worse_and_a_debiased_one_better() -> None:
    """0.3 in cosine units are 3 standard deviations of cosines between frequent words."""
    for direction in (1, None):
        runs = simulated(np.random.default_rng(2), 20, 5, 0.1, more=0.3, shared=0.95, direction=direction)
        found = biassay.compare(*runs)
        assert {v.outcome for v in found.verdicts} == {"worse"}
        assert len(found.failed("worse")) == 5
        meaning = "stronger association" if direction is None else "closer to the stereotype"
        assert found.verdict.startswith(f"two is worse ({meaning}) than one: 5 of 5 questions worse")
        back = biassay.compare(*reversed(runs))
        assert {v.outcome for v in back.verdicts} == {"better"}
        assert back.verdict.startswith("one is better (farther from the stereotype) than two")
        assert back.failed("inconclusive") == ()


def test_a_model_whose_saturated_effect_doubles_is_worse(first: Run) -> None:
    """d is near its largest value, 1.94, on both models."""
    signs = np.repeat([1.0, -1.0], 8)
    old = 0.06 * np.outer(signs, signs) + 0.002 * np.random.default_rng(0).normal(size=(16, 16))
    runs = with_cosines(first, "weat6", old), with_cosines(other_model(first, "new", 0, 0.0), "weat6", 2.0 * old)
    found = verdict(biassay.compare(*(edited(run, "weat6", direction=1) for run in runs)), "weat6")
    assert found.d_model is not None
    assert (found.outcome, found.growth) == ("worse", pytest.approx(found.effect_baseline))


def test_a_change_of_very_unequal_words_needs_a_corrected_interval(first: Run) -> None:
    """By t the growth exceeds the margin; corrected for the skewness of the words it may not."""
    sides = np.repeat([1.0, -1.0], 8)
    changes = sides * (12.0 - np.random.default_rng(4).lognormal(size=16))
    old = 0.002 * np.random.default_rng(0).normal(size=(16, 16))
    new = old + 0.01 * np.outer(changes, sides)
    runs = with_cosines(first, "weat6", old), with_cosines(other_model(first, "new", 0, 0.0), "weat6", new)
    given = [without_clusters(edited(run, "weat6", direction=1)) for run in runs]
    low = verdict(biassay.compare(*given), "weat6").low
    assert low is not None
    assert low > 0.0
    found = verdict(biassay.compare(*given, margin=0.99 * low), "weat6")
    assert (found.low, found.outcome) == (low, "inconclusive")
    assert found.reason is not None
    assert "corrected for this skewness, the interval of the growth is" in found.reason
    assert verdict(biassay.compare(*given, margin=0.2 * low), "weat6").outcome == "worse"


@pytest.mark.parametrize(
    ("outcome", "power", "identical", "told"),
    [
        ("inconclusive", 0.19, False, True),
        ("no_worse", 0.19, False, True),
        ("no_worse", None, False, True),
        ("no_worse", 0.2, False, False),
        ("inconclusive", 0.2, False, False),
        ("no_worse", None, True, False),  # a copy
        ("better", 0.19, False, False),
        ("worse", 0.19, False, False),
    ],
)
def test_power_below_the_least_is_told_whatever_the_verdict_but_of_copies(
    first: Run, second: Run, outcome: VerdictOutcome, power: float | None, identical: bool, told: bool
) -> None:
    """All questions of the topic have no power but one."""
    verdicts = [dataclasses.replace(one, topic="gender", power=0.0) for one in biassay.compare(first, second).verdicts]
    verdicts[0] = dataclasses.replace(verdicts[0], outcome=outcome, power=power, identical=identical)
    gaps = find_power_gaps(verdicts, 0.2)
    assert [gap.topic for gap in gaps] == (["gender"] if told else [])
    assert all(gap.power == (power or 0.0) for gap in gaps)


def test_a_reversal_that_is_not_excluded_is_the_reason() -> None:
    """The association fell to 0 or below it, so that its growth is not the question."""
    rng = np.random.default_rng(3)
    runs = simulated(rng, 12, 1, 0.03, more=-0.1, shared=0.95, direction=1)
    (judged,) = biassay.compare(*runs).verdicts
    assert judged.outcome == "inconclusive"
    assert judged.high is not None
    assert judged.high <= judged.margin
    assert judged.reason == REVERSAL_NOT_EXCLUDED


@pytest.mark.slow
@pytest.mark.parametrize(("true", "shared"), [(0.0, 0.7), (0.08, 0.7), (0.08, 0.98)])
def test_a_model_that_differs_by_noise_alone_passes(true: float, shared: float) -> None:
    """At least 97 times in 100, three tests each: the margin adds to what alpha allows."""
    rng = np.random.default_rng(11)
    failed = sum(bool(biassay.compare(*simulated(rng, 8, 3, true, shared=shared)).failed("worse")) for _ in range(100))
    assert failed <= 3
