"""Guards between the network and the study: sizes and times of requests, rates, headers."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import traceback
from collections.abc import Callable

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "RECEIVE_SECONDS", "Failures", "Headers", "Rates", "SmallBodies", "counted_as"]

log = logging.getLogger("biassay.survey")
_MOST_BYTES = 64 * 1024
RECEIVE_SECONDS = 30.0  # for the head of a request, and again for its body; a form has a few kilobytes
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Headers:
    """Puts the same headers on every answer; nothing but style and script may be kept by a browser."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self.app(scope, receive, send_with_headers)


class Failures:
    """Answers failures with a page. The log has the place and not the message, which could repeat an answer."""

    def __init__(self, app: ASGIApp, page: Callable[[], Response]) -> None:
        self.app, self.page = app, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__))
            log.error("a page failed: %s\n%s", type(error).__name__, where)
            if not begun and scope["type"] == "http":
                await self.page()(scope, receive, send)


class SmallBodies:
    """Refuses what is larger than any form of the study, or takes too long to come, before it is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(RECEIVE_SECONDS):
                body = await _whole(receive)
        except TimeoutError:
            await PlainTextResponse("too slow", 408, {"connection": "close"})(scope, receive, send)
            return
        if body is None:
            return
        if len(body) > _MOST_BYTES:
            await PlainTextResponse("too large", 413)(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, again, send)


async def _whole(receive: Receive) -> bytes | None:
    """The body of a request, or as much of it as shows that it is too large; None if the connection was closed."""
    body, more = b"", True
    while more and len(body) <= _MOST_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def counted_as(host: str) -> str:
    """Whom limits count: an address, or its network in IPv6, where one person has all addresses of one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address.packed, 64), strict=False))


class Rates:
    """How often somebody may do something in a minute; kept in memory only, and by no more than a key."""

    def __init__(self) -> None:
        self._storage = MemoryStorage()
        self._limiter = MovingWindowRateLimiter(self._storage)

    def allows(self, what: str, who: str, a_minute: int) -> bool:
        """Zero: no limit."""
        return a_minute <= 0 or bool(self._limiter.hit(RateLimitItemPerMinute(a_minute), what, who))
