"""A study that is served on a port of this machine: by a thread of this process, or by the command itself."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.survey.walks import TOKEN

_STARTING, _ENDING = 60.0, 10.0  # seconds, on a busy machine


@dataclass
class Served:
    """A study that is served; ``said`` is the file to which a process of its own writes its output."""

    address: str
    database: Path
    said: Path

    def client(self) -> Any:
        httpx = pytest.importorskip("httpx")
        return httpx.Client(
            base_url=self.address, timeout=60.0, trust_env=False, verify=False
        )  # certificates take long

    def raw(self, request: bytes) -> tuple[int, bytes]:
        """The status and all of the answer to bytes as they are, which no client would send."""
        host, port = self.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(request)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        return int(answer.split(b" ", 2)[1]), answer

    def rows(self, sql: str, *values: object) -> list[Any]:
        with closing(sqlite3.connect(self.database, timeout=30)) as connection:
            return connection.execute(sql, values).fetchall()


@contextmanager
def serving(study: Path | str, folder: Path) -> Iterator[Served]:
    """As ``biassay survey serve`` serves it, without limits, until the block ends."""
    pytest.importorskip("starlette")
    from biassay.survey.app import RateLimits, make_app
    from biassay.survey.database import open_database
    from biassay.survey.store import Store
    from biassay.survey.study import read_study

    database = folder / "answers.sqlite"
    engine = open_database(f"sqlite:///{database}")
    app = make_app(Store(engine, read_study(study)), token=TOKEN, limits=RateLimits(0, 0, 0, 0))
    try:
        with listening(app) as port:
            yield Served(f"http://127.0.0.1:{port}", database, folder / "output.txt")
    finally:
        app.state.site.workers.shutdown()
        engine.dispose()


@contextmanager
def listening(app: Any) -> Iterator[int]:
    """The port on which a thread serves an application."""
    import uvicorn

    from biassay.survey.server import make_uvicorn_options

    server = uvicorn.Server(uvicorn.Config(app, **make_uvicorn_options("127.0.0.1", 0), log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def command_serving(study: Path, folder: Path) -> Iterator[Served]:
    """``biassay survey serve`` in a process of its own, until the block ends."""
    port = free_port()
    served = Served(f"http://127.0.0.1:{port}", folder / "answers.sqlite", folder / "output.txt")
    arguments = ["survey", "serve", str(study), "--port", str(port), "--database", f"sqlite:///{served.database}"]
    with process_serving(arguments, port, folder, {"BIASSAY_SURVEY_TOKEN": TOKEN}, served.said):
        yield served


@contextmanager
def process_serving(
    arguments: list[str], port: int, folder: Path, environment: dict[str, str], said: Path
) -> Iterator[None]:
    """A command of biassay that serves on this port, until the block ends."""
    command = [sys.executable, "-m", "biassay", *arguments]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment}
    with said.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment)
        try:
            _wait(port, process, said)
            yield
        finally:
            process.terminate()
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_ENDING)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait(port: int, process: subprocess.Popen[bytes], said: Path) -> None:
    until = time.monotonic() + _STARTING
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"the study was not served (status {process.poll()}): {said.read_text(errors='replace')}")
