"""Time IBD and EIBD over a whole vocabulary: 400,000 words of 100 dimensions, six groups, 999 permutations.

python benchmarks/discovery.py [words] [dimensions]

Calls `biassay.discover`, which uses a GPU if torch finds one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WORDS, DIMENSIONS, NAMES, PERMUTATIONS = 400_000, 100, 12, 999
RACES, GENDERS = ("r1", "r2", "r3"), ("g1", "g2")
GROUPS = [f"{race}{gender}" for race in RACES for gender in GENDERS]
LOOPED = 4

RUN = """
import re, sys, time
import biassay
started, before = time.perf_counter(), time.process_time()
where = {"grouping": sys.argv[2], "cache": sys.argv[1] + ".cache"}
found = biassay.discover(f"vectors:{sys.argv[1]}", sys.argv[3:], n_permutations=999, **where)
took, cpu = time.perf_counter() - started, time.process_time() - before
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(took, cpu, peak, found.tables["groups"][0].n_words)
"""


def write_vectors(folder: Path, words: int, dimensions: int) -> Path:
    """Write a GloVe text file: names near the direction of their group, and words with random vectors."""
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
    """Permute names in a plain loop over words, and return p-values of the first group's largest scores."""
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


def main() -> None:
    words = int(sys.argv[1]) if len(sys.argv) > 1 else WORDS
    dimensions = int(sys.argv[2]) if len(sys.argv) > 2 else DIMENSIONS
    rng = np.random.default_rng(1)
    names, groups = rng.normal(size=(NAMES * len(GROUPS), dimensions)), np.repeat(np.arange(len(GROUPS)), NAMES)
    started = time.perf_counter()
    one_by_one(rng.normal(size=(LOOPED, dimensions)), names, groups, PERMUTATIONS)
    loop = (time.perf_counter() - started) / LOOPED * words
    print(f"word by word, one group: {loop:,.0f} s for {words:,} words, scaled from {LOOPED}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path, grouping = write_vectors(folder, words, dimensions), write_groups(folder)
        for targets in (GROUPS[:1], GROUPS):
            arguments = [sys.executable, "-c", RUN, str(path), str(grouping), *targets]
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
            took, cpu, peak, number = map(float, done.stdout.split())
            ratio = loop * len(targets) / took
            print(
                f"{len(targets)} group(s): {took:.1f} s for {number:,.0f} words (CPU {cpu:.1f} s), {peak:.0f} MB, "
                f"{ratio:,.0f}x the loop"
            )


if __name__ == "__main__":
    main()
