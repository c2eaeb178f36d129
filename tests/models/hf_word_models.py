"""Tiny models for words in context, and the library run on one text at a time as the witness."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.models.base import ContextEmbeddings, Span, WordEncoder
from biassay.models.registry import open_model

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
    model = transformers.AutoModel.from_config(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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


def own_tokens(tokenizer: Any, text: str, span: Span) -> list[int]:
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


def states_of(folder: Path, ids: list[int]) -> NDArray[Any]:
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
    own = own_tokens(tokenizer, text, span)
    states = states_of(folder, tokenizer(text)["input_ids"])[:, own]
    return np.asarray({"last": states[:, -1], "first": states[:, 0], "mean": states.mean(axis=1)}[part])
