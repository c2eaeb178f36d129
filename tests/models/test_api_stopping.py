"""``api:`` after a failure, an interruption or its own end: nothing goes on behind it."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable

import pytest

from biassay.errors import MeasurementError
from biassay.models.openai.embeddings import open_text_encoder
from biassay.models.registry import parse_model

from . import api_server
from .api_server import TEXTS, Asked, Endpoint, Reply, good, opened

pytestmark = pytest.mark.extras

endpoint, no_key = api_server.endpoint, api_server.no_key


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("biassay-api")]


def soon(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 3
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def test_a_limit_that_passes_late_ends_its_own_request_only(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timer of an answered request goes off while the next one is under way, on the same connection."""
    timers: list[Callable[[], object]] = []

    class Held:
        def __init__(self, _: float, call: Callable[..., object], args: tuple[object, ...] = ()) -> None:
            timers.append(lambda: call(*args))

        def start(self) -> None:
            pass

        cancel = start

    def answer(asked: Asked) -> Reply:
        for late in timers[:-1]:
            late()
        return good(asked)

    monkeypatch.setattr(threading, "Timer", Held)
    endpoint.always = answer
    encoder = opened(endpoint, "batch=1&concurrency=1&retries=0")
    for text in TEXTS[:2]:
        assert len(encoder.encode([text]).vectors) == 1
    assert len(timers) == 2


def test_after_a_failure_nothing_more_is_sent(endpoint: Endpoint) -> None:
    endpoint.always = lambda _: Reply(400)
    with pytest.raises(MeasurementError):
        opened(endpoint, "batch=1&concurrency=1").encode(TEXTS)
    assert soon(lambda: not threads())
    assert len(endpoint.seen) <= 2  # one may have begun before the failure was seen


def test_after_a_failure_nobody_goes_on_waiting(endpoint: Endpoint) -> None:
    """With real time: one request would wait for a minute while the other is refused."""
    endpoint.always = lambda asked: Reply(429 if "b" in asked["input"] else 400, headers={"Retry-After": "60"})
    began = time.monotonic()
    with pytest.raises(MeasurementError, match="answered 400"):
        open_text_encoder(parse_model(f"api:toy?base_url={endpoint.base}&batch=1&concurrency=2")).encode(["b", "a"])
    assert soon(lambda: not threads())
    assert time.monotonic() - began < 5


def test_an_interruption_is_heard_while_a_server_is_silent(endpoint: Endpoint) -> None:
    def interrupt(_: Asked) -> Reply:
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, signal.SIGINT)
        return Reply(hang=True)

    endpoint.always = interrupt
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        opened(endpoint).encode(["one"])
    assert time.monotonic() - began < 2
    endpoint.release.set()
    assert soon(lambda: not threads())


def test_connections_are_closed_with_their_encoder(endpoint: Endpoint) -> None:
    encoder = opened(endpoint)
    encoder.encode(["one"])
    (connection,) = encoder._client.connections._idle
    client = connection.client
    assert not client.is_closed
    del encoder
    gc.collect()
    assert soon(lambda: client.is_closed)


def test_a_connection_in_use_is_closed_after_its_request(endpoint: Endpoint) -> None:
    """Connections that are closed while a thread waits for an answer do not keep its socket open."""
    connections = opened(endpoint)._client.connections
    endpoint.always = lambda asked: (connections.close(), good(asked))[1]
    clients = []
    make = connections._client
    connections._client = lambda: clients.append(make()) or clients[-1]  # type: ignore[func-returns-value]
    assert connections.post(f"{endpoint.base}/embeddings", {"input": ["one"]}, 10_000, 5.0)[0].is_success
    assert [client.is_closed for client in clients] == [True]
