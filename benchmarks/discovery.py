"""IBD and EIBD over a whole vocabulary: 400,000 words of 100 dimensions, six groups, 999 permutations.

python benchmarks/discovery.py [words] [dimensions]

Where torch finds a GPU, permutations alone are timed there as well.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from biassay.models.devices import gpu
from biassay.stats.name_permutation import NamePermutations

WORDS, DIMENSIONS, NAMES, PERMUTATIONS = 400_000, 100, 12, 999
RACES, GENDERS = ("r1", "r2", "r3"), ("g1", "g2")
GROUPS = [f"{race}{gender}" for race in RACES for gender in GENDERS]
LOOPED = 4

RUN = """
import re, sys, time
import biassay
from biassay.models import static, vocabulary
from biassay.stats.name_permutation import NamePermutations

spent = {"the digest": 0.0, "names": 0.0, "vectors": 0.0, "permutations": 0.0}

def timed(name, work):
    def counted(*given, **named):
        began = time.process_time()
        try:
            return work(*given, **named)
        finally:
            spent[name] += time.process_time() - began
    return counted

def streamed(name, work):
    def blocks(*given, **named):
        following = timed(name, iter(work(*given, **named)).__next__)
        while True:
            try:
                yield following()
            except StopIteration:
                return
    return blocks

static.file_fingerprint = timed("the digest", static.file_fingerprint)
static.read_vectors = timed("names", static.read_vectors)
vocabulary.vocabulary_blocks = streamed("vectors", vocabulary.vocabulary_blocks)
NamePermutations.tails = timed("permutations", NamePermutations.tails)
started, before = time.perf_counter(), time.process_time()
where = {"groups": sys.argv[2], "cache": sys.argv[1] + ".cache"}
found = biassay.discover(f"vectors:{sys.argv[1]}", sys.argv[3:], n_permutations=999, **where)
took = time.perf_counter() - started
spent["all"] = time.process_time() - before
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(took, peak, found.tables["groups"][0].num_words)
print("CPU: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.items()))
"""


def write_vectors(folder: Path, words: int, dimensions: int) -> Path:
    """A GloVe-like text file: names of a direction of their group, and words of any. 20,000 vectors come in turns."""
    rng = np.random.default_rng(0)
    path = folder / "vectors.txt"
    centres = rng.normal(size=(len(GROUPS), dimensions))
    texts = [" ".join(f"{v:.5f}" for v in row) for row in rng.normal(size=(min(words, 20_000), dimensions))]
    with path.open("w") as file:
        for group, centre in zip(GROUPS, centres, strict=True):
            for i, row in enumerate(centre + rng.normal(size=(NAMES, dimensions))):
                file.write(f"{group}name{i} {' '.join(f'{v:.5f}' for v in row)}\n")
        for i in range(words):
            file.write(f"w{i} {texts[i % len(texts)]}\n")
    return path


def write_groups(folder: Path) -> Path:
    path = folder / "groups.toml"
    tables = []
    for race in RACES:
        for gender in GENDERS:
            names = ", ".join(f'"{race}{gender}name{i}"' for i in range(NAMES))
            belongs = f'{{ race = "{race}", gender = "{gender}" }}'
            tables.append(f"[groups.{race}{gender}]\nbelongs = {belongs}\nnames = [{names}]\n")
    path.write_text("\n".join(tables))
    return path


def one_by_one(words: np.ndarray, names: np.ndarray, groups: np.ndarray, permutations: int) -> list[float]:
    """Word by word and deal by deal: the largest score of the first group, and how often it is reached."""
    rng = np.random.default_rng(0)
    found = []
    for word in words:
        cosines = names @ word / (np.linalg.norm(names, axis=1) * np.linalg.norm(word))
        seen = largest_of(cosines, groups)
        hits = sum(largest_of(cosines, rng.permutation(groups)) >= seen for _ in range(permutations))
        found.append((1 + hits) / (1 + permutations))
    return found


def largest_of(cosines: np.ndarray, groups: np.ndarray) -> float:
    own = cosines[groups == 0]
    best = -np.inf
    for group in range(1, len(GROUPS)):
        other = cosines[groups == group]
        best = max(best, (own.mean() - other.mean()) / np.concatenate([own, other]).std(ddof=1))
    return float(best)


def permutations_alone(rng: np.random.Generator, groups: np.ndarray) -> None:
    """p-values of 65,536 words by all permutations, on one thread of the CPU and on a GPU."""
    cosines = rng.normal(0.2, 0.1, (65_536, len(groups)))
    categories = np.array([[race, gender] for race in range(len(RACES)) for gender in range(len(GENDERS))])
    largest = np.array([[largest_of(row, groups)] for row in cosines])
    found = {}
    for name, place in (("CPU", None), ("GPU", gpu())):
        if name == "GPU" and place is None:
            continue
        tests = NamePermutations(
            groups, categories, [0], PERMUTATIONS, np.random.default_rng(0), stop=None, place=place
        )
        tests.tails(cosines[:8192], largest[:8192])  # the device wakes up
        started = time.perf_counter()
        found[name] = tests.tails(cosines, largest)
        print(f"{name}: {time.perf_counter() - started:.2f} s for {PERMUTATIONS} permutations of 65,536 words")
    if "GPU" in found:
        same = [
            np.mean(getattr(found["CPU"], what) == getattr(found["GPU"], what)) for what in ("associated", "excess")
        ]
        print(f"p-values that are the same: {same[0]:.6f} of associations, {same[1]:.6f} of excesses")


def main() -> None:
    words = int(sys.argv[1]) if len(sys.argv) > 1 else WORDS
    dimensions = int(sys.argv[2]) if len(sys.argv) > 2 else DIMENSIONS
    rng = np.random.default_rng(1)
    names, groups = rng.normal(size=(NAMES * len(GROUPS), dimensions)), np.repeat(np.arange(len(GROUPS)), NAMES)
    permutations_alone(rng, groups)
    started = time.perf_counter()
    one_by_one(rng.normal(size=(LOOPED, dimensions)), names, groups, PERMUTATIONS)
    loop = (time.perf_counter() - started) / LOOPED * words
    print(f"word by word, one group: {loop:,.0f} s for {words:,} words, scaled from {LOOPED}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path, grouping = write_vectors(folder, words, dimensions), write_groups(folder)
        for targets in (GROUPS[:1], GROUPS):
            arguments = [sys.executable, "-c", RUN, str(path), str(grouping), *targets]
            figures, parts = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.splitlines()
            took, peak, number = map(float, figures.split())
            ratio = loop * len(targets) / took
            print(
                f"{len(targets)} group(s): {took:.1f} s for {number:,.0f} words, {peak:.0f} MB, {ratio:,.0f}x the loop"
            )
            print(parts)


if __name__ == "__main__":
    main()
