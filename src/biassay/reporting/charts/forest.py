"""Draw effect sizes with intervals as a forest plot."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from biassay.reporting.formats import format_count

EVIDENCE_NAMES = ("inconclusive", "before correction only", "significant")
_MAX_LABEL_WIDTH = 600  # pixels
_MAX_LABEL_CHARACTERS = 72  # per line
_STEP, _LINE = 17, 13  # height in pixels of a row with one line, and of each further line

_SHAPES = ["circle", "diamond", "square", "triangle-up"]


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest plot.

    Attributes
    ----------
    label : str
    effect_size : float
    low, high : float or None
        Ends of the interval.
    found : int
        Index of the evidence in the names of the plot.
    tip : str
        Tooltip.
    model : str
        Model, in a plot of several models.
    """

    label: str
    effect_size: float
    low: float | None
    high: float | None
    found: int
    tip: str
    model: str = ""


def draw_forest(
    name: str,
    title: str,
    rows: Sequence[ForestRow],
    style: Style,
    *,
    axis: str = "effect size",
    names: Sequence[str] = (*EVIDENCE_NAMES, "sanity check"),
    reach: float = 2.0,
) -> Figure:
    """Draw rows from top to bottom, without those whose effect is not a number.

    Rows with one label and several models share a line; colour shows the model, shape the evidence.

    Parameters
    ----------
    name, title : str
    rows : sequence of ForestRow
    style : Style
    axis : str
        Title of the axis.
    names : sequence of str
        Names of the evidence, from weak to strong.
    reach : float
        Smallest end of the axis on both sides of 0.
    """
    names = names[: max([3, *(row.found + 1 for row in rows)])]
    shown = [_drop_open_interval(row) for row in rows if math.isfinite(row.effect_size)]
    models = list(dict.fromkeys(row.model for row in shown if row.model))
    labels = [row.label for row in shown] if models else make_distinct([row.label for row in shown])
    labels = ["\n".join(wrap_label(label, _MAX_LABEL_CHARACTERS)) for label in labels]
    most_lines = max((label.count("\n") + 1 for label in labels), default=1)
    height = max(_STEP, (_STEP + _LINE * (most_lines - 1)) / max(len(models), 1))
    values = [
        {
            "row": at,
            "effect": r.effect_size,
            "low": r.low,
            "high": r.high,
            "found": names[r.found],
            "tip": r.tip,
            "model": r.model,
            "place": i,
        }
        for i, (at, r) in enumerate(zip(labels, shown, strict=True))
    ]
    reach = max([reach, *(abs(n) for r in shown for n in (r.effect_size, r.low, r.high) if n is not None)])
    y_axis = {**LABELS_ONLY, "labelLimit": _MAX_LABEL_WIDTH, **split_labels(most_lines)}
    y = place_names("row", "place", y_axis)
    x = {"type": "quantitative", "scale": {"domain": [-reach, reach]}, "title": axis}
    legend = {"title": None, "orient": "top", "direction": "horizontal", "columns": 4, "columnPadding": 22}
    colour = encode_groups("found", names, [*style.found, style.soft][: len(names)], legend)
    shape = encode_groups("found", names, _SHAPES[: len(names)], legend if models else None)
    if models:
        colour = encode_groups("model", models, style.curves[: len(models)], legend)
    shared: dict[str, Any] = {"y": y, "color": colour, "description": TIP}
    if models:
        shared["yOffset"] = {"field": "model", "type": "nominal", "sort": models}
    layers = [
        draw_zero(style, "x", x),
        draw_intervals("x", x, shared, strokeWidth=2),
        make_layer("point", {"x": {"field": "effect", **x}, "shape": shape, **shared}, filled=True, size=50, opacity=1),
    ]
    return make_figure(
        name,
        _describe(title, shown, names[2]),
        title,
        style,
        width=420,
        height={"step": height, "for": "offset"} if models else {"step": height},
        data={"values": values},
        layer=layers,
    )


def split_labels(most_lines: int) -> dict[str, str]:
    """Return the entry of an axis whose labels have several lines."""
    return {"labelExpr": "split(datum.label, '\\n')"} if most_lines > 1 else {}


def wrap_label(label: str, width: int) -> list[str]:
    """Wrap the label of a row at spaces."""
    return textwrap.wrap(label, width, break_long_words=False, break_on_hyphens=False) or [label]


def _drop_open_interval(row: ForestRow) -> ForestRow:
    """Drop an interval with an end that is not a number."""
    known = all(end is not None and math.isfinite(end) for end in (row.low, row.high))
    return row if known else replace(row, low=None, high=None)


def _describe(title: str, rows: Sequence[ForestRow], most: str) -> str:
    return f"{title}: {format_count(len(rows), 'row')} with intervals; {most}: {sum(row.found == 2 for row in rows)}"


def make_distinct(labels: Sequence[str]) -> list[str]:
    """Add numbers to equal labels, because rows with the same label would be drawn over each other."""
    seen: dict[str, int] = {}
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
    if len(seen) == len(labels):
        return list(labels)
    return [f"{label} ({index})" for index, label in enumerate(labels, 1)]
