"""A stand-in for Ray: actors in this process, limited to the number of cores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, said: str, cause: Exception) -> None:
        super().__init__(said)
        self.cause = cause


class ActorDiedError(RayError):
    def __init__(self, said: str, *, actor_init_failed: bool) -> None:
        super().__init__(said)
        self.actor_init_failed = actor_init_failed


class Reference:
    """Future result of an actor that may still wait for a core."""

    def __init__(self, compute: Callable[[], Any], actor: Actor | None = None) -> None:
        self.compute, self.actor = compute, actor


class Stream(Reference):
    def __init__(self, results: Iterator[Any], actor: Actor) -> None:
        super().__init__(lambda: None, actor)
        self._results = results

    def __next__(self) -> Reference:
        result = next(self._results)
        return Reference(lambda: result)


class Method:
    def __init__(self, call: Callable[..., Reference]) -> None:
        self.remote = call

    def options(self, **_: Any) -> Method:
        return self


class Actor:
    def __init__(self, made: Any) -> None:
        self.start = Method(lambda *given: Reference(lambda: made.start(*given), self))
        self.run_task = Method(lambda task: Stream(made.run_task(task), self))


class Kind:
    def __init__(self, ray: StandIn, kind: Any) -> None:
        self._ray, self._kind = ray, kind

    def remote(self, make: Reference) -> Actor:
        actor = Actor(self._kind(make.compute()))
        with self._ray.lock:
            self._ray.alive.append(actor)
            self._ray.asked_for += 1
            self._ray.most = max(self._ray.most, len(self._ray.alive))
        return actor


class StandIn:
    """The part of Ray that the engine uses; every worker raises ``fails`` if it is given."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, cores: int, *, fails: Exception | None = None) -> None:
        self.cores, self.fails = cores, fails
        self.lock = threading.Lock()
        self.alive: list[Actor] = []
        self.asked_for = self.most = 0

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": float(self.cores)}}]

    def remote(self, **_: Any) -> Callable[[Any], Kind]:
        return lambda kind: Kind(self, kind)

    def put(self, value: Any) -> Reference:
        return Reference(lambda: value)

    def get(self, reference: Reference) -> Any:
        if self.fails is not None:
            raise self.fails
        return reference.compute()

    def wait(self, references: Sequence[Reference], *, num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        with self.lock:
            placed = self.alive[: self.cores]
        ready = [one for one in references if one.actor in placed][:num_returns]
        if not ready and timeout:
            time.sleep(0.01)
        return ready, [one for one in references if one not in ready]

    def kill(self, actor: Actor) -> None:
        with self.lock:
            self.alive.remove(actor)
