"""The database of a study: its tables, how they are made, and how it is written to."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.util import CommandError
from sqlalchemy import event

from biassay.errors import UsageError
from biassay.redaction import redact, redact_url

__all__ = [
    "annotated",
    "demographics",
    "is_sqlite",
    "metadata",
    "open_database",
    "participants",
    "places",
    "reading",
    "studies",
    "take_turn",
    "wipe",
    "writing",
]

_TURN = 0x62696173  # any number, the same for all processes
_PATIENCE = 30  # seconds to wait for another process

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("secret", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
)
places = sa.Table(
    "places",
    metadata,
    sa.Column("group_name", sa.Text, primary_key=True),
    sa.Column("valid", sa.Integer, nullable=False),
    sa.Column("held", sa.Integer, nullable=False),
)
participants = sa.Table(
    "participants",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("status", sa.Text, nullable=False, index=True),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("asked", sa.Text, nullable=False),
    sa.Column("counted", sa.Text, nullable=False),
    sa.Column("repeated", sa.Integer, nullable=False),
    sa.Column("pool_id", sa.Text, unique=True),
    sa.Column("code", sa.Text, nullable=False, unique=True),
    sa.Column("which_group", sa.Text),
    sa.Column("high", sa.Text),
    sa.Column("low", sa.Text),
    sa.Column("agreement", sa.Float),
    sa.Column("reasons", sa.Text),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("finished", sa.Float),
)
annotated = sa.Table(
    "annotations",
    metadata,
    sa.Column("participant_id", sa.Text, sa.ForeignKey("participants.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("group_name", sa.Text, nullable=False),
    sa.Column("ratings", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("saved", sa.Float, nullable=False),
)
demographics = sa.Table(
    "demographics",
    metadata,
    sa.Column("participant_id", sa.Text, sa.ForeignKey("participants.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("answers", sa.Text, nullable=False),
)


def open_database(url: str | sa.URL) -> sa.Engine:
    """Connect to a database and bring its tables up to date."""
    made = _address(url)
    if made.drivername in ("postgresql", "postgres"):
        made = made.set(drivername="postgresql+psycopg")
    if made.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(f"a database of kind {made.get_backend_name()!r} is not supported; use SQLite or PostgreSQL")
    if made.get_backend_name() == "sqlite" and made.database in (None, "", ":memory:"):
        raise UsageError("a study in memory is lost with the process; expected sqlite:///FILE or postgresql://...")
    engine = sa.create_engine(
        made, pool_size=8, max_overflow=8, pool_timeout=60, pool_pre_ping=True, hide_parameters=True
    )
    if made.get_backend_name() == "sqlite":
        _own(made.database or "")
        event.listen(engine, "connect", _prepared)
        event.listen(engine, "begin", _begun)
    try:
        _migrated(engine)
    except (sa.exc.DBAPIError, CommandError) as error:
        engine.dispose()
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        named = redact_url(made.render_as_string(hide_password=True))
        said = redact(redact_url(reason), str(made.password or ""), *_passwords(made))
        raise UsageError(f"the database {named} cannot be used: {said}") from None
    return engine


def _address(url: str | sa.URL) -> sa.URL:
    try:
        return sa.engine.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        shown = re.sub(r":[^:@]*@", ":[secret]@", redact_url(str(url)))  # an address without a scheme, too
        raise UsageError(
            f"{shown!r} is not the address of a database; expected postgresql://... or sqlite:///FILE"
        ) from None


def _passwords(url: sa.URL) -> list[str]:
    """Secrets among the parameters of an address."""
    named = {name: value for name, value in url.query.items() if "pass" in name or "key" in name}
    return [text for value in named.values() for text in ([value] if isinstance(value, str) else value)]


def is_sqlite(engine: sa.Engine) -> bool:
    return engine.dialect.name == "sqlite"


def wipe(engine: sa.Engine) -> None:
    """Remove deleted data from SQLite's write-ahead log too; a concurrent reader may delay that."""
    if is_sqlite(engine):
        with closing(engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _own(file: str) -> None:
    """Nobody else on the machine may read a new database: it holds the key of the cookies. The driver sets no mode."""
    if file and not file.startswith((":", "file:")):
        with suppress(OSError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _prepared(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by `_begun`, and not by the driver
    connection.execute(f"PRAGMA busy_timeout={_PATIENCE * 1000}")
    _write_ahead(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _write_ahead(connection: Any) -> None:
    """Keep a write-ahead log. SQLite does not wait for another process that is just about to do the same."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


def _begun(connection: sa.Connection) -> None:
    """A transaction that will write locks at once, so that it never fails half-way because of another."""
    immediate = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction, kept whole or not at all."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


def take_turn(connection: sa.Connection) -> None:
    """Let one process at a time make tables or change the study; in SQLite one at a time writes anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_TURN)))


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction: everything read in it is from the same moment."""
    kept = {} if is_sqlite(engine) else {"isolation_level": "REPEATABLE READ"}
    with engine.connect().execution_options(**kept) as connection, connection.begin():
        yield connection


def _migrated(engine: sa.Engine) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    with writing(engine) as connection:
        take_turn(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
