"""Many requests to an endpoint at once, and their answers as they come."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from biassay.errors import BudgetError
from biassay.models.answering import Reply
from biassay.models.api_answering import CONCURRENCY
from biassay.models.api_asking import Asking, Pace, Sending, UnansweredError
from biassay.models.api_settings import read_options, who
from biassay.models.base import Identity
from biassay.models.family import ModelName
from biassay.models.spending import Spending
from biassay.redaction import redact

__all__ = ["Answered", "EndpointModel"]

_FAILURES_IN_A_ROW = 5
Request = TypeVar("Request")
Answer = TypeVar("Answer")


class EndpointModel(ABC, Generic[Request, Answer]):
    """A model behind an endpoint: what it is, and how its answers come, whatever it is asked."""

    def __init__(self, model: ModelName, path: str, settings: Mapping[str, str], pace: Pace | None) -> None:
        """``settings``: those that change its answers."""
        self._name, self._who = model.name, who(model)
        self._options = read_options(model, CONCURRENCY)
        self._asking = asking = Asking(model, path, self._options, "answers", pace)
        weakref.finalize(self, asking.close)  # a model has no end of its own
        revision, known = f"{asking.base_url} {model.name}", tuple(settings.items())
        self.identity = Identity(model.head, model.family, revision, known, sends_to=asking.sends_to)

    @abstractmethod
    def _ask(self, request: Request, sending: Sending) -> Answered:
        """One request, in a thread of its own."""

    @abstractmethod
    def _tokens(self, request: Request) -> tuple[int, int]:
        """About how many tokens are read, and how many are written at most."""

    def prepare(self, requests: Sequence[Request]) -> None:
        pass

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        n = self._options.concurrency
        return [list(range(start, min(start + n, len(requests)))) for start in range(0, len(requests), n)]

    def stream(
        self, requests: Sequence[Request], spending: Spending, *, answered_before: bool = False
    ) -> Iterator[Sequence[tuple[int, Answer]]]:
        return _streamed(
            requests,
            self._ask_redacted,
            self._tokens,
            self._options.concurrency,
            spending,
            self._unanswered,
            answered_before,
        )

    def _unanswered(self, request: Request, ended: Literal["filter", "failed"]) -> Answer | None:  # noqa: ARG002
        """Return what stands for the answer to a request that the endpoint does not answer; None: the run must end."""
        return None

    def _ask_redacted(self, request: Request, sending: Sending) -> Answered:
        """Ask, and remove keys that the reply echoes before anything is kept or shown."""
        found = self._ask(request, sending)
        if not isinstance(found.answer, Reply):
            return found
        return replace(found, answer=replace(found.answer, text=redact(found.answer.text)))

    def estimate(self, requests: Sequence[Request]) -> tuple[int, int]:
        tokens = [self._tokens(request) for request in requests]
        return sum(read for read, _ in tokens), sum(written for _, written in tokens)

    def _all(self, requests: Sequence[Request]) -> list[Answer]:
        found = dict(pair for together in self.stream(requests, Spending()) for pair in together)
        return [found[place] for place in range(len(requests))]


@dataclass(frozen=True)
class Answered:
    """An answer, and how many tokens it took; None: the endpoint does not say."""

    answer: Any
    tokens_in: int | None
    tokens_out: int | None


def _streamed(
    requests: Sequence[Request],
    ask: Callable[[Request, Sending], Answered],
    estimate: Callable[[Request], tuple[int, int]],
    concurrency: int,
    spending: Spending,
    unanswered: Callable[[Request, Literal["filter", "failed"]], Any],
    answered_before: bool,
) -> Iterator[list[tuple[int, Any]]]:
    """Answers with the places of their requests, as they come, those that came together together.

    Answers that are given are kept before a connection is used again: whatever ends the process, no more requests than
    there are connections were sent without their answers being kept. After a failure, and where the budget does not
    allow the next request, nothing more is sent; what is under way is waited for, for it is paid. After Ctrl-C it is
    not.

    A request that the endpoint filters, or on which it failed at every attempt, gets ``unanswered`` for an answer. The
    endpoint counts as down after `_FAILURES_IN_A_ROW` failures without an answer in between, or if it answers nothing
    at all.
    """
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    stop, waiting = threading.Event(), deque(enumerate(requests))
    pool = ThreadPoolExecutor(concurrency, thread_name_prefix="biassay-api")
    under_way: dict[Future[Answered], tuple[int, tuple[int, int], int]] = {}
    problem: Exception | None = None
    failures, failure = 0, None
    try:
        while True:
            while waiting and problem is None and len(under_way) < concurrency:
                tokens = estimate(waiting[0][1])
                reserved = spending.reserve(*tokens)
                if reserved is None:
                    break
                place, request = waiting.popleft()
                sending = Sending(stop, partial(spending.lose, *tokens))
                under_way[pool.submit(ask, request, sending)] = place, tokens, reserved
            if not under_way:
                break
            together: list[tuple[int, Any]] = []
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                place, tokens, reserved = under_way.pop(future)
                try:
                    found = future.result()
                except UnansweredError as error:
                    spending.release(reserved)
                    failures = failures + 1 if error.ended == "failed" else 0
                    failure = error if error.ended == "failed" else failure
                    answered_before |= error.ended == "filter"
                    answer = unanswered(requests[place], error.ended)
                    if answer is None or failures >= _FAILURES_IN_A_ROW:
                        problem = problem or error
                        stop.set()
                    else:
                        together.append((place, answer))
                except Exception as error:
                    spending.release(reserved)
                    problem = problem or error
                    stop.set()  # nobody waits for another attempt
                else:
                    failures, answered_before = 0, True
                    read = tokens[0] if found.tokens_in is None else found.tokens_in
                    written = tokens[1] if found.tokens_out is None else found.tokens_out
                    spending.settle(reserved, tokens[0], read, written)
                    together.append((place, found.answer))
            if together:
                yield together
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
    problem = problem or (None if answered_before else failure)
    if problem is not None:
        raise problem
    if waiting:
        raise BudgetError(
            f"the budget of {spending.limit:,} tokens does not allow another request: {spending.used:,} tokens are "
            f"used, and the next request may take {spending.needed(*estimate(waiting[0][1])):,}; {len(waiting):,} "
            "requests remain; responses are cached: give a larger --budget and resume the run"
        )
