"""What happens to participants, in a SQLite file and in PostgreSQL: nothing is lost, doubled or counted wrongly."""

from __future__ import annotations

import contextlib
import json
import random
import string
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

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

from biassay.errors import UsageError
from biassay.survey.database import annotated, demographics, open_database, participants, places, studies, writing
from biassay.survey.store import Participant, Store, TakesPartAlready
from biassay.survey.study import Pool

from .people import (
    GROUPS,
    Clock,
    Person,
    check_counts,
    counters,
    database,
    fill,
    go_on,
    opened,
    recount,
    rows,
    small_study,
    take_part,
)

pytestmark = pytest.mark.extras
KINDS = ["sqlite", "postgresql"]
MINUTES = 60.0
FAULTS = ["which group", "high and low", "self-agreement", "all alike", "too fast"]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with opened(url, small_study(session_minutes=MINUTES), clock=clock) as made:
        yield made


def row(store: Store, participant: str) -> dict[str, Any]:
    return next(person for person in rows(store, participants) if person["id"] == participant)


def begun(store: Store, pool_id: str | None = None) -> Participant:
    someone = store.begin(pool_id)
    assert someone is not None
    return someone


# One participant


def test_who_begins_holds_places(store: Store) -> None:
    someone = begun(store)
    assert (someone.status, someone.step) == ("active", 0)
    assert len(set(someone.asked)) == 3
    assert store.find(someone.id) == someone
    assert counters(store) == {group: (0, int(group in someone.asked)) for group in GROUPS}
    assert store.lacking() == {group: 2 - (group in someone.asked) for group in GROUPS}
    check_counts(store)


def test_every_answer_is_written_as_it_was_given(store: Store) -> None:
    rng = random.Random(1)
    said = {group: [rng.randrange(51, 101) for _ in range(3)] for group in GROUPS}
    facts = (("Gender", "Woman"), ("Race", "White,Asian"))
    who = take_part(store, Person(said=lambda group, _: said[group], facts=facts))
    someone = store.find(who)
    assert someone is not None
    pages = sorted((page for page in rows(store, annotated)), key=lambda page: page["place"])
    asked = [*someone.asked, someone.asked[someone.repeated]]
    assert [page["group_name"] for page in pages] == asked
    assert [json.loads(page["ratings"]) for page in pages] == [said[group] for group in asked]
    assert [page["seconds"] for page in pages] == [20.0] * 4
    assert [json.loads(fact["answers"]) for fact in rows(store, demographics)] == [dict(facts)]
    kept = row(store, who)
    assert (kept["status"], kept["agreement"], kept["reasons"]) == ("valid", 1.0, "[]")
    assert kept["which_group"] == someone.asked[0]
    assert (kept["high"], kept["low"]) == ("wealthy", "poor")


def test_the_valid_fill_their_places(store: Store) -> None:
    who = take_part(store)
    asked = store.find(who).asked  # type: ignore[union-attr]
    assert counters(store) == {group: (int(group in asked), 0) for group in GROUPS}
    check_counts(store)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_rejected_free_their_places_and_their_answers_are_kept(store: Store, fault: str) -> None:
    who = take_part(store, Person(fault=fault))
    kept = row(store, who)
    assert (kept["status"], json.loads(kept["reasons"])) == ("rejected", [fault])
    assert len(rows(store, annotated)) == 4
    assert counters(store) == dict.fromkeys(GROUPS, (0, 0))
    check_counts(store)


def test_the_absent_free_their_places_after_the_time_limit(store: Store, clock: Clock) -> None:
    who = take_part(store, until=3)
    clock.now += MINUTES * 60
    assert store.find(who).status == "active"  # type: ignore[union-attr]
    assert sum(held for _, held in counters(store).values()) == 3
    clock.now += 0.5
    assert store.find(who).status == "abandoned"  # type: ignore[union-attr]
    assert row(store, who)["status"] == "abandoned"
    assert counters(store) == dict.fromkeys(GROUPS, (0, 0))
    check_counts(store)


def test_the_time_limit_runs_from_the_last_answer(store: Store, clock: Clock) -> None:
    someone = begun(store)
    for step in range(len(store.steps) - 1):
        clock.now += MINUTES * 60
        assert store.answer(someone.id, step, Person().given(store, someone, step))
    assert row(store, someone.id)["status"] == "valid"


