"""Topic effects: tests that share target words, with true effects that differ between tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from biassay.stats.topic_effect import correlate_errors, summarize_topic

from .claim import INTERVAL, Claim, Coverage, Experiment, Level, Line, up_to

__all__ = ["CLAIMS", "lines"]

_UNIT = "test and word"
_ASSUMES = "Tests are a sample of tests of the topic, and words a sample of their kinds; true effects are normal."

CLAIMS = (
    Claim(
        "topic interval",
        "associations",
        "interval of a topic effect",
        ("associations.topics.topic_ci_low", "associations.topics.topic_ci_high"),
        "The range of the mean effect of tests of this topic.",
        "The mean effect from which tests are drawn.",
        _UNIT,
        _ASSUMES,
    ),
    Claim(
        "topic p",
        "associations",
        "p of a topic effect",
        ("associations.topics.topic_p_value",),
        "The mean effect of tests of this topic is not 0.",
        "The mean effect is 0.",
        _UNIT,
        _ASSUMES,
    ),
)


@dataclass(frozen=True)
class _World:
    """Numbers of tests and of words per set, SD of true effects, share of tests with the same target words."""

    k: int = 6
    n: int = 8
    between: float = 0.3
    sharing: float = 0.5
    heavy: bool = False

    def __str__(self) -> str:
        tails = "; t4 word effects" if self.heavy else ""
        shared = f"{self.sharing:.0%} share their target words" if self.sharing else "no shared words"
        return f"{self.k} tests, {self.n} words per set, {shared}; SD between tests {self.between:g}{tails}"


_WORLDS = (
    _World(),
    _World(sharing=0.0),
    _World(sharing=1.0),
    _World(sharing=1.0, between=0.0),
    _World(k=3, sharing=1.0, between=0.0),
    _World(k=12, sharing=1.0, between=0.0),
    _World(k=12),
    _World(sharing=1.0, heavy=True),
    _World(n=24),
)


def _draw(rng: np.random.Generator, world: _World) -> Mapping[str, Any]:
    """Draw words and tests with mean effect 0, and summarize them with and without what they share."""

    def make(size: int) -> Any:
        return rng.standard_t(4, size=size) / np.sqrt(2.0) if world.heavy else rng.normal(size=size)

    n = world.n
    common = 0.4 * make(2 * n)
    true = world.between * rng.normal(size=world.k)
    effects, errors, influences = [], [], []
    for test in range(world.k):
        shared = test < world.sharing * world.k
        targets = (common if shared else 0.4 * make(2 * n)) + 0.15 * rng.normal(size=2 * n)
        attributes = 0.3 * make(2 * n)
        sides = (targets[:n], targets[n:], attributes[:n], attributes[n:])
        effects.append(true[test] + sides[0].mean() - sides[1].mean() + sides[2].mean() - sides[3].mean())
        errors.append(np.sqrt(sum(side.var(ddof=1) / n for side in sides)))
        moved = np.concatenate([sign * (side - side.mean()) for sign, side in zip((1, -1, 1, -1), sides, strict=True)])
        names = [f"{'' if shared else test}t{i}" for i in range(2 * n)] + [f"{test}a{i}" for i in range(2 * n)]
        influences.append(dict(zip(names, moved / np.sqrt(n * (n - 1.0)), strict=True)))
    found = summarize_topic(effects, errors, correlate_errors(influences), [2.0 * (n - 1)] * world.k)
    alone = summarize_topic(effects, errors)
    return {
        "low": found.ci_low,
        "high": found.ci_high,
        "p": found.p_value,
        "independent low": alone.ci_low,
        "independent high": alone.ci_high,
    }


def lines() -> list[Line]:
    """List all rows of topics."""
    interval, p = (claim.name for claim in CLAIMS)
    rows = []
    for world in _WORLDS:
        drawn = Experiment(f"topic {world}", str(world), partial(_draw, world=world), 1000)
        rows.append(Line(interval, drawn, Coverage("low", "high", 0.0, INTERVAL)))
        rows.append(Line(p, drawn, Level("p", up_to(0.07, 0.02))))
        rows.append(Line(interval, drawn, Coverage("independent low", "independent high", 0.0), "as if independent"))
    return rows
