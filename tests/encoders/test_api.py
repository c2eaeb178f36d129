"""``api:`` against a real HTTP server on loopback that misbehaves as it is told."""

from __future__ import annotations

import gc
import hashlib
import html
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import biassay
from biassay.cli import main
from biassay.encoders.api import ApiEncoder, Pace, provide
from biassay.encoders.registry import open_encoder, parse_model
from biassay.errors import BiassayError, MeasurementError, MissingExtraError, UsageError, VectorError
from biassay.texts.sentences import texts_of

httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.extras

KEY = 'sk-never/"seen"&by+anyone%0123456789'
TEXTS = [f"text {i}" for i in range(10)]
DIMENSION = 8


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    numbers: list[float] = np.random.default_rng(seed).normal(size=dimension).tolist()
    return numbers


def vectors_of(texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array([vector_of(text) for text in texts], dtype=np.float32)


# The server


@dataclass
class Reply:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    reason: str | None = None
    cut: int = 0  # bytes that are announced and never sent
    pause: float = 0.0  # seconds between single bytes
    drop: bool = False  # no answer, the connection is closed
    hang: bool = False  # no answer, the connection stays open


Asked = dict[str, Any]
Script = Callable[[Asked], Reply]


def data(asked: Asked) -> list[dict[str, Any]]:
    dimension = asked.get("dimensions", DIMENSION)
    return [
        {"object": "embedding", "index": i, "embedding": vector_of(text, dimension)}
        for i, text in enumerate(asked["input"])
    ]


def answer(items: object) -> Reply:
    return Reply(body=json.dumps({"object": "list", "data": items, "model": "toy", "usage": {}}).encode())


def good(asked: Asked) -> Reply:
    return answer(data(asked))


class Endpoint(ThreadingHTTPServer):
    """Answers well, unless ``faults`` holds something else for the next request or ``always`` for all."""

    daemon_threads = True

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.release = threading.Event()
        self.seen: list[tuple[str, dict[str, str], Asked]] = []
        self.faults: list[Reply | Script] = []
        self.always: Script = good
        self.hold = 0.0
        self.active = self.peak = 0
        self.sent = 0  # bodies that were taken to their end
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        return [text for _, _, asked in self.seen for text in asked["input"]]

    def reply(self, path: str, headers: dict[str, str], asked: Asked) -> Reply:
        with self.lock:
            self.active += 1
            self.peak = max(self.peak, self.active)
            self.seen.append((path, headers, asked))
            chosen = self.faults.pop(0) if self.faults else self.always
        self.release.wait(self.hold)
        with self.lock:  # before the answer: a client that has it may come back at once
            self.active -= 1
        return chosen if isinstance(chosen, Reply) else chosen(asked)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that gave up is no surprise
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or else a body waits 40 ms behind its headers
    timeout = 5
    server: Endpoint

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.reply(self.path, dict(self.headers), asked)
        if reply.hang:
            self.server.release.wait(5)
        if reply.hang or reply.drop:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.send_response(reply.status, reply.reason)
        for name, value in {"Content-Length": str(len(reply.body) + reply.cut), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = self.close_connection or reply.cut > 0
        if not reply.pause:
            self.wfile.write(reply.body)
            self.server.sent += 1
            return
        for byte in reply.body:
            self.wfile.write(bytes([byte]))
            if self.server.release.wait(reply.pause):
                return

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True)
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join(5)
        assert not thread.is_alive()


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BIASSAY_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("BIASSAY_API_KEY", KEY)
    return KEY


class Clock:
    """Time that passes only on paper."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def sleep(self, _: threading.Event, seconds: float) -> None:
        self.waits.append(seconds)

    def pace(self, jitter: float = 1.0) -> Pace:
        return Pace(self.sleep, lambda: jitter, lambda: 1_700_000_000.0)


def opened(server: Endpoint, settings: str = "", clock: Clock | None = None) -> ApiEncoder:
    text = f"api:toy?base_url={server.base}{settings and '&'}{settings}"
    return provide(parse_model(text), (clock or Clock()).pace())


# What goes over the wire


def test_a_request_is_what_the_protocol_says(endpoint: Endpoint, key: str) -> None:
    opened(endpoint).encode(["one", "zwei ü", "三"])
    [(path, headers, asked)] = endpoint.seen
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == f"Bearer {key}"
    assert asked == {"model": "toy", "input": ["one", "zwei ü", "三"], "encoding_format": "float"}


def test_without_a_key_no_header_is_sent(endpoint: Endpoint) -> None:
    opened(endpoint).encode(["one"])
    assert "Authorization" not in endpoint.seen[0][1]


def test_dimensions_are_asked_for(endpoint: Endpoint) -> None:
    assert opened(endpoint, "dimensions=3").encode(["one"]).vectors.shape == (1, 3)
    assert endpoint.seen[0][2]["dimensions"] == 3


@pytest.mark.parametrize("count", [1, 2, 3, 9, 10])
def test_vectors_come_in_the_order_of_the_texts_and_each_text_goes_once(endpoint: Endpoint, count: int) -> None:
    encoded = opened(endpoint, "batch=3&concurrency=2").encode(TEXTS[:count])
    assert encoded.vectors.dtype == np.float32
    np.testing.assert_array_equal(encoded.vectors, vectors_of(TEXTS[:count]))
    assert encoded.unknown == ((),) * count
    assert encoded.cut == (None,) * count
    assert sorted(endpoint.texts) == TEXTS[:count]
    assert max(len(asked["input"]) for _, _, asked in endpoint.seen) <= 3


def test_no_text_is_no_request(endpoint: Endpoint) -> None:
    assert opened(endpoint).encode([]).vectors.shape == (0, 0)
    assert endpoint.seen == []


def test_an_answer_may_come_in_any_order(endpoint: Endpoint) -> None:
    endpoint.always = lambda asked: answer(data(asked)[::-1])
    np.testing.assert_array_equal(opened(endpoint, "batch=4").encode(TEXTS).vectors, vectors_of(TEXTS))


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_requests_at_a_time_than_asked_for(endpoint: Endpoint, limit: int) -> None:
    endpoint.hold = 0.02
    encoder = opened(endpoint, f"batch=1&concurrency={limit}")
    assert encoder.batch_size == limit
    np.testing.assert_array_equal(encoder.encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == len(TEXTS)
    assert endpoint.peak == limit


def test_the_store_gets_as_much_as_is_on_its_way_at_once(endpoint: Endpoint) -> None:
    assert opened(endpoint).batch_size == 64 * 4
    assert opened(endpoint, "batch=10&concurrency=3").batch_size == 30


def test_a_proxy_is_not_asked_for_this_machine(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert len(opened(endpoint, "retries=0").encode(["one"]).vectors) == 1


# Failures that pass


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_tried_again(endpoint: Endpoint, status: int) -> None:
    clock = Clock()
    endpoint.faults = [Reply(status), Reply(status)]
    np.testing.assert_array_equal(opened(endpoint, clock=clock).encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == 3
    assert clock.waits == [0.5, 1.0]


def test_waits_are_doubled_up_to_a_minute_and_halved_at_most_by_chance() -> None:
    full, half = Clock().pace(1.0), Clock().pace(0.0)
    assert [full.delay(n, None) for n in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [half.delay(n, None) for n in range(1, 10)] == [0.25, 0.5, 1, 2, 4, 8, 16, 32, 60]
    assert full.delay(101, None) == 60
    chance = [Pace().delay(1, None) for _ in range(20)]
    assert all(0.25 <= wait <= 0.5 for wait in chance)
    assert len(set(chance)) > 1


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
    [Reply(drop=True), Reply(hang=True), Reply(cut=10), Reply(body=b" " * 400, pause=0.02)],
    ids=["dropped", "silent", "cut short", "a byte at a time"],
)
def test_a_broken_connection_is_tried_again(endpoint: Endpoint, fault: Reply) -> None:
    endpoint.faults = [fault]
    began = time.monotonic()
    np.testing.assert_array_equal(opened(endpoint, "timeout=0.2").encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == 2
    assert time.monotonic() - began < 4  # all 400 bytes would take 8 s


def changed(**changes: object) -> Script:
    """An answer whose second item is not as it should be; None takes a field away."""

    def script(asked: Asked) -> Reply:
        items = data(asked)
        items[1] = {name: value for name, value in {**items[1], **changes}.items() if value is not None}
        return answer(items)

    return script


MALFORMED: dict[str, tuple[Reply | Script, str]] = {
    "short": (lambda asked: answer(data(asked)[:-1]), "9 vectors to 10 texts"),
    "long": (lambda asked: answer([*data(asked), {"index": 10, "embedding": [1.0]}]), "an index that is not one of 0"),
    "nothing": (answer([]), "0 vectors to 10 texts"),
    "index twice": (changed(index=0), "the index 0 twice"),
    "index missing": (changed(index=None), "an index that is not one of 0 to 9"),
    "index negative": (changed(index=-1), "an index that is not one of 0 to 9"),
    "index a word": (changed(index="1"), "an index that is not one of 0 to 9"),
    "index true": (changed(index=True), "an index that is not one of 0 to 9"),
    "item a word": (answer(["x"] * 10), "an index that is not one of 0 to 9"),
    "no vector": (changed(embedding=None), "no list of numbers"),
    "empty vector": (changed(embedding=[]), "no list of numbers"),
    "base64": (changed(embedding="AACAPw=="), "no list of numbers"),
    "words": (changed(embedding=["1"] * 8), "holds str"),
    "nulls": (changed(embedding=[None] * 8), "holds NoneType"),
    "truths": (changed(embedding=[True] + [0.5] * 7), "holds bool"),
    "lists": (changed(embedding=[[0.5] * 8]), "holds list"),
    "endless number": (changed(embedding=[10**400] * 8), "too large"),
    "no data": (Reply(body=b'{"error": "still loading"}'), "no list 'data': still loading"),
    "a list": (Reply(body=b"[1, 2]"), r"no list 'data': \[1, 2\]"),
    "a page": (Reply(body=b"<html>Welcome</html>"), "no JSON: <html>Welcome"),
    "empty": (Reply(body=b""), "no JSON"),
    "no text": (Reply(body=b"\xff\xfe\x00"), "no JSON"),
    "half": (Reply(body=b'{"data": [{"index": 0, "embedd'), "no JSON"),
    "abyss": (Reply(body=b"[" * 100_000), "no JSON"),
    "no gzip": (Reply(body=b"plain", headers={"Content-Encoding": "gzip"}), "DecodingError"),
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
    with pytest.raises(MeasurementError, match=rf"answered 503: overloaded \?\[31mnow \({attempts}.*resumed"):
        opened(endpoint, setting).encode(["one"])
    assert len(endpoint.seen) == int(attempts[0])


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else can take the port
        taken.bind(("127.0.0.1", 0))
        url, clock = f"http://127.0.0.1:{taken.getsockname()[1]}/v1", Clock()
        encoder = provide(parse_model(f"api:toy?base_url={url}"), clock.pace())
        with pytest.raises(MeasurementError, match=rf"{url}/embeddings gave no answer: ConnectError.*\(6 attempts\)"):
            encoder.encode(["one"])
    assert len(clock.waits) == 5


def test_a_server_that_never_answers_is_named(endpoint: Endpoint) -> None:
    endpoint.always = lambda _: Reply(hang=True)
    with pytest.raises(MeasurementError, match=r"no answer within 0\.05 s \(3 attempts\)"):
        opened(endpoint, "timeout=0.05&retries=2").encode(["one"])


# Failures that stay


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, r"smaller batch= \(now 64\)"),
        (401, "the key is that of BIASSAY_API_KEY"),
        (403, "the key is that of BIASSAY_API_KEY"),
        (404, "check the model's name and base_url="),
        (413, "smaller batch="),
        (422, "smaller batch="),
        (418, "kept"),
        (501, "kept"),
    ],
)
@pytest.mark.usefixtures("key")
def test_a_refusal_is_final_and_gives_the_servers_words(endpoint: Endpoint, status: int, advice: str) -> None:
    endpoint.always = lambda _: Reply(status, b'{"error": {"message": "I would rather not", "type": "x"}}')
    with pytest.raises(MeasurementError, match=rf"answered {status}: I would rather not \(1 attempt\); .*{advice}"):
        opened(endpoint).encode(["one"])
    assert len(endpoint.seen) == 1


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"error": "in short"}', "400: in short ("),
        (b'{"message": "in short"}', "400: in short ("),
        (b'{"detail": "in short"}', "400: in short ("),
        (b'{"detail": [{"loc": 1}]}', '400: {"detail": [{"loc": 1}]} ('),
        (b'{"error": {"message": null}}', '400: {"error": {"message": null}} ('),
        (b"<h1>no</h1>\n", "400: <h1>no</h1> ("),
        (b"", "answered 400 ("),
        (b'"\\ud800"', "400: ? ("),
        (b'{"error":' * 900 + b"1" + b"}" * 900, '{"error":{"error":'),
        (b"x" * 100_000, "x" * 99 + "…"),
    ],
)
def test_the_words_of_a_server_are_found_and_shortened(endpoint: Endpoint, body: bytes, shown: str) -> None:
    endpoint.always = lambda _: Reply(400, body)
    with pytest.raises(MeasurementError) as caught:
        opened(endpoint).encode(["one"])
    assert shown in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_missing_key_is_named_when_the_server_wants_one(endpoint: Endpoint) -> None:
    endpoint.always = lambda _: Reply(401)
    with pytest.raises(MeasurementError, match=r"answered 401.*the key is missing: set BIASSAY_API_KEY;"):
        opened(endpoint).encode(["one"])


def test_a_variable_that_is_named_must_be_set(endpoint: Endpoint) -> None:
    with pytest.raises(UsageError, match="the environment variable OURS that key_env= names is not set"):
        opened(endpoint, "key_env=OURS")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.usefixtures("key")
def test_redirects_are_not_followed(endpoint: Endpoint, status: int) -> None:
    endpoint.faults = [Reply(status, headers={"Location": f"http://localhost:{endpoint.server_port}/elsewhere"})]
    with pytest.raises(MeasurementError, match=rf"answered {status}: http://localhost.*not followed.*base_url="):
        opened(endpoint).encode(["one"])
    assert [path for path, _, _ in endpoint.seen] == ["/v1/embeddings"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "1e39"])
def test_a_number_that_is_not_finite_is_an_error_at_once(endpoint: Endpoint, number: str) -> None:
    body = json.dumps({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [77.5]}]})
    endpoint.always = lambda _: Reply(body=body.replace("77.5", number).encode())
    with pytest.raises(VectorError, match="'api:toy': the vector of 'two' is not finite"):
        opened(endpoint).encode(["one", "two"])
    assert len(endpoint.seen) == 1


def test_a_dimension_that_was_not_asked_for_is_an_error_at_once(endpoint: Endpoint) -> None:
    endpoint.always = lambda asked: good({**asked, "dimensions": 5})
    with pytest.raises(VectorError, match=r"asked for dimensions=3, got vectors of \[5\]; leave dimensions out"):
        opened(endpoint, "dimensions=3").encode(["one"])
    assert len(endpoint.seen) == 1


def test_vectors_of_two_dimensions_in_one_answer_are_an_error(endpoint: Endpoint) -> None:
    endpoint.always = changed(embedding=[1.0, 2.0])
    with pytest.raises(VectorError, match=r"different dimensions: \[2, 8\]"):
        opened(endpoint).encode(TEXTS)


def test_answers_of_two_dimensions_are_an_error(endpoint: Endpoint) -> None:
    endpoint.always = lambda asked: good({**asked, "dimensions": 4 if "text 7" in asked["input"] else 5})
    with pytest.raises(VectorError, match=r"different dimensions: \[4, 5\]"):
        opened(endpoint, "batch=2").encode(TEXTS)


@pytest.mark.parametrize("status", [200, 400])
def test_a_huge_answer_is_not_read_to_its_end(endpoint: Endpoint, status: int) -> None:
    endpoint.always = lambda _: Reply(status, b" " * 20_000_000)
    with pytest.raises(MeasurementError, match=r"more than 589,824 bytes to 1 texts|answered 400"):
        opened(endpoint).encode(["one"])
    assert len(endpoint.seen) == 1
    assert endpoint.sent == 0  # 20 MB are more than the buffers of a connection hold


def test_a_long_vector_is_not_a_huge_answer(endpoint: Endpoint) -> None:
    assert opened(endpoint, "dimensions=16000").encode(["one"]).vectors.shape == (1, 16000)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("biassay-api")]


def soon(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 3
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


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
        provide(parse_model(f"api:toy?base_url={endpoint.base}&batch=1&concurrency=2")).encode(["b", "a"])
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
    client = encoder._client
    assert not client.is_closed
    del encoder
    gc.collect()
    assert soon(lambda: client.is_closed)


# Opening


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("batch=0", "batch must be a whole number from 1 to 2048, got '0'"),
        ("batch=2049", "batch must be"),
        ("batch=ten", "batch must be a whole number from 1 to 2048, got 'ten'"),
        ("batch=", "batch must be .* got ''"),
        ("batch=1.5", "batch must be"),
        ("concurrency=0", "concurrency must be a whole number from 1 to 64"),
        ("concurrency=65", "concurrency must be"),
        ("retries=-1", "retries must be a whole number from 0 to 100"),
        ("retries=101", "retries must be"),
        ("timeout=0", r"timeout must be a number from 0\.001 to 3600, got '0'"),
        ("timeout=nan", "timeout must be"),
        ("timeout=inf", "timeout must be"),
        ("timeout=1h", "timeout must be"),
        ("dimensions=0", "dimensions must be a whole number from 1 to 100000"),
        ("dimensions=-5", "dimensions must be"),
        ("dimension=5", "did you mean 'dimensions'"),
    ],
)
def test_settings_out_of_range_are_named(endpoint: Endpoint, setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        opened(endpoint, setting)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000/v1", "ftp://host/v1", "http://", "http:///v1", "http://h:abc", "http://h:99999", "/v1"]
)
@pytest.mark.usefixtures("key")
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base_url must be like http://host:port/v1, got"):
        open_encoder(f"api:toy?base_url={url}")


@pytest.mark.parametrize(
    "url",
    [
        "http://me:pass-word-1@127.0.0.1/v1",
        "me:pass-word-1@127.0.0.1/v1",
        "http://pass-word-1@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=pass-word-1",
        "http://127.0.0.1/v1#pass-word-1",
    ],
)
@pytest.mark.parametrize("origin", ["base_url", "OPENAI_BASE_URL"])
@pytest.mark.usefixtures("key")
def test_an_address_with_a_secret_is_refused_and_not_repeated(
    url: str, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UsageError, match=f"'api:toy': {origin} must not hold") as caught:
        open_encoder(f"api:toy?base_url={quote(url)}" if origin == "base_url" else "api:toy")
    assert "pass-word-1" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.usefixtures("key")
def test_the_whole_address_of_the_endpoint_is_refused() -> None:
    with pytest.raises(UsageError, match="the part before /embeddings"):
        open_encoder("api:toy?base_url=http://localhost:1/v1/embeddings/")


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("api:toy", "BIASSAY_API_KEY or OPENAI_API_KEY"),
        ("api:toy?base_url=https://api.openai.com/v1/", "BIASSAY_API_KEY or OPENAI_API_KEY"),
        ("api:toy?base_url=https://example.com/v1", "BIASSAY_API_KEY"),
        ("api:toy?base_url=http://127.0.0.1.example.com/v1", "BIASSAY_API_KEY"),
    ],
)
@pytest.mark.parametrize("blank", [True, False])
def test_a_key_is_needed_for_another_machine(
    model: str, names: str, blank: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blank:
        for name in names.split(" or "):
            monkeypatch.setenv(name, " \n")
    with pytest.raises(UsageError, match=rf"'api:toy' needs a key: set the environment variable {names} \("):
        open_encoder(model)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "[::1]", "toy.localhost", "LOCALHOST"])
def test_no_key_is_needed_for_this_machine(host: str) -> None:
    assert open_encoder(f"api:toy?base_url=http://{host}:1/v1").identity.family == "api"


def sent_key(server: Endpoint, model: str) -> str | None:
    """The key that the server is given, if any."""
    open_encoder(model).encode(["one"])
    header = server.seen[-1][1].get("Authorization")
    return None if header is None else header.removeprefix("Bearer ")


@pytest.mark.parametrize(
    ("environment", "setting", "sent"),
    [
        ({"OPENAI_API_KEY": "o"}, "", "o"),
        ({"OPENAI_API_KEY": "o"}, "?key_env=OPENAI_API_KEY", "o"),
        ({"OPENAI_API_KEY": "o", "BIASSAY_API_KEY": "b"}, "", "b"),
        ({"OPENAI_API_KEY": "o", "BIASSAY_API_KEY": " "}, "", "o"),
        ({"OPENAI_API_KEY": "o", "BIASSAY_API_KEY": "b", "OUR_KEY": "k\n"}, "?key_env=OUR_KEY", "k"),
    ],
)
def test_which_variable_gives_the_key_where_the_environment_gives_the_address(
    endpoint: Endpoint, environment: dict[str, str], setting: str, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**environment, "OPENAI_BASE_URL": endpoint.base}.items():
        monkeypatch.setenv(name, value)
    assert sent_key(endpoint, f"api:toy{setting}") == sent


@pytest.mark.parametrize(
    ("environment", "setting", "sent"),
    [
        ({}, "", None),
        ({"BIASSAY_API_KEY": " "}, "", None),
        ({"BIASSAY_API_KEY": "b"}, "", "b"),
        ({"BIASSAY_API_KEY": "b", "OUR_KEY": "k"}, "&key_env=OUR_KEY", "k"),
    ],
)
def test_openais_key_is_not_sent_where_a_model_string_gives_the_address(
    endpoint: Endpoint, environment: dict[str, str], setting: str, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to this machine either: on a shared one the port may be someone else's."""
    for name, value in {**environment, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://elsewhere/v1"}.items():
        monkeypatch.setenv(name, value)
    assert sent_key(endpoint, f"api:toy?base_url={endpoint.base}{setting}") == sent


STRANGERS = [
    "https://example.com/v1",
    "http://api.openai.com/v1",  # in the open
    "https://api.openai.com:8443/v1",
    "https://api.openai.com.example.com/v1",
    "https://api.openai.com/v1/other",
]


@pytest.mark.parametrize("address", STRANGERS)
def test_openais_key_is_no_key_for_an_address_of_a_stranger(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(
        UsageError, match=r"set the environment variable BIASSAY_API_KEY \(.*OPENAI_API_KEY is not sent"
    ):
        open_encoder(f"api:toy?base_url={address}")
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY is not sent .* set OPENAI_BASE_URL") as caught:
        open_encoder(f"api:toy?base_url={address}&key_env=OPENAI_API_KEY")
    assert_hidden("".join(traceback.format_exception(caught.value)))


@pytest.mark.parametrize("setting", ["", "?key_env=OPENAI_API_KEY", "?base_url=https://API.openai.com:443/v1/"])
def test_openais_key_is_for_openai(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    encoder = provide(parse_model(f"api:toy{setting}"))
    assert encoder._client.headers["Authorization"] == f"Bearer {KEY}"
    assert encoder.identity.revision == "https://api.openai.com/v1 toy"


def test_a_strangers_run_folder_cannot_collect_openais_key(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.always = lambda _: Reply(401)
    with pytest.raises(MeasurementError):
        biassay.run(f"api:toy?base_url={endpoint.base}", tests="weat6", out=tmp_path / "run", cache=tmp_path / "cache")
    endpoint.always = good
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    biassay.resume(tmp_path / "run", cache=tmp_path / "cache")
    assert not any("Authorization" in headers for _, headers, _ in endpoint.seen)


@pytest.mark.parametrize("value", ["sk-se cret", "sk-se\ncret", "sk-secrét", "sk-se\x7fcret"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(
    endpoint: Endpoint, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIASSAY_API_KEY", value)
    with pytest.raises(UsageError, match="BIASSAY_API_KEY holds characters") as caught:
        opened(endpoint)
    assert "sk-se" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("pasted", ["sk-proj-abc123", "gsk_abc123", "", "1KEY"])
def test_a_key_given_for_the_name_of_a_variable_is_refused_and_not_shown(endpoint: Endpoint, pasted: str) -> None:
    with pytest.raises(UsageError, match="key_env takes the name of an environment variable") as caught:
        opened(endpoint, f"key_env={pasted}")
    assert "abc123" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.usefixtures("key")
def test_identity_is_address_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = open_encoder("api:some/model-3?base_url=http://HOST:80/v1/").identity
    assert (identity.name, identity.family, identity.settings) == ("api:some/model-3", "api", ())
    assert identity.revision == "http://host/v1 some/model-3"
    monkeypatch.setenv("OUR_KEY", "other")
    same = "batch=2&concurrency=1&retries=1&timeout=2.5&key_env=OUR_KEY"
    assert open_encoder(f"api:some/model-3?base_url=http://host/v1&{same}").identity == identity
    others = ("api:model-3?base_url=http://host/v1", "api:some/model-3?base_url=http://host/v2")
    assert identity.key not in {open_encoder(text).identity.key for text in others}
    shorter = open_encoder("api:some/model-3?base_url=http://host/v1&dimensions=0256").identity
    assert shorter.settings == (("dimensions", "256"),)
    assert shorter.key != identity.key


@pytest.mark.usefixtures("key")
def test_address_is_that_of_the_environment_or_openais(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_encoder("api:m").identity.revision == "https://api.openai.com/v1 m"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host:81/v1/")
    assert open_encoder("api:m").identity.revision == "http://host:81/v1 m"
    assert open_encoder("api:m?base_url=http://b/v1").identity.revision == "http://b/v1 m"
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert open_encoder("api:m").identity.revision == "https://api.openai.com/v1 m"


@pytest.mark.parametrize("origin", ["https://host/v1", "https://localhost:1/v1"])
@pytest.mark.usefixtures("key")
def test_certificates_are_checked_where_there_are_any(origin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Client(httpx.Client):
        def __init__(self, **settings: Any) -> None:
            asked.append(settings)
            super().__init__(**settings)

    monkeypatch.setattr(httpx, "Client", Client)
    open_encoder(f"api:toy?base_url={origin}")
    assert asked[0]["verify"] is True
    assert asked[0]["follow_redirects"] is False


def test_opening_and_preparing_ask_nothing(endpoint: Endpoint) -> None:
    opened(endpoint).prepare(TEXTS)
    assert endpoint.seen == []


def test_missing_extra_gives_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError) as caught:
        open_encoder("api:toy?base_url=http://localhost:1/v1")
    assert str(caught.value).endswith('pip install "biassay[api]"')


def test_the_http_library_is_imported_by_the_provider_only() -> None:
    """In a new process, since it is imported here."""
    code = "import sys, biassay.encoders.api; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# The key is seen nowhere


def forms(key: str) -> list[str]:
    return [key, json.dumps(key)[1:-1], html.escape(key), quote(key), quote(key, safe="")]


def assert_hidden(*places: str) -> None:
    for place in places:
        assert not [form for form in forms(KEY) if form in place]


def everything_of(error: BaseException) -> str:
    """All that a log or a debugger would show of an error and of those behind it."""
    shown, following = [], [error]
    while following:
        link = following.pop()
        shown += [str(link), repr(link), repr(link.args), repr(vars(link))]
        shown += traceback.TracebackException.from_exception(link, capture_locals=True).format()
        following += [other for other in (link.__cause__, link.__context__) if other is not None]
    return "\n".join(shown)


ECHOES: dict[str, Reply] = {
    "in a message": Reply(401, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}).encode()),
    "in plain text": Reply(403, KEY.encode()),
    "in a page": Reply(400, f"<p>{html.escape(KEY)}</p>".encode()),
    "in broken JSON": Reply(400, ('{"error": "' + json.dumps(KEY)[1:-1]).encode()),
    "with slashes escaped": Reply(400, ('{"x": ' + json.dumps(KEY).replace("/", "\\/")).encode()),
    "in a query": Reply(404, f"/v1?key={quote(KEY, safe='')}".encode()),
    "where the message is cut": Reply(400, b"x" * 290 + KEY.encode()),
    "in a header": Reply(302, headers={"Location": f"http://127.0.0.1:1/{KEY}"}),
    "in the status line": Reply(401, reason=KEY),
    "after all attempts": Reply(500, KEY.encode()),
    "in an answer": Reply(200, json.dumps({"error": KEY}).encode()),
    "in no answer": Reply(200, KEY.encode()),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
@pytest.mark.usefixtures("key")
def test_a_key_that_the_server_repeats_is_not_shown(endpoint: Endpoint, echo: Reply) -> None:
    endpoint.always = lambda _: echo
    encoder = opened(endpoint, "retries=1")
    with pytest.raises(MeasurementError) as caught:
        encoder.encode(["one"])
    # The shown locals include this test's own `echo`; only the frames of the package count.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert_hidden(str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value)))
    assert "sk-never" not in str(caught.value)
    assert_hidden(repr(encoder), repr(vars(encoder)), str(encoder.identity))


@pytest.mark.parametrize("fault", [Reply(drop=True), Reply(hang=True), Reply(500), Reply(401), Reply(body=b"?")])
@pytest.mark.usefixtures("key")
def test_the_key_is_in_no_error_however_closely_it_is_looked_at(endpoint: Endpoint, fault: Reply) -> None:
    endpoint.always = lambda _: fault
    encoder = opened(endpoint, "retries=1&timeout=0.05")
    with pytest.raises(MeasurementError) as caught:
        encoder.encode(["one"])
    assert endpoint.seen[0][1]["Authorization"] == f"Bearer {KEY}"
    assert_hidden(everything_of(caught.value))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.usefixtures("key")
def test_a_run_leaves_the_key_nowhere(
    endpoint: Endpoint,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    fails: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    refusal = Reply(401, json.dumps({"error": {"message": f"bad key {KEY}"}}).encode())
    endpoint.faults = [good, refusal] if fails else [Reply(500, KEY.encode())]
    out, cache = tmp_path / "run", tmp_path / "cache"
    model = f"api:toy?base_url={endpoint.base}&batch=10&concurrency=1"
    with pytest.raises(SystemExit) as stopped:
        main(["run", model, "--tests", "weat6", "--out", str(out), "--cache", str(cache)])
    assert bool(stopped.value.code) == fails
    assert all(headers["Authorization"] == f"Bearer {KEY}" for _, headers, _ in endpoint.seen)
    shown = capsys.readouterr()
    assert "bad key [key]" in shown.err if fails else "weat6" in shown.out
    logged = "\n".join([caplog.text, *(repr(vars(record)) for record in caplog.records)])
    assert "httpx" in logged
    assert_hidden(shown.out, shown.err, logged)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"manifest.json", "model.json"} <= {file.name for file in files}
    assert any(file.suffix == ".npz" for file in files)
    for file in files:
        assert not [form for form in forms(KEY) if form.encode() in file.read_bytes()]


# The whole way


def weat6() -> dict[str, list[str]]:
    [test] = biassay.select_tests(["weat6"])
    return {role: [text.text for text in texts_of(test).role(role)] for role in "XYAB"}


def test_a_run_finds_what_a_direct_computation_finds(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.faults = [Reply(429, headers={"Retry-After": "0"}), Reply(drop=True)]
    model = f"api:toy?base_url={endpoint.base}&batch=5&concurrency=3"
    run = biassay.run(model, tests="weat6", out=tmp_path / "run", cache=tmp_path / "cache")
    expected = biassay.weat(*(vectors_of(texts) for texts in weat6().values()))
    [result] = run.results
    # The same float32 vectors through the same arithmetic; only the order of a sum may differ.
    assert result.effect_size == pytest.approx(expected.effect_size, rel=1e-12)
    assert result.p_value == pytest.approx(expected.p_value, rel=1e-12)
    assert (result.model, result.model_revision) == ("api:toy", f"{endpoint.base} toy")
    assert run.manifest.models[0].encoded == 32
    assert biassay.Run.load(tmp_path / "run") == run


@pytest.mark.parametrize("again", ["run", "resume"])
def test_after_a_server_died_only_missing_texts_are_sent(endpoint: Endpoint, tmp_path: Path, again: str) -> None:
    endpoint.faults = [good] * 3
    endpoint.always = lambda _: Reply(drop=True)
    model = f"api:toy?base_url={endpoint.base}&batch=4&concurrency=1&retries=0"
    with pytest.raises(MeasurementError, match=r"1 attempt\).*can be resumed"):
        biassay.run(model, tests="weat6", out=tmp_path / "run", cache=tmp_path / "cache")
    kept = endpoint.texts[:12]
    endpoint.always = good
    endpoint.seen.clear()
    if again == "run":
        run = biassay.run(model, tests="weat6", out=tmp_path / "second", cache=tmp_path / "cache")
    else:
        run = biassay.resume(tmp_path / "run", cache=tmp_path / "cache")
    texts = [text for texts in weat6().values() for text in texts]
    assert len(endpoint.texts) == len(texts) - len(kept) == run.manifest.models[0].encoded
    assert set(endpoint.texts) == set(texts) - set(kept)
    endpoint.seen.clear()
    third = biassay.run(model.replace("batch=4", "batch=9"), tests="weat6", cache=tmp_path / "cache")
    assert endpoint.seen == []
    assert third.results == run.results


@pytest.mark.usefixtures("key")
def test_a_refused_run_is_a_biassay_error_and_leaves_a_run_to_resume(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.always = lambda _: Reply(401)
    with pytest.raises(BiassayError) as caught:
        biassay.run(f"api:toy?base_url={endpoint.base}", tests="weat6", out=tmp_path / "run")
    assert caught.value.exit_code == 1
    endpoint.always = good
    assert biassay.resume(tmp_path / "run").manifest.status == "complete"
