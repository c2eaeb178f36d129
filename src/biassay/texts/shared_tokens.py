"""Tokens that two sentences share: what a comparison of their likelihoods is over."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from biassay.errors import UsageError

__all__ = ["SharedTokens", "shared_likelihoods", "shared_tokens"]


@dataclass(frozen=True)
class SharedTokens:
    """Places of the tokens that both sentences have, in their order: as many in one as in the other."""

    first: tuple[int, ...]
    second: tuple[int, ...]


def shared_tokens(first: Sequence[Hashable], second: Sequence[Hashable]) -> SharedTokens:
    """Align two sentences by their tokens: the longest common run, then the same to its left and to its right.

    As the authors of CrowS-Pairs do it (Nangia et al. 2020), with Python's `difflib`, on the numbers of the tokens.
    Their models read a token before and one behind each sentence, which are aligned, too, and not counted. Unlike
    there, no token is too frequent to count, so that long sentences are aligned like short ones.
    """
    start, end = object(), object()
    one, other = ([start, *sentence, end] for sentence in (first, second))
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    pairs = [(block.a + k - 1, block.b + k - 1) for block in blocks for k in range(block.size)]
    inside = [(i, j) for i, j in pairs if 0 <= i < len(first) and 0 <= j < len(second)]
    return SharedTokens(tuple(i for i, _ in inside), tuple(j for _, j in inside))


def shared_likelihoods(
    first: tuple[Sequence[Hashable], Sequence[float]], second: tuple[Sequence[Hashable], Sequence[float]]
) -> tuple[float, float]:
    """Log-likelihood of each of two sentences over the tokens that they share.

    Each sentence is its tokens and their (pseudo-)log-likelihoods. NaN stands for a token that has none, such as the
    first one of a causal model without a token before it: it is left out of both sentences.
    """
    for tokens, values in (first, second):
        if len(tokens) != len(values):
            raise UsageError(f"expected one log-likelihood for each of {len(tokens)} tokens, got {len(values)}")
    shared = shared_tokens(first[0], second[0])
    pairs = [(first[1][i], second[1][j]) for i, j in zip(shared.first, shared.second, strict=True)]
    given = [(a, b) for a, b in pairs if not (math.isnan(a) or math.isnan(b))]
    return math.fsum(a for a, _ in given), math.fsum(b for _, b in given)
