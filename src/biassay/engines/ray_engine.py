"""A Ray cluster: tasks as a Ray data set, workers as a pool of actors that Ray restarts when one dies.

Every node needs biassay with the same extras, and sees the corpus, the models and the store under the same paths.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any, TypeVar

from biassay.engines.base import MakeWorker, rebuilt
from biassay.errors import BiassayError, MeasurementError, MissingExtraError, UsageError

__all__ = ["RayEngine"]

T = TypeVar("T")
R = TypeVar("R")
_PATIENCE = 10.0  # seconds until an address that does not answer counts as unreachable


class RayEngine:
    """Workers on the nodes of a Ray cluster; without an address, on a cluster of this machine alone."""

    def __init__(self, address: str | None = None) -> None:
        self._ray = _connected(address)

    def run(
        self, make: MakeWorker[T, R], tasks: Sequence[T], *, workers: int | None = None, model: bool = False
    ) -> Iterator[R]:
        if not tasks:
            return
        ray = self._ray
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        resources = ray.cluster_resources()
        gpus = int(model and resources.get("GPU", 0) >= 1)
        possible = int(resources.get("GPU" if gpus else "CPU", 1))
        count = max(1, min(len(tasks), workers or possible))
        rows = [{"number": number, "task": pickle.dumps(task)} for number, task in enumerate(tasks)]
        results = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            _Actor,
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=count),
            fn_constructor_args=(pickle.dumps(make),),
            num_cpus=1,
            num_gpus=gpus,
        )
        try:
            with redirect_stdout(sys.stderr):  # Ray reports dead workers on standard output, which is for results
                yield from self._stream(results)
        except ray.exceptions.RayError as error:
            raise _plain(error) from error

    @staticmethod
    def _stream(results: Any) -> Iterator[Any]:
        for batch in results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1):
            for content in batch.column("result"):
                yield _unpacked(content.as_py())


class _Actor:
    """Made once in every worker of the cluster."""

    def __init__(self, make: bytes) -> None:
        self._worker = _or_error(lambda: pickle.loads(make)())

    def __call__(self, batch: Any) -> Iterator[dict[str, list[bytes]]]:
        import pyarrow as pa

        for task in batch.column("task"):
            for content in self._results(task.as_py()):
                yield pa.table({"result": pa.array([content], type=pa.large_binary())})

    def _results(self, task: bytes) -> Iterator[bytes]:
        # An error is a result: Ray would try the task again, and wrap what went wrong in pages of its own.
        try:
            if isinstance(self._worker, _Failed):
                raise self._worker.error
            for result in self._worker(pickle.loads(task)):
                yield pickle.dumps(("result", result))
        except BiassayError as error:
            yield pickle.dumps(("error", (type(error), str(error))))
        except OSError as error:
            yield pickle.dumps(("os", error))


class _Failed:
    def __init__(self, error: BiassayError) -> None:
        self.error = error


def _or_error(make: Any) -> Any:
    try:
        return make()
    except BiassayError as error:
        return _Failed(error)


def _unpacked(content: bytes) -> Any:
    kind, value = pickle.loads(content)
    if kind == "os":
        raise value
    if kind == "error":
        raise rebuilt(*value)
    return value


def _connected(address: str | None) -> Any:
    """The library, connected to the cluster."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtraError("the engine ray", "ray") from error
    library: Any = ray
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if address is not None:
        _check_reachable(address)
    if library.is_initialized():
        return library
    try:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the cluster
        library.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = f"at {address!r}" if address else "on this machine"
        raise UsageError(f"no Ray cluster {where}: {_first_line(error)}") from error
    return library


def _check_reachable(address: str) -> None:
    """Ray itself tries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto" or "local"
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise UsageError(
            f"the Ray cluster at {address!r} cannot be reached: {error.strerror or error}; "
            "give the address that `ray start --head` printed, or leave --address out to run on this machine"
        ) from error


def _plain(error: Exception) -> MeasurementError:
    return MeasurementError(f"the Ray cluster could not finish: {_first_line(error)}; run again to continue")


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
