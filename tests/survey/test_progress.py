"""How a study gets on: means and intervals by SciPy, counts and rates by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from biassay.survey.progress import StudyProgress, compute_progress
from biassay.survey.store import Store

from .people import GROUPS, PAIRS, Clock, Person, database, fill, go_on, opened, small_study, take_part

pytestmark = pytest.mark.extras


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Store]:
    study = small_study(annotations=4, session_minutes=60.0)
    with database(request.param, tmp_path) as url, opened(url, study, clock=clock) as made:
        yield made


def ratings_of(progress: StudyProgress) -> dict[str, list[tuple[float | None, float | None, float | None]]]:
    return {group.group: [(m.mean, m.low, m.high) for m in group.means] for group in progress.groups}


def test_a_study_that_nobody_took_part_in(store: Store) -> None:
    found = compute_progress(store)
    assert [(g.group, g.valid, g.held, g.target) for g in found.groups] == [(group, 0, 0, 4) for group in GROUPS]
    assert (found.status, found.reasons, found.pass_rate, found.minutes) == ({}, {}, None, None)
    assert all(each == (None, None, None) for means in ratings_of(found).values() for each in means)
    assert found.digest == store.study.digest
    assert [mean.pair for mean in found.groups[0].means] == [f"{left} - {right}" for left, right in PAIRS]


def test_means_and_intervals_equal_those_of_scipy(store: Store) -> None:
    """Intervals of Student's t, cut to the scale. Rejected, absent and repeated pages are not in them."""
    rng = random.Random(5)
    heard: dict[str, list[list[int]]] = {group: [] for group in GROUPS}
    take_part(store, Person(fault="which group", said=lambda _group, _place: [100, 0, 0]))
    while (someone := store.add_participant()) is not None:
        said = {group: [rng.choice([55, 70, 100]), rng.randrange(101), rng.randrange(101)] for group in GROUPS}
        someone = go_on(store, someone, Person(said=lambda group, _place, said=said: said[group]))
        counted = [group for group in someone.asked if len(heard[group]) < 4]
        for group in counted:
            heard[group].append(said[group])
    found = compute_progress(store)
    for group in found.groups:
        table = np.array(heard[group.group], dtype=float)
        assert group.valid == len(table) == 4
        for mean, own in zip(group.means, table.T, strict=True):
            assert mean.mean == pytest.approx(own.mean(), abs=1e-9)
            if own.std() == 0:
                assert (mean.low, mean.high) == (mean.mean, mean.mean)
                continue
            low, high = stats.t.interval(0.95, 3, loc=own.mean(), scale=stats.sem(own))
            assert mean.low == pytest.approx(max(0.0, low), abs=1e-9)
            assert mean.high == pytest.approx(min(100.0, high), abs=1e-9)


def test_one_rating_has_a_mean_and_no_interval(store: Store) -> None:
    someone = store.add_participant()
    assert someone is not None
    someone = go_on(store, someone, Person(said=lambda _group, _place: [60, 20, 50]))
    for group, means in ratings_of(compute_progress(store)).items():
        expected = [60.0, 20.0, 50.0] if group in someone.asked else [None] * 3
        assert means == [(mean, None, None) for mean in expected]


def test_annotations_without_need_are_not_in_the_means(tmp_path: Path) -> None:
    """Two groups of five lack one annotation; the person rates three, and one of them is not wanted."""
    study = small_study(annotations=1)
    with opened(f"sqlite:///{tmp_path / 'a.sqlite'}", study, clock=Clock()) as store:
        first = store.add_participant()
        assert first is not None
        first = go_on(store, first, Person(said=lambda _group, _place: [60, 50, 40]))
        assert fill(store, Person(said=lambda _group, _place: [90, 80, 70])) == 1
        for group in compute_progress(store).groups:
            means = [60.0, 50.0, 40.0] if group.group in first.asked else [90.0, 80.0, 70.0]
            assert [mean.mean for mean in group.means] == means
            assert (group.valid, group.held) == (1, 0)


def test_people_are_counted_by_how_they_ended(store: Store, clock: Clock) -> None:
    """Three of five who ended passed; whoever left, was deleted or is still there did not end."""
    take_part(store, until=2)
    clock.now += 3601.0
    for fault in ("", "", "", "too fast", "which group"):
        take_part(store, Person(fault=fault))
    deleted = take_part(store)
    store.delete(deleted, by="id")
    take_part(store, until=1)
    found = compute_progress(store)
    assert found.status == {"valid": 3, "rejected": 2, "abandoned": 1, "deleted": 1, "active": 1}
    assert found.reasons == {"too fast": 1, "which group": 1}
    assert found.pass_rate == 3 / 5
    assert sum(group.valid for group in found.groups) == 9
    assert sum(group.held for group in found.groups) == 3


def test_every_reason_of_somebody_is_counted(tmp_path: Path) -> None:
    strict = replace(small_study().rules, seconds_a_group=30.0)
    with opened(f"sqlite:///{tmp_path / 'a.sqlite'}", small_study(rules=strict), clock=Clock()) as store:
        take_part(store, Person(fault="which group"))
        take_part(store, Person(fault="all alike"))
        found = compute_progress(store)
    assert found.reasons == {"which group": 1, "all alike": 1, "too fast": 2}
    assert found.pass_rate == 0.0


def test_the_time_is_the_median_of_who_ended(store: Store, clock: Clock) -> None:
    """3, 5 and 40 minutes, one of them rejected; somebody deleted took 1, and somebody who is there has taken 50."""
    for minutes, fault in ((3, ""), (40, "too fast"), (5, "")):
        someone = store.add_participant()
        assert someone is not None
        clock.now += minutes * 60.0
        go_on(store, someone, Person(fault=fault))
    assert compute_progress(store).minutes == pytest.approx(5.0)
    gone = store.add_participant()
    assert gone is not None
    clock.now += 60.0
    go_on(store, gone, Person())
    store.delete(gone.code)
    there = store.add_participant()
    assert there is not None
    clock.now += 50 * 60.0
    assert compute_progress(store).minutes == pytest.approx(5.0)


def test_looking_gives_up_the_absent(store: Store, clock: Clock) -> None:
    take_part(store, until=1)
    clock.now += 3601.0
    found = compute_progress(store)
    assert found.status == {"abandoned": 1}
    assert [group.held for group in found.groups] == [0] * 5
