"""Measure the speed of BBQ on one GPU: option likelihoods of an 8B-sized model with random weights.

python benchmarks/answering.py BBQ [TOKENIZER]

BBQ is a folder or installed package with the benchmark, TOKENIZER a folder with a tokenizer and chat template.
The command reports the rate: prompts per second from the moment the model is loaded until the last
reply is in the cache.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))

import tiny_models
import torch
import transformers

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = "{% for m in messages %}[CLS] {{ m['content'] }} [SEP]{% endfor %} this"
RATE = re.compile(r"asking: ([\d,]+) of \1 prompts, ([\d,.]+)/s")


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


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "transformers", transformers.__version__)
    with tempfile.TemporaryDirectory() as place:
        model = save_8b(Path(place) / "model", tokenizer_of(sys.argv[2:]))
        paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "biassay", "benchmark", "bbq", f"hf:{model}?dtype=bfloat16"]
        done = subprocess.run(
            [*command, "--data", sys.argv[1], "--orders", "1", "--cache", f"{place}/cache", "--out", f"{place}/run"],
            env={**os.environ, "PYTHONPATH": paths},
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    found = RATE.search(done.stderr)
    print(f"{found[1]} prompts, {found[2]} per second" if found else done.stderr)


if __name__ == "__main__":
    main()
