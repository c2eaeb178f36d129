"""A PostgreSQL server of the tests' own: in a temporary folder, reached by a socket there, gone with the process."""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import pytest

_NEEDED = "BIASSAY_NEED_POSTGRES"
_numbers = count()


def new_database() -> str:
    """The address of a new, empty database; the test is skipped where there is no PostgreSQL."""
    folder = Path(_server())
    name = f"study{next(_numbers)}"
    _sql(folder, f"CREATE DATABASE {name}")
    return f"postgresql://survey@/{name}?host={folder}"


def drop_database(url: str) -> None:
    folder, name = Path(_server()), url.partition("?")[0].rpartition("/")[2]
    _sql(folder, f"DROP DATABASE {name} WITH (FORCE)")


def absent() -> str | None:
    """Why there is no PostgreSQL; None if there is."""
    if _programs() is None:
        return "PostgreSQL is absent: no initdb in PATH or /usr/lib/postgresql; on Debian: apt-get install postgresql"
    if os.geteuid() == 0 and _user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres or nobody"
    return None


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl, of the newest version where there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else found[-1].parent if found else None


def _user() -> pwd.struct_passwd | None:
    known = {user.pw_name: user for user in pwd.getpwall()}
    return known.get("postgres") or known.get("nobody")


def _as_user(*command: object) -> None:
    """Run as somebody who is not root."""
    user = _user() if os.geteuid() == 0 else None
    # A folder that everybody may enter: the one of the tests may be closed to that user.
    done = subprocess.run(
        [str(part) for part in command],
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
        extra_groups=[] if user else None,
        cwd="/",
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}")


def _server() -> str:
    reason = absent()
    if reason is not None:
        if os.environ.get(_NEEDED):
            pytest.fail(f"${_NEEDED} is set, and {reason}")
        pytest.skip(reason)
    return _started()


@functools.cache
def _started() -> str:
    programs = _programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # short: the path of a socket has at most 107 signs
    user = _user()
    if os.geteuid() == 0 and user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    data = folder / "data"
    _as_user(programs / "initdb", "-D", data, "-U", "survey", "-A", "trust", "-E", "UTF8", "--no-sync")
    # Only clients are killed here, never the machine: the server need not wait for its disk.
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections=100"
    _as_user(programs / "pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", options, "start")
    atexit.register(_as_user, programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    return str(folder)


def _sql(folder: Path, statement: str) -> None:
    import psycopg

    with psycopg.connect(host=str(folder), user="survey", dbname="postgres", autocommit=True) as connection:
        connection.execute(statement)
