"""The whole way on a cluster of two nodes, a worker killed in the middle: the same contexts and the same numbers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.ray_cluster import MARKS, cluster_of
from tests.runs.test_representations import run as measure_representations

import biassay
from biassay.runs import fetch
from biassay.runs.contexts import find_contexts

pytestmark = MARKS


@pytest.fixture(scope="module")
def engine() -> Iterator[object]:
    from biassay.engines.ray_cluster import RayExecutor

    with cluster_of([1, 1]) as cluster:
        yield RayExecutor(cluster.address)


class Killer(threading.Thread):
    """Waits for a worker of the cluster to appear, and kills it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.killed: int | None = None
        self._over = threading.Event()

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.is_set() and self.killed is None:
            time.sleep(0.05)
            for place in Path("/proc").glob("[0-9]*"):
                if self._is_worker(place):
                    os.kill(int(place.name), signal.SIGKILL)
                    self.killed = int(place.name)
                    return

    @staticmethod
    def _is_worker(place: Path) -> bool:
        """Of this cluster: its node is a process that this one started."""
        try:
            is_worker = (place / "cmdline").read_bytes().startswith(b"ray::RayWorker")
            return is_worker and _parent(_parent(int(place.name))) == os.getpid()
        except OSError:
            return False


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_contexts_and_numbers_are_the_same_bit_for_bit(
    engine: object, corpus: Path, test_file: Path, tiny_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "SHARD_ROWS", 32)
    here = find_contexts(corpus, tmp_path / "here.parquet", str(test_file), per_stimulus=40)
    with Killer() as killer:
        there = find_contexts(corpus, tmp_path / "there.parquet", str(test_file), per_stimulus=40, engine=engine)  # type: ignore[arg-type]
    assert killer.killed is not None
    assert there.contexts.table.equals(here.contexts.table)
    assert there.progress.found == here.progress.found
    assert there.progress.documents == here.progress.documents == 1440

    local = biassay.run(tiny_model, contexts=tmp_path / "here.parquet", n_samples=200, vectors=tmp_path / "local")
    with Killer() as killer:
        remote = biassay.run(
            tiny_model,
            contexts=tmp_path / "there.parquet",
            n_samples=200,
            vectors=tmp_path / "remote",
            engine=engine,  # type: ignore[arg-type]
        )
    assert killer.killed is not None
    assert remote.results == local.results
    assert len(local.arrays) == 5
    assert all(np.array_equal(array, remote.arrays[name]) for name, array in local.arrays.items())
    names = [sorted(path.name for path in (tmp_path / where).rglob("*.npy")) for where in ("local", "remote")]
    assert names[0] == names[1]  # a shard is named by the hash of its bytes
    assert len(names[0]) == 32  # sixteen words with forty contexts each, thirty-two to a shard


def test_representations_of_texts_are_the_same_bit_for_bit(engine: object, tiny_model: str, tmp_path: Path) -> None:
    here = measure_representations(tiny_model, tmp_path / "here")
    there = measure_representations(tiny_model, tmp_path / "there", engine=engine)
    assert there.results == here.results
    assert all(np.array_equal(array, there.arrays[name]) for name, array in here.arrays.items())
    names = [sorted(path.name for path in (tmp_path / where).rglob("*.npz")) for where in ("here", "there")]
    assert names[0] == names[1]
    assert len(names[0]) == 21  # four layers with five poolings, and numbers of tokens
