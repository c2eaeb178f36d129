"""Prompts by the likelihoods of their options on one GPU: an 8B-sized model with random weights, and that model alone.

python benchmarks/answering.py [PROMPTS]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))

import tiny_models
import torch
import transformers

from biassay.answers.codecs import REPLIES
from biassay.answers.fill import AskedReplies, ask_missing
from biassay.answers.store import AnswerStore
from biassay.models.lm import _at_once
from biassay.models.lm_passes import Passes
from biassay.models.lm_questions import Question
from biassay.models.registry import open_as
from biassay.texts.requests import Prompt

BBQ = 58_492  # questions of all categories
TEMPLATE = "{% for m in messages %}[CLS] {{ m['content'] }} [SEP]{% endfor %} this"


def save_8b(folder: Path) -> Path:
    tokenizer = tiny_models.wordpiece_tokenizer(max_length=8192)
    tokenizer.chat_template = TEMPLATE
    size: dict[str, Any] = {"hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32}
    heads: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8}
    config = transformers.LlamaConfig(vocab_size=128_256, pad_token_id=0, **size, **heads)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    del model
    torch.cuda.empty_cache()
    return folder


def prompts(count: int) -> list[Prompt]:
    """As long as questions of BBQ are with their options: 60 to 160 tokens."""
    rng = np.random.default_rng(0)
    words = np.array([word for word in tiny_models.WORDS if word.isalpha()])
    texts = [" ".join(words[rng.integers(0, len(words), rng.integers(60, 160))]) for _ in range(count)]
    return [Prompt(text, options=(" he", " she", " they")) for text in dict.fromkeys(texts)]


def seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else BBQ
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "transformers", transformers.__version__)
    with tempfile.TemporaryDirectory() as place:
        model: Any = open_as(f"hf:{save_8b(Path(place) / 'm')}?dtype=bfloat16", "replies")
        asked = prompts(count)
        model.prepare(asked)
        model.reply(asked[:64])  # to warm up
        store = AnswerStore(Path(place) / "kept").of(model.identity, REPLIES)
        whole = seconds(lambda: ask_missing(AskedReplies(model), asked, store))
        ids = [tuple(one.ids) for one in model._encoded([model._text(prompt) for prompt in asked])]
        passes = Passes.of([Question(row, 0, 0) for row in ids], "masked")
        print(f"{len(asked):,} prompts of {np.mean([*map(len, ids)]):.0f} tokens: {len(asked) / whole:,.0f} a second")

        def alone() -> None:
            with torch.inference_mode():
                for batch, _ in passes.batches(*_at_once("cuda")):
                    model._model.model.model(input_ids=torch.from_numpy(batch.padded(0)[0]).cuda())

        only = seconds(alone)
        print(f"the model alone: {len(asked) / only:,.0f} a second; {whole / only:.2f} times as long")


if __name__ == "__main__":
    main()