def test_an_answer_after_the_time_limit_is_not_written(store: Store, clock: Clock) -> None:
    someone = begun(store)
    go_on(store, someone, Person(), until=1)
    clock.now += MINUTES * 60 + 0.5
    assert not store.answer(someone.id, 1, Person().given(store, someone, 1))
    assert rows(store, annotated) == []
    check_counts(store)


def test_places_of_the_absent_go_to_who_comes_next(store: Store, clock: Clock) -> None:
    held = 0
    while store.begin() is not None:
        held += 1
    assert held == 4
    clock.now += MINUTES * 60 + 1
    assert fill(store) == 4
    assert counters(store) == dict.fromkeys(GROUPS, (2, 0))
    check_counts(store)


@pytest.mark.parametrize("by", ["code", "pool_id", "id"])
@pytest.mark.parametrize("until", [0, 2, 5, None])
def test_deletion_leaves_nothing_that_was_said(store: Store, by: str, until: int | None) -> None:
    facts = (("Gender", "Woman"),)
    other = take_part(store, Person(facts=(("Gender", "Man"),)), pool_id="other")
    before = [page for page in rows(store, annotated) if page["participant_id"] == other]
    who = take_part(store, Person(facts=facts), until=until, pool_id="pool-1")
    known_as = row(store, who)[by]
    assert store.delete(known_as)
    assert rows(store, annotated) == before
    assert [fact["participant_id"] for fact in rows(store, demographics)] == [other]
    kept = row(store, who)
    assert kept["status"] == "deleted"
    said = ("pool_id", "which_group", "high", "low", "agreement", "reasons", "finished")
    assert {name: kept[name] for name in said} == dict.fromkeys(said)
    assert store.find(who).status == "deleted"  # type: ignore[union-attr]
    assert not store.delete(known_as)
    assert not store.answer(who, kept["step"], {"ratings": [1, 2, 3], "since": 0.0})
    check_counts(store)
    fill(store)
    assert counters(store) == dict.fromkeys(GROUPS, (2, 0))


def test_a_code_may_be_typed_in_any_case_and_with_spaces_around_it(store: Store) -> None:
    for typed in (str.lower, str.title, "  {}\n".format):
        who = take_part(store)
        code = row(store, who)["code"]
        assert code != typed(code)
        assert store.delete(typed(code))
        assert row(store, who)["status"] == "deleted"
    take_part(store, pool_id="aB3")
    for other in ("ab3", "AB3", "a B3"):  # numbers of a pool are not ours: case may tell them apart
        assert not store.delete(other)
    assert store.delete(" aB3 ")
    assert rows(store, annotated) == []
    check_counts(store)


def test_deleting_the_rejected_and_the_absent_frees_nothing_twice(store: Store, clock: Clock) -> None:
    rejected = take_part(store, Person(fault="too fast"))
    absent = take_part(store, until=2)
    clock.now += MINUTES * 60 + 1
    store.give_up_the_absent()
    for who in (rejected, absent):
        assert store.delete(who)
        check_counts(store)
    assert counters(store) == dict.fromkeys(GROUPS, (0, 0))


def test_nobody_is_deleted_by_what_nobody_is_known_by(store: Store) -> None:
    take_part(store)
    for known_as in ("", "%", "None", "' OR 1=1 --", "x" * 10_000):
        assert not store.delete(known_as)
    check_counts(store)
    assert len(rows(store, annotated)) == 4


def test_signs_that_a_database_does_not_take_are_no_error(store: Store) -> None:
    """PostgreSQL has no NUL in texts. Numbers of a pool come from an address, and anybody may write one."""
    assert not store.delete("a\0b")
    assert begun(store, "a\0b").status == "active"
    with pytest.raises(TakesPartAlready):
        store.begin("a\0b")


def test_a_pool_number_takes_part_once(store: Store) -> None:
    who = take_part(store, pool_id="p1")
    with pytest.raises(TakesPartAlready):
        store.begin("p1")
    assert begun(store, "p2").id != who
    check_counts(store)
    # Who was deleted may come again: nothing is known of them any more.
    assert store.delete("p1")
    assert begun(store, "p1").status == "active"


def test_completion_codes_and_numbers_are_not_alike(store: Store) -> None:
    people = []
    while (someone := store.begin()) is not None:
        people.append(someone)
    assert len({person.code for person in people}) == len({person.id for person in people}) == len(people)
    allowed = set(string.ascii_uppercase + string.digits) - set("01IO")
    assert all(len(person.code) == 10 and set(person.code) <= allowed for person in people)


# Steps


