"""``chat:`` with concurrent requests: paid responses are cached, and the budget is never exceeded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from biassay.errors import BudgetError, MeasurementError
from biassay.models.openai.chat import ChatModel
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import Prompt

from . import api_server
from .answer_server import chat, opened
from .api_server import Endpoint, Reply

pytestmark = pytest.mark.extras

no_key = api_server.no_key
PROMPTS = [Prompt(f"text {i}") for i in range(10)]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = chat
        yield server


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
