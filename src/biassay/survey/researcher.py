"""The researcher's side of a study, behind a login: progress, exports, deletion."""

from __future__ import annotations

import hmac
from functools import partial

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from biassay.errors import MissingExtraError
from biassay.survey import export
from biassay.survey.links import printable
from biassay.survey.progress import progress_of
from biassay.survey.site import Site, address_of, form_of, log
from biassay.survey.store import Identifier

__all__ = ["Researcher"]


class Researcher:
    """Answers the researcher's requests; without a token there is no such side."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def researcher(self, request: Request) -> Response:
        if self.site.token is None:
            raise HTTPException(404)
        who = self.site.sessions.read_researcher(request)
        if who is None:
            session = self.site.sessions.read(request) or self.site.sessions.new()
            response = self.site.pages.login(self.site.sessions.token(session.nonce))
            self.site.sessions.write(response, session)
            return response
        done = request.query_params.get("deleted")
        progress = await self.site.work(progress_of, self.site.store)
        return self.site.pages.researcher(progress, self.site.sessions.token(who), deleted=done)

    async def login(self, request: Request) -> Response:
        if self.site.token is None:
            raise HTTPException(404)
        self.site.limit("login", address_of(request), self.site.limits.login)
        session, form = await self.site.genuine(request)
        given = form.get("password")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), self.site.token.encode()):
            return self.site.pages.login(self.site.sessions.token(session.nonce), wrong=True)
        response = RedirectResponse("/researcher", 303)
        self.site.sessions.write_researcher(response)
        return response

    async def logout(self, request: Request) -> Response:
        await self.by_researcher(request)
        response = RedirectResponse("/researcher", 303)
        self.site.sessions.forget_researcher(request, response)
        return response

    async def delete(self, request: Request) -> Response:
        form = await self.by_researcher(request)
        given = form.get("identifier")
        identifier = printable(given) if isinstance(given, str) else ""
        by: Identifier = "pool_id" if form.get("by") == "pool_id" else "code"
        found = identifier != "" and await self.site.work(partial(self.site.store.delete, identifier, by=by))
        return RedirectResponse(f"/researcher?deleted={'yes' if found else 'no'}", 303)

    async def by_researcher(self, request: Request) -> FormData:
        if self.site.token is None:
            raise HTTPException(404)
        who = self.site.sessions.read_researcher(request)
        form = await form_of(request)
        if who is None or not self.site.sessions.is_genuine(who, form.get("token")):
            raise HTTPException(403)
        return form

    async def exported(self, request: Request) -> Response:
        if self.site.token is None or self.site.sessions.read_researcher(request) is None:
            raise HTTPException(404)
        name = request.path_params["name"]
        if name not in export.FILES:
            raise HTTPException(404)
        try:
            content, kind = await self.site.work(export.exported, self.site.store, name)
        except MissingExtraError as error:
            log.warning("%s was not exported: %s", name, error)
            raise HTTPException(404) from error
        return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
