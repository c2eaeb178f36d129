"""Exceptions of biassay.

    BiassayError
    ├── UsageError                         the request is invalid; nothing was started   (exit code 2)
    │   ├── UnknownNameError                   no such model, test, protocol, ...
    │   ├── MissingExtraError                  an optional dependency is not installed
    │   ├── StimulusError                      a test file or word set is invalid
    │   ├── ModelError                         a model cannot be opened with these settings
    │   ├── VectorError                        a vector is zero, not finite or of the wrong size
    │   │   └── VectorFileError                    a vector file cannot be read
    │   └── RunFolderError                     a run or output folder cannot be used
    └── MeasurementError                   the measurement started and failed            (exit code 1)
        ├── StorageError                       the cache or object storage cannot be reached or written
        ├── BudgetError                        the token budget is used up
        ├── DegenerateError                    the statistic is undefined for these numbers
        └── InsufficientVocabularyError        too many words are out of vocabulary

PluginWarning is not an error: biassay skips an extension that it cannot use.

A message says what happened, why, and what to type next.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class BiassayError(Exception):
    """Base class of all errors that biassay raises on purpose."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Show only the message in IPython, because lines inside biassay do not help its users."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(BiassayError, ValueError):
    """The request is invalid; nothing was started."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name is unknown; the message suggests similar ones.

    Parameters
    ----------
    kind : str
        Kind of thing that is named, such as "model".
    name : str
        Name as the user typed it.
    known : iterable of str
        Known names.
    hint : str
        End of the message.
    similar_to : str, optional
        Compare this text with the known names instead of `name`.
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], hint: str = "", *, similar_to: str | None = None
    ) -> None:
        self.kind, self.name = kind, name
        self.nearest = find_nearest_names(name if similar_to is None else similar_to, known)
        message = f"unknown {kind} {name!r}"
        if self.nearest:
            message += "; did you mean " + " or ".join(repr(n) for n in self.nearest) + "?"
        super().__init__(f"{message} {hint}".rstrip())


class MissingExtraError(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra that is not installed: {format_install_command(extra)}")


def format_install_command(*extras: str) -> str:
    """Return the command that installs extras from where biassay was installed: a clone or the package index."""
    from urllib.parse import urlsplit  # both take a while to import, and few runs need them
    from urllib.request import url2pathname

    source, options = "biassay", ""
    origin = _read_origin()
    url = urlsplit(origin.get("url", ""))
    if url.scheme == "file" and "dir_info" in origin:
        folder = url2pathname(url.path)
        source = "." if os.path.abspath(folder) == os.getcwd() else folder
        options = "-e " if origin["dir_info"].get("editable") else ""
    return f'pip install {options}"{source}[{",".join(extras)}]"'


def _read_origin() -> dict[str, Any]:
    """Return where pip installed biassay from, as it records it (PEP 610); empty for the package index."""
    from importlib import metadata  # takes 30 ms

    try:
        text = metadata.distribution("biassay").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    return json.loads(text) if text else {}


class StimulusError(UsageError):
    """A test file, word set or stimulus is invalid."""


class ModelError(UsageError):
    """A model is missing, incomplete or damaged, or lacks a requested capability."""


class VectorError(UsageError):
    """A vector has no direction or the wrong size, so its cosine is undefined."""


class VectorFileError(VectorError):
    """A vector file is missing, truncated or in an unknown format."""


class RunFolderError(UsageError):
    """A run folder cannot be read, or an output folder cannot be written."""


class MeasurementError(BiassayError):
    """The measurement started and failed."""


class StorageError(MeasurementError):
    """The cache or object storage does not respond or cannot be written."""


class BudgetError(MeasurementError):
    """The token budget is used up. Responses are cached, and the run can be resumed."""


class DegenerateError(MeasurementError, ValueError):
    """All associations are equal, so the effect size would divide by zero."""


class PluginWarning(UserWarning):
    """An extension cannot be used and is skipped."""


class InsufficientVocabularyError(MeasurementError):
    """Too many words are out of vocabulary. Running the model again gives the same result."""


_MEMORY_SIGNS = ("bad_alloc", "out of memory", "DefaultCPUAllocator", "cannot allocate memory", "start new thread")


@contextmanager
def explain_memory_errors() -> Iterator[None]:
    """Convert out-of-memory errors of Python and libraries to a MeasurementError that says what helps."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        message = str(error).casefold()
        if not isinstance(error, MemoryError) and not any(sign.casefold() in message for sign in _MEMORY_SIGNS):
            raise
        lines = str(error).strip().splitlines()
        detail = f": {lines[-1]}" if lines else ""
        raise MeasurementError(
            f"not enough memory{detail}; close other programs, raise the memory limit, or use a smaller model or fewer "
            "words"
        ) from error


def format_examples(items: Sequence[str], limit: int = 8) -> str:
    """Join the first items by commas and count the others: "anna, ben and 19,998 more"."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more:,} more" if more > 0 else "")


def find_nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return up to three known names similar to `name`, best first, ignoring case."""
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=3, cutoff=0.6)
    return tuple(by_folded[folded] for folded in close)
