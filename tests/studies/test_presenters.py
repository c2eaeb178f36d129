"""Every study can be shown, and runs of several studies are not compared."""

from __future__ import annotations

import itertools

import pytest
from tests.results.made_runs import contexts, result, run_of
from tests.studies.stereotypes.made_runs import compared_with_people

from biassay.errors import UsageError
from biassay.reporting.document import make_environment
from biassay.results.run_data import RunData
from biassay.runs.reports import compare_models, get_presenter

RUNS: dict[str, RunData] = {
    "texts": run_of("a", [result("m", "t"), result("n", "t")]),
    "contexts": run_of("b", [result("m", "t")], contexts=contexts()),
    "stereotypes": compared_with_people(),
}


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(RUNS, 2)))
def test_runs_of_different_kinds_are_not_compared_even_if_mixed(one: str, other: str) -> None:
    with pytest.raises(UsageError, match="cannot be compared") as refused:
        compare_models({"a": RUNS[one], "b": RUNS[other]}, mixed=True)
    assert RUNS[one].manifest.study in str(refused.value)
    assert RUNS[other].manifest.study in str(refused.value)


def test_nothing_is_not_compared() -> None:
    with pytest.raises(UsageError):
        compare_models({})


@pytest.mark.parametrize("run", list(RUNS.values()), ids=list(RUNS))
def test_a_study_brings_templates_of_its_own(run: RunData) -> None:
    package = get_presenter(run.manifest.study).package
    assert set(make_environment(package).list_templates()) > set(make_environment().list_templates())