def test_an_answer_is_taken_at_its_step_only(store: Store) -> None:
    someone = begun(store)
    for step in range(len(store.steps) - 1):
        for other in (*range(-2, step), *range(step + 1, len(store.steps) + 2)):
            given = Person().given(store, someone, min(max(other, 0), len(store.steps) - 1))
            assert not store.answer(someone.id, other, given), (step, other)
        assert store.find(someone.id).step == step  # type: ignore[union-attr]
        assert store.answer(someone.id, step, Person().given(store, someone, step))
    assert len(rows(store, annotated)) == 4
    check_counts(store)


def test_a_page_sent_again_is_written_once_and_as_it_was_first(store: Store) -> None:
    someone = begun(store)
    go_on(store, someone, Person(), until=1)
    assert store.answer(someone.id, 1, {"ratings": [1, 2, 3], "since": 0.0})
    assert not store.answer(someone.id, 1, {"ratings": [9, 9, 9], "since": 0.0})
    assert [json.loads(page["ratings"]) for page in rows(store, annotated)] == [[1, 2, 3]]
    go_on(store, store.find(someone.id) or someone, Person())
    ended = row(store, someone.id)
    last = len(store.steps) - 2
    assert not store.answer(someone.id, last, {"answers": {"Gender": "Man"}})
    assert not store.answer(someone.id, last + 1, {})
    assert row(store, someone.id) == ended
    check_counts(store)


def test_nobody_answers_for_somebody_who_is_not_there(store: Store) -> None:
    assert not store.answer("nobody", 0, {})
    assert store.find("nobody") is None


def test_an_answer_that_is_not_whole_changes_nothing(store: Store) -> None:
    someone = begun(store)
    go_on(store, someone, Person(), until=1)
    before = rows(store, participants)
    with pytest.raises(KeyError):
        store.answer(someone.id, 1, {"since": 0.0})
    assert rows(store, participants) == before
    assert rows(store, annotated) == []


@pytest.mark.parametrize("act", ["begin", "answer", "finish", "reject", "give up", "delete"])
def test_what_fails_at_any_statement_changes_nothing(store: Store, clock: Clock, act: str) -> None:
    """The connection breaks at the first statement, then at the second, and so on, until the act succeeds."""
    take_part(store)
    last = len(store.steps) - 2
    someone = begun(store)
    person = Person(fault="too fast") if act == "reject" else Person()
    go_on(store, someone, person, until=last if act in ("finish", "reject") else 1)
    if act in ("give up", "begin"):
        clock.now += MINUTES * 60 + 1
    step = last if act in ("finish", "reject") else 1
    acts: dict[str, Callable[[], object]] = {
        "begin": store.begin,
        "answer": lambda: store.answer(someone.id, step, person.given(store, someone, step)),
        "give up": store.give_up_the_absent,
        "delete": lambda: store.delete(someone.id),
    }
    tables = (participants, places, annotated, demographics)
    before = [rows(store, table) for table in tables]
    for broken in range(1, 60):
        done = broken_at(store.engine, broken, acts.get(act, acts["answer"]))
        check_counts(store)
        if done:
            assert broken > 2
            assert [rows(store, table) for table in tables] != before
            return
        assert [rows(store, table) for table in tables] == before
    pytest.fail("it never succeeded")


def broken_at(engine: sa.Engine, statement: int, act: Callable[[], object]) -> bool:
    """Whether an act ended before the statement of this number, at which it breaks."""
    left = [statement]

    def break_(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise ConnectionResetError

    sa.event.listen(engine, "after_cursor_execute", break_)
    try:
        act()
    except ConnectionResetError:
        return False
    finally:
        sa.event.remove(engine, "after_cursor_execute", break_)
    return True


# Any order of events


class Survey(RuleBasedStateMachine):
    """People come, answer, leave and are deleted in any order; counters equal a recount after every event."""

    url: str

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
            groups_a_participant=min(number, groups),
            session_minutes=MINUTES,
        )
        self.clock, self.rng = Clock(), random.Random(seed)
        engine = open_database(self.url)
        with writing(engine) as connection:
            for table in (annotated, demographics, participants, places, studies):
                connection.execute(sa.delete(table))
        # Two processes on one database.
        self.engines = [engine, open_database(self.url)]
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
        for engine in self.engines:
            engine.dispose()

    def any_store(self) -> Store:
        return self.rng.choice(self.stores)

    @rule(fault=st.sampled_from(["", "", *FAULTS]))
    def begin(self, fault: str) -> None:
        someone = self.any_store().begin()
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
            assert store.answer(someone.id, now.step, given)
            assert not store.answer(someone.id, now.step, given)

    @rule(minutes=st.floats(0.0, MINUTES * 1.5))
    def wait(self, minutes: float) -> None:
        self.clock.now += minutes * 60

    @rule()
    def give_up(self) -> None:
        self.any_store().give_up_the_absent()

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        someone = self.known.pop(data.draw(st.integers(0, len(self.known) - 1)))
        assert self.any_store().delete(someone.code)

    @invariant()
    def counted(self) -> None:
        if hasattr(self, "stores"):
            check_counts(self.stores[0])


