"""A Ray cluster: workers are actors on its nodes, and those that are lost are replaced.

Every node needs biassay with the same extras, and sees the corpus and the models under the same paths.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import pickle
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from biassay.engines.base import MakeWorker
from biassay.engines.ray_pool import Orders, Pool, first_line
from biassay.engines.ray_shares import Shares
from biassay.errors import MeasurementError, MissingExtraError, UsageError

__all__ = ["RayEngine"]

T = TypeVar("T")
R = TypeVar("R")
_PATIENCE = 10.0  # seconds until an address that does not answer counts as unreachable
_MODELS = 32  # at most at a time: each has a thread of the driver


class RayEngine:
    """Workers on the nodes of a Ray cluster; without an address, on a cluster of this machine alone.

    Attributes
    ----------
    gpus : float or None
        GPUs of a worker that holds a model: 0.5 puts two workers on each. None: one, where the cluster has any.
    """

    def __init__(self, address: str | None = None, *, gpus: float | None = None) -> None:
        if gpus is not None and (not 0 < gpus < math.inf or (gpus > 1 and gpus != int(gpus))):
            raise UsageError(f"a worker has a share of a GPU or whole ones (0.5, 1, 2), got {gpus:g}")
        self.gpus = gpus
        self._ray = _connected(address)
        self._shares, self._parked = Shares(), list[Any]()
        self._is_stopped = False
        needs = self._needs(model=True)
        if not self._room(needs):
            wanted = ", ".join(f"{name}={count:g}" for name, count in needs.items())
            raise UsageError(f"no node of the Ray cluster has room for a worker ({wanted}); `ray start` one that has")

    @property
    def models_at_once(self) -> int:
        """One for every worker that the cluster has room for, within reason."""
        return max(1, min(_MODELS, self._room(self._needs(model=True))))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Within it all that runs or begins to, in whatever thread, ends at its next step."""
        self._is_stopped = True
        yield
        self._is_stopped = False  # not if the wait was interrupted: threads that are on their way must not begin

    def run(
        self, make: MakeWorker[T, R], tasks: Sequence[T], *, workers: int | None = None, model: bool = False
    ) -> Iterator[R]:
        if not tasks:
            return
        needs = self._needs(model=model)
        room = workers or max(1, self._room(needs))
        try:
            with self._shares.taken() as part:
                orders = Orders(room, lambda: room if workers else part(room), lambda: self._is_stopped, self._parked)
                yield from Pool(self._ray, pickle.dumps(make), needs, orders).run(tasks)
        except self._ray.exceptions.RayError as error:
            raise MeasurementError(
                f"the Ray cluster could not finish: {first_line(error)}; run again to continue"
            ) from error

    def _needs(self, *, model: bool) -> dict[str, float]:
        """What a worker takes of its node."""
        most = max((node["Resources"].get("GPU", 0.0) for node in self._ray.nodes() if node["Alive"]), default=0.0)
        if self.gpus is not None and self.gpus > most:
            hint = f"the largest has {most:g}" if most else "none has any; leave it out, and each has a core"
            raise UsageError(f"a worker of {self.gpus:g} GPUs fits on no node: {hint}")
        return {"num_cpus": 1, "num_gpus": self.gpus or 1.0} if model and most else {"num_cpus": 1}

    def _room(self, needs: dict[str, float]) -> int:
        """How many workers fit at a time."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        pairs = (("CPU", "num_cpus"), ("GPU", "num_gpus"))
        return sum(min(int(own.get(name, 0) / needs[key]) for name, key in pairs if key in needs) for own in nodes)


def _connected(address: str | None) -> Any:
    """The library, connected to the cluster."""
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
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the cluster
        library.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        where = f"at {address!r}" if address else "on this machine"
        raise UsageError(f"no Ray cluster {where}: {first_line(error)}") from error
    _report_to_standard_error()
    return library


def _report_to_standard_error() -> None:
    """Ray prints pages about dead workers and nodes to standard output, which is for results."""
    module = importlib.import_module("ray._private.worker")
    report = getattr(
        module, "print_to_stdstream", None
    )  # no part of its interface: without it they stay where they are
    if report is not None:
        vars(module)["print_to_stdstream"] = lambda data, *rest, **more: report({**data, "is_err": True}, *rest, **more)


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
