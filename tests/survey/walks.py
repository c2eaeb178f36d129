"""Walks through a study over HTTP, as a browser without a script would: pages are read, forms are filled in and sent.

The client is any that speaks like httpx: `starlette.testclient.TestClient` for an application in this process,
`httpx.Client` for one that is served.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

TOKEN = "a-token-for-tests"
GROUPS = ("men", "women", "teenagers", "veterans", "immigrants", "blind people")
PAIRS = (("powerless", "powerful"), ("poor", "wealthy"), ("cold", "warm"), ("traditional", "modern"))
FORM = "application/x-www-form-urlencoded"
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
DEMOGRAPHICS = """
[demographics.Gender]
choices = ["Woman", "Man", "Non-binary"]
[demographics.Race]
several = true
choices = ["White", "Black", "Asian"]
[demographics.State]
most = 40
"""
_WITHOUT_END = {"input", "meta", "link", "br", "hr"}


def write_study(
    folder: Path,
    *,
    groups: Sequence[str] = GROUPS,
    pairs: Sequence[tuple[str, str]] = PAIRS,
    annotations: int = 20,
    each: int = 3,
    seconds: float = 8,
    quality: str = "",
    minutes: float = 60,
    link: bool = False,
    pool: str = 'parameter = "PROLIFIC_PID"',
    demographics: str = DEMOGRAPHICS,
    society: str = "American society",
    name: str = "small",
    more: str = "",
) -> Path:
    """The file of a small study."""
    path = folder / "study.toml"
    path.write_text(
        f"""
