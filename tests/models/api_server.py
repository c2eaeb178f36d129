"""An HTTP server on loopback with injected faults, and ``api:`` encoders that query it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from biassay.models.openai.client import RetryPolicy
from biassay.models.openai.embeddings import ApiEncoder
from biassay.models.registry import parse_model

KEY = 'sk-never/"seen"&by+anyone%0123456789'
KEYED = "key_env=BIASSAY_API_KEY"
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
    """Behaviour of the server for one request."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    reason: str | None = None
    announced: bool = True  # the length of the body; or else it ends with the connection
    cut: int = 0  # bytes that are announced and never sent
    pause: float = 0.0  # seconds between single bytes of the body
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
    """Respond correctly, unless ``faults`` has a fault for the next request or ``always`` one for all."""

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
        if not isinstance(sys.exc_info()[1], OSError | ValueError):  # a client that gave up, in a request or after it
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
        length = {"Content-Length": str(len(reply.body) + reply.cut)} if reply.announced else {"Connection": "close"}
        for name, value in {**length, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = self.close_connection or reply.cut > 0
        if not reply.pause:
            self.wfile.write(reply.body)
            self.server.sent += 1
            return
        self.slowly(reply.body, reply.pause)

    def slowly(self, content: bytes, pause: float) -> None:
        for byte in content:
            self.wfile.write(bytes([byte]))
            if self.server.release.wait(pause):
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

    def pace(self, jitter: float = 1.0) -> RetryPolicy:
        return RetryPolicy(self.sleep, lambda: jitter, lambda: 1_700_000_000.0)


def opened(server: Endpoint, settings: str = "", clock: Clock | None = None) -> ApiEncoder:
    """The model behind a server; with the key of the environment, if there is one and the settings name no other."""
    if "BIASSAY_API_KEY" in os.environ and "key_env" not in settings:
        settings = "&".join(filter(None, (settings, KEYED)))
    text = f"api:toy?base_url={server.base}{settings and '&'}{settings}"
    return ApiEncoder(parse_model(text), (clock or Clock()).pace())


def changed(**changes: object) -> Script:
    """An answer whose second item is not as it should be; None takes a field away."""

    def script(asked: Asked) -> Reply:
        items = data(asked)
        items[1] = {name: value for name, value in {**items[1], **changes}.items() if value is not None}
        return answer(items)

    return script
