"""Run tasks on this machine, in this process or in several."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from biassay.engines.base import WorkerFactory, deserialize_error
from biassay.errors import MeasurementError

T = TypeVar("T")
R = TypeVar("R")


class LocalExecutor:
    """Runs tasks on the cores of this machine; a worker that holds a model runs in this process."""

    max_concurrent_models = 1

    def stop(self) -> AbstractContextManager[None]:
        """Return a context manager that does nothing, because nothing runs in other threads."""
        return nullcontext()

    def run(
        self, make_worker: WorkerFactory[T, R], tasks: Sequence[T], *, workers: int | None = None, model: bool = False
    ) -> Iterator[R]:
        """Yield all results of all tasks; see `Executor.run`."""
        count = 1 if model or os.name != "posix" else min(len(tasks), workers or _count_cores())
        if count <= 1:
            return _run_inline(make_worker, tasks)
        return _run_processes(make_worker, tasks, count)


def _count_cores() -> int:
    """Return the number of cores this process may use, or of all cores if the system does not report it."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _run_inline(make_worker: WorkerFactory[T, R], tasks: Sequence[T]) -> Iterator[R]:
    if tasks:
        worker = make_worker()
        for task in tasks:
            yield from worker(task)


def _run_processes(make_worker: WorkerFactory[T, R], tasks: Sequence[T], count: int) -> Iterator[R]:
    from multiprocessing.connection import wait  # a slow import that one process does not need

    waiting = iter(tasks)
    processes = [_WorkerProcess(make_worker) for _ in range(count)]
    try:
        busy = {process.results: process for process in processes if process.send_next(waiting)}
        while busy:
            for ready in wait(list(busy)):
                process = busy[ready]  # type: ignore[index]
                kind, content = process.receive()
                if kind == "result":
                    yield content
                elif not process.send_next(waiting):
                    del busy[process.results]
    finally:
        for process in processes:
            process.terminate()


class _WorkerProcess:
    """One worker process and the pipes to it."""

    def __init__(self, make_worker: WorkerFactory[Any, Any]) -> None:
        from multiprocessing.connection import Connection

        task_end, self._tasks = (Connection(end) for end in os.pipe())
        self.results, result_end = (Connection(end) for end in os.pipe())
        ends = (task_end.fileno(), result_end.fileno())
        command = [sys.executable, "-m", "biassay.engines.worker", *map(str, ends)]
        self._process = subprocess.Popen(command, pass_fds=ends, stdin=subprocess.DEVNULL)
        task_end.close()
        result_end.close()
        with suppress(BrokenPipeError):  # the process has ended, and `receive` reports why
            self._tasks.send(make_worker)

    def send_next(self, waiting: Iterator[Any]) -> bool:
        """Send the next task. Return False if there is none."""
        for task in waiting:
            with suppress(BrokenPipeError):  # the process has ended, and `receive` reports why
                self._tasks.send(task)
            return True
        return False

    def receive(self) -> tuple[str, Any]:
        """Return the kind and the content of the next message, or raise the error that the worker reports."""
        try:
            kind, content = self.results.recv()
        except EOFError:
            code = self._process.wait()
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            hint = " (out of memory? use fewer workers)" if code == -9 else ""
            raise MeasurementError(f"a worker process {how}{hint}; run again to continue where it stopped") from None
        if kind == "error":
            raise deserialize_error(*content)
        if kind == "fault":
            raise RuntimeError(f"a worker process failed:\n{content}")
        return kind, content

    def terminate(self) -> None:
        """Stop the process and close the pipes."""
        with suppress(OSError):
            self._tasks.close()
        self._process.terminate()
        self._process.wait()
        self.results.close()
