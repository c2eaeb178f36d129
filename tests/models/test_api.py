"""``api:`` over HTTP: content, order and size of requests."""

from __future__ import annotations

import numpy as np
import pytest

from . import api_server
from .api_server import TEXTS, Endpoint, opened, vectors_of

pytestmark = pytest.mark.extras

endpoint, key, no_key = api_server.endpoint, api_server.key, api_server.no_key


@pytest.mark.parametrize("count", [1, 2, 3, 9, 10])
def test_vectors_come_in_the_order_of_the_texts_and_each_text_goes_once(endpoint: Endpoint, count: int) -> None:
    encoded = opened(endpoint, "batch=3&concurrency=2").encode(TEXTS[:count])
    assert encoded.vectors.dtype == np.float32
    np.testing.assert_array_equal(encoded.vectors, vectors_of(TEXTS[:count]))
    assert encoded.unknown == ((),) * count
    assert encoded.truncated_at == (None,) * count
    assert sorted(endpoint.texts) == TEXTS[:count]
    assert max(len(asked["input"]) for _, _, asked in endpoint.seen) <= 3


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_requests_at_a_time_than_asked_for(endpoint: Endpoint, limit: int) -> None:
    endpoint.hold = 0.02
    encoder = opened(endpoint, f"batch=1&concurrency={limit}")
    assert encoder.batch_size == limit
    np.testing.assert_array_equal(encoder.encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == len(TEXTS)
    assert endpoint.peak == limit


def test_a_proxy_is_not_asked_for_this_machine(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert len(opened(endpoint, "retries=0").encode(["one"]).vectors) == 1


def test_no_text_is_no_request(endpoint: Endpoint) -> None:
    assert opened(endpoint).encode([]).vectors.shape == (0, 0)
    assert endpoint.seen == []