name = {json.dumps(name)}
society = {json.dumps(society)}
groups = {json.dumps(list(groups))}
pairs = {json.dumps([list(pair) for pair in pairs])}
{more}
[target]
annotations = {annotations}
groups_per_participant = {each}
[quality]
seconds_per_group = {seconds}
{quality}
[session]
minutes = {minutes}
[privacy]
link_demographics = {str(link).lower()}
[pool]
{pool}
{demographics}
""",
        encoding="utf-8",
    )
    return path


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Page:
    """What a browser makes of an answer. ``kind`` is the step it belongs to, or what else it is."""

    status: int
    html: str
    action: str = ""
    hidden: dict[str, str] = field(default_factory=dict)
    offered: dict[str, list[str]] = field(default_factory=dict)
    filled: dict[str, list[str]] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    title: str = ""
    code: str = ""
    own_code: str = ""
    alert: str = ""
    text: str = ""

    @property
    def kind(self) -> str:
        by_field = {"agree": "consent", "pair-0": "group", "group": "which_group", "high": "high_low"}
        by_field |= {"field-0": "demographics", "password": "login", "identifier": "researcher"}
        found = next((kind for name, kind in by_field.items() if name in self.offered), None)
        return found or ("done" if self.code else "instructions" if "step" in self.hidden else "message")

    @property
    def step(self) -> int:
        return int(self.hidden["step"])

    @property
    def token(self) -> str:
        return self.hidden["token"]


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__(convert_charrefs=True)
        self.page = page
        self.within: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.list = ""
        self.option: tuple[dict[str, str], list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.page.elements.append((tag, given))
        if tag not in _WITHOUT_END:
            self.within.append((tag, given))
        if tag == "form" and not self.page.action:
            self.page.action = given["action"]
        elif tag == "a":
            self.page.links.append(given["href"])
        elif tag == "input":
            self._input(given)
        elif tag == "select":
            self.list = given["name"]
            self.page.offered.setdefault(self.list, [])
        elif tag == "option":
            self.option = (given, [])

    def _input(self, given: dict[str, str]) -> None:
        name, value = given["name"], given.get("value", "")
        if given.get("type") == "hidden":
            self.page.hidden.setdefault(name, value)
            return
        self.page.offered.setdefault(name, []).append(value)
        chosen = "checked" in given if given.get("type") in ("radio", "checkbox") else value != ""
        if chosen:
            self.page.filled.setdefault(name, []).append(value)

    def handle_endtag(self, tag: str) -> None:
        while self.within and self.within.pop()[0] != tag:
            pass
        if tag == "option" and self.option is not None:
            given, words = self.option
            # Without a value of its own an option is worth its words, spaces made one.
            value = given.get("value", " ".join("".join(words).split()))
            self.page.offered[self.list].append(value)
            if "selected" in given:
                self.page.filled.setdefault(self.list, []).append(value)
            self.option = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.option is not None:
            self.option[1].append(data)
        for tag, given in self.within:
            if tag == "h1":
                self.page.title += data
            if given.get("class") == "code":
                self.page.code = (self.page.code + data).strip()
            if "own-code" in given.get("class", "").split():
                self.page.own_code += data
            if given.get("role") == "alert":
                self.page.alert += data


def read_page(answer: Any) -> Page:
    """The page that came, taken apart."""
    page = Page(answer.status_code, answer.text)
    reader = _Reader(page)
    reader.feed(answer.text)
    reader.close()
    page.text = " ".join(" ".join(reader.words).split())
    return page


def careful(group: str, pair: int) -> int:
    """A rating that is the same whenever asked, and clearly to one side."""
    return 70 + (len(group) + pair) % 25 if (len(group) + pair) % 2 else 30 - (len(group) + pair) % 25


class Walker:
    """One person with one browser. ``clock`` is moved on before an answer, as if the page had been read."""

    def __init__(
        self,
        client: Any,
        *,
        pairs: Sequence[tuple[str, str]] = PAIRS,
        rate: Callable[[str, int], int] = careful,
        clock: Clock | None = None,
        about: Mapping[str, str | list[str]] | None = None,
    ) -> None:
        self.client, self.pairs, self.rate, self.clock = client, pairs, rate, clock
        self.about = dict(about or {})
        self.groups: list[str] = []
        self.page = Page(0, "")

    def get(self, path: str) -> Page:
        self.page = read_page(self.client.get(path, follow_redirects=True))
        return self.page

    def post(self, path: str, fields: Mapping[str, Any]) -> Page:
        self.page = read_page(self.client.post(path, data=dict(fields), follow_redirects=True))
        return self.page

    def send(self, **fields: Any) -> Page:
        """The form of the page at hand, with what is hidden in it."""
        return self.post(self.page.action, {**self.page.hidden, **fields})

    def begin(self, pool_id: str | None = None) -> Page:
        """Consent; the page after it."""
        self.get("/" if pool_id is None else f"/?PROLIFIC_PID={pool_id}")
        return self.send(agree="yes")

    def answers(self) -> dict[str, Any]:
        """What a careful person says on the page at hand."""
        page = self.page
        if page.kind == "group":
            return {f"pair-{i}": str(self.rate(page.title, i)) for i in range(len(self.pairs))}
        if page.kind == "which_group":
            return {"group": self.groups[0]}
        if page.kind == "high_low":
            rating = self.rate(self.groups[1], 0)
            low, high = self.pairs[0] if rating > 50 else self.pairs[0][::-1]
            return {"high": high, "low": low}
        return dict(self.about) if page.kind == "demographics" else {}

    def answer(self) -> Page:
        """Answer the page at hand."""
        given = self.answers()
        if self.page.kind == "group":
            self.groups.append(self.page.title)
        if self.clock is not None:
            self.clock.now += 20.0
        return self.send(**given)

    def go(self, until: str = "done", *, times: int = 1) -> Page:
        """On to the first page of a kind (or a later one), which is not answered."""
        for _ in range(50):
            times -= self.page.kind == until
            if times <= 0 and self.page.kind == until:
                return self.page
            before = self.page.hidden.get("step")
            self.answer()
            if self.page.status != 200 or self.page.hidden.get("step") == before:
                raise AssertionError(f"stuck at {self.page.kind}: {self.page.status} {self.page.text}")
        raise AssertionError("no end")

    def walk(self, pool_id: str | None = None) -> str:
        """The whole way; the completion code."""
        self.begin(pool_id)
        return self.go().code


@dataclass
class Place:
    """A study in this process. Every browser has cookies of its own."""

    app: Any
    store: Any
    clock: Clock
    browser: Callable[[], Walker]

    def rows(self, sql: str) -> list[Any]:
        with self.store.engine.connect() as connection:
            return list(connection.exec_driver_sql(sql))

    def everything(self) -> dict[str, list[str]]:
        """All that a participant could change."""
        tables = ("participants", "annotations", "demographics", "places")
        return {table: sorted(map(repr, self.rows(f"SELECT * FROM {table}"))) for table in tables}


@contextmanager
def opened(
    folder: Path,
    *,
    token: str | None = None,
    secure: bool = False,
    limits: Any = None,
    link_key: str | None = None,
    **otherwise: Any,
) -> Iterator[Place]:
    """A small study, with what is wanted otherwise, and no limits unless some are given."""
    import sqlalchemy as sa
    from starlette.testclient import TestClient

    from biassay.survey.app import RateLimits, make_app
    from biassay.survey.database import open_database
    from biassay.survey.store import Store
    from biassay.survey.study import read_study

    clock = Clock()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ends:
        engine = open_database(f"sqlite:///{folder / 'answers.sqlite'}")
        ends.callback(engine.dispose)
        engine.dispose()
        sa.event.listen(engine, "connect", _hasty)
        store = Store(engine, read_study(write_study(folder, **otherwise)), clock=clock)
        app = make_app(store, token=token, secure=secure, limits=limits or RateLimits(0, 0, 0, 0), link_key=link_key)
        ends.callback(app.state.site.workers.shutdown)

        def browser() -> Walker:
            address = "https://testserver" if secure else "http://testserver"
            client = TestClient(app, base_url=address, raise_server_exceptions=False)
            return Walker(ends.enter_context(client), pairs=store.study.pairs, clock=clock)

        yield Place(app, store, clock, browser)


def _hasty(connection: Any, _: Any) -> None:
    """Here nothing need survive the machine, and waiting for the disk is most of the time."""
    connection.execute("PRAGMA synchronous=OFF")


def cookie_of(client: Any, kind: str = "biassay") -> tuple[str, str] | None:
    """The name and the value of the cookie of this kind, whose name ends with the study's own suffix."""
    found = [(one.name, one.value) for one in client.cookies.jar if re.fullmatch(rf"{kind}_[0-9a-f]{{8}}", one.name)]
    assert len(found) <= 1
    return found[0] if found else None


def log_in(client: Any, token: str = TOKEN) -> Page:
    """The researcher's page, or why not."""
    walker = Walker(client)
    walker.get("/researcher")
    return walker.send(password=token)


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


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(jobs)) as threads:
        return [done.result() for done in [threads.submit(job) for job in jobs]]
