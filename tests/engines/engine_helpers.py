"""Workers for the tests of engines, in a separate module because other processes import them."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.errors import StimulusError, UnknownNameError


class GatedError(OSError):
    """One that can neither be pickled nor be made again from its message."""

    def __init__(self, message: str, *, lock: Any) -> None:
        super().__init__(message)
        self.lock = lock


@dataclass(frozen=True)
class Squares:
    """Yields the square of a task in as many pieces as it is large; may break off in several ways."""

    folder: str = ""
    kill_at: int | None = None
    fail_at: int | None = None
    how: str = "usage"

    def __call__(self) -> Callable[[int], Iterator[tuple[int, int, int]]]:
        return self.work

    def work(self, task: int) -> Iterator[tuple[int, int, int]]:
        for piece in range(max(1, task)):
            if task == self.kill_at and piece == 1:
                marker = Path(self.folder) / "killed"
                if not marker.exists():
                    marker.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            if task == self.fail_at and piece == 1:
                self._fail()
            time.sleep(0.02)
            yield task, piece, os.getpid() if self.how != "lock" else threading.Lock()  # type: ignore[misc]

    def _fail(self) -> None:
        if self.how == "usage":
            raise UnknownNameError("flower", "rsoe", ["rose"])
        if self.how == "disk":
            raise OSError(28, "No space left on device", "/somewhere")
        if self.how == "network":
            raise GatedError("the model is gated", lock=threading.Lock())
        raise ZeroDivisionError("a fault of the program")


@dataclass(frozen=True)
class FullDisk:
    """A worker that counts up to a task; the disk of the first node that reaches three is full."""

    folder: str

    def __call__(self) -> Callable[[int], Iterator[tuple[int, int, str]]]:
        return self.work

    def work(self, task: int) -> Iterator[tuple[int, int, str]]:
        import ray

        node, full = ray.get_runtime_context().get_node_id(), Path(self.folder) / "full"
        for piece in range(task):
            if piece == 3:
                if not full.exists():
                    full.write_text(node)
                if full.read_text() == node:
                    raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")
            time.sleep(0.02)
            yield task, piece, node


@dataclass(frozen=True)
class Unmakeable:
    """A worker that cannot be made."""

    def __call__(self) -> Callable[[int], Iterator[int]]:
        raise StimulusError("there is nothing to make it from")
