"""Throughput of a BERT-base-sized model on one GPU, and what bounds it. Random weights: the speed is that of real ones.

python benchmarks/gpu.py
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
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "encoders"))

import tiny_models
import torch
import transformers

from biassay.encoders import hf
from biassay.encoders.registry import open_encoder

SHORT = 200_000
LONG = 40_000


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
    with tempfile.TemporaryDirectory() as folder:
        encoder = open_encoder(f"hf:{save_bert_base(Path(folder) / 'bert')}?dtype=bfloat16&device=cuda")
        for count, words, name in ((SHORT, 4, "short sentences (7 tokens)"), (LONG, 125, "texts of 128 tokens")):
            asked = texts(count, words)
            encoder.prepare(asked)
            batches = [asked[i : i + encoder.batch_size] for i in range(0, count, encoder.batch_size)]
            encoder.encode(batches[0])  # warm
            whole = seconds(lambda batches=batches: [encoder.encode(batch) for batch in batches])
            tokenising = seconds(lambda batches=batches: [encoder._tokeniser(batch) for batch in batches])
            alone = model_alone(encoder, batches[0]) * count / len(batches[0])
            speed = 2 * 85_054_464 * (words + 3) * count / alone / 1e12
            print(
                f"{name}: {count / whole:,.0f} texts/s; {whole:.2f} s, of which tokenising {tokenising:.2f}, ", end=""
            )
            print(f"the model alone {alone:.2f} ({speed:.0f} TFLOP/s)", flush=True)


def model_alone(encoder: Any, batch: list[str]) -> float:
    """Seconds of the model on one batch that already lies on the GPU, in the pieces in which it is encoded."""
    tokenised = encoder._tokeniser(batch)
    order = np.argsort(tokenised.lengths, kind="stable")
    pieces = list(hf._by_size(order, tokenised, hf._TOKENS_AT_ONCE["cuda"]))
    ready = [[torch.from_numpy(a).cuda() for a in tokenised.padded(rows)] for rows in pieces]

    def forward() -> None:
        with torch.inference_mode():
            for ids, mask, _ in ready:
                encoder._model(input_ids=ids, attention_mask=mask)

    forward()
    return seconds(forward)


if __name__ == "__main__":
    main()
