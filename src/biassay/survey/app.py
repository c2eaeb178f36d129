"""Web application for participants and researchers."""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import jinja2
import sqlalchemy as sa
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from biassay.errors import MissingExtraError, UsageError
from biassay.survey import export
from biassay.survey.database import is_sqlite
from biassay.survey.links import clean_pool_number, is_signed, strip_unprintable
from biassay.survey.participants import (
    DuplicateParticipantError,
    Participant,
    QuotaFullError,
    Step,
    draw_group_choices,
    list_traits,
    parse_step,
)
from biassay.survey.progress import compute_progress
from biassay.survey.security import HEADERS, Session, Sessions, get_rate_limit_key
from biassay.survey.store import Identifier, Store
from biassay.survey.study import SIGNATURE, SurveyStudy

_MAX_BODY_BYTES = 64 * 1024
RECEIVE_SECONDS = 30.0  # limit for the body of a request; a form has a few kilobytes
_ERRORS = {
    400: "bad_request",
    403: "forbidden",
    404: "not_found",
    405: "not_found",
    429: "too_many",
    503: "unavailable",
}


class PageRenderer:
    """Render the pages of a study with its texts."""

    def __init__(self, study: SurveyStudy) -> None:
        self.study, self.texts = study, study.texts
        self.templates = jinja2.Environment(
            loader=jinja2.PackageLoader("biassay.survey"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.globals.update(study=study, texts=study.texts, zip=zip)

    def consent(self, token: str, *, missing: bool = False) -> HTMLResponse:
        """Render the consent page; `missing` if somebody did not agree."""
        study = self.study
        values = {
            "society": study.society,
            "number": study.groups_per_participant,
            "pairs": len(study.pairs),
            "minutes": study.minutes,
            "age": study.minimum_age,
        }
        return self.render("consent.html", 400 if missing else 200, token=token, values=values, missing=missing)

    def step(
        self,
        participant: Participant,
        steps: Sequence[Step],
        token: str,
        *,
        missing: str | None = None,
        entered: Mapping[str, Any] | None = None,
    ) -> HTMLResponse:
        """Render the page of a participant's current step.

        Parameters
        ----------
        participant : Participant
        steps : sequence of Step
            All steps of the participant.
        token : str
            Token of the form.
        missing : str, optional
            Message about fields that are missing; the response then has status 400.
        entered : mapping, optional
            What the participant entered, shown again.
        """
        step = steps[participant.step]
        return self.render(
            f"{step.kind}.html",
            400 if missing else 200,
            participant=participant,
            group=participant.group(step.place) if step.place >= 0 else "",
            token=token,
            page=participant.step + 1,
            pages=len(steps) - 1,
            missing=missing,
            entered=entered or {},
            choices=draw_group_choices(self.study, participant) if step.kind == "which_group" else [],
            traits=list_traits(self.study),
            code=self.study.pool.completion_code or participant.code,
        )

    def message(self, name: str, status: int = 200) -> HTMLResponse:
        """Render a message, such as that the study is complete."""
        minutes = f"{self.study.session_minutes:g}"
        return self.render("message.html", status, name=name, values={"minutes": minutes})

    def error(self, status: int, headers: Mapping[str, str]) -> HTMLResponse:
        """Render an error page."""
        name = _ERRORS.get(status, "unavailable" if status >= 500 else "bad_request")
        return self.render("error.html", status, headers=headers, name=name)

    def render(
        self, template: str, status: int = 200, headers: Mapping[str, str] | None = None, **content: Any
    ) -> HTMLResponse:
        """Render a page.

        Parameters
        ----------
        template : str
            File of the template.
        status : int
        headers : mapping, optional
            Further headers of the response.
        **content
            Values for the template.
        """
        return HTMLResponse(self.templates.get_template(template).render(content), status, headers)


log = logging.getLogger("biassay.survey")
_T = TypeVar("_T")


@dataclass(frozen=True)
class RateLimits:
    """Limits per minute and address: participants who begin, pages sent, login attempts. Zero means no limit.

    `unfinished` is the number of participants from one address who may be unfinished at the same time.
    """

    begin: int = 60
    page: int = 120
    login: int = 5
    unfinished: int = 60


class _TooManyUnfinishedError(HTTPException):
    """Too many participants from one address are unfinished."""


class SurveySite:
    """Handle the requests of participants.

    Database work runs in threads, or in a single one for SQLite, which allows one writer.
    """

    def __init__(self, store: Store, sessions: Sessions, limits: RateLimits, link_key: str) -> None:
        self.store, self.study, self.sessions, self.limits = store, store.study, sessions, limits
        self.link_key = link_key
        self.pages = PageRenderer(store.study)
        self.rates = MovingWindowRateLimiter(MemoryStorage())  # kept in memory only, like the addresses
        self.addresses: dict[str, str] = {}  # of unfinished participants
        self.beginning = threading.Lock()
        self.workers = ThreadPoolExecutor(1 if is_sqlite(store.engine) else 8, thread_name_prefix="database")

    async def run_in_thread(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Run a function of the store in a thread; respond with 503 if the database fails."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self.workers, function, *arguments)
        except (sa.exc.OperationalError, sa.exc.TimeoutError) as error:
            log.error("the database did not respond: %s", type(error).__name__)
            raise HTTPException(503) from error

    async def read_genuine_form(self, request: Request) -> tuple[Session, QueryParams]:
        """Return session and form of a request, if it comes from a page of the study."""
        session = self.sessions.read(request)
        form = await read_form(request)
        if session is None or not self.sessions.is_genuine(session.nonce, form.get("token", "")):
            raise HTTPException(403)
        return session, form

    def check_rate(self, what: str, who: str, max_per_minute: int) -> None:
        """Respond with 429 if somebody does something too often.

        Parameters
        ----------
        what : str
            Kind of action.
        who : str
            Address or participant.
        max_per_minute : int
            Limit; 0 means no limit.
        """
        if max_per_minute > 0 and not self.rates.hit(RateLimitItemPerMinute(max_per_minute), what, who):
            raise HTTPException(429)

    async def health(self, _: Request) -> Response:
        """Report whether the database responds."""
        await self.run_in_thread(self.store.count_missing)
        return JSONResponse({"study": self.study.name, "ok": True})

    async def guard(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Add security headers to every response; after a failure, show a page and log the traceback only.

        The message of the failure could repeat what a participant entered.
        """
        try:
            response = await call_next(request)
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__))
            log.error("a page failed: %s\n%s", type(error).__name__, where)
            response = self.pages.error(500, {})
        response.headers.update(HEADERS)
        if not request.scope["path"].startswith("/static/"):  # browsers may cache style and script only
            response.headers["Cache-Control"] = "no-store"
        return response

    async def handle_http_error(self, _: Request, error: Exception) -> Response:
        """Render the page of an HTTP error."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        return self.pages.error(status, headers)

    async def welcome(self, request: Request) -> Response:
        """Show the consent page, or continue where the browser left off."""
        session = self.sessions.read(request)
        parameter = self.study.pool.parameter
        given = clean_pool_number(request.query_params.get(parameter, "")) if parameter else ""
        # Another number is another person on a shared computer.
        if session is not None and session.participant is not None and given in ("", session.pool_id):
            return RedirectResponse("/page", 303)
        if given and self.study.pool.signed:
            signature = request.query_params.get(SIGNATURE, "")
            if not is_signed(self.link_key, self.study, given, signature):
                return self.pages.message("no_number", 403)
        if given:
            # Move the number from the URL, which others can read, to the cookie.
            response: Response = RedirectResponse("/", 303)
            self.sessions.write(response, Session(pool_id=given))
            return response
        # This nonce identifies who begins; an attacker may have planted the one in the cookie.
        session = Session(pool_id=session.pool_id if session is not None else None)
        response = self.pages.consent(self.sessions.token(session.nonce))
        self.sessions.write(response, session)
        return response

    async def begin(self, request: Request) -> Response:
        """Add a participant who agreed to take part."""
        address = get_client_key(request)
        self.check_rate("begin", address, self.limits.begin)
        session, form = await self.read_genuine_form(request)
        if session.participant is not None:
            return RedirectResponse("/page", 303)
        if form.get("agree") != "yes":
            return self.pages.consent(self.sessions.token(session.nonce), missing=True)
        if self.study.pool.required and session.pool_id is None:
            return self.pages.message("no_number", 403)
        try:
            # A page that is sent twice adds one participant.
            identifier = self.sessions.participant(session.nonce)
            participant = await self.run_in_thread(self.begin_participant, address, session.pool_id, identifier)
        except _TooManyUnfinishedError as error:
            return self.pages.message("crowded", error.status_code)
        except DuplicateParticipantError:
            return self.pages.message("twice", 409)
        except UsageError as error:
            log.error("nobody can begin: %s", error)
            raise HTTPException(503) from error
        if participant is None:
            return self.pages.message("full")
        response = RedirectResponse("/page", 303)
        self.sessions.write(response, Session(participant.id, session.pool_id))
        return response

    def begin_participant(self, address: str, pool_id: str | None, identifier: str) -> Participant | None:
        """Add a participant, unless too many from this address are unfinished.

        Parameters
        ----------
        address : str
            Key of the client for rate limits.
        pool_id : str or None
            Identifier from the participant pool.
        identifier : str
            Identifier of the participant.
        """
        with self.beginning:  # concurrent requests could exceed the limit
            unfinished = self.store.unfinished()
            self.addresses = {who: where for who, where in self.addresses.items() if who in unfinished}
            others = sum(where == address for who, where in self.addresses.items() if who != identifier)
            if 0 < self.limits.unfinished <= others:
                log.warning(
                    "a participant could not begin: %d from their address are unfinished (--unfinished-limit %d)",
                    others,
                    self.limits.unfinished,
                )
                raise _TooManyUnfinishedError(429)
            participant = self.store.add_participant(pool_id, identifier)
            if participant is not None:
                self.addresses[participant.id] = address
            return participant

    async def show_page(self, request: Request) -> Response:
        """Show the current page of a participant."""
        session = self.sessions.read(request)
        if session is None or session.participant is None:
            return RedirectResponse("/", 303)
        participant = await self.run_in_thread(self.store.find, session.participant)
        if participant is None:
            raise HTTPException(404)
        if participant.status in ("abandoned", "deleted"):
            return self.pages.message("expired" if participant.status == "abandoned" else "deleted")
        return self.pages.step(participant, self.store.steps, self.sessions.token(session.nonce))

    async def submit_page(self, request: Request) -> Response:
        """Save a submitted page and go to the next one."""
        session, form = await self.read_genuine_form(request)
        if session.participant is None:
            return RedirectResponse("/", 303)
        self.check_rate("page", session.participant, self.limits.page)
        participant = await self.run_in_thread(self.store.find, session.participant)
        if participant is None:
            raise HTTPException(404)
        current = form.get("step") == str(participant.step)
        if participant.status != "active" or not current:
            return RedirectResponse("/page", 303)  # sent twice, or from an older window
        step = self.store.steps[participant.step]
        parsed = parse_step(self.study, participant, step, form)
        if parsed.missing is not None:
            token = self.sessions.token(session.nonce)
            return self.pages.step(participant, self.store.steps, token, missing=parsed.missing, entered=parsed.entered)
        try:
            await self.run_in_thread(self.store.save_step, participant.id, participant.step, parsed.answers)
        except QuotaFullError:
            return self.pages.message("full")
        return RedirectResponse("/page", 303)


async def read_form(request: Request) -> QueryParams:
    """Read the form of a request, which is encoded like a query, or respond with 400, 408, 413 or 415."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    body = b""
    try:
        async with asyncio.timeout(RECEIVE_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > _MAX_BODY_BYTES:
                    raise HTTPException(413, headers={"connection": "close"})
    except TimeoutError as error:
        raise HTTPException(408, headers={"connection": "close"}) from error
    except ClientDisconnect as error:
        raise HTTPException(400) from error
    return QueryParams(body)


def get_client_key(request: Request) -> str:
    """Return the key for rate limits of a client; it is never stored."""
    return get_rate_limit_key(request.client.host) if request.client else "unknown"


class ResearcherSite:
    """Handle the requests of the researcher, who logs in with a token."""

    def __init__(self, site: SurveySite, token: str) -> None:
        self.site, self.token = site, token

    def list_routes(self) -> list[Route]:
        """List the routes of the researcher's pages."""
        return [
            Route("/researcher", self.researcher),
            Route("/researcher/login", self.login, methods=["POST"]),
            Route("/researcher/logout", self.logout, methods=["POST"]),
            Route("/researcher/delete", self.delete, methods=["POST"]),
            Route("/researcher/export/{name}", self.download),
        ]

    async def researcher(self, request: Request) -> Response:
        """Show the progress, or the login page."""
        who = self.site.sessions.read_researcher(request)
        if who is None:
            session = self.site.sessions.read(request) or Session()
            response = self._show_login(session)
            self.site.sessions.write(response, session)
            return response
        done = request.query_params.get("deleted")
        progress = await self.site.run_in_thread(compute_progress, self.site.store)
        token = self.site.sessions.token(who)
        return self.site.pages.render("researcher.html", progress=progress, token=token, deleted=done)

    def _show_login(self, session: Session, *, wrong: bool = False) -> Response:
        token = self.site.sessions.token(session.nonce)
        return self.site.pages.render("login.html", 401 if wrong else 200, token=token, wrong=wrong)

    async def login(self, request: Request) -> Response:
        """Check the token and start a session."""
        self.site.check_rate("login", get_client_key(request), self.site.limits.login)
        session, form = await self.site.read_genuine_form(request)
        if not hmac.compare_digest(form.get("password", "").encode(), self.token.encode()):
            return self._show_login(session, wrong=True)
        response = RedirectResponse("/researcher", 303)
        self.site.sessions.write_researcher(response)
        return response

    async def logout(self, request: Request) -> Response:
        """End the session."""
        await self.read_researcher_form(request)
        response = RedirectResponse("/researcher", 303)
        self.site.sessions.forget_researcher(request, response)
        return response

    async def delete(self, request: Request) -> Response:
        """Delete a participant."""
        form = await self.read_researcher_form(request)
        identifier = strip_unprintable(form.get("identifier", ""))
        by: Identifier = "pool_id" if form.get("by") == "pool_id" else "code"
        found = identifier != "" and await self.site.run_in_thread(partial(self.site.store.delete, identifier, by=by))
        return RedirectResponse(f"/researcher?deleted={'yes' if found else 'no'}", 303)

    async def read_researcher_form(self, request: Request) -> QueryParams:
        """Read a form that a logged-in researcher sent."""
        who = self.site.sessions.read_researcher(request)
        form = await read_form(request)
        if who is None or not self.site.sessions.is_genuine(who, form.get("token", "")):
            raise HTTPException(403)
        return form

    async def download(self, request: Request) -> Response:
        """Send an export file."""
        name = request.path_params["name"]
        if self.site.sessions.read_researcher(request) is None or name not in export.EXPORT_FILES:
            raise HTTPException(404)
        try:
            content, kind = await self.site.run_in_thread(export.export_file, self.site.store, name)
        except MissingExtraError as error:
            log.warning("%s was not exported: %s", name, error)
            raise HTTPException(404) from error
        return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def make_app(
    store: Store,
    *,
    token: str | None,
    secure: bool = False,
    limits: RateLimits | None = None,
    link_key: str | None = None,
) -> Starlette:
    """Create the web application of a study.

    Parameters
    ----------
    store : Store
        The study and its data.
    token : str or None
        Password of the researcher. If None, the pages of the researcher are off.
    secure : bool
        If True, the study is served by https, and cookies require it.
    limits : RateLimits, optional
        Rate limits.
    link_key : str, optional
        Key that signs links, if the study requires signed links.

    Returns
    -------
    Starlette
    """
    if store.study.pool.signed and not link_key:
        raise UsageError("the study requires signed links (pool.signed), but there is no key to check them")
    sessions = Sessions(store.secret, secure=secure, token=token)
    site = SurveySite(store, sessions, limits or RateLimits(), link_key or "")
    routes = [
        Route("/", site.welcome),
        Route("/begin", site.begin, methods=["POST"]),
        Route("/page", site.show_page),
        Route("/page", site.submit_page, methods=["POST"]),
        Route("/health", site.health),
        *([] if token is None else ResearcherSite(site, token).list_routes()),
        Mount("/static", StaticFiles(directory=Path(__file__).with_name("static"))),
    ]
    handlers: dict[Any, Any] = {HTTPException: site.handle_http_error}
    guard = Middleware(BaseHTTPMiddleware, dispatch=site.guard)
    app = Starlette(routes=routes, middleware=[guard], exception_handlers=handlers)
    app.router.redirect_slashes = False  # a redirect would follow the Host header
    app.state.site = site
    return app
