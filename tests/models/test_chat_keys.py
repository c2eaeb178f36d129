"""API keys: sent only to their endpoint and never shown; also interruption by Ctrl-C."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from biassay.cache.handlers import stream_missing
from biassay.cache.responses import REPLIES, ResponseCache
from biassay.errors import BiassayError, UsageError
from biassay.models.registry import get_required_consents, open_model
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import Prompt

from . import api_server
from .answer_server import body, chat, completing, opened
from .api_server import KEY, Endpoint, Reply

pytestmark = pytest.mark.extras

key, no_key = api_server.key, api_server.no_key
SAID = json.dumps({"error": {"message": f"bad key {KEY}, logprobs, max_completion_tokens"}}).encode()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = chat
        yield server


@pytest.mark.parametrize("status", [200, 400, 401, 500])
@pytest.mark.parametrize("options", [(), ("A", "B")])
@pytest.mark.usefixtures("key")
def test_a_key_that_the_server_repeats_is_not_shown(endpoint: Endpoint, status: int, options: tuple[str, ...]) -> None:
    endpoint.always = lambda _: Reply(status, SAID)
    for model in (opened(endpoint, "retries=0"), completing(endpoint, "retries=0")):
        with pytest.raises(BiassayError) as caught:
            model.reply([Prompt("a", options=options)])
        assert endpoint.seen[-1][1]["Authorization"] == f"Bearer {KEY}"
        shown = "".join(traceback.format_exception(caught.value)) + repr(vars(model)) + str(model.identity)
        assert "sk-never" not in shown


@pytest.mark.usefixtures("key")
def test_the_store_holds_no_key(endpoint: Endpoint, tmp_path: Path) -> None:
    model = opened(endpoint)
    store = ResponseCache(tmp_path).for_model(model.identity, REPLIES)
    stream_missing(model, [Prompt(f"text {i}") for i in range(5)], store, TokenBudget())
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == 2
    assert not any(b"sk-never" in content for content in files)


ECHOES: dict[str, object] = {
    "as it is": f"Of course: {KEY}!",
    "in parts": [{"type": "text", "text": KEY[:9]}, {"type": "text", "text": KEY[9:]}],
    "cut": f"It is {KEY[:25]}",
}


@pytest.mark.parametrize("said", ECHOES.values(), ids=ECHOES)
@pytest.mark.usefixtures("key")
def test_a_key_in_a_good_reply_is_not_kept(endpoint: Endpoint, tmp_path: Path, said: object) -> None:
    endpoint.always = lambda _: body({"index": 0, "finish_reason": "stop", "message": {"content": said}})
    model = opened(endpoint)
    store = ResponseCache(tmp_path).for_model(model.identity, REPLIES)
    stream_missing(model, [Prompt("text")], store, TokenBudget())
    (kept,) = model.reply([Prompt("text")])
    assert "[key]" in kept.text
    assert "never" not in kept.text.replace("\u200b", "")
    for file in (file for file in tmp_path.rglob("*") if file.is_file()):
        assert b"never" not in file.read_bytes().replace("\u200b".encode(), b"")


@pytest.mark.usefixtures("key")
def test_the_key_of_another_endpoint_is_not_kept_either(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(endpoint)
    monkeypatch.setenv("OTHER_KEY", "gsk_0123456789abcdef")
    other = open_model(f"completions:gpt?base_url={endpoint.base}&key_env=OTHER_KEY", "replies")
    endpoint.always = lambda _: body({"index": 0, "text": f"{KEY}, gsk_0123456789abcdef"})
    assert [reply.text for reply in other.reply([Prompt("text")])] == ["[key], [key]"]


@pytest.mark.usefixtures("key")
def test_a_key_in_a_model_string_is_refused(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIASSAY_API_KEY", "gsk_0123456789abcdef")
    for text in (
        f"chat:gsk_0123456789abcdef?base_url={endpoint.base}",
        f"chat:x?base_url={endpoint.base}/gsk_0123456789abcdef",
    ):
        with pytest.raises(UsageError, match="contains the key itself") as caught:
            open_model(f"{text}&key_env=BIASSAY_API_KEY", "replies")
        assert "gsk" not in str(caught.value)


@pytest.mark.parametrize("family", ["chat", "completions"])
def test_openais_key_is_for_openai(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert open_model(f"{family}:gpt", "replies").identity.destination.endswith("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="is not sent to a URL given by base_url="):
        open_model(f"{family}:gpt?base_url=https://example.org/v1&key_env=OPENAI_API_KEY", "replies")
    assert len(get_required_consents(f"{family}:gpt")) == 1
