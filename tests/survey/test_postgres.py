"""Databases themselves: tables and migrations, a killed writer, addresses of no use; in SQLite and PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from biassay.errors import UsageError
from biassay.survey.database import annotations_table, is_sqlite, metadata, open_database, participants_table

from .people import Clock, Person, check_counts, counters, database, fill, go_on, opened, rows, small_study, take_part

pytestmark = pytest.mark.extras


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def postgres_url(tmp_path: Path) -> Iterator[str]:
    with database("postgresql", tmp_path) as made:
        yield made


# Tables


def test_migrations_make_the_tables_that_the_code_uses(url: str) -> None:
    engine = open_database(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert set(sa.inspect(connection).get_table_names()) == {*metadata.tables, "alembic_version"}
    engine.dispose()


def test_the_unique_and_foreign_keys_are_in_the_database(url: str) -> None:
    engine = open_database(url)
    look = sa.inspect(engine)
    unique = {tuple(each["column_names"]) for each in look.get_unique_constraints("participants")}
    assert unique == {("pool_id",), ("code",)}
    for table in ("annotations", "demographics"):
        (key,) = look.get_foreign_keys(table)
        assert (key["constrained_columns"], key["referred_table"]) == (["participant_id"], "participants")
        assert key["options"] == {"ondelete": "CASCADE"}
    assert look.get_pk_constraint("annotations")["constrained_columns"] == ["participant_id", "place"]
    engine.dispose()


def test_every_migration_can_be_taken_back(url: str) -> None:
    from alembic import command
    from alembic.config import Config

    import biassay.survey.database as module

    engine = open_database(url)
    config = Config()
    config.set_main_option("script_location", str(Path(module.__file__).with_name("migrations")))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()
    with opened(url, small_study()) as store:
        assert fill(store) == 4


def test_sqlite_waits_for_the_disk_and_for_other_writers(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'a.sqlite'}")
    assert is_sqlite(engine)
    with engine.connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


# Addresses that cannot be used


def refused(url: str) -> str:
    with pytest.raises(UsageError) as error:
        open_database(url)
    return str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "",
        "postgresql",
        "://",
        "postgresql://u:geheim@h:port/db",
        "postgresql://u:ge:geheim@h:port/db",
    ],
)
def test_nonsense_is_no_address(url: str) -> None:
    said = refused(url)
    assert "postgresql://" in said
    assert "sqlite:///FILE" in said
    assert "geheim" not in said


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_that_would_be_forgotten_is_refused(url: str) -> None:
    assert "FILE" in refused(url)


def test_files_that_are_no_databases(tmp_path: Path) -> None:
    assert "cannot use the database" in refused(f"sqlite:///{tmp_path / 'none' / 'a.sqlite'}")
    assert "cannot use the database" in refused(f"sqlite:///{tmp_path}")
    text = tmp_path / "notes.txt"
    text.write_text("These are notes and no database. " * 100)
    said = refused(f"sqlite:///{text}")
    assert "cannot use the database" in said
    assert "notes.txt" in said
    assert text.read_text() == "These are notes and no database. " * 100


def test_a_database_of_something_else_is_left_alone(url: str) -> None:
    """A table of the same name is there already."""
    address = url.replace("postgresql://", "postgresql+psycopg://")
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE participants (shoe INTEGER)"))
    assert "cannot use the database" in refused(url)
    assert [column["name"] for column in sa.inspect(engine).get_columns("participants")] == ["shoe"]
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    assert "cannot use the database" in refused(url)


@pytest.mark.parametrize(
    "address",
    [
        "someone:geheim@127.0.0.1:1/study",
        "x:geheim/geheim@127.0.0.1:1/study",
        "127.0.0.1:1/study?user=x&password=geheim",
    ],
)
def test_an_unreachable_server_is_named_and_its_password_is_not(address: str) -> None:
    said = refused(f"postgresql://{address}")
    assert "127.0.0.1" in said
    assert "cannot use the database" in said
    assert "geheim" not in said


def test_a_database_that_the_server_does_not_have(postgres_url: str) -> None:
    said = refused(postgres_url.replace("/study", "/nostudy"))
    assert "does not exist" in said


# Writers in each other's way, step by step (PostgreSQL, where they are not kept apart by the file)


@pytest.mark.parametrize(
    ("step", "paused_after", "seconds"), [(1, "INSERT INTO annotations", 10), (-2, "UPDATE participants", 2)]
)
def test_a_deletion_and_a_page_that_is_being_written_leave_nothing_and_do_not_wait_for_ever(
    postgres_url: str, step: int, paused_after: str, seconds: int
) -> None:
    """A page is written and not yet confirmed, or the last page is about to fill places, when the deletion begins."""
    study = small_study()
    with opened(postgres_url, study) as store, opened(postgres_url, study) as other:
        someone = store.add_participant()
        assert someone is not None
        step %= len(store.steps)
        someone = go_on(store, someone, Person(), until=step)
        paused, go = threading.Event(), threading.Event()

        def pause(_: Any, __: Any, statement: str, *___: object) -> None:
            if statement.startswith(paused_after):
                paused.set()
                go.wait(seconds)

        sa.event.listen(store.engine, "after_cursor_execute", pause)
        with ThreadPoolExecutor(2) as threads:
            answering = threads.submit(store.save_step, someone.id, step, Person().given(store, someone, step))
            assert paused.wait(10)
            deleting = threads.submit(other.delete, someone.code)
            time.sleep(0.3)  # the deletion has come as far as it can
            go.set()
            assert answering.result(20)
            assert deleting.result(20)
        assert store.find(someone.id).status == "deleted"
        assert rows(store, annotations_table) == []
        check_counts(store)


# A writer that is killed

ANSWERING = """
import json, os, random, signal, sys, time
from dataclasses import replace
from tests.survey.people import Person, opened, small_study
study = small_study(annotations=100_000, rules=replace(small_study().rules, seconds_per_group=0.0))

