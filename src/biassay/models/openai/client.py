"""Send requests to an endpoint with retries and limits on time and size.

The key comes from the environment and goes into one request header; only `ApiKey` and the HTTP client hold it. Server
messages are redacted before they are shown or stored.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from biassay.errors import BudgetError, MeasurementError
from biassay.models.backend import ModelName
from biassay.models.openai.endpoint import ApiKey, RequestOptions, find_api_key, read_endpoint_url

if TYPE_CHECKING:
    import httpx


class MalformedResponseError(Exception):
    """A response that does not follow the protocol."""


_FIRST_BACKOFF, _LONGEST_WAIT = 0.5, 60.0  # seconds
_REJECTION_CODES = (400, 404, 405, 413, 415, 422, 501)  # the server's message describes the fault of the request
_GATEWAY_TIMEOUTS = (408, 504, 524)  # a proxy gave up, but the model may have run
_FILTER_CODES = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "data_inspection_failed")
_PROTOCOL_HINT = "check base_url=: it may not be the URL of an OpenAI-compatible server (most end in /v1)"
Parsed = TypeVar("Parsed")


class RejectedError(MeasurementError):
    """The server rejects requests of this form; `server_message` is redacted."""

    def __init__(self, message: str, status: int, server_message: str) -> None:
        super().__init__(message)
        self.status, self.server_message = status, server_message


class UnansweredError(MeasurementError):
    """The endpoint filters this request or failed at every attempt; it may still answer others."""

    def __init__(self, message: str, finish_reason: Literal["filter", "failed"]) -> None:
        super().__init__(message)
        self.finish_reason = finish_reason


@dataclass(frozen=True)
class RetryPolicy:
    """Waiting times before retries, with a clock that tests can replace.

    Attributes
    ----------
    sleep : callable
        Wait for an event, at most a number of seconds.
    jitter : callable
        Draw from 0 to 1, so that requests that failed together are not retried together.
    now : callable
        Current time in seconds.
    """

    sleep: Callable[[threading.Event, float], object] = threading.Event.wait
    jitter: Callable[[], float] = field(default_factory=lambda: random.Random().random)
    now: Callable[[], float] = time.time

    def delay(self, failures: int, retry_after: str | None) -> float:
        """Return the seconds to wait: doubled after each failure, or the server's Retry-After if it is longer."""
        backoff = _FIRST_BACKOFF * 2.0 ** (failures - 1) * (1 + self.jitter()) / 2
        return min(max(backoff, self._parse_retry_after(retry_after)), _LONGEST_WAIT)

    def _parse_retry_after(self, retry_after: str | None) -> float:
        if retry_after is None:
            return 0.0
        try:
            seconds = float(retry_after)
        except ValueError:
            try:
                date = parsedate_to_datetime(retry_after)
                seconds = date.replace(tzinfo=date.tzinfo or UTC).timestamp() - self.now()
            except (ValueError, TypeError, OverflowError):
                return 0.0
        return seconds if seconds > 0 else 0.0  # also for NaN


class _Throttle:
    """Spread requests evenly over time."""

    def __init__(self, per_minute: float, retry_policy: RetryPolicy) -> None:
        self._gap, self._next, self._lock, self._retry_policy = 60.0 / per_minute, 0.0, threading.Lock(), retry_policy

    def wait(self, stop: threading.Event) -> None:
        if not self._gap:
            return
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._gap
        self._retry_policy.sleep(stop, turn - now)


class PendingRequest:
    """A request with all its attempts.

    Parameters
    ----------
    stop : threading.Event
        Set if no further attempt is wanted.
    count_failure : callable, optional
        Count a failed attempt that may be charged; returns an error if the budget allows no other.

    Attributes
    ----------
    budget_error : BudgetError or None
        Set if the budget allows no further attempt.
    """

    def __init__(self, stop: threading.Event, count_failure: Callable[[], BudgetError | None] | None = None) -> None:
        self.stop, self._count_failure = stop, count_failure
        self.budget_error: BudgetError | None = None

    def record_failed(self) -> None:
        """Count a failed attempt that may be charged."""
        if self._count_failure is not None:
            self.budget_error = self._count_failure()


@dataclass(frozen=True)
class _FailedAttempt:
    """Why one attempt failed.

    Attributes
    ----------
    problem : str
        Cause, for the error message.
    retry : bool
        If True, another attempt may succeed.
    may_be_charged : bool
        If True, the provider may charge for the attempt.
    retry_after : str or None
        The server's Retry-After header.
    advice, first_advice : str
        What to try; `first_advice` is for endpoints that have not answered any request yet.
    status : int
        HTTP status, 0 if there was no response.
    server_message : str
        Message in the response.
    is_filtered : bool
        If True, the endpoint rejected the content of the request.
    """

    problem: str
    retry: bool
    may_be_charged: bool = False
    retry_after: str | None = None
    advice: str = ""
    first_advice: str = ""
    status: int = 0
    server_message: str = ""
    is_filtered: bool = False

    @property
    def finish_reason(self) -> Literal["filter", "failed"] | None:
        """Finish reason if the failure may be specific to this request; else None."""
        if self.is_filtered:
            return "filter"
        may_concern_request = self.retry and self.status != 429 if self.status else self.may_be_charged
        return "failed" if may_concern_request else None


