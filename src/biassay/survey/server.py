"""Serve the web application with uvicorn."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from biassay.errors import UsageError


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
