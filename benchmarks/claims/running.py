"""Run the repetitions of experiments in parallel and compute the rows of the table."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .claim import Experiment, Line

__all__ = ["measured"]

_CHUNK = 50
_QUICK = 50  # of so many repetitions one is made
_LEAST = 6


def measured(
    lines: Sequence[Line], *, processes: int, quick: bool, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return one row per line; run an experiment that several lines share once."""
    rows: dict[int, dict[str, Any]] = {}
    with ProcessPoolExecutor(processes) as pool:
        for name in dict.fromkeys(line.experiment.name for line in lines):
            own = [i for i, line in enumerate(lines) if line.experiment.name == name]
            experiment = lines[own[0]].experiment
            n = max(_LEAST, experiment.repetitions // _QUICK) if quick else experiment.repetitions
            chunks = [(experiment, start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
            made = pool.map(_chunk, *zip(*chunks, strict=True)) if processes > 1 else starmap(_chunk, chunks)
            found = _stacked(made)
            for i in own:
                rows[i] = _row(lines[i], n, found)
            progress(f"{name}: {n} repetitions")
    return [rows[i] for i in range(len(lines))]


def _row(line: Line, n: int, found: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    counted = {
        name: round(value, 5) if isinstance(value, float) else value for name, value in line.read.read(found).items()
    }
    about = {"claim": line.claim, "experiment": line.experiment.name, "simulated": line.experiment.simulated}
    return {**about, "note": line.note, "n": n, "wanted": line.read.limits, **counted}


def _chunk(experiment: Experiment, start: int, stop: int) -> list[dict[str, Any]]:
    """Run some repetitions. Each has its own seed, so results do not depend on the number of processes."""
    salt = zlib.crc32(experiment.name.encode())
    return [dict(experiment.draw(np.random.default_rng([salt, i]))) for i in range(start, stop)]


def _stacked(chunks: Iterable[list[dict[str, Any]]]) -> dict[str, NDArray[np.float64]]:
    rows = [row for chunk in chunks for row in chunk]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in rows[0]}
