"""Replies and likelihoods are kept by content, each as it comes; nothing is asked twice, nothing is made up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from biassay.cache.codecs import LIKELIHOODS, REPLIES
from biassay.cache.handlers import LikelihoodHandler, ReplyHandler, fetch_missing, stream_missing
from biassay.cache.responses import ModelCache, ResponseCache
from biassay.errors import MeasurementError, ModelError, UsageError
from biassay.models.base import FINISH_REASONS, Identity, Reply, TokenLikelihoods
from biassay.models.token_budget import TokenBudget, estimate_token_count
from biassay.prompts.requests import LikelihoodRequest, Prompt

MODEL = Identity("fake", "test", "1")
NAN = float("nan")
PROMPTS = [Prompt(f"question {i}", sample=i) for i in range(20)]
ANSWERS = [
    Reply("plain", "stop", 3, 4),
    Reply("", "filter"),
    Reply("naïve 三 😀\n\ud800", None, 0, None),
    Reply("", "stop", 1, 1, (-0.5, NAN, -1e-300)),
    *(Reply(ended, ended) for ended in FINISH_REASONS),
]


def opened(root: Path | None) -> ModelCache[Prompt, Sequence[Reply]]:
    return ResponseCache(root).for_model(MODEL, REPLIES)


def same(found: Sequence[Reply], expected: Sequence[Reply]) -> bool:
    return [repr(one) for one in found] == [repr(one) for one in expected]  # NaN is NaN there


@pytest.mark.parametrize("kept", [True, False])
def test_replies_come_back_as_they_were(kept: bool, tmp_path: Path) -> None:
    store, n = opened(tmp_path if kept else None), len(ANSWERS)
    store.add(PROMPTS[:3], ANSWERS[:3])
    store.add(PROMPTS[3:n], ANSWERS[3:])
    for later in (store, opened(tmp_path)) if kept else (store,):
        assert same(later.get(PROMPTS[:n][::-1]), ANSWERS[::-1])
        assert same(later.get([PROMPTS[3], PROMPTS[0]]), [ANSWERS[3], ANSWERS[0]])
        assert later.missing(PROMPTS) == PROMPTS[n:]
    assert list(store.get([])) == []


def test_likelihoods_come_back_as_they_were(tmp_path: Path) -> None:
    texts = [LikelihoodRequest("a b"), LikelihoodRequest("c"), LikelihoodRequest("d")]
    answers = [
        TokenLikelihoods(np.array([NAN, -1.25]), np.array([[0, 1], [1, 3]], dtype=np.int32), np.array([7, -(2**62)])),
        TokenLikelihoods(np.array([-1e-17]), np.array([[0, 1]], dtype=np.int32), np.array([3])),
        TokenLikelihoods(np.empty(0), np.empty((0, 2), dtype=np.int32), np.empty(0, dtype=np.int64)),
    ]
    ResponseCache(tmp_path).for_model(MODEL, LIKELIHOODS).add(texts, answers)
    found = ResponseCache(tmp_path).for_model(MODEL, LIKELIHOODS).get(texts[::-1])
    for one, expected in zip(found, answers[::-1], strict=True):
        np.testing.assert_array_equal(one.log_p, expected.log_p)
        np.testing.assert_array_equal(one.spans, expected.spans)
        np.testing.assert_array_equal(one.tokens, expected.tokens)
        assert (one.log_p.dtype, one.spans.dtype, one.tokens.dtype) == (np.float64, np.int32, np.int64)


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
    assert len({one.key for one in [*prompts, *texts]}) == len(prompts) + len(texts)
    assert Prompt("a", None, ("b",), 2).key == Prompt("a", options=("b",), sample=2).key


@pytest.mark.parametrize("wrong", [{"text": ""}, {"options": ("a", "a")}, {"options": ("",)}, {"sample": -1}])
def test_prompts_that_ask_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Prompt(**{"text": "a", **wrong})  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        LikelihoodRequest("")


def test_the_likelihood_of_a_part_of_a_text() -> None:
    """Tokens "The", " cat", "s" of "The cats": a word is all tokens that have a character of it."""
    spans = np.array([[0, 3], [3, 7], [7, 8]], dtype=np.int32)
    of = TokenLikelihoods(np.array([NAN, -2.0, -0.5]), spans, np.arange(3))
    assert of.within(4, 8) == -2.5
    assert of.within(7, 8) == -0.5
    assert math.isnan(of.within(0, 8))


# Asking


class Batched:
    """Answers batch by batch, as a local model does."""

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
    with pytest.raises(ModelError, match="fake"):
        fetch_missing(
            LikelihoodHandler(Batched()),
            [LikelihoodRequest("a")],
            ResponseCache(tmp_path).for_model(MODEL, LIKELIHOODS),
        )


class Streaming:
    """Answers in groups of three, the last first, until it breaks."""

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


def test_a_broken_stream_loses_nothing_and_asks_nothing_again(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="broken"):
        stream_missing(Streaming(7), PROMPTS, opened(tmp_path), TokenBudget())
    assert opened(tmp_path).missing(PROMPTS) == PROMPTS[:13]
    again, store = Streaming(), opened(tmp_path)
    assert stream_missing(again, PROMPTS, store, TokenBudget()) == 13
    assert again.asked == PROMPTS[:13]
    assert [one.text for one in opened(tmp_path).get(PROMPTS)] == [prompt.text for prompt in PROMPTS]
    assert stream_missing(Streaming(), PROMPTS, store, TokenBudget()) == 0


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


def test_a_process_that_saw_the_small_files_finds_what_became_of_them(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for prompt in PROMPTS:
        store.add([prompt], [Reply(prompt.text)])
    other = opened(tmp_path)
    store.merge(PROMPTS, [Reply(prompt.text) for prompt in PROMPTS])
    assert len(list(tmp_path.rglob("*.npz"))) == 1
    assert other.missing(PROMPTS) == []
    assert [reply.text for reply in other.get(PROMPTS)] == [prompt.text for prompt in PROMPTS]
    assert other.damaged == []


def test_merging_in_memory_keeps_all() -> None:
    store = opened(None)
    stream_missing(Streaming(), PROMPTS, store, TokenBudget())
    assert [reply.text for reply in store.get(PROMPTS)] == [prompt.text for prompt in PROMPTS]


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


def test_tokens_are_counted_roughly() -> None:
    assert [estimate_token_count(text) for text in ("", "the", "a" * 400, "三" * 4)] == [1, 1, 101, 4]
