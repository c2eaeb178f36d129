"""The web application of a study, and the participants' side of it."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from biassay.errors import UsageError
from biassay.survey.forms import read_step
from biassay.survey.guards import Failures, Headers, SmallBodies
from biassay.survey.links import is_signed, pool_number
from biassay.survey.participant import AllTaken, Participant, TakesPartAlready
from biassay.survey.researcher import Researcher
from biassay.survey.sessions import Sessions
from biassay.survey.site import Limits, Site, address_of, log
from biassay.survey.store import Store
from biassay.survey.study import SIGNATURE

__all__ = ["make_app"]


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
    sessions = Sessions(store.secret, secure=secure, token=token)
    site = _Participants(store, token, sessions, limits or Limits(), link_key or "")
    behind_login = Researcher(site)
    routes = [
        Route("/", site.welcome),
        Route("/begin", site.begin, methods=["POST"]),
        Route("/page", site.page, methods=["GET", "POST"]),
        Route("/health", site.health),
        Route("/researcher", behind_login.researcher),
        Route("/researcher/login", behind_login.login, methods=["POST"]),
        Route("/researcher/logout", behind_login.logout, methods=["POST"]),
        Route("/researcher/delete", behind_login.delete, methods=["POST"]),
        Route("/researcher/export/{name}", behind_login.exported),
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


class _Participants(Site):
    """Answers the participants' requests."""

    def __init__(self, store: Store, token: str | None, sessions: Sessions, limits: Limits, link_key: str) -> None:
        super().__init__(store, token, sessions, limits)
        self.link_key = link_key
        self.addresses: dict[str, str] = {}  # of those who are taking part, in memory only
        self.beginning = threading.Lock()

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
        address = address_of(request)
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
