"""``api:`` and failures that pass: they are tried again, in good time, and named in the end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from biassay.errors import MeasurementError

from . import api_server
from .api_server import TEXTS, Clock, Endpoint, Reply, Script, answer, changed, data, good, opened, vectors_of

pytestmark = pytest.mark.extras

endpoint, no_key = api_server.endpoint, api_server.no_key


@pytest.fixture
def far_away() -> Iterator[None]:
    """A time zone that must make no difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC+5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("7", 7),
        ("2.5", 2.5),
        ("0", 0.5),
        ("-3", 0.5),
        ("100000", 60),
        ("inf", 60),
        ("nan", 0.5),
        ("soon", 0.5),
        ("", 0.5),
        ("Tue, 14 Nov 2023 22:13:29 GMT", 9),  # the clock stands at 22:13:20
        ("Tue, 14 Nov 2023 22:13:29 -0000", 9),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.5),
        ("Fri, 14 Nov 2053 22:00:00 GMT", 60),
        ("Fri, 99 Nov 99999 22:00:00 GMT", 0.5),
    ],
)
@pytest.mark.usefixtures("far_away")
def test_retry_after_is_heeded_within_bounds(endpoint: Endpoint, asked: str, wait: float) -> None:
    clock = Clock()
    endpoint.faults = [Reply(429, headers={"Retry-After": asked})]
    opened(endpoint, clock=clock).encode(["one"])
    assert clock.waits == [wait]


@pytest.mark.parametrize(
    "fault",
    [
        Reply(drop=True),
        Reply(hang=True),
        Reply(cut=10),
        lambda asked: replace(good(asked), pause=0.02),
        lambda asked: replace(good(asked), pause=0.02, announced=False),
    ],
    ids=["dropped", "silent", "cut short", "a slow body", "a slow body without length"],
)
def test_a_broken_connection_is_tried_again(endpoint: Endpoint, fault: Reply | Script) -> None:
    """What comes a byte at a time would be good in the end, after some seconds."""
    endpoint.faults = [fault]
    np.testing.assert_array_equal(opened(endpoint, "timeout=0.2").encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == 2


MALFORMED: dict[str, tuple[Reply | Script, str]] = {
    "short": (lambda asked: answer(data(asked)[:-1]), "9 vectors for 10 texts"),
    "long": (lambda asked: answer([*data(asked), {"index": 10, "embedding": [1.0]}]), "an index that is not one of 0"),
    "nothing": (answer([]), "0 vectors for 10 texts"),
    "index twice": (changed(index=0), "the index 0 twice"),
    "index missing": (changed(index=None), "an index that is not one of 0 to 9"),
    "index negative": (changed(index=-1), "an index that is not one of 0 to 9"),
    "index a word": (changed(index="1"), "an index that is not one of 0 to 9"),
    "index true": (changed(index=True), "an index that is not one of 0 to 9"),
    "item a word": (answer(["x"] * 10), "an index that is not one of 0 to 9"),
    "no vector": (changed(embedding=None), "list of numbers"),
    "empty vector": (changed(embedding=[]), "list of numbers"),
    "base64": (changed(embedding="AACAPw=="), "list of numbers"),
    "words": (changed(embedding=["1"] * 8), "contains str"),
    "nulls": (changed(embedding=[None] * 8), "contains NoneType"),
    "truths": (changed(embedding=[True] + [0.5] * 7), "contains bool"),
    "lists": (changed(embedding=[[0.5] * 8]), "contains list"),
    "endless number": (changed(embedding=[10**400] * 8), "too large"),
    "no data": (Reply(body=b'{"error": "still loading"}'), "no list 'data': still loading"),
    "a list": (Reply(body=b"[1, 2]"), r"no list 'data': \[1, 2\]"),
    "a page": (Reply(body=b"<html>Welcome</html>"), "not JSON: <html>Welcome"),
    "empty": (Reply(body=b""), "not JSON"),
    "no text": (Reply(body=b"\xff\xfe\x00"), "not JSON"),
    "half": (Reply(body=b'{"data": [{"index": 0, "embedd'), "not JSON"),
    "abyss": (Reply(body=b"[" * 100_000), "not JSON"),
    "no gzip": (Reply(body=b"plain", headers={"Content-Encoding": "gzip"}), "their Content-Encoding"),
}


@pytest.mark.parametrize(("fault", "found"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_answer_is_tried_again_and_then_named(
    endpoint: Endpoint, fault: Reply | Script, found: str
) -> None:
    endpoint.faults = [fault] * 3
    encoder = opened(endpoint, "retries=1")
    with pytest.raises(MeasurementError, match=rf"'api:toy': {endpoint.base}/embeddings .*{found}.*\(2 attempts\)"):
        encoder.encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == 4


@pytest.mark.parametrize(
    ("setting", "attempts"), [("", "6 attempts"), ("retries=2", "3 attempts"), ("retries=0", "1 a")]
)
def test_in_the_end_status_and_attempts_are_named(endpoint: Endpoint, setting: str, attempts: str) -> None:
    body = json.dumps({"error": {"message": "overloaded\n\x1b[31mnow"}}).encode()
    endpoint.always = lambda _: Reply(503, body)
    with pytest.raises(MeasurementError, match=rf"answered 503: overloaded \?\[31mnow \({attempts}.*are cached"):
        opened(endpoint, setting).encode(["one"])
    assert len(endpoint.seen) == int(attempts[0])
