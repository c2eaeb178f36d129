"""What an attacker tries: cookies, forms, addresses, bodies, races, the researcher's side, and traces left behind."""

from __future__ import annotations

import http.client
import itertools
import json
import logging
import re
import socket
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")

from tests.survey.walks import (
    FORM,
    GROUPS,
    TOKEN,
    Place,
    Served,
    Walker,
    cookie_of,
    log_in,
    opened,
    read_page,
    serving,
    write_study,
)

pytestmark = pytest.mark.extras

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
XSS = '"><script>alert(1)</script>'


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
    with serving(write_study(folder, seconds=0), folder, "--begin-limit", "0", "--page-limit", "0") as found:
        yield found


def client_of(served: Served) -> Any:
    httpx = pytest.importorskip("httpx")
    return httpx.Client(base_url=served.address, timeout=60.0, trust_env=False)


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


# Cookies


@pytest.mark.parametrize("secure", [False, True])
def test_cookies_are_hidden_from_scripts_and_other_sites(study: Callable[..., Place], secure: bool) -> None:
    person = study(secure=secure).browser()
    first = person.client.get("/").headers["set-cookie"]
    researcher = person.get("/researcher")
    fields = {**researcher.hidden, "password": TOKEN}
    second = person.client.post("/researcher/login", data=fields, follow_redirects=False).headers["set-cookie"]
    for cookie, same_site in ((first, "lax"), (second, "strict")):
        flags = [flag.strip().lower() for flag in cookie.split(";")[1:]]
        assert {"httponly", f"samesite={same_site}", "path=/"} <= set(flags)
        assert ("secure" in flags) is secure
        assert not [flag for flag in flags if flag.startswith("domain")]


