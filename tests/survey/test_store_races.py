"""Participants in any order and at once, in SQLite and in PostgreSQL: counters are right, and nothing is doubled."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from biassay.survey.database import (
    _configure_connection,
    annotations_table,
    demographics_table,
    open_database,
    participants_table,
    places_table,
    studies_table,
    write_transaction,
)
from biassay.survey.participants import Participant, QuotaFullError
from biassay.survey.store import Store

from .people import (
    FAULTS,
    GROUPS,
    MINUTES,
    Person,
    begun,
    check_counts,
    counters,
    fill,
    go_on,
    in_both,
    opened,
    row,
    rows,
    small_study,
)
from .walks import Clock

pytestmark = pytest.mark.extras


# Any order of events


class Survey(RuleBasedStateMachine):
    """People come, answer, leave and are deleted in any order; counters equal a recount after every event."""

    engines: list[sa.Engine]  # two processes on one database

    @initialize(
        annotations=st.integers(1, 3),
        groups=st.integers(2, 5),
        number=st.integers(2, 5),
        seed=st.integers(0, 2**31),
    )
    def start(self, annotations: int, groups: int, number: int, seed: int) -> None:
        study = small_study(
            annotations=annotations,
            groups=GROUPS[:groups],
            groups_per_participant=min(number, groups),
            session_minutes=MINUTES,
        )
        self.clock, self.rng = Clock(), random.Random(seed)
        with write_transaction(self.engines[0]) as connection:
            for table in (annotations_table, demographics_table, participants_table, places_table, studies_table):
                connection.execute(sa.delete(table))
        self.stores = [Store(each, study, clock=self.clock, rng=self.rng) for each in self.engines]
        self.known: list[Participant] = []
        self.persons: dict[str, Person] = {}

    def teardown(self) -> None:
        if not hasattr(self, "stores"):
            return
        self.clock.now += MINUTES * 60 + 1
        fill(self.stores[0])
        target = self.stores[0].study.annotations
        assert counters(self.stores[0]) == dict.fromkeys(self.stores[0].study.groups, (target, 0))

    def any_store(self) -> Store:
        return self.rng.choice(self.stores)

    @rule(fault=st.sampled_from(["", "", *FAULTS]))
    def begin(self, fault: str) -> None:
        someone = self.any_store().add_participant()
        if someone is not None:
            self.known.append(someone)
            self.persons[someone.id] = Person(fault=fault)

    @precondition(lambda self: self.known)
    @rule(steps=st.integers(1, 12), data=st.data())
    def answer(self, steps: int, data: st.DataObject) -> None:
        someone = data.draw(st.sampled_from(self.known))
        for _ in range(steps):
            store = self.any_store()
            now = store.find(someone.id)
            if now is None or now.status != "active":
                break
            given = self.persons[someone.id].given(store, now, now.step)
            try:
                assert store.save_step(someone.id, now.step, given)
            except QuotaFullError:
                assert set(store.count_missing().values()) == {0}
                break
            assert not store.save_step(someone.id, now.step, given)

    @rule(minutes=st.floats(0.0, MINUTES * 1.5))
    def wait(self, minutes: float) -> None:
        self.clock.now += minutes * 60

    @rule()
    def give_up(self) -> None:
        self.any_store().release_abandoned()

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        someone = self.known.pop(data.draw(st.integers(0, len(self.known) - 1)))
        assert self.any_store().delete(someone.code)

    @invariant()
    def counted(self) -> None:
        if hasattr(self, "stores"):
            check_counts(self.stores[0])


@in_both
def test_counters_equal_a_recount_whatever_happens(url: str) -> None:
    engines = [open_database(url) for _ in range(2)]
    machine = type("Survey", (Survey,), {"engines": engines})
    quick = settings(max_examples=12, stateful_step_count=20, suppress_health_check=list(HealthCheck), deadline=None)
    run_state_machine_as_test(machine, settings=quick)
    for engine in engines:
        engine.dispose()


# At once


def at_once(number: int, act: Callable[[int], Any]) -> list[Any]:
    """Run ``act`` in threads that start together; what each returned, or raised."""
    barrier = threading.Barrier(number)

    def run(i: int) -> Any:
        barrier.wait()
        try:
            return act(i)
        except Exception as error:
            return error

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))


def raised(found: list[Any]) -> list[Exception]:
    return [each for each in found if isinstance(each, Exception)]


@pytest.fixture
def two_stores(url: str) -> Iterator[list[Store]]:
    """Two processes on the same database, with real clocks, and pages that may be answered at once."""
    quick = replace(small_study().rules, seconds_per_group=0.0)
    study = small_study(annotations=7, rules=quick)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(opened(url, study)) for _ in range(2)]


@in_both
def test_twenty_at_once_neither_overshoot_nor_double(two_stores: list[Store]) -> None:
    """5 groups of 7 by people who rate 3: 12 fill all places, and some of them fail or are deleted on the way."""

    def come_and_answer(i: int) -> int:
        store, rng = two_stores[i % 2], random.Random(i)
        passed = 0
        while (someone := store.add_participant()) is not None:
            fault = rng.choice(["", "", "which group", "high and low"])
            with contextlib.suppress(QuotaFullError):
                if rng.random() < 0.15:
                    go_on(store, someone, Person(), until=rng.randrange(len(store.steps)))
                    assert store.delete(someone.code)
                else:
                    go_on(store, someone, Person(fault=fault))
                    passed += fault == ""
        return passed

    found = at_once(20, come_and_answer)
    assert raised(found) == []
    check_counts(two_stores[0])
    # Whoever came last may have left while others, who were rejected later, held places.
    fill(two_stores[0])
    check_counts(two_stores[0])
    assert counters(two_stores[0]) == dict.fromkeys(GROUPS, (7, 0))


@in_both
def test_the_same_page_from_twenty_windows_is_written_once(two_stores: list[Store]) -> None:
    someone = begun(two_stores[0])
    for step in range(len(two_stores[0].steps) - 1):
        given = Person().given(two_stores[0], someone, step)
        found = at_once(
            20,
            lambda i, s=step, g=given, who=someone.id: two_stores[i % 2].save_step(who, s, g),  # type: ignore[misc]
        )
        assert sorted(map(str, found)) == ["False"] * 19 + ["True"]
        someone = two_stores[0].find(someone.id) or someone
    assert len(rows(two_stores[0], annotations_table)) == 4
    assert len(rows(two_stores[0], demographics_table)) == 1
    check_counts(two_stores[0])
    assert row(two_stores[0], someone.id)["status"] == "valid"


@in_both
@pytest.mark.parametrize("before", [0, 1, 8])
def test_who_is_deleted_while_answering_leaves_nothing(two_stores: list[Store], before: int) -> None:
    """The page that holds places, one with ratings, or the last, and the deletion come together, many times."""
    store = two_stores[0]
    assert before < len(store.steps)
    for _ in range(10):
        someone = begun(store)
        someone = go_on(store, someone, Person(), until=before)
        given = Person(facts=(("Gender", "Woman"),)).given(store, someone, before)
        found = at_once(
            2,
            lambda i, who=someone, answer=given: (  # type: ignore[misc]
                two_stores[0].save_step(who.id, before, answer) if i else two_stores[1].delete(who.code)
            ),
        )
        assert raised(found) == []
        assert found[0] is True
        assert row(store, someone.id)["status"] == "deleted"
        assert rows(store, annotations_table) == []
        assert rows(store, demographics_table) == []
        check_counts(store)
    assert counters(store) == dict.fromkeys(GROUPS, (0, 0))


OPEN = """
import os, sys
from tests.survey.people import opened, small_study
study = small_study()
waiting, go = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(waiting, 1)  # until all have been made, and the pipe is closed
        with opened(sys.argv[1], study) as store:
            os.write(1, f"{store.secret}\\n".encode())
        os._exit(0)
    children.append(child)
os.close(go)
sys.exit(max(os.waitpid(child, 0)[1] for child in children) != 0)
"""


class Busy:
    """A connection that SQLite refuses another mode of the journal so many times, as where two processes want it."""

    def __init__(self, times: int, code: int = sqlite3.SQLITE_BUSY) -> None:
        self.times, self.code, self.done = times, code, list[str]()

    def execute(self, command: str) -> None:
        if "journal_mode" in command and self.times:
            self.times -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = self.code
            raise error
        self.done.append(command)


def test_opening_waits_where_sqlite_itself_would_not() -> None:
    connection = Busy(3)
    _configure_connection(connection, None)
    assert [command for command in connection.done if "WAL" in command] == ["PRAGMA journal_mode=WAL"]
    with pytest.raises(sqlite3.OperationalError):
        _configure_connection(Busy(1, sqlite3.SQLITE_CORRUPT), None)


@in_both
def test_processes_may_open_a_new_database_at_once(url: str) -> None:
    """The tables and the study are made once; all have the same key."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", OPEN, url], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert len(done.stdout.split()) == 4
    assert len(set(done.stdout.split())) == 1
