"""Draw effect sizes with intervals as a forest plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from biassay.reporting.charts.base import Figure, Style, sort_by_field
from biassay.reporting.formats import format_count

__all__ = ["EVIDENCE_NAMES", "MAX_LABEL_WIDTH", "ForestRow", "draw_forest", "make_distinct"]

EVIDENCE_NAMES = ("inconclusive", "before correction only", "significant")
MAX_LABEL_WIDTH = 420
"""Pixels of the names of rows at most."""


@dataclass(frozen=True)
class ForestRow:
    """``found`` is a place in the names of what was found; ``tip`` is shown to who points at the row."""

    label: str
    effect_size: float
    low: float | None
    high: float | None
    found: int
    tip: str


def draw_forest(
    name: str,
    title: str,
    rows: Sequence[ForestRow],
    style: Style,
    *,
    axis: str = "effect size",
    names: Sequence[str] = EVIDENCE_NAMES,
    reach: float = 2.0,
) -> Figure:
    """Rows from top to bottom as given; what is not a number is left out. The axis goes to ``reach`` at least."""
    shown = [_drop_open_interval(row) for row in rows if math.isfinite(row.effect_size)]
    labels = make_distinct([row.label for row in shown])
    values = [
        {
            "row": at,
            "effect": r.effect_size,
            "low": r.low,
            "high": r.high,
            "found": names[r.found],
            "tip": r.tip,
            "place": i,
        }
        for i, (at, r) in enumerate(zip(labels, shown, strict=True))
    ]
    reach = max([reach, *(abs(n) for r in shown for n in (r.effect_size, r.low, r.high) if n is not None)])
    y = {
        "field": "row",
        "type": "nominal",
        "sort": sort_by_field("place"),
        "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": MAX_LABEL_WIDTH},
    }
    x = {"type": "quantitative", "scale": {"domain": [-reach, reach]}, "title": axis}
    colour = {
        "field": "found",
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(style.found)},
        "legend": {"title": None, "orient": "top", "direction": "horizontal", "columns": 3, "columnPadding": 22},
    }
    tip = {"field": "tip", "type": "nominal"}
    layers = [
        {
            "data": {"values": [{}]},  # once, and not once a row
            "mark": {"type": "rule", "color": style.soft, "strokeDash": [3, 3], "aria": False},
            "encoding": {"x": {"datum": 0, **x}},
        },
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {
                "x": {"field": "low", **x},
                "x2": {"field": "high"},
                "y": y,
                "color": colour,
                "description": tip,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
            "encoding": {
                "x": {"field": "effect", **x},
                "y": y,
                "color": colour,
                "shape": {
                    "field": "found",
                    "type": "nominal",
                    "scale": {"domain": list(names), "range": ["circle", "diamond", "square"]},
                    "legend": None,
                },
                "description": tip,
            },
        },
    ]
    spec = {
        "title": title,
        "background": style.background,
        "width": 420,
        "height": {"step": 17},
        "data": {"values": values},
        "layer": layers,
        "config": style.config,
    }
    return Figure(name, _describe(title, shown, names[2]), spec)


def _drop_open_interval(row: ForestRow) -> ForestRow:
    """An interval with an end that is not a number is no interval."""
    known = all(end is not None and math.isfinite(end) for end in (row.low, row.high))
    return row if known else replace(row, low=None, high=None)


def _describe(title: str, rows: Sequence[ForestRow], most: str) -> str:
    return f"{title}: {format_count(len(rows), 'row')} with intervals; {most}: {sum(row.found == 2 for row in rows)}"


def make_distinct(labels: Sequence[str]) -> list[str]:
    """Rows with the same label would be drawn over each other."""
    seen: dict[str, int] = {}
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
    if len(seen) == len(labels):
        return list(labels)
    return [f"{label} ({place})" for place, label in enumerate(labels, 1)]
