"""The distribution of effect sizes over samples as a small figure: bars, ticks and two lines, in the figure's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from biassay.results.samples import Samples

__all__ = ["P_NAMES", "Bar", "Figure", "Tick", "figure_of"]

P_LEVELS = (0.001, 0.01, 0.05)
P_NAMES = ("p < 0.001", "p < 0.01", "p < 0.05", "p ≥ 0.05")
_WIDTH, _FLOOR, _HEIGHT = 300.0, 110.0, 126.0
_LEFT, _RIGHT, _BINS = -2.0, 2.0, 80  # of sets of like size none lies further out


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    shade: int
    title: str


@dataclass(frozen=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True)
class Figure:
    """All that is drawn. ``floor`` is the height of the axis; ``zero`` and ``pooled`` are places on it."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    zero: float
    pooled: float
    description: str
    width: float = _WIDTH
    height: float = _HEIGHT
    floor: float = _FLOOR


def figure_of(samples: Samples, pooled: float, name: str) -> Figure:
    """Bars over the whole range that effect sizes can have, so that figures can be compared at a glance."""
    edges = np.linspace(_LEFT, _RIGHT, _BINS + 1)
    sizes = np.clip(samples.effect_sizes, _LEFT, _RIGHT)
    counts, _ = np.histogram(sizes, edges)
    sums, _ = np.histogram(sizes, edges, weights=samples.p_values)
    bars = tuple(
        _bar(edges[i], edges[i + 1], int(counts[i]), sums[i] / counts[i], int(counts.max()))
        for i in np.flatnonzero(counts).tolist()
    )
    low, middle, high = np.percentile(samples.effect_sizes, [5, 50, 95])
    description = (
        f"{name}: {len(sizes):,} effect sizes, pooled {pooled:.2f}; the middle nine tenths lie between {low:.2f} and "
        f"{high:.2f}, the median is {middle:.2f}"
    )
    inward = {_LEFT: 6.0, _RIGHT: -6.0}  # the outermost numbers would be cut off
    ticks = tuple(Tick(round(_place(v) + inward.get(v, 0.0), 1), f"{v:g}") for v in (-2.0, -1.0, 0.0, 1.0, 2.0))
    return Figure(bars, ticks, round(_place(0.0), 1), round(_place(pooled), 1), description)


def _bar(left: float, right: float, count: int, mean_p: float, most: int) -> Bar:
    height = round((_FLOOR - 4.0) * count / most, 2)
    title = f"{left:.2f} to {right:.2f}: {count:,} samples, mean p {mean_p:.2g}"
    shade = int(np.searchsorted(P_LEVELS, mean_p, side="right"))
    return Bar(round(_place(left), 2), _FLOOR - height, round(_WIDTH / _BINS - 0.4, 2), height, shade, title)


def _place(value: float) -> float:
    return _WIDTH * (float(np.clip(value, _LEFT, _RIGHT)) - _LEFT) / (_RIGHT - _LEFT)
