"""Words in context that a model cannot read as they are: texts over its limit, and missing words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.errors import VectorError
from biassay.models.base import Span
from biassay.models.transformers.tokenizer import NOT_COVERED, TOO_LONG, UNKNOWN

from . import hf_word_models
from .hf_word_models import CLOSE, direct, encode, opened, unmarked

pytestmark = pytest.mark.extras

models = hf_word_models.models


# Texts over the limit


@pytest.mark.parametrize(
    ("before", "behind", "kept_before", "kept_behind"),
    [(40, 40, 14, 15), (0, 60, 0, 29), (60, 0, 29, 0), (3, 60, 3, 26), (60, 2, 27, 2), (29, 1, 28, 1)],
)
def test_a_long_text_is_cut_around_the_word(
    before: int, behind: int, kept_before: int, kept_behind: int, models: dict[str, Path]
) -> None:
    """Of 32 tokens two are special and one is the word."""
    long = unmarked("joy " * before + "|rose|" + " love" * behind)
    short = unmarked("joy " * kept_before + "|rose|" + " love" * kept_behind)
    (vector,) = encode(f"hf:{models['bert']}", [long]).vectors
    assert vector == pytest.approx(direct(models["bert"], *short)[-1], abs=CLOSE)


def test_a_long_text_is_cut_between_words(models: dict[str, Path]) -> None:
    text, s = "abc " * 60, 120  # 64 tokens, every byte one: 30 before the word and 31 behind, less than whole words
    (vector,) = encode(f"hf:{models['llama']}", [(text, (s, s + 3))]).vectors
    piece = text[s - 29 : s + 32]
    assert vector == pytest.approx(direct(models["llama"], piece, (29, 32))[-1], abs=CLOSE)


# Missing words


def test_missing_words_are_told_and_have_no_numbers(models: dict[str, Path]) -> None:
    given = [unmarked(t) for t in ("is |Zyxwv|.", "joy| |love", "[SEP] |joy|", "|[SEP]| joy", "the |Zyxwv joy|", "| |")]
    found = encode(f"hf:{models['bert']}", given)
    assert found.missing == (UNKNOWN, NOT_COVERED, None, NOT_COVERED, None, NOT_COVERED)
    assert np.isnan(found.vectors).all(axis=1).tolist() == [reason is not None for reason in found.missing]
    assert found.vectors[2] == pytest.approx(direct(models["bert"], *given[2])[-1], abs=CLOSE)


@pytest.mark.parametrize("span", [(2, 2), (3, 1), (-2, 1), (0, 5)])
def test_a_span_that_is_none_is_refused(span: Span, models: dict[str, Path]) -> None:
    with pytest.raises(
        VectorError, match=re.escape(f"({span[0]}, {span[1]}) is not a span of characters in the text 'joy!'")
    ):
        encode(f"hf:{models['bert']}", [("joy!", span)])


def test_numbers_that_are_not_finite_are_no_missing_word(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder: Any = opened(f"hf:{models['bert']}")
    broken = np.array([[1, 2], [np.inf, 0]], dtype=np.float32)
    monkeypatch.setattr(encoder._states, "vectors", lambda *_: broken)
    with pytest.raises(VectorError, match="a word in 'love' is not finite"):
        encoder.encode_words(["joy", "love"], [(0, 3), (0, 3)])


def test_a_word_longer_than_the_model_reads_is_missing(models: dict[str, Path]) -> None:
    found = encode(f"hf:{models['roberta']}", [("a " + "x" * 63, (2, 65)), ("a " + "x" * 62, (2, 64))])
    assert found.missing == (TOO_LONG, None)


def test_every_text_needs_a_span(models: dict[str, Path]) -> None:
    with pytest.raises(VectorError, match="2 texts and 1 spans"):
        opened(f"hf:{models['bert']}").encode_words(["joy", "love"], [(0, 3)])
