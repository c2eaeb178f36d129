"""Requests that nobody thought of, by property-based testing: no page fails, and places stay as a recount finds them.

Requests go straight to the application, as a server would hand them on: no client makes them well-formed before.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.survey.people import check_counts
from tests.survey.walks import FORM, TOKEN, Place, opened

pytestmark = pytest.mark.extras

MANY = settings(max_examples=150, suppress_health_check=list(HealthCheck), print_blob=True)
ROUTES = (
    *("/", "/begin", "/page", "/health", "/researcher", "/researcher/login", "/researcher/logout"),
    *("/researcher/delete", "/researcher/export/ratings.json", "/researcher/export/demographics.json"),
    *("/researcher/export/all_pages.csv", "/researcher/export/study.json", "/static/survey.css", "/static/"),
)
METHODS = ("GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
FIELDS = (
    *("token", "step", "agree", "group", "high", "low", "password", "identifier", "by", "PROLIFIC_PID", "deleted"),
    *(f"pair-{i}" for i in range(5)),
    *(f"field-{i}" for i in range(4)),
)
NASTY = (
    *("", "0", "50", "100", "101", "-1", "9" * 400, "\0", "\ufffd", "😀", "é", "\u202e", "\r\n", "yes", "warm", "cold"),
    *("men", "Woman", "<script>", "{{7*7}}", "' OR 1=1 --", "%", "/", "//", "NaN", "٣", "x" * 5000),
)
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=20).filter(lambda text: text.isprintable()))
signs = st.binary(max_size=40)


@dataclass(frozen=True)
class Sent:
    """A request; a token or step of None is filled in with the right one."""

    method: str
    path: str
    query: bytes
    cookies: tuple[str, ...]
    headers: tuple[tuple[bytes, bytes], ...]
    kind: str | None
    fields: tuple[tuple[str, str | None], ...] | bytes
    parts: int


queries = st.one_of(
    signs, st.lists(st.tuples(st.sampled_from(FIELDS), texts), max_size=3).map(lambda given: encoded(given))
)
forms = st.one_of(
    signs,
    st.lists(st.tuples(st.one_of(st.sampled_from(FIELDS), texts), texts), max_size=12).map(tuple),
    st.lists(st.tuples(st.sampled_from(FIELDS), texts), max_size=12).map(
        lambda given: (*given, ("token", None), ("step", None))
    ),
)
requests = st.builds(
    Sent,
    method=st.sampled_from(("POST", "POST", "GET", *METHODS)),
    path=st.one_of(
        st.sampled_from(("/page", "/begin", *ROUTES)),
        st.builds(lambda route, more: route + more, st.sampled_from(ROUTES), texts),
    ),
    query=queries,
    cookies=st.one_of(
        st.just(("participant", "researcher")),
        st.lists(st.sampled_from(("participant", "researcher", "swapped", "cut", "noise")), max_size=3).map(tuple),
    ),
    headers=st.one_of(
        st.just(()),
        st.lists(
            st.tuples(st.sampled_from((b"host", b"cookie", b"origin", b"x-forwarded-for", b"content-length")), signs),
            max_size=2,
        ).map(tuple),
    ),
    kind=st.one_of(st.just(FORM), st.sampled_from((FORM.upper(), FORM + "; charset=x", "multipart/form-data", None))),
    fields=forms,
    parts=st.integers(1, 3),
)

genuine = st.builds(
    Sent,
    method=st.just("POST"),
    path=st.sampled_from(("/page", "/page", "/begin", "/researcher/login", "/researcher/logout", "/researcher/delete")),
    query=queries,
    cookies=st.just(("participant", "researcher")),
    headers=st.just(()),
    kind=st.just(FORM),
    fields=st.lists(st.tuples(st.sampled_from(FIELDS[2:]), texts), max_size=12).map(
        lambda given: (*given, ("token", None), ("step", None))
    ),
    parts=st.integers(1, 3),
)


def encoded(fields: Sequence[tuple[str, str]]) -> bytes:
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in fields).encode()


@dataclass
class Person:
    """Somebody at some step, made without a browser, so that thousands are made quickly."""

    number: str
    step: int
    cookies: dict[str, str]
    nonce: str
    researcher: str


class Attacked:
    """A study, and all kinds of people who hold its cookies."""

    def __init__(self, place: Place, runner: asyncio.Runner) -> None:
        self.place, self.runner = place, runner
        self.sessions = place.app.state.site.sessions
        self.own, self.researchers = (self.sessions.name(kind) for kind in ("biassay", "biassay_researcher"))

    def person(self, steps: int, fate: str) -> Person:
        from dataclasses import replace

        from starlette.requests import Request
        from starlette.responses import Response

        from biassay.survey.security import Session

        store, study = self.place.store, self.place.store.study
        found = store.add_participant()
        ratings = [20 if i % 2 else 80 for i in range(len(study.pairs))]
        whole = {"ratings": ratings, "since": 0.0, "answers": {}, "which_group": study.groups[0]}
        whole |= {"high": study.pairs[0][1], "low": study.pairs[0][0]}
        for step in range(min(steps, len(store.steps) - 1)):
            assert store.save_step(found.id, step, whole)
        if fate == "deleted":
            store.delete(found.id)
        if fate == "absent":
            self.place.clock.now += 3700.0
        session = Session()
        response = Response()
        self.sessions.write(response, session if fate == "new" else replace(session, participant=found.id))
        self.sessions.write_researcher(response)
        set_cookies = [value.decode() for name, value in response.raw_headers if name == b"set-cookie"]
        values = [cookie.partition(";")[0].partition("=")[2] for cookie in set_cookies]
        cookie = f"{self.researchers}={values[1]}".encode()
        researcher = self.sessions.read_researcher(Request({"type": "http", "headers": [(b"cookie", cookie)]}))
        cookies = {"participant": values[0], "researcher": values[1]}
        return Person(found.id, steps, cookies, session.nonce, researcher)

    def ask(self, person: Person, sent: Sent) -> tuple[int, dict[bytes, bytes], bytes]:
        return self.runner.run(self._ask(person, sent))

    async def _ask(self, person: Person, sent: Sent) -> tuple[int, dict[bytes, bytes], bytes]:
        desk = sent.path.startswith(("/researcher/delete", "/researcher/logout"))
        token = self.sessions.token(person.researcher if desk else person.nonce)
        right = {"token": token, "step": str(person.step)}
        fields = sent.fields
        body = fields if isinstance(fields, bytes) else encoded([(n, right[n] if v is None else v) for n, v in fields])
        size = -(-len(body) // sent.parts) or 1
        parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
        messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": part, "more_body": i < len(parts) - 1} for i, part in enumerate(parts)
        ]
        held = person.cookies
        cookies = {
            "participant": f"{self.own}={held['participant']}",
            "researcher": f"{self.researchers}={held['researcher']}",
            "swapped": f"{self.researchers}={held['participant']}; {self.own}={held['researcher']}",
            "cut": f"{self.own}={held['participant'][:-3]}",
            "noise": f'{self.own}="\\377\\000"; =; ;;{self.researchers}=.eJw.x',
        }
        headers = [(b"cookie", "; ".join(cookies[name] for name in sent.cookies).encode()), *sent.headers]
        headers += [(b"content-type", sent.kind.encode())] if sent.kind is not None else []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": sent.method,
            "scheme": "http",
            "path": sent.path,
            "raw_path": sent.path.encode(),
            "root_path": "",
            "query_string": sent.query,
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
        }
        answer: list[Any] = []

        async def receive() -> dict[str, Any]:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            answer.append(message)

        await self.place.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in answer[1:])
        return answer[0]["status"], dict(answer[0]["headers"]), content


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("attacked")
    with opened(folder, token=TOKEN, annotations=1_000_000, seconds=0) as place, asyncio.Runner() as runner:
        yield Attacked(place, runner)


@MANY
@given(
    steps=st.integers(0, 9),
    fate=st.sampled_from(("there", "there", "there", "new", "absent", "deleted")),
    sent=st.lists(st.one_of(requests, genuine), min_size=1, max_size=4),
)
def test_no_request_makes_a_page_fail(attacked: Attacked, steps: int, fate: str, sent: list[Sent]) -> None:
    person = attacked.person(steps, fate)
    for request in sent:
        status, headers, content = attacked.ask(person, request)
        event(f"{request.method} {status}")
        assert status < 500
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert b"unsafe" not in headers[b"content-security-policy"]
        assert b"Traceback" not in content
        assert headers.get(b"location", b"/")[:1] == b"/"
    check_counts(attacked.place.store)


@MANY
@given(
    steps=st.integers(0, 8),
    fields=st.lists(st.tuples(st.sampled_from(FIELDS[2:]), texts), max_size=14),
    others=st.integers(-3, 12),
)
def test_a_genuine_form_moves_one_step_or_none(
    attacked: Attacked, steps: int, fields: list[tuple[str, str]], others: int
) -> None:
    """Whatever stands in it: of this person, by one step at most, and only from the step at hand."""
    place = attacked.place
    person, bystander = attacked.person(steps, "there"), attacked.person(steps, "there")
    untouched = _of(place, bystander)
    step = steps + others if others else steps
    form = (*fields, ("token", None), ("step", str(step)))
    status, _, _ = attacked.ask(person, Sent("POST", "/page", b"", ("participant",), (), FORM, form, 1))
    after = place.rows(f"SELECT step FROM participants WHERE id = '{person.number}'")[0][0]
    assert status in (303, 400)
    assert after == steps + (status == 303 and step == steps and steps < 8)
    assert _of(place, bystander) == untouched
    rated = place.rows(f"SELECT place, ratings FROM annotations WHERE participant_id = '{person.number}'")
    kinds = [step.kind for step in place.store.steps[:after]]
    assert len(rated) == kinds.count("group")
    for _, ratings in rated:
        assert all(isinstance(rating, int) and 0 <= rating <= 100 for rating in json.loads(ratings))
        assert len(json.loads(ratings)) == len(place.store.study.pairs)


@settings(MANY, max_examples=100)
@given(
    path=st.sampled_from([route for route in ROUTES if route.startswith("/researcher/")]),
    sent=requests,
    cookies=st.lists(st.sampled_from(("participant", "swapped", "cut", "noise")), max_size=3).map(tuple),
)
def test_nobody_without_a_login_gets_answers(
    attacked: Attacked, path: str, sent: Sent, cookies: tuple[str, ...]
) -> None:
    from dataclasses import replace

    person = attacked.person(9, "there")
    counted = "SELECT status, count(*) FROM participants GROUP BY status"
    before = (_of(attacked.place, person), attacked.place.rows(counted))
    status, headers, _ = attacked.ask(person, replace(sent, path=path, cookies=cookies))
    assert status in (400, 401, 403, 404, 405, 415)
    assert b"content-disposition" not in headers
    assert (_of(attacked.place, person), attacked.place.rows(counted)) == before


def _of(place: Place, person: Person) -> list[Any]:
    return [
        place.rows(f"SELECT * FROM participants WHERE id = '{person.number}'"),
        place.rows(f"SELECT * FROM annotations WHERE participant_id = '{person.number}'"),
        place.rows(f"SELECT * FROM demographics WHERE participant_id = '{person.number}'"),
    ]
