"""Answers of an endpoint are kept as they come: each costs money, and the next one may take a minute."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from biassay.answers.fill import Progress
from biassay.answers.store import ModelStore
from biassay.models.answering import Streams
from biassay.models.spending import Spending

__all__ = ["stream_missing"]

_SMALL_FILES = 256  # become one
Request = TypeVar("Request", bound=Hashable)


def stream_missing(
    model: Streams[Request, Any],
    requests: Sequence[Request],
    store: ModelStore[Request, Any],
    spending: Spending,
    progress: Progress | None = None,
    begin: Callable[[Sequence[Request]], None] | None = None,
) -> int:
    """Make sure that the store holds an answer to every request; returns how many had to be asked, each once.

    Every answer is in the store before another one is looked at. ``begin`` is given the requests that are missing.
    """
    missing = store.missing(requests)
    if not missing:
        return 0
    if begin is not None:
        begin(missing)
    done, small = 0, list[list[Request]]()
    try:
        for answered in model.stream(missing, spending):
            own = [missing[place] for place, _ in answered]
            store.add(own, [answer for _, answer in answered], for_now=True)
            done += len(own)
            small.append(own)
            if len(small) >= _SMALL_FILES:
                _merge(store, small)
            if progress is not None:
                progress(done, len(missing))
    finally:
        _merge(store, small)
        store.share()
    return done


def _merge(store: ModelStore[Request, Any], small: list[list[Request]]) -> None:
    if len(small) > 1:
        store.merge([request for own in small for request in own])
    small.clear()
