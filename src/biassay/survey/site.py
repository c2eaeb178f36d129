"""What all requests of a study share: its data, sessions, limits, and answers to what is refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from biassay.survey.database import is_sqlite
from biassay.survey.guards import Rates, counted_as
from biassay.survey.pages import Pages
from biassay.survey.sessions import Session, Sessions
from biassay.survey.store import Store

__all__ = ["Limits", "Site", "address_of", "form_of", "log"]

log = logging.getLogger("biassay.survey")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Limits:
    """How often in a minute: an address may begin, a browser may send a page, an address may try to log in.

    ``unfinished``: how many participants from one address may be unfinished at once. Zero: no limit.
    """

    begin: int = 60
    page: int = 120
    login: int = 5
    unfinished: int = 60


class Site:
    """Answers requests. Work on the database is done in threads: one for SQLite, which has one writer."""

    def __init__(self, store: Store, token: str | None, sessions: Sessions, limits: Limits) -> None:
        self.store, self.study, self.sessions, self.limits = store, store.study, sessions, limits
        self.token = token
        self.pages = Pages(store.study)
        self.rates = Rates()
        self.workers = ThreadPoolExecutor(1 if is_sqlite(store.engine) else 8, thread_name_prefix="database")

    async def work(self, function: Callable[..., _T], *arguments: Any) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self.workers, function, *arguments)
        except (sa.exc.OperationalError, sa.exc.TimeoutError) as error:
            log.error("the database did not answer: %s", type(error).__name__)
            raise HTTPException(503) from error

    async def genuine(self, request: Request) -> tuple[Session, FormData]:
        """The session and the form of a request that was sent from the study's own page."""
        session = self.sessions.read(request)
        form = await form_of(request)
        if session is None or not self.sessions.is_genuine(session.nonce, form.get("token")):
            raise HTTPException(403)
        return session, form

    def limit(self, what: str, who: str, a_minute: int) -> None:
        if not self.rates.allows(what, who, a_minute):
            raise HTTPException(429)

    async def health(self, _: Request) -> Response:
        await self.work(self.store.lacking)
        return JSONResponse({"study": self.study.name, "ok": True})

    async def refused(self, _: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        return self.pages.error(status, headers)


async def form_of(request: Request) -> FormData:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    try:
        return await request.form(max_fields=200)
    except (ValueError, UnicodeDecodeError) as error:
        raise HTTPException(400) from error


def address_of(request: Request) -> str:
    """Used for rate limits, and never stored."""
    return counted_as(request.client.host) if request.client else "unknown"
