"""Requests to an endpoint, tried again where that may help; what no attempt changes is named at once.

The key comes from the environment and goes into one request header; `Key` is the only object that holds it besides
the HTTP clients. Server messages pass its ``hidden_in`` before they are shown, and `redact` before they are stored.
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
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from biassay.errors import BudgetError, MeasurementError
from biassay.models.api_connection import Connections, MalformedError
from biassay.models.api_settings import Key, Options, find_key, read_address, who
from biassay.models.family import ModelName

if TYPE_CHECKING:
    import httpx

__all__ = ["Asking", "Pace", "RejectedError", "Sending", "UnansweredError", "message_of", "parsed"]

_FIRST_BACKOFF, _LONGEST_WAIT = 0.5, 60.0  # seconds
_REJECTED = (400, 404, 405, 413, 415, 422, 501)  # of these a server's own words say what is wrong with a request
_LATE = (408, 504, 524)  # whoever stands between gave up waiting, and the model may not have
_FILTERED = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "data_inspection_failed")
_ANOTHER_PROTOCOL = "check base_url=: it may not be the address of an OpenAI-compatible server (mostly it ends in /v1)"
Found = TypeVar("Found")


class RejectedError(MeasurementError):
    """A server does not take a request of this form; ``said`` are its words, without the key."""

    def __init__(self, message: str, status: int, said: str) -> None:
        super().__init__(message)
        self.status, self.said = status, said


class UnansweredError(MeasurementError):
    """The endpoint filters this request, or failed on it at every attempt; it may still answer others."""

    def __init__(self, message: str, ended: Literal["filter", "failed"]) -> None:
        super().__init__(message)
        self.ended = ended


@dataclass(frozen=True)
class Pace:
    """How long to wait before another attempt, by a clock that a test can replace.

    ``sleep`` waits that many seconds or until the event is set; ``jitter`` draws from 0 to 1, so that requests refused
    together are not sent again together.
    """

    sleep: Callable[[threading.Event, float], object] = threading.Event.wait
    jitter: Callable[[], float] = field(default_factory=lambda: random.Random().random)
    now: Callable[[], float] = time.time

    def delay(self, failures: int, retry_after: str | None) -> float:
        """Seconds to wait after so many failures in a row: doubled each time, or what the server asks if it is more."""
        backoff = _FIRST_BACKOFF * 2.0 ** (failures - 1) * (1 + self.jitter()) / 2
        return min(max(backoff, self._asked(retry_after)), _LONGEST_WAIT)

    def _asked(self, retry_after: str | None) -> float:
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
        return seconds if seconds > 0 else 0.0  # and nan is 0


class _Throttle:
    """Lets so many requests go in a minute, evenly."""

    def __init__(self, per_minute: float, pace: Pace) -> None:
        self._gap, self._next, self._lock, self._pace = 60.0 / per_minute, 0.0, threading.Lock(), pace

    def wait(self, stop: threading.Event) -> None:
        if not self._gap:
            return
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + self._gap
        self._pace.sleep(stop, turn - now)


class Sending:
    """One request under way, in as many attempts as it takes.

    Attributes
    ----------
    stop : threading.Event
        Set where another attempt is not wanted any more.
    forbids : BudgetError or None
        Says that the budget allows no further attempt.
    """

    def __init__(self, stop: threading.Event, lose: Callable[[], BudgetError | None] | None = None) -> None:
        """``lose`` counts an attempt that brought no answer and may have to be paid."""
        self.stop, self._lose = stop, lose
        self.forbids: BudgetError | None = None

    def lost(self) -> None:
        if self._lose is not None:
            self.forbids = self._lose()


@dataclass(frozen=True)
class _Failure:
    """What went wrong with one attempt, whether to try again, and whether it may have to be paid.

    ``ended`` says that the fault may be of this request alone. ``first_advice`` helps only before the endpoint has
    answered anything.
    """

    problem: str
    again: bool
    paid: bool = False
    retry_after: str | None = None
    advice: str = ""
    first_advice: str = ""
    status: int = 0
    said: str = ""
    ended: Literal["filter", "failed"] | None = None


class Asking:
    """Sends the requests of one model to the path of its endpoint.

    Attributes
    ----------
    base_url : str
    sends_to : str
        Where texts go, and with which key.
    """

    def __init__(self, model: ModelName, path: str, options: Options, kept: str, pace: Pace | None = None) -> None:
        """``kept``: what of earlier answers is in the store when a request fails."""
        address = read_address(model, path)
        self._key = find_key(model, address)
        self._who, self._options, self._kept, self._pace = who(model), options, kept, pace or Pace()
        self._throttle = _Throttle(options.rate, self._pace)
        self.base_url = str(address.url).rstrip("/")
        self._url = f"{self.base_url}{path}"
        self.connections = Connections(_client(self._key, options, address.url.scheme, trust=not address.is_loopback))
        with_key = f"with the key in {self._key.names}" if self._key.value else "without a key"
        self.sends_to = f"{self.base_url}, {with_key}"
        self._has_answered = False

    def close(self) -> None:
        self.connections.close()

    def post(
        self,
        asked: dict[str, Any],
        most: int,
        read: Callable[[bytes], Found],
        sending: Sending,
        about: str,
        hint: str = "",
    ) -> Found:
        """What ``read`` makes of the answer, of at most ``most`` bytes; it raises MalformedError for another attempt.

        ``about`` says what was asked, and ``hint`` what to try if the server does not take it.
        """
        attempts = 0
        while self._may_go(sending):
            try:
                outcome = self._attempt(asked, most, read, about)
            except Exception as error:  # of ``read``: there is an answer, which is paid, and nothing can be made of it
                sending.lost()
                error.args = tuple(self._key.redacted(arg) if isinstance(arg, str) else arg for arg in error.args)
                raise
            if not isinstance(outcome, _Failure):
                self._has_answered = True
                return outcome
            attempts += 1
            if outcome.paid:
                sending.lost()
            if not outcome.again or attempts > self._options.retries:
                raise self._error(outcome, attempts, hint)
            if sending.forbids is None:
                self._pace.sleep(sending.stop, self._pace.delay(attempts, outcome.retry_after))
        raise MeasurementError(f"{self._who}: stopped because another request failed")

    def _may_go(self, sending: Sending) -> bool:
        """Whether to send, when it is this request's turn."""
        if sending.forbids is None and not sending.stop.is_set():
            self._throttle.wait(sending.stop)
        if sending.forbids is not None:
            raise sending.forbids
        return not sending.stop.is_set()

    def _attempt(
        self, asked: dict[str, Any], most: int, read: Callable[[bytes], Found], about: str
    ) -> Found | _Failure:
        """One request. Errors become values here, so that no exception of the HTTP library is chained to ours."""
        import httpx

        try:
            response, body = self.connections.post(self._url, asked, most, self._options.timeout)
            if not response.is_success:
                return self._refused(response, body)
            if len(body) > most:
                problem = f"answered with more than {most:,} bytes to {about}"
                return _Failure(problem, again=False, paid=True, ended="failed")
            return read(body)
        except (httpx.TimeoutException, TimeoutError) as error:
            late = f"gave no answer within {self._options.timeout:g} s"
            paid = not isinstance(error, httpx.ConnectTimeout)
            advice = "timeout= gives it more time"
            return _Failure(late, again=True, paid=paid, advice=advice, ended="failed" if paid else None)
        except httpx.RequestError as error:
            problem = f"gave no answer: {type(error).__name__}: {error}"
            paid = not isinstance(error, httpx.ConnectError)
            return _Failure(
                problem,
                again=True,
                paid=paid,
                advice="check whether the server is running",
                first_advice="check base_url=, and whether the server is running",
                ended="failed" if paid else None,
            )
        except MalformedError as error:
            problem = f"answered with {error}"
            return _Failure(problem, again=True, paid=True, first_advice=_ANOTHER_PROTOCOL, ended="failed")

    def _refused(self, response: httpx.Response, body: bytes) -> _Failure:
        status = response.status_code
        said = response.headers.get("Location", "") if response.is_redirect else message_of(body)
        # 501 is "not implemented": no later attempt changes that.
        again = status in (408, 429) or (status >= 500 and status != 501)
        problem = f"answered {status}: {said}" if said else f"answered {status}"
        ended: Literal["filter", "failed"] | None = "failed" if again and status != 429 else None
        return _Failure(
            problem,
            again,
            paid=status in _LATE,
            retry_after=response.headers.get("Retry-After"),
            advice=self._advice(response),
            first_advice="check the model's name and base_url=" if status == 404 else "",
            status=status,
            said=said,
            ended="filter" if status == 400 and _is_filtered(body) else ended,
        )

    def _advice(self, response: httpx.Response) -> str:
        if response.is_redirect:
            return "redirects are not followed: give the right place as base_url="
        if response.status_code in (401, 403):
            return self._key.advice
        if response.status_code == 429:
            return "ask less at a time by concurrency= or rate=, or check what the key may use"
        return ""

    def _error(self, failure: _Failure, attempts: int, hint: str) -> MeasurementError:
        tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        what = f"{self._who}: {self._url} {self._key.hidden_in(failure.problem)} ({tried})"
        first = "" if self._has_answered else failure.first_advice
        advice = first or failure.advice or (hint if failure.status in (400, 413, 422) else "")
        kept = f"{self._kept} that came before are kept"
        message = "; ".join(part for part in (what, advice, kept) if part)
        if failure.ended is not None:
            return UnansweredError(message, failure.ended)
        if failure.status in _REJECTED:
            return RejectedError(message, failure.status, self._key.hidden_in(failure.said))
        return MeasurementError(message)


