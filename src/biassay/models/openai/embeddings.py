"""Encode texts with an embeddings endpoint (`api:MODEL`)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import VectorError
from biassay.models.backend import ModelBackend, ModelName, read_number_setting
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.openai.client import (
    EndpointClient,
    MalformedResponseError,
    PendingRequest,
    RetryPolicy,
    extract_message,
    parse_json,
)
from biassay.models.openai.endpoint import (
    get_endpoint_consents,
    make_connection_settings,
    make_selftest,
    read_request_options,
)

_PATH, _CONCURRENCY = "/embeddings", 4
# 16,000 values of 20 characters are 320 kB; a longer response is an error.
_BYTES_PER_TEXT, _BYTES_OVERHEAD = 512 * 1024, 64 * 1024


class ApiEncoder:
    """Encode texts through an embeddings endpoint with concurrent requests.

    `batch_size` is the number of texts in all concurrent requests, so that finished ones are cached soon.
    """

    def __init__(self, model: ModelName, retry_policy: RetryPolicy | None = None) -> None:
        self._name, self._label = model.name, model.label
        self._batch = int(read_number_setting(model, "batch", 64, 1, 2048))
        options = read_request_options(model, _CONCURRENCY)
        self._dimensions = int(read_number_setting(model, "dimensions", 0, 1, 100_000)) or None
        self._client = client = EndpointClient(model, _PATH, options, "vectors", retry_policy)
        weakref.finalize(self, client.close)  # encoders have no method to close them
        settings = (("dimensions", str(self._dimensions)),) if self._dimensions else ()
        revision = f"{client.base_url} {model.name}"
        self.identity = Identity(f"api:{model.name}", "api", revision, settings, destination=client.destination)
        self._concurrency = options.concurrency
        self.batch_size = self._batch * options.concurrency

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing: there are no weights to load."""

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text."""
        parts = [list(texts[start : start + self._batch]) for start in range(0, len(texts), self._batch)]
        if not parts:
            return TextEmbeddings.from_vectors(np.empty((0, self._dimensions or 0), dtype=np.float32))
        return TextEmbeddings.from_vectors(self._make_vectors(texts, self._fetch_all(parts)))

    def _fetch_all(self, parts: list[list[str]]) -> list[list[float]]:
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

        stop = threading.Event()
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="biassay-api")
        try:
            futures = [pool.submit(self._request, part, stop) for part in parts]
            pending = set(futures)
            while pending:
                # Ctrl-C just before a wait without a timeout would be noticed only when a future is done.
                done, pending = wait(pending, timeout=1.0, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            return [row for future in futures for row in future.result()]
        finally:
            # After a failure or Ctrl-C nothing more is sent, and pending requests are not awaited.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _request(self, texts: list[str], stop: threading.Event) -> list[list[float]]:
        payload: dict[str, Any] = {"model": self._name, "input": texts, "encoding_format": "float"}
        if self._dimensions:
            payload["dimensions"] = self._dimensions
        max_bytes = _BYTES_OVERHEAD + _BYTES_PER_TEXT * len(texts)
        hint = f"if there are too many texts per request, use a smaller batch= (now {self._batch})"
        return self._client.post(
            payload, max_bytes, partial(_parse_rows, n=len(texts)), PendingRequest(stop), f"{len(texts)} texts", hint
        )

    def _make_vectors(self, texts: Sequence[str], rows: list[list[float]]) -> NDArray[np.float32]:
        """Return the vectors as an array. Raise VectorError if they are invalid, which a retry would not change."""
        expected, sizes = self._dimensions, sorted({len(row) for row in rows})
        if expected and sizes != [expected]:
            raise VectorError(
                f"{self._label}: requested dimensions={expected}, got vectors of {sizes}; leave out dimensions="
            )
        if len(sizes) > 1:
            raise VectorError(f"{self._label} returned vectors of different dimensions: {sizes}")
        with np.errstate(over="ignore"):
            vectors = np.array(rows, dtype=np.float64).astype(np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise VectorError(f"{self._label}: the vector of {texts[int(np.argmin(finite))]!r} is not finite")
        return vectors


def _parse_rows(body: bytes, n: int) -> list[list[float]]:
    """Parse the vectors of a response and sort them by index."""
    content = parse_json(body)
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list):
        raise MalformedResponseError(f"no list 'data': {extract_message(body)}")
    rows: dict[int, list[float]] = {}
    for item in data:
        index = item.get("index") if isinstance(item, dict) else None
        if type(index) is not int or not 0 <= index < n:
            raise MalformedResponseError(f"an index that is not one of 0 to {n - 1}")
        if index in rows:
            raise MalformedResponseError(f"the index {index} twice")
        rows[index] = _parse_row(item.get("embedding"))
    if len(rows) < n:
        raise MalformedResponseError(f"{len(rows)} vectors for {n} texts")
    return [rows[index] for index in range(n)]


def _parse_row(row: object) -> list[float]:
    if not isinstance(row, list) or not row:
        raise MalformedResponseError("an embedding that is not a list of numbers")
    wrong = set(map(type, row)) - {int, float}  # not isinstance, because True is an int
    if wrong:
        raise MalformedResponseError(f"an embedding that contains {', '.join(sorted(kind.__name__ for kind in wrong))}")
    try:
        return [float(number) for number in row]
    except OverflowError:
        raise MalformedResponseError("an embedding that contains a whole number too large for a vector") from None


BACKEND = ModelBackend(
    name="api",
    syntax="api:MODEL",
    description="OpenAI-compatible embeddings",
    settings=make_connection_settings(_PATH, _CONCURRENCY)
    | {
        "batch": "number of texts per request (default 64)",
        "dimensions": "length of the vectors, for models that can shorten them",
    },
    extra="api",
    needs=("httpx",),
    texts=ApiEncoder,
    splittable=False,  # requests are already concurrent
    required_consents=get_endpoint_consents,
    selftest=make_selftest("api"),
)
