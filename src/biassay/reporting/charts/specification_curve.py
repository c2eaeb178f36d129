"""Draw a specification curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from biassay.reporting.charts.base import (
    LABELS_ONLY,
    TIP,
    Figure,
    Style,
    draw_intervals,
    draw_zero,
    encode_groups,
    make_figure,
    make_layer,
    place_names,
)

_WIDTH = 6.6  # width of a letter; browsers may use wider fonts than the layout assumes
_NAMES = ("not significant", "significant")


@dataclass(frozen=True)
class CurvePoint:
    """A specification and its effect.

    `choices` are pairs of a kind of choice and the choice made; each choice is a row below the curve.
    """

    effect: float
    low: float | None
    high: float | None
    significant: bool
    choices: tuple[tuple[str, str], ...]
    tip: str


def draw_specification_curve(
    name: str, title: str, points: Sequence[CurvePoint], style: Style, *, axis: str = "d"
) -> Figure:
    """Draw specifications from the smallest effect to the largest.

    Parameters
    ----------
    name, title : str
        File name and title of the figure.
    points : sequence of CurvePoint
        Specifications in any order; those without a finite effect are left out.
    style : Style
        Colours of charts.
    axis : str
        Title of the effect axis.

    Returns
    -------
    Figure
    """
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
    legend = {"title": None, "orient": "top", "direction": "horizontal", "columnPadding": 30}
    colour = encode_groups("found", _NAMES, (style.found[0], style.found[2]), legend)
    x = {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [-0.5, max(len(shown) - 0.5, 0.5)], "nice": False},
        "axis": None,
    }
    y = {"type": "quantitative", "title": axis}
    rows_axis = place_names("choice", "row", {**LABELS_ONLY, "labelLimit": 0, "minExtent": extent})
    shared = {"x": x, "color": colour}
    upper = [
        draw_zero(style, "y", y),
        draw_intervals("y", y, shared, strokeWidth=1.2),
        make_layer(
            "point", {"y": {"field": "effect", **y}, "description": TIP, **shared}, filled=True, size=30, opacity=1
        ),
    ]
    lower = {
        "width": 520,
        "height": {"step": 13},
        "data": {"values": chosen},
        **make_layer("tick", {"y": rows_axis, **shared}, orient="vertical", thickness=2, size=9, aria=False),
    }
    description = (
        f"{title}: {len(shown)} specifications, {sum(point.significant for point in shown)} of them significant"
    )
    curve = {"width": 520, "height": 180, "data": {"values": values}, "layer": upper}
    return make_figure(name, description, title, style, vconcat=[curve, lower], spacing=8)


def _list_choices(points: Sequence[CurvePoint]) -> list[tuple[str, str]]:
    """List all choices, those of one kind together."""
    found = dict.fromkeys(choice for point in points for choice in point.choices)
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    return sorted(found, key=lambda choice: kinds.index(choice[0]))


def _format_choice(choice: tuple[str, str]) -> str:
    kind, value = choice
    return f"{kind}: {value}"
