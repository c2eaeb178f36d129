"""Scheduling and errors of the Ray engine, on a stand-in for Ray."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any, ClassVar

import pytest

from biassay.engines import ray_cluster
from biassay.engines.ray_cluster import RayExecutor
from biassay.errors import MeasurementError, UsageError
from biassay.runs.fetch import ModelPrefetcher

from .ray_stand_in import ActorDiedError, RayError, RayTaskError, StandIn


@dataclass(frozen=True)
class Slow:
    """Hands a task back after a while."""

    seconds: float = 0.01

    def __call__(self) -> Callable[[Any], Iterator[Any]]:
        return self.work

    def work(self, task: Any) -> Iterator[Any]:
        time.sleep(self.seconds)
        yield task


@pytest.fixture
def engine_on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RayExecutor]:
    def make(ray: StandIn, **options: Any) -> RayExecutor:
        monkeypatch.setattr(ray_cluster, "_connect", lambda _: ray)
        return RayExecutor(**options)

    return make


def test_models_at_once_share_the_room_of_the_cluster(engine_on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "_POLL_SECONDS", 3.0)
    monkeypatch.setattr(ray_cluster, "_PAUSE_SECONDS", 60.0)
    ray = StandIn(4)
    engine = engine_on(ray)
    all_there = threading.Barrier(4)

    def ask(place: int) -> list[int]:
        if place < 4:
            all_there.wait()
        return sorted(engine.run(Slow(), range(40), model=True))

    with ModelPrefetcher(ask, range(6), engine) as ahead:
        assert [ahead.result(place) for place in range(6)] == [list(range(40))] * 6
    assert ray.asked_for == 6
    assert ray.most <= 4
    assert ray.alive == []


def test_a_run_alone_has_all_of_it_and_gives_of_it_to_one_that_begins_later(
    engine_on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(ray_cluster, "_PAUSE_SECONDS", 0.0)
    ray = StandIn(5)
    engine = engine_on(ray)
    first = engine.run(Slow(), range(1000), model=True)
    next(first)
    next(first)
    assert len(ray.alive) == 5
    second = engine.run(Slow(), range(1000), model=True)
    thread = threading.Thread(target=lambda: [next(second) for _ in range(20)])
    thread.start()
    while thread.is_alive():
        next(first)
    assert len(ray.alive) == 5  # three, for it began first, and two
    second.close()
    for _ in range(20):
        next(first)
    assert len(ray.alive) == 5
    first.close()
    assert ray.alive == []


def test_models_at_once_are_within_reason(engine_on: Any) -> None:
    assert engine_on(StandIn(7)).max_concurrent_models == 7
    assert engine_on(StandIn(4000)).max_concurrent_models == 32


@pytest.mark.parametrize("gpus", [math.inf, math.nan, 0.0, -1.0, 1.5])
def test_a_number_of_gpus_that_cannot_be(engine_on: Any, gpus: float) -> None:
    with pytest.raises(UsageError, match="GPUs per worker must be a fraction below 1 or a whole number"):
        engine_on(StandIn(1), gpus=gpus)


def test_a_cluster_that_can_hold_no_worker_is_refused(engine_on: Any) -> None:
    with pytest.raises(UsageError, match=r"no node .*num_cpus=1"):
        engine_on(StandIn(0))


@dataclass(frozen=True)
class FullAt:
    """Let the first workers fail with a full disk."""

    many: int
    made: ClassVar[list[int]] = [0]

    def __call__(self) -> Callable[[Any], Iterator[Any]]:
        self.made[0] += 1
        return self.full if self.made[0] <= self.many else Slow().work

    def full(self, _: Any) -> Iterator[Any]:
        raise OSError(28, "No space left on device", "/somewhere")


def test_another_node_goes_on_for_a_model_whose_only_worker_has_a_full_disk(engine_on: Any) -> None:
    ray = StandIn(3)
    engine = engine_on(ray)
    FullAt.made[0] = 0
    assert list(engine.run(FullAt(2), [7])) == [7]
    assert ray.most == 3  # those with a full disk kept their place
    FullAt.made[0] = 0
    with pytest.raises(OSError, match="No space left on device: '/somewhere'"):
        list(engine.run(FullAt(3), [7]))
    assert ray.alive == []
    ray = StandIn(100)
    with pytest.raises(OSError, match="No space left on device"):
        list(engine_on(ray).run(FullAt(100), [7]))
    assert ray.asked_for == 6  # a disk that all share


TRACEBACK = """The actor died because of an error raised in its creation task, \x1b[36mray::Worker()\x1b[39m (pid=1)
  File "x.py", line 1, in <module>
ModuleNotFoundError: No module named 'biassay'
"""


def test_a_node_without_biassay_is_told_at_once(engine_on: Any) -> None:
    ray = StandIn(2)
    engine = engine_on(ray)
    ray.fails = ActorDiedError(TRACEBACK, actor_init_failed=True)
    with pytest.raises(
        MeasurementError, match=r": ModuleNotFoundError: No module named 'biassay'; is the same biassay"
    ):
        list(engine.run(Slow(), [1]))
    assert ray.asked_for == 1


def test_a_node_with_another_version_is_told_with_both(engine_on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_on(StandIn(1))
    monkeypatch.setattr(ray_cluster, "_get_version", iter(["0.1", "0.2", "0.2"]).__next__)
    with pytest.raises(MeasurementError, match=r"node .* has biassay 0\.2, but the run was started with 0\.1"):
        list(engine.run(Slow(), [1]))
    monkeypatch.undo()
    assert ray_cluster._get_version() == metadata.version("biassay")


@pytest.mark.parametrize("cause", [ValueError("wrong"), RayError("an exception that isn't serializable")])
def test_what_a_program_raised_is_a_fault_and_no_lost_worker(engine_on: Any, cause: Exception) -> None:
    ray = StandIn(1)
    engine = engine_on(ray)
    ray.fails = RayTaskError("\x1b[36mray::Worker.work()\x1b[39m\nValueError: wrong", cause)
    with pytest.raises(RuntimeError, match=r"(?s)failed:\nray::Worker.*wrong"):
        list(engine.run(Slow(), [1]))
    assert ray.asked_for == 1


def test_what_ray_itself_raised_in_a_task_is_a_lost_worker(engine_on: Any) -> None:
    class ObjectLostError(RayError):
        pass

    ray = StandIn(1)
    engine = engine_on(ray)
    ray.fails = RayTaskError("gone", ObjectLostError())
    with pytest.raises(MeasurementError, match="5 workers died"):
        list(engine.run(Slow(), [1]))
    assert ray.asked_for == 5