def test_a_changed_cookie_is_none(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    page = person.begin()
    cookie = person.client.cookies[named(person)]
    before = place.everything()
    content, stamp, signature = cookie.rsplit(".", 2)
    forged = [cookie[:i] + ("A" if cookie[i] != "A" else "B") + cookie[i + 1 :] for i in range(0, len(cookie) - 1, 7)]
    forged += [content, f"{content}.{stamp}", f"{content}.{stamp}.", f".{stamp}.{signature}", f"{cookie}x", "", "."]
    forged += [f"{content}..{signature}", cookie[::-1], "." + cookie, cookie.lower(), "x" * 3000]
    for given in forged:
        use(person, given)
        assert person.get("/page").kind == "consent"
        use(person, given)
        assert person.post("/page", page.hidden).status == 403
    assert place.everything() == before
    use(person, cookie)
    assert person.post("/page", page.hidden).kind == "group"


def test_a_cookie_that_somebody_else_signed_is_none(study: Callable[..., Place]) -> None:
    from itsdangerous import URLSafeSerializer, URLSafeTimedSerializer

    place, other = study(), study(name="other")
    person, foreign = place.browser(), other.browser()
    person.begin()
    foreign.begin()
    mine = place.rows("SELECT id FROM participants")[0][0]
    content = {"n": "a", "p": mine, "i": None}
    forged = [foreign.client.cookies[named(foreign)]]
    forged += [
        maker(secret, salt=salt).dumps(content)
        for maker in (URLSafeSerializer, URLSafeTimedSerializer)
        for secret in ("", "secret", other.store.secret, place.store.study.digest)
        for salt in ("biassay.survey.biassay", "itsdangerous")
    ]
    forged.append(URLSafeTimedSerializer(place.store.secret, salt="biassay.survey.biassay_researcher").dumps(content))
    for given in forged:
        use(person, given)
        assert person.get("/page").kind == "consent"


def test_an_old_cookie_is_none(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    place = study()
    person = place.browser()
    person.begin()
    log_in(person.client)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 13 * 3600)
    assert person.get("/page").kind == "instructions"
    assert person.get("/researcher").kind == "login"
    monkeypatch.setattr(time, "time", lambda: now + 8 * 24 * 3600)
    assert person.get("/page").kind == "consent"


def test_no_page_names_the_number_that_the_cookie_hides(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin("abc123")
    mine = place.rows("SELECT id FROM participants")[0][0]
    assert len(mine) >= 22  # 128 bits
    while person.page.kind != "done":
        assert mine not in person.page.html
        assert "abc123" not in person.page.html
        person.answer()


# Forms of others


@pytest.mark.parametrize("path", POSTS)
def test_a_form_without_this_browsers_token_is_refused(study: Callable[..., Place], path: str) -> None:
    place = study()
    person, other = place.browser(), place.browser()
    person.begin()
    person.go("group")
    other.begin()
    log_in(person.client)
    theirs = log_in(other.client).token
    participants = other.get("/page").token
    fields = {**person.get("/page").hidden, **person.answers(), "agree": "yes", "password": TOKEN}
    fields["known_as"] = place.rows("SELECT code FROM participants")[0][0]
    own = fields.pop("token")
    before = place.everything()
    wrong = [None, "", "x", own[:-1], own.upper(), own + " ", theirs, participants, "é" * 64, "0" * 64, "\0", own * 99]
    for token in wrong:
        sent = fields if token is None else {**fields, "token": token}
        answer = person.client.post(path, data=sent, follow_redirects=False)
        assert answer.status_code == 403, token
        in_the_address = person.client.post(path, params={"token": own}, data=sent, follow_redirects=False)
        assert in_the_address.status_code == 403
    assert place.everything() == before
    assert named(person, "biassay_researcher") in person.client.cookies


def test_a_participants_token_does_nothing_for_a_researcher(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    token = person.begin().token
    log_in(person.client)
    before = place.everything()
    for path in ("/researcher/delete", "/researcher/logout"):
        code = place.rows("SELECT code FROM participants")[0][0]
        assert person.post(path, {"token": token, "known_as": code}).status == 403
    assert place.everything() == before


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/json", "", None])
def test_only_forms_are_read(study: Callable[..., Place], kind: str | None) -> None:
    place = study()
    person = place.browser()
    page = person.begin()
    log_in(person.client)
    before = place.everything()
    headers = {} if kind is None else {"content-type": kind}
    body = f"token={page.token}&step=0&agree=yes&password={TOKEN}".encode()
    for path in POSTS:
        answer = person.client.post(path, content=body, headers=headers, follow_redirects=False)
        assert answer.status_code == 415
    assert place.everything() == before


# Headers


def _strict(answer: Any, path: str) -> None:
    headers = answer.headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    for name in ("frame-ancestors", "base-uri"):
        assert policy[name] == "'none'"
    for name in ("script-src", "style-src", "form-action"):
        assert policy[name] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    if not path.startswith("/static/"):
        assert headers["cache-control"] == "no-store"


def test_headers_are_on_every_answer(study: Callable[..., Place]) -> None:
    from biassay.survey.app import Limits

    place = study(limits=Limits(begin=1, page=0, login=0))
    person = place.browser()
    client = person.client
    seen = set()

    def look(method: str, path: str, **given: Any) -> None:
        answer = client.request(method, path, follow_redirects=False, **given)
        _strict(answer, path)
        seen.add(answer.status_code)

    for path, method in itertools.product([*METHODS, "/nothing", "/static/nothing"], ("GET", "POST", "PUT", "OPTIONS")):
        look(method, path)
    look("POST", "/page", content=b"x" * 70_000)
    look("POST", "/researcher/login", data={**person.get("/researcher").hidden, "password": "wrong"})
    look("POST", "/page", data={"token": "wrong"})
    look("POST", "/begin", data={"agree": "yes"})
    person.get("/")
    look("POST", "/begin", data=person.page.hidden)
    log_in(client)
    for path in ("/researcher", *(f"/researcher/export/{name}" for name in FILES)):
        look("GET", path)
    assert {200, 303, 401, 403, 404, 405, 413, 415, 429} <= seen


@pytest.fixture
def failing(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> Walker:
    """A person whose consent cannot be written: the code exists already."""
    from biassay.survey import store

    place = study()
    monkeypatch.setattr(store.secrets, "choice", lambda _: "A")
    place.browser().begin("first-number")
    person = place.browser()
    person.get("/?PROLIFIC_PID=hidden-number")
    return person


def test_headers_are_on_a_page_that_failed(failing: Walker) -> None:
    answer = failing.client.post("/begin", data={**failing.page.hidden, "agree": "yes"})
    assert answer.status_code == 500
    assert "Traceback" not in answer.text
    assert "INSERT" not in answer.text
    _strict(answer, "/begin")


def test_what_failed_is_written_down_without_what_was_sent(failing: Walker, caplog: pytest.LogCaptureFixture) -> None:
    from starlette.testclient import TestClient

    # The server writes down all that is raised; this client shows it.
    client = TestClient(failing.client.app, cookies=dict(failing.client.cookies), raise_server_exceptions=True)
    said = ""
    with caplog.at_level(logging.DEBUG):
        try:
            client.post("/begin", data={**failing.page.hidden, "agree": "yes"})
        except Exception as error:
            said = f"{error}"
    assert "a page failed: IntegrityError" in caplog.text
    assert "hidden-number" not in caplog.text + said


def test_what_failed_is_written_down_as_where_and_not_what(failing: Walker, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL repeats in its message what a row held."""
    site = failing.client.app.state.site

    def begin(pool_id: str, *_: object) -> None:
        raise RuntimeError(f"DETAIL: Key (pool_id)=({pool_id}) already exists.")

    site.store.begin = begin
    with caplog.at_level(logging.DEBUG):
        failing.send(agree="yes")
    assert "RuntimeError" in caplog.text
    assert "hidden-number" not in caplog.text


# Addresses


def test_other_methods_are_refused_and_the_right_ones_named(study: Callable[..., Place]) -> None:
    client = study().browser().client
    wrong = []
    for path, allowed in METHODS.items():
        for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} - allowed:
            answer = client.request(method, path, follow_redirects=False)
            assert answer.status_code == 405, (method, path)
            wrong += [(method, path)] if set(answer.headers["allow"].split(", ")) != allowed else []
    assert wrong == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:99999", "x@evil.example", "[", ""])
def test_no_answer_leads_elsewhere(study: Callable[..., Place], host: str) -> None:
    person = study().browser()
    paths = [*METHODS, *(f"{path}/" for path in METHODS), "/?next=//evil.example", "/?PROLIFIC_PID=//evil.example"]
    paths += ["/static", "/%2f%2fevil.example", "/%5cevil.example/", "/page?u=https://evil.example", "/.//evil.example"]
    for path, method in itertools.product(paths, ("GET", "POST")):
        answer = person.client.request(method, path, headers={"host": host}, follow_redirects=False)
        assert answer.status_code < 500
        assert re.fullmatch(r"|/|/[^/\\].*", answer.headers.get("location", "")), (method, path)
        assert "evil" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/..%5capp.py"),
        *(
            "/static//etc/passwd",
            "/static/%2fetc/passwd",
            "/static/....//app.py",
            "/static/%00",
            "/static/survey.css%00",
        ),
        *("/static/%ff", "/static/" + "a" * 5000, "/../study.toml", "/%2e%2e/answers.sqlite", "/static/."),
        *("/static/%252e%252e/app.py", "/researcher/export/..%2fstudy.toml", "/researcher/export/../../page"),
        *(
            "//evil.example/",
            "//evil.example/page/",
            "/\\evil.example/",
            "http://evil.example/page/",
            "/page/%0d%0aX:y",
        ),
        *("/%", "/%zz", "/%e0%80", "/?%", "/?PROLIFIC_PID=%ed%a0%80", "/?" + "a&" * 20_000, "*"),
    ],
)
def test_a_strange_address_gets_nothing(served: Served, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1")
    status, answer = raw(served, request)
    assert status in (200, 303, 400, 404)
    assert status != 200 or b'name="agree"' in answer
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert not re.search(rb"location: (?!/(page)?\r?$)", head, re.MULTILINE)
    assert b"import annotations" not in answer
    assert b"root:" not in answer


@pytest.mark.parametrize("address", ["javascript:alert(1)", "//evil.example", "data:text/html,x", "/page", "ftp://x"])
def test_a_study_leads_back_to_web_pages_only(study: Callable[..., Place], address: str) -> None:
    from biassay.errors import StimulusError

    with pytest.raises(StimulusError, match="completion_url"):
        study(pool=f'completion_url = "{address}"')


# Bodies


def test_a_large_body_is_refused(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    page = person.begin()
    before = place.everything()
    fields = {**page.hidden, "more": "x" * 65_536}
    assert person.post("/page", fields).status == 413
    assert person.client.request("GET", "/page", content=b"x" * 65_537).status_code == 413
    assert place.everything() == before
    assert person.post("/page", {**page.hidden, "more": "x" * 60_000}).kind == "group"


def test_a_large_body_of_unknown_length_is_refused_while_it_comes(served: Served) -> None:
    with client_of(served) as client:
        answer = client.post("/page", content=(b"x" * 8192 for _ in range(100)), headers={"content-type": FORM})
        assert answer.status_code == 413
        assert client.get("/health").status_code == 200


BROKEN = [
    *(b"", b"&", b"=", b"&&==&&", b"%", b"%zz=%zz", b"token=%", b"\xff\xfe\x00", b"token=\x00", b"step=%00"),
    *(b"a" * 65_536, b"a=b&" * 16_000, b"a=b&" * 201, b"token[]=x", b"token=%ed%a0%80", b"step=" + b"9" * 60_000),
    *(b"\r\n\r\n", b"token=x;step=0", b"--x\r\n\r\n--x--"),
]


@pytest.mark.parametrize("path", POSTS)
def test_a_broken_form_is_refused(study: Callable[..., Place], path: str) -> None:
    place = study()
    person = place.browser()
    person.begin()
    log_in(person.client)
    before = place.everything()
    for body in BROKEN:
        answer = person.client.post(path, content=body, headers={"content-type": FORM}, follow_redirects=False)
        assert answer.status_code in (400, 403), body[:20]
    assert place.everything() == before


def test_a_genuine_form_with_broken_answers_is_asked_again(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.begin()
    while person.page.kind != "done":
        at = person.page
        if at.kind not in ("instructions", "demographics"):
            for value in (
                "%00",
                "%ff%fe",
                "%ed%a0%80",
                "9" * 5000,
                "%F0%9F%92%A9",
                "-0",
                "1e999",
                "%0d%0aSet-Cookie:a=b",
            ):
                names = [*(f"pair-{i}" for i in range(4)), "group", "high", "low"]
                body = f"token={at.token}&step={at.step}&" + "&".join(f"{name}={value}" for name in names)
                answer = person.client.post("/page", content=body.encode(), headers={"content-type": FORM})
                assert answer.status_code == 400
                assert read_page(answer).kind == at.kind
        person.answer()
    assert place.rows("SELECT status FROM participants") == [("valid",)]


def test_numbers_of_a_pool_are_kept_without_signs_that_cannot_be_printed(study: Callable[..., Place]) -> None:
    """PostgreSQL does not take NUL, and a researcher could not type the others to delete somebody."""
    place = study()
    for number in ("a%00b", "c%ed%a0%80d", "e%0af", "g%1b[31mh", "i%e2%80%aej"):
        assert place.browser().begin(number).kind == "instructions"
    for (pool_id,) in place.rows("SELECT pool_id FROM participants"):
        assert pool_id is None or pool_id.isprintable()
    person = place.browser()
    log_in(person.client)
    assert (
        "Nobody" in person.post("/researcher/delete", {"token": person.get("/researcher").token, "known_as": "\0"}).text
    )


# Others' answers


def test_naming_somebody_else_changes_nobody_else(study: Callable[..., Place]) -> None:
    place = study()
    victim, attacker = place.browser(), place.browser()
    victim.begin("victim")
    victim.go("group")
    number, code = place.rows("SELECT id, code FROM participants")[0]
    before = place.everything()
    attacker.get("/")
    names = dict.fromkeys(
        ("participant", "p", "id", "participant_id", "biassay", "code", "pool_id", "nonce", "n"), number
    )
    for path in ("/page", "/begin"):
        answer = attacker.client.post(path, params=names, data={**victim.page.hidden, **names, "pair-0": "1"})
        assert answer.status_code == 403
    sent = {**attacker.page.hidden, **names, "step": victim.page.step, **victim.answers()}
    assert attacker.post("/page", sent).kind == "consent"
    own, researchers = named(attacker), named(attacker, "biassay_researcher")
    for header in (f"{own}={number}", f"{own}={code}", f"{researchers}={number}", f"participant={number}"):
        attacker.client.cookies.clear()
        assert attacker.client.get("/page", params=names, headers={"cookie": header}).text.count('name="agree"') == 1
    assert place.everything() == before


def test_two_people_go_their_ways_side_by_side(study: Callable[..., Place]) -> None:
    place = study()
    one, two = place.browser(), place.browser()
    one.rate = lambda _, pair: 90 if pair % 2 else 10
    two.rate = lambda _, pair: 20 if pair % 2 else 80
    one.begin("one")
    two.begin("two")
    while one.page.kind != "done":
        one.answer()
        two.answer()
    for number, ratings in (("one", [10, 90, 10, 90]), ("two", [80, 20, 80, 20])):
        rows = place.rows(
            "SELECT a.ratings FROM annotations a JOIN participants p ON p.id = a.participant_id "
            f"WHERE p.pool_id = '{number}'"
        )
        assert [json.loads(row[0]) for row in rows] == [ratings] * 4
    assert one.page.code != two.page.code


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(len(jobs)) as threads:
        return [done.result() for done in [threads.submit(job) for job in jobs]]


def _rows(served: Served, sql: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(served.database, timeout=30)) as connection:
        return connection.execute(sql, values).fetchall()


def test_a_page_sent_by_many_windows_at_once_is_written_once(served: Served) -> None:
    with client_of(served) as client:
        person = Walker(client)
        person.begin("many-windows")
        cookie = cookie_of(client)
        while person.page.kind != "done":
            at = person.page
            given = person.answers() if at.kind != "group" else {}
            if at.kind == "group":
                person.groups.append(at.title)

            def sent(rating: int, at: Any = at, given: Any = given) -> int:
                ratings = {f"pair-{i}": str(rating) for i in range(4)} if at.kind == "group" else {}
                with client_of(served) as window:
                    window.cookies.set(*cookie)
                    return int(window.post("/page", data={**at.hidden, **given, **ratings}).status_code)

            assert set(at_once([lambda rating=rating: sent(rating) for rating in range(60, 72)])) == {303}
            after = person.get("/page")
            assert after.kind == "done" or after.step == at.step + 1
    rows = _rows(
        served,
        "SELECT place, ratings FROM annotations WHERE participant_id = (SELECT id FROM participants WHERE pool_id = ?)",
        "many-windows",
    )
    assert [row[0] for row in rows] == [0, 1, 2, 3]
    assert all(len(set(json.loads(row[1]))) == 1 for row in rows)  # of one window, and not of two


def test_a_number_that_begins_in_many_browsers_at_once_begins_once(served: Served) -> None:
    def begun() -> int:
        with client_of(served) as client:
            return Walker(client).begin("at-once").status

    assert sorted(at_once([begun] * 10)) == [200] + [409] * 9
    assert _rows(served, "SELECT count(*) FROM participants WHERE pool_id = 'at-once'") == [(1,)]


def test_a_button_pressed_many_times_at_once_begins_once(served: Served) -> None:
    before = _rows(served, "SELECT count(*) FROM participants")[0][0]
    with client_of(served) as client:
        page = Walker(client).get("/")
        cookie = cookie_of(client)

    def pressed() -> str:
        with client_of(served) as window:
            window.cookies.set(*cookie)
            return Walker(window).post("/begin", {**page.hidden, "agree": "yes"}).kind

    assert set(at_once([pressed] * 8)) == {"instructions"}
    assert _rows(served, "SELECT count(*) FROM participants")[0][0] == before + 1


# Traces


def test_a_server_writes_down_no_address_no_number_and_no_secret(tmp_path: Path) -> None:
    with serving(write_study(tmp_path, seconds=0), tmp_path) as served, client_of(served) as client:
        client.headers.update({"user-agent": "Own-Browser/9", "x-forwarded-for": "198.51.100.7"})
        person = Walker(client, about={"field-2": "Ohio"})
        code = person.walk("number-of-the-pool")
        for path in ("/?PROLIFIC_PID=number-of-the-pool", "/nothing/number-of-the-pool", "/page/number-of-the-pool"):
            client.get(path)
        raw(served, b"GET /?PROLIFIC_PID=number-of-the-pool HTTP/9\r\n\r\n")
        client.post("/page", data={"token": "number-of-the-pool"})
        log_in(client, "not-the-token-at-all")
        page = log_in(client)
        assert page.kind == "researcher"
        cookies = list(client.cookies.values())
        secret = _rows(served, "SELECT secret FROM studies")[0][0]
        # WAL and all, while it runs.
        files = b"".join(path.read_bytes() for path in tmp_path.glob("answers.sqlite*"))
    said = served.said.read_text()
    assert b"Ohio" in files
    for trace in (b"127.0.0.1", b"198.51.100.7", b"Own-Browser", b"testclient", TOKEN.encode()):
        assert trace not in files
    greeting, rest = said.splitlines()[:3], said.splitlines()[3:]
    assert [line.partition(" ")[0] for line in greeting] == ["study", "participants:", "researchers:"]
    for trace in ("127.0.0.1", "198.51.100.7", "number-of-the-pool", "Own-Browser", "PROLIFIC", "GET ", "POST "):
        assert trace not in "\n".join(rest)
    for trace in (TOKEN, "not-the-token-at-all", code, page.token, secret, *cookies):
        assert trace not in said


def test_a_password_in_a_wrong_address_of_a_database_is_not_repeated() -> None:
    from biassay.errors import UsageError
    from biassay.survey.database import open_database

    for url in ("postgresql//me:pass-word@host/db", "mysql://me:pass-word@host/db"):
        with pytest.raises(UsageError) as raised:
            open_database(url)
        assert "pass-word" not in str(raised.value)


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_other_users_of_the_machine_cannot_read_the_database(study: Callable[..., Place]) -> None:
    """It holds the key that signs cookies, and numbers of the pool beside answers."""
    place = study()
    place.browser().begin()
    file = Path(place.store.engine.url.database)
    for path in file.parent.glob(f"{file.name}*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path.name


# The researcher's side


@pytest.mark.parametrize("path", [path for path in METHODS if path.startswith("/researcher")])
def test_without_a_token_there_is_no_researchers_side(study: Callable[..., Place], path: str) -> None:
    from biassay.survey.sessions import Sessions

    place = study(token=None)
    client = place.browser().client
    assert client.request("GET" if "GET" in METHODS[path] else "POST", path, data={"password": ""}).status_code == 404
    response = _Cookies()
    Sessions(place.store.secret, secure=False).write_researcher(response)  # type: ignore[arg-type]
    client.cookies.set(response.name, response.value)
    assert client.request("GET" if "GET" in METHODS[path] else "POST", path, data={"token": ""}).status_code == 404


class _Cookies:
    name, value = "", ""

    def set_cookie(self, name: str, value: str, **_: object) -> None:
        self.name, self.value = name, value


def test_a_wrong_token_opens_nothing(study: Callable[..., Place]) -> None:
    person = study().browser()
    for given in ("", " ", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN + " ", TOKEN.upper(), "\0", "é", "x" * 60_000):
        page = log_in(person.client, given)
        assert (page.status, page.kind) == (401, "login")
        assert TOKEN not in page.html
        assert cookie_of(person.client, "biassay_researcher") is None
        assert person.get("/researcher").kind == "login"


def test_the_token_is_compared_in_constant_time(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    from biassay.survey import app

    compared = []
    real = app.hmac.compare_digest
    monkeypatch.setattr(app.hmac, "compare_digest", lambda a, b: compared.append({a, b}) or real(a, b))
    person = study().browser()
    log_in(person.client, "a-wrong-token")
    assert {b"a-wrong-token", TOKEN.encode()} in compared


def test_trying_tokens_is_stopped_and_goes_on_a_minute_later(
    study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.testclient import TestClient

    from biassay.survey.app import Limits

    place = study(limits=Limits(begin=0, page=0, login=5))
    person = place.browser()
    assert [log_in(person.client, "wrong").status for _ in range(5)] == [401] * 5
    assert log_in(person.client).status == 429
    assert log_in(place.browser().client).status == 429
    assert person.begin().kind == "instructions"
    with TestClient(place.app, client=("192.0.2.1", 1)) as elsewhere:
        assert log_in(elsewhere).kind == "researcher"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61.0)
    assert log_in(person.client).kind == "researcher"


def test_beginning_and_sending_are_limited(study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    from biassay.survey.app import Limits

    place = study(limits=Limits(begin=2, page=3, login=0))
    first, second, third = (place.browser() for _ in range(3))
    assert first.begin().kind == second.begin().kind == "instructions"
    assert third.begin().status == 429
    assert len(place.rows("SELECT * FROM participants")) == 2
    first.go("group")
    page = first.page
    assert [first.post("/page", page.hidden).status for _ in range(3)] == [400, 400, 429]
    assert second.answer().kind == "group"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61.0)
    assert third.begin().kind == "instructions"
    first.page = page
    assert first.answer().kind == "which_group"


@pytest.mark.parametrize("options", [(), ("--behind-proxy",)])
def test_made_up_addresses_do_not_get_around_the_limit(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A proxy adds the address it sees behind those that a client made up."""
    with serving(write_study(tmp_path), tmp_path, *options) as served, client_of(served) as client:
        found = [
            client.post("/researcher/login", headers={"x-forwarded-for": f"192.0.2.{i}, 203.0.113.9"}).status_code
            for i in range(8)
        ]
    assert found[5:] == [429] * 3


def test_behind_a_proxy_people_are_told_apart(tmp_path: Path) -> None:
    with serving(write_study(tmp_path), tmp_path, "--behind-proxy") as served, client_of(served) as client:
        for i in range(8):
            answer = client.post("/researcher/login", headers={"x-forwarded-for": f"203.0.113.{i}"})
            assert answer.status_code == 415


@pytest.mark.parametrize("name", FILES)
def test_answers_are_for_those_who_logged_in(study: Callable[..., Place], name: str) -> None:
    place = study()
    person = place.browser()
    person.walk("abc123")
    path = f"/researcher/export/{name}"
    assert person.client.get(path).status_code == 404
    participant = person.client.cookies[named(person)]
    for given in (participant, TOKEN, "", "x.y.z"):
        person.client.cookies.set(named(person, "biassay_researcher"), given)
        assert person.client.get(path).status_code == 404
        assert person.get("/researcher").kind == "login"
    use(person, participant)
    for headers in ({"authorization": f"Bearer {TOKEN}"}, {"x-token": TOKEN}):
        assert person.client.get(path, params={"token": TOKEN}, headers=headers).status_code == 404
    log_in(person.client)
    answer = person.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    for secret in ("abc123", place.store.secret, TOKEN, *place.rows("SELECT id, code FROM participants")[0]):
        assert secret.encode() not in answer.content


def test_there_are_no_other_files(study: Callable[..., Place]) -> None:
    person = study().browser()
    log_in(person.client)
    for name in ("secret", "ratings.xml", "..%2fstudy.toml", "%00", "answers.sqlite", "ratings.json%0a"):
        assert person.client.get(f"/researcher/export/{name}").status_code == 404


def test_a_file_whose_library_is_absent_is_no_failure(
    study: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    person = study().browser()
    log_in(person.client)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 400 <= person.client.get("/researcher/export/ratings.parquet").status_code < 500


def test_logging_out_ends_it_for_a_copied_cookie_too(study: Callable[..., Place]) -> None:
    place = study()
    person, other = place.browser(), place.browser()
    page = log_in(person.client)
    log_in(other.client)
    cookie = person.client.cookies[named(person, "biassay_researcher")]
    assert person.post("/researcher/logout", {"token": page.token}).kind == "login"
    assert cookie_of(person.client, "biassay_researcher") is None
    assert other.get("/researcher").kind == "researcher"
    use(person, cookie, "biassay_researcher")
    assert person.get("/researcher").kind == "login"
    assert person.client.get("/researcher/export/ratings.json").status_code == 404


def test_a_new_token_ends_what_the_old_one_opened(study: Callable[..., Place]) -> None:
    from starlette.testclient import TestClient

    from biassay.survey.app import make_app

    place = study()
    person = place.browser()
    log_in(person.client)
    restarted = make_app(place.store, token="another-token-for-tests")
    try:
        with TestClient(restarted, cookies=dict(person.client.cookies)) as client:
            assert client.get("/researcher/export/ratings.json").status_code == 404
            assert log_in(client, "another-token-for-tests").kind == "researcher"
    finally:
        restarted.state.site.workers.shutdown()


@pytest.mark.parametrize("by", ["code", "pool_id"])
@pytest.mark.parametrize("when", ["active", "valid", "rejected", "abandoned"])
def test_one_persons_answers_are_deleted(study: Callable[..., Place], by: str, when: str) -> None:
    place = study()
    other, person = place.browser(), place.browser()
    other.walk("stays")
    person.about = {"field-2": "Words of their own"}
    if when == "rejected":
        person.rate = lambda *_: 50
    person.begin("goes-away")
    person.go("done" if when in ("valid", "rejected") else "demographics")
    place.clock.now += 3700.0 if when == "abandoned" else 0.0
    person.get("/page")
    known_as, status = place.rows(f"SELECT {by}, status FROM participants WHERE pool_id = 'goes-away'")[0]
    assert status == when
    log_in(other.client)
    token = other.get("/researcher").token
    assert "The answers were deleted." in other.post("/researcher/delete", {"token": token, "known_as": known_as}).text
    assert "Nobody is known" in other.post("/researcher/delete", {"token": token, "known_as": known_as}).text
    assert place.kept() == place.recount()
    assert sorted(place.rows("SELECT status FROM participants")) == [("deleted",), ("valid",)]
    assert len(place.rows("SELECT * FROM annotations")) == 4


def test_deleted_words_are_in_no_file_any_more(study: Callable[..., Place]) -> None:
    """A log of writes that is kept beside the database holds them too."""
    place = study()
    person = place.browser()
    person.about = {"field-2": "Words of their own"}
    place.browser().walk("stays")
    person.walk("goes-away")
    assert place.store.delete("goes-away")
    file = Path(place.store.engine.url.database)
    left = b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
    assert b"stays" in left
    for trace in (b"goes-away", b"Words of their own"):
        assert trace not in left


def test_nobody_is_deleted_by_a_guess(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    person.walk()
    before = place.everything()
    log_in(person.client)
    token = person.get("/researcher").token
    for known_as in ("", " ", "%", "_", "' OR 1=1 --", "*", "NULL", "None", "x" * 60_000, "\0", "é"):
        assert "Nobody is known" in person.post("/researcher/delete", {"token": token, "known_as": known_as}).text
    assert place.everything() == before


def test_what_people_write_runs_nowhere(study: Callable[..., Place]) -> None:
    place = study(link=True, groups=[XSS, "=1+1", "@x", *GROUPS[:3]], name=XSS)
    for i in range(6):
        person = place.browser()
        person.about = {
            "field-2": (XSS, "=cmd|' /C calc'!A0", "\x1b]0;x\x07", "\u202e", "{{7*7}}", "'; DROP TABLE x--")[i]
        }
        person.walk(XSS.replace('"', "%22") + str(i))
    page = log_in(person.client)
    assert [given for tag, given in page.elements if tag == "script"] == [{"src": "/static/survey.js", "defer": ""}]
    assert page.title == XSS
    refused = person.client.get("/researcher", params={"deleted": XSS})
    assert XSS not in refused.text
    for name in FILES:
        answer = person.client.get(f"/researcher/export/{name}")
        assert answer.headers["content-type"].partition(";")[0] != "text/html"
        assert answer.headers["x-content-type-options"] == "nosniff"
        if name.endswith(".csv"):
            assert not re.search(r"(^|,)\"?[=@+]", answer.text, re.MULTILINE)
    facts = person.client.get("/researcher/export/demographics.json").json()
    assert XSS in {own["State"] for own in facts.values()}


def test_a_closed_connection_leaves_nothing_behind(served: Served) -> None:
    host, port = served.address.removeprefix("http://").split(":")
    before = _rows(served, "SELECT count(*) FROM participants")
    for _ in range(5):
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        connection.putrequest("POST", "/begin")
        connection.putheader("Content-Type", FORM)
        connection.putheader("Content-Length", "60000")
        connection.endheaders(b"token=")
        connection.close()
    with client_of(served) as client:
        assert client.get("/health").status_code == 200
    assert _rows(served, "SELECT count(*) FROM participants") == before
    assert "Traceback" not in served.said.read_text()
