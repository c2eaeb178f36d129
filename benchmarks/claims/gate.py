"""The gate: how often a new model is called worse that is, and one that is not."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

import biassay
from biassay.results.verdicts import LEVEL, MARGIN
from biassay.stats.power import Design
from biassay.stats.stronger import TwoModels

from .associations import components
from .claim import Claim, Experiment, Line, Power, Share
from .worlds import Floats, Held, Sizes, crossed_table, vectors

__all__ = ["CLAIMS", "lines"]

_TESTS = 5
_EIGHT = (8, 8, 8, 8)
_WORLDS: tuple[tuple[Sizes, float, float, float], ...] = (  # sizes, |d| on the old model, growth, agreement
    (_EIGHT, 0.5, 0.5, 0.9),
    (_EIGHT, 1.0, 0.5, 0.99),
    (_EIGHT, 0.5, 1.0, 0.9),
    (_EIGHT, 0.5, 1.3, 0.9),
    ((16, 16, 25, 25), 0.5, 0.5, 0.9),
    ((16, 16, 25, 25), 1.0, 0.5, 0.9),
    ((16, 16, 25, 25), 0.5, 1.0, 0.9),
)

CLAIMS = (
    Claim(
        "gate power",
        "associations",
        "`compare`: power of the gate (`tests power --gate`)",
        (),
        "How often a test is called worse whose absolute d has grown by so much.",
        "Growths of 0.5 to 1.3, at a level of .01.",
        "word, on both sides, the same for both models",
        "Normal components as large as was said, and models that agree as was said.",
    ),
    Claim(
        "gate",
        "associations",
        "`compare`: the new model is worse",
        (),
        "Of models that differ by noise alone at most 1 in 100 fails `--fail-if worse`; one that is the same, never.",
        "No test has a larger absolute d on the new model.",
        "word, on both sides, the same for both models",
        "Words are a sample of their kind.",
    ),
)


@cache
def _cache() -> str:
    return tempfile.mkdtemp(prefix="biassay-validity-")


def _tests(sizes: Sizes, number: int) -> dict[str, dict[str, list[str]]]:
    counts = dict(zip("XYAB", sizes, strict=True))
    return {f"test{t}": {r: [f"{r}{t}-{i}" for i in range(of)] for r, of in counts.items()} for t in range(number)}


def _model(tables: list[Floats], sizes: Sizes) -> Held:
    """A model with these cosines, a table for every test."""
    found: dict[str, Floats] = {}
    for (_, words), table in zip(_tests(sizes, len(tables)).items(), tables, strict=True):
        for role, rows in zip("XYAB", vectors(table, sizes[0], sizes[2]), strict=True):
            found |= dict(zip(words[role], rows, strict=True))
    width = sum(sizes) + 1
    return Held({word: np.pad(row, (0, width - len(row))) for word, row in found.items()})


def _compared(
    rng: np.random.Generator, sizes: Sizes, effects: tuple[float, float], agreement: float, number: int
) -> Mapping[str, Any]:
    """Both models have the same words, which go together by so much; effects are d by word."""
    parts = components(sizes)
    D, more = (Design(parts, sizes).D_of(d) for d in effects)
    old, new = [], []
    for _ in range(number):
        one, other = (crossed_table(rng, sizes, parts) for _ in range(2))
        effect = crossed_table(rng, sizes, dataclasses.replace(parts, targets=0.0, attributes=0.0, residual=0.0), 1.0)
        old.append(one + D * effect)
        new.append(agreement * one + np.sqrt(1.0 - agreement**2) * other + more * effect)
    models = {"old": _model(old, sizes), "new": _model(new, sizes)}
    found = biassay.compare(biassay.run(models, _tests(sizes, number), random_sets=0, cache=_cache()))
    return {"failed": bool(found.failed("worse")), "missed": not found.failed("worse")}


def _same(rng: np.random.Generator) -> Mapping[str, Any]:
    """Measured twice, under two names."""
    tables = [crossed_table(rng, _EIGHT, components(_EIGHT)) for _ in range(_TESTS)]
    models = {name: _model(tables, _EIGHT) for name in ("old", "new")}
    run = biassay.run(models, _tests(_EIGHT, _TESTS), random_sets=0, cache=_cache())
    return {"failed": bool(biassay.compare(run).failed("not-shown"))}


def lines() -> list[Line]:
    found = []
    for sizes, old, growth, agreement in _WORLDS:
        parts = components(sizes)
        printed = TwoModels(parts, parts, (agreement,) * 3, sizes, old, 1.0 - LEVEL, MARGIN).power(growth)
        assert printed is not None
        world = Experiment(
            f"gate {sizes} {old} {growth} {agreement}",
            f"{sizes[0]}, {sizes[1]} targets, {sizes[2]}, {sizes[3]} attributes, models agree by {agreement:g}",
            partial(_compared, sizes=sizes, effects=(old, old + growth), agreement=agreement, number=1),
            250 if sizes == _EIGHT else 200,
        )
        found.append(Line("gate power", world, Power("missed", printed), f"d from {old:g} to {old + growth:g}"))
    for d, agreement in ((0.0, 0.7), (1.0, 0.7), (1.0, 0.98)):
        world = Experiment(
            f"gate noise {d} {agreement}",
            f"two models that differ by noise, {_TESTS} tests of 8 words a set, models agree by {agreement:g}",
            partial(_compared, sizes=_EIGHT, effects=(d, d), agreement=agreement, number=_TESTS),
            200,
        )
        found.append(Line("gate", world, Share("failed", 0.01), f"d about {d:g} in both" if d else "no effect"))
    same = Experiment("gate same", f"the same model twice, {_TESTS} tests of 8 words a set", _same, 100)
    return [*found, Line("gate", same, Share("failed", 0.01), "`--fail-if not-shown`")]
