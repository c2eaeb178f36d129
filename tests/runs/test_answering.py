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

from biassay.answers.answers import Answers
from biassay.errors import BudgetError, MeasurementError, UsageError
from biassay.models.registry import open_as
from biassay.models.spending import Spending
from biassay.runs.asking import Interview
from biassay.runs.listener import Silent
from biassay.runs.models import asked_models
from biassay.runs.team import Member, open_team
from biassay.studies.study import Requests
from biassay.texts.requests import Likelihood, Prompt

pytestmark = pytest.mark.extras

no_key = api_server.no_key
PROMPTS = [Prompt(f"question {i}", sample=n) for i in range(20) for n in range(3)]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = chat
        yield server


class Listening(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []
        self.steps: list[tuple[str, int, int]] = []

    def progress(self, who: str, unit: str, done: int, total: int) -> None:  # noqa: ARG002
        self.steps.append((unit, done, total))

    def notice(self, message: str) -> None:
        self.notices.append(message)


def member_of(model: str, *abilities: Any) -> Member:
    (member,) = open_team(asked_models(model), abilities, Silent())
    return member


def asked(
    server: Endpoint, cache: Path, spending: Spending | None = None, listener: Listening | None = None
) -> tuple[Answers, int, int]:
    member = member_of(f"chat:toy?base_url={server.base}&concurrency=4&max_tokens=20&retries=0", "replies")
    interview = Interview(cache, None, None, listener or Listening(), spending or Spending())
    return interview.ask(member, Requests(prompts=PROMPTS))


def test_answers_are_asked_once_kept_and_read_in_order(endpoint: Endpoint, tmp_path: Path) -> None:
    listener = Listening()
    answers, total, now = asked(endpoint, tmp_path, listener=listener)
    assert (total, now, len(endpoint.seen)) == (60, 60, 60)
    assert [reply.text for reply in answers.replies(PROMPTS)] == [said_to(prompt.text) for prompt in PROMPTS]
    assert answers.abilities.option_log_p == "first token"
    assert listener.steps[-1] == ("prompts asked", 60, 60)
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
        asked(endpoint, tmp_path, Spending(limit))
    assert len(endpoint.seen) == answered
    endpoint.seen.clear()
    _, _, now = asked(endpoint, tmp_path, Spending(60 * 15 + 4 * 15))
    assert now == len(endpoint.seen) == 60 - answered


def test_where_all_is_kept_a_budget_of_nothing_is_enough(endpoint: Endpoint, tmp_path: Path) -> None:
    asked(endpoint, tmp_path)
    assert asked(endpoint, tmp_path, Spending(0))[2] == 0


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
    texts = [Likelihood(f"text number {i}") for i in range(9)]
    member = member_of(f"completions:toy?base_url={endpoint.base}", "likelihoods")
    interview = Interview(tmp_path, None, None, Silent())
    assert member.abilities.kind == "causal"
    for expected in (9, 0):
        answers, total, now = interview.ask(member, Requests(likelihoods=[*texts, texts[0]]))
        assert (total, now) == (9, expected)
    assert [len(one.log_p) for one in answers.likelihoods(texts)] == [3] * 9


def test_a_model_that_only_answers_is_refused_by_what_needs_vectors(endpoint: Endpoint) -> None:
    import biassay

    with pytest.raises(UsageError, match="'chat:toy' cannot encode texts"):
        biassay.run(f"chat:toy?base_url={endpoint.base}", tests="weat6")
    with pytest.raises(UsageError, match="cannot answer prompts"):
        open_as("glove", "replies")


# Killed


KILLED = """
import sys
from pathlib import Path
from biassay.runs.asking import Interview
from biassay.runs.listener import Silent
from biassay.runs.models import asked_models
from biassay.runs.team import open_team
from biassay.studies.study import Requests
from biassay.texts.requests import Prompt
class Telling(Silent):
    def progress(self, who, unit, done, total):
        print(done, flush=True)
(member,) = open_team(asked_models(sys.argv[1]), ("replies",), Silent())
prompts = [Prompt(f"question {i}", sample=n) for i in range(20) for n in range(3)]
Interview(Path(sys.argv[2]), None, None, Telling()).ask(member, Requests(prompts=prompts))
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
