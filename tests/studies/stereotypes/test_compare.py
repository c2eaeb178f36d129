"""How models of two runs of stereotypes agree with people, against scipy's tau."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biassay.errors import UsageError
from biassay.results.run_data import ModelRecord
from biassay.runs.reports import compare_models
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import HumanRecord

from .asked_models import numbers
from .made_runs import measured, run_of


def make_run(model: str, **changes: Any) -> Run:
    """A run of two measures, with changes of the profile of the second group."""
    tables = measured(model, "ilps", "set")
    rows = (dataclasses.replace(row, **changes) if row.group == "g1" else row for row in tables["profiles"])
    record = ModelRecord(model, model, "hf", None, {}, measured=True)
    return run_of((record,), {**tables, "profiles": tuple(rows)}, human=HumanRecord("human.json", "as given"))


def test_agreement_with_people_is_scipys_tau_over_the_cells_in_common() -> None:
    runs = {"a": make_run("m", scores=(None, 0.5, -0.25, 1.5)), "b": make_run("n")}
    found = compare_models(runs)
    assert (found.baseline, set(found.tables), found.results) == ("m", {"agreements"}, ())
    assert [(row.measure, row.model) for row in found.tables["agreements"]] == [("ilps", "n"), ("set", "n")]
    for row in found.tables["agreements"]:
        profiles = [[one for one in run.tables["profiles"] if one.measure == row.measure] for run in runs.values()]
        one, other = (np.array([numbers(profile.scores) for profile in own]) for own in profiles)
        human = np.array([numbers(profile.human or ()) for profile in profiles[0]])
        kept = ~np.isnan(one + other)
        a, b = (stats.kendalltau(side[kept], human[kept]).statistic for side in (one, other))
        assert (row.tau_baseline, row.tau_model, row.difference) == pytest.approx((a, b, b - a))
        assert row.tau_between == pytest.approx(stats.kendalltau(one[kept], other[kept]).statistic)
        assert (row.num_groups, row.num_cells) == (3, 11)
        assert row.interval_low is not None
        assert row.interval_low < row.difference < row.interval_high


def test_groups_that_nobody_rated_have_nothing_to_compare() -> None:
    runs = {name: make_run(name) for name in ("m", "n")}
    for name, run in runs.items():
        rows = tuple(dataclasses.replace(row, human=None) for row in run.tables["profiles"])
        runs[name] = dataclasses.replace(run, tables={**run.tables, "profiles": rows})
    with pytest.raises(UsageError, match="--human FILE"):
        compare_models(runs)
