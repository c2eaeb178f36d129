"""Draw detection (ROC) curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biassay.reporting.charts.base import TIP, Figure, Style, encode_groups, make_figure, make_layer


@dataclass(frozen=True)
class RocCurve:
    """Counts of detections at every threshold, and the rates at the one in use.

    Attributes
    ----------
    thresholds : sequence of float
        In order.
    tp, fp, fn, tn : sequence of int
        True and false positives, false and true negatives, per threshold.
    area : float
        Area under the curve.
    chosen : float
        Threshold in use.
    recall, false_positive_rate : float
        Rates at this threshold.
    """

    thresholds: Sequence[float]
    tp: Sequence[int]
    fp: Sequence[int]
    fn: Sequence[int]
    tn: Sequence[int]
    area: float
    chosen: float
    recall: float
    false_positive_rate: float


def draw_roc(name: str, title: str, curves: Mapping[str, RocCurve], style: Style) -> Figure:
    """Draw a line per task, a point per threshold and a ring at the threshold in use.

    Parameters
    ----------
    name, title : str
        File name and title of the figure.
    curves : dict of str to RocCurve
        Curves by the label of their task.
    style : Style
        Colours of charts.

    Returns
    -------
    Figure
    """
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
    axes = {
        field: {"field": field, "type": "quantitative", "title": f"{name} positive rate", "scale": {"domain": [0, 1]}}
        for field, name in (("x", "false"), ("y", "true"))
    }
    legend = {"title": None, "orient": "bottom", "columns": 1, "symbolType": "stroke"}
    colours = [style.curves[i % len(style.curves)] for i in range(len(labels))]
    colour = encode_groups("task", labels, colours, legend)
    order = {"field": "order", "type": "quantitative"}
    point = {**axes, "color": {**colour, "legend": None}, "description": TIP}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
            **make_layer("line", axes, color=style.soft, strokeDash=[2, 3], strokeWidth=1, aria=False),
        },
        make_layer("line", {**axes, "color": colour, "order": order}, strokeWidth=1.5, aria=False),
        make_layer("point", point, filled=True, size=14, opacity=1),
        {"data": {"values": chosen}, **make_layer("point", point, size=90, strokeWidth=2)},
    ]
    areas = "; ".join(f"{label} has an area under the curve of {c.area:.2f}" for label, c in curves.items())
    config, data = {**style.config, "axisY": {}}, {"values": points}
    return make_figure(
        name, f"{title}: {areas}", title, style, width=260, height=260, data=data, layer=layers, config=config
    )


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
