"""How the application is served: whose word on addresses is taken, and how long a request may take to come."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from biassay.errors import UsageError
from biassay.survey import guards

__all__ = ["options", "serve"]


class _TimedProtocol(H11Protocol):
    """Closes a connection whose next request does not show its whole head in time; bodies are timed by `SmallBodies`.

    The time runs from the connection, or from the first byte after the last answer, whatever else arrives; a connection
    that is idle after an answer is closed by uvicorn, earlier.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(guards.RECEIVE_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._in_time()
        elif self._late is None:
            self._late = self.loop.call_later(guards.RECEIVE_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def options(host: str, port: int, proxies: list[str] | None = None) -> dict[str, Any]:
    """The settings of uvicorn. Addresses, which may hold numbers of a pool, are not logged."""
    return {
        "host": host,
        "port": port,
        "http": _TimedProtocol,
        "access_log": False,
        "log_level": "warning",
        "proxy_headers": proxies is not None,
        "forwarded_allow_ips": proxies or [],
        "server_header": False,
    }


def serve(app: ASGIApp, host: str, port: int, proxies: list[str] | None) -> None:
    """Answer requests until the process is ended."""
    _check_port(host, port)
    uvicorn.run(app, **options(host, port, proxies))


def _check_port(host: str, port: int) -> None:
    """Refuse a port that is taken."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UsageError(
                f"port {port} of {host} cannot be used ({error.strerror}), perhaps because the study is being served "
                "already; choose another with --port"
            ) from error
