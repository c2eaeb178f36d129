"""Correlations over models of quantities that are measured with known errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from biassay.stats.errors_in_variables import correlate_with_errors

from .claim import Claim, Coverage, Experiment, Level, Line, up_to

__all__ = ["CLAIMS", "lines"]

_UNIT = "model"
_ASSUMES = "Models are a sample of their kind; standard errors are known, and errors of the two measures independent."

CLAIMS = (
    Claim(
        "relation interval",
        "associations",
        "`relate`: interval of a corrected correlation",
        (),
        "The range of the correlation of true values over models of this kind.",
        "The correlation of true values.",
        _UNIT,
        _ASSUMES,
        "Wide with 10 models: conservative there, and often without a bound at one end.",
    ),
    Claim(
        "relation p",
        "associations",
        "`relate`: p of a corrected correlation",
        (),
        "True values are correlated over models of this kind.",
        "True values are independent.",
        _UNIT,
        _ASSUMES,
    ),
)


@dataclass(frozen=True)
class _World:
    """Number of models, correlation of true values, reliability of both measures, and tails of true values."""

    n: int
    correlation: float
    reliability: float
    heavy: bool = False

    def __str__(self) -> str:
        tails = "; t5 true values" if self.heavy else ""
        return f"{self.n} models, correlation {self.correlation:g}, reliability {self.reliability:g}{tails}"


_WORLDS = (
    _World(10, 0.0, 0.7),
    _World(10, 0.6, 0.7),
    _World(20, 0.6, 0.5),
    _World(50, 0.0, 0.5),
    _World(50, 0.9, 0.7),
    _World(30, 0.6, 0.7, heavy=True),
)


def _draw(rng: np.random.Generator, world: _World) -> Mapping[str, Any]:
    """Draw true values, measure them with errors that differ by model, and correlate."""
    size = (2, world.n)
    first, own = rng.standard_t(5, size=size) * math.sqrt(0.6) if world.heavy else rng.normal(size=size)
    second = world.correlation * first + math.sqrt(1.0 - world.correlation**2) * own
    errors = math.sqrt(1.0 / world.reliability - 1.0) * np.exp(0.3 * rng.normal(size=size))
    x, y = np.array([first, second]) + errors * rng.normal(size=size)
    found = correlate_with_errors(x, y, *errors)
    z = math.atanh(found.observed_correlation)
    half = 1.96 / math.sqrt(world.n - 3)
    return {
        "low": found.ci_low,
        "high": found.ci_high,
        "p": found.p_value,
        "observed low": math.tanh(z - half),
        "observed high": math.tanh(z + half),
    }


def lines() -> list[Line]:
    """All rows of relations."""
    interval, p = (claim.name for claim in CLAIMS)
    rows = []
    for world in _WORLDS:
        drawn = Experiment(f"relation {world}", str(world), partial(_draw, world=world), 300)
        wanted = (0.93, 1.0) if world.n == 10 else (0.92, 0.98)
        rows.append(Line(interval, drawn, Coverage("low", "high", world.correlation, wanted)))
        rows.append(
            Line(interval, drawn, Coverage("observed low", "observed high", world.correlation), "without correction")
        )
        if not world.correlation:
            rows.append(Line(p, drawn, Level("p", up_to(0.065, 0.02))))
    return rows
