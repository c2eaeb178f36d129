"""``completions:``: plain text, and log-probabilities of given texts by both server interfaces."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.blanks import blank

from biassay.errors import BudgetError, MeasurementError, ModelError, UsageError
from biassay.models.base import BLANK_COLUMNS
from biassay.models.openai.completions import CompletionsBlanks, CompletionsLikelihoods, CompletionsModel
from biassay.models.registry import parse_model
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import LikelihoodRequest, Prompt

from . import api_server
from .answer_server import (
    KINDS,
    beginning,
    body,
    completing,
    echo,
    log_ps,
    model_string,
    one_by_one,
    only_first,
    said_to,
    tokens_of,
    vllm,
)
from .api_server import Clock, Endpoint, Reply, Script

pytestmark = pytest.mark.extras

no_key = api_server.no_key
TEXT = "The nurse said that she was tired."
WAYS: dict[str, Script] = {"echo": echo, "vllm": vllm, "vllm with a beginning": beginning}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = echo
        yield server


def with_offsets(asked: dict[str, Any]) -> Reply:
    """As a server names tokens that are parts of a character; where they begin is right."""
    found = json.loads(echo(asked).body)
    logprobs = found["choices"][0]["logprobs"]
    names = logprobs["tokens"]
    logprobs["text_offset"] = [sum(map(len, names[:i])) for i in range(len(names))]
    logprobs["tokens"] = ["bytes:\\xe2" if "三" in name else name for name in names]
    return Reply(body=json.dumps(found).encode())


def with_beginning(asked: dict[str, Any]) -> Reply:
    found = json.loads(echo(asked).body)
    logprobs = found["choices"][0]["logprobs"]
    logprobs["tokens"].insert(0, "<s>")
    logprobs["token_logprobs"].insert(0, None)
    return Reply(body=json.dumps(found).encode())


def test_a_prompt_is_plain_text(endpoint: Endpoint) -> None:
    model = completing(endpoint, "temperature=0&max_tokens=9&seed=1&system=You%20are%20x.")
    [reply] = model.reply([Prompt("Say:")])
    [(path, _, asked)] = endpoint.seen
    assert path == "/v1/completions"
    assert (asked["prompt"], asked["temperature"], asked["max_tokens"]) == ("You are x.\n\nSay:", 0, 9)
    assert isinstance(asked["seed"], int)
    assert (reply.text, reply.finish_reason, reply.tokens_in, reply.tokens_out) == (
        said_to(asked["prompt"]),
        "length",
        10,
        5,
    )


@pytest.mark.parametrize("way", [*WAYS.values(), with_offsets, with_beginning], ids=[*WAYS, "offsets", "beginning"])
@pytest.mark.parametrize("text", [TEXT, "a 三 b"])
def test_likelihoods_by_token_and_where_they_stand(endpoint: Endpoint, way: Script, text: str) -> None:
    endpoint.always = way
    [found] = completing(endpoint, kind=CompletionsLikelihoods).likelihoods([LikelihoodRequest(text)])
    ends = np.cumsum([len(token) for token in tokens_of(text)])
    np.testing.assert_array_equal(found.spans[:, 1], ends)
    np.testing.assert_array_equal(found.spans[:, 0], [0, *ends[:-1]])
    np.testing.assert_array_equal(found.log_p[1:], log_ps(text)[1:])
    assert found.log_p[0] == -7.0 if way is WAYS["vllm with a beginning"] else np.isnan(found.log_p[0])


@pytest.mark.parametrize("way", [*WAYS.values(), one_by_one, only_first], ids=[*WAYS, "one by one", "only the first"])
def test_an_option_is_as_likely_as_its_tokens_behind_the_prompt(endpoint: Endpoint, way: Script) -> None:
    endpoint.always = way
    options = (" yes", " not at all", "!")
    [reply] = completing(endpoint).reply([Prompt(TEXT, options=options)])
    n = len(tokens_of(TEXT))
    for option, log_p in zip(options, reply.log_p, strict=True):
        expected = log_ps(TEXT + option)
        assert log_p == pytest.approx(sum(expected[n:]), abs=1e-12)  # type: ignore[arg-type]
    assert (reply.text, reply.tokens_out) == ("", 3)


def test_a_server_that_breaks_on_several_texts_gets_one_at_a_time(endpoint: Endpoint) -> None:
    endpoint.always = lambda asked: echo(asked) if isinstance(asked["prompt"], str) else Reply(500)
    [reply] = completing(endpoint, "retries=2").reply([Prompt("text", options=(" a", " b", " c"))])
    assert all(map(math.isfinite, reply.log_p))
    assert len(endpoint.seen) == 1 + 3 + 2


@pytest.mark.parametrize(("way", "sent"), [(echo, 2 + 9), (one_by_one, 3 + 1 + 9 * 3), (only_first, 3 + 1 + 9 * 3)])
def test_options_go_together_where_the_server_takes_that(endpoint: Endpoint, way: Script, sent: int) -> None:
    endpoint.always = way
    prompts = [Prompt(f"text number {i}", options=(" a", " b", " c")) for i in range(10)]
    replies = completing(endpoint, "concurrency=1").reply(prompts)
    assert all(math.isfinite(number) for reply in replies for number in reply.log_p)
    assert len(endpoint.seen) == sent  # of the first prompt one option alone, to find out the way


NEITHER: dict[str, Script] = {
    "ignored": lambda _: body({"text": "x", "finish_reason": "length"}),
    "none": lambda _: body({"text": "x", "logprobs": None, "prompt_logprobs": None}),
    "refused": lambda _: Reply(400, b'{"error": "no logprobs here"}'),
}


@pytest.mark.parametrize("answer", NEITHER.values(), ids=NEITHER)
def test_a_server_without_log_probabilities_is_found_out_and_said(endpoint: Endpoint, answer: Script) -> None:
    endpoint.always = answer
    with pytest.raises(ModelError, match=r"no log-probabilities of given texts \(echo .*; prompt_logprobs: "):
        completing(endpoint, "concurrency=1").reply([Prompt("a", options=("b",)), Prompt("c", options=("d",))])
    assert len(endpoint.seen) == 2


def test_a_server_that_stops_giving_them_is_an_error_of_ours(endpoint: Endpoint) -> None:
    endpoint.faults = [echo]
    endpoint.always = NEITHER["ignored"]
    with pytest.raises(ModelError, match="suddenly"):
        completing(endpoint, "concurrency=1").reply([Prompt("a", options=("b",)), Prompt("a", options=("c",))])


def test_what_a_server_gives_for_a_log_probability_is_not_repeated(endpoint: Endpoint) -> None:
    """It may be of any length, and hold the key."""

    def wrong(asked: dict[str, Any]) -> Reply:
        return Reply(body=echo(asked).body.replace(b"-0.5", json.dumps("sk-secret" * 1000).encode()))

    endpoint.always = wrong
    with pytest.raises(MeasurementError) as caught:
        completing(endpoint, kind=CompletionsLikelihoods).likelihoods([LikelihoodRequest("one two")])
    assert "sk-secret" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_rate_counts_every_text_where_a_server_takes_one_at_a_time(endpoint: Endpoint) -> None:
    endpoint.always = one_by_one
    clock = Clock()
    name = parse_model(model_string(endpoint, "completions", "rate=0.001&concurrency=1"))
    CompletionsModel(name, clock.pace()).reply([Prompt("one", options=(" two", " three", " four"))])
    assert len(endpoint.seen) == 4  # one, two others at once in vain, and each of these
    assert [round(wait / 60_000) for wait in clock.waits] == [0, 1, 2, 3]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", '"-1"', "0.5"])
def test_log_probabilities_that_are_no_numbers(endpoint: Endpoint, number: str) -> None:
    endpoint.always = lambda asked: Reply(body=echo(asked).body.replace(str(log_ps(TEXT)[1]).encode(), number.encode()))
    with pytest.raises(MeasurementError, match="log-probability"):
        completing(endpoint, kind=CompletionsLikelihoods).likelihoods([LikelihoodRequest(TEXT)])


def test_blanks_are_filled_as_a_causal_model_does(endpoint: Endpoint) -> None:
    model = completing(endpoint, kind=CompletionsBlanks)
    assert (model.kind, model.has_mask) == ("causal", False)
    [filled] = model.fill([blank("The nurse is {trait}.", "kind", "hard-working")])
    assert filled.lengths.tolist() == [1, 3]
    n = len(tokens_of("The nurse is"))
    kind, hard = (log_ps(f"The nurse is {word}.")[n:-1] for word in ("kind", "hard-working"))
    np.testing.assert_array_equal(filled.columns[:, 0], np.array([*kind, *hard], dtype=np.float32))
    assert np.isnan(filled.columns[:, 1:]).all()
    assert BLANK_COLUMNS[0] == "log_p"
    assert (filled.unknown, filled.passes) == (0, 2)
    again = model.fill([blank("A man is {trait}!", "kind")])[0]
    assert again.pieces[0] == filled.pieces[0]


@pytest.mark.parametrize("wrong", ["{trait} is good", "{mask} is {trait}"])
def test_what_a_causal_model_cannot_fill(endpoint: Endpoint, wrong: str) -> None:
    with pytest.raises(UsageError):
        completing(endpoint, kind=CompletionsBlanks).fill([blank(wrong, "kind")])
    assert endpoint.seen == []


def test_answers_in_words_have_settings_that_likelihoods_have_not(endpoint: Endpoint) -> None:
    answers, likelihoods, blanks = (completing(endpoint, kind=kind).identity for kind in KINDS)
    assert dict(answers.settings) == {"temperature": "1", "max_tokens": "512"}
    assert likelihoods.settings == ()
    assert len({answers.key, likelihoods.key, blanks.key}) == 3
    for kind in KINDS[1:]:
        with pytest.raises(UsageError, match="temperature= applies to generated text"):
            completing(endpoint, "temperature=0", kind)


def test_estimates_and_budgets_count_every_option(endpoint: Endpoint) -> None:
    model = completing(endpoint)
    prompt = Prompt("a" * 40, options=(" b", " c"))
    assert model.estimate([prompt]) == (22, 2)
    token_budget = TokenBudget(23)
    with pytest.raises(BudgetError):
        list(model.stream([prompt], token_budget))
    assert (endpoint.seen, token_budget.used) == ([], 0)
    assert math.isfinite(completing(endpoint).reply([prompt])[0].log_p[0])


def test_a_wrong_name_is_not_taken_for_a_missing_way(endpoint: Endpoint) -> None:
    endpoint.always = lambda _: Reply(404, b'{"error": "no such model"}')
    with pytest.raises(MeasurementError, match=r"answered 404: no such model.*check the model's name"):
        completing(endpoint).reply([Prompt("a", options=("b",))])
    assert len(endpoint.seen) == 1