def test_counters_equal_a_recount_whatever_happens(url: str) -> None:
    machine = type("Survey", (Survey,), {"url": url})
    quick = settings(max_examples=12, stateful_step_count=20, suppress_health_check=list(HealthCheck), deadline=None)
    run_state_machine_as_test(machine, settings=quick)


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
    quick = replace(small_study().rules, seconds_a_group=0.0)
    study = small_study(annotations=7, rules=quick)
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(opened(url, study)) for _ in range(2)]


def test_twenty_at_once_neither_overshoot_nor_double(two_stores: list[Store]) -> None:
    """5 groups of 7 by people who rate 3: 12 fill all places, and some of them fail or are deleted on the way."""

    def come_and_answer(i: int) -> int:
        store, rng = two_stores[i % 2], random.Random(i)
        passed = 0
        while (someone := store.begin()) is not None:
            fault = rng.choice(["", "", "which group", "high and low"])
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


def test_who_begins_at_once_never_holds_too_much(two_stores: list[Store]) -> None:
    found = at_once(20, lambda i: two_stores[i % 2].begin())
    assert raised(found) == []
    assert sum(each is not None for each in found) == 12  # 35 places, three at a time
    assert counters(two_stores[0]) == dict.fromkeys(GROUPS, (0, 7))
    check_counts(two_stores[0])


def test_the_same_page_from_twenty_windows_is_written_once(two_stores: list[Store]) -> None:
    someone = begun(two_stores[0])
    for step in range(len(two_stores[0].steps) - 1):
        given = Person().given(two_stores[0], someone, step)
        found = at_once(20, lambda i, s=step, g=given: two_stores[i % 2].answer(someone.id, s, g))
        assert sorted(map(str, found)) == ["False"] * 19 + ["True"]
    assert len(rows(two_stores[0], annotated)) == 4
    assert len(rows(two_stores[0], demographics)) == 1
    check_counts(two_stores[0])
    assert row(two_stores[0], someone.id)["status"] == "valid"


def test_a_pool_number_wins_once_in_a_race(two_stores: list[Store]) -> None:
    found = at_once(20, lambda i: two_stores[i % 2].begin("the same"))
    assert sorted(type(each).__name__ for each in found) == ["Participant"] + ["TakesPartAlready"] * 19
    assert len(rows(two_stores[0], participants)) == 1
    check_counts(two_stores[0])


@pytest.mark.parametrize("before", [1, 3, 8])
def test_who_is_deleted_while_answering_leaves_nothing(two_stores: list[Store], before: int) -> None:
    """A page, or the last page, and the deletion come together, many times."""
    store = two_stores[0]
    assert before < len(store.steps)
    for _ in range(10):
        someone = begun(store)
        go_on(store, someone, Person(), until=before)
        given = Person(facts=(("Gender", "Woman"),)).given(store, someone, before)
        found = at_once(
            2,
            lambda i, who=someone, answer=given: (
                two_stores[0].answer(who.id, before, answer) if i else two_stores[1].delete(who.code)
            ),
        )
        assert raised(found) == []
        assert found[0] is True
        assert row(store, someone.id)["status"] == "deleted"
        assert rows(store, annotated) == []
        assert rows(store, demographics) == []
        check_counts(store)
    assert counters(store) == dict.fromkeys(GROUPS, (0, 0))


OPEN = """
import sys
from tests.survey.people import opened, small_study
study = small_study()
print("ready", flush=True)
sys.stdin.readline()
with opened(sys.argv[1], study) as store:
    print(store.secret)
"""


