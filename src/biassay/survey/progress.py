"""Select the annotations that count, and compute progress, pass rates and mean ratings."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from scipy import stats  # at the start of the site, so that the first page is fast

from biassay.stats.agreement_bounds import agreement_bounds
from biassay.survey.database import annotations_table, participants_table, places_table, read_transaction
from biassay.survey.store import Store
from biassay.survey.study import SurveyStudy

_CONFIDENCE = 0.95
_SCALE = 0.0, 100.0
"""Smallest and largest rating."""


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


def _make_annotation(row: sa.Row[tuple[object, ...]], study: SurveyStudy) -> Annotation:
    repeat = row.place >= study.groups_per_participant
    wanted = row.group_name in json.loads(row.counted)
    reasons = tuple(json.loads(row.reasons or "[]"))  # why the page does not count
    if row.status in ("active", "abandoned"):
        reasons += ("unfinished",)
    if repeat:
        reasons += ("repeated page",)
    elif not wanted:
        reasons += ("the group had enough",)
    return Annotation(
        participant=row.participant_id,
        place=row.place,
        group=row.group_name,
        ratings=json.loads(row.ratings),
        seconds=row.seconds,
        status=row.status,
        reasons=reasons,
        agreement=row.agreement,
        repeat=repeat,
        counts=row.status == "valid" and wanted and not repeat,
    )


@dataclass(frozen=True)
class MeanRating:
    """Mean rating with its interval; None if there are too few ratings."""

    pair: str
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class GroupProgress:
    """Annotations of a group: valid, held by participants, wanted; and its mean ratings."""

    group: str
    valid: int
    held: int
    target: int
    means: tuple[MeanRating, ...]


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study: participants by status, reasons for rejection, median minutes of those who finished."""

    groups: tuple[GroupProgress, ...]
    status: dict[str, int]
    reasons: dict[str, int]
    pass_rate: float | None
    minutes: float | None
    digest: str


def compute_progress(store: Store) -> StudyProgress:
    """Compute the progress of a study in one transaction."""
    store.release_abandoned()
    with read_transaction(store.engine) as connection:
        held = {row.group_name: row for row in connection.execute(sa.select(places_table))}
        people = connection.execute(
            sa.select(
                participants_table.c.status,
                participants_table.c.reasons,
                participants_table.c.created,
                participants_table.c.finished,
            )
        ).all()
        counted = [page for page in read_all_annotations(connection, store.study) if page.counts]
    names = store.study.pair_names
    ratings = {
        group: np.array([page.ratings for page in counted if page.group == group], dtype=float).reshape(-1, len(names))
        for group in store.study.groups
    }
    status = Counter(person.status for person in people)
    ended = status["valid"] + status["rejected"]
    taken = [(person.finished - person.created) / 60.0 for person in people if person.finished is not None]
    return StudyProgress(
        groups=tuple(
            GroupProgress(
                group,
                held[group].valid,
                held[group].held,
                store.study.annotations,
                tuple(map(_compute_mean, names, ratings[group].T)),
            )
            for group in store.study.groups
        ),
        status=dict(status),
        reasons=dict(Counter(reason for person in people if person.reasons for reason in json.loads(person.reasons))),
        pass_rate=status["valid"] / ended if ended else None,
        minutes=float(np.median(taken)) if taken else None,
        digest=store.study.digest,
    )


def _compute_mean(pair: str, ratings: NDArray[np.float64]) -> MeanRating:
    if len(ratings) < 2:
        return MeanRating(pair, float(ratings[0]) if len(ratings) else None, None, None)
    return MeanRating(pair, float(ratings.mean()), *_bound_mean(ratings))


def _bound_mean(ratings: NDArray[np.float64]) -> tuple[float, float]:
    """Return the t interval of the mean rating, within the scale; if all agree, that of `agreement_bounds`."""
    if not np.ptp(ratings):
        return agreement_bounds(ratings, within=_SCALE, null=sum(_SCALE) / 2.0, confidence=_CONFIDENCE).interval
    t = stats.t.ppf(0.5 + _CONFIDENCE / 2.0, len(ratings) - 1)
    mean, reach = ratings.mean(), t * ratings.std(ddof=1) / math.sqrt(len(ratings))
    return float(max(_SCALE[0], mean - reach)), float(min(_SCALE[1], mean + reach))
