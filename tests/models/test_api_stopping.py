"""``api:`` after a failure, an interruption or its end: no background work remains."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest

from biassay.errors import MeasurementError

from . import api_server
from .api_server import TEXTS, Asked, Endpoint, Reply, opened

pytestmark = pytest.mark.extras

endpoint, no_key = api_server.endpoint, api_server.no_key


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("biassay-api")]


def soon(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def test_after_a_failure_nothing_more_is_sent(endpoint: Endpoint) -> None:
    endpoint.faults = [Reply(400)]
    endpoint.always = lambda _: Reply(hang=True)
    with pytest.raises(MeasurementError):
        opened(endpoint, "batch=1&concurrency=1").encode(TEXTS)
    endpoint.release.set()
    assert soon(lambda: not threads())
    assert len(endpoint.seen) <= 2  # one may have begun before the failure was seen


def test_an_interruption_is_heard_while_a_server_is_silent(endpoint: Endpoint) -> None:
    def interrupt(_: Asked) -> Reply:
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, signal.SIGINT)
        return Reply(hang=True)

    endpoint.faults = [interrupt]
    endpoint.always = lambda _: Reply(hang=True)
    with pytest.raises(KeyboardInterrupt):
        opened(endpoint).encode(["one"])
    assert len(endpoint.seen) == 1  # heard before the client tried again
    endpoint.release.set()
    assert soon(lambda: not threads())
