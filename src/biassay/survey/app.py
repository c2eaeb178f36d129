"""The web application of a study: the participant's way, and the researcher's side behind a login."""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from biassay.errors import MissingExtraError, UsageError
from biassay.survey import export
from biassay.survey.database import is_sqlite
from biassay.survey.forms import read_step
from biassay.survey.guards import Failures, Headers, Rates, SmallBodies, counted_as
from biassay.survey.links import is_signed, pool_number, printable
from biassay.survey.pages import Pages
from biassay.survey.progress import progress_of
from biassay.survey.sessions import Session, Sessions
from biassay.survey.store import AllTaken, Participant, Store, TakesPartAlready
from biassay.survey.study import SIGNATURE

__all__ = ["Limits", "make_app"]

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


def make_app(
    store: Store,
    *,
    token: str | None,
    secure: bool = False,
    limits: Limits | None = None,
    link_key: str | None = None,
) -> Starlette:
    """The application. Without a ``token`` there is no researcher's side; ``secure``: it is served by https.

    ``link_key`` signs links, where the study requires that.
    """
    if store.study.pool.signed and not link_key:
        raise UsageError(
            "the study takes numbers in signed links only (pool.signed), and there is no key to check them"
        )
    site = _Site(store, token, Sessions(store.secret, secure=secure, token=token), limits or Limits(), link_key or "")
    routes = [
        Route("/", site.welcome),
        Route("/begin", site.begin, methods=["POST"]),
        Route("/page", site.page, methods=["GET", "POST"]),
        Route("/health", site.health),
        Route("/researcher", site.researcher),
        Route("/researcher/login", site.login, methods=["POST"]),
        Route("/researcher/logout", site.logout, methods=["POST"]),
        Route("/researcher/delete", site.delete, methods=["POST"]),
        Route("/researcher/export/{name}", site.exported),
        Mount("/static", StaticFiles(directory=Path(__file__).with_name("static"))),
    ]
    handlers: dict[Any, Any] = {HTTPException: site.refused}
    guards = [
        Middleware(Headers),
        Middleware(Failures, page=lambda: site.pages.error(500, {})),
        Middleware(SmallBodies),
    ]
    app = Starlette(routes=routes, middleware=guards, exception_handlers=handlers)
    app.router.redirect_slashes = False  # it would lead to wherever the Host header says
    app.state.site = site
    return app


class _Crowded(HTTPException):
    """Too many participants from one address have begun and not finished."""


