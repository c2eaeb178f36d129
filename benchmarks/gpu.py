"""Throughput of a BERT-base-sized model on one GPU, and what bounds it. Random weights: the speed is that of real ones.

python benchmarks/gpu.py
"""

from __future__ import annotations

import re
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

from biassay.answers.fill import AskedTexts, in_turn
from biassay.models import hf_words
from biassay.models.elmo import Options
from biassay.models.elmo_model import ElmoModel, data_sets
from biassay.models.registry import open_as

SHORT = 200_000
LONG = 40_000
CONTEXTS = 200_000


def save_bert_base(folder: Path) -> Path:
    tokenizer = tiny_models.wordpiece_tokenizer(max_length=512)
    config = transformers.BertConfig(vocab_size=30_522, pad_token_id=0)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def texts(count: int, words: int) -> list[str]:
    rng = np.random.default_rng(words)
    vocabulary = np.array([word for word in tiny_models.WORDS if word.isalpha()])
    return [" ".join(row) + "." for row in vocabulary[rng.integers(0, len(vocabulary), (count, words))]]


def seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "transformers", transformers.__version__)
    with tempfile.TemporaryDirectory() as place:
        folder = save_bert_base(Path(place) / "bert")
        for count, words, name in ((SHORT, 4, "short sentences (7 tokens)"), (LONG, 125, "texts of 128 tokens")):
            measure_texts(
                open_as(f"hf:{folder}?dtype=bfloat16&device=cuda", "texts"), name, texts(count, words), words + 3
            )
        for dtype in ("bfloat16", "float32"):
            measure_words(open_as(f"hf:{folder}?dtype={dtype}&device=cuda", "words"), f"words in context, {dtype}")
        folder = save_gpt2(Path(place) / "gpt2")
        words = "words in context, GPT-2 small, bfloat16"
        measure_words(open_as(f"hf:{folder}?dtype=bfloat16&device=cuda", "words"), words)
    measure_elmo()


def save_gpt2(folder: Path) -> Path:
    tokenizer = tiny_models.wordpiece_tokenizer(max_length=512)
    transformers.GPT2Model(transformers.GPT2Config()).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def measure_elmo() -> None:
    """The published network (93 million parameters, float32) with random weights, on contexts of 18 words."""
    filters = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    options = Options(16, filters, 2, "relu", 50, 2, 4096, 512, 3.0, 3.0, True)
    rng = np.random.default_rng(0)
    shapes = data_sets(options)
    weights = {name: 0.05 * rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    model = ElmoModel(options, weights, "cuda")
    asked = [text.split() for text in texts(40_000, 18)]
    spans = rng.integers(0, 18, len(asked))

    def encode(part: slice) -> Any:
        own = dict(model.run(asked[part]))
        return torch.stack([own[row][:, spans[row]].sum(dim=0) for row in range(len(own))]).cpu().numpy()

    parts = [slice(i, i + 4096) for i in range(0, len(asked), 4096)]
    encode(parts[0])  # warm
    took = seconds(lambda: [encode(part) for part in parts])
    print(f"words in context, ELMo, float32: {len(asked) / took:,.0f} contexts/s", flush=True)


def measure_texts(encoder: Any, name: str, asked: list[str], tokens: int) -> None:
    encoder.prepare(asked)
    batches = [asked[i : i + encoder.batch_size] for i in range(0, len(asked), encoder.batch_size)]
    encoder.encode(batches[0])  # warm
    whole = seconds(lambda: list(in_turn(AskedTexts(encoder), batches)))
    in_turns = seconds(lambda: [encoder.encode(batch) for batch in batches])
    tokeniser = encoder._checkpoint.tokeniser
    tokenising = seconds(lambda: [tokeniser(batch) for batch in batches])
    alone = model_alone(encoder._states, tokeniser(batches[0])) * len(asked) / len(batches[0])
    print(f"{name}: {len(asked) / whole:,.0f} texts/s; {whole:.2f} s (in turns {in_turns:.2f}); alone: ", end="")
    print(f"tokenising {tokenising:.2f}, the model {alone:.2f} ({speed(len(asked) * tokens, alone)}); ", end="")
    print(f"{whole / max(tokenising, alone):.2f} times the slower of both", flush=True)


def measure_words(encoder: Any, name: str) -> None:
    """Contexts of 20 tokens, tokenised and in the model at the same time, and for comparison in turns."""
    asked = texts(CONTEXTS, 17)
    spans = word_spans(asked)
    encoder.prepare()
    parts = [slice(i, i + encoder.batch_size) for i in range(0, CONTEXTS, encoder.batch_size)]
    turns = [slice(i, i + hf_words._PART) for i in range(0, CONTEXTS, hf_words._PART)]
    locate = encoder._checkpoint.tokeniser.locate
    first = encoder.encode_words(asked[parts[0]], spans[parts[0]]).vectors  # warm
    same = encoder.encode_words(asked[parts[0]], spans[parts[0]]).vectors.tobytes() == first.tobytes()
    whole = seconds(lambda: [encoder.encode_words(asked[p], spans[p]) for p in parts])
    in_turns = seconds(
        lambda: [encoder._states.vectors(locate(asked[p], spans[p]).tokenised, encoder._pooling) for p in turns]
    )
    tokenising = seconds(lambda: [locate(asked[p], spans[p]) for p in turns])
    located = locate(asked[turns[0]], spans[turns[0]]).tokenised
    alone = model_alone(encoder._states, located) * CONTEXTS / hf_words._PART
    print(f"{name}: {CONTEXTS / whole:,.0f} contexts/s; {whole:.2f} s (in turns {in_turns:.2f}); alone: ", end="")
    print(f"tokenising {tokenising:.2f}, the model {alone:.2f} ({speed(CONTEXTS * 20, alone)}); ", end="")
    print(f"bound by the {'model' if alone > tokenising else 'tokeniser'}; same bits again: {same}", flush=True)


def word_spans(asked: list[str]) -> list[tuple[int, int]]:
    """A word of each text, anywhere in it."""
    rng = np.random.default_rng(0)
    words = [list(re.finditer(r"\w+", text)) for text in asked]
    return [found[i].span() for found, i in zip(words, rng.integers(0, 17, len(asked)), strict=True)]


def speed(tokens: int, took: float) -> str:
    return f"{2 * 85_054_464 * tokens / took / 1e12:.0f} TFLOP/s"


def model_alone(states: Any, tokenised: Any) -> float:
    """Seconds of the model on texts that already lie on the GPU, in the pieces in which they are encoded."""
    ready = [[torch.from_numpy(a).cuda() for a in tokenised.padded(rows)] for rows in states.pieces(tokenised)]

    def forward() -> None:
        with torch.inference_mode():
            for ids, mask, _ in ready:
                states.run(ids, mask)

    forward()
    return seconds(forward)


if __name__ == "__main__":
    main()
