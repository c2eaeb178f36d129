"""Fixtures: studies in this process, served ones, stores in databases, and a browser."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.survey.walks import TOKEN, Clock, Place, Walker, opened, write_study


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Makes a study with a researcher's side, with what a test wants otherwise."""
    with ExitStack() as ends:
        number = itertools.count()

        def made(**otherwise: Any) -> Place:
            return ends.enter_context(opened(tmp_path / str(next(number)), **{"token": TOKEN, **otherwise}))

        yield made


@pytest.fixture
def failing(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> Walker:
    """A person whose consent cannot be written: the code exists already."""
    place = study()
    monkeypatch.setattr("biassay.survey.store.secrets.choice", lambda _: "A")
    place.browser().begin("first-number")
    person = place.browser()
    person.get("/?PROLIFIC_PID=hidden-number")
    return person


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A study on a port of this machine."""
    from tests.survey.serving import serving

    folder = tmp_path_factory.mktemp("served")
    with serving(write_study(folder, seconds=0), folder) as found:
        yield found


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a new database, in a SQLite file unless a test asks for both kinds."""
    from tests.survey.people import database

    with database(getattr(request, "param", "sqlite"), tmp_path) as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_store(url: str, clock: Clock) -> Iterator[Callable[..., Any]]:
    """Opens the database with a study."""
    from tests.survey import people

    with ExitStack() as ends:
        yield lambda study: ends.enter_context(people.opened(url, study, clock=clock))


@pytest.fixture
def store(open_store: Callable[..., Any]) -> Any:
    """Of a small study with an hour of patience."""
    from tests.survey.people import MINUTES, small_study

    return open_store(small_study(session_minutes=MINUTES))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from tests.reporting.browser import chromium

    with chromium() as opened_browser:
        yield opened_browser


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a small study that nobody has taken part in."""
    from tests.survey import served

    with served.served(served.write_study(tmp_path), tmp_path) as found:
        yield found
