"""Outcomes of two models compared by sampling unit, or from their standard errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biassay.errors import UsageError
from biassay.results.comparison import DIFFERENCES, EffectDifference, Verdict
from biassay.results.outcomes import Outcome, ResultRecord
from biassay.results.paired_comparison import compare_paired_items, judge_pairs, pair_outcomes
from biassay.results.run_data import Manifest, ModelRecord, RunData


@dataclass(frozen=True, kw_only=True)
class _Record(ResultRecord):
    item: str = "age"


OLD = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
SHIFT = np.array([-0.2, -0.1, -0.05, 0.0, 0.0, 0.05, 0.1, 0.2])  # symmetric: no correction for skewness


def make_record(values: Any, **fields: Any) -> _Record:
    error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    outcome = Outcome(
        effect_size=float(np.mean(values)),
        standard_error=error,
        df=len(values) - 1,
        scale="share",
        limit=1.0,
        n={"prompts": len(values)},
        contributions="units",
    )
    return _Record(model="", options="", **{"outcome": outcome, "direction": 1, "title": "Age", **fields})


def make_run(name: str, *records: _Record, units: Any = None, inputs: str = "same") -> RunData:
    model = ModelRecord(name, name, name, None, {})
    manifest = Manifest(1, name, "own", "own", "complete", "", None, {}, (model,), SimpleNamespace(), inputs)
    arrays = {} if units is None else {"0/units": np.asarray(units)}
    return RunData(manifest, {"results": tuple(replace(one, model=name) for one in records)}, arrays)


def compare(old: RunData, new: RunData, margin: float | None = None) -> tuple[EffectDifference, Verdict]:
    runs = {"old": old, "new": new}
    comparison = compare_paired_items("own", runs, pair_outcomes, baseline=None, notes=(), what="item")
    (verdict,) = judge_pairs(pair_outcomes(runs, "a"), margin=margin, alpha=0.1)
    return comparison.tables[DIFFERENCES][0], verdict


@pytest.mark.parametrize(("growth", "outcome"), [(0.5, "worse"), (0.0, "no_worse"), (0.15, "inconclusive")])
def test_contributions_are_paired_by_unit(growth: float, outcome: str) -> None:
    """The reference is the paired t-test."""
    new = OLD + SHIFT + growth
    runs = make_run("a", make_record(OLD), units=OLD), make_run("b", make_record(new), units=new)
    difference, verdict = compare(*runs)
    reference = stats.ttest_rel(new, OLD)
    assert difference.p_value == pytest.approx(reference.pvalue)
    assert (difference.interval_low, difference.interval_high) == pytest.approx(reference.confidence_interval(0.95))
    assert (verdict.low, verdict.high) == pytest.approx(reference.confidence_interval(0.95))  # alpha .1, two contrasts
    assert (verdict.outcome, verdict.over, verdict.reason) == (outcome, "8 prompts", None)


def test_without_contributions_errors_are_independent() -> None:
    """The reference is Welch's test. Runs with other inputs are not paired, whatever they store."""
    new = OLD + SHIFT + 0.5
    reference = stats.ttest_ind(new, OLD, equal_var=False)
    for units, inputs in ((None, "same"), (new, "other")):
        old_units = None if units is None else OLD
        old = make_run("a", make_record(OLD), units=old_units)
        difference, _ = compare(old, make_run("b", make_record(new), units=units, inputs=inputs))
        assert difference.p_value == pytest.approx(reference.pvalue)
        ends = difference.interval_low, difference.interval_high
        assert ends == pytest.approx(reference.confidence_interval(0.95))
        assert "as if independent" in str(difference.reason)


def test_an_interval_gives_the_standard_error() -> None:
    record = make_record(OLD)
    error, mean = record.outcome.standard_error, record.outcome.effect_size
    assert error is not None
    assert mean is not None
    reach = stats.t(7).ppf(0.975) * error
    only_ends = replace(
        record, outcome=replace(record.outcome, standard_error=None, ci_low=mean - reach, ci_high=mean + reach)
    )
    shifted = make_run("b", make_record(OLD + 0.3))
    assert compare(make_run("a", only_ends), shifted)[0].p_value == pytest.approx(
        compare(make_run("a", record), shifted)[0].p_value
    )


def test_the_expected_direction_decides_what_is_worse() -> None:
    old, new = OLD + 0.3, OLD + SHIFT - 0.2
    for direction, outcome in ((1, "better"), (-1, "worse")):
        records = [make_record(values, direction=direction) for values in (old, new)]
        runs = make_run("a", records[0], units=old), make_run("b", records[1], units=new)
        assert compare(*runs)[1].outcome == outcome
    undirected = [make_record(values, direction=None) for values in (OLD + 1.0, OLD + SHIFT + 2.0)]
    runs = make_run("a", undirected[0], units=OLD + 1.0), make_run("b", undirected[1], units=OLD + SHIFT + 2.0)
    assert (compare(*runs)[1].outcome, compare(*runs)[1].direction) == ("worse", None)


def test_a_scale_without_limit_needs_a_margin() -> None:
    outcome = replace(make_record(OLD).outcome, scale="cosine", limit=None)
    old, new = make_run("a", make_record(OLD, outcome=outcome)), make_run("b", make_record(OLD, outcome=outcome))
    with pytest.raises(UsageError, match=r"scale 'cosine' have no default margin; type --margin"):
        compare(old, new)
    assert compare(old, new, margin=5.0)[1].outcome == "no_worse"


def test_what_cannot_be_judged_says_why() -> None:
    old = make_run("a", make_record(OLD), units=OLD)
    assert compare(old, make_run("b", make_record(OLD, item="religion")))[1].outcome == "missing"
    bare = replace(make_record(OLD + 0.1), outcome=Outcome(effect_size=0.45, scale="share", limit=1.0))
    assert compare(old, make_run("b", bare))[1].reason == "no standard error and no interval"
    doubtful = make_record(OLD + SHIFT, claim="inconclusive", doubt="30% refusals")
    assert compare(old, make_run("b", doubtful, units=OLD + SHIFT))[1].reason == "30% refusals (b)"
    same = compare(old, make_run("b", make_record(OLD), units=OLD))[1]
    assert (same.outcome, same.identical) == ("no_worse", True)
    with pytest.raises(UsageError, match="mean of the array 'units'"):
        compare(old, make_run("b", make_record(OLD), units=OLD + 1.0))
