"""``api:MODEL?base_url=...``: any OpenAI-compatible embeddings endpoint."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import VectorError
from biassay.models.api_asking import Asking, Pace, Sending, message_of, parsed
from biassay.models.api_connection import MalformedError
from biassay.models.api_settings import connection_settings, consent, read_number, read_options, who
from biassay.models.base import Encoded, Identity
from biassay.models.family import Family, ModelName

__all__ = ["FAMILY", "ApiEncoder", "provide"]

_PATH, _CONCURRENCY = "/embeddings", 4
# 16,000 numbers of 20 characters each are 320 kB; what is longer is no answer to what was asked.
_BYTES_A_TEXT, _BYTES_AROUND = 512 * 1024, 64 * 1024


def provide(model: ModelName, pace: Pace | None = None) -> ApiEncoder:
    return ApiEncoder(model, pace)


class ApiEncoder:
    """Asks an endpoint for vectors, several requests at a time.

    ``batch_size`` is the number of texts that are on their way at once, so that the store has all that was finished.
    """

    def __init__(self, model: ModelName, pace: Pace | None = None) -> None:
        self._name, self._who = model.name, who(model)
        self._batch = int(read_number(model, "batch", 64, 1, 2048))
        options = read_options(model, _CONCURRENCY)
        self._dimensions = int(read_number(model, "dimensions", 0, 1, 100_000)) or None
        self._asking = asking = Asking(model, _PATH, options, "vectors", pace)
        weakref.finalize(self, asking.close)  # an encoder has no end of its own
        settings = (("dimensions", str(self._dimensions)),) if self._dimensions else ()
        revision = f"{asking.base_url} {model.name}"
        self.identity = Identity(f"api:{model.name}", "api", revision, settings, sends_to=asking.sends_to)
        self._concurrency = options.concurrency
        self.batch_size = self._batch * options.concurrency

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> Encoded:
        parts = [list(texts[start : start + self._batch]) for start in range(0, len(texts), self._batch)]
        if not parts:
            return Encoded.of(np.empty((0, self._dimensions or 0), dtype=np.float32))
        vectors = self._all(parts)
        sizes = sorted({part.shape[1] for part in vectors})
        if len(sizes) > 1:
            raise VectorError(f"{self._who} gave vectors of different dimensions: {sizes}")
        return Encoded.of(np.concatenate(vectors))

    def _all(self, parts: list[list[str]]) -> list[NDArray[np.float32]]:
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        stop = threading.Event()
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="biassay-api")
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
        asked: dict[str, Any] = {"model": self._name, "input": texts, "encoding_format": "float"}
        if self._dimensions:
            asked["dimensions"] = self._dimensions
        most = _BYTES_AROUND + _BYTES_A_TEXT * len(texts)
        hint = f"if that is too many texts at once, give a smaller batch= (now {self._batch})"
        rows = self._asking.post(asked, most, partial(_rows, n=len(texts)), Sending(stop), f"{len(texts)} texts", hint)
        return self._vectors(texts, rows)

    def _vectors(self, texts: list[str], rows: list[list[float]]) -> NDArray[np.float32]:
        """The vectors of an answer; what another attempt would not change is an error at once."""
        expected, sizes = self._dimensions, sorted({len(row) for row in rows})
        if expected and sizes != [expected]:
            raise VectorError(
                f"{self._who}: asked for dimensions={expected}, got vectors of {sizes}; leave dimensions out"
            )
        if len(sizes) > 1:
            raise VectorError(f"{self._who} gave vectors of different dimensions: {sizes}")
        with np.errstate(over="ignore"):
            vectors = np.array(rows, dtype=np.float64).astype(np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise VectorError(f"{self._who}: the vector of {texts[int(np.argmin(finite))]!r} is not finite")
        return vectors


def _rows(body: bytes, n: int) -> list[list[float]]:
    """The vectors of an answer by their index: the order of an answer is free."""
    answer = parsed(body)
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise MalformedError(f"no list 'data': {message_of(body)}")
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
    settings=connection_settings(_PATH, _CONCURRENCY)
    | {
        "batch": "texts in one request; the default is 64",
        "dimensions": "numbers in a vector, where the model can shorten them",
    },
    extra="api",
    needs=("httpx",),
    texts=provide,
    splits=False,  # concurrency= says how many requests are on their way at once
    consent=consent,
    selftest=_selftest,
)