def _client(key: Key, options: Options, scheme: str, *, trust: bool) -> Callable[[], httpx.Client]:
    """``trust``: proxies and certificates of the environment; a proxy is not asked for this very machine."""
    import httpx

    return partial(
        httpx.Client,
        headers={**key.header, "Accept-Encoding": "gzip"},
        timeout=options.timeout,
        limits=httpx.Limits(max_connections=1),
        follow_redirects=False,  # the key and the texts go where the user said and nowhere else
        # Plain http has no certificates, and reading them takes a while.
        verify=httpx.create_ssl_context(trust_env=trust) if scheme == "https" else False,
        trust_env=trust,
    )


def parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError(f"something that is not JSON: {body[:1000].decode(errors='replace')}") from None


def _is_filtered(body: bytes) -> bool:
    """Check whether the endpoint rejected a request because of its content."""
    try:
        error = parsed(body)
    except MalformedError:
        return False
    codes: list[object] = []
    for name in ("error", "innererror"):  # the second one is inside the first
        error = error.get(name) if isinstance(error, dict) else None
        codes += [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    return any(isinstance(code, str) and code.lower() in _FILTERED for code in codes)


def message_of(body: bytes) -> str:
    """What a server says went wrong, in any of the usual forms, or else all it said."""
    try:
        found = parsed(body)
    except MalformedError:
        return body.decode(errors="replace")
    for name in ("error", "message", "detail"):
        while isinstance(found, dict) and found.get(name):
            found = found[name]
    return found if isinstance(found, str) else body.decode(errors="replace")
