"""Run tasks on a Ray cluster, share it between runs and replace lost workers.

A task is sent when a worker is free for it, and its results are passed on at once, so that neither all tasks nor all
results are in the memory of one machine.

Every node needs the same biassay with the same extras, and the corpus and the models under the same paths.
"""

from __future__ import annotations

import errno
import importlib
import logging
import math
import os
import pickle
import platform
import re
import socket
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, TypeVar

from biassay.engines.base import WorkerFactory, deserialize_error, serialize_error
from biassay.errors import BiassayError, MeasurementError, MissingExtraError, UsageError

T = TypeVar("T")
R = TypeVar("R")
_PAUSE_SECONDS = 5.0  # time for which the share of a finished run is reserved for the next run of its thread
_TASKS_PER_WORKER = 2  # one runs and one waits, so that a worker is never idle
_MAX_UNREAD_RESULTS = 4  # results a worker may be ahead of their reader
_MAX_DEATHS = 5  # workers that may die during one task, or before they start
_POLL_SECONDS = 0.5
_IDLE_WARNING_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_MAX_MODELS = 32  # each has a thread of the driver
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


@dataclass(eq=False)
class _ActiveRun:
    thread: int = field(default_factory=threading.get_ident)
    ended: float = math.inf


class FairShare:
    """Divides the workers of the cluster evenly between the current runs; earlier runs get the remainder.

    A new run takes over workers of the others as they become free, and leaves its workers to them when it ends.
    """

    def __init__(self) -> None:
        self._runs: list[_ActiveRun] = []
        self._lock = threading.Lock()

    @contextmanager
    def reserve(self) -> Iterator[Callable[[int], int]]:
        """Register a run. Yield a function from a number of workers to the share of this run."""
        current = _ActiveRun()
        with self._lock:
            self._runs = [run for run in self._runs if run.ended == math.inf or run.thread != current.thread]
            self._runs.append(current)
        try:
            yield lambda capacity: self._get_share(current, capacity)
        finally:
            current.ended = time.monotonic()

    def _get_share(self, current: _ActiveRun, capacity: int) -> int:
        with self._lock:
            now = time.monotonic()
            self._runs = [run for run in self._runs if run.ended + _PAUSE_SECONDS > now]
            position, n_runs = self._runs.index(current), len(self._runs)
        return max(1, capacity // n_runs + (position < capacity % n_runs))


class RayWorker:
    """Actor that runs tasks in a worker process of the cluster.

    Errors are returned like results, because Ray would wrap them in long tracebacks.
    """

    def __init__(self, make_worker: bytes) -> None:
        self._make_worker = make_worker
        self._worker: Any = None

    def start(self, version: str) -> bytes:
        """Make the worker. Return a serialized error, or a message that it has started."""
        return next(_serialize_results(lambda: self._start(version)), pickle.dumps(("started", None)))

    def _start(self, version: str) -> Iterator[Any]:
        if version != _get_version():
            raise MeasurementError(
                f"node {platform.node()} has biassay {_get_version()}, but the run was started with {version}; "
                "install the same version on every node"
            )
        self._worker = pickle.loads(self._make_worker)()
        yield from ()

    def run_task(self, task: bytes) -> Iterator[bytes]:
        """Yield the serialized results of a serialized task."""
        yield from _serialize_results(lambda: self._worker(pickle.loads(task)))


def _serialize_results(work: Callable[[], Any]) -> Iterator[bytes]:
    try:
        for result in work():
            yield pickle.dumps(("result", result), protocol=5)
    except (BiassayError, OSError) as error:
        yield pickle.dumps(("error", serialize_error(error)))
    except Exception:  # a bug: the driver raises an error with this traceback
        yield pickle.dumps(("fault", traceback.format_exc()))


def _get_version() -> str:
    try:
        return metadata.version("biassay")
    except metadata.PackageNotFoundError:
        return "unknown"


@dataclass
class _Job:
    """A submitted task: its index, the stream of its results, and how many of them were read."""

    task_index: int
    results: Any
    read: int = 0


@dataclass(eq=False)
class _ActorHandle:
    """A worker as the driver sees it; `starting` is None as soon as it can get tasks."""

    actor: Any
    starting: Any
    jobs: deque[_Job] = field(default_factory=deque)

    @property
    def pending(self) -> Any:
        """Reference to the next output of the worker; None if it has nothing to do."""
        if self.starting is not None:
            return self.starting
        return self.jobs[0].results if self.jobs else None


class WorkerPool:
    """Workers of one run.

    Parameters
    ----------
    ray : module
        Ray, connected to the cluster.
    make_worker : bytes
        Serialized worker factory.
    options : mapping
        Resources of a worker.
    get_share : callable
        Returns how many workers the pool may use now.
    is_cancelled : callable
        Returns True if the pool must stop.
    capacity : int
        Number of workers that fit on the cluster.
    parked : list
        Workers of all pools on nodes with a full disk.
    """

    def __init__(
        self,
        ray: Any,
        make_worker: bytes,
        options: Mapping[str, Any],
        get_share: Callable[[], int],
        is_cancelled: Callable[[], bool],
        capacity: int,
        parked: list[Any],
    ) -> None:
        self._ray, self._get_share, self._is_cancelled = ray, get_share, is_cancelled
        self._capacity, self._all_parked = capacity, parked
        self._actor_class = ray.remote(max_restarts=0, max_task_retries=0, **options)(RayWorker)
        self._make_worker = ray.put(make_worker)
        self._workers: list[_ActorHandle] = []
        self._parked: list[Any] = []
        self._started = self._last_active = time.monotonic()
        self._deaths: Counter[int | None] = Counter()
        self._delivered: Counter[int] = Counter()  # results of a task that were yielded before its worker died

    def run(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """Yield each result of each task once."""
        waiting = deque(range(len(tasks)))
        left = len(tasks)
        try:
            while left:
                if self._is_cancelled():
                    raise MeasurementError("the run was stopped; run again to continue")
                self._submit_tasks(tasks, waiting, 1 if self._scale(left) else _TASKS_PER_WORKER)
                for worker in self._wait_for_results():
                    try:
                        task_index, kind, content = self._read_result(worker)
                    except self._ray.exceptions.RayError as error:
                        self._handle_death(worker, waiting, error)
                        continue
                    if kind == "result":
                        yield content
                    elif kind == "done":
                        left -= 1
                        self._delivered.pop(task_index, None)
                    elif kind == "error":
                        self._handle_error(worker, waiting, deserialize_error(*content))
                    elif kind == "fault":
                        raise RuntimeError(f"a worker of the cluster failed:\n{content}")
        finally:
            for actor in (*(worker.actor for worker in self._workers), *self._parked):
                self._ray.kill(actor)
            for actor in self._parked:
                self._all_parked.remove(actor)

    def _scale(self, left: int) -> int:
        """Start or stop workers. Return the number of busy workers that are too many."""
        is_settled = time.monotonic() - self._started >= _POLL_SECONDS  # other runs may be starting too
        wanted = min(self._get_share() if is_settled else 1, left)
        while len(self._workers) < wanted:
            actor = self._actor_class.remote(self._make_worker)
            self._workers.append(_ActorHandle(actor, actor.start.remote(_get_version())))
        idle = [worker for worker in self._workers if worker.starting is not None or not worker.jobs]
        idle.sort(key=lambda worker: worker.starting is None)
        for worker in idle[: len(self._workers) - wanted]:  # another run may need the slot
            self._workers.remove(worker)
            self._ray.kill(worker.actor)
        return len(self._workers) - wanted

    def _submit_tasks(self, tasks: Sequence[Any], waiting: deque[int], tasks_per_worker: int) -> None:
        for depth in range(1, tasks_per_worker + 1):
            for worker in self._workers:
                # The last tasks do not queue: they go to whichever worker is free first.
                if depth > 1 and len(waiting) <= len(self._workers):
                    return
                if waiting and worker.starting is None and len(worker.jobs) < depth:
                    task_index = waiting.popleft()
                    run_task = worker.actor.run_task.options(
                        num_returns="streaming", _generator_backpressure_num_objects=_MAX_UNREAD_RESULTS
                    )
                    task = pickle.dumps(tasks[task_index], protocol=5)
                    worker.jobs.append(_Job(task_index, run_task.remote(task)))

    def _wait_for_results(self) -> list[_ActorHandle]:
        """Return the workers that have an output ready, after waiting for a moment if there is none."""
        by_reference = {worker.pending: worker for worker in self._workers if worker.pending is not None}
        ready, _ = self._ray.wait(list(by_reference), num_returns=len(by_reference), timeout=0)
        if not ready:
            self._warn_if_idle()
            ready, _ = self._ray.wait(list(by_reference), num_returns=1, timeout=_POLL_SECONDS)
        return [by_reference[reference] for reference in ready]

    def _warn_if_idle(self) -> None:
        now = time.monotonic()
        if any(worker.starting is None for worker in self._workers):
            self._last_active = now
        elif now - self._last_active > _IDLE_WARNING_SECONDS:
            self._last_active = math.inf  # warn once
            logging.getLogger("biassay.engines").warning(
                "no worker has started for %.0f s: the cluster is full, or the model is slow to load; "
                "`ray status` shows which",
                _IDLE_WARNING_SECONDS,
            )

    def _read_result(self, worker: _ActorHandle) -> tuple[int, str, Any]:
        """Return the task index, the kind and the content of the next output of a worker."""
        if worker.starting is not None:
            kind, content = pickle.loads(self._ray.get(worker.starting))
            worker.starting = None if kind == "started" else worker.starting
            return -1, kind, content
        job = worker.jobs[0]
        try:
            reference = next(job.results)
        except StopIteration:
            worker.jobs.popleft()
            return job.task_index, "done", None
        kind, content = pickle.loads(self._ray.get(reference))
        job.read += 1
        if kind == "result" and job.read <= self._delivered[job.task_index]:
            return job.task_index, "delivered before", None
        self._delivered[job.task_index] += kind == "result"
        return job.task_index, kind, content

    def _handle_death(self, worker: _ActorHandle, waiting: deque[int], error: Exception) -> None:
        """Return the tasks of a lost worker to the queue, or raise an error if too many workers died."""
        if getattr(error, "actor_init_failed", False):
            raise MeasurementError(
                f"a worker could not be started: {_get_line(error, -1)}; is the same biassay installed on every node?"
            ) from error
        if self._is_program_error(error):
            raise RuntimeError(f"a worker of the cluster failed:\n{_strip_colours(error)}") from error
        task_index = worker.jobs[0].task_index if worker.jobs else None
        self._deaths[task_index] += 1
        n_deaths, max_deaths = self._deaths[task_index], _MAX_DEATHS
        if task_index is None:
            max_deaths *= self._get_share()
        if n_deaths >= max_deaths:
            when = "before they started" if task_index is None else "during the same task"
            raise MeasurementError(
                f"{n_deaths} workers died {when} (out of memory? give each a larger share of its node); "
                f"the last one: {_get_line(error)}; run again to continue"
            ) from error
        self._remove_worker(worker, waiting)
        self._ray.kill(worker.actor)

    def _remove_worker(self, worker: _ActorHandle, waiting: deque[int]) -> None:
        waiting.extendleft(job.task_index for job in reversed(worker.jobs))
        self._workers.remove(worker)

    def _handle_error(self, worker: _ActorHandle, waiting: deque[int], error: BiassayError | OSError) -> None:
        """Raise the error of a worker, or continue with other workers if the disk of its node is full.

        A worker on a full disk is parked, without tasks, until the end. If it were stopped, Ray would start another one
        on the same node.
        """
        is_disk_error = isinstance(error, OSError) and error.errno in _DISK_ERRORS
        has_others = any(other is not worker and other.starting is None for other in self._workers)
        has_room = len(self._all_parked) + 1 < self._capacity
        if not (is_disk_error and has_room and (has_others or len(self._parked) < _MAX_DEATHS)):
            raise error
        self._remove_worker(worker, waiting)
        self._parked.append(worker.actor)
        self._all_parked.append(worker.actor)

    def _is_program_error(self, error: Exception) -> bool:
        """Return True if biassay raised the error, not Ray. Ray turns errors it cannot pickle into a RayError."""
        errors = self._ray.exceptions
        if not isinstance(error, errors.RayTaskError):
            return False
        cause = getattr(error, "cause", None)
        return type(cause) is errors.RayError or not isinstance(cause, errors.RayError)


def _strip_colours(error: BaseException) -> str:
    """Return the message of a Ray error without colour codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def _get_line(error: BaseException, index: int = 0) -> str:
    """Return a line of a Ray error. The last line (-1) follows the traceback."""
    lines = [line for line in _strip_colours(error).splitlines() if line.strip()]
    return lines[index] if lines else type(error).__name__


class RayExecutor:
    """Runs tasks on the nodes of a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Address of the cluster. Default: start a cluster on this machine.
    gpus : float, optional
        GPUs per worker that holds a model; 0.5 puts two workers on each GPU. Default: 1 if the cluster has GPUs.
    """

    def __init__(self, address: str | None = None, *, gpus: float | None = None) -> None:
        if gpus is not None and (not 0 < gpus < math.inf or (gpus > 1 and gpus != int(gpus))):
            raise UsageError(f"GPUs per worker must be a fraction below 1 or a whole number (0.5, 1, 2), got {gpus:g}")
        self.gpus = gpus
        self._ray = _connect(address)
        self._shares, self._parked = FairShare(), list[Any]()
        self._is_stopped = False
        needs = self._worker_resources(model=True)
        if not self._count_slots(needs):
            wanted = ", ".join(f"{name}={count:g}" for name, count in needs.items())
            raise UsageError(f"no node of the Ray cluster has room for a worker ({wanted}); add one with `ray start`")

    @property
    def max_concurrent_models(self) -> int:
        """Number of models that can run at once: one per worker that fits on the cluster, at most 32."""
        return max(1, min(_MAX_MODELS, self._count_slots(self._worker_resources(model=True))))

    @contextmanager
    def stop(self) -> Iterator[None]:
        """Return a context manager inside which all runs, of any thread, end at their next step with an error."""
        self._is_stopped = True
        yield
        self._is_stopped = False  # skipped after an interrupt, because other threads may still start a run

    def run(
        self, make_worker: WorkerFactory[T, R], tasks: Sequence[T], *, workers: int | None = None, model: bool = False
    ) -> Iterator[R]:
        """Yield all results of all tasks; see `Executor.run`."""
        if not tasks:
            return
        resources = self._worker_resources(model=model)
        capacity = workers or max(1, self._count_slots(resources))
        try:
            with self._shares.reserve() as get_share:
                share = lambda: capacity if workers else get_share(capacity)  # noqa: E731
                worker, is_stopped = pickle.dumps(make_worker), lambda: self._is_stopped
                pool = WorkerPool(self._ray, worker, resources, share, is_stopped, capacity, self._parked)
                yield from pool.run(tasks)
        except self._ray.exceptions.RayError as error:
            raise MeasurementError(
                f"the Ray cluster could not finish: {_get_line(error)}; run again to continue"
            ) from error

    def _worker_resources(self, *, model: bool) -> dict[str, float]:
        """Return the resources that a worker reserves on its node."""
        max_gpus = max((resources.get("GPU", 0.0) for resources in self._node_resources()), default=0.0)
        if self.gpus is not None and self.gpus > max_gpus:
            hint = f"the largest has {max_gpus:g}" if max_gpus else "none has a GPU; leave the option out to use cores"
            raise UsageError(f"a worker with {self.gpus:g} GPUs fits on no node: {hint}")
        return {"num_cpus": 1, "num_gpus": self.gpus or 1.0} if model and max_gpus else {"num_cpus": 1}

    def _count_slots(self, needs: dict[str, float]) -> int:
        """Return the number of workers that fit on the cluster."""
        pairs = [(name, needs[key]) for name, key in (("CPU", "num_cpus"), ("GPU", "num_gpus")) if key in needs]
        return sum(min(int(node.get(name, 0) / need) for name, need in pairs) for node in self._node_resources())

    def _node_resources(self) -> list[dict[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]


def _connect(address: str | None) -> Any:
    """Return the module `ray`, connected to the cluster."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("the engine ray", "ray") from error
    library: Any = ray
    if address is not None:
        _check_reachable(address)
    if library.is_initialized():
        return library
    try:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # do not send usage data
        library.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = f"at {address!r}" if address else "on this machine"
        raise UsageError(f"no Ray cluster {where}: {_get_line(error)}") from error
    _redirect_reports()
    return library


def _redirect_reports() -> None:
    """Send Ray's reports about dead workers and nodes to standard error, because standard output is for results."""
    module = importlib.import_module("ray._private.worker")
    report = getattr(module, "print_to_stdstream", None)  # private: without it the reports stay on standard output
    if report is not None:
        vars(module)["print_to_stdstream"] = lambda data, *rest, **more: report({**data, "is_err": True}, *rest, **more)


def _check_reachable(address: str) -> None:
    """Raise an error at once if nothing listens at the address, because Ray itself retries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto" or "local"
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise UsageError(
            f"the Ray cluster at {address!r} cannot be reached: {error.strerror or error}; "
            "give the address that `ray start --head` printed, or leave --address out to run on this machine"
        ) from error
