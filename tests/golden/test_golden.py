"""Runs give the numbers that were recorded of them, whole or stopped and gone on with, however they are shown."""

from __future__ import annotations

import pytest

from .cases import CASES, CEAT, DISCOVER, RUN, STEREOTYPES, Case
from .record import RECORDED, recorded, unlike
from .running import Place
from .tables import Table, Tolerance, differences

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("golden"))


def named(cases: list[Case]) -> list[object]:
    return [pytest.param(c, id=c.name, marks=[pytest.mark.extras] if c.extras else []) for c in cases]


@pytest.mark.parametrize("case", named(list(CASES.values())))
def test_numbers_are_those_recorded(case: Case, place: Place, request: pytest.FixtureRequest) -> None:
    if case.extras:
        request.getfixturevalue("one_thread")
    found = unlike(case, place.outcome(case.name))
    assert not found, "\n".join([f"{len(found)} differ, first:", *found[:10]])


def test_what_is_recorded_is_what_there_are_cases_of() -> None:
    assert {path.stem for path in RECORDED.glob("*.json")} == {c.name for c in CASES.values() if c.same_as is None}


def test_every_study_holds_what_is_skipped_failed_and_lost() -> None:
    for cases in (RUN, CEAT):
        tables = [
            recorded(case.name) for case in cases if case.same_as is None and case.command.split()[0] != "compare"
        ]
        assert {v for t in tables for (m, _, q), v in t.items() if m and q == "status"} == {
            "measured",
            "skipped",
            "failed",
        }
        assert any(any(v.values()) for t in tables for (_, _, q), v in t.items() if q == "lost")
    studies: list[tuple[tuple[Case, ...], set[str]]] = [
        (DISCOVER, {"names_lost", "words_lost"}),
        (STEREOTYPES, {"unknown_groups", "skipped_templates"}),
    ]
    for cases, lost in studies:  # type: ignore[assignment]
        tables = [recorded(case.name) for case in cases if case.same_as is None]
        assert {v for t in tables for (*_, q), v in t.items() if q == "exit_code"} == {0, 1, 2}
        assert {q for t in tables for (*_, q), v in t.items() if q in lost and v} == lost


# The comparer

TABLE: Table = {("m", "one", "p_value"): 0.25, ("m", "one", "n"): 3, ("m", "two", "scores"): {"a": [1.0, None]}}
CLOSE = Tolerance(relative=1e-9, absolute=1e-12, digits=12)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({("m", "one", "p_value"): 0.25 + 1e-9}, "[m][one].p_value: 0.25 != 0.250000001"),
        ({("m", "one", "p_value"): None}, "[m][one].p_value: 0.25 != None"),
        ({("m", "one", "n"): 4}, "[m][one].n: 3 != 4"),
        ({("m", "one", "n"): True}, "[m][one].n: 3 != True"),
        ({("m", "two", "scores"): {"a": [1.5, None]}}, "[m][two].scores.a[0]: 1.0 != 1.5"),
        ({("m", "two", "scores"): {"a": [1.0, 0.0]}}, "[m][two].scores.a[1]: None != 0.0"),
        ({("m", "two", "scores"): {"a": [1.0]}}, "[m][two].scores.a: [1.0, None] != [1.0]"),
        ({("m", "two", "scores"): {"b": [1.0, None]}}, "[m][two].scores: {'a': [1.0, None]} != {'b': [1.0, None]}"),
        ({("m", "new", "n"): 1}, "[m][new]: found, and not recorded"),
    ],
)
def test_a_difference_is_told_by_its_path(change: Table, path: str) -> None:
    assert list(differences(TABLE, TABLE | change, CLOSE)) == [path]


def test_what_is_gone_is_told_and_more_columns_are_no_difference() -> None:
    assert (
        list(differences(TABLE, TABLE | {("m", "one", "p_value"): 0.25 + 1e-11, ("m", "one", "new"): 1}, CLOSE)) == []
    )
    left = {key: value for key, value in TABLE.items() if key[2] == "n"}
    assert list(differences(TABLE, left, CLOSE)) == [
        "[m][two]: recorded, and not found",
        "[m][one].p_value: recorded, and not found",
    ]
