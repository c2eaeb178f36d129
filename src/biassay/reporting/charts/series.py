"""Draw the growth of tests over a series of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biassay.reporting.charts.base import TIP, Figure, Style, draw_intervals, make_figure, make_layer, place_names
from biassay.reporting.formats import format_decimal, format_interval
from biassay.results.comparison import SeriesPoint

_COLUMNS = 3


def draw_series(
    name: str, title: str, panels: Mapping[str, Sequence[SeriesPoint]], style: Style, *, margin: float
) -> Figure:
    """Draw one panel per test: growth at each checkpoint with its band, the trend, and the margin.

    Parameters
    ----------
    name, title : str
        File name and title of the figure.
    panels : dict of str to sequence of SeriesPoint
        Points of each test in order, by the heading of its panel.
    style : Style
        Colours of charts.
    margin : float
        Growth to ignore, drawn as dashed lines.

    Returns
    -------
    Figure
    """
    labels = list(dict.fromkeys(point.checkpoint for points in panels.values() for point in points))
    values = [
        {
            "panel": panel,
            "checkpoint": point.checkpoint,
            "growth": point.growth,
            "low": point.low,
            "high": point.high,
            "trend": point.trend,
            "tip": f"{panel}, {point.checkpoint}: growth {format_decimal(point.growth)} "
            f"{format_interval(point.low, point.high)}, effect {format_decimal(point.effect)}",
        }
        for panel, points in panels.items()
        for point in points
    ]
    x_axis = {"title": None, "labelLimit": 90, "labelOverlap": True}
    x = {**place_names("checkpoint", labels, x_axis), "scale": {"type": "point"}}
    y = {"type": "quantitative", "title": None, "axis": {"tickCount": 4}}
    trend, growth = ({"x": x, "y": {"field": field, **y}} for field in ("trend", "growth"))
    lines = [(0.0, [1, 0])] + [(sign * margin, [3, 3]) for sign in (-1.0, 1.0)]
    layers: list[dict[str, Any]] = [
        make_layer("rule", {"y": {"datum": at, **y}}, color=style.soft, strokeDash=dash, strokeWidth=0.7, aria=False)
        for at, dash in lines
    ]
    layers += [
        draw_intervals("y", y, {"x": x}, "area", color=style.found[1], opacity=0.25, aria=False),
        make_layer("line", trend, color=style.curves[1], strokeDash=[6, 3], strokeWidth=1.5, aria=False),
        make_layer("line", growth, color=style.found[2], strokeWidth=1.5, aria=False),
        make_layer("point", {**growth, "description": TIP}, color=style.found[2], filled=True, size=30, opacity=1),
    ]
    header = {"title": None, "labelColor": style.ink, "labelFontSize": 11, "labelLimit": 210, "labelAnchor": "start"}
    ends = "; ".join(
        f"{panel} {format_decimal(points[-1].trend - points[0].trend)}" for panel, points in panels.items()
    )
    return make_figure(
        name,
        f"{title}, trend from the first checkpoint to the last: {ends}",
        title,
        style,
        data={"values": values},
        facet={"field": "panel", "type": "nominal", "sort": list(panels), "header": header},
        columns=min(_COLUMNS, len(panels)),
        spec={"width": 150, "height": 110, "layer": layers},
    )
