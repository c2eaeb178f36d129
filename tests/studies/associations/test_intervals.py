"""Stored contributions and crossed tests of runs, from their cosines."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from scipy.special import stdtr
from tests.results.made_runs import altered

import biassay
from biassay.errors import UsageError
from biassay.results.outcomes import Result
from biassay.runs.run import Run
from biassay.stats.crossed import CrossedResult, VarianceComponents, crossed_test
from biassay.studies.associations.findings import compute_contributions

WORDS = ("weat6", "weat9", "weat1")
SENTENCES = ("sent-weat6", "sent-weat9")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Tests over words and over sentences on the embedded vectors."""
    found = biassay.run("glove", tests=[*WORDS, *SENTENCES], cache=tmp_path_factory.mktemp("vectors"))
    assert [r.status for r in found.results] == ["measured"] * 5
    return found


def of(run: Run, test: str) -> Result:
    (found,) = [r for r in run.results if r.test == test]
    return found


def changed(result: Result, **roles: dict[str, float]) -> Any:
    """Other associations of some roles."""
    return altered(result, associations={**result.associations, **roles})


def values(result: Result, role: str) -> list[float]:
    return list(result.associations[role].values())


@pytest.mark.slow
@pytest.mark.parametrize("test", [*WORDS, *SENTENCES])
def test_contributions_of_targets_sum_to_the_effect_size_by_word(run: Run, test: str) -> None:
    result = of(run, test)
    found = compute_contributions(result)
    assert found is not None
    assert result.effect_size is not None
    shares = [share for role in "XY" for share in found[role].values()]
    assert math.fsum(shares) == pytest.approx(result.effect_size, rel=1e-9)
    assert {role: list(found[role]) for role in "XYAB"} == {role: list(result.associations[role]) for role in "XYAB"}


@pytest.mark.parametrize("value", [0.1, 0.3, 1.0 / 3.0])
@pytest.mark.parametrize(("n", "m"), [(5, 7), (6, 9), (25, 18)])
def test_a_spread_that_is_rounding_gives_no_contributions(run: Run, value: float, n: int, m: int) -> None:
    x, y = ({f"w{i}": value for i in range(size)} for size in (n, m))
    assert compute_contributions(changed(of(run, "weat6"), X=x, Y=y)) is None


@pytest.mark.slow
def test_every_effect_with_an_interval_has_a_standard_error(run: Run) -> None:
    """Both are of the crossed test: t of D gives back the standard error; an end of d is 1.2 to 4 of them away."""
    for result in run.results:
        t = result.cosine_difference / result.cosine_standard_error
        assert math.isclose(result.p_value, 2.0 * stdtr(result.df, -abs(t)), rel_tol=1e-6)
        ends = (result.effect_size - result.ci_low, result.ci_high - result.effect_size)
        assert all(end < 5.0 * result.standard_error for end in ends)
        assert 1.2 < sum(ends) / 2.0 / result.standard_error < 4.0
    assert run.table().columns_by_name["standard_error"] == [r.standard_error for r in run.results]


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
