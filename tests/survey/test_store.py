"""What happens to participants, in a SQLite file and in PostgreSQL: nothing is lost, doubled or counted wrongly."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
import sqlalchemy as sa

from biassay.survey.database import (
    annotations_table,
    demographics_table,
    participants_table,
    places_table,
    write_transaction,
)
from biassay.survey.participants import DuplicateParticipantError, QuotaFullError
from biassay.survey.store import Identifier, Store

from . import stores
from .people import GROUPS, Clock, Person, check_counts, counters, fill, go_on, rows, take_part
from .stores import FAULTS, MINUTES, begun, row

pytestmark = pytest.mark.extras
clock, store, url = stores.clock, stores.store, stores.url


# One participant


def test_who_comes_to_the_first_group_holds_places_and_nobody_before(store: Store) -> None:
    someone = begun(store)
    assert (someone.status, someone.step, someone.asked) == ("active", 0, ())
    assert store.find(someone.id) == someone
    assert store.count_missing() == dict.fromkeys(GROUPS, 2)
    check_counts(store)
    after = go_on(store, someone, Person(), until=1)
    assert len(set(after.asked)) == 3
    assert counters(store) == {group: (0, int(group in after.asked)) for group in GROUPS}
    assert store.count_missing() == {group: 2 - (group in after.asked) for group in GROUPS}
    check_counts(store)


def test_who_reads_the_instructions_when_the_last_place_is_taken_waits_for_another(store: Store) -> None:
    """Nothing is written; the same page is taken once a place is free."""
    late = begun(store)
    others = [take_part(store, until=2) for _ in range(4)]
    before = [rows(store, table) for table in (participants_table, places_table)]
    with pytest.raises(QuotaFullError):
        store.save_step(late.id, 0, {})
    assert [rows(store, table) for table in (participants_table, places_table)] == before
    assert store.add_participant() is None
    assert store.delete(others[0], by="id")
    assert store.save_step(late.id, 0, {})
    assert store.count_missing() == dict.fromkeys(GROUPS, 0)
    check_counts(store)


def test_who_began_when_places_were_held_from_the_beginning_keeps_theirs(store: Store) -> None:
    """A database that was served by an earlier version."""
    someone = begun(store)
    held = ["teenagers", "veterans"]
    with write_transaction(store.engine) as connection:
        kept = {"asked": json.dumps(["men", *held]), "counted": json.dumps(held), "repeated": 2}
        connection.execute(sa.update(participants_table).values(kept))
        connection.execute(sa.update(places_table).where(places_table.c.group_name.in_(held)).values(held=1))
    assert go_on(store, someone, Person()).asked == ("men", *held)
    assert counters(store) == {group: (int(group in held), 0) for group in GROUPS}
    check_counts(store)


def test_who_has_not_ended_is_unfinished(store: Store, clock: Clock) -> None:
    there, gone = begun(store), take_part(store, until=3)
    take_part(store)
    assert store.delete(take_part(store, until=2), by="id")
    assert store.unfinished() == {there.id, gone}
    clock.now += MINUTES * 60
    go_on(store, there, Person(), until=1)
    clock.now += 0.5
    assert store.unfinished() == {there.id}


def test_every_answer_is_written_as_it_was_given(store: Store) -> None:
    rng = random.Random(1)
    said = {group: [rng.randrange(51, 101) for _ in range(3)] for group in GROUPS}
    facts = (("Gender", "Woman"), ("Race", "White,Asian"))
    who = take_part(store, Person(said=lambda group, _: said[group], facts=facts))
    someone = store.find(who)
    assert someone is not None
    pages = sorted((page for page in rows(store, annotations_table)), key=lambda page: page["place"])
    asked = [*someone.asked, someone.asked[someone.repeated]]
    assert [page["group_name"] for page in pages] == asked
    assert [json.loads(page["ratings"]) for page in pages] == [said[group] for group in asked]
    assert [page["seconds"] for page in pages] == [20.0] * 4
    assert [json.loads(fact["answers"]) for fact in rows(store, demographics_table)] == [dict(facts)]
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
    assert len(rows(store, annotations_table)) == 4
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
        someone = go_on(store, replace(someone, step=step), Person(), until=step + 1)
    assert row(store, someone.id)["status"] == "valid"


def test_an_answer_after_the_time_limit_is_not_written(store: Store, clock: Clock) -> None:
    someone = begun(store)
    someone = go_on(store, someone, Person(), until=1)
    clock.now += MINUTES * 60 + 0.5
    assert not store.save_step(someone.id, 1, Person().given(store, someone, 1))
    assert rows(store, annotations_table) == []
    check_counts(store)


def test_places_of_the_absent_go_to_who_comes_next(store: Store, clock: Clock) -> None:
    held = 0
    while (someone := store.add_participant()) is not None:
        go_on(store, someone, Person(), until=2)
        held += 1
    assert held == 4
    clock.now += MINUTES * 60 + 1
    assert fill(store) == 4
    assert counters(store) == dict.fromkeys(GROUPS, (2, 0))
    check_counts(store)


@pytest.mark.parametrize("by", ["code", "pool_id", "id"])
@pytest.mark.parametrize("until", [0, 2, 5, None])
def test_deletion_leaves_nothing_of_a_participant(store: Store, by: Identifier, until: int | None) -> None:
    facts = (("Gender", "Woman"),)
    other = take_part(store, Person(facts=(("Gender", "Man"),)), pool_id="other")
    before = [page for page in rows(store, annotations_table) if page["participant_id"] == other]
    who = take_part(store, Person(facts=facts), until=until, pool_id="pool-1")
    before_deletion = row(store, who)
    identifier = before_deletion[by]
    assert store.delete(identifier, by=by)
    assert rows(store, annotations_table) == before
    assert [fact["participant_id"] for fact in rows(store, demographics_table)] == [other]
    kept = row(store, who)
    assert kept["status"] == "deleted"
    assert kept["code"] != before_deletion["code"]
    empty = {"asked": "[]", "counted": "[]", **dict.fromkeys(("step", "repeated", "created", "seen"), 0)}
    personal = kept.keys() - {"id", "status", "code"}
    assert {name: kept[name] for name in personal} == {**dict.fromkeys(personal), **empty}
    assert store.find(who).status == "deleted"  # type: ignore[union-attr]
    assert not store.delete(identifier, by=by)
    assert not store.save_step(who, before_deletion["step"], {"ratings": [1, 2, 3], "since": 0.0})
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
        assert not store.delete(other, by="pool_id")
    assert store.delete(" aB3 ", by="pool_id")
    assert rows(store, annotations_table) == []
    check_counts(store)


@pytest.mark.parametrize("by", ["code", "pool_id"])
def test_another_persons_code_as_pool_number_deletes_only_the_person_asked_for(store: Store, by: Identifier) -> None:
    victim = take_part(store)
    code = row(store, victim)["code"]
    impostor = take_part(store, pool_id=code)
    assert store.delete(code, by=by)
    deleted, left = (victim, impostor) if by == "code" else (impostor, victim)
    assert row(store, deleted)["status"] == "deleted"
    assert row(store, left)["status"] == "valid"
    check_counts(store)


def test_deleting_the_rejected_and_the_absent_frees_nothing_twice(store: Store, clock: Clock) -> None:
    rejected = take_part(store, Person(fault="too fast"))
    absent = take_part(store, until=2)
    clock.now += MINUTES * 60 + 1
    store.release_abandoned()
    for who in (rejected, absent):
        assert store.delete(who, by="id")
        check_counts(store)
    assert counters(store) == dict.fromkeys(GROUPS, (0, 0))


def test_nobody_is_deleted_by_what_nobody_is_known_by(store: Store) -> None:
    take_part(store)
    for identifier in ("", "%", "None", "' OR 1=1 --", "x" * 10_000):
        for by in get_args(Identifier):
            assert not store.delete(identifier, by=by)
    check_counts(store)
    assert len(rows(store, annotations_table)) == 4


def test_signs_that_a_database_does_not_take_are_no_error(store: Store) -> None:
    """PostgreSQL has no NUL in texts. Numbers of a pool come from an address, and anybody may write one."""
    assert not store.delete("a\0b", by="pool_id")
    assert begun(store, "a\0b").status == "active"
    with pytest.raises(DuplicateParticipantError):
        store.add_participant("a\0b")


def test_a_pool_number_takes_part_once(store: Store) -> None:
    who = take_part(store, pool_id="p1")
    with pytest.raises(DuplicateParticipantError):
        store.add_participant("p1")
    assert begun(store, "p2").id != who
    check_counts(store)
    # Who was deleted may come again: nothing is known of them any more.
    assert store.delete("p1", by="pool_id")
    assert begun(store, "p1").status == "active"


def test_completion_codes_and_numbers_are_not_alike(store: Store) -> None:
    people = []
    while (someone := store.add_participant()) is not None:
        people.append(go_on(store, someone, Person(), until=2))
    assert len({person.code for person in people}) == len({person.id for person in people}) == len(people)
    allowed = set(string.ascii_uppercase + string.digits) - set("01IO")
    assert all(len(person.code) == 10 and set(person.code) <= allowed for person in people)


# Steps

WHOLE = {"ratings": [90, 10, 80], "since": 0.0, "which_group": "men", "high": "warm", "low": "cold", "answers": {}}


def test_an_answer_is_taken_at_its_step_only(store: Store) -> None:
    someone = begun(store)
    for step in range(len(store.steps) - 1):
        for other in (*range(-2, step), *range(step + 1, len(store.steps) + 2)):
            given = WHOLE if step == 0 else Person().given(store, someone, min(max(other, 0), len(store.steps) - 1))
            assert not store.save_step(someone.id, other, given), (step, other)
        assert store.find(someone.id).step == step  # type: ignore[union-attr]
        someone = go_on(store, replace(someone, step=step), Person(), until=step + 1)
    assert len(rows(store, annotations_table)) == 4
    check_counts(store)


def test_a_page_sent_again_is_written_once_and_as_it_was_first(store: Store) -> None:
    someone = begun(store)
    go_on(store, someone, Person(), until=1)
    assert store.save_step(someone.id, 1, {"ratings": [1, 2, 3], "since": 0.0})
    assert not store.save_step(someone.id, 1, {"ratings": [9, 9, 9], "since": 0.0})
    assert [json.loads(page["ratings"]) for page in rows(store, annotations_table)] == [[1, 2, 3]]
    go_on(store, store.find(someone.id) or someone, Person())
    ended = row(store, someone.id)
    last = len(store.steps) - 2
    assert not store.save_step(someone.id, last, {"answers": {"Gender": "Man"}})
    assert not store.save_step(someone.id, last + 1, {})
    assert row(store, someone.id) == ended
    check_counts(store)


def test_nobody_answers_for_somebody_who_is_not_there(store: Store) -> None:
    assert not store.save_step("nobody", 0, {})
    assert store.find("nobody") is None


def test_an_answer_that_is_not_whole_changes_nothing(store: Store) -> None:
    someone = begun(store)
    go_on(store, someone, Person(), until=1)
    before = rows(store, participants_table)
    with pytest.raises(KeyError):
        store.save_step(someone.id, 1, {"since": 0.0})
    assert rows(store, participants_table) == before
    assert rows(store, annotations_table) == []


@pytest.mark.parametrize("act", ["begin", "hold", "answer", "finish", "reject", "give up", "delete"])
def test_what_fails_at_any_statement_changes_nothing(store: Store, clock: Clock, act: str) -> None:
    """The connection breaks at the first statement, then at the second, and so on, until the act succeeds."""
    take_part(store)
    last = len(store.steps) - 2
    someone = begun(store)
    person = Person(fault="too fast") if act == "reject" else Person()
    step = {"finish": last, "reject": last, "hold": 0}.get(act, 1)
    someone = go_on(store, someone, person, until=step)
    if act in ("give up", "begin"):
        clock.now += MINUTES * 60 + 1
    acts: dict[str, Callable[[], object]] = {
        "begin": store.add_participant,
        "answer": lambda: store.save_step(someone.id, step, person.given(store, someone, step)),
        "give up": store.release_abandoned,
        "delete": lambda: store.delete(someone.id, by="id"),
    }
    tables = (participants_table, places_table, annotations_table, demographics_table)
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
