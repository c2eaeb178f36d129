"""``chat:`` over HTTP: requests, parsing, retries and errors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from biassay.errors import MeasurementError, ModelError, UsageError
from biassay.models.registry import open_model
from biassay.prompts.requests import Prompt

from . import api_server
from .answer_server import TOP, body, chat, opened
from .api_server import Clock, Endpoint, Reply

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


def test_a_rate_spreads_requests_evenly(endpoint: Endpoint) -> None:
    clock = Clock()
    opened(endpoint, "rate=60&concurrency=1", clock).reply(PROMPTS)
    # The clock of the test passes on paper only: the waits grow by what is left of each second.
    assert clock.waits[0] == 0
    assert clock.waits[-1] == pytest.approx(9, abs=0.9)


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


# What is tried again


MALFORMED = {
    "a page": Reply(body=b"<html>busy</html>"),
    "nothing": Reply(body=b""),
    "no object": Reply(body=b"[]"),
    "no choices": Reply(body=b"{}"),
    "fewer choices": Reply(body=b'{"choices": []}'),
    "another form": Reply(body=b'{"choices": ["x"]}'),
    "no message": Reply(body=b'{"choices": [{"text": "x"}]}'),
    "no text": Reply(body=b'{"choices": [{"message": {"content": 3}}]}'),
    "vectors": api_server.answer([]),
    "cut off": Reply(body=b'{"choices": [{"message"', cut=100),
}
BROKEN = {
    "429": Reply(429, headers={"Retry-After": "7"}),
    "500": Reply(500),
    "dropped": Reply(drop=True),
    "silent": Reply(hang=True),
}


def test_a_huge_answer_is_not_read(endpoint: Endpoint) -> None:
    endpoint.always = lambda _: Reply(body=b" " * 20_000_000)
    with pytest.raises(MeasurementError, match="more than"):
        opened(endpoint).reply([Prompt("a")])
    assert endpoint.sent == 0


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
