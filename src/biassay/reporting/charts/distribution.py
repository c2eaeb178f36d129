"""Draw the distribution of effect sizes over context samples."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from biassay.reporting.charts.base import TIP, Figure, Style, draw_zero, encode_groups, make_figure, make_layer

P_LEVELS = (0.001, 0.01, 0.05)
P_NAMES = ("p < 0.001", "p < 0.01", "p < 0.05", "p ≥ 0.05")
_LEFT, _RIGHT, _BINS = -2.0, 2.0, 80  # limits of d for target sets of equal size


class EffectSamples(Protocol):
    """Effect sizes and p-values of samples, in the same order."""

    @property
    def effect_sizes(self) -> NDArray[np.float64]:
        """Effect sizes."""

    @property
    def p_values(self) -> NDArray[np.float64]:
        """P-values."""


def compute_bins(samples: EffectSamples) -> list[dict[str, Any]]:
    """Count the samples in every bin that has any, with their mean p-value and its level."""
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
) -> Figure:
    """Draw a histogram of the effect sizes of samples.

    All histograms share one axis, so that they can be compared at a glance.

    Parameters
    ----------
    name, title : str
        File name and title of the figure.
    samples : EffectSamples
        Effect sizes and p-values.
    pooled : float
        Pooled effect size, drawn as a vertical line.
    style : Style
        Colours of charts.
    legend : bool
        If True, explain the colours below the bars.

    Returns
    -------
    Figure
    """
    x = {
        "type": "quantitative",
        "scale": {"domain": [_LEFT, _RIGHT]},
        "title": None,
        "axis": {"values": [-2, -1, 0, 1, 2], "format": "d", "grid": False},
    }
    key = {"title": "mean p of the samples", "orient": "bottom"} if legend else None
    bars = {
        "x": {"field": "left", "bin": {"binned": True, "step": (_RIGHT - _LEFT) / _BINS}, **x},
        "x2": {"field": "right"},
        "y": {"field": "count", "type": "quantitative", "axis": None},
        "color": encode_groups("level", P_NAMES, style.levels, key),
        "description": TIP,
    }
    layers: list[dict[str, Any]] = [
        make_layer("bar", bars, binSpacing=0.5),
        draw_zero(style, "x", x, dash=(2, 3)),
    ]
    if math.isfinite(pooled):
        line = {"x": {"datum": max(_LEFT, min(_RIGHT, pooled)), **x}}
        line["description"] = {"value": f"pooled effect {pooled:.2f}"}
        layers.append({"data": {"values": [{}]}, **make_layer("rule", line, color=style.ink, strokeWidth=1.5)})
    data = {"values": compute_bins(samples)}
    description = _describe(title, samples, pooled)
    return make_figure(name, description, title, style, width=300, height=110, data=data, layer=layers)


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
