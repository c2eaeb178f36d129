"""Draw detection (ROC) curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from biassay.reporting.charts.base import Figure, Style

__all__ = ["RocCurve", "draw_roc"]


class RocCurve(Protocol):
    """Counts at every threshold, and the rates at the one that is used."""

    @property
    def thresholds(self) -> Sequence[float]: ...
    @property
    def tp(self) -> Sequence[int]: ...
    @property
    def fp(self) -> Sequence[int]: ...
    @property
    def fn(self) -> Sequence[int]: ...
    @property
    def tn(self) -> Sequence[int]: ...
    @property
    def area(self) -> float: ...
    @property
    def chosen(self) -> float: ...
    @property
    def recall(self) -> float: ...
    @property
    def false_positive_rate(self) -> float: ...


def draw_roc(name: str, title: str, curves: Mapping[str, RocCurve], style: Style) -> Figure:
    """A line for every task, a point for every threshold, a ring at the one in use."""
    labels = list(curves)
    points = [point for label, curve in curves.items() for point in _make_points(label, curve)]
    chosen = [
        {
            "task": label,
            "x": c.false_positive_rate,
            "y": c.recall,
            "tip": f"{label}: the threshold in use, {c.chosen:g}",
        }
        for label, c in curves.items()
    ]
    x = {"field": "x", "type": "quantitative", "title": "false positive rate", "scale": {"domain": [0, 1]}}
    y = {"field": "y", "type": "quantitative", "title": "true positive rate", "scale": {"domain": [0, 1]}}
    colour = {
        "field": "task",
        "type": "nominal",
        "scale": {"domain": labels, "range": [style.curves[i % len(style.curves)] for i in range(len(labels))]},
        "legend": {"title": None, "orient": "bottom", "columns": 1, "symbolType": "stroke"},
    }
    tip = {"field": "tip", "type": "nominal"}
    axes = {"x": x, "y": y}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
            "mark": {"type": "line", "color": style.soft, "strokeDash": [2, 3], "strokeWidth": 1, "aria": False},
            "encoding": axes,
        },
        {
            "mark": {"type": "line", "strokeWidth": 1.5, "aria": False},
            "encoding": {**axes, "color": colour, "order": {"field": "order", "type": "quantitative"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 14, "opacity": 1},
            "encoding": {**axes, "color": {**colour, "legend": None}, "description": tip},
        },
        {
            "data": {"values": chosen},
            "mark": {"type": "point", "size": 90, "strokeWidth": 2},
            "encoding": {**axes, "color": {**colour, "legend": None}, "description": tip},
        },
    ]
    spec = {
        "title": title,
        "background": style.background,
        "width": 260,
        "height": 260,
        "data": {"values": points},
        "layer": layers,
        "config": {**style.config, "axisY": {}},
    }
    areas = "; ".join(f"{label} has an area under the curve of {c.area:.2f}" for label, c in curves.items())
    return Figure(name, f"{title}: {areas}", spec)


def _make_points(label: str, curve: RocCurve) -> list[dict[str, Any]]:
    positives, negatives = curve.tp[0] + curve.fn[0], curve.fp[0] + curve.tn[0]
    rates = [(fp / negatives, tp / positives) for tp, fp in zip(curve.tp, curve.fp, strict=True)]
    return [
        {
            "task": label,
            "order": order,
            "x": x,
            "y": y,
            "tip": f"{label}, threshold {threshold:g}: true positive rate {y:.2f}, false positive rate {x:.2f}",
        }
        for order, (threshold, (x, y)) in enumerate(zip(curve.thresholds, rates, strict=True))
    ]
