"""Spend the error probability of a gate over all looks at one baseline."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from biassay.errors import UsageError
from biassay.io import content_digest, write_atomically
from biassay.results.run_folder import RESULTS_JSON

LOOKS_JSON = "looks.json"
_SHARE = 0.8
"""Share of alpha that all looks spend. A quarter of it is for false alarms (one side of the growth): with .05, 1%."""


def spend_alpha(alpha: float, look: int) -> float:
    """Return the part of alpha for look k: 0.8 alpha / (k (k + 1))."""
    return _SHARE * alpha / (look * (look + 1))


def take_look(baseline: str, new: str, tests: Sequence[str] = ()) -> int:
    """Record a look in the run folder of a baseline before it is made, and return its number, from 1.

    Simultaneous comparisons get different numbers. A comparison that stops with an error has used its look.

    Parameters
    ----------
    baseline : str
        Run folder of the old model.
    new : str
        New model or run folder. The same run folder, unchanged and with the same tests, is the same look.
    tests : sequence of str
        Patterns of the tests to compare.
    """
    folder = _strip_label(baseline)
    if not (folder / RESULTS_JSON).is_file():
        raise UsageError(
            f"--always-valid needs the run folder of the old model, got {baseline!r}; make one with "
            "biassay run OLD --out baseline"
        )
    results = _strip_label(new) / RESULTS_JSON
    key = " ".join([content_digest(results), *sorted(tests)]) if results.is_file() else ""
    with _lock(folder / RESULTS_JSON):
        looks = _read_looks(folder / LOOKS_JSON)
        if key and key in looks:
            return looks.index(key) + 1
        write_atomically(folder / LOOKS_JSON, json.dumps({"looks": [*looks, key]}, indent=1).encode())
        return len(looks) + 1


def _strip_label(given: str) -> Path:
    return Path(given) if Path(given).exists() else Path(given.partition("=")[2] or given)


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    with file.open("r+b") as opened:
        if os.name == "posix":
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _read_looks(file: Path) -> list[str]:
    if not file.exists():
        return []
    try:
        looks = json.loads(file.read_text("utf-8"))["looks"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: not a list of looks; restore it, or measure a new baseline") from error
    if not isinstance(looks, list) or not all(isinstance(look, str) for look in looks):
        raise UsageError(f"{file}: 'looks' is not a list of texts; restore it, or measure a new baseline")
    return looks