def answer(seed):
    rng = random.Random(seed)
    with opened(sys.argv[1], study) as store:
        while True:
            someone = store.add_participant()
            print(json.dumps([someone.id, -1, None]), flush=True)
            said = {group: [rng.randrange(51, 101) for _ in study.pairs] for group in study.groups}
            person = Person(said=lambda group, _: said[group], fault=rng.choice(["", "which group"]))
            for step in range(len(store.steps) - 1):
                given = person.given(store, someone, step)
                assert store.save_step(someone.id, step, given)
                someone = store.find(someone.id) if step == 0 else someone
                print(json.dumps([someone.id, step, given.get("ratings")]), flush=True)

for seed in range(4):
    before = os.fstat(1).st_size
    child = os.fork()
    if child == 0:
        answer(seed)
    enough = before + random.Random(seed).randrange(1_000, 4_000)  # bytes: a busy machine takes longer
    while os.fstat(1).st_size < enough and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    print("\\nkilled", flush=True)  # what was being written may have been cut
"""


def killed_while_answering(url: str, told: Path) -> list[tuple[str, int, list[int] | None]]:
    """What processes, one after the other, said to be written before they were killed."""
    with told.open("w") as out:
        done = subprocess.run(
            [sys.executable, "-c", ANSWERING, url],
            cwd=Path(__file__).parents[2],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lives = told.read_text().split("\nkilled\n")
    assert len(lives) == 5
    # The last line of each may have been cut.
    return [
        tuple(json.loads(line)) for life in lives[:4] for line in life.splitlines(keepends=True) if line.endswith("\n")
    ]


def test_what_was_confirmed_is_there_after_the_writer_was_killed(url: str, tmp_path: Path) -> None:
    study = small_study(annotations=100_000, rules=replace(small_study().rules, seconds_per_group=0.0))
    confirmed = killed_while_answering(url, tmp_path / "told")
    assert len(confirmed) > 40
    with opened(url, study) as store:
        steps = {person["id"]: person["step"] for person in rows(store, participants_table)}
        pages = {(page["participant_id"], page["place"]): page["ratings"] for page in rows(store, annotations_table)}
        for who, step, ratings in confirmed:
            assert steps[who] > step
            if ratings is not None:
                assert json.loads(pages[who, store.steps[step].place]) == ratings
        check_counts(store)
        # At most one answer of each killed process was written and not yet confirmed.
        written = sum(step for step in steps.values())
        assert written - sum(step >= 0 for _, step, _ in confirmed) <= 4
        take_part(store)
        check_counts(store)
        path = store.engine.url.database if is_sqlite(store.engine) else None
    if path is not None:
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


OPENING = """
import os, sys
import sqlalchemy as sa
from biassay.survey import database
from tests.survey.people import opened, small_study
study = small_study()
for killed_at in range(1, 200):
    path = os.path.join(sys.argv[1], f"{killed_at}.sqlite")
    child = os.fork()
    if child == 0:
        left = [killed_at]
        def die(*_):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), 9)
        sa.event.listen(sa.engine.Engine, "after_cursor_execute", die)
        with opened("sqlite:///" + path, study):
            pass
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        print("ended", killed_at)
        break
    assert os.WIFSIGNALED(status), (killed_at, status)
"""


def test_a_process_killed_while_it_made_the_database_does_not_spoil_it(tmp_path: Path) -> None:
    """Killed after the first statement, after the second, and so on; then the file is opened again."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", OPENING, str(tmp_path)], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    number = int(done.stdout.split()[1])
    assert number > 10
    for i in range(1, number):
        path = tmp_path / f"{i}.sqlite"
        with opened(f"sqlite:///{path}", small_study(), clock=Clock()) as store:
            assert set(counters(store)) == set(store.study.groups), i
            assert store.add_participant() is not None
