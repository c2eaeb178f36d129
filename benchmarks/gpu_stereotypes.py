"""Stereotypes on one GPU, random weights: the whole command, a second one, and an 8B-sized model against that alone.

python benchmarks/gpu_stereotypes.py [base] [large]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
import transformers
from tests.models.tiny_models import save_tiny
from tests.studies.stereotypes.asked_models import save_masked

from answering import save_8b, seconds
from biassay.answers.codecs import BLANKS
from biassay.answers.fill import AskedBlanks, ask_missing
from biassay.answers.store import AnswerStore
from biassay.models.attention import without_plans
from biassay.models.lm import _at_once
from biassay.models.registry import open_as
from biassay.stimuli.abc import load_abc, templates_named
from biassay.studies.stereotypes.questionnaire import Questionnaire

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("caliskan2017", "may2019")
# What transformers imports is imported when it is used.
NEEDED = "import torch, transformers as t; torch.zeros(1).cuda(); t.AutoTokenizer, t.AutoModelForMaskedLM, t.{}"


def command(*arguments: str, cache: Path) -> float:
    """Seconds of a command, from the start of Python to its end."""
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
    """A command, and the same again, when all answers are kept; beside importing what the first one needs."""
    libraries = min(command("-c", NEEDED.format(needed), cache=cache) for _ in range(2))
    first, *again = (command("-m", "biassay", *arguments, cache=cache) for _ in range(3))
    print(f"{name}: {first:.1f} s, of which importing the libraries {libraries:.1f} ({first / libraries:.2f} times)")
    print(f"{name}, second run: {min(again):.2f} s, {first / min(again):.1f} times as fast", flush=True)


def base(folder: Path) -> None:
    """BERT-base-sized models: one knows the words of all sentences and cuts some adjectives, one reads bytes."""
    model = save_masked(folder / "bert", load_abc())
    config = transformers.BertConfig(vocab_size=30_522, pad_token_id=0)
    transformers.BertForMaskedLM(config).save_pretrained(model)
    name = f"hf:{model}?dtype=bfloat16"
    twice("stereotypes, all groups and templates", "BertForMaskedLM", "stereotypes", name, cache=folder / "cache")
    texts = save_tiny("roberta", folder / "texts")
    padding = transformers.AutoTokenizer.from_pretrained(texts).pad_token_id
    transformers.RobertaModel(transformers.RobertaConfig(pad_token_id=padding)).save_pretrained(texts)
    asked = ("run", f"hf:{texts}?dtype=bfloat16", "--tests", *TESTS)
    twice("46 association tests", "RobertaModel", *asked, cache=folder / "cache")


def large(folder: Path) -> None:
    """An 8B-sized causal model: questions asked and kept, against reading their sequences and nothing else."""
    words = transformers.AutoTokenizer.from_pretrained(save_masked(folder / "words", load_abc()))
    words.model_max_length = 8192
    save_8b(folder / "large", words)
    model: Any = open_as(f"hf:{folder / 'large'}?dtype=bfloat16", "blanks")
    abc = load_abc()
    blanks = Questionnaire(abc, abc.groups, templates_named(abc, ()), kind="causal", prior="word").blanks
    model.prepare(blanks)
    model.fill(blanks[:8])  # to warm up
    stores = [AnswerStore(folder / name).of(model.identity, BLANKS) for name in ("kept", "again")]
    whole, again = (seconds(lambda store=store: ask_missing(AskedBlanks(model), blanks, store)) for store in stores)
    passes = [model._in_tokens([blanks[place] for place in places])[1] for places in model.batches(blanks)]
    ready = [
        [torch.from_numpy(array).cuda() for array in batch.padded(0)]
        for one in passes
        for batch, _ in one.batches(*_at_once("cuda"))
    ]

    def alone() -> None:
        with torch.inference_mode():
            for ids, mask in ready:
                with without_plans("cuda", ids.shape[1]):
                    model.model.model(input_ids=ids, attention_mask=mask)

    alone()
    only = seconds(alone)
    tokens = sum(int(mask.sum()) for _, mask in ready)
    questions = sum(len(one.targets) for one in passes)
    print(
        f"stereotypes, 8B-sized: {questions:,} questions in {tokens:,} tokens, {whole:.1f} s ({again:.1f} again); ",
        end="",
    )
    print(f"the model alone {only:.1f} s: {whole / only:.2f} times as long", flush=True)


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "transformers", transformers.__version__)
    for part in sys.argv[1:] or ("base", "large"):
        with tempfile.TemporaryDirectory() as folder:
            {"base": base, "large": large}[part](Path(folder))


if __name__ == "__main__":
    main()
