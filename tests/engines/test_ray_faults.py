"""Nodes of a Ray cluster that are lost in the middle, or whose disk is full."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ray_cluster import MARKS, cluster_of

from biassay.engines.ray_cluster import RayExecutor
from biassay.errors import MeasurementError, UsageError

sys.path.insert(0, str(Path(__file__).parent))  # for the workers, which import the helpers by name
from engine_helpers import FullDisk, Squares

pytestmark = [*MARKS, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """The driver's node, which has no worker, and four others."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    with cluster_of([0, 1, 1, 1, 1]) as made:
        yield made


@pytest.fixture(scope="module")
def engine(cluster: Any) -> RayExecutor:
    return RayExecutor(cluster.address)


def whole(tasks: list[int]) -> list[tuple[int, int]]:
    return sorted((task, piece) for task in tasks for piece in range(task))


def test_what_a_full_disk_stops_is_done_by_other_nodes(engine: RayExecutor, tmp_path: Path) -> None:
    tasks = [5, 6, 7, 8, 9, 10]
    found = list(engine.run(FullDisk(str(tmp_path)), tasks))
    full = (tmp_path / "full").read_text()
    assert sorted((task, piece) for task, piece, _ in found) == whole(tasks)
    assert {node for _, piece, node in found if piece >= 3}.isdisjoint({full})


def test_more_gpus_than_a_node_has_are_refused_and_shares_are_numbers(cluster: Any) -> None:
    cluster.add_node(num_cpus=2, num_gpus=2, object_store_memory=100_000_000)
    cluster.wait_for_nodes()
    assert RayExecutor(cluster.address, gpus=0.5).max_concurrent_models == 2  # its cores
    assert RayExecutor(cluster.address, gpus=2).max_concurrent_models == 1
    with pytest.raises(UsageError, match="fits on no node: the largest has 2"):
        list(RayExecutor(cluster.address, gpus=3).run(Squares(), [1], model=True))
    with pytest.raises(UsageError, match=r"got 1\.5"):
        RayExecutor(cluster.address, gpus=1.5)


def test_a_stopped_engine_ends_its_runs_and_can_run_again(engine: RayExecutor) -> None:
    found = engine.run(Squares(), [300, 300])
    next(found)
    with engine.stop(), pytest.raises(MeasurementError, match="stopped"):
        list(found)
    with engine.stop(), pytest.raises(MeasurementError, match="stopped"):
        list(engine.run(Squares(), [2, 3]))
    assert len(list(engine.run(Squares(), [2, 3]))) == 5


@pytest.mark.parametrize("lost", [1, 3])
def test_lost_nodes_cost_nothing_but_time(
    cluster: Any, engine: RayExecutor, lost: int, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks = list(range(40, 56))
    nodes = list(cluster.worker_nodes)[:lost]

    def lose() -> None:
        time.sleep(2)
        for node in nodes:
            cluster.remove_node(node, allow_graceful=False)

    thread = threading.Thread(target=lose)
    thread.start()
    found = list(engine.run(Squares(), tasks))
    thread.join()
    assert sorted((task, piece) for task, piece, _ in found) == whole(tasks)
    said = capfd.readouterr()
    assert said.out == ""
    assert "raylet" in said.err  # Ray's own report
