"""What attacks share: a study in this process, one that is served, its addresses, and what no client would send."""

from __future__ import annotations

import hmac
import itertools
import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from tests.survey.serving import Served, serving
from tests.survey.walks import TOKEN, Place, Walker, opened, write_study

METHODS = {
    "/": {"GET", "HEAD"},
    "/begin": {"POST"},
    "/page": {"GET", "HEAD", "POST"},
    "/health": {"GET", "HEAD"},
    "/researcher": {"GET", "HEAD"},
    "/researcher/login": {"POST"},
    "/researcher/logout": {"POST"},
    "/researcher/delete": {"POST"},
    "/researcher/export/ratings.json": {"GET", "HEAD"},
    "/static/survey.css": {"GET", "HEAD"},
}
POSTS = [path for path, methods in METHODS.items() if "POST" in methods]
FILES = ("ratings.json", "ratings.csv", "ratings.parquet", "all_pages.csv", "demographics.json", "study.json")


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Makes a study with a researcher's side, with what a test wants otherwise."""
    with ExitStack() as ends:
        number = itertools.count()

        def made(**otherwise: Any) -> Place:
            return ends.enter_context(opened(tmp_path / str(next(number)), **{"token": TOKEN, **otherwise}))

        yield made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A study on a port of this machine."""
    folder = tmp_path_factory.mktemp("served")
    with serving(write_study(folder, seconds=0), folder) as found:
        yield found


def client_of(served: Served) -> Any:
    httpx = pytest.importorskip("httpx")
    return httpx.Client(base_url=served.address, timeout=60.0, trust_env=False, verify=False)  # certificates take long


def raw(served: Served, request: bytes) -> tuple[int, bytes]:
    """The status and all of the answer to bytes as they are, which no client would send."""
    host, port = served.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return int(answer.split(b" ", 2)[1]), answer


def named(person: Walker, kind: str = "biassay") -> str:
    """What a cookie of this kind is called in the study at hand."""
    return str(person.client.app.state.site.sessions.name(kind))


def use(person: Walker, cookie: str, kind: str = "biassay") -> None:
    person.client.cookies.clear()
    person.client.cookies.set(named(person, kind), cookie)


def record_comparisons(monkeypatch: pytest.MonkeyPatch) -> list[set[bytes]]:
    """Collect what is compared in constant time from now on."""
    compared: list[set[bytes]] = []
    compare = hmac.compare_digest

    def record(a: bytes, b: bytes) -> bool:
        compared.append({a, b})
        return compare(a, b)

    monkeypatch.setattr(hmac, "compare_digest", record)
    return compared


@pytest.fixture
def failing(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> Walker:
    """A person whose consent cannot be written: the code exists already."""
    place = study()
    monkeypatch.setattr("biassay.survey.store.secrets.choice", lambda _: "A")
    place.browser().begin("first-number")
    person = place.browser()
    person.get("/?PROLIFIC_PID=hidden-number")
    return person


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(jobs)) as threads:
        return [done.result() for done in [threads.submit(job) for job in jobs]]


def rows_of(served: Served, sql: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(served.database, timeout=30)) as connection:
        return connection.execute(sql, values).fetchall()
