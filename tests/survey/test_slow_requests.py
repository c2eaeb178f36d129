"""Requests that never come whole, on a real connection: they are given up, and others are answered meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.survey.serving import listening
from tests.survey.walks import FORM, opened

from biassay.survey import security

pytestmark = pytest.mark.extras

HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = f"POST /begin HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM}\r\nContent-Length: 100\r\n\r\ntoken=".encode()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A study served by this process that waits for a fifth of a second only."""
    with pytest.MonkeyPatch.context() as patch, opened(tmp_path_factory.mktemp("slow")) as place:
        patch.setattr(security, "RECEIVE_SECONDS", 0.2)
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