class EndpointClient:
    """Send the requests of one model to its endpoint.

    Parameters
    ----------
    model : ModelName
        Parsed model string.
    path : str
        Path of the endpoint, such as ``/embeddings``.
    options : RequestOptions
        Limits.
    outputs : str
        Noun for the results of earlier requests in error messages: "vectors" or "responses".
    retry_policy : RetryPolicy, optional
        When to retry.

    Attributes
    ----------
    base_url : str
        URL without the path.
    destination : str
        URL that receives the texts, and variable of the key.
    """

    def __init__(
        self,
        model: ModelName,
        path: str,
        options: RequestOptions,
        outputs: str,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        endpoint = read_endpoint_url(model, path)
        self._key = find_api_key(model, endpoint)
        self._label, self._options, self._outputs = model.label, options, outputs
        self._retry_policy = retry_policy or RetryPolicy()
        self._throttle = _Throttle(options.rate, self._retry_policy)
        self.base_url = str(endpoint.url).rstrip("/")
        self._url = f"{self.base_url}{path}"
        self.http = _make_client(self._key, options, endpoint.url.scheme, trust=not endpoint.is_loopback)
        with_key = f"with the key in {self._key.names}" if self._key.value else "without a key"
        self.destination = f"{self.base_url}, {with_key}"
        self._has_answered = False

    def close(self) -> None:
        """Close all connections."""
        self.http.close()

    def post(
        self,
        payload: dict[str, Any],
        max_bytes: int,
        parse: Callable[[bytes], Parsed],
        pending_request: PendingRequest,
        description: str,
        hint: str = "",
    ) -> Parsed:
        """Send a request, with retries, and parse the response.

        Parameters
        ----------
        payload : dict
            Content of the request.
        max_bytes : int
            Largest size of the response.
        parse : callable
            Function from the body to the result; raises MalformedResponseError to request another attempt.
        pending_request : PendingRequest
            Counts the attempts.
        description : str
            Content of the request, for error messages.
        hint : str
            What to try if the server rejects the request.
        """
        attempts = 0
        while self._wait_for_turn(pending_request):
            try:
                outcome = self._attempt(payload, max_bytes, parse, description)
            except Exception as error:  # raised by `parse`: the response is charged, but of no use
                pending_request.record_failed()
                error.args = tuple(self._key.redact(arg) if isinstance(arg, str) else arg for arg in error.args)
                raise
            if not isinstance(outcome, _FailedAttempt):
                self._has_answered = True
                return outcome
            attempts += 1
            if outcome.may_be_charged:
                pending_request.record_failed()
            if not outcome.retry or attempts > self._options.retries:
                raise self._make_error(outcome, attempts, hint)
            if pending_request.budget_error is None:
                self._retry_policy.sleep(pending_request.stop, self._retry_policy.delay(attempts, outcome.retry_after))
        raise MeasurementError(f"{self._label}: stopped because another request failed")

    def _wait_for_turn(self, pending_request: PendingRequest) -> bool:
        """Wait for the rate limit; return True if the request is still wanted."""
        if pending_request.budget_error is None and not pending_request.stop.is_set():
            self._throttle.wait(pending_request.stop)
        if pending_request.budget_error is not None:
            raise pending_request.budget_error
        return not pending_request.stop.is_set()

    def _attempt(
        self, payload: dict[str, Any], max_bytes: int, parse: Callable[[bytes], Parsed], description: str
    ) -> Parsed | _FailedAttempt:
        """Send one request; return errors as values, so that no exception of httpx is chained to ours."""
        import httpx

        try:
            response, body = self._send(payload, max_bytes)
            if not response.is_success:
                return self._describe_rejection(response, body)
            if len(body) > max_bytes:
                problem = f"answered with more than {max_bytes:,} bytes to {description}"
                return _FailedAttempt(problem, retry=False, may_be_charged=True)
            return parse(body)
        except (httpx.RequestError, TimeoutError, MalformedResponseError) as error:
            return self._describe_failure(error)

    def _describe_failure(self, error: Exception) -> _FailedAttempt:
        """Describe why a request got no response or a malformed one."""
        import httpx

        if isinstance(error, httpx.DecodingError | MalformedResponseError):
            is_malformed = isinstance(error, MalformedResponseError)
            problem = str(error) if is_malformed else "data that do not match their Content-Encoding"
            return _FailedAttempt(
                f"answered with {problem}", retry=True, may_be_charged=True, first_advice=_PROTOCOL_HINT
            )
        was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            problem, advice = f"did not respond within {self._options.timeout:g} s", "allow more time with timeout="
            return _FailedAttempt(problem, retry=True, may_be_charged=was_sent, advice=advice)
        return _FailedAttempt(
            f"did not respond: {type(error).__name__}: {error}",
            retry=True,
            may_be_charged=was_sent,
            advice="check whether the server is running",
            first_advice="check base_url=, and whether the server is running",
        )

    def _send(self, payload: dict[str, Any], max_bytes: int) -> tuple[httpx.Response, bytes]:
        """Return the response with its body, of which little more than `max_bytes` is read."""
        deadline, body = time.monotonic() + self._options.timeout, bytearray()
        with self.http.stream("POST", self._url, json=payload) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if time.monotonic() > deadline:  # the client's own time limit applies to each chunk
                    raise TimeoutError
                if len(body) > max_bytes:
                    break
        return response, bytes(body)

    def _describe_rejection(self, response: httpx.Response, body: bytes) -> _FailedAttempt:
        status = response.status_code
        message = response.headers.get("Location", "") if response.is_redirect else extract_message(body)
        retry = status in (408, 429) or (status >= 500 and status != 501)  # 501: not implemented
        return _FailedAttempt(
            f"answered {status}: {message}" if message else f"answered {status}",
            retry,
            may_be_charged=status in _GATEWAY_TIMEOUTS,
            retry_after=response.headers.get("Retry-After"),
            advice=self._advise(response),
            first_advice="check the model's name and base_url=" if status == 404 else "",
            status=status,
            server_message=message,
            is_filtered=status == 400 and _is_filtered(body),
        )

    def _advise(self, response: httpx.Response) -> str:
        if response.is_redirect:
            return "redirects are not followed: set base_url= to the new URL"
        if response.status_code in (401, 403):
            return self._key.advice
        if response.status_code == 429:
            return "send fewer requests with concurrency= or rate=, or check the limits of the key"
        return ""

    def _make_error(self, failure: _FailedAttempt, attempts: int, hint: str) -> MeasurementError:
        tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        problem = f"{self._label}: {self._url} {self._key.redact_message(failure.problem)} ({tried})"
        first_advice = "" if self._has_answered else failure.first_advice
        advice = first_advice or failure.advice or (hint if failure.status in (400, 413, 422) else "")
        message = "; ".join(part for part in (problem, advice, f"earlier {self._outputs} are cached") if part)
        if failure.finish_reason is not None:
            return UnansweredError(message, failure.finish_reason)
        if failure.status in _REJECTION_CODES:
            return RejectedError(message, failure.status, self._key.redact_message(failure.server_message))
        return MeasurementError(message)


def _make_client(key: ApiKey, options: RequestOptions, scheme: str, *, trust: bool) -> httpx.Client:
    """Make an HTTP client; if `trust`, it uses proxies and certificates of the environment."""
    import httpx

    return httpx.Client(
        headers={**key.header, "Accept-Encoding": "gzip"},
        timeout=options.timeout,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=options.concurrency),
        follow_redirects=False,  # send key and texts only where the user said
        # Plain http has no certificates, and reading them is slow.
        verify=httpx.create_ssl_context(trust_env=trust) if scheme == "https" else False,
        trust_env=trust,
    )


