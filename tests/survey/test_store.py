"""What happens to participants, and what may change once somebody has begun; in a SQLite file and in PostgreSQL."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import sqlalchemy as sa

from biassay.errors import UsageError
from biassay.survey.database import (
    annotations_table,
    demographics_table,
    participants_table,
    places_table,
    studies_table,
)
from biassay.survey.participants import DuplicateParticipantError, QuotaFullError
from biassay.survey.store import Identifier, Store
from biassay.survey.study import ParticipantPool

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
    take_part,
)
from .walks import Clock

pytestmark = pytest.mark.extras


# One participant


def test_who_reads_the_instructions_when_the_last_place_is_taken_waits_for_another(store: Store) -> None:
    """Nothing is saved; the same page is accepted once a quota has room."""
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


@in_both
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


@pytest.mark.parametrize("fault", FAULTS)
def test_the_rejected_free_their_places_and_their_answers_are_kept(store: Store, fault: str) -> None:
    who = take_part(store, Person(fault=fault))
    kept = row(store, who)
    assert (kept["status"], json.loads(kept["reasons"])) == ("rejected", [fault])
    assert len(rows(store, annotations_table)) == 4
    assert counters(store) == dict.fromkeys(GROUPS, (0, 0))
    check_counts(store)


def test_an_answer_after_the_time_limit_is_not_written(store: Store, clock: Clock) -> None:
    someone = begun(store)
    someone = go_on(store, someone, Person(), until=1)
    clock.now += MINUTES * 60 + 0.5
    assert not store.save_step(someone.id, 1, Person().given(store, someone, 1))
    assert rows(store, annotations_table) == []
    check_counts(store)


@in_both
@pytest.mark.parametrize(("by", "until"), [("code", 0), ("pool_id", 2), ("id", 5), ("id", None)])
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
    assert store.find(who).status == "deleted"
    assert not store.delete(identifier, by=by)
    assert not store.save_step(who, before_deletion["step"], {"ratings": [1, 2, 3], "since": 0.0})
    check_counts(store)
    fill(store)
    assert counters(store) == dict.fromkeys(GROUPS, (2, 0))


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


@in_both
def test_a_pool_number_takes_part_once(store: Store) -> None:
    who = take_part(store, pool_id="p1")
    with pytest.raises(DuplicateParticipantError):
        store.add_participant("p1")
    assert begun(store, "p2").id != who
    check_counts(store)
    # Who was deleted may come again: nothing is known of them any more.
    assert store.delete("p1", by="pool_id")
    assert begun(store, "p1").status == "active"


# Steps


WHOLE = {"ratings": [90, 10, 80], "since": 0.0, "which_group": "men", "high": "warm", "low": "cold", "answers": {}}


def test_an_answer_is_taken_at_its_step_only(store: Store) -> None:
    someone = begun(store)
    for step in range(len(store.steps) - 1):
        for other in (*range(-2, step), *range(step + 1, len(store.steps) + 2)):
            given = WHOLE if step == 0 else Person().given(store, someone, min(max(other, 0), len(store.steps) - 1))
            assert not store.save_step(someone.id, other, given), (step, other)
        assert store.find(someone.id).step == step
        someone = go_on(store, replace(someone, step=step), Person(), until=step + 1)
    assert len(rows(store, annotations_table)) == 4
    check_counts(store)


@in_both
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


@in_both
def test_a_pool_may_be_mended_while_a_study_runs(store: Store, url: str) -> None:
    who = take_part(store, pool_id="p1")
    other = small_study(
        session_minutes=MINUTES, pool=ParticipantPool("PID", "https://pool.example/", "C1", required=True)
    )
    assert other.pool != store.study.pool
    before = rows(store, studies_table)
    with opened(url, other, clock=store.clock) as again:
        assert again.secret == store.secret
        assert again.find(who) == store.find(who)
        assert rows(again, studies_table) == [{**before[0], "definition": other.definition}]
        assert store.add_participant() is not None  # who serves it as it was may go on
        check_counts(again)


@pytest.mark.parametrize("kept", [Person(), Person(fault="too fast"), None], ids=["valid", "rejected", "absent"])
def test_a_study_is_frozen_while_anybody_is_left_who_is_not_deleted(
    store: Store, url: str, kept: Person | None
) -> None:
    gone = take_part(store)
    left = take_part(store, kept, until=None if kept else 2)
    assert store.delete(gone, by="id")
    other = small_study(session_minutes=MINUTES, groups=(*GROUPS, "cats"))
    before = rows(store, studies_table)
    store.clock.now += MINUTES * 60 + 1  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="cannot change once somebody has taken part") as error, opened(url, other):
        pass
    assert store.study.digest in str(error.value)
    assert other.digest in str(error.value)
    assert rows(store, studies_table) == before
    assert store.delete(left, by="id")
    with opened(url, other, clock=store.clock) as new:
        assert new.secret == store.secret
        assert rows(new, participants_table) == []
        assert new.find(gone) is None
        assert counters(new) == dict.fromkeys((*GROUPS, "cats"), (0, 0))
        assert rows(new, studies_table)[0]["digest"] == other.digest
        fill(new)
        check_counts(new)
        # Otherwise answers to one study would be kept under the definition of another.
        with pytest.raises(UsageError, match="study"):
            store.add_participant()
