"""Protect the web application with middleware, rate limits and signed cookies."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import logging
import secrets
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("biassay.survey")
_MAX_BODY_BYTES = 64 * 1024
RECEIVE_SECONDS = 30.0  # limit for the body of a request; a form has a few kilobytes
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


class SecurityHeaders:
    """Middleware that adds security headers; browsers may cache style and script only."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
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


class ErrorPages:
    """Middleware that shows a page after a failure and logs the traceback without the message.

    The message could repeat what a participant entered.
    """

    def __init__(self, app: ASGIApp, page: Callable[[], Response]) -> None:
        self.app, self.page = app, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__))
            log.error("a page failed: %s\n%s", type(error).__name__, where)
            if not begun and scope["type"] == "http":
                await self.page()(scope, receive, send)


class BodyLimit:
    """Middleware that rejects requests that are larger than any form or arrive too slowly."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(RECEIVE_SECONDS):
                body = await _read_body(receive)
        except TimeoutError:
            await PlainTextResponse("too slow", 408, {"connection": "close"})(scope, receive, send)
            return
        if body is None:
            return
        if len(body) > _MAX_BODY_BYTES:
            await PlainTextResponse("too large", 413, {"connection": "close"})(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, replay, send)


async def _read_body(receive: Receive) -> bytes | None:
    """Read the body of a request up to the limit; return None if the connection closes."""
    body, more = b"", True
    while more and len(body) <= _MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def get_rate_limit_key(host: str) -> str:
    """Return the address that limits count, or in IPv6 its network, because one person has all its addresses."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address.packed, 64), strict=False))


COOKIE, RESEARCHER = "biassay", "biassay_researcher"
_SECONDS = {COOKIE: 7 * 24 * 3600, RESEARCHER: 12 * 3600}


@dataclass(frozen=True)
class Session:
    """Session of a browser: the nonce binds forms to it; the others are None until they are known."""

    nonce: str
    participant: str | None = None
    pool_id: str | None = None


class Sessions:
    """Read and write cookies, signed with the key of the study, so that nobody can guess or change a number."""

    def __init__(self, secret: str, *, secure: bool, token: str | None = None) -> None:
        self._secret, self._secure = secret.encode(), secure
        # Browsers ignore ports: two studies on one host need cookies with different names.
        self.suffix = self._sign("name").hex()[:8]
        # A new token ends the sessions of the old one.
        keys = {COOKIE: secret, RESEARCHER: self._sign(f"researcher.{token}").hex()}
        self._serializer = {
            name: URLSafeTimedSerializer(key, salt=f"biassay.survey.{name}") for name, key in keys.items()
        }
        self._ended: set[str] = set()

    def name(self, kind: str) -> str:
        """Return the name of a cookie."""
        return f"{kind}_{self.suffix}"

    def read(self, request: Request) -> Session | None:
        """Return the session of a participant's browser, or None if it has none or the signature is invalid."""
        content = self._load(request, COOKIE)
        return Session(str(content["n"]), content.get("p"), content.get("i")) if "n" in content else None

    def new(self, pool_id: str | None = None) -> Session:
        """Create a session with a new nonce."""
        return Session(secrets.token_urlsafe(16), None, pool_id)

    def write(self, response: Response, session: Session) -> None:
        """Set the cookie of a session."""
        self._set(response, COOKIE, {"n": session.nonce, "p": session.participant, "i": session.pool_id})

    def read_researcher(self, request: Request) -> str | None:
        """Return the nonce of a logged-in researcher, or None."""
        who = self._load(request, RESEARCHER).get("r")
        return None if who is None or who in self._ended else str(who)

    def write_researcher(self, response: Response) -> None:
        """Set the cookie of a logged-in researcher."""
        self._set(response, RESEARCHER, {"r": secrets.token_urlsafe(16)})

    def forget_researcher(self, request: Request, response: Response) -> None:
        """End the session of a researcher, and invalidate copies of its cookie."""
        who = self.read_researcher(request)
        if who is not None:
            self._ended.add(who)
        response.delete_cookie(self.name(RESEARCHER), path="/", secure=self._secure, httponly=True, samesite="strict")

    def token(self, nonce: str) -> str:
        """Return the token that forms of a session must contain."""
        return self._sign(f"form.{nonce}").hex()

    def participant(self, nonce: str) -> str:
        """Return the unguessable identifier of a participant who begins in this browser."""
        return base64.urlsafe_b64encode(self._sign(f"participant.{nonce}")[:18]).decode()

    def is_genuine(self, nonce: str, token: object) -> bool:
        """Return whether a form has the token of its session."""
        return isinstance(token, str) and hmac.compare_digest(self.token(nonce).encode(), token.encode())

    def _sign(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).digest()

    def _load(self, request: Request, kind: str) -> dict[str, Any]:
        """Return the content of a cookie. Return an empty dict if it is missing, expired or forged."""
        try:
            content = self._serializer[kind].loads(request.cookies.get(self.name(kind), ""), max_age=_SECONDS[kind])
        except BadData:
            return {}
        return content if isinstance(content, dict) else {}

    def _set(self, response: Response, kind: str, content: Mapping[str, str | None]) -> None:
        response.set_cookie(
            self.name(kind),
            str(self._serializer[kind].dumps(content)),
            max_age=_SECONDS[kind],
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="strict" if kind == RESEARCHER else "lax",
        )
