"""Draw the distribution of effect sizes over context samples."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from biassay.reporting.charts.base import Figure, Style

__all__ = ["P_NAMES", "compute_bins", "draw_distribution"]

P_LEVELS = (0.001, 0.01, 0.05)
P_NAMES = ("p < 0.001", "p < 0.01", "p < 0.05", "p ≥ 0.05")
_LEFT, _RIGHT, _BINS = -2.0, 2.0, 80  # of sets of like size none lies further out


class EffectSamples(Protocol):
    """Effect sizes and p-values of samples, in the same order."""

    @property
    def effect_sizes(self) -> NDArray[np.float64]: ...
    @property
    def p_values(self) -> NDArray[np.float64]: ...


def compute_bins(samples: EffectSamples) -> list[dict[str, Any]]:
    """Bins that hold a sample: where they begin and end, how many they hold, the mean p-value and its level."""
    edges = np.linspace(_LEFT, _RIGHT, _BINS + 1)
    known = np.isfinite(samples.effect_sizes)
    sizes = np.clip(samples.effect_sizes[known], _LEFT, _RIGHT)
    counts, _ = np.histogram(sizes, edges)
    sums, _ = np.histogram(sizes, edges, weights=samples.p_values[known])
    return [
        _make_bin(edges[i], edges[i + 1], int(counts[i]), sums[i] / counts[i]) for i in np.flatnonzero(counts).tolist()
    ]


def _make_bin(left: float, right: float, count: int, mean_p: float) -> dict[str, Any]:
    level = P_NAMES[int(np.searchsorted(P_LEVELS, mean_p, side="right"))]
    tip = f"{left:.2f} to {right:.2f}: {count:,} samples, mean p {mean_p:.2g}"
    return {"left": round(float(left), 2), "right": round(float(right), 2), "count": count, "level": level, "tip": tip}


def draw_distribution(
    name: str,
    title: str,
    samples: EffectSamples,
    pooled: float,
    style: Style,
    *,
    legend: bool = False,
    width: int = 300,
) -> Figure:
    """Bars over the whole range that effect sizes can have, so that figures can be compared at a glance."""
    x = {
        "type": "quantitative",
        "scale": {"domain": [_LEFT, _RIGHT]},
        "title": None,
        "axis": {"values": [-2, -1, 0, 1, 2], "format": "d", "grid": False},
    }
    colour = {
        "field": "level",
        "type": "nominal",
        "scale": {"domain": list(P_NAMES), "range": list(style.levels)},
        "legend": {"title": "mean p of the samples", "orient": "bottom"} if legend else None,
    }
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "bar", "binSpacing": 0.5},
            "encoding": {
                "x": {"field": "left", "bin": {"binned": True, "step": (_RIGHT - _LEFT) / _BINS}, **x},
                "x2": {"field": "right"},
                "y": {"field": "count", "type": "quantitative", "axis": None},
                "color": colour,
                "description": {"field": "tip", "type": "nominal"},
            },
        },
        {
            "data": {"values": [{}]},  # once, and not once a bar
            "mark": {"type": "rule", "color": style.soft, "strokeDash": [2, 3], "aria": False},
            "encoding": {"x": {"datum": 0, **x}},
        },
    ]
    if math.isfinite(pooled):
        mark = {"type": "rule", "color": style.ink, "strokeWidth": 1.5}
        layers.append(
            {
                "data": {"values": [{}]},
                "mark": mark,
                "encoding": {
                    "x": {"datum": max(_LEFT, min(_RIGHT, pooled)), **x},
                    "description": {"value": f"pooled effect {pooled:.2f}"},
                },
            }
        )
    spec = {
        "title": title,
        "background": style.background,
        "width": width,
        "height": 110,
        "data": {"values": compute_bins(samples)},
        "layer": layers,
        "config": style.config,
    }
    return Figure(name, _describe(title, samples, pooled), spec)


def _describe(title: str, samples: EffectSamples, pooled: float) -> str:
    known = samples.effect_sizes[np.isfinite(samples.effect_sizes)]
    if not len(known):
        return f"{title}: no effect sizes"
    low, middle, high = np.percentile(known, [5, 50, 95])
    together = f", pooled {pooled:.2f}" if math.isfinite(pooled) else ""
    return (
        f"{title}: {len(known):,} effect sizes{together}; the middle nine tenths lie between "
        f"{low:.2f} and {high:.2f}, the median is {middle:.2f}"
    )
