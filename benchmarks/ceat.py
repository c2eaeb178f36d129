"""Measure time and memory of CEAT: 10,000 samples of C1 against a loop over samples, words and pairs.

python benchmarks/ceat.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import biassay

STIMULI, CONTEXTS, DIMENSION, SAMPLES = 100, 1_000, 768, 10_000
LOOPED = 20


def pools(seed: int = 0) -> list[np.ndarray]:
    """Make a thousand context vectors around a random direction for each of 100 stimuli."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(STIMULI):
        pool = rng.standard_normal((CONTEXTS, DIMENSION), dtype=np.float32)
        pool += rng.standard_normal(DIMENSION, dtype=np.float32)
        made.append(pool)
    return made


def one_by_one(given: list[np.ndarray], draws: np.ndarray) -> list[tuple[float, float]]:
    """Compute CEAT in a plain loop over samples and words, with one cosine per target and attribute."""
    found = []
    for row in draws:
        vectors = [pool[i] for pool, i in zip(given, row, strict=True)]
        x, y, a, b = vectors[:25], vectors[25:50], vectors[50:75], vectors[75:]

        def lean(word: np.ndarray, a: list[np.ndarray] = a, b: list[np.ndarray] = b) -> float:
            return float(np.mean([cosine(word, other) for other in a]) - np.mean([cosine(word, other) for other in b]))

        of_x, of_y = [lean(word) for word in x], [lean(word) for word in y]
        spread = float(np.std(of_x + of_y, ddof=1))
        found.append(((float(np.mean(of_x)) - float(np.mean(of_y))) / spread, spread**2))
    return found


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return float(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)))


MEMORY = """
import re, sys; sys.path.insert(0, sys.argv[1])
import numpy as np, biassay
from ceat import pools
few = np.random.default_rng(0).normal(size=(4, 3, 3, 4))
biassay.ceat(*(list(concept) for concept in few), n_samples=10)
given = pools()
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
def now(): return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
open("/proc/self/clear_refs", "w").write("5")
before = now()
biassay.ceat(given[:25], given[25:50], given[50:75], given[75:], rng=0)
print(before, peak())
"""


def quickest(work: Callable[[], object]) -> float:
    took = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


def measure() -> dict[str, str]:
    given = pools()
    sets = given[:25], given[25:50], given[50:75], given[75:]
    rng = np.random.default_rng(1)
    draws = rng.integers(CONTEXTS, size=(LOOPED, STIMULI))
    began = time.perf_counter()
    looped = one_by_one(given, draws)
    loop = (time.perf_counter() - began) * SAMPLES / LOOPED
    checked = biassay.ceat(*sets, draws=draws)
    assert np.allclose([size for size, _ in looped], checked.samples, atol=1e-4)
    whole = quickest(lambda: biassay.ceat(*sets, n_samples=SAMPLES, rng=0))
    folder = str(__file__).rsplit("/", 1)[0]
    command = [sys.executable, "-c", MEMORY, folder]
    before, peak = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    vectors = STIMULI * CONTEXTS * DIMENSION * 4 / 2**20
    return {
        "a loop over samples and words (timed on 20, scaled)": f"{loop:.0f} s",
        "biassay.ceat, with p-values and word bootstrap": f"{whole:.2f} s ({loop / whole:.0f}x)",
        f"memory: vectors {vectors:.0f} MB, process {before:.0f} MB, while measuring": f"{peak:.0f} MB "
        f"({1 + (peak - before) / vectors:.2f} times the vectors)",
    }


if __name__ == "__main__":
    for what, value in measure().items():
        print(f"  {what:<80} {value}")
