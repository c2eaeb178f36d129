"""Time all studies on one GPU with causal models of 8 and 30 billion random weights in bfloat16.

python benchmarks/large_models.py [8] [30]

Weights are made on the GPU and stay there for all studies: opening files, identity, tokenizing, passes, caching and
statistics are those of a run, but no weights are read from disk (`gpu_stereotypes.py large` reads them).
"In the model" is the time that the GPU spent on passes, by its own clock; a pass that does not fit is split in half.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
import transformers
from tests.bbq_answers import questions
from tests.models.tiny_models import WORDS
from tests.studies.stereotypes.asked_models import save_masked

import biassay
from biassay.datasets.abc_model import load_abc
from biassay.models.transformers import encoder, language_model

TEMPLATE = "{% for m in messages %}[CLS] {{ m['content'] }} [SEP]{% endfor %} this"
SIZES: dict[str, dict[str, Any]] = {
    "0": {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "heads": 2},
    "8": {"hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32, "num_attention_heads": 32},
    "30": {"hidden_size": 6656, "intermediate_size": 17_920, "num_hidden_layers": 60, "num_attention_heads": 52},
}
CONTEXTS = 50


class Held:
    """A model on the GPU that replaces loading from disk, and times its passes."""

    def __init__(self, config: Any) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        with torch.device(self.device):
            self.model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        self.events: list[tuple[Any, Any]] = []
        inner = self.model.model
        inner.register_forward_pre_hook(lambda *_: self.events.append((self.now(), None)))
        inner.register_forward_hook(lambda *_: self.events.append((self.events.pop()[0], self.now())))

    def now(self) -> Any:
        if self.device == "cpu":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def __call__(self, _: object, auto_class: str, *__: object, **___: object) -> Any:
        return self.model if auto_class == "AutoModelForCausalLM" else self.model.model

    def at_work(self) -> float:
        """Return the seconds of all passes since the last call."""
        events, self.events = [pair for pair in self.events if pair[1] is not None], []
        if self.device == "cpu":
            return sum(end - start for start, end in events)
        torch.cuda.synchronize()
        return sum(start.elapsed_time(end) for start, end in events) / 1000


def folder_of(place: Path, size: str) -> tuple[Path, Any]:
    """Write a model folder with an empty weights file."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(save_masked(place / "words", load_abc()))
    tokenizer.model_max_length, tokenizer.chat_template = 8192, TEMPLATE
    own = dict(SIZES[size])
    heads = own.pop("heads", 8 if size == "8" else 4)
    config = transformers.LlamaConfig(vocab_size=128_256, pad_token_id=0, num_key_value_heads=heads, **own)
    folder = place / f"causal{size}"
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "model.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    return folder, config


def corpus(place: Path) -> Path:
    """Write a corpus of sentences with each stimulus of a test among in-vocabulary words."""
    rng, path = np.random.default_rng(0), place / "corpus.txt"
    (test,) = biassay.select_tests(["weat1"])
    stimuli = [word for part in (test.X, test.Y, test.A, test.B) for word in part.words]
    fill = [word for word in WORDS if word.isalpha()]
    with path.open("w") as file:
        for word in stimuli:
            for drawn in rng.choice(fill, (CONTEXTS, 16)):
                file.write(" ".join([*drawn[:8], word, *drawn[8:]]) + ".\n")
    return path


def bbq(place: Path) -> Path:
    path = place / "Religion.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in questions("Religion")), encoding="utf-8")
    return path


def measure(place: Path, size: str) -> None:
    folder, config = folder_of(place, size)
    began = time.perf_counter()
    held = Held(config)
    numbers = sum(weights.numel() for weights in held.model.parameters())
    print(f"{numbers / 1e9:.1f} billion weights, made in {time.perf_counter() - began:.0f} s", flush=True)
    language_model.load_weights = encoder.load_weights = held  # type: ignore[assignment]
    name, where = f"hf:{folder}?dtype=bfloat16", {"cache": place / f"cache{size}"}
    contexts = place / "contexts.parquet"
    if not contexts.exists():
        biassay.find_contexts(corpus(place), contexts, ["weat1"], per_stimulus=CONTEXTS, workers=1)
    studies: dict[str, Callable[[], Any]] = {
        "run, 46 tests": lambda: biassay.run(name, ["caliskan2017", "may2019"], **where),
        "run, weat1 over contexts": lambda: biassay.run(name, ["weat1"], contexts=contexts, n_samples=1000, **where),
        "stereotypes": lambda: biassay.stereotypes(name, **where),
        "ask, by log-odds": lambda: biassay.ask(name, read="log-odds", **where),
        "benchmark, BBQ, Religion": lambda: biassay.benchmark("bbq", name, data=bbq(place), orders=1, **where),
        "ask, by replies, wat-islam": lambda: biassay.ask(name, "wat-islam", read="replies", n_answers=4, **where),
    }
    for title, study in studies.items():
        began = time.perf_counter()
        try:
            study()
        except biassay.BiassayError as error:
            print(f"  {title}: {error}", flush=True)
            continue
        took, model = time.perf_counter() - began, held.at_work()
        print(f"  {title}: {took:.1f} s, in the model {model:.1f}: {took / max(model, 1e-9):.2f} times", flush=True)
    language_model.load_weights = encoder.load_weights = None  # type: ignore[assignment]


def main() -> None:
    for size in sys.argv[1:] or ("8", "30"):
        with tempfile.TemporaryDirectory() as place:
            measure(Path(place), size)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
