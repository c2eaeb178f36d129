"""Signed cookies, and tokens that show that a form was sent from the study's own page."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

__all__ = ["COOKIE", "RESEARCHER", "Session", "Sessions"]

COOKIE, RESEARCHER = "biassay", "biassay_researcher"
_PARTICIPANT_SECONDS, _RESEARCHER_SECONDS = 7 * 24 * 3600, 12 * 3600


@dataclass(frozen=True)
class Session:
    """``nonce`` ties forms to this browser; ``participant`` and ``pool_id`` are None before they are known."""

    nonce: str
    participant: str | None = None
    pool_id: str | None = None


class Sessions:
    """All cookies are signed with the study's key, so that a number cannot be guessed or changed."""

    def __init__(self, secret: str, *, secure: bool, token: str | None = None) -> None:
        self._secret, self._secure = secret.encode(), secure
        # A browser ignores ports: two studies on one host need cookies of different names.
        self.suffix = self._made("name").hex()[:8]
        # Another token ends what the old one opened.
        keys = {COOKIE: secret, RESEARCHER: self._made(f"researcher.{token}").hex()}
        self._serializer = {
            name: URLSafeTimedSerializer(key, salt=f"biassay.survey.{name}") for name, key in keys.items()
        }
        self._ended: set[str] = set()

    def name(self, kind: str) -> str:
        """What a cookie is called."""
        return f"{kind}_{self.suffix}"

    def read(self, request: Request) -> Session | None:
        """The session of a participant's browser, None if it has none or it is not genuine."""
        try:
            content = self._serializer[COOKIE].loads(
                request.cookies.get(self.name(COOKIE), ""), max_age=_PARTICIPANT_SECONDS
            )
            return Session(str(content["n"]), content.get("p"), content.get("i"))
        except (BadData, KeyError, TypeError, AttributeError):
            return None

    def new(self, pool_id: str | None = None) -> Session:
        return Session(secrets.token_urlsafe(16), None, pool_id)

    def write(self, response: Response, session: Session) -> None:
        content = {"n": session.nonce, "p": session.participant, "i": session.pool_id}
        self._set(response, COOKIE, content, _PARTICIPANT_SECONDS, "lax")

    def read_researcher(self, request: Request) -> str | None:
        """What ties forms to a researcher who has logged in, None if nobody has."""
        try:
            content = self._serializer[RESEARCHER].loads(
                request.cookies.get(self.name(RESEARCHER), ""), max_age=_RESEARCHER_SECONDS
            )
            return None if content["r"] in self._ended else str(content["r"])
        except (BadData, KeyError, TypeError):
            return None

    def write_researcher(self, response: Response) -> None:
        self._set(response, RESEARCHER, {"r": secrets.token_urlsafe(16)}, _RESEARCHER_SECONDS, "strict")

    def forget_researcher(self, request: Request, response: Response) -> None:
        """Copies of the cookie become invalid too."""
        who = self.read_researcher(request)
        if who is not None:
            self._ended.add(who)
        response.delete_cookie(self.name(RESEARCHER), path="/", secure=self._secure, httponly=True, samesite="strict")

    def token(self, nonce: str) -> str:
        """What a form must bring back."""
        return self._made(f"form.{nonce}").hex()

    def participant(self, nonce: str) -> str:
        """The number of whoever begins in this browser: always the same, and nobody can guess it."""
        return base64.urlsafe_b64encode(self._made(f"participant.{nonce}")[:18]).decode()

    def is_genuine(self, nonce: str, token: object) -> bool:
        return isinstance(token, str) and hmac.compare_digest(self.token(nonce).encode(), token.encode())

    def _made(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).digest()

    def _set(self, response: Response, name: str, content: object, seconds: int, same_site: str) -> None:
        response.set_cookie(
            self.name(name),
            str(self._serializer[name].dumps(content)),
            max_age=seconds,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="strict" if same_site == "strict" else "lax",
        )
