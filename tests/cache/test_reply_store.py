"""Cache of replies and likelihoods: stored by content as they arrive, without repeated requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from biassay.cache.handlers import LikelihoodHandler, ReplyHandler, fetch_missing, stream_missing
from biassay.cache.responses import LIKELIHOODS, REPLIES, ModelCache, ResponseCache
from biassay.errors import MeasurementError, ModelError, UsageError
from biassay.models.base import Identity, Reply, TokenLikelihoods
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import LikelihoodRequest, Prompt

MODEL = Identity("fake", "test", "1")
PROMPTS = [Prompt(f"question {i}", sample=i) for i in range(20)]


def opened(root: Path | None) -> ModelCache[Prompt, Sequence[Reply]]:
    return ResponseCache(root).for_model(MODEL, REPLIES)


def test_requests_are_known_by_all_they_hold() -> None:
    prompts = [
        Prompt("a"),
        Prompt("a", sample=1),
        Prompt("a", system=""),
        Prompt("a", system="b"),
        Prompt("a", options=("b",)),
        Prompt("a", options=("b", "c")),
        Prompt("a", options=("c", "b")),
        Prompt("b"),
    ]
    texts = [
        LikelihoodRequest("a"),
        LikelihoodRequest("b"),
        LikelihoodRequest("a", ((0, 1),)),
        LikelihoodRequest("a", start_before="first"),
    ]
    assert len({one.key for one in prompts} | {one.key for one in texts}) == len(prompts) + len(texts)
    assert Prompt("a", None, ("b",), 2).key == Prompt("a", options=("b",), sample=2).key


@pytest.mark.parametrize("wrong", [{"text": ""}, {"options": ("a", "a")}, {"options": ("",)}, {"sample": -1}])
def test_prompts_that_ask_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Prompt(**{"text": "a", **wrong})  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        LikelihoodRequest("")


# Asking


class Batched:
    """Reply batch by batch, as a local model does."""

    identity = MODEL
    kind = "causal"
    option_log_p = "continuation"

    def prepare(self, _: object) -> None:
        pass

    def batches(self, requests: Sequence[object]) -> list[list[int]]:
        return [[place] for place in range(len(requests))]

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        return [Reply("x", log_p=(-1.0,)) for _ in prompts]

    def likelihoods(self, _: Sequence[LikelihoodRequest]) -> list[TokenLikelihoods]:
        return []


def test_answers_that_are_not_of_the_form_asked_for_are_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert fetch_missing(ReplyHandler(Batched()), [Prompt("a", options=("b",))], store) == 1
    with pytest.raises(ModelError, match="fake"):
        fetch_missing(ReplyHandler(Batched()), [Prompt("a", options=("b", "c"))], store)
    likelihoods = ResponseCache(tmp_path).for_model(MODEL, LIKELIHOODS)
    with pytest.raises(ModelError, match="fake"):
        fetch_missing(LikelihoodHandler(Batched()), [LikelihoodRequest("a")], likelihoods)


class Streaming:
    """Reply in groups of three, the last first, until a failure."""

    def __init__(self, most: int = 1000) -> None:
        self.most, self.asked = most, list[Prompt]()

    def estimate(self, requests: Sequence[Prompt]) -> tuple[int, int]:
        return len(requests), len(requests)

    def stream(
        self,
        requests: Sequence[Prompt],
        _: TokenBudget,
        *,
        answered_before: bool = False,  # noqa: ARG002
    ) -> Iterator[list[tuple[int, Reply]]]:
        self.asked += requests
        places = list(range(len(requests)))[::-1][: self.most]
        for start in range(0, len(places), 3):
            yield [(place, Reply(requests[place].text)) for place in places[start : start + 3]]
        if self.most < len(requests):
            raise MeasurementError("broken")


def test_every_answer_is_on_disk_before_the_next_is_looked_at(tmp_path: Path) -> None:
    seen: list[int] = []

    def look(done: int, total: int) -> None:
        seen.append(total - len(opened(tmp_path).missing(PROMPTS)))
        assert seen[-1] == done

    stream_missing(Streaming(), PROMPTS, opened(tmp_path), TokenBudget(), look)
    assert seen == [3, 6, 9, 12, 15, 18, 20]


@pytest.mark.parametrize("limit", [2, 3, 1000])
def test_small_files_become_one(limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biassay.cache.handlers._FILES_PER_MERGE", limit)
    other = opened(tmp_path)
    store = opened(tmp_path)
    stream_missing(Streaming(), PROMPTS, store, TokenBudget())
    assert len(list(tmp_path.rglob("*.npz"))) == {2: 4, 3: 3, 1000: 1}[limit]
    for one in (store, opened(tmp_path)):
        assert [reply.text for reply in one.get(PROMPTS)] == [prompt.text for prompt in PROMPTS]
    assert other.missing(PROMPTS) == PROMPTS  # opened before there was anything


# Tokens


def test_no_more_is_set_aside_than_the_limit() -> None:
    token_budget = TokenBudget(100)
    assert [token_budget.reserve(*n) for n in ((20, 20), (1, 1))] == [40, None]  # the first goes alone
    token_budget.record_used(40, 20, 10, 5)
    assert (token_budget.tokens_in, token_budget.tokens_out, token_budget.used) == (10, 5, 15)
    assert [token_budget.reserve(*n) for n in ((40, 40), (6, 0), (5, 0))] == [80, None, 5]
    token_budget.release(5)
    token_budget.record_used(80, 40, 1, 1)
    assert [token_budget.reserve(*n) for n in ((0, 84), (0, 83))] == [None, 83]
    assert TokenBudget().reserve(10**12, 0)
    assert TokenBudget(0).reserve(1, 0) is None
    with pytest.raises(UsageError):
        TokenBudget(-1)


def test_estimates_are_raised_by_what_they_were_too_low() -> None:
    token_budget = TokenBudget(1000)
    assert token_budget.reserve(10, 5) == 15
    token_budget.record_used(15, 10, 25, 1)
    assert token_budget.reserve(10, 5) == 30
    token_budget.record_used(30, 10, 5, 1)  # and never lowered
    assert token_budget.reserve(10, 5) == 30
