"""Prefixes that causal models read once: the same answers as from whole sequences, and fewer tokens read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.blanks import blank
from tests.models.tiny_models import save_tiny

from biassay.models.registry import open_model
from biassay.models.transformers.forward_plan import ForwardPlan, PrefixGroups, TokenQuery, group_by_prefix
from biassay.prompts.requests import LikelihoodRequest, Prompt

WORDS = ("good", "evil", "bad", "loves", "lovely", "g")


def some_questions(rng: np.random.Generator) -> list[TokenQuery]:
    starts = [tuple(rng.integers(0, 50, rng.integers(4, 9)).tolist()) for _ in range(12)]
    made = []
    for _ in range(400):
        start = starts[rng.integers(len(starts))]
        ids = (*start, *rng.integers(0, 50, rng.integers(0, 3)).tolist())
        made.append(TokenQuery(ids, int(rng.integers(len(start) - 1, len(ids))), int(rng.integers(50))))
    return made


def asked_by(families: PrefixGroups) -> list[tuple[tuple[int, ...], int, int]]:
    """Return every query: all tokens up to its position, and the target token."""
    found = []
    for row, place, target in zip(families.rows, families.positions, families.targets, strict=True):
        ids = (*families.prefixes[families.group[row]], *families.suffixes[row])
        found.append((ids[: place + 1], int(place), int(target)))
    return found


@pytest.mark.parametrize(("rows", "tokens"), [(2000, 60_000), (16, 60_000), (64, 200), (1, 1)])
def test_every_question_is_asked_behind_the_same_tokens(rows: int, tokens: int) -> None:
    questions = some_questions(np.random.default_rng(0))
    found = group_by_prefix(ForwardPlan.from_queries(questions, "causal"), rows, tokens)
    assert sorted(np.concatenate([own for _, own in found]).tolist()) == list(range(len(questions)))
    read = 0
    for families, own in found:
        expected = [(q.ids[: q.position + 1], q.position, q.target) for q in (questions[i] for i in own)]
        assert asked_by(families) == expected
        parts = families.halves() or [families]
        assert [one for part in parts for one in asked_by(part)] == expected
        first, second = families.prefix_batch, families.suffix_batch
        assert len(first.targets) + len(second.targets) == len(own)
        assert all(map(len, [*families.prefixes, *families.suffixes]))
        read += sum(map(len, [*families.prefixes, *families.suffixes]))
    assert 1.5 * read <= sum(len(ids) for ids in ForwardPlan.from_queries(questions, "causal").sequences)


@pytest.mark.extras
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("small", [False, True])
def test_answers_are_those_of_whole_sequences(
    kind: str, *, small: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"hf:{save_tiny(kind, tmp_path / 'm', head=True)}"
    if small:
        monkeypatch.setattr("biassay.models.transformers.language_model._MAX_BATCH_SEQUENCES", {"cpu": 4})
    asked = [blank(f"{who} {{trait}}.", *WORDS) for who in ("she is", "the person is so very", "he", "they were")]
    prompts = [Prompt(text, options=(" yes", " no", " yesterday")) for text in ("is it so", "who is there, so late")]
    texts = [LikelihoodRequest(text) for text in ("she is good", "she is bad", "he is here", "a person")]

    def everything(shares: bool | None) -> tuple[Any, Any, Any, list[bool | None]]:
        filling: Any = open_model(name, "blanks")
        replying: Any = open_model(f"{name}?chat=false", "replies")
        telling: Any = open_model(name, "likelihoods")
        models = [filling, replying._model, telling._model]
        for model in models:
            model._can_share_prefixes = shares
        found = filling.fill(asked), replying.reply(prompts), telling.likelihoods(texts)
        return *found, [model._can_share_prefixes for model in models]

    filled, replies, likelihoods, shares = everything(None)
    assert shares[:2] == [True, True]
    plain, other_replies, other_likelihoods, _ = everything(shares=False)
    for one, other in zip(filled, plain, strict=True):
        np.testing.assert_array_equal(one.pieces, other.pieces)
        np.testing.assert_allclose(one.columns, other.columns, atol=1e-5)
        assert one.passes == other.passes
    for reply, other in zip(replies, other_replies, strict=True):
        np.testing.assert_allclose(reply.log_p, other.log_p, atol=1e-5)
    for text, other in zip(likelihoods, other_likelihoods, strict=True):
        np.testing.assert_allclose(text.log_p, other.log_p, atol=1e-5)


@pytest.mark.extras
def test_a_model_that_says_something_else_behind_a_prefix_reads_whole_sequences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = open_model(f"hf:{save_tiny('gpt2', tmp_path / 'm', head=True)}", "blanks")
    asked = [blank("she is so very {trait}.", *WORDS)]
    expected = open_model(f"hf:{tmp_path / 'm'}", "blanks").fill(asked)
    given = "biassay.models.transformers.forward_plan.PrefixCache.model_arguments"
    from biassay.models.transformers.forward_plan import PrefixCache

    right = PrefixCache.model_arguments
    wrong = lambda self, mask: {k: v for k, v in right(self, mask).items() if k != "past_key_values"}  # noqa: E731
    monkeypatch.setattr(given, wrong)
    (found,) = model.fill(asked)
    assert model._can_share_prefixes is False
    np.testing.assert_allclose(found.columns, expected[0].columns, atol=1e-5)


def test_where_nothing_is_shared_all_is_read_as_a_whole() -> None:
    alone = [TokenQuery((number, 1, 2, 3), 3, 4) for number in range(20)]
    assert group_by_prefix(ForwardPlan.from_queries(alone, "causal"), 100, 1000) == []
    assert group_by_prefix(ForwardPlan.from_queries([TokenQuery((1,), 0, 2)], "causal"), 100, 1000) == []
    assert group_by_prefix(ForwardPlan.from_queries([], "causal"), 100, 1000) == []
