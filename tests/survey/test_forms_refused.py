"""What an attacker sends: forms of others, broken or endless bodies, and connections closed midway."""

from __future__ import annotations

import http.client
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from tests.survey.serving import Served, listening
from tests.survey.walks import FORM, POSTS, TOKEN, Place, log_in, named, opened, read_page

from biassay.survey import app

pytestmark = pytest.mark.extras


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
    fields["identifier"] = place.rows("SELECT code FROM participants")[0][0]
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


# Bodies


def test_a_large_body_is_refused(study: Callable[..., Place]) -> None:
    place = study()
    person = place.browser()
    page = person.begin()
    before = place.everything()
    fields = {**page.hidden, "more": "x" * 65_536}
    assert person.post("/page", fields).status == 413
    assert place.everything() == before
    assert person.post("/page", {**page.hidden, "more": "x" * 60_000}).kind == "group"


def test_a_large_body_of_unknown_length_is_refused_while_it_comes(served: Served) -> None:
    with served.client() as client:
        answer = client.post("/page", content=(b"x" * 8192 for _ in range(100)), headers={"content-type": FORM})
        assert answer.status_code == 413
        assert client.get("/health").status_code == 200


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


def test_a_closed_connection_leaves_nothing_behind(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    host, port = served.address.removeprefix("http://").split(":")
    before = served.rows("SELECT count(*) FROM participants")
    for _ in range(5):
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        connection.putrequest("POST", "/begin")
        connection.putheader("Content-Type", FORM)
        connection.putheader("Content-Length", "60000")
        connection.endheaders(b"token=")
        connection.close()
    with served.client() as client:
        assert client.get("/health").status_code == 200
    assert served.rows("SELECT count(*) FROM participants") == before
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


POST = f"POST /begin HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM}\r\nContent-Length: 100\r\n\r\ntoken=".encode()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A study served by this process that waits for a fifth of a second only."""
    with pytest.MonkeyPatch.context() as patch, opened(tmp_path_factory.mktemp("slow")) as place:
        patch.setattr(app, "RECEIVE_SECONDS", 0.2)
        with listening(place.app) as found:
            yield found


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def until_closed(connection: socket.socket) -> bytes:
    """All that comes before the server closes the connection; an error if it does not."""
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


def test_a_body_that_does_not_end_is_given_up(port: int) -> None:
    with connected(port) as slow:
        slow.sendall(POST)
        answer = until_closed(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"x-content-type-options: nosniff" in answer.lower()


def test_a_body_that_is_too_large_and_does_not_end_is_given_up(port: int) -> None:
    """It is refused at once; what comes afterwards is not waited for."""
    with connected(port) as slow:
        slow.sendall(POST.replace(b": 100", b": 900000") + b"x" * 70_000)
        assert slow.recv(65536).startswith(b"HTTP/1.1 413")
        with suppress(ConnectionError):  # closed, or reset because of what was not read
            slow.sendall(b"x")
            until_closed(slow)


def test_a_body_that_nobody_reads_delays_no_answer(port: int) -> None:
    with connected(port) as slow:
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + b"x" * 70_000)
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")
