"""Places of a study: how many annotations of each group were given, or are held for somebody who is about to give them.

All functions work within a transaction that has locked the places, so that counts cannot change under it.
"""

from __future__ import annotations

import json
from collections.abc import Collection

import sqlalchemy as sa

from biassay.survey.database import participants, places

__all__ = ["counts", "free_absent", "lock", "move"]


def lock(connection: sa.Connection) -> None:
    """Whoever holds, fills or frees places waits here for the others, and locks places before people.

    In PostgreSQL rows are locked in one order for all; SQLite has one writer at a time anyway.
    """
    connection.execute(sa.select(places.c.group_name).order_by(places.c.group_name).with_for_update()).all()


def counts(connection: sa.Connection) -> dict[str, int]:
    """How many annotations of each group are given or held."""
    return {row.group_name: row.valid + row.held for row in connection.execute(sa.select(places))}


def move(connection: sa.Connection, groups: Collection[str], *, held: int = 0, valid: int = 0) -> None:
    if not groups:
        return
    connection.execute(
        sa.update(places)
        .where(places.c.group_name.in_(list(groups)))
        .values(held=places.c.held + held, valid=places.c.valid + valid)
    )


def free_absent(connection: sa.Connection, before: float) -> None:
    """Release the places of those last seen ``before`` that time."""
    gone = connection.execute(
        sa.update(participants)
        .where(participants.c.status == "active", participants.c.seen < before)
        .values(status="abandoned")
        .returning(participants.c.counted)
    ).all()
    for row in gone:
        move(connection, json.loads(row.counted), held=-1)
