"""This machine: one worker here, or several processes beside each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from biassay.engines.base import MakeWorker, rebuilt
from biassay.errors import MeasurementError

__all__ = ["LocalEngine"]

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Workers on the cores of this machine; one that holds a model runs in this process and has all of it."""

    models_at_once = 1

    def stopped(self) -> AbstractContextManager[None]:
        """Nothing runs in other threads."""
        return nullcontext()

    def run(
        self, make: MakeWorker[T, R], tasks: Sequence[T], *, workers: int | None = None, model: bool = False
    ) -> Iterator[R]:
        count = 1 if model or os.name != "posix" else min(len(tasks), workers or _cores())
        if count <= 1:
            return _here(make, tasks)
        return _beside(make, tasks, count)


def _cores() -> int:
    """The cores this process may use, where the system says so; else all of them."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _here(make: MakeWorker[T, R], tasks: Sequence[T]) -> Iterator[R]:
    worker = make() if tasks else None
    for task in tasks:
        assert worker is not None
        yield from worker(task)


def _beside(make: MakeWorker[T, R], tasks: Sequence[T], count: int) -> Iterator[R]:
    from multiprocessing.connection import wait  # one process need not wait for it

    waiting = iter(tasks)
    processes = [_Process(make) for _ in range(count)]
    try:
        busy = {process.results: process for process in processes if process.next(waiting)}
        while busy:
            for ready in wait(list(busy)):
                process = busy[ready]  # type: ignore[index]
                kind, content = process.receive()
                if kind == "result":
                    yield content
                elif not process.next(waiting):
                    del busy[process.results]
    finally:
        for process in processes:
            process.end()


class _Process:
    """One worker process and the pipes to it."""

    def __init__(self, make: MakeWorker[Any, Any]) -> None:
        from multiprocessing.connection import Connection

        task_end, self._tasks = (Connection(end) for end in os.pipe())
        self.results, result_end = (Connection(end) for end in os.pipe())
        ends = (task_end.fileno(), result_end.fileno())
        command = [sys.executable, "-m", "biassay.engines.worker", *map(str, ends)]
        self._process = subprocess.Popen(command, pass_fds=ends, stdin=subprocess.DEVNULL)
        task_end.close()
        result_end.close()
        with suppress(BrokenPipeError):  # it has ended, and `receive` says why
            self._tasks.send(make)

    def next(self, waiting: Iterator[Any]) -> bool:
        """Give it the next task; False if there is none."""
        for task in waiting:
            with suppress(BrokenPipeError):  # it has ended, and `receive` says why
                self._tasks.send(task)
            return True
        return False

    def receive(self) -> tuple[str, Any]:
        try:
            kind, content = self.results.recv()
        except EOFError:
            code = self._process.wait()
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            hint = " (out of memory? use fewer workers)" if code == -9 else ""
            raise MeasurementError(f"a worker process {how}{hint}; run again to continue where it stopped") from None
        if kind == "error":
            raise rebuilt(*content)
        if kind == "fault":
            raise RuntimeError(f"a worker process failed:\n{content}")
        return kind, content

    def end(self) -> None:
        with suppress(OSError):
            self._tasks.close()
        self._process.terminate()
        self._process.wait()
        self.results.close()
