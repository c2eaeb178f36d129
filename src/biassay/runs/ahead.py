"""Models asked ahead of being measured, several at once where an engine has room for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

from biassay.engines.base import Engine
from biassay.runs.listener import Listener, begin

__all__ = ["Ahead", "InTurn"]

Found = TypeVar("Found")


class Ahead(Generic[Found]):
    """What ``ask`` finds of each place; of places that are not ``apart``, or if one is asked at a time, when wanted."""

    def __init__(self, ask: Callable[[int], Found], apart: Sequence[int], engine: Engine | None) -> None:
        self._ask, self._engine = ask, engine
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: dict[int, Future[Found]] = {}
        at_once = min(len(apart), 1 if engine is None else engine.models_at_once)
        if at_once > 1:
            self._threads = ThreadPoolExecutor(at_once)
            self._under_way = {place: self._threads.submit(ask, place) for place in apart}

    def __enter__(self) -> Self:
        return self

    def of(self, place: int) -> Found:
        if place not in self._under_way:
            return self._ask(place)
        return self._under_way.pop(place).result()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None and self._engine is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            if error is not None:
                self._engine.stop()
            self._threads.shutdown()


class InTurn:
    """A listener that is told one thing at a time, from whatever thread."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self._lock = listener, threading.Lock()

    def begin(self, who: str, what: str) -> None:
        with self._lock:
            begin(self._listener, who, what)

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        with self._lock:
            self._listener.progress(who, unit, done, total)

    def notice(self, message: str) -> None:
        with self._lock:
            self._listener.notice(message)
