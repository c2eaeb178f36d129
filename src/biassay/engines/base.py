"""What every engine does: it gives tasks to workers and hands back what they yield."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from biassay.errors import BiassayError

__all__ = ["Engine", "MakeWorker", "Worker", "parts_of", "rebuilt"]

T = TypeVar("T")
R = TypeVar("R")
Worker = Callable[[T], Iterable[R]]
MakeWorker = Callable[[], Worker[T, R]]


def parts_of(error: BiassayError | OSError) -> tuple[Any, ...]:
    """What is sent of a worker's error: many of other libraries cannot be pickled, or not be made again."""
    if isinstance(error, BiassayError):
        return type(error), str(error)
    if not isinstance(error.errno, int):
        return OSError, str(error)
    filename = None if error.filename is None else str(error.filename)
    return OSError, error.errno, error.strerror or str(error), filename


def rebuilt(kind: type[BiassayError | OSError], *parts: Any) -> BiassayError | OSError:
    """A worker's error as it would have been raised here. Some take other arguments than their message."""
    if kind is OSError:
        return OSError(*parts)
    error = kind.__new__(kind)
    Exception.__init__(error, *parts)
    return error


class Engine(Protocol):
    """Runs tasks that do not depend on each other.

    ``make`` is called once wherever a worker starts, and may be slow (it loads a model); the worker it returns is then
    given one task after the other. It can be pickled, and so can tasks and results. Results arrive in any order.
    """

    @property
    def models_at_once(self) -> int:
        """How many models can be asked at a time, in threads of this process, each by its own `run`."""
        ...

    def stopped(self) -> AbstractContextManager[None]:
        """Within it all that runs or begins to, in whatever thread, ends soon, with an error."""
        ...

    def run(
        self, make: MakeWorker[T, R], tasks: Sequence[T], *, workers: int | None = None, model: bool = False
    ) -> Iterator[R]:
        """Yield all results of all tasks.

        ``workers`` is the largest number at a time, by default one for every core. ``model`` says that a worker holds a
        model, which uses a GPU where there is one and all cores where it may.
        """
        ...
