"""Workers of a Ray cluster that share tasks: what a lost worker or node had in hand is given to another.

A task is made when a worker is free for it, and what it yields is handed on at once, so that neither all tasks nor all
results are ever in the memory of one machine.
"""

from __future__ import annotations

import errno
import logging
import math
import pickle
import platform
import re
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from biassay.engines.base import parts_of, rebuilt
from biassay.errors import BiassayError, MeasurementError

__all__ = ["Orders", "Pool", "first_line"]

_AT_HAND = 2  # tasks a worker has, so that it need not wait for the next one
_UNREAD = 4  # results a worker may be ahead of their reader
_TRIES = 5  # workers that may die over one task, or before they have begun
_POLL = 0.5  # seconds between two looks at what other runs do
_LONG = 30.0  # seconds without a worker until the user is told
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


class Worker:
    """Made once in every worker process of the cluster. An error is a result: Ray would wrap it in pages of its own."""

    def __init__(self, make: bytes) -> None:
        self._make = make
        self._worker: Any = None

    def begin(self, version: str) -> bytes:
        return next(_told(lambda: self._made(version)), pickle.dumps(("begun", None)))

    def _made(self, version: str) -> Iterator[Any]:
        if version != _version():
            here = f"biassay {_version()} is on the node {platform.node()}, and {version} where the work was begun"
            raise MeasurementError(f"{here}; install the same on every node")
        self._worker = pickle.loads(self._make)()
        yield from ()

    def work(self, task: bytes) -> Iterator[bytes]:
        yield from _told(lambda: self._worker(pickle.loads(task)))


def _told(work: Callable[[], Any]) -> Iterator[bytes]:
    try:
        for result in work():
            yield pickle.dumps(("result", result), protocol=5)
    except (BiassayError, OSError) as error:
        yield pickle.dumps(("error", parts_of(error)))
    except Exception:  # nothing is swallowed: a fault of the program is raised by the driver, with this traceback
        yield pickle.dumps(("fault", traceback.format_exc()))


def _version() -> str:
    try:
        return metadata.version("biassay")
    except metadata.PackageNotFoundError:
        return "unknown"


@dataclass
class _Job:
    """A task in hand: its number, what it yields, and how many results came of it."""

    number: int
    results: Any
    read: int = 0


@dataclass(eq=False)
class _Hand:
    """A worker as the driver sees it; ``begun`` is waited for before it is given any task."""

    actor: Any
    begun: Any
    jobs: deque[_Job] = field(default_factory=deque)

    @property
    def next(self) -> Any:
        """What it will have ready next; None: nothing."""
        if self.begun is not None:
            return self.begun
        return self.jobs[0].results if self.jobs else None


@dataclass(frozen=True)
class Orders:
    """What a pool is told by its engine.

    Attributes
    ----------
    room : int
        How many workers fit on the cluster.
    count : callable
        How many of them it may have at present.
    is_over : callable
        Whether what it does is no longer wanted.
    parked : list
        Workers of all pools whose disk is full.
    """

    room: int
    count: Callable[[], int]
    is_over: Callable[[], bool]
    parked: list[Any]


