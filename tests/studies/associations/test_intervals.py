"""Contributions of single words: sums and loops over real runs, and words changed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.special import stdtr
from tests.results.made_runs import altered

import biassay
from biassay.results.outcomes import Result
from biassay.runs.run import Run
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
