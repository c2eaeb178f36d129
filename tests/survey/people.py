"""Small studies, and people who take part in them; a count of places that does not trust the counters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from biassay.survey.database import annotations_table, open_database, participants_table, places_table, read_transaction
from biassay.survey.participants import Participant
from biassay.survey.store import Store
from biassay.survey.study import DemographicField, QualityRules, SurveyStudy, read_study

from . import postgres

GROUPS = ("men", "women", "teenagers", "veterans", "immigrants")
PAIRS = (("poor", "wealthy"), ("cold", "warm"), ("traditional", "modern"))
CAREFUL = (90, 10, 80)
RULES = QualityRules(which_group=True, high_low=True, self_agreement=0.8, tolerance=10, seconds_per_group=8.0, spread=1)
GENDER = DemographicField("Gender", ("Woman", "Man", "Non-binary"), several=False, most=60)
RACE = DemographicField("Race", ("White", "Black", "Asian"), several=True, most=60)
PAGE_SECONDS = 20.0
MINUTES = 60.0
FAULTS = ["which group", "high and low", "self-agreement", "all alike", "too fast"]

in_both = pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)

Ratings = Callable[[str, int], list[int]]


def small_study(**changes: Any) -> SurveyStudy:
    """Five groups, three pairs, two annotations of each group, three groups a participant."""
    small = replace(
        read_study("cao2022"),
        name="small",
        groups=GROUPS,
        pairs=PAIRS,
        annotations=2,
        groups_per_participant=3,
        rules=RULES,
        demographics=(GENDER, RACE),
    )
    return replace(small, **changes)


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The address of a new database, "sqlite" or "postgresql"."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'study.sqlite'}"
        return
    url = postgres.new_database()
    yield url
    postgres.drop_database(url)


@contextmanager
def opened(url: str, study: SurveyStudy, **options: Any) -> Iterator[Store]:
    engine = open_database(url)
    try:
        yield Store(engine, study, **options)
    finally:
        engine.dispose()


def saying(ratings: Mapping[str, list[int]]) -> Ratings:
    """Rate every group the same on all its pages."""
    return lambda group, _place: ratings[group]


@dataclass(frozen=True)
class Person:
    """How somebody answers. ``fault``: the rule that is broken; ``said`` gives the ratings of a group on a page."""

    fault: str = ""
    said: Ratings | None = None
    facts: tuple[tuple[str, str], ...] = ()

    def ratings(self, store: Store, someone: Participant, place: int) -> list[int]:
        said = self.said or (lambda _group, _place: [CAREFUL[i % 3] for i in range(len(store.study.pairs))])
        ratings = said(someone.group(place), place)
        if self.fault == "all alike" and someone.group(place) == someone.asked[-1]:
            ratings = [ratings[0]] * len(ratings)
        repeats = place == len(someone.asked)
        return [100 - rating for rating in ratings] if repeats and self.fault == "self-agreement" else ratings

    def given(self, store: Store, someone: Participant, step: int) -> dict[str, Any]:
        """The answer of a step, as the forms hand it to the store."""
        kind, place = store.steps[step].kind, store.steps[step].place
        if kind == "group":
            fast = self.fault == "too fast" and place == 0
            since = store.clock() if fast else store.clock() - PAGE_SECONDS
            return {"ratings": self.ratings(store, someone, place), "since": since}
        if kind == "which_group":
            return {"which_group": someone.asked[1 if self.fault == "which group" else 0]}
        if kind == "high_low":
            second = self.ratings(store, someone, 1)
            # The first pair was not marked in the middle; of a wrong answer the two words are exchanged.
            low, high = store.study.pairs[0] if second[0] > 50 else store.study.pairs[0][::-1]
            return {"high": low, "low": high} if self.fault == "high and low" else {"high": high, "low": low}
        return {"answers": dict(self.facts)} if kind == "demographics" else {}


def take_part(
    store: Store, person: Person | None = None, *, until: int | None = None, pool_id: str | None = None
) -> str:
    """Begin and answer every step, or those before ``until``; the number of the participant."""
    someone = store.add_participant(pool_id)
    assert someone is not None
    go_on(store, someone, person or Person(), until)
    return someone.id


def go_on(store: Store, someone: Participant, person: Person, until: int | None = None) -> Participant:
    """Answer the steps before ``until``; the participant with the groups that were drawn after the instructions."""
    last = len(store.steps) - 1 if until is None else until
    for step in range(someone.step, last):
        assert store.save_step(someone.id, step, person.given(store, someone, step)), step
        if store.steps[step].kind == "instructions":
            someone = store.find(someone.id) or someone
    return someone


def fill(store: Store, person: Person | None = None) -> int:
    """Let people take part until nobody is needed; how many they were."""
    number = 0
    while (someone := store.add_participant()) is not None:
        go_on(store, someone, person or Person())
        number += 1
    return number


def rows(store: Store, table: sa.Table) -> list[dict[str, Any]]:
    with read_transaction(store.engine) as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


def counters(store: Store) -> dict[str, tuple[int, int]]:
    """What the database says of each group: valid, held."""
    return {row["group_name"]: (row["valid"], row["held"]) for row in rows(store, places_table)}


def recount(store: Store) -> dict[str, tuple[int, int]]:
    """The same, from who took part."""
    people = rows(store, participants_table)

    def count(group: str, status: str) -> int:
        return sum(person["status"] == status and group in json.loads(person["counted"]) for person in people)

    return {group: (count(group, "valid"), count(group, "active")) for group in store.study.groups}


def check_counts(store: Store) -> None:
    """The counters are right, no group has more than its target, and valid annotations are there to be read."""
    counted = counters(store)
    assert counted == recount(store)
    assert all(valid + held <= store.study.annotations for valid, held in counted.values()), counted
    valid_people = {
        p["id"]: json.loads(p["counted"]) for p in rows(store, participants_table) if p["status"] == "valid"
    }
    pages = [
        page["group_name"]
        for page in rows(store, annotations_table)
        if page["place"] < store.study.groups_per_participant
        and page["group_name"] in valid_people.get(page["participant_id"], ())
    ]
    assert {group: pages.count(group) for group in store.study.groups} == {g: v for g, (v, _) in counted.items()}


def row(store: Store, participant: str) -> dict[str, Any]:
    return next(person for person in rows(store, participants_table) if person["id"] == participant)


def begun(store: Store, pool_id: str | None = None) -> Participant:
    someone = store.add_participant(pool_id)
    assert someone is not None
    return someone
