"""Base class of chat and completions models, and parsers of their responses."""

from __future__ import annotations

import math
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from biassay.errors import BudgetError, MeasurementError
from biassay.models.backend import ModelName
from biassay.models.base import SAMPLING_SETTINGS, FinishReason, Identity, Reply, SamplingOptions
from biassay.models.openai.client import (
    EndpointClient,
    MalformedResponseError,
    PendingRequest,
    RetryPolicy,
    UnansweredError,
    extract_message,
    parse_json,
)
from biassay.models.openai.endpoint import make_connection_settings, read_request_options
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import Prompt
from biassay.redaction import redact

DEFAULT_CONCURRENCY = 16
_MAX_TOKEN_COUNT = 2**31  # more than any request has
_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
    "refusal": "refusal",
}


def make_generation_settings(path: str) -> dict[str, str]:
    """Return the settings of chat and completions backends with their help."""
    return {
        **make_connection_settings(path, DEFAULT_CONCURRENCY),
        "rate": "maximum number of requests per minute (default unlimited)",
        **SAMPLING_SETTINGS,
    }


def parse_choices(body: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the choices of a response, sorted by index, and its token usage."""
    content = parse_json(body)
    choices = content.get("choices") if isinstance(content, dict) else None
    if not isinstance(choices, list):
        raise MalformedResponseError(f"no list 'choices': {extract_message(body)}")
    if not choices or not all(isinstance(choice, dict) for choice in choices):
        raise MalformedResponseError(f"{len(choices)} choices, of which not all are objects")
    indices = [choice.get("index", i) for i, choice in enumerate(choices)]
    if sorted(map(str, indices)) != sorted(map(str, range(len(choices)))):
        raise MalformedResponseError(f"choices with the indices {indices}")
    usage = content.get("usage")
    order = sorted(range(len(choices)), key=lambda i: int(indices[i]))
    return [choices[i] for i in order], usage if isinstance(usage, dict) else {}


def parse_usage(usage: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the tokens read and written; None if the endpoint does not report them."""
    numbers = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
    read, written = (number if type(number) is int and 0 <= number < _MAX_TOKEN_COUNT else None for number in numbers)
    return read, written


def parse_finish_reason(reason: object) -> FinishReason | None:
    """Translate the finish reason of an endpoint."""
    return _FINISH_REASONS.get(reason, "other") if isinstance(reason, str) else None


def parse_log_probability(name: str, number: object) -> float:
    """Check a log-probability of an endpoint; `name` is the model in the error message."""
    kind = type(number)
    try:
        value = float(number) if kind in (int, float) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        value = math.inf
    if not math.isfinite(value) or value > 1e-3:
        shown = f"{value:g}" if kind in (int, float) else f"({kind.__name__})"  # other values may be long
        raise MeasurementError(f"{name} returned the log-probability {shown}; expected a number of at most 0")
    return min(value, 0.0)


_MAX_CONSECUTIVE_FAILURES = 5
Request = TypeVar("Request")
Output = TypeVar("Output")


@dataclass(frozen=True)
class EndpointResponse:
    """Output of a request and its tokens; None if the endpoint does not report them."""

    output: Any
    tokens_in: int | None
    tokens_out: int | None


class EndpointModel(ABC, Generic[Request, Output]):
    """Base class of models behind an endpoint.

    Parameters
    ----------
    model : ModelName
        Parsed model string.
    path : str
        Path of the endpoint.
    settings : mapping of str to str
        Settings that change the responses.
    retry_policy : RetryPolicy or None
        When to retry.
    """

    def __init__(
        self, model: ModelName, path: str, settings: Mapping[str, str], retry_policy: RetryPolicy | None
    ) -> None:
        self._name, self._label = model.name, model.label
        self._options = read_request_options(model, DEFAULT_CONCURRENCY)
        self._client = client = EndpointClient(model, path, self._options, "responses", retry_policy)
        weakref.finalize(self, client.close)  # callers never close a model
        self.identity = Identity(
            model.head,
            model.backend,
            f"{client.base_url} {model.name}",
            tuple(settings.items()),
            destination=client.destination,
        )

    @abstractmethod
    def _fetch(self, request: Request, pending_request: PendingRequest) -> EndpointResponse:
        """Send one request; called in a worker thread."""

    @abstractmethod
    def _tokens(self, request: Request) -> tuple[int, int]:
        """Estimate the tokens read and return the maximum written."""

    def prepare(self, requests: Sequence[Request]) -> None:
        """Do nothing: there are no weights to load."""

    def batches(self, requests: Sequence[Request]) -> list[list[int]]:
        """Group requests into batches that are sent concurrently."""
        n = self._options.concurrency
        return [list(range(start, min(start + n, len(requests)))) for start in range(0, len(requests), n)]

    def stream(
        self, requests: Sequence[Request], token_budget: TokenBudget, *, answered_before: bool = False
    ) -> Iterator[Sequence[tuple[int, Output]]]:
        """Yield (request index, output) pairs as responses arrive, see `StreamingModel`.

        Parameters
        ----------
        requests : sequence
            Requests to send.
        token_budget : TokenBudget
            Tokens that may still be used.
        answered_before : bool
            If True, an earlier run received responses from this endpoint.

        Notes
        -----
        The caller stores the outputs before the next request is sent, so that at most as many responses as there are
        concurrent requests are lost if the process ends. After a failure, and when the budget does not allow the next
        request, nothing more is sent, and pending responses are awaited because they are charged. After Ctrl-C they
        are not.

        A request that the endpoint filters, or on which every attempt failed, gets a substitute. The endpoint counts as
        down after `_MAX_CONSECUTIVE_FAILURES` failures without an answer in between, or if it answers no request at
        all.
        """
        from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

        stop, waiting, concurrency = threading.Event(), deque(enumerate(requests)), self._options.concurrency
        pool = ThreadPoolExecutor(concurrency, thread_name_prefix="biassay-api")
        pending: dict[Future[EndpointResponse], tuple[int, tuple[int, int], int, int]] = {}
        problem: Exception | None = None
        failures, failure, n_answered = 0, None, 0
        try:
            while True:
                while waiting and problem is None and len(pending) < concurrency:
                    end = (
                        -1 if failures else 0
                    )  # one wording may fail for all names, although the endpoint answers others
                    tokens = self._tokens(waiting[end][1])
                    reserved = token_budget.reserve(*tokens)
                    if reserved is None:
                        break
                    index, request = waiting[end]
                    del waiting[end]
                    pending_request = PendingRequest(stop, partial(token_budget.record_failed, *tokens))
                    pending[pool.submit(self._fetch_redacted, request, pending_request)] = (
                        index,
                        tokens,
                        reserved,
                        n_answered,
                    )
                if not pending:
                    break
                outputs: list[tuple[int, Any]] = []
                # Ctrl-C just before a wait without a timeout would be noticed only when a future is done.
                for future in wait(pending, timeout=1.0, return_when=FIRST_COMPLETED).done:
                    index, tokens, reserved, n_answered_before = pending.pop(future)
                    try:
                        response = future.result()
                    except UnansweredError as error:
                        token_budget.release(reserved)
                        if error.finish_reason == "filter":
                            failures, n_answered, answered_before = 0, n_answered + 1, True
                        else:  # retries take time, in which others may have been answered
                            failures, failure = failures + (n_answered == n_answered_before), error
                        substitute = self._make_substitute(requests[index], error.finish_reason)
                        if substitute is None or failures >= _MAX_CONSECUTIVE_FAILURES:
                            problem = problem or error
                            stop.set()
                        else:
                            outputs.append((index, substitute))
                    except Exception as error:
                        token_budget.release(reserved)
                        problem = problem or error
                        stop.set()  # pending requests are not retried
                    else:
                        failures, n_answered, answered_before = 0, n_answered + 1, True
                        read = tokens[0] if response.tokens_in is None else response.tokens_in
                        written = tokens[1] if response.tokens_out is None else response.tokens_out
                        token_budget.record_used(reserved, tokens[0], read, written)
                        outputs.append((index, response.output))
                if outputs:
                    yield outputs
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
        problem = problem or (None if answered_before else failure)
        if problem is not None:
            raise problem
        if waiting:
            raise BudgetError(
                f"the budget of {token_budget.limit:,} tokens does not allow another request: "
                f"{token_budget.used:,} tokens are used, and the next request may take "
                f"{token_budget.required_tokens(*self._tokens(waiting[0][1])):,}; {len(waiting):,} requests remain; "
                "responses are cached: give a larger --budget and resume the run"
            )

    def _make_substitute(self, request: Request, finish_reason: Literal["filter", "failed"]) -> Output | None:  # noqa: ARG002
        """Return a substitute for a missing response, or None to end the run."""
        return None

    def _fetch_redacted(self, request: Request, pending_request: PendingRequest) -> EndpointResponse:
        """Send a request and remove keys from the reply before it is stored or shown."""
        response = self._fetch(request, pending_request)
        if not isinstance(response.output, Reply):
            return response
        return replace(response, output=replace(response.output, text=redact(response.output.text)))

    def estimate(self, requests: Sequence[Request]) -> tuple[int, int]:
        """Estimate the tokens read and return the maximum written by all requests."""
        tokens = [self._tokens(request) for request in requests]
        return sum(read for read, _ in tokens), sum(written for _, written in tokens)

    def _fetch_all(self, requests: Sequence[Request]) -> list[Output]:
        outputs = dict(pair for pairs in self.stream(requests, TokenBudget()) for pair in pairs)
        return [outputs[i] for i in range(len(requests))]


class EndpointReplyModel(EndpointModel[Prompt, Reply]):
    """Base class of models that reply to prompts; sampling options are part of their identity."""

    def __init__(
        self, model: ModelName, path: str, settings: Mapping[str, str], retry_policy: RetryPolicy | None
    ) -> None:
        self._sampling = SamplingOptions.from_model(model)
        super().__init__(model, path, {**self._sampling.settings, **settings}, retry_policy)

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """Return one reply per prompt."""
        return self._fetch_all(prompts)

    def _make_substitute(self, request: Prompt, finish_reason: Literal["filter", "failed"]) -> Reply:
        return Reply("", finish_reason, log_p=(math.nan,) * len(request.options))

    def _get_system_message(self, prompt: Prompt) -> str | None:
        """Return the system message of a prompt, by default that of the model string."""
        return self._sampling.system if prompt.system is None else prompt.system

    def _make_payload(self, prompt: Prompt) -> dict[str, Any]:
        """Return the part of a request that all endpoints share: model, temperature and seed."""
        seed = self._sampling.derive_seed(prompt.key)
        own = self._sampling.temperature
        sampling = {"model": self._name, "temperature": own if prompt.temperature is None else prompt.temperature}
        return sampling if seed is None else {**sampling, "seed": seed}
