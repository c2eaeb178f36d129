"""A study and its database: what may change once somebody has begun, in SQLite and in PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from biassay.errors import UsageError
from biassay.survey.database import participants_table, studies_table
from biassay.survey.store import Store
from biassay.survey.study import ParticipantPool

from . import stores
from .people import GROUPS, Person, check_counts, counters, fill, opened, rows, small_study, take_part
from .stores import MINUTES, begun, in_both

pytestmark = pytest.mark.extras
clock, store, url = stores.clock, stores.store, stores.url


def changes() -> dict[str, Any]:
    study = small_study()
    other = {**study.texts.sections, "done": {**study.texts["done"], "title": "Thanks"}}
    return {
        "groups": {"groups": (*GROUPS, "cats")},
        "rules": {"rules": replace(study.rules, tolerance=11)},
        "texts": {"texts": replace(study.texts, sections=other)},
    }


@pytest.mark.parametrize("change", list(changes()))
def test_a_study_is_frozen_once_somebody_has_begun(store: Store, url: str, change: str) -> None:
    before = rows(store, studies_table)
    begun(store)
    other = small_study(session_minutes=MINUTES, **changes()[change])
    with pytest.raises(UsageError, match="cannot change once somebody has taken part") as error, opened(url, other):
        pass
    assert store.study.digest in str(error.value)
    assert other.digest in str(error.value)
    assert rows(store, studies_table) == before
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
    other = small_study(session_minutes=MINUTES, **changes()["groups"])
    store.clock.now += MINUTES * 60 + 1  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="cannot change once somebody has taken part"), opened(url, other):
        pass
    assert store.delete(left, by="id")
    with opened(url, other, clock=store.clock) as new:
        assert new.secret == store.secret
        assert rows(new, participants_table) == []
        assert new.find(gone) is None
        assert counters(new) == dict.fromkeys((*GROUPS, "cats"), (0, 0))
        assert rows(new, studies_table)[0]["digest"] == other.digest
        fill(new)
        check_counts(new)
        with pytest.raises(UsageError, match="study"):
            store.add_participant()


def test_a_process_that_serves_the_study_as_it_was_lets_nobody_begin(store: Store, url: str) -> None:
    """Otherwise answers to one study would be kept under the definition of another."""
    other = small_study(session_minutes=MINUTES, **changes()["rules"])
    with opened(url, other) as new:
        with pytest.raises(UsageError, match="study"):
            store.add_participant()
        assert rows(new, participants_table) == []
        begun(new)
        assert rows(new, studies_table)[0]["digest"] == other.digest
