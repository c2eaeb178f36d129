"""Serve the web application with uvicorn."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from biassay.errors import UsageError
from biassay.survey import security

__all__ = ["make_uvicorn_options", "serve"]


class _TimedProtocol(H11Protocol):
    """Close connections whose request head does not arrive in time; `BodyLimit` times the bodies.

    The time runs from the connection, or from the first byte after the last response. uvicorn closes idle connections
    earlier.
    """

    _timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout."""
        super().connection_made(transport)
        self._timeout = self.loop.call_later(security.RECEIVE_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Cancel the timeout if the head is complete."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_timeout()
        elif self._timeout is None:
            self._timeout = self.loop.call_later(security.RECEIVE_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._cancel_timeout()
        super().connection_lost(exc)

    def _cancel_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


def make_uvicorn_options(host: str, port: int, proxies: list[str] | None = None) -> dict[str, Any]:
    """Return the settings of uvicorn, without access log, because URLs may contain numbers of the pool.

    Parameters
    ----------
    host : str
        Address to listen on.
    port : int
        Port to listen on.
    proxies : list of str, optional
        Addresses of trusted reverse proxies.
    """
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
    """Serve the application until the process ends.

    Parameters
    ----------
    app : ASGI application
        The application.
    host : str
        Address to listen on.
    port : int
        Port to listen on.
    proxies : list of str or None
        Addresses of trusted reverse proxies.
    """
    _check_port(host, port)
    uvicorn.run(app, **make_uvicorn_options(host, port, proxies))


def _check_port(host: str, port: int) -> None:
    """Raise if the port is in use."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UsageError(
                f"cannot use port {port} of {host} ({error.strerror}); the study may be running already. Choose "
                "another port with --port"
            ) from error
