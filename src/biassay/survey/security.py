"""Protect the web application with security headers, rate limits and signed cookies."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

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

    participant: str | None = None
    pool_id: str | None = None
    nonce: str = field(default_factory=partial(secrets.token_urlsafe, 16))


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
        return Session(content["p"], content["i"], content["n"]) if content else None

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

    def is_genuine(self, nonce: str, token: str) -> bool:
        """Return whether a form has the token of its session."""
        return hmac.compare_digest(self.token(nonce).encode(), token.encode())

    def _sign(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).digest()

    def _load(self, request: Request, kind: str) -> dict[str, Any]:
        """Return the content of a cookie. Return an empty dict if it is missing, expired or forged."""
        try:
            content: dict[str, Any] = self._serializer[kind].loads(
                request.cookies.get(self.name(kind), ""), max_age=_SECONDS[kind]
            )
        except BadData:
            return {}
        return content

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
