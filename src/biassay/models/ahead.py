"""Work on the next batch while a model is busy with the present one."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Generic, TypeVar

__all__ = ["Ahead", "uncollected"]

Given = TypeVar("Given")
Result = TypeVar("Result")


class Ahead(Generic[Given, Result]):
    """A function of batches. One that was announced is worked on in a thread, and may be ready when it is asked for."""

    def __init__(self, work: Callable[[Sequence[Given]], Result]) -> None:
        self._work = work
        self._coming: list[tuple[Sequence[Given], Future[Result]]] = []

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1)

    def expect(self, batch: Sequence[Given]) -> None:
        """Begin with a batch that will be asked for soon."""
        self._coming.append((batch, self._thread.submit(self._work, batch)))

    def __call__(self, batch: Sequence[Given]) -> Result:
        for place, (expected, coming) in enumerate(self._coming):
            if expected == batch:
                del self._coming[: place + 1]
                return coming.result()
        return self._work(batch)


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