def test_processes_may_open_a_new_database_at_once(url: str) -> None:
    """The tables and the study are made once; all have the same key.."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, url],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, "\n".join(error[-500:] for _, error in said)
    assert len({secret for secret, _ in said}) == 1


# The study is frozen


def changes() -> dict[str, Any]:
    study = small_study()
    other = {**study.texts.sections, "done": {**study.texts["done"], "title": "Thanks"}}
    return {
        "groups": {"groups": (*GROUPS, "cats")},
        "pairs": {"pairs": (*study.pairs, ("a", "b"))},
        "rules": {"rules": replace(study.rules, tolerance=11)},
        "target": {"annotations": 3},
        "texts": {"texts": replace(study.texts, sections=other)},
        "link": {"link_demographics": True},
        "researcher": {"researcher": "Ada"},
        "contact": {"contact": "ada@example.org"},
        "approval": {"approval": "Board 7"},
        "spread": {"rules": replace(study.rules, spread=2)},
    }


@pytest.mark.parametrize("change", list(changes()))
def test_a_study_is_frozen_once_somebody_has_begun(store: Store, url: str, change: str) -> None:
    before = rows(store, studies)
    begun(store)
    other = small_study(session_minutes=MINUTES, **changes()[change])
    with pytest.raises(UsageError, match="frozen once somebody has taken part") as error, opened(url, other):
        pass
    assert store.study.digest in str(error.value)
    assert other.digest in str(error.value)
    assert rows(store, studies) == before
    check_counts(store)


def test_a_study_may_change_until_somebody_begins(url: str) -> None:
    with opened(url, small_study()) as first:
        secret = first.secret
    other = small_study(**changes()["groups"])
    with opened(url, other) as store:
        assert set(counters(store)) == {*GROUPS, "cats"}
        assert [json.loads(kept["definition"]) for kept in rows(store, studies)] == [json.loads(other.definition)]
        assert store.secret == secret


def test_a_pool_may_be_mended_while_a_study_runs(store: Store, url: str) -> None:
    who = take_part(store, pool_id="p1")
    other = small_study(session_minutes=MINUTES, pool=Pool("PID", "https://pool.example/", "C1", required=True))
    assert other.pool != store.study.pool
    before = rows(store, studies)
    with opened(url, other, clock=store.clock) as again:
        assert again.secret == store.secret
        assert again.find(who) == store.find(who)
        assert rows(again, studies) == [{**before[0], "definition": other.definition}]
        assert store.begin() is not None  # who serves it as it was may go on
        check_counts(again)


@pytest.mark.parametrize("kept", [Person(), Person(fault="too fast"), None], ids=["valid", "rejected", "absent"])
def test_a_study_is_frozen_while_anybody_is_left_who_is_not_deleted(
    store: Store, url: str, kept: Person | None
) -> None:
    gone = take_part(store)
    left = take_part(store, kept, until=None if kept else 2)
    assert store.delete(gone)
    other = small_study(session_minutes=MINUTES, **changes()["groups"])
    store.clock.now += MINUTES * 60 + 1  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="frozen once somebody has taken part"), opened(url, other):
        pass
    assert store.delete(left)
    with opened(url, other, clock=store.clock) as new:
        assert new.secret == store.secret
        assert rows(new, participants) == []
        assert new.find(gone) is None
        assert counters(new) == dict.fromkeys((*GROUPS, "cats"), (0, 0))
        assert rows(new, studies)[0]["digest"] == other.digest
        fill(new)
        check_counts(new)
        with pytest.raises(UsageError, match="study"):
            store.begin()


def test_a_process_that_serves_the_study_as_it_was_lets_nobody_begin(store: Store, url: str) -> None:
    """Otherwise answers to one study would be kept under the definition of another."""
    other = small_study(session_minutes=MINUTES, **changes()["rules"])
    with opened(url, other) as new:
        with pytest.raises(UsageError, match="study"):
            store.begin()
        assert rows(new, participants) == []
        begun(new)
        assert rows(new, studies)[0]["digest"] == other.digest


def test_the_same_study_opens_again_with_its_data(store: Store, url: str) -> None:
    who = take_part(store)
    with opened(url, store.study, clock=store.clock) as again:
        assert again.secret == store.secret
        assert again.find(who) == store.find(who)
        assert counters(again) == counters(store) == recount(again)


def test_databases_have_keys_of_their_own(tmp_path: Path) -> None:
    found = set()
    for name in ("a", "b"):
        with opened(f"sqlite:///{tmp_path / name}.sqlite", small_study()) as store:
            found.add(store.secret)
            assert len(store.secret) >= 64
    assert len(found) == 2
