"""``api:MODEL?base_url=...``: any OpenAI-compatible embeddings endpoint.

The key comes from the environment and goes into one request header; `Key` is the only object that holds it besides
the HTTP clients, and every word of a server passes its ``hidden_in`` before it is shown.
"""

from __future__ import annotations

import json
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import MeasurementError, VectorError
from biassay.models.api_connection import Connections, MalformedError
from biassay.models.api_settings import SETTINGS, Key, Options, consent, find_key, read_address, read_options, who
from biassay.models.base import Encoded, Identity
from biassay.models.family import Family, ModelName

if TYPE_CHECKING:
    import httpx

__all__ = ["FAMILY", "ApiEncoder", "Pace", "provide"]

_FIRST_BACKOFF, _LONGEST_WAIT = 0.5, 60.0  # seconds
# 16,000 numbers of 20 characters each are 320 kB; what is longer is no answer to what was asked.
_BYTES_A_TEXT, _BYTES_AROUND = 512 * 1024, 64 * 1024


def provide(model: ModelName, pace: Pace | None = None) -> ApiEncoder:
    import httpx

    options, address = read_options(model), read_address(model)
    key = find_key(model, address)
    trust_env = not address.is_loopback  # a proxy is not asked for this very machine
    client = partial(
        httpx.Client,
        headers={**key.header, "Accept-Encoding": "gzip"},
        timeout=options.timeout,
        limits=httpx.Limits(max_connections=1),
        follow_redirects=False,  # the key and the texts go where the user said and nowhere else
        # Plain http has no certificates, and reading them takes a while.
        verify=httpx.create_ssl_context(trust_env=trust_env) if address.url.scheme == "https" else False,
        trust_env=trust_env,
    )
    return ApiEncoder(model.name, str(address.url).rstrip("/"), options, key, Connections(client), pace or Pace())


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


@dataclass(frozen=True)
class _Failure:
    """What went wrong with one attempt, and whether to try again."""

    problem: str
    again: bool
    retry_after: str | None = None
    advice: str = ""


