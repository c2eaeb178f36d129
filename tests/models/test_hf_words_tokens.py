"""Tokens of a word in context, looked up character by character, without a model."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from biassay.models.base import Span
from biassay.models.transformers.tokenizer import NOT_COVERED, UNKNOWN, TextTokenizer

from . import tiny_models
from .hf_word_models import merged_tokenizer, own_tokens, piece_tokenizer

pytestmark = pytest.mark.extras

TOKENIZERS = {"wordpiece": tiny_models.wordpiece_tokenizer, "merged": merged_tokenizer, "pieces": piece_tokenizer}
TOKENIZERS["bytes"] = lambda: tiny_models.byte_tokenizer(special=True)
LETTERS = st.text(alphabet="joysantwe éüß日本🙂-'. \u0301\u200b\uff21ﬁ", min_size=1, max_size=14)


@cache
def text_tokenizer(name: str) -> tuple[Any, TextTokenizer]:
    tokenizer = TOKENIZERS[name]()
    tokenizer.model_max_length = 10_000
    return tokenizer, TextTokenizer(tokenizer, transformers.BertConfig(max_position_embeddings=10_000), name)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=150, deadline=None)
@given(before=LETTERS, word=LETTERS, behind=LETTERS)
def test_tokens_are_found_whatever_the_text(name: str, before: str, word: str, behind: str) -> None:
    text, span = before + word + behind, (len(before), len(before) + len(word))
    tokenizer, ours = text_tokenizer(name)
    expected = own_tokens(tokenizer, text, span)
    ids = tokenizer(text)["input_ids"]
    found = ours.locate([text], [span])
    if not expected or all(ids[i] == tokenizer.unk_token_id for i in expected):
        assert found.missing == [UNKNOWN if expected else NOT_COVERED]
        assert len(found.tokenized.ids) == 1
        return
    assert found.missing == [None]
    assert found.tokenized.ids.tolist() == ids
    assert np.flatnonzero(found.tokenized.words).tolist() == expected


class Listed:
    """What a tokenizer gives back, made up: answers as its Rust code does, by going through the offsets."""

    def __init__(self, offsets: list[Span]) -> None:
        self.offsets, self.ids = offsets, list(range(10, 10 + len(offsets)))

    def char_to_token(self, place: int) -> int | None:
        return next((i for i, (a, b) in enumerate(self.offsets) if a <= place < b), None)

    def token_to_chars(self, token: int) -> Span | None:
        return self.offsets[token] if token < len(self.offsets) else None


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([(0, 1), (2, 3), (3, 3), (3, 5), (6, 7)], [1, 3]),
        ([(0, 1), (2, 2), (2, 5), (6, 7)], [2]),
        ([(0, 1), (2, 5), (4, 4), (6, 7)], [1]),
        ([(0, 1), (2, 5), (5, 5), (5, 7)], [1]),
        ([(0, 1), (2, 4), (4, 4), (4, 5), (4, 5)], [1, 3, 4]),
        ([(0, 1), (3, 4), (6, 7)], [1]),
    ],
)
def test_tokens_that_stand_for_nothing_never_count(offsets: list[Span], expected: list[int]) -> None:
    ours: Any = text_tokenizer("wordpiece")[1]
    assert list(ours._locate_word("a joy s", (2, 5), Listed(offsets))[1]) == expected
