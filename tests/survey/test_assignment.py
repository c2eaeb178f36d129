"""Who is asked about what: never too much, never too little in the end, and at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from biassay.survey.store import GroupAssignment, draw_groups

pytestmark = pytest.mark.extras
SEED = 20220


def names(number: int) -> list[str]:
    return [f"g{i}" for i in range(number)]


@example(groups=25, target=20, number=4, seed=0)  # the study of the paper needs 125 people
@given(groups=st.integers(1, 30), target=st.integers(1, 25), number=st.integers(1, 8), seed=st.integers(0, 2**31))
def test_every_group_reaches_its_target_with_as_few_people_as_possible(
    groups: int, target: int, number: int, seed: int
) -> None:
    """If all pass: as many as fill all places, and nobody is asked about an unwanted group while others are wanted."""
    known, number, rng = names(groups), min(number, groups), random.Random(seed)
    lacking, people = dict.fromkeys(known, target), list[GroupAssignment]()
    while (drawn := draw_groups(known, lacking, number, rng)) is not None:
        assert len(drawn.groups) == len(set(drawn.groups)) == number
        assert drawn.counted_groups <= set(drawn.groups) <= set(known)
        assert 0 <= drawn.repeated < number
        assert all(lacking[group] > 0 for group in drawn.counted_groups)
        assert len(drawn.counted_groups) == min(number, sum(lack > 0 for lack in lacking.values()))
        lacking |= {group: lacking[group] - 1 for group in drawn.counted_groups}
        people.append(drawn)
    assert not any(lacking.values())
    assert len(people) == max(target, -(-groups * target // number))


def test_a_group_that_must_be_drawn_is_drawn() -> None:
    """g0 lacks 3 of 6 annotations, and three people will come: each must have it."""
    lacking = {"g0": 3, "g1": 1, "g2": 1, "g3": 1}
    for seed in range(50):
        drawn = draw_groups(names(4), lacking, 2, random.Random(seed))
        assert drawn is not None
        assert "g0" in drawn.counted_groups


def draws(groups: int, number: int, times: int) -> list[GroupAssignment]:
    rng = random.Random(SEED)
    made = [draw_groups(names(groups), dict.fromkeys(names(groups), 20), number, rng) for _ in range(times)]
    return [drawn for drawn in made if drawn is not None]


@pytest.mark.parametrize(
    ("what", "kinds"), [("first", 25), ("last", 25), ("repeated", 4), ("repeated group", 25), ("two first", 600)]
)
def test_draws_are_spread_evenly(what: str, kinds: int) -> None:
    """Chi-square of 12,000 draws with a fixed seed; a fair draw is rejected once in ten thousand seeds."""
    looks: dict[str, Callable[[GroupAssignment], object]] = {
        "first": lambda drawn: drawn.groups[0],
        "last": lambda drawn: drawn.groups[-1],
        "repeated": lambda drawn: drawn.repeated,
        "repeated group": lambda drawn: drawn.groups[drawn.repeated],
        "two first": lambda drawn: drawn.groups[:2],
    }
    counts = Counter(looks[what](drawn) for drawn in draws(25, 4, 12_000))
    assert len(counts) == kinds
    test = stats.chisquare(list(counts.values()))
    assert test.pvalue > 1e-4
    # Too even would be no chance either.
    assert test.pvalue < 1 - 1e-4


def test_which_group_is_asked_without_need_is_chance() -> None:
    """One group lacks an annotation; the other three of four come from all 24, and are not counted."""
    rng = random.Random(SEED)
    made = [draw_groups(names(25), {"g7": 1}, 4, rng) for _ in range(6_000)]
    counts = Counter(group for drawn in made if drawn is not None for group in drawn.groups if group != "g7")
    assert all(drawn is not None and drawn.counted_groups == {"g7"} and "g7" in drawn.groups for drawn in made)
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4
