"""A study's answers as files: the released shape that `biassay stereotypes --human` reads, tables, facts about people.

Numbers of annotators are made at export and lead back to nobody. Unless the study says so, facts about people have
other numbers, in another order.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from biassay.errors import MissingExtraError
from biassay.files import harmless_cell
from biassay.survey.answers import Annotation, all_annotations, counted_annotations
from biassay.survey.database import demographics, participants, reading
from biassay.survey.store import Store
from biassay.survey.study import Study

__all__ = ["FILES", "exported", "exported_all"]

FILES = ("ratings.json", "ratings.csv", "ratings.parquet", "all_pages.csv", "demographics.json", "study.json")
_KINDS = {"json": "application/json", "csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_COLUMNS = ("annotator", "group", "pair", "left", "right", "rating")


def exported(store: Store, name: str) -> tuple[bytes, str]:
    """One of `FILES`, and its kind."""
    with reading(store.engine) as connection:
        return _made(connection, store.study, name), _KINDS[name.rpartition(".")[2]]


def exported_all(store: Store) -> tuple[dict[str, bytes], list[str]]:
    """All files, from one look at the database so that they agree, and what was left out for lack of a library."""
    made, left_out = {}, []
    with reading(store.engine) as connection:
        for name in FILES:
            try:
                made[name] = _made(connection, store.study, name)
            except MissingExtraError as error:
                left_out.append(f"{name} was left out: {error}")
    return made, left_out


def _made(connection: sa.Connection, study: Study, name: str) -> bytes:
    if name == "study.json":
        return study.definition.encode()
    if name == "demographics.json":
        return _json(_facts(connection, study))
    if name == "all_pages.csv":
        return _pages(all_annotations(connection, study), study)
    counted = counted_annotations(connection, study)
    if name == "ratings.json":
        linked = _facts_by_participant(connection) if study.link_demographics else {}
        return _json(_released(counted, study, linked))
    rows = _rows(counted, study)
    return _csv([_COLUMNS, *rows]) if name == "ratings.csv" else _parquet(rows)


def _numbers(annotations_: Sequence[Annotation]) -> dict[str, str]:
    people = dict.fromkeys(annotation.participant for annotation in annotations_)
    return {participant: f"annotator{i}" for i, participant in enumerate(people)}


def _released(counted: Sequence[Annotation], study: Study, linked: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Annotator -> group -> pair -> rating as a text; with ``demographics`` beside the groups if they may be linked."""
    numbers = _numbers(counted)
    made: dict[str, Any] = {}
    for annotation in counted:
        own = made.setdefault(numbers[annotation.participant], {})
        if linked.get(annotation.participant):
            own["demographics"] = linked[annotation.participant]
        own[annotation.group] = dict(zip(study.pair_names, map(str, annotation.ratings), strict=True))
    return made


def _rows(counted: Sequence[Annotation], study: Study) -> list[tuple[Any, ...]]:
    numbers = _numbers(counted)
    return [
        (numbers[annotation.participant], annotation.group, name, *pair, rating)
        for annotation in counted
        for name, pair, rating in zip(study.pair_names, study.pairs, annotation.ratings, strict=True)
    ]


def _pages(pages: Sequence[Annotation], study: Study) -> bytes:
    """Everything that was said, the rejected too, with why it does not count."""
    numbers = {person: f"participant{i}" for i, person in enumerate(dict.fromkeys(page.participant for page in pages))}
    header = ("participant", "place", "group", "repeat", "status", "counts", "reasons", "self_agreement", "seconds")
    rows = [
        (
            numbers[page.participant],
            page.place + 1,
            page.group,
            str(page.repeat).lower(),
            page.status,
            str(page.counts).lower(),
            "; ".join(page.reasons),
            "" if page.agreement is None else page.agreement,
            round(page.seconds, 3),
            *page.ratings,
        )
        for page in pages
    ]
    return _csv([(*header, *study.pair_names), *rows])


def _facts_by_participant(connection: sa.Connection) -> dict[str, dict[str, str]]:
    rows = connection.execute(
        sa.select(demographics)
        .join(participants, participants.c.id == demographics.c.participant_id)
        .where(participants.c.status == "valid")
        .order_by(participants.c.created, participants.c.id)
    )
    return {row.participant_id: json.loads(row.answers) for row in rows}


def _facts(connection: sa.Connection, study: Study) -> dict[str, dict[str, str]]:
    """Facts about people whose answers count. Every field is there, empty if it was left out."""
    people = list(_facts_by_participant(connection).values())
    if not study.link_demographics:
        random.SystemRandom().shuffle(people)
    names = [asked.name for asked in study.demographics]
    start = 0 if study.link_demographics else 100_000  # numbers that no annotator of ratings has
    return {f"annotator{start + i}": {name: facts.get(name, "") for name in names} for i, facts in enumerate(people)}


def _json(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(
        [[harmless_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    )
    return buffer.getvalue().encode()


def _parquet(rows: Sequence[tuple[Any, ...]]) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("Parquet", "contexts") from error
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_COLUMNS)
    kinds = [pa.string()] * 5 + [pa.int16()]
    table = pa.table(
        {name: pa.array(list(values), kind) for name, values, kind in zip(_COLUMNS, columns, kinds, strict=True)}
    )
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()
