"""Measure the throughput of the embedding phase of `biassay run` on one GPU: BERT-base size, random weights.

python benchmarks/gpu.py                                  on a GPU: 200,000 distinct sentences of 7 tokens
python benchmarks/gpu.py --tiny --device cpu --sentences 5000     a trial on any machine

Runs the command as a user would, with an empty cache, and reads the rate from its log: distinct texts per second,
from the moment the model is loaded until the last vector is in the cache. Random weights are as fast as trained ones.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WANTED = 150_000  # texts per second
SETS = ("targ1", "targ2", "attr1", "attr2")
WORDS_PER_SET, SENTENCES_PER_WORD = 25, 10
SENTENCES_PER_TEST = len(SETS) * WORDS_PER_SET * SENTENCES_PER_WORD
TOKENS = 7
VOCABULARY = 30_522
RATE = re.compile(r"encoding: ([\d,]+) of \1 texts, ([\d,.]+)/s")


def save_model(folder: Path, *, tiny: bool) -> Path:
    """Save a BERT with random weights and a WordPiece tokenizer in which every word is one token."""
    import tokenizers
    import transformers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    tokens = {token: number for number, token in enumerate([*special, *map(word, range(VOCABULARY - len(special)))])}
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(tokens, unk_token="[UNK]"))
    backend.normalizer = tokenizers.normalizers.BertNormalizer()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, tokens[name]) for name in ("[CLS]", "[SEP]")]
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    library: Any = transformers
    tokenizer = library.PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **names)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = library.BertConfig(vocab_size=VOCABULARY, pad_token_id=0, **(size if tiny else {}))
    library.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def word(number: int) -> str:
    """Return a made-up word of letters, different for every number."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return "x" + "".join(letters[number // 26**place % 26] for place in range(4))


def write_tests(folder: Path, sentences: int, words: int) -> list[str]:
    """Write tests with distinct sentences of this number of words and a full stop."""
    rng, files, number = np.random.default_rng(0), [], 0
    for test in range(sentences // SENTENCES_PER_TEST):
        content = {}
        for position, name in enumerate(SETS):
            first = 1000 + WORDS_PER_SET * position
            stimuli = [word(first + i) for i in range(WORDS_PER_SET) for _ in range(SENTENCES_PER_WORD)]
            examples = []
            for stimulus in stimuli:
                numbered = [word(10_000 + number % 400), word(10_400 + number // 400)]
                others = map(word, rng.integers(2000, 10_000, words - 3).tolist())
                examples.append(" ".join([stimulus, *numbered, *others]) + ".")
                number += 1
            content[name] = {"category": name, "examples": examples, "words": stimuli}
        files.append(str(folder / f"test{test}.json"))
        Path(files[-1]).write_text(json.dumps(content))
    return files


def measure(model: str, tests: list[str], folder: Path) -> None:
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "biassay", "run", model, "--tests", ",".join(tests), "--random-sets", "0"]
    began = time.perf_counter()
    done = subprocess.run(
        [*command, "--cache", str(folder / "cache"), "--out", str(folder / "run")],
        env={**os.environ, "BIASSAY_CACHE": str(folder / "own"), "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    whole = time.perf_counter() - began
    found = RATE.search(done.stderr)
    if done.returncode or found is None:
        raise SystemExit(f"biassay run ended with {done.returncode}:\n{done.stderr[-3000:]}")
    texts, rate = int(found[1].replace(",", "")), float(found[2].replace(",", ""))
    print(f"  embedding phase: {rate:,.0f} texts per second, {texts / rate:.2f} s for {texts:,} texts; ", end="")
    print(f"the whole command {whole:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=200_000, help=f"a multiple of {SENTENCES_PER_TEST}")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="tokens per sentence, special ones included")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a model of 2 layers, to try the script")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    if given.sentences % SENTENCES_PER_TEST or given.tokens < 6:
        parser.error(f"--sentences is a multiple of {SENTENCES_PER_TEST}, and --tokens at least 6")
    with tempfile.TemporaryDirectory() as place:
        folder = save_model(Path(place) / "model", tiny=given.tiny)
        tests = write_tests(Path(place), given.sentences, given.tokens - 3)
        model = f"hf:{folder}?dtype={given.dtype}&device={given.device}"
        print(f"{describe(given.device)}; {given.sentences:,} sentences of {given.tokens} tokens; wanted: {WANTED:,}/s")
        for attempt in range(given.repeat):
            own = Path(place) / str(attempt)
            own.mkdir()
            measure(model, tests, own)


def describe(device: str) -> str:
    import torch
    import transformers

    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    return f"{name}, torch {torch.__version__}, transformers {transformers.__version__}"


if __name__ == "__main__":
    main()