class Pool:
    """Workers that do the tasks of one run."""

    def __init__(self, ray: Any, make: bytes, options: Mapping[str, Any], orders: Orders) -> None:
        self._ray, self._orders = ray, orders
        self._kind = ray.remote(max_restarts=0, max_task_retries=0, **options)(Worker)
        self._make = ray.put(make)
        self._hands: list[_Hand] = []
        self._parked: list[Any] = []
        self._began = self._last_at_work = time.monotonic()
        self._died: Counter[int | None] = Counter()
        self._known: Counter[int] = Counter()  # results of a task that were handed on before its worker died

    def run(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """All results of all tasks, each once."""
        waiting = deque(range(len(tasks)))
        left = len(tasks)
        try:
            while left:
                if self._orders.is_over():
                    raise MeasurementError("the work was stopped; run again to continue")
                self._hand_out(tasks, waiting, 1 if self._hire(left) else _AT_HAND)
                for hand in self._ready():
                    try:
                        job, kind, content = self._read(hand)
                    except self._ray.exceptions.RayError as error:
                        self._lose(hand, waiting, error)
                        continue
                    if kind == "result":
                        yield content
                    elif kind == "done":
                        left -= 1
                        self._known.pop(job, None)
                    elif kind == "error":
                        self._fail(hand, waiting, rebuilt(*content))
                    elif kind == "fault":
                        raise RuntimeError(f"a worker of the cluster failed:\n{content}")
        finally:
            for actor in (*(hand.actor for hand in self._hands), *self._parked):
                self._ray.kill(actor)
            for actor in self._parked:
                self._orders.parked.remove(actor)

    def _hire(self, left: int) -> int:
        """Hire or dismiss; how many workers are too many and not free yet."""
        is_settled = time.monotonic() - self._began >= _POLL  # until then others may begin beside it
        wanted = min(self._orders.count() if is_settled else 1, left)
        while len(self._hands) < wanted:
            actor = self._kind.remote(self._make)
            self._hands.append(_Hand(actor, actor.begin.remote(_version())))
        idle = [hand for hand in self._hands if hand.begun is not None or not hand.jobs]
        idle.sort(key=lambda hand: hand.begun is None)
        for hand in idle[: len(self._hands) - wanted]:  # another model may want its place
            self._hands.remove(hand)
            self._ray.kill(hand.actor)
        return len(self._hands) - wanted

    def _hand_out(self, tasks: Sequence[Any], waiting: deque[int], at_hand: int) -> None:
        for depth in range(1, at_hand + 1):
            for hand in self._hands:
                if waiting and hand.begun is None and len(hand.jobs) < depth and (depth == 1 or self._plenty(waiting)):
                    number = waiting.popleft()
                    work = hand.actor.work.options(num_returns="streaming", _generator_backpressure_num_objects=_UNREAD)
                    hand.jobs.append(_Job(number, work.remote(pickle.dumps(tasks[number], protocol=5))))

    def _plenty(self, waiting: deque[int]) -> bool:
        """Is more left than the workers could begin at once? The last tasks go to whoever is free first."""
        return len(waiting) > len(self._hands)

    def _ready(self) -> list[_Hand]:
        by_next = {hand.next: hand for hand in self._hands if hand.next is not None}
        ready, _ = self._ray.wait(list(by_next), num_returns=len(by_next), timeout=0)
        if not ready:
            self._tell_if_idle()
            ready, _ = self._ray.wait(list(by_next), num_returns=1, timeout=_POLL)
        return [by_next[one] for one in ready]

    def _tell_if_idle(self) -> None:
        now = time.monotonic()
        if any(hand.begun is None for hand in self._hands):
            self._last_at_work = now
        elif now - self._last_at_work > _LONG:
            self._last_at_work = math.inf  # once
            logging.getLogger("biassay.engines").warning(
                "no worker has begun for %.0f s: the cluster has no room for one at present, or the model is slow to "
                "load; `ray status` shows which",
                _LONG,
            )

    def _read(self, hand: _Hand) -> tuple[int, str, Any]:
        """The task, the kind and the content of what a worker has ready."""
        if hand.begun is not None:
            kind, content = pickle.loads(self._ray.get(hand.begun))
            hand.begun = None if kind == "begun" else hand.begun
            return -1, kind, content
        job = hand.jobs[0]
        try:
            reference = next(job.results)
        except StopIteration:
            hand.jobs.popleft()
            return job.number, "done", None
        kind, content = pickle.loads(self._ray.get(reference))
        job.read += 1
        if kind == "result" and job.read <= self._known[job.number]:
            return job.number, "known", None
        self._known[job.number] += kind == "result"
        return job.number, kind, content

    def _lose(self, hand: _Hand, waiting: deque[int], error: Exception) -> None:
        """A worker is dead, its process, its node or the way to it."""
        if getattr(error, "actor_init_failed", False):
            said = f"a worker could not be started: {last_line(error)}"
            raise MeasurementError(f"{said}; is the same biassay installed on every node?") from error
        if self._is_fault(error):
            raise RuntimeError(f"a worker of the cluster failed:\n{_plain(error)}") from error
        number = hand.jobs[0].number if hand.jobs else None
        self._died[number] += 1
        if self._died[number] >= (_TRIES if number is not None else _TRIES * self._orders.count()):
            what = "over the same task" if number is not None else "before they began"
            raise MeasurementError(
                f"{self._died[number]} workers died {what} (out of memory? give each a larger share of its node); "
                f"the last one: {first_line(error)}; run again to continue"
            ) from error
        self._dismiss(hand, waiting)

    def _dismiss(self, hand: _Hand, waiting: deque[int]) -> None:
        waiting.extendleft(job.number for job in reversed(hand.jobs))
        self._hands.remove(hand)
        self._ray.kill(hand.actor)

    def _fail(self, hand: _Hand, waiting: deque[int], error: BiassayError | OSError) -> None:
        """Raise an error of a worker, unless the disk of its node is full: then others go on.

        Such a worker is kept until the end, without a task: another one would be started in its place.
        """
        is_disk = isinstance(error, OSError) and error.errno in _DISK
        are_others = any(other is not hand and other.begun is None for other in self._hands)
        may_try = len(self._orders.parked) + 1 < self._orders.room and (are_others or len(self._parked) < _TRIES)
        if not is_disk or not may_try:
            raise error
        waiting.extendleft(job.number for job in reversed(hand.jobs))
        self._hands.remove(hand)
        self._parked.append(hand.actor)
        self._orders.parked.append(hand.actor)

    def _is_fault(self, error: Exception) -> bool:
        """Was it raised by the program, and not by Ray? What Ray cannot pickle of a program it makes a RayError."""
        errors = self._ray.exceptions
        if not isinstance(error, errors.RayTaskError):
            return False
        cause = getattr(error, "cause", None)
        return type(cause) is errors.RayError or not isinstance(cause, errors.RayError)


def _plain(error: BaseException) -> str:
    """What an error of Ray says, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def first_line(error: BaseException) -> str:
    """What an error of Ray says first; pages may follow."""
    return next((line for line in _plain(error).splitlines() if line.strip()), type(error).__name__)


def last_line(error: BaseException) -> str:
    """What an error with a traceback says last."""
    return next((line for line in reversed(_plain(error).splitlines()) if line.strip()), type(error).__name__)
