"""Read annotations from the database, and decide which of them count."""

from __future__ import annotations

import json
from dataclasses import dataclass

import sqlalchemy as sa

from biassay.survey.database import annotations_table, participants_table
from biassay.survey.study import SurveyStudy


@dataclass(frozen=True)
class Annotation:
    """One page with sliders. It counts if it is valid, not repeated, and of a group that needed annotations."""

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


def read_all_annotations(connection: sa.Connection, study: SurveyStudy) -> list[Annotation]:
    """Read all pages, also of rejected and unfinished participants, in the order in which they began."""
    rows = connection.execute(
        sa.select(
            annotations_table,
            participants_table.c.status,
            participants_table.c.counted,
            participants_table.c.reasons,
            participants_table.c.agreement,
        )
        .join(participants_table, participants_table.c.id == annotations_table.c.participant_id)
        .order_by(participants_table.c.created, participants_table.c.id, annotations_table.c.place)
    )
    return [_make_annotation(row, study) for row in rows]


def read_counted_annotations(connection: sa.Connection, study: SurveyStudy) -> list[Annotation]:
    """Read the pages that count towards the target of a group."""
    return [annotation for annotation in read_all_annotations(connection, study) if annotation.counts]


def _make_annotation(row: sa.Row[tuple[object, ...]], study: SurveyStudy) -> Annotation:
    repeat = row.place >= study.groups_per_participant
    wanted = row.group_name in json.loads(row.counted)
    return Annotation(
        participant=row.participant_id,
        place=row.place,
        group=row.group_name,
        ratings=json.loads(row.ratings),
        seconds=row.seconds,
        status=row.status,
        reasons=_find_reasons(row, repeat=repeat, wanted=wanted),
        agreement=row.agreement,
        repeat=repeat,
        counts=row.status == "valid" and wanted and not repeat,
    )


def _find_reasons(row: sa.Row[tuple[object, ...]], *, repeat: bool, wanted: bool) -> tuple[str, ...]:
    """Return the reasons why a page does not count."""
    reasons = tuple(json.loads(row.reasons or "[]"))
    if row.status in ("active", "abandoned"):
        reasons += ("unfinished",)
    if repeat:
        reasons += ("repeated page",)
    elif not wanted:
        reasons += ("the group had enough",)
    return reasons
