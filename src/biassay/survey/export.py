"""Export the answers of a study: ratings that `biassay stereotypes --human` reads, tables, facts about participants.

Annotators are numbered at export, so that numbers identify nobody. Unless the study links them, facts about
participants have other numbers in another order.
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
from biassay.io import escape_formula
from biassay.survey.database import demographics_table, participants_table, read_transaction
from biassay.survey.progress import Annotation, read_all_annotations
from biassay.survey.store import Store
from biassay.survey.study import SurveyStudy

EXPORT_FILES = ("ratings.json", "ratings.csv", "ratings.parquet", "all_pages.csv", "demographics.json", "study.json")
_MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
_COLUMNS = ("annotator", "group", "pair", "left", "right", "rating")


def export_file(store: Store, name: str) -> tuple[bytes, str]:
    """Return one of `EXPORT_FILES` and its media type."""
    with read_transaction(store.engine) as connection:
        return _make_file(connection, store.study, name), _MEDIA_TYPES[name.rpartition(".")[2]]


def export_all(store: Store) -> tuple[dict[str, bytes], list[str]]:
    """Return all files, read in one transaction, and notes on files that need a missing library."""
    made, left_out = {}, []
    with read_transaction(store.engine) as connection:
        for name in EXPORT_FILES:
            try:
                made[name] = _make_file(connection, store.study, name)
            except MissingExtraError as error:
                left_out.append(f"{name} was not written: {error}")
    return made, left_out


def _make_file(connection: sa.Connection, study: SurveyStudy, name: str) -> bytes:
    if name == "study.json":
        return study.definition.encode()
    if name == "demographics.json":
        return _dump_json(_read_counted_facts(connection, study))
    pages = read_all_annotations(connection, study)
    if name == "all_pages.csv":
        return _make_pages_csv(pages, study)
    counted = [page for page in pages if page.counts]
    if name == "ratings.json":
        linked = _read_all_facts(connection) if study.link_demographics else {}
        return _dump_json(_make_released_ratings(counted, study, linked))
    rows = _make_rows(counted, study)
    return _dump_csv([_COLUMNS, *rows]) if name == "ratings.csv" else _dump_parquet(rows)


def _number_people(pages: Sequence[Annotation], kind: str) -> dict[str, str]:
    people = dict.fromkeys(page.participant for page in pages)
    return {participant: f"{kind}{i}" for i, participant in enumerate(people)}


def _make_released_ratings(
    counted: Sequence[Annotation], study: SurveyStudy, linked: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """Return the released format: ratings as strings by annotator, group and pair, with linked demographics."""
    numbers = _number_people(counted, "annotator")
    made: dict[str, Any] = {}
    for annotation in counted:
        entry = made.setdefault(numbers[annotation.participant], {})
        if linked.get(annotation.participant):
            entry["demographics"] = linked[annotation.participant]
        entry[annotation.group] = dict(zip(study.pair_names, map(str, annotation.ratings), strict=True))
    return made


def _make_rows(counted: Sequence[Annotation], study: SurveyStudy) -> list[tuple[Any, ...]]:
    numbers = _number_people(counted, "annotator")
    return [
        (numbers[annotation.participant], annotation.group, name, *pair, rating)
        for annotation in counted
        for name, pair, rating in zip(study.pair_names, study.pairs, annotation.ratings, strict=True)
    ]


def _make_pages_csv(pages: Sequence[Annotation], study: SurveyStudy) -> bytes:
    """Return all pages, also of rejected participants, with the reasons why they do not count."""
    numbers = _number_people(pages, "participant")
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
    return _dump_csv([(*header, *study.pair_names), *rows])


def _read_all_facts(connection: sa.Connection) -> dict[str, dict[str, str]]:
    rows = connection.execute(
        sa.select(demographics_table)
        .join(participants_table, participants_table.c.id == demographics_table.c.participant_id)
        .where(participants_table.c.status == "valid")
        .order_by(participants_table.c.created, participants_table.c.id)
    )
    return {row.participant_id: json.loads(row.answers) for row in rows}


def _read_counted_facts(connection: sa.Connection, study: SurveyStudy) -> dict[str, dict[str, str]]:
    """Return facts about participants whose answers count; fields without an answer are empty."""
    people = list(_read_all_facts(connection).values())
    if not study.link_demographics:
        random.SystemRandom().shuffle(people)
    names = [asked.name for asked in study.demographics]
    start = 0 if study.link_demographics else 100_000  # beyond the numbers of ratings
    return {f"annotator{start + i}": {name: facts.get(name, "") for name in names} for i, facts in enumerate(people)}


def _dump_json(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def _dump_csv(rows: Sequence[Sequence[Any]]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(
        [[escape_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    )
    return buffer.getvalue().encode()


def _dump_parquet(rows: Sequence[tuple[Any, ...]]) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("Parquet", "contexts") from error
    schema = pa.schema([*((name, pa.string()) for name in _COLUMNS[:-1]), (_COLUMNS[-1], pa.int16())])
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([dict(zip(_COLUMNS, row, strict=True)) for row in rows], schema), buffer)
    return buffer.getvalue()
