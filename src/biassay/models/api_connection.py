"""Connections to an endpoint: whatever a server sends, an answer is bounded in time and in size."""

from __future__ import annotations

import socket
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

__all__ = ["Connections", "MalformedError"]

_GZIP = 16 + zlib.MAX_WBITS


class MalformedError(Exception):
    """An answer that is not what the protocol says."""


class Connections:
    """Connections that are kept and used again, one for each request that is under way."""

    def __init__(self, client: Callable[[], httpx.Client]) -> None:
        """``client`` makes a client for one connection."""
        self._client = client
        self._idle: list[_Connection] = []
        self._closed = False
        self._lock = threading.Lock()

    def post(self, url: str, asked: object, most: int, seconds: float) -> tuple[httpx.Response, bytes]:
        """The answer and its body, of which at most one byte more than ``most`` is unpacked.

        Raises TimeoutError where the whole of it takes longer than ``seconds``.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or _Connection(self._client())
        try:
            return connection.post(url, asked, most, seconds)
        finally:
            self._give_back(connection)

    def _give_back(self, connection: _Connection) -> None:
        """Keep a connection for the next request, unless all were closed while it was in use."""
        with self._lock:
            closed = self._closed
            if not closed:
                self._idle.append(connection)
        if closed:
            connection.client.close()

    def close(self) -> None:
        """Close all connections; one that is in use closes at the end of its request."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.client.close()


class _Connection:
    """One connection for one request at a time, so that the request can be ended from outside.

    The client's own time limit is for each piece of an answer: a server that sends a byte now and then evades it.
    """

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._socket: socket.socket | None = None
        self._late = threading.Event()

    def post(self, url: str, asked: object, most: int, seconds: float) -> tuple[httpx.Response, bytes]:
        import httpx

        late = self._late = threading.Event()
        timer = threading.Timer(seconds, self._end, (late,))
        timer.daemon = True
        timer.start()
        try:
            with self.client.stream("POST", url, json=asked, extensions={"trace": self._trace}) as response:
                body = _read(response, most)
        except httpx.TransportError:
            if not late.is_set():
                raise
        finally:
            timer.cancel()
        if late.is_set():
            raise TimeoutError
        return response, body

    def _end(self, late: threading.Event) -> None:
        """End the request that ``late`` belongs to, and not one that came after it."""
        late.set()
        if late is self._late:
            self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # Not the method of an SSLSocket, which would take the connection apart under its reader.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Learn the socket of a new connection."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._late.is_set():
                self._cut()


def _read(response: httpx.Response, most: int) -> bytes:
    """The body, up to one byte more than ``most``. The client's own way would unpack before it counts."""
    named = response.headers.get("Content-Encoding", "")
    encodings = [name for part in named.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if encodings not in ([], ["gzip"]):
        raise MalformedError(f"the Content-Encoding {named!r}; allowed are gzip, once, and none")
    unpacking, body = zlib.decompressobj(_GZIP) if encodings else None, bytearray()
    for piece in response.iter_raw():
        room = most + 1 - len(body)
        try:
            body += unpacking.decompress(piece, room) if unpacking else piece[:room]
        except zlib.error:
            raise MalformedError("something that is not gzip, although its Content-Encoding says so") from None
        if len(body) > most:
            break
    return bytes(body)
