"""The pages of a study, from templates; whatever they are given is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from starlette.responses import HTMLResponse

from biassay.survey.flow import Step
from biassay.survey.forms import group_choices, traits_of
from biassay.survey.participant import Participant
from biassay.survey.progress import Progress
from biassay.survey.study import Study

__all__ = ["Pages"]

_ERRORS = {
    400: "bad_request",
    403: "forbidden",
    404: "not_found",
    405: "not_found",
    429: "too_many",
    503: "unavailable",
}


class Pages:
    """Knows the study and its texts."""

    def __init__(self, study: Study) -> None:
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
        study = self.study
        values = {
            "society": study.society,
            "number": study.groups_a_participant,
            "pairs": len(study.pairs),
            "minutes": study.minutes,
            "age": study.minimum_age,
        }
        return self._made("consent.html", 400 if missing else 200, token=token, values=values, missing=missing)

    def step(
        self,
        participant: Participant,
        steps: Sequence[Step],
        token: str,
        *,
        missing: str | None = None,
        shown: Mapping[str, Any] | None = None,
    ) -> HTMLResponse:
        """The page of the step that a participant has come to."""
        step = steps[participant.step]
        return self._made(
            f"{step.kind}.html",
            400 if missing else 200,
            participant=participant,
            group=participant.group(step.place) if step.place >= 0 else "",
            token=token,
            page=participant.step + 1,
            pages=len(steps) - 1,
            missing=missing,
            shown=shown or {},
            choices=group_choices(self.study, participant) if step.kind == "which_group" else [],
            traits=traits_of(self.study),
            code=self.study.pool.completion_code or participant.code,
        )

    def message(self, name: str, status: int = 200) -> HTMLResponse:
        minutes = f"{self.study.session_minutes:g}"
        return self._made("message.html", status, name=name, values={"minutes": minutes})

    def error(self, status: int, headers: Mapping[str, str]) -> HTMLResponse:
        name = _ERRORS.get(status, "unavailable" if status >= 500 else "bad_request")
        return self._made("error.html", status, headers=headers, name=name)

    def login(self, token: str, *, wrong: bool = False) -> HTMLResponse:
        return self._made("login.html", 401 if wrong else 200, token=token, wrong=wrong)

    def researcher(self, progress: Progress, token: str, *, deleted: str | None) -> HTMLResponse:
        return self._made("researcher.html", 200, progress=progress, token=token, deleted=deleted)

    def _made(
        self, template: str, status: int, headers: Mapping[str, str] | None = None, **content: Any
    ) -> HTMLResponse:
        return HTMLResponse(self.templates.get_template(template).render(content), status, headers)
