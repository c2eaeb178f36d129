"""Models that answer, from requests to kept answers: nothing asked twice, nothing lost, and what it costs is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models import api_server
from tests.models.answer_server import chat, echo, said_to
from tests.models.api_server import Endpoint, Reply

from biassay.cache.outputs import ModelOutputs
from biassay.errors import BudgetError, MeasurementError, UsageError
from biassay.models.registry import open_model
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import LikelihoodRequest, Prompt
from biassay.runs.fetch import RequestFetcher
from biassay.runs.models import OpenedModel, open_models, parse_model_specs
from biassay.runs.progress import NullListener
from biassay.studies.study import Requests

pytestmark = pytest.mark.extras

no_key = api_server.no_key
PROMPTS = [Prompt(f"question {i}", sample=n) for i in range(20) for n in range(3)]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = chat
        yield server


class Listening(NullListener):
    def __init__(self) -> None:
        self.notices: list[str] = []
        self.steps: list[tuple[str, int, int]] = []

    def progress(self, who: str, unit: str, done: int, total: int) -> None:  # noqa: ARG002
        self.steps.append((unit, done, total))

    def notice(self, message: str) -> None:
        self.notices.append(message)


def member_of(model: str, *capabilities: Any) -> OpenedModel:
    (member,) = open_models(parse_model_specs(model), capabilities, NullListener())
    return member


def asked(
    server: Endpoint, cache: Path, token_budget: TokenBudget | None = None, listener: Listening | None = None
) -> tuple[ModelOutputs, int, int]:
    member = member_of(f"chat:toy?base_url={server.base}&concurrency=4&max_tokens=20&retries=0", "replies")
    fetcher = RequestFetcher(cache, None, None, listener or Listening(), token_budget or TokenBudget())
    return fetcher.fetch(member, Requests(prompts=PROMPTS))


def test_answers_are_asked_once_kept_and_read_in_order(endpoint: Endpoint, tmp_path: Path) -> None:
    listener = Listening()
    answers, total, now = asked(endpoint, tmp_path, listener=listener)
    assert (total, now, len(endpoint.seen)) == (60, 60, 60)
    assert [reply.text for reply in answers.replies(PROMPTS)] == [said_to(prompt.text) for prompt in PROMPTS]
    assert answers.capabilities.option_log_p == "first token"
    assert listener.steps[-1] == ("prompts", 60, 60)
    again, total, now = asked(endpoint, tmp_path)
    assert (total, now, len(endpoint.seen)) == (60, 0, 60)
    assert again.replies(PROMPTS[:1]) == answers.replies(PROMPTS[:1])


def test_what_it_will_cost_and_what_it_cost_is_told(endpoint: Endpoint, tmp_path: Path) -> None:
    listener = Listening()
    asked(endpoint, tmp_path, listener=listener)
    numbers = [text.replace(",", "") for text in listener.notices]
    # 10 or 11 characters are 3 tokens, and 4 for the message; 60 of them.
    assert any("60 prompts" in text and " 420 tokens in" in text and " 1200 out" in text for text in numbers)
    assert any("used 600 tokens in and 300 out" in text for text in numbers)


@pytest.mark.parametrize(("limit", "answered"), [(0, 0), (27, 1), (100, 5)])
def test_a_budget_stops_and_a_larger_one_goes_on(endpoint: Endpoint, tmp_path: Path, limit: int, answered: int) -> None:
    """An answer takes 15 tokens; 27 are set aside for the first one, and 30 for others."""
    with pytest.raises(BudgetError):
        asked(endpoint, tmp_path, TokenBudget(limit))
    assert len(endpoint.seen) == answered
    endpoint.seen.clear()
    _, _, now = asked(endpoint, tmp_path, TokenBudget(60 * 15 + 4 * 15))
    assert now == len(endpoint.seen) == 60 - answered


def test_where_all_is_kept_a_budget_of_nothing_is_enough(endpoint: Endpoint, tmp_path: Path) -> None:
    asked(endpoint, tmp_path)
    assert asked(endpoint, tmp_path, TokenBudget(0))[2] == 0


def test_after_a_failure_only_what_is_missing_is_asked(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.faults = [*[chat] * 30, Reply(400)]
    with pytest.raises(MeasurementError):
        asked(endpoint, tmp_path)
    first = len(endpoint.seen) - 1
    assert 30 <= first <= 33
    endpoint.seen.clear()
    assert asked(endpoint, tmp_path)[2] == len(endpoint.seen) == 60 - first


def test_likelihoods_are_kept_by_text(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.always = echo
    texts = [LikelihoodRequest(f"text number {i}") for i in range(9)]
    member = member_of(f"completions:toy?base_url={endpoint.base}", "likelihoods")
    fetcher = RequestFetcher(tmp_path, None, None, NullListener())
    assert member.capabilities.kind == "causal"
    for expected in (9, 0):
        answers, total, now = fetcher.fetch(member, Requests(likelihoods=[*texts, texts[0]]))
        assert (total, now) == (9, expected)
    assert [len(one.log_p) for one in answers.likelihoods(texts)] == [3] * 9


def test_a_model_that_only_answers_is_refused_by_what_needs_vectors(endpoint: Endpoint) -> None:
    import biassay

    with pytest.raises(UsageError, match="'chat:toy' cannot encode texts"):
        biassay.run(f"chat:toy?base_url={endpoint.base}", tests="weat6")
    with pytest.raises(UsageError, match="cannot reply to prompts"):
        open_model("glove", "replies")


# Killed


KILLED = """
import sys
from pathlib import Path
from biassay.runs.fetch import RequestFetcher
from biassay.runs.progress import NullListener
from biassay.runs.models import parse_model_specs
from biassay.runs.models import open_models
from biassay.studies.study import Requests
from biassay.prompts.requests import Prompt
class Telling(NullListener):
    def progress(self, who, unit, done, total):
        print(done, flush=True)
(member,) = open_models(parse_model_specs(sys.argv[1]), ("replies",), NullListener())
prompts = [Prompt(f"question {i}", sample=n) for i in range(20) for n in range(3)]
RequestFetcher(Path(sys.argv[2]), None, None, Telling()).fetch(member, Requests(prompts=prompts))
"""


@pytest.mark.parametrize("after", [1, 7, 40])
def test_killed_at_any_time_no_answer_is_lost_or_asked_again(endpoint: Endpoint, tmp_path: Path, after: int) -> None:
    endpoint.hold = 0.01
    model = f"chat:toy?base_url={endpoint.base}&concurrency=4&max_tokens=20&retries=0"
    process = subprocess.Popen([sys.executable, "-c", KILLED, model, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    done = 0
    while done < after:
        done = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    while endpoint.active:
        time.sleep(0.01)
    before = [json.dumps(one) for _, _, one in endpoint.seen]
    endpoint.seen.clear()
    _, _, now = asked(endpoint, tmp_path)
    kept = 60 - now
    assert kept >= done  # what was told as done is there,
    assert len(before) - kept <= 4  # and of what was sent only what was under way is not
    assert len(endpoint.seen) == now