class _Site:
    """Answers requests. Work on the database is done in threads: one for SQLite, which has one writer."""

    def __init__(self, store: Store, token: str | None, sessions: Sessions, limits: Limits, link_key: str) -> None:
        self.store, self.study, self.sessions, self.limits = store, store.study, sessions, limits
        self.token, self.link_key = token, link_key
        self.pages = Pages(store.study)
        self.rates = Rates()
        self.addresses: dict[str, str] = {}  # of those who are taking part, in memory only
        self.beginning = threading.Lock()
        self.workers = ThreadPoolExecutor(1 if is_sqlite(store.engine) else 8, thread_name_prefix="database")

    async def work(self, function: Callable[..., _T], *arguments: Any) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self.workers, function, *arguments)
        except (sa.exc.OperationalError, sa.exc.TimeoutError) as error:
            log.error("the database did not answer: %s", type(error).__name__)
            raise HTTPException(503) from error

    async def welcome(self, request: Request) -> Response:
        session = self.sessions.read(request)
        parameter = self.study.pool.parameter
        given = pool_number(request.query_params.get(parameter, "")) if parameter else ""
        # Another number is another person, on a computer that two people share.
        if session is not None and session.participant is not None and given in ("", session.pool_id):
            return RedirectResponse("/page", 303)
        if given and self.study.pool.signed:
            signature = request.query_params.get(SIGNATURE, "")
            if not is_signed(self.link_key, self.study, given, signature):
                return self.pages.message("no_number", 403)
        if given:
            # The number goes into the cookie and out of the address, where others could read it.
            response: Response = RedirectResponse("/", 303)
            self.sessions.write(response, self.sessions.new(given))
            return response
        # Who begins is known by this nonce. The one that came may have been put there by somebody who knows it too.
        session = self.sessions.new(session.pool_id if session is not None else None)
        response = self.pages.consent(self.sessions.token(session.nonce))
        self.sessions.write(response, session)
        return response

    async def begin(self, request: Request) -> Response:
        address = _address(request)
        self.limit("begin", address, self.limits.begin)
        session, form = await self.genuine(request)
        if session.participant is not None:
            return RedirectResponse("/page", 303)
        if form.get("agree") != "yes":
            return self.pages.consent(self.sessions.token(session.nonce), missing=True)
        if self.study.pool.required and session.pool_id is None:
            return self.pages.message("no_number", 403)
        try:
            # The same page sent twice, or once more after its answer was lost, begins once.
            own = self.sessions.participant(session.nonce)
            participant = await self.work(self.begin_from, address, session.pool_id, own)
        except _Crowded as error:
            return self.pages.message("crowded", error.status_code)
        except TakesPartAlready:
            return self.pages.message("twice", 409)
        except UsageError as error:
            log.error("nobody can begin: %s", error)
            raise HTTPException(503) from error
        if participant is None:
            return self.pages.message("full")
        response = RedirectResponse("/page", 303)
        self.sessions.write(response, replace(self.sessions.new(session.pool_id), participant=participant.id))
        return response

    def begin_from(self, address: str, pool_id: str | None, own: str) -> Participant | None:
        """Let somebody begin, unless too many from this address have begun and not finished."""
        with self.beginning:  # or several at once would each be the last that may
            unfinished = self.store.unfinished()
            self.addresses = {who: where for who, where in self.addresses.items() if who in unfinished}
            others = sum(where == address for who, where in self.addresses.items() if who != own)
            if 0 < self.limits.unfinished <= others:
                log.warning(
                    "somebody could not begin: of their address %d have begun and not ended (--unfinished-limit %d)",
                    others,
                    self.limits.unfinished,
                )
                raise _Crowded(429)
            participant = self.store.begin(pool_id, own)
            if participant is not None:
                self.addresses[participant.id] = address
            return participant

    async def page(self, request: Request) -> Response:
        return await (self.answer(request) if request.method == "POST" else self.shown(request))

    async def shown(self, request: Request) -> Response:
        session = self.sessions.read(request)
        if session is None or session.participant is None:
            return RedirectResponse("/", 303)
        participant = await self.work(self.store.find, session.participant)
        if participant is None:
            raise HTTPException(404)
        if participant.status in ("abandoned", "deleted"):
            return self.pages.message("expired" if participant.status == "abandoned" else "deleted")
        return self.pages.step(participant, self.store.steps, self.sessions.token(session.nonce))

    async def answer(self, request: Request) -> Response:
        session, form = await self.genuine(request)
        if session.participant is None:
            return RedirectResponse("/", 303)
        self.limit("page", session.participant, self.limits.page)
        participant = await self.work(self.store.find, session.participant)
        if participant is None:
            raise HTTPException(404)
        current = form.get("step") == str(participant.step)
        if participant.status != "active" or not current:
            return RedirectResponse("/page", 303)  # sent twice, or from a window that was left behind
        step = self.store.steps[participant.step]
        read = read_step(self.study, participant, step, form)
        if read.missing is not None:
            token = self.sessions.token(session.nonce)
            return self.pages.step(participant, self.store.steps, token, missing=read.missing, shown=read.shown)
        try:
            await self.work(self.store.answer, participant.id, participant.step, read.given)
        except AllTaken:
            return self.pages.message("full")
        return RedirectResponse("/page", 303)

    async def genuine(self, request: Request) -> tuple[Session, FormData]:
        """The session and the form of a request that was sent from the study's own page."""
        session = self.sessions.read(request)
        form = await _form(request)
        if session is None or not self.sessions.is_genuine(session.nonce, form.get("token")):
            raise HTTPException(403)
        return session, form

    def limit(self, what: str, who: str, a_minute: int) -> None:
        if not self.rates.allows(what, who, a_minute):
            raise HTTPException(429)

    async def health(self, _: Request) -> Response:
        await self.work(self.store.lacking)
        return JSONResponse({"study": self.study.name, "ok": True})

    async def researcher(self, request: Request) -> Response:
        if self.token is None:
            raise HTTPException(404)
        who = self.sessions.read_researcher(request)
        if who is None:
            session = self.sessions.read(request) or self.sessions.new()
            response = self.pages.login(self.sessions.token(session.nonce))
            self.sessions.write(response, session)
            return response
        done = request.query_params.get("deleted")
        progress = await self.work(progress_of, self.store)
        return self.pages.researcher(progress, self.sessions.token(who), deleted=done)

    async def login(self, request: Request) -> Response:
        if self.token is None:
            raise HTTPException(404)
        self.limit("login", _address(request), self.limits.login)
        session, form = await self.genuine(request)
        given = form.get("password")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), self.token.encode()):
            return self.pages.login(self.sessions.token(session.nonce), wrong=True)
        response = RedirectResponse("/researcher", 303)
        self.sessions.write_researcher(response)
        return response

    async def logout(self, request: Request) -> Response:
        await self.by_researcher(request)
        response = RedirectResponse("/researcher", 303)
        self.sessions.forget_researcher(request, response)
        return response

    async def delete(self, request: Request) -> Response:
        form = await self.by_researcher(request)
        given = form.get("known_as")
        known_as = printable(given) if isinstance(given, str) else ""
        found = known_as != "" and await self.work(self.store.delete, known_as)
        return RedirectResponse(f"/researcher?deleted={'yes' if found else 'no'}", 303)

    async def by_researcher(self, request: Request) -> FormData:
        if self.token is None:
            raise HTTPException(404)
        who = self.sessions.read_researcher(request)
        form = await _form(request)
        if who is None or not self.sessions.is_genuine(who, form.get("token")):
            raise HTTPException(403)
        return form

    async def exported(self, request: Request) -> Response:
        if self.token is None or self.sessions.read_researcher(request) is None:
            raise HTTPException(404)
        name = request.path_params["name"]
        if name not in export.FILES:
            raise HTTPException(404)
        try:
            content, kind = await self.work(export.exported, self.store, name)
        except MissingExtraError as error:
            log.warning("%s was not exported: %s", name, error)
            raise HTTPException(404) from error
        return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    async def refused(self, _: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        return self.pages.error(status, headers)


async def _form(request: Request) -> FormData:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    try:
        return await request.form(max_fields=200)
    except (ValueError, UnicodeDecodeError) as error:
        raise HTTPException(400) from error


def _address(request: Request) -> str:
    """Used for rate limits, and never stored."""
    return counted_as(request.client.host) if request.client else "unknown"
