"""Tiny models with random weights: the library's own classes, and real tokenizers over a small vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = [
    *("this", "that", "is", "a", "an", "the", "person", "name", "here", "there", "they", "are", "it", "he", "she"),
    *("him", "her", "his", "joy", "love", "peace", "war", "evil", "home", "office", "john", "amy", "paul", "lisa"),
    *("career", "family", "salary", "wedding", "flower", "insect", "rose", "ant", "good", "bad", "##s", "##ing"),
    *("'", ".", ",", "!", "s"),
]


def wordpiece_tokenizer(max_length: int = 32) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    fast: Any = PreTrainedTokenizerFast
    return fast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
    )


def byte_tokenizer(*, special: bool, max_length: int = 64) -> Any:
    """Byte-level BPE without merges, every byte a token; ``special`` puts <s> and </s> around a text, like RoBERTa."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {name: i for i, name in enumerate(names)}
    for symbol in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocabulary[symbol] = len(vocabulary)
    backend = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    extra: dict[str, str] = {}
    if special:
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        own = {"bos": "<s>", "pad": "<pad>", "cls": "<s>", "sep": "</s>", "unk": "<unk>"}
        extra = {f"{name}_token": token for name, token in own.items()}
    fast: Any = PreTrainedTokenizerFast
    return fast(tokenizer_object=backend, eos_token="</s>", model_max_length=max_length, **extra)


def save_random(model: Any, tokenizer: Any, folder: Path, std: float = 0.3) -> Path:
    """Save a model with random weights: the library's own start is so small that all vectors look alike."""
    import torch

    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=std)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_tiny(kind: str, folder: Path, *, head: bool = False) -> Path:
    """Save a random model of a kind (bert, roberta, gpt, gpt2, llama) with its tokenizer; returns the folder."""
    import torch
    import transformers

    library: Any = transformers

    torch.manual_seed(7)
    tokenizer = wordpiece_tokenizer() if kind == "bert" else byte_tokenizer(special=kind == "roberta")
    shared: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    wide: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    narrow: dict[str, Any] = {"n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 64}
    narrow |= {"bos_token_id": 2, "eos_token_id": 2}
    config: Any = {
        "bert": lambda: library.BertConfig(**shared, **wide, max_position_embeddings=32),
        "roberta": lambda: library.RobertaConfig(**shared, **wide, max_position_embeddings=66),
        "gpt": lambda: library.OpenAIGPTConfig(**shared, **narrow),
        "gpt2": lambda: library.GPT2Config(**shared, **narrow),
        "llama": lambda: library.LlamaConfig(
            **shared, **wide, max_position_embeddings=64, num_key_value_heads=2, bos_token_id=2, eos_token_id=2
        ),
    }[kind]()
    heads = {"bert": "AutoModelForMaskedLM", "roberta": "AutoModelForMaskedLM"}
    auto = getattr(library, heads.get(kind, "AutoModelForCausalLM") if head else "AutoModel")
    return save_random(auto.from_config(config), tokenizer, folder)
