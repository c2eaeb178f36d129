"""Models asked ahead of being measured, several at once where an engine has room for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from types import TracebackType
from typing import Generic, Self, TypeVar

from biassay.engines.base import Engine
from biassay.runs.listener import Listener, begin

__all__ = ["Ahead", "InTurn"]

Found = TypeVar("Found")


class Ahead(Generic[Found]):
    """What ``ask`` finds of each place; of places that are not ``apart``, or if one is asked at a time, when wanted.

    So is a place that shares one of its ``keys`` with one before it: then the same answers are kept already. Of what is
    found ahead, that of a few places is held at a time.
    """

    def __init__(
        self,
        ask: Callable[[int], Found],
        apart: Sequence[int],
        engine: Engine | None,
        keys: Callable[[int], Collection[object]] = lambda place: (place,),
    ) -> None:
        self._ask, self._engine = ask, engine
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: dict[int, Future[Found]] = {}
        self._waiting: deque[int] = deque()
        self._at_once = min(len(apart), 1 if engine is None else engine.models_at_once)
        if self._at_once > 1:
            self._threads = ThreadPoolExecutor(self._at_once)
            self._waiting = deque(_first_of_their_keys(apart, keys))
            self._submit()

    def __enter__(self) -> Self:
        return self

    def of(self, place: int) -> Found:
        wanted = self._under_way.pop(place, None)
        self._submit()
        return self._ask(place) if wanted is None else wanted.result()

    def _submit(self) -> None:
        """Have as many places ahead of the wanted one as are asked at a time, and one more."""
        while self._threads is not None and self._waiting and len(self._under_way) <= self._at_once:
            place = self._waiting.popleft()
            self._under_way[place] = self._threads.submit(self._ask, place)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None and self._engine is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            with nullcontext() if error is None else self._engine.stopped():
                self._threads.shutdown()


def _first_of_their_keys(places: Sequence[int], keys: Callable[[int], Collection[object]]) -> Iterator[int]:
    seen = set[object]()
    for place in places:
        own = set(keys(place))
        if seen.isdisjoint(own):
            yield place
        seen |= own


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
