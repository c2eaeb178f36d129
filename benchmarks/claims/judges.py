"""Audits of judged responses: biased judges, corrected by human labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.stats.judged_audit import judged_audit

from .claim import INTERVAL, Claim, Coverage, Experiment, Level, Line, up_to

__all__ = ["CLAIMS", "lines"]

Errors = Literal["normal", "rare", "binary", "ordinal"]
_UNIT = "name and prompt"
_ASSUMES = "Names and prompts are samples of their kinds; labelled responses are a random part of those of each name."
_WIDE = (0.93, 1.0)

CLAIMS = (
    Claim(
        "judged interval",
        "audit",
        "interval of a judged difference, corrected by labels",
        (),
        "The range of D, as people would label all responses, over other names and prompts.",
        "D of the labels.",
        _UNIT,
        _ASSUMES,
        "Conservative with few names, many groups, or unequal numbers of labels. Says nothing about other raters.",
    ),
    Claim(
        "judged p",
        "audit",
        "p of a judged difference, corrected by labels",
        (),
        "People would label the responses of the group differently. The result generalizes to other names and prompts.",
        "No difference on average over draws of names and prompts.",
        _UNIT,
        _ASSUMES,
        "Conservative with few names, many groups, or unequal numbers of labels.",
    ),
)


@dataclass(frozen=True)
class _World:
    """Sizes, standard deviations of labels, and errors of the judge, which scores the first group lower."""

    n: int = 20
    labels: int = 5  # of every name
    groups: int = 2
    m: int = 8
    responses: int = 5
    D: float = 0.0
    bias: float = -0.5
    errors: Errors = "normal"
    by_name: float = 0.0
    by_prompt: float = 0.0
    unequal: bool = False

    def __str__(self) -> str:
        each = f"1 to {2 * self.labels - 1}" if self.unequal else f"{self.labels}"
        plural = "" if each == "1" else "s"
        about = f"{self.groups} groups of {self.n} names, {self.m} prompts, {each} label{plural} per name"
        kinds = {
            "normal": "",
            "rare": "; errors in 10% of responses",
            "binary": "; 0 or 1, 10% of labels are 1",
            "ordinal": "; ratings from 1 to 7, the judge is lenient",
        }
        varying = "".join(
            f"; bias varies by {what} (SD {size:g})"
            for what, size in (("name", self.by_name), ("prompt", self.by_prompt))
            if size
        )
        return f"{about}; bias {self.bias:g}{kinds[self.errors]}{varying}{f'; D {self.D:g}' if self.D else ''}"


def _make(rng: np.random.Generator, world: _World) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int]]:
    """Make scores of the judge, labels, and groups."""
    groups = np.repeat(np.arange(world.groups), world.n)
    shape = len(groups), world.m, world.responses
    first = (groups == 0)[:, None, None]
    if world.errors == "binary":
        chance = np.clip(0.1 + 0.05 * rng.normal(size=(len(groups), 1, 1)), 0.0, 1.0)
        human = (rng.random(shape) < chance).astype(np.float64)
        missed = (human == 1.0) & first & (rng.random(shape) < -world.bias)
        judge = np.where(missed, 0.0, np.where(rng.random(shape) < 0.05, 1.0, human))
    else:
        human = 0.3 * rng.normal(size=(len(groups), 1, 1)) + 0.5 * rng.normal(size=(1, world.m, 1))
        human = human + 0.2 * rng.normal(size=(world.groups, world.m, 1))[groups]
        human = human + rng.normal(size=shape) + world.D * first
        error = -3.0 * (rng.random(shape) < 0.1) if world.errors == "rare" else rng.normal(size=shape)
        error = error + world.by_name * rng.normal(size=(len(groups), 1, 1))
        error = error + world.by_prompt * rng.normal(size=(world.groups, world.m, 1))[groups]
        judge = human + world.bias * first + error
        if world.errors == "ordinal":  # many scores are at the end of the scale, so that the bias depends on the text
            judge = np.clip(np.round(5.5 + judge), 1.0, 7.0)
            human = np.clip(np.round(4.0 + human), 1.0, 7.0)
    labels = np.full((len(groups), world.m * world.responses), nan)
    for i in range(len(groups)):
        size = int(rng.integers(1, 2 * world.labels)) if world.unequal else world.labels
        chosen = rng.choice(labels.shape[1], size, replace=False)
        labels[i, chosen] = human[i].ravel()[chosen]
    return judge, labels.reshape(shape), groups.tolist()


def _draw(rng: np.random.Generator, world: _World) -> Mapping[str, Any]:
    judge, labels, groups = _make(rng, world)
    audit = judged_audit(judge, labels, [f"group {g}" for g in groups], rng=rng)
    numbers: dict[str, float | None] = {}
    for name, side in (("corrected", audit.corrected), ("judge", audit.uncorrected)):
        first = side["group 0"]
        assert first.ci_low is not None
        assert first.ci_high is not None
        low, high = first.ci_low - world.D, first.ci_high - world.D
        numbers |= {f"{name} low": low, f"{name} high": high, f"{name} p": first.p_value}
    return numbers


_USUAL, _FEW_LABELS = _World(), _World(n=100, labels=1)
_MAIN = (
    _USUAL,
    replace(_USUAL, D=0.5),
    _FEW_LABELS,
    _World(n=50, labels=2),
    replace(_USUAL, errors="rare"),
    replace(_FEW_LABELS, errors="rare"),
    replace(_USUAL, by_prompt=0.5),
    replace(_FEW_LABELS, by_prompt=0.5),
    replace(_USUAL, by_name=0.3),
    replace(_USUAL, errors="ordinal"),
    replace(_FEW_LABELS, errors="ordinal"),
)
"""Two groups, 200 labels."""
_OTHER = (
    replace(_USUAL, labels=1),
    _World(n=5, labels=20),
    replace(_USUAL, unequal=True),
    _World(n=10, groups=4),
    _World(n=5, groups=8),
    _World(n=50, labels=2, errors="binary"),
    replace(_USUAL, m=40, responses=1),
)


def lines() -> list[Line]:
    """List all rows of judges."""
    interval, p = (claim.name for claim in CLAIMS)
    found = []
    for world in (*_MAIN, *_OTHER):
        drawn = Experiment(f"judged {world}", str(world), partial(_draw, world=world), 1000)
        wanted = INTERVAL if world in _MAIN else _WIDE
        found.append(Line(interval, drawn, Coverage("corrected low", "corrected high", 0.0, wanted)))
        if not world.D:
            found.append(Line(p, drawn, Level("corrected p", up_to(0.065, 0.02))))
        found.append(Line(interval, drawn, Coverage("judge low", "judge high", 0.0), "not its truth: uncorrected"))
    return found
