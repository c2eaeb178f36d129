"""Chat endpoints: requests, responses, streaming and keys."""

from __future__ import annotations

import json
import math
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from biassay.cache.handlers import stream_missing
from biassay.cache.responses import REPLIES, ResponseCache
from biassay.errors import BiassayError, BudgetError, MeasurementError, ModelError, UsageError
from biassay.models.openai.chat import ChatModel
from biassay.models.registry import get_required_consents, open_model
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import Prompt

from . import api_server
from .answer_server import TOP, body, chat, completing, opened
from .api_server import KEY, Clock, Endpoint, Reply

pytestmark = pytest.mark.extras

key, no_key = api_server.key, api_server.no_key
PROMPTS = [Prompt(f"text {i}") for i in range(10)]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = chat
        yield server


# What is sent


def test_a_request_is_what_the_protocol_says(endpoint: Endpoint, key: str) -> None:
    opened(endpoint).reply([Prompt("hello ü")])
    [(path, headers, asked)] = endpoint.seen
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {key}"
    messages = [{"role": "user", "content": "hello ü"}]
    assert asked == {"model": "toy", "messages": messages, "temperature": 1.0, "max_tokens": 512}


def test_settings_are_sent_and_are_part_of_the_identity(endpoint: Endpoint) -> None:
    settings = "temperature=0.5&max_tokens=7&system=be%20brief&seed=3&reasoning_effort=low"
    model = opened(endpoint, settings)
    model.reply([Prompt("a"), Prompt("a", sample=1), Prompt("a", system="")])
    asked = {json.dumps(one["messages"]): one for _, _, one in endpoint.seen}
    one = next(iter(asked.values()))
    assert (one["temperature"], one["max_tokens"], one["reasoning_effort"]) == (0.5, 7, "low")
    assert sorted(len(one["messages"]) for _, _, one in endpoint.seen) == [1, 2, 2]
    assert len({one["seed"] for _, _, one in endpoint.seen}) == 3  # answers of one prompt are drawn apart
    assert dict(model.identity.settings) == {
        "temperature": "0.5",
        "max_tokens": "7",
        "system": "be brief",
        "seed": "3",
        "reasoning_effort": "low",
    }
    keys = {opened(endpoint, part).identity.key for part in ("", *settings.split("&"))}
    assert len(keys) == 6
    assert opened(endpoint, "concurrency=2&retries=1&timeout=9&rate=100").identity.key in keys


@pytest.mark.parametrize(
    "setting", ["temperature=-1", "temperature=x", "max_tokens=0", "seed=-1", "rate=0", "concurrency=0", "colour=red"]
)
def test_settings_that_mean_nothing_are_refused(endpoint: Endpoint, setting: str) -> None:
    with pytest.raises(UsageError, match="chat:toy"):
        opened(endpoint, setting)


def test_a_chat_model_encodes_no_texts() -> None:
    for ability in ("texts", "likelihoods", "blanks"):
        with pytest.raises(UsageError, match="'chat:toy' cannot"):
            open_model("chat:toy?base_url=http://localhost:1/v1", ability)


def test_a_rate_counts_further_attempts_too(endpoint: Endpoint) -> None:
    """A request in 1,000 minutes: the fourth attempt waits for its turn like a fourth prompt."""
    clock = Clock()
    endpoint.faults = [Reply(503), Reply(503)]
    opened(endpoint, "rate=0.001&concurrency=1", clock).reply(PROMPTS[:2])
    turns = [round(wait / 60_000) for wait in clock.waits]
    assert turns == [0, 0, 1, 0, 2, 3]  # after each 503, a pause of a second or two before the turn
    assert len(endpoint.seen) == 4


def test_a_server_that_wants_the_newer_name_of_the_limit_gets_it(endpoint: Endpoint) -> None:
    def newer(asked: dict[str, Any]) -> Reply:
        if "max_tokens" in asked:
            return Reply(400, b'{"error": {"message": "Unsupported: use \'max_completion_tokens\' instead."}}')
        return chat(asked)

    endpoint.always = newer
    model = opened(endpoint, "concurrency=1&max_tokens=9")
    assert len(model.reply(PROMPTS)) == 10
    assert len(endpoint.seen) == 11
    assert endpoint.seen[-1][2]["max_completion_tokens"] == 9


# What is read


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": "7"}, {"prompt_tokens": -1}, {"prompt_tokens": 10**30}, [1]]
)
def test_tokens_that_are_not_told_are_missing(endpoint: Endpoint, usage: object) -> None:
    choice = {"message": {"content": "x"}, "finish_reason": "stop"}
    endpoint.always = lambda _: Reply(body=json.dumps({"choices": [choice], "usage": usage}).encode())
    [reply] = opened(endpoint).reply([Prompt("a")])
    assert (reply.tokens_in, reply.tokens_out) == (None, None)


def test_options_have_the_log_probability_of_the_first_token(endpoint: Endpoint) -> None:
    [reply] = opened(endpoint).reply([Prompt("a", options=("A", "B", "C"))])
    [(_, _, asked)] = endpoint.seen
    assert (asked["logprobs"], asked["top_logprobs"], asked["max_tokens"]) == (True, 20, 1)
    assert reply.log_p[0] == -0.25
    assert reply.log_p[1] == pytest.approx(math.log(math.exp(-2) + math.exp(-3)), abs=1e-12)
    assert math.isnan(reply.log_p[2])


