"""Claims about printed numbers, simulations with a known truth, and the rates that check the claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HEADLINE",
    "INTERVAL",
    "Claim",
    "Coverage",
    "Experiment",
    "Level",
    "Line",
    "Power",
    "Printed",
    "Share",
    "up_to",
]

Numbers = Mapping[str, NDArray[np.float64]]
Limits = tuple[float, float]


@dataclass(frozen=True)
class Claim:
    """A claim about a printed number, such as the level of a p-value.

    ``columns`` print the number, as study.table.column; ``missed`` says where the claim does not hold.
    """

    name: str
    study: str
    title: str
    columns: tuple[str, ...]
    promise: str
    truth: str
    unit: str
    assumes: str
    missed: str = ""


@dataclass(frozen=True)
class Experiment:
    """A simulation. ``draw`` makes one repetition and returns biassay's numbers by name, NaN if there is none."""

    name: str
    simulated: str
    draw: Callable[[np.random.Generator], Mapping[str, Any]]
    repetitions: int


@dataclass(frozen=True)
class Level:
    """Rejection rates at .05 and .01; ``wanted`` has both limits of the first and the upper limit of the second."""

    p: str
    wanted: tuple[float, float, float] | None = None

    def read(self, found: Numbers) -> dict[str, Any]:
        p = found[self.p]
        often, rarely = (np.nan_to_num(p, nan=2.0) <= level for level in (0.05, 0.01))
        found_here = {"at_05": share(often), "at_01": share(rarely), "error": error_of(often)}
        low, high, most = self.wanted or (0.0, 1.0, 1.0)
        off = max(beyond(often, low, high), beyond(rarely, 0.0, most))
        return {**found_here, "missing": share(np.isnan(p)), "off": off if self.wanted else None}

    @property
    def limits(self) -> str:
        if self.wanted is None:
            return ""
        low, high, most = self.wanted
        return f"{f'{low:g} to {high:g}' if low else f'at most {high:g}'}; at most {most:g}"


@dataclass(frozen=True)
class Coverage:
    """Coverage of a 95% interval. The truth is a number, or the mean of ``truth`` over repetitions."""

    low: str
    high: str
    truth: str | float
    wanted: Limits | None = None
    together: bool = False

    def read(self, found: Numbers) -> dict[str, Any]:
        low, high = found[self.low], found[self.high]
        truth = np.nanmean(found[self.truth], axis=0) if isinstance(self.truth, str) else self.truth
        held = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
        if self.together:
            held = np.where(np.isnan(held).any(axis=1), np.nan, held.min(axis=1))
        off = None if self.wanted is None else beyond(held, *self.wanted)
        return {"coverage": share(held), "error": error_of(held), "missing": share(np.isnan(held)), "off": off}

    @property
    def limits(self) -> str:
        return "" if self.wanted is None else f"{self.wanted[0]:g} to {self.wanted[1]:g}"


@dataclass(frozen=True)
class Share:
    """A bounded error rate, such as the family-wise error rate or the false discovery rate."""

    of: str
    most: float

    def read(self, found: Numbers) -> dict[str, Any]:
        flags = found[self.of]
        return {"share": share(flags), "error": error_of(flags), "missing": 0.0, "off": beyond(flags, 0.0, self.most)}

    @property
    def limits(self) -> str:
        return f"at most {self.most:g}"


@dataclass(frozen=True)
class Power:
    """Power at .05, compared with the ``predicted`` power."""

    p: str
    predicted: float
    within: float = 0.05

    def read(self, found: Numbers) -> dict[str, Any]:
        flags = np.nan_to_num(found[self.p], nan=2.0) <= 0.05
        off = beyond(flags, self.predicted - self.within, self.predicted + self.within)
        return {
            "share": share(flags),
            "predicted": self.predicted,
            "error": error_of(flags),
            "missing": 0.0,
            "off": off,
        }

    @property
    def limits(self) -> str:
        return f"within {self.within:g} of {self.predicted:.3f}"


@dataclass(frozen=True)
class Printed:
    """Frequency of an event, compared with the mean ``printed`` probability."""

    of: str
    printed: str
    within: float = 0.05

    def read(self, found: Numbers) -> dict[str, Any]:
        flags, predicted = found[self.of], float(np.nanmean(found[self.printed]))
        return {
            "share": share(flags),
            "predicted": predicted,
            "error": error_of(flags),
            "missing": share(np.isnan(found[self.printed])),
            "off": beyond(flags, predicted - self.within, predicted + self.within),
        }

    @property
    def limits(self) -> str:
        return f"within {self.within:g} of what is printed"


@dataclass(frozen=True)
class Line:
    """One row of the table: a claim, the experiment, and the rate that checks it."""

    claim: str
    experiment: Experiment
    read: Level | Coverage | Share | Power | Printed
    note: str = ""


HEADLINE = (0.03, 0.065, 0.015)
INTERVAL = (0.93, 0.97)


def up_to(most: float, rarely: float = 0.015) -> tuple[float, float, float]:
    """Return the limits of a p-value that may be conservative."""
    return 0.0, most, rarely


def share(flags: NDArray[Any]) -> float:
    return float(np.nanmean(np.asarray(flags, dtype=np.float64)))


def beyond(flags: NDArray[Any], low: float, high: float) -> float:
    """Return the distance of a share from its limits in simulation errors, or 0 if it is within."""
    value = share(flags)
    return max(low - value, value - high, 0.0) / error_of(flags)


def error_of(flags: NDArray[Any]) -> float:
    """Compute the standard error of a share over repetitions; numbers within one repetition are dependent."""
    values = np.asarray(flags, dtype=np.float64).reshape(len(flags), -1)
    values = values[~np.isnan(values).all(axis=1)]
    each, n = np.nanmean(values, axis=1), len(values)
    seen = float(each.var(ddof=1)) if n > 1 else 0.0
    return float(np.sqrt((seen or 1.0 / (n + 2)) / n))  # an observed share of 0 or 1 still has an error
