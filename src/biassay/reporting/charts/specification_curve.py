"""Draw a specification curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from biassay.reporting.charts.base import Figure, Style, sort_by_field

__all__ = ["CurvePoint", "draw_specification_curve"]

_WIDTH = 6.6  # of a letter in a browser; it may be wider than where the figure is laid out
_NAMES = ("not significant", "significant")


@dataclass(frozen=True)
class CurvePoint:
    """``choices`` are what the specification consists of, by kind; each is a row below the curve."""

    effect: float
    low: float | None
    high: float | None
    significant: bool
    choices: tuple[tuple[str, str], ...]
    tip: str


def draw_specification_curve(
    name: str, title: str, points: Sequence[CurvePoint], style: Style, *, axis: str = "d"
) -> Figure:
    """Points from the smallest effect to the largest."""
    shown = sorted((point for point in points if math.isfinite(point.effect)), key=lambda point: point.effect)
    rows = _list_choices(points)
    extent = _WIDTH * max((len(_format_choice(choice)) for choice in rows), default=0)
    values = [
        {
            "place": i,
            "effect": point.effect,
            "low": point.low,
            "high": point.high,
            "found": _NAMES[point.significant],
            "tip": point.tip,
        }
        for i, point in enumerate(shown)
    ]
    chosen = [
        {"place": i, "choice": _format_choice(choice), "row": rows.index(choice), "found": _NAMES[point.significant]}
        for i, point in enumerate(shown)
        for choice in point.choices
    ]
    colour = {
        "field": "found",
        "type": "nominal",
        "scale": {"domain": list(_NAMES), "range": [style.found[0], style.found[2]]},
        "legend": {"title": None, "orient": "top", "direction": "horizontal", "columnPadding": 30},
    }
    x = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [-0.5, max(len(shown) - 0.5, 0.5)], "nice": False},
        "axis": None,
    }
    y = {"type": "quantitative", "title": axis}
    upper = [
        {
            "data": {"values": [{}]},
            "mark": {"type": "rule", "color": style.soft, "strokeDash": [3, 3], "aria": False},
            "encoding": {"y": {"datum": 0, **y}},
        },
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.5},
            "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
            "encoding": {
                "x": x,
                "y": {"field": "effect", **y},
                "color": colour,
                "description": {"field": "tip", "type": "nominal"},
            },
        },
    ]
    lower = {
        "width": 520,
        "height": {"step": 13},
        "data": {"values": chosen},
        "mark": {"type": "tick", "orient": "vertical", "thickness": 2, "size": 9, "aria": False},
        "encoding": {
            "x": x,
            "y": {
                "field": "choice",
                "type": "nominal",
                "sort": sort_by_field("row"),
                "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": 0, "minExtent": extent},
            },
            "color": colour,
        },
    }
    spec = {
        "title": title,
        "background": style.background,
        "vconcat": [{"width": 520, "height": 180, "data": {"values": values}, "layer": upper}, lower],
        "spacing": 8,
        "config": style.config,
    }
    sure = sum(point.significant for point in shown)
    return Figure(name, f"{title}: {len(shown)} specifications, {sure} of them significant", spec)


def _list_choices(points: Sequence[CurvePoint]) -> list[tuple[str, str]]:
    """All choices, those of one kind together."""
    found = dict.fromkeys(choice for point in points for choice in point.choices)
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    return sorted(found, key=lambda choice: kinds.index(choice[0]))


def _format_choice(choice: tuple[str, str]) -> str:
    kind, value = choice
    return f"{kind}: {value}"
