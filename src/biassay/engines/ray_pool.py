"""Workers of a Ray cluster that share tasks: what a lost worker or node had in hand is given to another.

A task is made when a worker is free for it, and what it yields is handed on at once, so that neither all tasks nor all
results are ever in the memory of one machine.
"""

from __future__ import annotations

import errno
import pickle
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from biassay.engines.base import rebuilt
from biassay.errors import BiassayError, MeasurementError

__all__ = ["Pool", "first_line"]

_AT_HAND = 2  # tasks a worker has, so that it need not wait for the next one
_UNREAD = 4  # results a worker may be ahead of their reader
_TRIES = 5  # workers that may die over one task, or before they have begun
_POLL = 1.0  # seconds
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


class Worker:
    """Made once in every worker process of the cluster. An error is a result: Ray would wrap it in pages of its own."""

    def __init__(self, make: bytes) -> None:
        self._make = make
        self._worker: Any = None

    def begin(self) -> bytes:
        return next(_told(self._made), pickle.dumps(("begun", None)))

    def _made(self) -> Iterator[Any]:
        self._worker = pickle.loads(self._make)()
        yield from ()

    def work(self, task: bytes) -> Iterator[bytes]:
        yield from _told(lambda: self._worker(pickle.loads(task)))


def _told(work: Callable[[], Any]) -> Iterator[bytes]:
    try:
        for result in work():
            yield pickle.dumps(("result", result), protocol=5)
    except BiassayError as error:
        yield pickle.dumps(("error", (type(error), str(error))))
    except OSError as error:
        yield pickle.dumps(("os", error))
    except Exception:  # nothing is swallowed: a fault of the program is raised by the driver, with this traceback
        yield pickle.dumps(("fault", traceback.format_exc()))


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


class Pool:
    """At most ``count`` workers, as many as the cluster has room for.

    Attributes
    ----------
    is_over : callable
        Whether what the pool does is no longer wanted.
    """

    def __init__(
        self, ray: Any, make: bytes, count: int, options: Mapping[str, Any], is_over: Callable[[], bool]
    ) -> None:
        self._ray, self._count, self.is_over = ray, count, is_over
        self._kind = ray.remote(max_restarts=0, max_task_retries=0, **options)(Worker)
        self._make = ray.put(make)
        self._hands: list[_Hand] = []
        self._died: Counter[int | None] = Counter()
        self._known: Counter[int] = Counter()  # results of a task that were handed on before its worker died

    def run(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """All results of all tasks, each once."""
        waiting = deque(range(len(tasks)))
        left = len(tasks)
        try:
            while left:
                self._hire(left)
                self._hand_out(tasks, waiting)
                for hand in self._ready():
                    try:
                        job, kind, content = self._read(hand)
                    except self._ray.exceptions.RayError as error:
                        self._lose(hand, waiting, error)
                        continue
                    if kind == "os" and content.errno in _DISK and self._has_others(hand):
                        self._dismiss(hand, waiting)  # the disk of its node is full: the others go on
                    elif kind == "result":
                        yield content
                    elif kind == "done":
                        left -= 1
                        self._known.pop(job, None)
                    elif kind not in ("begun", "known"):
                        raise _raised(kind, content)
        finally:
            for hand in self._hands:
                self._ray.kill(hand.actor)

    def _hire(self, left: int) -> None:
        while len(self._hands) < min(self._count, left):
            actor = self._kind.remote(self._make)
            self._hands.append(_Hand(actor, actor.begin.remote()))
        idle = [hand for hand in self._hands if hand.begun is not None or not hand.jobs]
        for hand in idle[: max(0, len(self._hands) - left)]:  # another model may want its place
            self._hands.remove(hand)
            self._ray.kill(hand.actor)

    def _hand_out(self, tasks: Sequence[Any], waiting: deque[int]) -> None:
        for depth in range(1, _AT_HAND + 1):
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
        while not ready:
            if self.is_over():
                raise MeasurementError("the work was stopped; run again to continue")
            ready, _ = self._ray.wait(list(by_next), num_returns=1, timeout=_POLL)
        return [by_next[one] for one in ready]

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
        number = hand.jobs[0].number if hand.jobs else None
        self._died[number] += 1
        if self._died[number] >= (_TRIES if number is not None else _TRIES * self._count):
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

    def _has_others(self, hand: _Hand) -> bool:
        """Can others take its work? If so there is one worker fewer from now on."""
        if not any(other is not hand for other in self._hands):
            return False
        self._count -= 1
        return True


def _raised(kind: str, content: Any) -> Exception:
    if kind == "error":
        return rebuilt(*content)
    if kind == "os":
        return content  # type: ignore[no-any-return]
    return RuntimeError(f"a worker of the cluster failed:\n{content}")


def first_line(error: BaseException) -> str:
    """What an error of Ray says first; pages may follow."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
