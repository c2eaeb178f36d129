"""The room of a Ray cluster, divided among the runs that are under way."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Shares"]

_PAUSE = 5.0  # seconds in which the place of a run that ended is kept for the next one of its thread


@dataclass(eq=False)
class _Run:
    thread: int = field(default_factory=threading.get_ident)
    ended: float = math.inf


class Shares:
    """How many workers each run may have, so that all together fill the cluster once; those that began first have more.

    A run that begins later is given workers of the others as they become free; what one leaves goes to the others.
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[Callable[[int], int]]:
        """A function that tells which part of so many workers belongs to this run at present."""
        own = _Run()
        with self._lock:
            self._runs = [run for run in self._runs if run.ended == math.inf or run.thread != own.thread] + [own]
        try:
            yield lambda room: self._part(own, room)
        finally:
            own.ended = time.monotonic()

    def _part(self, own: _Run, room: int) -> int:
        with self._lock:
            now = time.monotonic()
            self._runs = [run for run in self._runs if run.ended + _PAUSE > now]
            place, number = self._runs.index(own), len(self._runs)
        return max(1, room // number + (place < room % number))
