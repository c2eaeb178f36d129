"""How models of two runs of stereotypes agree with people, against scipy's tau."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biassay.errors import UsageError
from biassay.results.run_data import ModelRecord
from biassay.runs.reports import compare_models as compare
from biassay.runs.run import Run
from biassay.studies.stereotypes.results import HumanRecord, MeasureRow, ProfileRow, StereotypeModelRow

from .made_runs import run_of

Measured = tuple[MeasureRow, tuple[ProfileRow, ...]]


def measure(name: str, scores: np.ndarray, human: np.ndarray | None, groups: list[str] | None = None) -> Measured:
    """Profiles of groups; a score that is NaN was not computed. The last profile is of a paired group."""
    named = groups or [f"g{i}" for i in range(len(scores))]

    def values(line: np.ndarray) -> tuple[float | None, ...]:
        return tuple(None if math.isnan(v) else float(v) for v in line)

    def profile(group: str, parts: tuple[str, ...], i: int, rated: np.ndarray | None) -> ProfileRow:
        people = None if rated is None else values(rated[i])
        return ProfileRow("", "", name, group, "d", parts, values(scores[i]), people)

    profiles = tuple(profile(group, (), i, human) for i, group in enumerate(named))
    return MeasureRow("", "", name, (), (), (), 0), (*profiles, profile("g0 g1", ("g0", "g1"), 0, scores))


def asked(model: str, *measures: Measured, options: str = "") -> tuple[ModelRecord, dict[str, tuple[Any, ...]]]:
    who: dict[str, Any] = {"model": model, "options": options}
    rows = {
        "models": (StereotypeModelRow(model, options, "masked", "mask", (), (), (), 0, 0, 0),),
        "measures": tuple(dataclasses.replace(row, **who) for row, _ in measures),
        "profiles": tuple(dataclasses.replace(row, **who) for _, profiles in measures for row in profiles),
    }
    settings = dict(part.split("=") for part in options.split(";") if part)
    return ModelRecord(model, model, "hf", None, settings, measured=True), rows


def stereotypes(*asked: tuple[ModelRecord, dict[str, tuple[Any, ...]]], **given: Any) -> Run:
    own = {"human": HumanRecord("human.json", "as given"), **given}
    tables = {
        name: tuple(row for _, rows in asked for row in rows[name]) for name in ("models", "measures", "profiles")
    }
    return run_of(tuple(record for record, _ in asked), tables, **own)


def scores(seed: int, lost: tuple[tuple[int, int], ...] = (), groups: int = 6) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(groups, 4))
    for cell in lost:
        made[cell] = math.nan
    return made


def test_agreement_with_people_is_scipys_tau_over_the_cells_in_common() -> None:
    human = np.round(scores(0, ((2, 2),)) * 50)
    sides = {m: (scores(1, ((0, 0),)), scores(2, ((5, 3), (0, 0)))) for m in ("ilps", "set")}
    runs = {
        place: stereotypes(asked(name, *(measure(m, sides[m][i], human) for m in ("ilps", "set"))))
        for i, (place, name) in enumerate((("a", "m"), ("b", "n")))
    }
    found = compare(runs)
    assert (found.baseline, set(found.tables), found.results) == ("m", {"agreements"}, ())
    assert [(r.measure, r.model) for r in found.tables["agreements"]] == [("ilps", "n"), ("set", "n")]
    for r in found.tables["agreements"]:
        one, other = sides[r.measure]
        kept = ~np.isnan(one + other + human)
        a, b = (stats.kendalltau(side[kept], human[kept]).statistic for side in (one, other))
        assert (r.tau_baseline, r.tau_model, r.difference) == pytest.approx((a, b, b - a))
        assert r.tau_between == pytest.approx(stats.kendalltau(one[kept], other[kept]).statistic)
        assert (r.num_groups, r.num_cells) == (6, 21)
        assert r.interval_low is not None
        assert r.interval_high is not None
        assert r.interval_low < r.difference < r.interval_high


def test_stereotypes_without_judgements_have_nothing_to_compare() -> None:
    """As with tests, of which the models must have one in common: an empty comparison says nothing."""
    runs = {
        name: stereotypes(asked(name, measure("ilps", scores(seed), None)), human=None)
        for seed, name in enumerate(("m", "n"))
    }
    with pytest.raises(UsageError, match="--human FILE"):
        compare(runs)
