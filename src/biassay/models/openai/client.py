"""Send requests to an endpoint with retries and limits on time and size.

The key comes from the environment and goes into one request header; only `ApiKey` and the HTTP clients hold it. Server
messages are redacted before they are shown or stored.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from biassay.errors import BudgetError, MeasurementError
from biassay.models.backend import ModelName
from biassay.models.openai.endpoint import ApiKey, RequestOptions, find_api_key, read_endpoint_url

if TYPE_CHECKING:
    import httpx


__all__ = [
    "ConnectionPool",
    "EndpointClient",
    "MalformedResponseError",
    "PendingRequest",
    "RejectedError",
    "RetryPolicy",
    "UnansweredError",
    "extract_message",
    "parse_json",
]


_GZIP = 16 + zlib.MAX_WBITS


class MalformedResponseError(Exception):
    """A response that does not follow the protocol."""


class ConnectionPool:
    """Reuse connections, one per pending request.

    Parameters
    ----------
    client : callable
        Function that makes a client for one connection.
    """

    def __init__(self, client: Callable[[], httpx.Client]) -> None:
        self._client = client
        self._idle: list[_Connection] = []
        self._closed = False
        self._lock = threading.Lock()

    def post(self, url: str, payload: object, max_bytes: int, seconds: float) -> tuple[httpx.Response, bytes]:
        """Send a JSON payload and return the response with its body.

        Parameters
        ----------
        url : str
            Endpoint.
        payload : object
            Content of the request.
        max_bytes : int
            At most one byte more than this is decompressed.
        seconds : float
            Time limit for the whole response; exceeding it raises TimeoutError.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or _Connection(self._client())
        try:
            return connection.post(url, payload, max_bytes, seconds)
        finally:
            self._give_back(connection)

    def _give_back(self, connection: _Connection) -> None:
        """Return a connection to the pool, or close it if the pool was closed in the meantime."""
        with self._lock:
            closed = self._closed
            if not closed:
                self._idle.append(connection)
        if closed:
            connection.client.close()

    def close(self) -> None:
        """Close all connections; one in use closes at the end of its request."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.client.close()


class _Connection:
    """A connection for one request at a time, so that a timer can end the request.

    The client's own time limit applies to each chunk of a response: a server that sends a byte now and then evades it.
    """

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._socket: socket.socket | None = None
        self._late = threading.Event()

    def post(self, url: str, payload: object, max_bytes: int, seconds: float) -> tuple[httpx.Response, bytes]:
        import httpx

        late = self._late = threading.Event()
        timer = threading.Timer(seconds, self._end, (late,))
        timer.daemon = True
        timer.start()
        try:
            with self.client.stream("POST", url, json=payload, extensions={"trace": self._trace}) as response:
                body = _read_body(response, max_bytes)
        except httpx.TransportError:
            if not late.is_set():
                raise
        finally:
            timer.cancel()
        if late.is_set():
            raise TimeoutError
        return response, body

    def _end(self, late: threading.Event) -> None:
        """End the request that `late` belongs to, not a later one."""
        late.set()
        if late is self._late:
            self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # Not the method of SSLSocket, which would dismantle the connection while it is read.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket of a new connection."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._late.is_set():
                self._shut_down()


def _read_body(response: httpx.Response, max_bytes: int) -> bytes:
    """Read at most one byte more than `max_bytes`; httpx would decompress before it counts."""
    header = response.headers.get("Content-Encoding", "")
    encodings = [name for part in header.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if encodings not in ([], ["gzip"]):
        raise MalformedResponseError(f"the Content-Encoding {header!r}; allowed are gzip, once, and none")
    decompressor, body = zlib.decompressobj(_GZIP) if encodings else None, bytearray()
    for chunk in response.iter_raw():
        room = max_bytes + 1 - len(body)
        try:
            body += decompressor.decompress(chunk, room) if decompressor else chunk[:room]
        except zlib.error:
            raise MalformedResponseError("data that are not gzip, contrary to the Content-Encoding") from None
        if len(body) > max_bytes:
            break
    return bytes(body)


_FIRST_BACKOFF, _LONGEST_WAIT = 0.5, 60.0  # seconds
_REJECTION_CODES = (400, 404, 405, 413, 415, 422, 501)  # the server's message says what is wrong with the request
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
    """How long to wait before a retry, with a clock that tests can replace.

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
        What happened, for the error message.
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
    finish_reason : {"filter", "failed"} or None
        Set if the failure may concern this request only.
    """

    problem: str
    retry: bool
    may_be_charged: bool = False
    retry_after: str | None = None
    advice: str = ""
    first_advice: str = ""
    status: int = 0
    server_message: str = ""
    finish_reason: Literal["filter", "failed"] | None = None


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
        What earlier requests returned, for error messages: "vectors" or "responses".
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
        self.connections = ConnectionPool(
            _make_client_factory(self._key, options, endpoint.url.scheme, trust=not endpoint.is_loopback)
        )
        with_key = f"with the key in {self._key.names}" if self._key.value else "without a key"
        self.destination = f"{self.base_url}, {with_key}"
        self._has_answered = False

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

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
            What the request contains, for error messages.
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
            response, body = self.connections.post(self._url, payload, max_bytes, self._options.timeout)
            if not response.is_success:
                return self._describe_rejection(response, body)
            if len(body) > max_bytes:
                problem = f"answered with more than {max_bytes:,} bytes to {description}"
                return _FailedAttempt(problem, retry=False, may_be_charged=True, finish_reason="failed")
            return parse(body)
        except (httpx.TimeoutException, TimeoutError) as error:
            was_sent = not isinstance(error, httpx.ConnectTimeout)
            return _FailedAttempt(
                f"did not respond within {self._options.timeout:g} s",
                retry=True,
                may_be_charged=was_sent,
                advice="allow more time with timeout=",
                finish_reason="failed" if was_sent else None,
            )
        except httpx.RequestError as error:
            was_sent = not isinstance(error, httpx.ConnectError)
            return _FailedAttempt(
                f"did not respond: {type(error).__name__}: {error}",
                retry=True,
                may_be_charged=was_sent,
                advice="check whether the server is running",
                first_advice="check base_url=, and whether the server is running",
                finish_reason="failed" if was_sent else None,
            )
        except MalformedResponseError as error:
            return _FailedAttempt(
                f"answered with {error}",
                retry=True,
                may_be_charged=True,
                first_advice=_PROTOCOL_HINT,
                finish_reason="failed",
            )

    def _describe_rejection(self, response: httpx.Response, body: bytes) -> _FailedAttempt:
        status = response.status_code
        message = response.headers.get("Location", "") if response.is_redirect else extract_message(body)
        retry = status in (408, 429) or (status >= 500 and status != 501)  # 501: not implemented
        finish_reason: Literal["filter", "failed"] | None = "failed" if retry and status != 429 else None
        return _FailedAttempt(
            f"answered {status}: {message}" if message else f"answered {status}",
            retry,
            may_be_charged=status in _GATEWAY_TIMEOUTS,
            retry_after=response.headers.get("Retry-After"),
            advice=self._advise(response),
            first_advice="check the model's name and base_url=" if status == 404 else "",
            status=status,
            server_message=message,
            finish_reason="filter" if status == 400 and _is_filtered(body) else finish_reason,
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


def _make_client_factory(
    key: ApiKey, options: RequestOptions, scheme: str, *, trust: bool
) -> Callable[[], httpx.Client]:
    """Return a function that makes HTTP clients; if `trust`, they use proxies and certificates of the environment."""
    import httpx

    return partial(
        httpx.Client,
        headers={**key.header, "Accept-Encoding": "gzip"},
        timeout=options.timeout,
        limits=httpx.Limits(max_connections=1),
        follow_redirects=False,  # send key and texts only where the user said
        # Plain http has no certificates, and reading them is slow.
        verify=httpx.create_ssl_context(trust_env=trust) if scheme == "https" else False,
        trust_env=trust,
    )


def parse_json(body: bytes) -> Any:
    """Parse the body of a response; raise MalformedResponseError if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedResponseError(f"something that is not JSON: {body[:1000].decode(errors='replace')}") from None


def _is_filtered(body: bytes) -> bool:
    """Return True if the endpoint rejected a request because of its content."""
    try:
        error = parse_json(body)
    except MalformedResponseError:
        return False
    codes: list[object] = []
    for name in ("error", "innererror"):  # the second one is inside the first
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
