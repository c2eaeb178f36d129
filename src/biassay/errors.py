"""Every error biassay raises on purpose, in one tree.

    BiassayError
    ├── UsageError             what was asked for cannot be done as asked    (exit code 2)
    │   ├── UnknownNameError       no such model, test, protocol, ...
    │   ├── MissingExtraError      an optional dependency is not installed
    │   ├── StimulusError          a test file or a set of stimuli is not valid
    │   ├── ModelError             a model cannot be opened, or not as asked
    │   ├── VectorError            a vector is zero, not finite or of the wrong size
    │   │   └── VectorFileError        a file of vectors cannot be read
    │   └── RunFolderError         an output or run folder cannot be used
    └── MeasurementError       what was asked for was tried and failed       (exit code 1)
        ├── BudgetError            the tokens that may be used are used up
        ├── DegenerateError        the numbers leave the statistic undefined
        └── RefusedError           the model lacks what it was asked about, and would again

A PluginWarning is not an error: something that another package adds is left out.

A message says what it got, what is allowed, and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

__all__ = [
    "BiassayError",
    "BudgetError",
    "DegenerateError",
    "MeasurementError",
    "MissingExtraError",
    "ModelError",
    "PluginWarning",
    "RefusedError",
    "RunFolderError",
    "StimulusError",
    "UnknownNameError",
    "UsageError",
    "VectorError",
    "VectorFileError",
    "explaining_memory",
]


class BiassayError(Exception):
    """Base class of every deliberate error."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it: the message, for the lines inside of biassay tell its user nothing."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(BiassayError, ValueError):
    """The request itself is wrong; nothing was started."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name is not in the list of known names; the nearest ones are offered."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "", *, like: str | None = None) -> None:
        self.kind, self.name = kind, name
        self.nearest = nearest_names(name if like is None else like, known)
        message = f"unknown {kind} {name!r}"
        if self.nearest:
            message += "; did you mean " + " or ".join(repr(n) for n in self.nearest) + "?"
        super().__init__(f"{message} {hint}".rstrip())


class MissingExtraError(UsageError):
    """An optional dependency is needed and absent."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what} needs an extra that is not installed: pip install "biassay[{extra}]"')


class StimulusError(UsageError):
    """A test file, a concept or a stimulus is not valid."""


class ModelError(UsageError):
    """A model is missing, incomplete, damaged, or has not what was asked of it."""


class VectorError(UsageError):
    """A vector has no direction or the wrong size, so that no cosine can be taken of it."""


class VectorFileError(VectorError):
    """A file of word vectors is missing, truncated or not in a known format."""


class RunFolderError(UsageError):
    """A run folder cannot be read, or an output folder cannot be written."""


class MeasurementError(BiassayError):
    """The measurement was started and could not be completed."""


class StorageError(MeasurementError):
    """Where answers are kept, here or in object storage, nothing answers or this user may not write."""


class BudgetError(MeasurementError):
    """More tokens would be used than the user allows; what was answered is kept, and the run can be resumed."""


class DegenerateError(MeasurementError, ValueError):
    """All associations are equal, so that an effect size would divide by zero."""


class PluginWarning(UserWarning):
    """What another package adds to biassay cannot be used, and is left out."""


class RefusedError(MeasurementError):
    """The model answered but cannot be measured, because it knows too few of the words. Asking again would not help."""


_MEMORY_SIGNS = ("bad_alloc", "out of memory", "DefaultCPUAllocator", "cannot allocate memory", "start new thread")


@contextmanager
def explaining_memory() -> Iterator[None]:
    """Turn errors of Python and of libraries that ran out of memory into one that says what helps."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        message = str(error).casefold()
        if not isinstance(error, MemoryError) and not any(sign.casefold() in message for sign in _MEMORY_SIGNS):
            raise
        lines = str(error).strip().splitlines()
        what = f": {lines[-1]}" if lines else ""
        raise MeasurementError(
            f"not enough memory{what}; close other programs, raise the memory limit, or use a smaller model or fewer "
            "words"
        ) from error


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known names most like ``name``, best first, blind to case."""
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=0.6)
    return tuple(by_folded[folded] for folded in close)
