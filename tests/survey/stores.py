"""Stores of a small study in a SQLite file, and in PostgreSQL for tests that ask for both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from biassay.survey.database import participants_table
from biassay.survey.participants import Participant
from biassay.survey.store import Store

from .people import Clock, database, opened, rows, small_study

KINDS = ["sqlite", "postgresql"]
MINUTES = 60.0
FAULTS = ["which group", "high and low", "self-agreement", "all alike", "too fast"]


in_both = pytest.mark.parametrize("url", KINDS, indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database(getattr(request, "param", "sqlite"), tmp_path) as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    with opened(url, small_study(session_minutes=MINUTES), clock=clock) as made:
        yield made


def row(store: Store, participant: str) -> dict[str, Any]:
    return next(person for person in rows(store, participants_table) if person["id"] == participant)


def begun(store: Store, pool_id: str | None = None) -> Participant:
    someone = store.add_participant(pool_id)
    assert someone is not None
    return someone
