"""Work on the next batch while a model is busy with the present one."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Generic, TypeVar

__all__ = ["Ahead", "uncollected"]

Given = TypeVar("Given")
Result = TypeVar("Result")


class Ahead(Generic[Given, Result]):
    """Apply a function to batches, some of them in a background thread before they are requested.

    Several threads may use it at once.

    Attributes
    ----------
    stopping : threading.Event
        Set while `cancel` waits. A function that takes long checks it and gives up.
    """

    def __init__(self, work: Callable[[Given], Result]) -> None:
        self._work = work
        self._coming: list[tuple[Given, Future[Result]]] = []
        self._lock = threading.Lock()
        self.stopping = threading.Event()

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1)

    def expect(self, batch: Given) -> None:
        """Start on a batch that will be requested soon."""
        with self._lock:
            self._coming.append((batch, self._thread.submit(self._work, batch)))

    def __call__(self, batch: Given) -> Result:
        """Return the result for a batch; drop the results of batches announced before it."""
        with self._lock:
            position = next((i for i, (expected, _) in enumerate(self._coming) if expected == batch), None)
            if position is not None:
                _, result = self._coming[position]
                del self._coming[: position + 1]
        return self._work(batch) if position is None else result.result()

    def cancel(self) -> None:
        """Drop all announced batches and wait until the background thread is idle."""
        with self._lock:
            for _, result in self._coming:
                result.cancel()
            self._coming.clear()
        if "_thread" in self.__dict__:
            self.stopping.set()
            try:
                self._thread.submit(_do_nothing).result()  # runs after whatever the one thread is doing now
            finally:
                self.stopping.clear()


def _do_nothing() -> None:
    pass


class _Resting:
    """How many want the collector to rest, and whether it worked before the first of them."""

    lock = threading.Lock()
    many = 0
    worked = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Make many objects while Python does not look for circles among them, nor, again and again, among all others."""
    with _Resting.lock:
        if not _Resting.many:
            _Resting.worked = gc.isenabled()
            gc.disable()
        _Resting.many += 1
    try:
        yield
    finally:
        with _Resting.lock:
            _Resting.many -= 1
            if not _Resting.many and _Resting.worked:
                gc.enable()
