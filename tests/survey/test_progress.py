"""How a study gets on: means and intervals by SciPy, counts and rates by hand."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from biassay.survey.progress import StudyProgress, compute_progress
from biassay.survey.store import Store

from .people import GROUPS, Person, go_on, in_both, saying, small_study, take_part
from .walks import Clock

pytestmark = pytest.mark.extras


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    return open_store(small_study(annotations=4, session_minutes=60.0))


def ratings_of(progress: StudyProgress) -> dict[str, list[tuple[float | None, float | None, float | None]]]:
    return {group.group: [(m.mean, m.low, m.high) for m in group.means] for group in progress.groups}


@in_both
def test_means_and_intervals_equal_those_of_scipy(store: Store) -> None:
    """Intervals of Student's t, cut to the scale. Rejected, absent and repeated pages are not in them."""
    rng = random.Random(5)
    heard: dict[str, list[list[int]]] = {group: [] for group in GROUPS}
    take_part(store, Person(fault="which group", said=lambda _group, _place: [100, 0, 0]))
    while (someone := store.add_participant()) is not None:
        said = {group: [rng.choice([55, 70, 100]), rng.randrange(101), rng.randrange(101)] for group in GROUPS}
        someone = go_on(store, someone, Person(said=saying(said)))
        counted = [group for group in someone.asked if len(heard[group]) < 4]
        for group in counted:
            heard[group].append(said[group])
    found = compute_progress(store)
    for progress in found.groups:
        table = np.array(heard[progress.group], dtype=np.float64)
        assert progress.valid == len(table) == 4
        for mean, own in zip(progress.means, table.T, strict=True):
            assert mean.mean == pytest.approx(own.mean(), abs=1e-9)
            if own.std() == 0:
                continue  # the next test
            low, high = stats.t.interval(0.95, 3, loc=own.mean(), scale=stats.sem(own))
            assert mean.low == pytest.approx(max(0.0, low), abs=1e-9)
            assert mean.high == pytest.approx(min(100.0, high), abs=1e-9)


def test_the_same_rating_by_everybody_leaves_the_bounds_of_clopper_and_pearson(store: Store) -> None:
    """Four raters who agree are likely only if at least .025^(1/4) of all raters do; the others may rate 0 or 100."""
    while (someone := store.add_participant()) is not None:
        go_on(store, someone, Person(said=lambda _group, _place: [100, 50, 0]))
    agree = stats.beta.ppf(0.025, 4, 1)
    for means in ratings_of(compute_progress(store)).values():
        found = [end for _, low, high in means for end in (low, high)]
        assert found == pytest.approx([100 * agree, 100, 50 * agree, 100 - 50 * agree, 0, 100 - 100 * agree])


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
