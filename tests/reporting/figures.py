"""Figures of every kind with custom names and numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from biassay.reporting.charts.base import Figure, Style
from biassay.reporting.charts.distribution import draw_distribution
from biassay.reporting.charts.forest import ForestRow, draw_forest
from biassay.reporting.charts.matrix import MatrixCell, draw_matrix
from biassay.reporting.charts.profiles import draw_profile
from biassay.reporting.charts.roc import RocCurve, draw_roc
from biassay.studies.associations.results import ContextSamples

HOSTILE = '<script>alert(1)</script>" onload="alert(1)'
ROWS = (
    ForestRow("one", 0.5, -0.2, 1.2, 2, "first"),
    ForestRow("two", -1.25, None, None, 0, "second"),
    ForestRow("three", 1.75, 1.5, 2.5, 1, "third"),
)


CURVE = RocCurve(
    thresholds=(-1.0, 0.0, 1.0), tp=(2, 1, 0), fp=(3, 0, 0), fn=(0, 1, 2), tn=(0, 3, 3),
    area=0.83, chosen=0.0, recall=0.5, false_positive_rate=0.0,
)  # fmt: skip


def samples(spread: float = 0.6, n: int = 500) -> ContextSamples:
    rng = np.random.default_rng(1)
    return ContextSamples(rng.normal(0.3, spread, n), np.ones(n), rng.random(n))


def named_forest(name: str, style: Style) -> Figure:
    return draw_forest("f", name, [dataclasses.replace(row, label=name, tip=name) for row in ROWS], style)


def named_matrix(name: str, style: Style) -> Figure:
    cells = [MatrixCell(name, test, found, "x", name) for test, found in ((name, 2), ("b", None), ("c", 1), ("d", 0))]
    return draw_matrix("m", name, cells, [name, "b", "c", "d"], [name], style)


def named_roc(name: str, style: Style) -> Figure:
    return draw_roc("r", name, {name: CURVE, "other": CURVE}, style)


def named_profile(name: str, style: Style) -> Figure:
    return draw_profile("p", name, [name, "c-d"], {name: name, "c-d": "wit"}, [0.5, -0.25], [20.0, 90.0], style)


def named_distribution(name: str, style: Style) -> Figure:
    return draw_distribution("d", name, samples(), 0.3, style, legend=True)


ALL: dict[str, Callable[[str, Style], Figure]] = {
    "forest": named_forest,
    "matrix": named_matrix,
    "roc": named_roc,
    "profile": named_profile,
    "distribution": named_distribution,
}
every_figure = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


def parts(node: Any) -> Iterator[dict[str, Any]]:
    """All objects inside a description."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from parts(inner)
