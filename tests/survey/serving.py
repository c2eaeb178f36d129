"""A study that `biassay survey serve` serves, in a process of its own on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.survey.walks import TOKEN

_STARTING, _ENDING = 60.0, 10.0  # seconds, on a busy machine


@dataclass
class Served:
    """A study that a process of its own serves; ``said`` is the file with all it wrote to its output."""

    address: str
    database: Path
    said: Path


@contextmanager
def serving(study: Path, folder: Path, *options: str, token: str | None = TOKEN) -> Iterator[Served]:
    """``biassay survey serve`` on a free port of this machine, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = Served(f"http://127.0.0.1:{port}", folder / "answers.sqlite", folder / "output.txt")
    command = [sys.executable, "-m", "biassay", "survey", "serve", str(study), "--port", str(port), *options]
    command += ["--database", f"sqlite:///{served.database}"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "BIASSAY_SURVEY_TOKEN": token or ""}
    with served.said.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment)
        try:
            _wait(port, process, served.said)
            yield served
        finally:
            process.terminate()
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_ENDING)


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
