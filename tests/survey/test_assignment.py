"""Who is asked about what: never too much, never too little in the end, and at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biassay.survey.store import GroupAssignment, draw_groups

pytestmark = pytest.mark.extras
SEED = 20220


def names(number: int) -> list[str]:
    return [f"g{i}" for i in range(number)]


class Model:
    """Places as a researcher would count them with tokens: each participant holds theirs or has given them up."""

    def __init__(self, groups: list[str], target: int, number: int, seed: int) -> None:
        self.groups, self.target, self.number = groups, target, number
        self.rng = random.Random(seed)
        self.active: list[GroupAssignment] = []
        self.valid: list[GroupAssignment] = []

    def have(self, group: str) -> int:
        return sum(group in drawn.counted_groups for drawn in self.active + self.valid)

    def begin(self) -> GroupAssignment | None:
        lacking = {group: self.target - self.have(group) for group in self.groups}
        drawn = draw_groups(self.groups, lacking, self.number, self.rng)
        if drawn is not None:
            self.check(drawn, lacking)
            self.active.append(drawn)
        else:
            assert not any(lacking.values())
        return drawn

    def check(self, drawn: GroupAssignment, lacking: dict[str, int]) -> None:
        assert len(drawn.groups) == len(set(drawn.groups)) == self.number
        assert drawn.counted_groups <= set(drawn.groups) <= set(self.groups)
        assert 0 <= drawn.repeated < self.number
        assert all(lacking[group] > 0 for group in drawn.counted_groups)
        # Nobody is asked in vain while places are open.
        assert len(drawn.counted_groups) == min(self.number, sum(lack > 0 for lack in lacking.values()))

    def act(self, what: str) -> None:
        if what == "begin":
            self.begin()
        elif self.active and what in ("valid", "reject", "abandon"):
            drawn = self.active.pop(self.rng.randrange(len(self.active)))
            if what == "valid":
                self.valid.append(drawn)
        elif self.valid and what == "delete":
            self.valid.pop(self.rng.randrange(len(self.valid)))
        assert all(self.have(group) <= self.target for group in self.groups)


@given(
    groups=st.integers(1, 12),
    target=st.integers(1, 9),
    number=st.integers(1, 12),
    seed=st.integers(0, 2**31),
    acts=st.lists(st.sampled_from(["begin", "begin", "valid", "reject", "abandon", "delete"]), max_size=60),
)
def test_every_group_reaches_its_target_and_none_goes_beyond(
    groups: int, target: int, number: int, seed: int, acts: list[str]
) -> None:
    model = Model(names(groups), target, min(number, groups), seed)
    for what in acts:
        model.act(what)
    while model.begin() is not None:
        pass
    model.valid += model.active
    model.active = []
    assert {group: model.have(group) for group in model.groups} == dict.fromkeys(model.groups, target)


@pytest.mark.slow
@given(groups=st.integers(1, 30), target=st.integers(1, 25), number=st.integers(1, 8), seed=st.integers(0, 2**31))
def test_no_more_people_are_asked_than_needed(groups: int, target: int, number: int, seed: int) -> None:
    """If all pass: as many as fill all places, and each but the last is asked about wanted groups only."""
    model = Model(names(groups), target, min(number, groups), seed)
    people = []
    while (drawn := model.begin()) is not None:
        people.append(drawn)
    least = max(target, -(-groups * target // model.number))
    assert len(people) == least
    spare = least * model.number - groups * target
    assert sum(model.number - len(drawn.counted_groups) for drawn in people) == spare


def test_the_study_of_the_paper_needs_125_people() -> None:
    """25 groups of 20 annotations by people who rate 4."""
    for seed in range(20):
        model = Model(names(25), 20, 4, seed)
        while model.begin() is not None:
            pass
        assert len(model.active) == 125
        assert all(len(drawn.counted_groups) == 4 for drawn in model.active)


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