@pytest.mark.parametrize(
    "answer",
    [
        Reply(400, b'{"error": {"message": "logprobs are not supported by this model"}}'),
        body({"message": {"content": "A"}, "finish_reason": "stop"}),
        body({"message": {"content": "A"}, "logprobs": None}),
        body({"message": {"content": "A"}, "logprobs": {"content": []}}),
        body({"message": {"content": "A"}, "logprobs": {"content": [{"token": "A", "top_logprobs": []}]}}),
    ],
)
def test_a_server_without_log_probabilities_is_found_out_and_said(endpoint: Endpoint, answer: Reply) -> None:
    endpoint.always = lambda _: answer
    with pytest.raises(ModelError, match="'chat:toy': the server returns no log-probabilities of options"):
        opened(endpoint, "concurrency=1").reply([Prompt("a", options=("A", "B"))])
    assert len(endpoint.seen) == 1


def test_a_huge_answer_is_not_read(endpoint: Endpoint) -> None:
    endpoint.always = lambda _: Reply(body=b" " * 20_000_000)
    with pytest.raises(MeasurementError, match="more than"):
        opened(endpoint).reply([Prompt("a")])
    assert endpoint.sent == 0


# What is tried again


def test_an_address_with_the_path_is_refused(endpoint: Endpoint) -> None:
    with pytest.raises(UsageError, match="must not include /chat/completions"):
        open_model(f"chat:toy?base_url={endpoint.base}/chat/completions", "replies")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "0.5", '"x"', "null", "true", "1" * 400])
def test_log_probabilities_that_are_none_are_an_error_at_once(endpoint: Endpoint, number: str) -> None:
    choice = {"message": {"content": "A"}, "logprobs": {"content": [{"token": "A", "top_logprobs": TOP}]}}
    good = body(choice).body.decode()
    endpoint.always = lambda _: Reply(body=good.replace("-0.25", number).encode())
    with pytest.raises(MeasurementError, match="'chat:toy' returned the log-probability"):
        opened(endpoint).reply([Prompt("a", options=("A", "B"))])
    assert len(endpoint.seen) == 1


def collect(model: ChatModel, token_budget: TokenBudget, came: list[int]) -> None:
    for together in model.stream(PROMPTS, token_budget):
        came += [place for place, _ in together]


def test_after_a_failure_what_is_under_way_is_kept_and_nothing_more_is_sent(endpoint: Endpoint) -> None:
    """One request is refused while three others are being answered: these are paid."""

    in_flight = threading.Barrier(4, timeout=60)

    def refuse_one(asked: dict[str, Any]) -> Reply:
        in_flight.wait()
        if asked["messages"][-1]["content"] == "text 0":
            return Reply(400)
        time.sleep(0.2)
        return chat(asked)

    endpoint.always = refuse_one
    came: list[int] = []
    with pytest.raises(MeasurementError, match="answered 400"):
        collect(opened(endpoint, "concurrency=4"), TokenBudget(), came)
    assert sorted(came) == [1, 2, 3]
    assert len(endpoint.seen) == 4


def test_a_budget_is_never_exceeded_and_what_is_under_way_is_kept(endpoint: Endpoint) -> None:
    """A prompt of "text 0" is guessed at 2 + 4 tokens in and at most 20 out, and takes 10 and 5."""
    token_budget, came = TokenBudget(100), list[int]()
    model = opened(endpoint, "concurrency=3&max_tokens=20")
    assert model.estimate(PROMPTS) == (60, 200)
    with pytest.raises(BudgetError, match=r"100 tokens.*75 tokens are used.*30.*5 requests remain"):
        collect(model, token_budget, came)
    assert sorted(came) == [0, 1, 2, 3, 4]  # 75 used: another 30 might be too many
    assert (token_budget.tokens_in, token_budget.tokens_out) == (50, 25)
    assert len(endpoint.seen) == 5


LOST = [
    (Reply(hang=True), True),
    (Reply(drop=True), True),
    (Reply(504), True),
    (Reply(body=b"<html>"), True),
    (Reply(503), False),
    (Reply(429), False),
]


@pytest.mark.parametrize(("fault", "may_be_paid"), LOST)
def test_a_failed_attempt_counts_where_it_may_be_paid(endpoint: Endpoint, fault: Reply, may_be_paid: bool) -> None:
    """It is guessed at 6 tokens in and at most 20 out; the answer that comes then takes 10 and 5."""
    endpoint.faults = [fault]
    token_budget = TokenBudget()
    timeout = 2 if fault.hang else 60
    list(opened(endpoint, f"timeout={timeout}&max_tokens=20").stream(PROMPTS[:1], token_budget))
    assert len(endpoint.seen) == 2
    assert (token_budget.tokens_in, token_budget.tokens_out) == ((16, 25) if may_be_paid else (10, 5))


def test_no_further_attempt_is_made_that_might_exceed_the_budget(endpoint: Endpoint) -> None:
    """Each attempt may take 26 tokens: of 100, three are spent, and a fourth would be too many."""
    endpoint.always = lambda _: Reply(drop=True)
    token_budget = TokenBudget(100)
    with pytest.raises(BudgetError, match=r"100 tokens.*78 tokens are used"):
        list(opened(endpoint, "max_tokens=20&retries=9").stream(PROMPTS, token_budget))
    assert len(endpoint.seen) == 3


def test_an_error_after_the_last_attempt_is_that_of_the_server(endpoint: Endpoint) -> None:
    endpoint.always = lambda _: Reply(drop=True)
    token_budget = TokenBudget(60)
    with pytest.raises(MeasurementError, match="2 attempts") as caught:
        list(opened(endpoint, "max_tokens=20&retries=1").stream(PROMPTS, token_budget))
    assert not isinstance(caught.value, BudgetError)
    assert token_budget.used == 52


SAID = json.dumps({"error": {"message": f"bad key {KEY}, logprobs, max_completion_tokens"}}).encode()


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
