"""The answers of a study as they are read back: those that count, and all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import sqlalchemy as sa

from biassay.survey.database import annotated, participants
from biassay.survey.study import Study

__all__ = ["Annotation", "all_annotations", "counted_annotations"]


@dataclass(frozen=True)
class Annotation:
    """One page with sliders. ``counts``: valid, not the repeated page, and of a group that was wanted."""

    participant: str
    place: int
    group: str
    ratings: list[int]
    seconds: float
    status: str
    reasons: tuple[str, ...]
    agreement: float | None
    repeat: bool
    counts: bool


def all_annotations(connection: sa.Connection, study: Study) -> list[Annotation]:
    """Every page, those of rejected and absent participants too, participants in the order in which they began."""
    rows = connection.execute(
        sa.select(
            annotated,
            participants.c.status,
            participants.c.counted,
            participants.c.reasons,
            participants.c.agreement,
        )
        .join(participants, participants.c.id == annotated.c.participant_id)
        .order_by(participants.c.created, participants.c.id, annotated.c.place)
    )
    return [_annotation(row, study) for row in rows]


def counted_annotations(connection: sa.Connection, study: Study) -> list[Annotation]:
    return [annotation for annotation in all_annotations(connection, study) if annotation.counts]


def _annotation(row: sa.Row[tuple[object, ...]], study: Study) -> Annotation:
    repeat = row.place >= study.groups_a_participant
    wanted = row.group_name in json.loads(row.counted)
    return Annotation(
        participant=row.participant_id,
        place=row.place,
        group=row.group_name,
        ratings=json.loads(row.ratings),
        seconds=row.seconds,
        status=row.status,
        reasons=_reasons(row, repeat=repeat, wanted=wanted),
        agreement=row.agreement,
        repeat=repeat,
        counts=row.status == "valid" and wanted and not repeat,
    )


def _reasons(row: sa.Row[tuple[object, ...]], *, repeat: bool, wanted: bool) -> tuple[str, ...]:
    """Why a page does not count; none if it does."""
    found = tuple(json.loads(row.reasons or "[]"))
    if row.status in ("active", "abandoned"):
        found += ("unfinished",)
    if repeat:
        found += ("repeated page",)
    elif not wanted:
        found += ("the group had enough",)
    return found
