"""Tables, connections and transactions of the survey database."""

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

_SCHEMA_LOCK = 0x62696173  # any number, the same for all processes
_BUSY_SECONDS = 30  # seconds to wait for another process

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)
studies_table = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("secret", sa.Text, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
)
places_table = sa.Table(
    "places",
    metadata,
    sa.Column("group_name", sa.Text, primary_key=True),
    sa.Column("valid", sa.Integer, nullable=False),
    sa.Column("held", sa.Integer, nullable=False),
)
participants_table = sa.Table(
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
annotations_table = sa.Table(
    "annotations",
    metadata,
    sa.Column("participant_id", sa.Text, sa.ForeignKey("participants.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("group_name", sa.Text, nullable=False),
    sa.Column("ratings", sa.Text, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("saved", sa.Float, nullable=False),
)
demographics_table = sa.Table(
    "demographics",
    metadata,
    sa.Column("participant_id", sa.Text, sa.ForeignKey("participants.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("answers", sa.Text, nullable=False),
)


def open_database(url: str | sa.URL) -> sa.Engine:
    """Connect to a database and bring its tables up to date."""
    parsed = _parse_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(f"database {parsed.get_backend_name()!r} is not supported; use SQLite or PostgreSQL")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise UsageError(
            "an in-memory database loses the study when the process ends; expected sqlite:///FILE or postgresql://..."
        )
    engine = sa.create_engine(
        parsed, pool_size=8, max_overflow=8, pool_timeout=60, pool_pre_ping=True, hide_parameters=True
    )
    if parsed.get_backend_name() == "sqlite":
        _restrict_access(parsed.database or "")
        event.listen(engine, "connect", _configure_connection)
        event.listen(engine, "begin", _begin_transaction)
    try:
        _migrate(engine)
    except (sa.exc.DBAPIError, CommandError) as error:
        engine.dispose()
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        named = redact_url(parsed.render_as_string(hide_password=True))
        message = redact(redact_url(reason), str(parsed.password or ""), *_find_passwords(parsed))
        raise UsageError(f"cannot use the database {named}: {message}") from None
    return engine


def _parse_url(url: str | sa.URL) -> sa.URL:
    try:
        return sa.engine.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        shown = re.sub(r":[^:@]*@", ":[secret]@", redact_url(str(url)))  # also URLs without a scheme
        raise UsageError(
            f"{shown!r} is not the URL of a database; expected postgresql://... or sqlite:///FILE"
        ) from None


def _find_passwords(url: sa.URL) -> list[str]:
    """Return the secrets among the parameters of a URL."""
    named = {name: value for name, value in url.query.items() if "pass" in name or "key" in name}
    return [text for value in named.values() for text in ([value] if isinstance(value, str) else value)]


def is_sqlite(engine: sa.Engine) -> bool:
    """Return whether a database is SQLite."""
    return engine.dialect.name == "sqlite"


def clear_write_ahead_log(engine: sa.Engine) -> None:
    """Remove deleted data from SQLite's write-ahead log too; a concurrent reader may delay that."""
    if is_sqlite(engine):
        with closing(engine.raw_connection()) as connection:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _restrict_access(file: str) -> None:
    """Create the file so that only its owner can read it, because it holds the key of the cookies."""
    if file and not file.startswith((":", "file:")):
        with suppress(OSError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _configure_connection(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # `_begin_transaction` begins transactions, not the driver
    connection.execute(f"PRAGMA busy_timeout={_BUSY_SECONDS * 1000}")
    _enable_write_ahead(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _enable_write_ahead(connection: Any) -> None:
    """Switch to a write-ahead log; retry if another process does the same, because SQLite does not wait."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


def _begin_transaction(connection: sa.Connection) -> None:
    """Begin a transaction; one that writes locks at once, so that it never fails half-way."""
    immediate = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


@contextmanager
def write_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that is committed as a whole or not at all."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


def lock_schema(connection: sa.Connection) -> None:
    """Let one process at a time create tables or change the study; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK)))


@contextmanager
def read_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that reads everything at the same moment."""
    kept = {} if is_sqlite(engine) else {"isolation_level": "REPEATABLE READ"}
    with engine.connect().execution_options(**kept) as connection, connection.begin():
        yield connection


def _migrate(engine: sa.Engine) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    with write_transaction(engine) as connection:
        lock_schema(connection)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
