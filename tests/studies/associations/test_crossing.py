"""Stored crossed tests of runs, compared with the test itself on GloVe cosines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.results.made_runs import altered

import biassay
from biassay.errors import UsageError
from biassay.runs.run import Run
from biassay.stats.crossed import CrossedResult, VarianceComponents, crossed_test


def crossed_of(run: Run) -> CrossedResult:
    """The crossed test of the first result, from the cosines that the run has."""
    words = run.results[0].num_words
    return crossed_test(run.arrays[f"0/{run.results[0].test}/cosines"], words["X"], words["A"])


def test_the_next_test_is_planned_from_a_result(tmp_path: Path) -> None:
    """D is in the units of the cosines."""
    biassay.run("glove", "weat6", out=tmp_path / "run", cache=tmp_path / "cache")
    run = biassay.load(tmp_path / "run")
    row, found = run.results[0], crossed_of(run)
    assert VarianceComponents(row.var_targets, row.var_attributes, row.var_residual) == found.components
    plan = biassay.power(found.sizes, components=row)
    assert plan == biassay.power(found.sizes, components=found)
    assert plan.smallest_d == pytest.approx(row.power_80)
    assert abs(row.cosine_difference / row.effect_size) == pytest.approx(plan.smallest_D / plan.smallest_d, rel=0.5)
    with pytest.raises(UsageError, match="none"):
        biassay.power(found.sizes, components=altered(row, var_residual=None))


@pytest.mark.parametrize(("alpha", "is_asked"), [(0.79, True), (0.8, False), (0.95, False)])
def test_of_a_level_that_chance_reaches_no_power_is_told(tmp_path: Path, alpha: float, is_asked: bool) -> None:
    row = biassay.run("glove", "weat6", alpha=alpha, cache=tmp_path).results[0]
    assert (row.power_80 is not None) is is_asked
    assert row.alpha == alpha


def test_a_margin_is_stored_with_its_p_value(tmp_path: Path) -> None:
    run = biassay.run("glove", "weat6", equivalence=0.3, cache=tmp_path)
    row = run.results[0]
    assert (row.margin, row.p_equivalence) == (0.3, pytest.approx(crossed_of(run).p_equivalence(0.3)))
    assert row.random_sets == 1000
    assert biassay.run("glove", "weat6", random_sets=0, cache=tmp_path).results[0].random_sets is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"equivalence": 2.0}, "cosine units"),
        ({"equivalence": 0.0}, "above 0"),
        ({"equivalence": 0.02, "protocol": "may2019"}, "may2019"),
        ({"equivalence": 0.02, "protocol": "caliskan2017"}, "caliskan2017"),
    ],
)
def test_a_margin_that_nothing_can_be_made_of_is_refused(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        biassay.run("glove", "weat6", cache=tmp_path, **given)
