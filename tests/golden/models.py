"""Two tiny language models: a masked one that knows some words, a causal one that knows every byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.models.tiny_models import byte_tokenizer

from .made_inputs import LISTS, fractions

SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
_SIZE = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
_POSITIONS = 96


def make_models(folder: Path) -> None:
    """``masked`` and ``causal`` in a folder."""
    known = ("asked", "traits", "names", "work", "house", "alike", "frame", "fillers")
    words = [*(word for name in known for word in LISTS[name]), *"0123456789"]
    vocabulary = dict.fromkeys((*SPECIAL.values(), *map(str.lower, words)))
    masked = {"model_type": "bert", "pad_token_id": 0, "max_position_embeddings": _POSITIONS, **_SIZE}
    _save(folder / "masked", _word_pieces(list(vocabulary)), masked, "BertForMaskedLM", SPECIAL)
    causal = {"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": _POSITIONS}
    ends = {"bos_token_id": 2, "eos_token_id": 2}
    backend = byte_tokenizer(special=False).backend_tokenizer
    _save(folder / "causal", backend, causal | ends, "GPT2LMHeadModel", {"eos_token": "</s>"})


def _word_pieces(vocabulary: list[str]) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    numbers = {word: i for i, word in enumerate(vocabulary)}
    backend = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(name, numbers[name]) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return backend


def _save(folder: Path, backend: Any, config: dict[str, Any], kind: str, special: dict[str, str]) -> None:
    """Files of a model in the library's form, without what it would write of itself."""
    import transformers
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    config = {"architectures": [kind], "vocab_size": backend.get_vocab_size(), **config}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": _POSITIONS, **special}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    backend.save(str(folder / "tokenizer.json"))
    library: Any = transformers
    model = getattr(library, kind)(library.AutoConfig.from_pretrained(folder))
    weights = {name: _weight(f"{kind} {name}", *weight.shape) for name, weight in model.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _weight(name: str, *shape: int) -> NDArray[np.float32]:
    """Sizes that keep the vectors of words apart; no positions, so that the lowest causal layer knows tokens only."""
    made = fractions(name, *shape)
    if "wpe" in name:
        return np.zeros(shape, np.float32)
    if name.endswith("bias"):
        return made / 8  # type: ignore[return-value]
    return 1 + made / 4 if len(shape) == 1 else made / 2 if "embeddings" not in name and "wte" not in name else made  # type: ignore[return-value]