def parse_json(body: bytes) -> Any:
    """Parse the body of a response; raise MalformedResponseError if it is not JSON.

    Bytes that are not UTF-8 are replaced, because you pay for a response even if the server cuts a character in half.
    """
    try:
        return json.loads(body.decode(json.detect_encoding(body), errors="replace"))
    except (ValueError, RecursionError):
        raise MalformedResponseError(f"something that is not JSON: {body[:1000].decode(errors='replace')}") from None


def _is_filtered(body: bytes) -> bool:
    """Return True if the endpoint rejected a request because of its content."""
    try:
        error = parse_json(body)
    except MalformedResponseError:
        return False
    codes: list[object] = []
    for name in ("error", "innererror"):  # the second error is nested in the first
        error = error.get(name) if isinstance(error, dict) else None
        codes += [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    return any(isinstance(code, str) and code.lower() in _FILTER_CODES for code in codes)


def extract_message(body: bytes) -> str:
    """Return the error message of a response in any of the usual forms, or else the whole body."""
    try:
        content = parse_json(body)
    except MalformedResponseError:
        return body.decode(errors="replace")
    for name in ("error", "message", "detail"):
        while isinstance(content, dict) and content.get(name):
            content = content[name]
    return content if isinstance(content, str) else body.decode(errors="replace")
