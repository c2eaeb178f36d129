"""BBQ by the likelihoods of options on one GPU: an 8B-sized model with random weights, and that model alone.

python benchmarks/answering.py BBQ [TOKENIZER]

BBQ is where the benchmark is (a folder, an installed package); TOKENIZER a folder with a tokenizer and chat template.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
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
from biassay.studies.benchmarks.inputs import open_inputs
from biassay.studies.benchmarks.questions import prompts_of
from biassay.studies.benchmarks.settings import Settings
from biassay.texts.requests import Prompt

TEMPLATE = "{% for m in messages %}[CLS] {{ m['content'] }} [SEP]{% endfor %} this"
PARTS = 8  # of the questions, so that a rate is printed before all are asked


def tokenizer_of(given: Sequence[str]) -> Any:
    if given:
        library: Any = transformers
        return library.AutoTokenizer.from_pretrained(given[0])
    tokenizer = tiny_models.wordpiece_tokenizer(max_length=8192)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def save_8b(folder: Path, tokenizer: Any) -> Path:
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


def prompts(place: str) -> list[Prompt]:
    """Every question with its options in one order."""
    inputs = open_inputs(Settings("bbq", place, orders=1))
    return [one for item in inputs.all_items for one in prompts_of(item, inputs.settings, "log-probability").values()]


def seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    print(
        torch.cuda.get_device_name(), "torch", torch.__version__, "transformers", transformers.__version__, flush=True
    )
    asked = prompts(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        tokenizer = tokenizer_of(sys.argv[2:])
        model: Any = open_as(f"hf:{save_8b(Path(place) / 'm', tokenizer)}?dtype=bfloat16", "replies")
        model.prepare(asked)
        model.reply(asked[:64])  # to warm up
        ids = [tuple(one.ids) for one in model._encoded([model._text(prompt) for prompt in asked])]
        passes = Passes.of([Question(row, 0, 0) for row in sorted(ids, key=len)[::PARTS]], "masked")
        print(f"{len(asked):,} questions of {np.mean([*map(len, ids)]):.0f} tokens", flush=True)

        def alone() -> None:
            with torch.inference_mode():
                for batch, _ in passes.batches(*_at_once("cuda")):
                    model._model.model.model(input_ids=torch.from_numpy(batch.padded(0)[0]).cuda())

        only = seconds(alone) * PARTS
        print(f"the model alone, every {PARTS}th question: {len(asked) / only:,.0f} a second", flush=True)
        store = AnswerStore(Path(place) / "kept").of(model.identity, REPLIES)
        whole = 0.0
        for part in range(PARTS):
            own = asked[part::PARTS]
            whole += seconds(lambda own=own: ask_missing(AskedReplies(model), own, store))
            rate = len(own) * (part + 1) / whole
            print(f"{part + 1} of {PARTS}: {rate:,.0f} questions a second", flush=True)
        print(f"{whole:.0f} s; {whole / only:.2f} times the model alone")


if __name__ == "__main__":
    main()
