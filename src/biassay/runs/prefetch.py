"""Fetch the outputs of several models concurrently while earlier ones are measured."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from types import TracebackType
from typing import Generic, Self, TypeVar

from biassay.engines.base import Executor

Output = TypeVar("Output")


class ModelPrefetcher(Generic[Output]):
    """Fetch model outputs in background threads, a few models ahead of the consumer.

    Only models listed in `concurrent` are fetched ahead; all others are fetched when `result` asks for them. So is a
    model that shares a cache key with an earlier one, because it finds the outputs of the first in the cache.

    Parameters
    ----------
    fetch : callable
        Function from a model's index to its outputs.
    concurrent : sequence of int
        Indices of the models that may be fetched ahead, in order of use.
    executor : Executor or None
        Decides how many models run at once. If None, nothing is fetched ahead.
    cache_keys : callable, optional
        Function from a model's index to the cache keys of its outputs.

    Notes
    -----
    At most ``executor.max_concurrent_models + 1`` results are held in memory.
    """

    def __init__(
        self,
        fetch: Callable[[int], Output],
        concurrent: Sequence[int],
        executor: Executor | None,
        cache_keys: Callable[[int], Collection[object]] = lambda model_index: (model_index,),
    ) -> None:
        self._fetch, self._executor = fetch, executor
        self._threads: ThreadPoolExecutor | None = None
        self._running: dict[int, Future[Output]] = {}
        self._waiting: deque[int] = deque()
        self._max_concurrent = min(len(concurrent), 1 if executor is None else executor.max_concurrent_models)
        if self._max_concurrent > 1:
            self._threads = ThreadPoolExecutor(self._max_concurrent)
            self._waiting = deque(_skip_shared_keys(concurrent, cache_keys))
            self._schedule()

    def __enter__(self) -> Self:
        return self

    def result(self, model_index: int) -> Output:
        """Return the outputs of one model, waiting for them if necessary."""
        future = self._running.pop(model_index, None)
        self._schedule()
        return self._fetch(model_index) if future is None else future.result()

    def _schedule(self) -> None:
        while self._threads is not None and self._waiting and len(self._running) <= self._max_concurrent:
            model_index = self._waiting.popleft()
            self._running[model_index] = self._threads.submit(self._fetch, model_index)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None and self._executor is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            with nullcontext() if error is None else self._executor.stop():
                self._threads.shutdown()


def _skip_shared_keys(model_indices: Sequence[int], cache_keys: Callable[[int], Collection[object]]) -> Iterator[int]:
    seen = set[object]()
    for model_index in model_indices:
        keys = set(cache_keys(model_index))
        if seen.isdisjoint(keys):
            yield model_index
        seen |= keys
