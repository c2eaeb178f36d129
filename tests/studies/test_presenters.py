"""Every study can be shown, and runs of several studies are not compared."""

from __future__ import annotations

import itertools

import pytest
from tests.results.made_runs import contexts, discovery, result, run_of, stereotypes

from biassay.errors import UsageError
from biassay.report.section import environment
from biassay.results.gathering import AnyRun
from biassay.studies.presenters import compare, presenter_of

RUNS: dict[str, AnyRun] = {
    "texts": run_of("a", [result("m", "t"), result("n", "t")]),
    "contexts": run_of("b", [result("m", "t")], contexts=contexts()),
    "discovery": discovery(),
    "stereotypes": stereotypes(),
}


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(RUNS, 2)))
def test_runs_of_different_kinds_are_not_compared_even_if_mixed(one: str, other: str) -> None:
    with pytest.raises(UsageError, match="cannot be compared") as refused:
        compare({"a": RUNS[one], "b": RUNS[other]}, mixed=True)
    assert RUNS[one].manifest.kind in str(refused.value)
    assert RUNS[other].manifest.kind in str(refused.value)


def test_nothing_is_not_compared() -> None:
    with pytest.raises(UsageError):
        compare({})


@pytest.mark.parametrize("run", list(RUNS.values()), ids=list(RUNS))
def test_a_study_brings_templates_of_its_own(run: AnyRun) -> None:
    package = presenter_of(run.manifest.kind).package
    assert set(environment(package).list_templates()) > set(environment().list_templates())
