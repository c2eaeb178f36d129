"""``api:`` over HTTP: requests, settings, refusals, retries and whole runs."""

from __future__ import annotations

import gzip
import json
import signal
import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

import biassay
from biassay.errors import MeasurementError, UsageError, VectorError
from biassay.models.openai.embeddings import ApiEncoder
from biassay.models.registry import open_encoder, parse_model
from biassay.prompts.sentences import make_random_texts, make_texts

from . import api_server
from .api_server import TEXTS, Asked, Clock, Endpoint, Reply, Script, answer, changed, data, good, opened, vectors_of

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


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("batch=0", "batch must be a whole number from 1 to 2048, got '0'"),
        ("batch=", "batch must be .* got ''"),
        ("timeout=0", r"timeout must be a number from 0\.001 to 3600, got '0'"),
        ("batch=1.5", "batch must be"),
        ("concurrency=0", "concurrency must be a whole number from 1 to 64"),
        ("retries=-1", "retries must be a whole number from 0 to 100"),
        ("timeout=nan", "timeout must be"),
        ("timeout=inf", "timeout must be"),
        ("timeout=1h", "timeout must be"),
        ("dimensions=0", "dimensions must be a whole number from 1 to 100000"),
        ("dimension=5", "did you mean 'dimensions'"),
    ],
)
def test_settings_out_of_range_are_named(endpoint: Endpoint, setting: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        opened(endpoint, setting)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000/v1", "ftp://host/v1", "http://", "http:///v1", "http://h:abc", "http://h:99999", "/v1"]
)
@pytest.mark.usefixtures("key")
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base_url must be like http://host:port/v1, got"):
        open_encoder(f"api:toy?base_url={url}")


@pytest.mark.parametrize(
    "url",
    [
        "http://me:pass-word-1@127.0.0.1/v1",
        "me:pass-word-1@127.0.0.1/v1",
        "http://pass-word-1@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=pass-word-1",
        "http://127.0.0.1/v1#pass-word-1",
    ],
)
@pytest.mark.parametrize("origin", ["base_url", "OPENAI_BASE_URL"])
@pytest.mark.usefixtures("key")
def test_an_address_with_a_secret_is_refused_and_not_repeated(
    url: str, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UsageError, match=f"'api:toy': {origin} must not contain") as caught:
        open_encoder(f"api:toy?base_url={quote(url)}" if origin == "base_url" else "api:toy")
    assert "pass-word-1" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.usefixtures("key")
def test_identity_is_address_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = open_encoder("api:some/model-3?base_url=http://HOST:80/v1/&key_env=BIASSAY_API_KEY").identity
    assert (identity.name, identity.backend, identity.settings) == ("api:some/model-3", "api", ())
    assert identity.revision == "http://host/v1 some/model-3"
    monkeypatch.setenv("OUR_KEY", "other")
    same = "batch=2&concurrency=1&retries=1&timeout=2.5&key_env=OUR_KEY"
    assert open_encoder(f"api:some/model-3?base_url=http://host/v1&{same}").identity == identity
    others = (
        "api:model-3?base_url=http://host/v1&key_env=BIASSAY_API_KEY",
        "api:some/model-3?base_url=http://host/v2&key_env=BIASSAY_API_KEY",
    )
    assert identity.key not in {open_encoder(text).identity.key for text in others}
    shorter = open_encoder("api:some/model-3?base_url=http://host/v1&dimensions=0256&key_env=BIASSAY_API_KEY").identity
    assert shorter.settings == (("dimensions", "256"),)
    assert shorter.key != identity.key


