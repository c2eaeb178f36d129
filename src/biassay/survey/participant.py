"""Where a participant of a study stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["AllTaken", "Participant", "TakesPartAlready", "participant_of"]

Status = Literal["active", "valid", "rejected", "abandoned", "deleted"]


class TakesPartAlready(Exception):  # noqa: N818
    """Somebody with this participant number has begun."""


class AllTaken(Exception):  # noqa: N818
    """All places were taken after somebody began."""


@dataclass(frozen=True)
class Participant:
    """Where a participant stands. ``asked`` are the groups in order, the repeated one not among them twice.

    It is empty until they come to the first page that is rated.
    """

    id: str
    status: Status
    step: int
    asked: tuple[str, ...]
    repeated: int
    code: str
    seen: float

    def group(self, place: int) -> str:
        """The group of a page with sliders; the page after the last repeats one."""
        return self.asked[place] if place < len(self.asked) else self.asked[self.repeated]


def participant_of(row: Mapping[str, Any]) -> Participant:
    """From a row of the database."""
    return Participant(
        id=row["id"],
        status=row["status"],
        step=row["step"],
        asked=tuple(json.loads(row["asked"])),
        repeated=row["repeated"],
        code=row["code"],
        seen=row["seen"],
    )
