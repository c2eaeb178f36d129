"""Interface of executors, and transfer of errors from workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from biassay.errors import BiassayError

T = TypeVar("T")
R = TypeVar("R")
Worker = Callable[[T], Iterable[R]]
WorkerFactory = Callable[[], Worker[T, R]]


def serialize_error(error: BiassayError | OSError) -> tuple[Any, ...]:
    """Return the picklable parts of a worker's error.

    Errors of other libraries often cannot be pickled, or cannot be rebuilt from their arguments.
    """
    if isinstance(error, BiassayError):
        return type(error), str(error)
    if not isinstance(error.errno, int):
        return OSError, str(error)
    filename = None if error.filename is None else str(error.filename)
    return OSError, error.errno, error.strerror or str(error), filename


def deserialize_error(kind: type[BiassayError | OSError], *parts: Any) -> BiassayError | OSError:
    """Rebuild a worker's error from the parts that `serialize_error` returned.

    The constructor is bypassed, because some errors take other arguments than their message.
    """
    if kind is OSError:
        return OSError(*parts)
    error = kind.__new__(kind)
    Exception.__init__(error, *parts)
    return error


class Executor(Protocol):
    """Runs independent tasks in one or several workers."""

    @property
    def max_concurrent_models(self) -> int:
        """Number of models that can run at once, each in its own thread of this process with its own call of `run`."""

    def stop(self) -> AbstractContextManager[None]:
        """Return a context manager inside which all runs, of any thread, soon end with an error."""

    def run(
        self, make_worker: WorkerFactory[T, R], tasks: Sequence[T], *, workers: int | None = None, model: bool = False
    ) -> Iterator[R]:
        """Yield all results of all tasks, in any order.

        Parameters
        ----------
        make_worker : callable
            Called once per worker; may be slow, for example load a model. The worker it returns then gets one task
            after another. Can be pickled, like tasks and results.
        tasks : sequence
        workers : int, optional
            Maximum number of workers. Default: one per core.
        model : bool
            If True, a worker holds a model. It uses a GPU if there is one, and otherwise all cores it may use.
        """
