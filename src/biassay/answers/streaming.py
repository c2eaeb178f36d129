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

    Every answer is in the store before another one is looked at. ``begin`` is given the requests that are missing. A
    request on which the endpoint failed at every attempt is answered for this run only: the next one asks it again.
    """
    missing = store.missing(requests)
    if not missing:
        return 0
    answered_before = len(missing) < len(set(requests))
    if begin is not None:
        begin(missing)
    done, small = 0, list[tuple[Request, Any]]()
    files = 0
    try:
        for answered in model.stream(missing, spending, answered_before=answered_before):
            failed = [(missing[place], answer) for place, answer in answered if _has_failed(answer)]
            kept = [(missing[place], answer) for place, answer in answered if not _has_failed(answer)]
            if failed:
                store.add(*_unzip(failed), in_memory=True)
            if kept:
                store.add(*_unzip(kept), for_now=True)
                files += 1
            done += len(answered)
            small += kept
            if files == _SMALL_FILES:
                _merge(store, small, files)
                files = 0
            if progress is not None:
                progress(done, len(missing))
    finally:
        _merge(store, small, files)
        store.offer()
    return done


def _has_failed(answer: Any) -> bool:
    return getattr(answer, "ended", None) == "failed"


def _unzip(pairs: Sequence[tuple[Request, Any]]) -> tuple[list[Request], list[Any]]:
    return [request for request, _ in pairs], [answer for _, answer in pairs]


def _merge(store: ModelStore[Request, Any], small: list[tuple[Request, Any]], files: int) -> None:
    if files > 1:
        store.merge(*_unzip(small))
    small.clear()
