"""The progress of a study: what each group has, how many pass, and the means so far."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from scipy import stats  # when the site starts, and not when the first page is asked for

from biassay.survey.answers import counted_annotations
from biassay.survey.database import participants, places, reading
from biassay.survey.store import Store

__all__ = ["GroupProgress", "Mean", "Progress", "progress_of"]

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Mean:
    """A mean rating and its interval by Student's t; None: too few ratings for it."""

    pair: str
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class GroupProgress:
    group: str
    valid: int
    held: int
    target: int
    means: tuple[Mean, ...]


@dataclass(frozen=True)
class Progress:
    """``status`` counts participants, ``reasons`` why some were rejected; ``minutes`` is the median of who ended."""

    groups: tuple[GroupProgress, ...]
    status: dict[str, int]
    reasons: dict[str, int]
    pass_rate: float | None
    minutes: float | None
    digest: str


def progress_of(store: Store) -> Progress:
    """Everything, from one look at the database."""
    store.give_up_the_absent()
    with reading(store.engine) as connection:
        held = {row.group_name: row for row in connection.execute(sa.select(places))}
        people = connection.execute(
            sa.select(participants.c.status, participants.c.reasons, participants.c.created, participants.c.finished)
        ).all()
        counted = counted_annotations(connection, store.study)
    ratings: dict[str, list[list[int]]] = {group: [] for group in store.study.groups}
    for annotation in counted:
        ratings[annotation.group].append(annotation.ratings)
    status = Counter(person.status for person in people)
    ended = status["valid"] + status["rejected"]
    taken = [(person.finished - person.created) / 60.0 for person in people if person.finished is not None]
    return Progress(
        groups=tuple(
            GroupProgress(
                group,
                held[group].valid,
                held[group].held,
                store.study.annotations,
                _means(store.study.pair_names, ratings[group]),
            )
            for group in store.study.groups
        ),
        status=dict(status),
        reasons=dict(Counter(reason for person in people if person.reasons for reason in json.loads(person.reasons))),
        pass_rate=status["valid"] / ended if ended else None,
        minutes=float(np.median(taken)) if taken else None,
        digest=store.study.digest,
    )


def _means(names: tuple[str, ...], ratings: list[list[int]]) -> tuple[Mean, ...]:
    if not ratings:
        return tuple(Mean(name, None, None, None) for name in names)
    table = np.array(ratings, dtype=float)
    count = len(table)
    means = table.mean(axis=0)
    if count < 2:
        return tuple(Mean(name, float(mean), None, None) for name, mean in zip(names, means, strict=True))
    reach = stats.t.ppf(0.5 + _CONFIDENCE / 2.0, count - 1) * table.std(axis=0, ddof=1) / math.sqrt(count)
    return tuple(
        Mean(name, float(mean), float(max(0.0, mean - r)), float(min(100.0, mean + r)))
        for name, mean, r in zip(names, means, reach, strict=True)
    )
