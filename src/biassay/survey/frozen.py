"""A study in its database: it is frozen once somebody has taken part."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from biassay.errors import UsageError
from biassay.survey.database import participants, places, studies, take_turn, writing
from biassay.survey.places import lock
from biassay.survey.study import Study

__all__ = ["prepare"]


def prepare(engine: sa.Engine, study: Study, now: float) -> str:
    """Put a study into its database, or check that it is the one there; returns the key that signs cookies."""
    with writing(engine) as connection:
        take_turn(connection)
        lock(connection)  # nobody begins meanwhile
        known = connection.execute(sa.select(studies)).mappings().first()
        if known is not None and known["digest"] == study.digest:
            connection.execute(sa.update(studies).values(definition=study.definition))
            return str(known["secret"])
        kept = sa.select(sa.func.count()).select_from(participants).where(participants.c.status != "deleted")
        if known is not None and connection.execute(kept).scalar_one():
            raise UsageError(
                f"the database holds data of the study {known['name']!r} as it was ({known['digest']}), and the "
                f"file now says something else ({study.digest}); a study is frozen once somebody has taken "
                "part: take the old file, or a new database"
            )
        secret = str(known["secret"]) if known is not None else secrets.token_hex(32)
        for table in (participants, studies, places):  # of participants only empty rows of the deleted are left
            connection.execute(sa.delete(table))
        connection.execute(
            sa.insert(studies).values(
                id=1,
                name=study.name,
                digest=study.digest,
                definition=study.definition,
                secret=secret,
                created=now,
            )
        )
        connection.execute(sa.insert(places), [{"group_name": group, "valid": 0, "held": 0} for group in study.groups])
        return secret