@pytest.mark.parametrize("origin", ["https://host/v1", "https://localhost:1/v1"])
@pytest.mark.usefixtures("key")
def test_certificates_are_checked_where_there_are_any(origin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Client(httpx.Client):
        def __init__(self, **settings: Any) -> None:
            asked.append(settings)
            super().__init__(**settings)

    monkeypatch.setattr(httpx, "Client", Client)
    ApiEncoder(parse_model(f"api:toy?base_url={origin}&key_env=BIASSAY_API_KEY"))
    assert asked[0]["verify"].verify_mode is ssl.CERT_REQUIRED
    assert asked[0]["verify"].check_hostname is True
    assert asked[0]["follow_redirects"] is False


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, r"smaller batch= \(now 64\)"),
        (401, "check the key in BIASSAY_API_KEY"),
        (403, "check the key in BIASSAY_API_KEY"),
        (404, "check the model's name and base_url="),
        (422, "smaller batch="),
        (418, "cached"),
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


@pytest.fixture
def far_away() -> Iterator[None]:
    """A time zone that must make no difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC+5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("7", 7),
        ("0", 0.5),
        ("-3", 0.5),
        ("100000", 60),
        ("inf", 60),
        ("nan", 0.5),
        ("soon", 0.5),
        ("", 0.5),
        ("Tue, 14 Nov 2023 22:13:29 GMT", 9),  # the clock stands at 22:13:20
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.5),
        ("Fri, 14 Nov 2053 22:00:00 GMT", 60),
        ("Fri, 99 Nov 99999 22:00:00 GMT", 0.5),
    ],
)
@pytest.mark.usefixtures("far_away")
def test_retry_after_is_heeded_within_bounds(endpoint: Endpoint, asked: str, wait: float) -> None:
    clock = Clock()
    endpoint.faults = [Reply(429, headers={"Retry-After": asked})]
    opened(endpoint, clock=clock).encode(["one"])
    assert clock.waits == [wait]


@pytest.mark.parametrize(
    "fault",
    [
        Reply(drop=True),
        Reply(hang=True),
        Reply(cut=10),
        lambda asked: replace(good(asked), pause=0.02),
        lambda asked: replace(good(asked), pause=0.02, announced=False),
    ],
    ids=["dropped", "silent", "cut short", "a slow body", "a slow body without length"],
)
def test_a_broken_connection_is_tried_again(endpoint: Endpoint, fault: Reply | Script) -> None:
    """What comes a byte at a time would be good in the end, after some seconds."""
    endpoint.faults = [fault]
    np.testing.assert_array_equal(opened(endpoint, "timeout=0.2").encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == 2


MALFORMED: dict[str, tuple[Reply | Script, str]] = {
    "short": (lambda asked: answer(data(asked)[:-1]), "9 vectors for 10 texts"),
    "long": (lambda asked: answer([*data(asked), {"index": 10, "embedding": [1.0]}]), "an index that is not one of 0"),
    "index twice": (changed(index=0), "the index 0 twice"),
    "index missing": (changed(index=None), "an index that is not one of 0 to 9"),
    "index a word": (changed(index="1"), "an index that is not one of 0 to 9"),
    "item a word": (answer(["x"] * 10), "an index that is not one of 0 to 9"),
    "no vector": (changed(embedding=None), "list of numbers"),
    "base64": (changed(embedding="AACAPw=="), "list of numbers"),
    "truths": (changed(embedding=[True] + [0.5] * 7), "contains bool"),
    "lists": (changed(embedding=[[0.5] * 8]), "contains list"),
    "endless number": (changed(embedding=[10**400] * 8), "too large"),
    "no data": (Reply(body=b'{"error": "still loading"}'), "no list 'data': still loading"),
    "a list": (Reply(body=b"[1, 2]"), r"no list 'data': \[1, 2\]"),
    "empty": (Reply(body=b""), "not JSON"),
    "no text": (Reply(body=b"\xff\xfe\x00"), "not JSON"),
    "abyss": (Reply(body=b"[" * 100_000), "not JSON"),
    "no gzip": (Reply(body=b"plain", headers={"Content-Encoding": "gzip"}), "their Content-Encoding"),
}


@pytest.mark.parametrize(("fault", "found"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_answer_is_tried_again_and_then_named(
    endpoint: Endpoint, fault: Reply | Script, found: str
) -> None:
    endpoint.faults = [fault] * 3
    encoder = opened(endpoint, "retries=1")
    with pytest.raises(MeasurementError, match=rf"'api:toy': {endpoint.base}/embeddings .*{found}.*\(2 attempts\)"):
        encoder.encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(TEXTS).vectors, vectors_of(TEXTS))
    assert len(endpoint.seen) == 4


@pytest.mark.parametrize(
    ("setting", "attempts"), [("", "6 attempts"), ("retries=2", "3 attempts"), ("retries=0", "1 a")]
)
def test_in_the_end_status_and_attempts_are_named(endpoint: Endpoint, setting: str, attempts: str) -> None:
    body = json.dumps({"error": {"message": "overloaded\n\x1b[31mnow"}}).encode()
    endpoint.always = lambda _: Reply(503, body)
    with pytest.raises(MeasurementError, match=rf"answered 503: overloaded \?\[31mnow \({attempts}.*are cached"):
        opened(endpoint, setting).encode(["one"])
    assert len(endpoint.seen) == int(attempts[0])


def weat6() -> dict[str, list[str]]:
    [test] = biassay.select_tests(["weat6"])
    return {role: [text.text for text in make_texts(test).role(role)] for role in "XYAB"}


def requested_texts() -> set[str]:
    """Those of the test, and words that random attribute sets are drawn from."""
    [test] = biassay.select_tests(["weat6"])
    return {text for texts in weat6().values() for text in texts} | set(make_random_texts(test))


@pytest.mark.parametrize("again", ["run", "resume"])
def test_after_a_server_died_only_missing_texts_are_sent(endpoint: Endpoint, tmp_path: Path, again: str) -> None:
    endpoint.faults = [good] * 3
    endpoint.always = lambda _: Reply(drop=True)
    model = f"api:toy?base_url={endpoint.base}&batch=4&concurrency=1&retries=0"
    with pytest.raises(MeasurementError, match=r"1 attempt\).*are cached"):
        biassay.run(model, tests="weat6", out=tmp_path / "run", cache=tmp_path / "cache")
    kept = endpoint.texts[:12]
    endpoint.always = good
    endpoint.seen.clear()
    if again == "run":
        run = biassay.run(model, tests="weat6", out=tmp_path / "second", cache=tmp_path / "cache")
    else:
        run = biassay.resume(tmp_path / "run", model, cache=tmp_path / "cache")
    assert len(endpoint.texts) == len(requested_texts()) - len(kept) == run.manifest.models[0].encoded
    assert set(endpoint.texts) == requested_texts() - set(kept)
    endpoint.seen.clear()
    third = biassay.run(model.replace("batch=4", "batch=9"), tests="weat6", cache=tmp_path / "cache")
    assert endpoint.seen == []
    assert third.results == run.results


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("biassay-api")]


def soon(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def test_after_a_failure_nothing_more_is_sent(endpoint: Endpoint) -> None:
    endpoint.faults = [Reply(400)]
    endpoint.always = lambda _: Reply(hang=True)
    with pytest.raises(MeasurementError):
        opened(endpoint, "batch=1&concurrency=1").encode(TEXTS)
    endpoint.release.set()
    assert soon(lambda: not threads())
    assert len(endpoint.seen) <= 2  # one may have begun before the failure was seen


def test_an_interruption_is_heard_while_a_server_is_silent(endpoint: Endpoint) -> None:
    def interrupt(_: Asked) -> Reply:
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, signal.SIGINT)
        return Reply(hang=True)

    endpoint.faults = [interrupt]
    endpoint.always = lambda _: Reply(hang=True)
    with pytest.raises(KeyboardInterrupt):
        opened(endpoint).encode(["one"])
    assert len(endpoint.seen) == 1  # heard before the client tried again
    endpoint.release.set()
    assert soon(lambda: not threads())
