"""Opening ``api:``: settings, addresses, identity, certificates and the extra."""

from __future__ import annotations

import ssl
import traceback
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from biassay.errors import UsageError
from biassay.models.openai.embeddings import ApiEncoder
from biassay.models.registry import open_encoder, parse_model

from . import api_server
from .api_server import Endpoint, opened

pytestmark = pytest.mark.extras

endpoint, key, no_key = api_server.endpoint, api_server.key, api_server.no_key


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("batch=0", "batch must be a whole number from 1 to 2048, got '0'"),
        ("batch=2049", "batch must be"),
        ("batch=ten", "batch must be a whole number from 1 to 2048, got 'ten'"),
        ("batch=", "batch must be .* got ''"),
        ("batch=1.5", "batch must be"),
        ("concurrency=0", "concurrency must be a whole number from 1 to 64"),
        ("concurrency=65", "concurrency must be"),
        ("retries=-1", "retries must be a whole number from 0 to 100"),
        ("retries=101", "retries must be"),
        ("timeout=0", r"timeout must be a number from 0\.001 to 3600, got '0'"),
        ("timeout=nan", "timeout must be"),
        ("timeout=inf", "timeout must be"),
        ("timeout=1h", "timeout must be"),
        ("dimensions=0", "dimensions must be a whole number from 1 to 100000"),
        ("dimensions=-5", "dimensions must be"),
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
