"""Tokens that two sentences share: hand-made alignments, and a brute force over common runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
import pytest

from biassay.errors import UsageError
from biassay.studies.benchmarks.likelihood_pairs import align_tokens, score_shared_tokens


def longest_first(first: Sequence[str], second: Sequence[str], i: int = 0, j: int = 0) -> list[tuple[int, int]]:
    """The longest common run, the earliest of several, then left and right of it."""
    best = (0, 0, 0)
    for a in range(len(first)):
        for b in range(len(second)):
            size = 0
            while a + size < len(first) and b + size < len(second) and first[a + size] == second[b + size]:
                size += 1
            best = max(best, (size, -a, -b))
    size, a, b = best[0], -best[1], -best[2]
    if not size:
        return []
    return [
        *longest_first(first[:a], second[:b], i, j),
        *((i + a + k, j + b + k) for k in range(size)),
        *longest_first(first[a + size :], second[b + size :], i + a + size, j + b + size),
    ]


@pytest.mark.parametrize("seed", range(30))
def test_against_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (list(rng.choice(list("abcd"), rng.integers(1, 12))) for _ in range(2))
    found = align_tokens(first, second)
    aligned = longest_first(["^", *first, "$"], ["^", *second, "$"])[1:-1]  # with the tokens around a sentence
    assert found == [(i - 1, j - 1) for i, j in aligned]


def test_the_spans_are_those_of_the_authors_code() -> None:
    """get_span of metric.py, with [CLS] and [SEP], of which the first and the last span are left out."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        first, second = ([101, *rng.integers(0, 5, rng.integers(1, 9)).tolist(), 102] for _ in range(2))
        opcodes = SequenceMatcher(None, [str(x) for x in first], [str(x) for x in second]).get_opcodes()
        spans = [(range(op[1], op[2]), range(op[3], op[4])) for op in opcodes if op[0] == "equal"]
        one, other = ([place for span in spans for place in span[side]][1:-1] for side in (0, 1))
        found = align_tokens(first[1:-1], second[1:-1])
        assert [(i + 1, j + 1) for i, j in found] == list(zip(one, other, strict=True))


def test_frequent_tokens_of_long_sentences_count() -> None:
    words = ["the", *(f"w{i}" for i in range(220)), "the"] * 2
    assert len(align_tokens(words, words)) == len(words)


def test_likelihood_is_over_shared_tokens_alone() -> None:
    first = (["the", "poet", "sang"], [-1.0, -9.0, -2.0])
    second = (["the", "cook", "sang"], [-1.5, -0.1, -4.0])
    assert score_shared_tokens(first, second) == (-3.0, -5.5)


def test_a_token_without_likelihood_counts_in_neither() -> None:
    first = (["the", "poet", "sang"], [math.nan, -9.0, -2.0])
    second = (["the", "cook", "sang"], [-1.5, -0.1, -4.0])
    assert score_shared_tokens(first, second) == (-2.0, -4.0)
    with pytest.raises(UsageError):
        score_shared_tokens((["a"], []), (["a"], [0.0]))


@pytest.mark.extras
@pytest.mark.parametrize(
    ("more", "less", "by_id", "by_word"),
    [
        # The blank is part of a token: the first word of a sentence is another token than the same word within it.
        (["old", " men", " sing"], ["men", " sing"], ["▁sing"], ["men", "sing"]),
        # Endings are shared by other words.
        (["the", " waiter", "s"], ["the", " nurse", "s"], ["the", "s"], ["the"]),
    ],
)
def test_tokens_of_a_bpe_tokenizer_are_shared_by_id_and_not_by_word(
    more: list[str], less: list[str], by_id: list[str], by_word: list[str]
) -> None:
    """With merges for these words, 'men' and ' men' have different ids, and 'waiters' ends in a token of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = dict.fromkeys(piece.replace(" ", "Ġ") for piece in [*more, *less])
    vocabulary = {symbol: i for i, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = []
    for piece in pieces:
        for end in range(2, len(piece) + 1):
            if piece[:end] not in vocabulary:
                vocabulary[piece[:end]] = len(vocabulary)
                merges.append((piece[: end - 1], piece[end - 1]))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    sentences = "".join(more), "".join(less)
    ids = [tokenizer.encode(sentence).ids for sentence in sentences]
    shared = align_tokens(*ids)
    assert [str(tokenizer.id_to_token(ids[0][i])).replace("Ġ", "▁") for i, _ in shared] == by_id
    words = [sentence.split() for sentence in sentences]
    assert [words[0][i] for i, _ in align_tokens(*words)] == by_word
