"""Time stereotypes and association tests on one GPU with random weights: first and cached runs of the command.

python benchmarks/gpu_stereotypes.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
import transformers
from tests.models.tiny_models import save_tiny
from tests.studies.stereotypes.asked_models import save_masked

from biassay.datasets.abc_model import load_abc

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("caliskan2017", "may2019")
# transformers imports modules lazily
NEEDED = "import torch, transformers as t; torch.zeros(1).cuda(); t.AutoTokenizer, t.AutoModelForMaskedLM, t.{}"


def command(*arguments: str, cache: Path) -> float:
    """Return the seconds of a command, from the start of Python to its end."""
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "BIASSAY_CACHE": str(cache), "PYTHONPATH": paths},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - began


def twice(name: str, needed: str, *arguments: str, cache: Path) -> None:
    """Time a command, its repetition from the cache, and the imports that the first run needs."""
    libraries = min(command("-c", NEEDED.format(needed), cache=cache) for _ in range(2))
    first, *again = (command("-m", "biassay", *arguments, cache=cache) for _ in range(3))
    print(f"{name}: {first:.1f} s, of which importing the libraries {libraries:.1f} ({first / libraries:.2f} times)")
    print(f"{name}, second run: {min(again):.2f} s, {first / min(again):.1f} times as fast", flush=True)


def base(folder: Path) -> None:
    """Time BERT-base-sized models: one with the words of all sentences in its vocabulary, one that reads bytes."""
    model = save_masked(folder / "bert", load_abc())
    config = transformers.BertConfig(vocab_size=30_522, pad_token_id=0)
    transformers.BertForMaskedLM(config).save_pretrained(model)
    name = f"hf:{model}?dtype=bfloat16"
    twice("stereotypes, all groups and templates", "BertForMaskedLM", "stereotypes", name, cache=folder / "cache")
    texts = save_tiny("roberta", folder / "texts")
    padding = transformers.AutoTokenizer.from_pretrained(texts).pad_token_id
    transformers.RobertaModel(transformers.RobertaConfig(pad_token_id=padding)).save_pretrained(texts)
    asked = ("run", f"hf:{texts}?dtype=bfloat16", "--tests", ",".join(TESTS))
    twice("46 association tests", "RobertaModel", *asked, cache=folder / "cache")


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "transformers", transformers.__version__)
    with tempfile.TemporaryDirectory() as folder:
        base(Path(folder))


if __name__ == "__main__":
    main()
