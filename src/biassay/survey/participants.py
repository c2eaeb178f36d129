"""Participants and the steps of a study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from biassay.survey.study import SurveyStudy

Status = Literal["active", "valid", "rejected", "abandoned", "deleted"]


class DuplicateParticipantError(Exception):
    """A participant with this number of the pool exists already."""


class QuotaFullError(Exception):
    """The quota of every group was full when a participant reached the first one."""


@dataclass(frozen=True)
class Participant:
    """State of a participant. `asked` lists their groups in order, and is empty before the first rated page."""

    id: str
    status: Status
    step: int
    asked: tuple[str, ...]
    repeated: int
    code: str
    seen: float

    def group(self, place: int) -> str:
        """Return the group of a page with sliders; the last page repeats one."""
        return self.asked[place] if place < len(self.asked) else self.asked[self.repeated]


def make_participant(row: Mapping[str, Any]) -> Participant:
    """Create a participant from a row of the database."""
    return Participant(
        id=row["id"],
        status=row["status"],
        step=row["step"],
        asked=tuple(json.loads(row["asked"])),
        repeated=row["repeated"],
        code=row["code"],
        seen=row["seen"],
    )


StepKind = Literal["instructions", "group", "which_group", "high_low", "demographics", "done"]


@dataclass(frozen=True)
class Step:
    """One page. `place` is the index among the pages with sliders; the last of them repeats an earlier one."""

    kind: StepKind
    place: int = -1


def list_steps(study: SurveyStudy) -> tuple[Step, ...]:
    """List the steps after consent."""
    steps = [Step("instructions")]
    for place in range(study.groups_per_participant + 1):
        steps.append(Step("group", place))
        if place == 0 and study.rules.which_group:
            steps.append(Step("which_group"))
        if place == 1 and study.rules.high_low:
            steps.append(Step("high_low"))
    if study.demographics:
        steps.append(Step("demographics"))
    return (*steps, Step("done"))