class ApiEncoder:
    """Asks an endpoint for vectors, several requests at a time.

    ``batch_size`` is the number of texts that are on their way at once, so that the store has all that was finished.
    """

    def __init__(
        self, model: str, base_url: str, options: Options, key: Key, connections: Connections, pace: Pace
    ) -> None:
        self._model, self._url, self._options, self._key = model, f"{base_url}/embeddings", options, key
        self._connections, self._pace = connections, pace
        weakref.finalize(self, connections.close)  # an encoder has no end of its own
        settings = (("dimensions", str(options.dimensions)),) if options.dimensions else ()
        sends_to = f"{base_url}, with the key in {key.names}" if key.value else f"{base_url}, without a key"
        self.identity = Identity(f"api:{model}", "api", f"{base_url} {model}", settings, sends_to=sends_to)
        self.batch_size = options.batch * options.concurrency

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> Encoded:
        batch = self._options.batch
        parts = [list(texts[start : start + batch]) for start in range(0, len(texts), batch)]
        if not parts:
            return Encoded.of(np.empty((0, self._options.dimensions or 0), dtype=np.float32))
        vectors = self._all(parts)
        sizes = sorted({part.shape[1] for part in vectors})
        if len(sizes) > 1:
            raise VectorError(f"{who(self._model)} gave vectors of different dimensions: {sizes}")
        return Encoded.of(np.concatenate(vectors))

    def _all(self, parts: list[list[str]]) -> list[NDArray[np.float32]]:
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        stop = threading.Event()
        pool = ThreadPoolExecutor(self._options.concurrency, thread_name_prefix="biassay-api")
        try:
            futures = [pool.submit(self._request, part, stop) for part in parts]
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
            return [future.result() for future in futures]
        finally:
            # After a failure or Ctrl-C nothing new is sent, and what is on its way is not waited for.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _request(self, texts: list[str], stop: threading.Event) -> NDArray[np.float32]:
        attempts = 0
        while not stop.is_set():
            outcome = self._attempt(texts)
            if not isinstance(outcome, _Failure):
                return outcome
            attempts += 1
            if not outcome.again or attempts > self._options.retries:
                raise MeasurementError(self._told(outcome, attempts))
            self._pace.sleep(stop, self._pace.delay(attempts, outcome.retry_after))
        raise MeasurementError(f"{who(self._model)}: stopped because another request failed")

    def _attempt(self, texts: list[str]) -> NDArray[np.float32] | _Failure:
        """One request. Errors become values here, so that no exception of the HTTP library is chained to ours."""
        import httpx

        asked: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._options.dimensions:
            asked["dimensions"] = self._options.dimensions
        most = _BYTES_AROUND + _BYTES_A_TEXT * len(texts)
        try:
            response, body = self._connections.post(self._url, asked, most, self._options.timeout)
            if not response.is_success:
                return self._refused(response, body)
            if len(body) > most:
                return _Failure(f"answered with more than {most:,} bytes to {len(texts)} texts", again=False)
            rows = _rows(body, len(texts))
        except (httpx.TimeoutException, TimeoutError):
            return _Failure(f"gave no answer within {self._options.timeout:g} s", again=True)
        except httpx.RequestError as error:
            return _Failure(f"gave no answer: {type(error).__name__}: {error}", again=True)
        except MalformedError as error:
            return _Failure(f"answered with {error}", again=True)
        return self._vectors(texts, rows)

    def _vectors(self, texts: list[str], rows: list[list[float]]) -> NDArray[np.float32]:
        """The vectors of an answer; what another attempt would not change is an error at once."""
        name, expected = who(self._model), self._options.dimensions
        sizes = sorted({len(row) for row in rows})
        if expected and sizes != [expected]:
            raise VectorError(f"{name}: asked for dimensions={expected}, got vectors of {sizes}; leave dimensions out")
        if len(sizes) > 1:
            raise VectorError(f"{name} gave vectors of different dimensions: {sizes}")
        with np.errstate(over="ignore"):
            vectors = np.array(rows, dtype=np.float64).astype(np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise VectorError(f"{name}: the vector of {texts[int(np.argmin(finite))]!r} is not finite")
        return vectors

    def _refused(self, response: httpx.Response, body: bytes) -> _Failure:
        status = response.status_code
        said = response.headers.get("Location", "") if response.is_redirect else _message(body)
        # 501 is "not implemented": no later attempt changes that.
        again = status in (408, 429) or (status >= 500 and status != 501)
        problem = f"answered {status}: {said}" if said else f"answered {status}"
        return _Failure(problem, again, response.headers.get("Retry-After"), self._advice(response))

    def _advice(self, response: httpx.Response) -> str:
        if response.is_redirect:
            return "redirects are not followed: give the right place as base_url="
        if response.status_code in (401, 403):
            return f"the key {'is that of' if self._key.value else 'is missing: set'} {self._key.names}"
        if response.status_code == 404:
            return "check the model's name and base_url="
        if response.status_code in (400, 413, 422):
            return f"if that is too many texts at once, give a smaller batch= (now {self._options.batch})"
        return ""

    def _told(self, failure: _Failure, attempts: int) -> str:
        tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        what = f"{who(self._model)}: {self._url} {self._key.hidden_in(failure.problem)} ({tried})"
        kept = "vectors that came before are kept, so that the run can be resumed"
        return "; ".join(part for part in (what, failure.advice, kept) if part)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError(f"something that is not JSON: {body[:1000].decode(errors='replace')}") from None


def _rows(body: bytes, n: int) -> list[list[float]]:
    """The vectors of an answer by their index: the order of an answer is free."""
    answer = _json(body)
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise MalformedError(f"no list 'data': {_message(body)}")
    rows: dict[int, list[float]] = {}
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if type(index) is not int or not 0 <= index < n:
            raise MalformedError(f"an index that is not one of 0 to {n - 1}")
        if index in rows:
            raise MalformedError(f"the index {index} twice")
        rows[index] = _row(item.get("embedding"))
    if len(rows) < n:
        raise MalformedError(f"{len(rows)} vectors to {n} texts")
    return [rows[index] for index in range(n)]


def _row(row: object) -> list[float]:
    if not isinstance(row, list) or not row:
        raise MalformedError("an embedding that is not a list of numbers")
    strange = set(map(type, row)) - {int, float}  # True is an int to Python
    if strange:
        raise MalformedError(f"an embedding that holds {', '.join(sorted(kind.__name__ for kind in strange))}")
    try:
        return [float(number) for number in row]
    except OverflowError:
        raise MalformedError("an embedding that holds a whole number too large for any vector") from None


def _message(body: bytes) -> str:
    """What a server says went wrong, in any of the usual forms, or else all it said."""
    try:
        found = _json(body)
    except MalformedError:
        return body.decode(errors="replace")
    for name in ("error", "message", "detail"):
        while isinstance(found, dict) and found.get(name):
            found = found[name]
    return found if isinstance(found, str) else body.decode(errors="replace")


@contextmanager
def _selftest(_: Path) -> Iterator[str]:
    from biassay.models.tiny import embeddings_endpoint, environment

    key = "BIASSAY_SELFTEST_KEY"  # the user's own key is for other servers
    with environment({key: "none"}), embeddings_endpoint() as address:
        yield f"api:tiny?base_url={address}&key_env={key}&retries=0"


FAMILY = Family(
    name="api",
    form="api:MODEL",
    about="any OpenAI-compatible embeddings endpoint",
    settings=SETTINGS,
    extra="api",
    needs=("httpx",),
    texts=provide,
    splits=False,  # concurrency= says how many requests are on their way at once
    consent=consent,
    selftest=_selftest,
)
