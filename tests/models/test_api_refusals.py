"""``api:`` and failures that stay: they are named at once."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from biassay.errors import MeasurementError, VectorError

from . import api_server
from .api_server import TEXTS, Endpoint, Reply, changed, good, opened, vectors_of

pytestmark = pytest.mark.extras

endpoint, key, no_key = api_server.endpoint, api_server.key, api_server.no_key


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, r"smaller batch= \(now 64\)"),
        (401, "check the key in BIASSAY_API_KEY"),
        (403, "check the key in BIASSAY_API_KEY"),
        (404, "check the model's name and base_url="),
        (413, "smaller batch="),
        (422, "smaller batch="),
        (418, "cached"),
        (501, "cached"),
    ],
)
@pytest.mark.usefixtures("key")
def test_a_refusal_is_final_and_gives_the_servers_words(endpoint: Endpoint, status: int, advice: str) -> None:
    endpoint.always = lambda _: Reply(status, b'{"error": {"message": "I would rather not", "type": "x"}}')
    with pytest.raises(MeasurementError, match=rf"answered {status}: I would rather not \(1 attempt\); .*{advice}"):
        opened(endpoint).encode(["one"])
    assert len(endpoint.seen) == 1


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"error": "in short"}', "400: in short ("),
        (b'{"message": "in short"}', "400: in short ("),
        (b'{"detail": "in short"}', "400: in short ("),
        (b'{"detail": [{"loc": 1}]}', '400: {"detail": [{"loc": 1}]} ('),
        (b'{"error": {"message": null}}', '400: {"error": {"message": null}} ('),
        (b"<h1>no</h1>\n", "400: <h1>no</h1> ("),
        (b"", "answered 400 ("),
        (b'"\\ud800"', "400: ? ("),
        (b'{"error":' * 900 + b"1" + b"}" * 900, '{"error":{"error":'),
        (b"x" * 100_000, "x" * 99 + "…"),
    ],
)
def test_the_words_of_a_server_are_found_and_shortened(endpoint: Endpoint, body: bytes, shown: str) -> None:
    endpoint.always = lambda _: Reply(400, body)
    with pytest.raises(MeasurementError) as caught:
        opened(endpoint).encode(["one"])
    assert shown in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.usefixtures("key")
def test_redirects_are_not_followed(endpoint: Endpoint, status: int) -> None:
    endpoint.faults = [Reply(status, headers={"Location": f"http://localhost:{endpoint.server_port}/elsewhere"})]
    with pytest.raises(MeasurementError, match=rf"answered {status}: http://localhost.*not followed.*base_url="):
        opened(endpoint).encode(["one"])
    assert [path for path, _, _ in endpoint.seen] == ["/v1/embeddings"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "1e39"])
def test_a_number_that_is_not_finite_is_an_error_at_once(endpoint: Endpoint, number: str) -> None:
    body = json.dumps({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [77.5]}]})
    endpoint.always = lambda _: Reply(body=body.replace("77.5", number).encode())
    with pytest.raises(VectorError, match="'api:toy': the vector of 'two' is not finite"):
        opened(endpoint).encode(["one", "two"])
    assert len(endpoint.seen) == 1


def test_answers_of_two_dimensions_are_an_error(endpoint: Endpoint) -> None:
    endpoint.always = lambda asked: good({**asked, "dimensions": 4 if "text 7" in asked["input"] else 5})
    with pytest.raises(VectorError, match=r"different dimensions: \[4, 5\]"):
        opened(endpoint, "batch=2").encode(TEXTS)


@pytest.mark.parametrize("status", [200, 400])
def test_a_huge_answer_is_not_read_to_its_end(endpoint: Endpoint, status: int) -> None:
    endpoint.always = lambda _: Reply(status, b" " * 20_000_000)
    with pytest.raises(MeasurementError, match=r"more than 589,824 bytes to 1 texts|answered 400"):
        opened(endpoint).encode(["one"])
    assert len(endpoint.seen) == 1
    assert endpoint.sent == 0  # 20 MB are more than the buffers of a connection hold


@pytest.mark.parametrize("encoding", ["gzip", "GZip"])
def test_one_gzip_is_asked_for_and_unpacked(endpoint: Endpoint, encoding: str) -> None:
    endpoint.always = lambda asked: Reply(body=gzip.compress(good(asked).body), headers={"Content-Encoding": encoding})
    np.testing.assert_array_equal(opened(endpoint).encode(TEXTS).vectors, vectors_of(TEXTS))
    assert endpoint.seen[0][1]["Accept-Encoding"] == "gzip"


def test_a_dimension_that_was_not_asked_for_is_an_error_at_once(endpoint: Endpoint) -> None:
    endpoint.always = lambda asked: good({**asked, "dimensions": 5})
    with pytest.raises(VectorError, match=r"requested dimensions=3, got vectors of \[5\]; leave out dimensions="):
        opened(endpoint, "dimensions=3").encode(["one"])
    assert len(endpoint.seen) == 1


def test_vectors_of_two_dimensions_in_one_answer_are_an_error(endpoint: Endpoint) -> None:
    endpoint.always = changed(embedding=[1.0, 2.0])
    with pytest.raises(VectorError, match=r"different dimensions: \[2, 8\]"):
        opened(endpoint).encode(TEXTS)
