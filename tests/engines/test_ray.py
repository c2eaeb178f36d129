"""The Ray engine on a real cluster of two nodes on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ray_cluster import MARKS, cluster_of

from biassay.engines.ray_cluster import RayExecutor
from biassay.errors import StimulusError, UnknownNameError, UsageError

sys.path.insert(0, str(Path(__file__).parent))  # for the workers, which import the helpers by name
from engine_helpers import Squares, Unmakeable

pytestmark = MARKS


@pytest.fixture(scope="module")
def engine() -> Iterator[RayExecutor]:
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    with cluster_of([1, 1]) as cluster:
        yield RayExecutor(cluster.address)


def pairs(found: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    return sorted((task, piece) for task, piece, _ in found)


def test_every_task_is_done_once_though_a_worker_is_killed(engine: RayExecutor, tmp_path: Path) -> None:
    tasks = [4, 1, 6, 3, 5]
    found = list(engine.run(Squares(str(tmp_path), kill_at=6), tasks))
    assert (tmp_path / "killed").exists()
    assert pairs(found) == sorted((task, piece) for task in tasks for piece in range(task))
    assert os.getpid() not in {pid for _, _, pid in found}


def test_errors_arrive_as_what_they_are(engine: RayExecutor) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'rose'"):
        list(engine.run(Squares(fail_at=3), [3]))
    with pytest.raises(OSError, match="No space left on device"):
        list(engine.run(Squares(fail_at=3, how="disk"), [3]))
    with pytest.raises(OSError, match=r"^the model is gated$"):
        list(engine.run(Squares(fail_at=3, how="network"), [3]))
    with pytest.raises(RuntimeError, match="cannot pickle"):
        list(engine.run(Squares(how="lock"), [3]))
    with pytest.raises(StimulusError, match="nothing to make it from"):
        list(engine.run(Unmakeable(), [1]))


def test_without_an_address_a_cluster_is_started_here(tmp_path: Path) -> None:
    """Run in a new process, because a process belongs to one cluster."""
    code = "from engine_helpers import Squares; from biassay.engines.ray_cluster import RayExecutor; "
    code += f"print(len(list(RayExecutor().run(Squares({str(tmp_path)!r}), [2, 3], workers=1))))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == ["5"], done.stderr[-2000:]


def test_an_address_where_nobody_answers_is_told_at_once() -> None:
    with socket.socket() as taken:  # bound and not listening: refused
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            UsageError, match=r"the Ray cluster at '127.0.0.1:\d+' cannot be reached: Connection refused"
        ):
            RayExecutor(address)
