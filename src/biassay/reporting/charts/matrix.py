"""Draw a matrix of tests by models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biassay.reporting.charts.base import Figure, Style, sort_by_field
from biassay.reporting.charts.forest import EVIDENCE_NAMES, MAX_LABEL_WIDTH
from biassay.reporting.formats import format_count

__all__ = ["MatrixCell", "draw_matrix"]

_UNREACHABLE, _UNMEASURED = "too few words to tell", "not measured"
_BESIDE = 8  # models up to which the legend stands beside the cells, for below them it would be wider than they are


@dataclass(frozen=True)
class MatrixCell:
    """``found`` is a place in `forest.FOUND`, 3 where there are too few words to tell, None where nothing was measured.

    ``text`` stands in the cell.
    """

    model: str
    test: str
    found: int | None
    text: str
    tip: str


def draw_matrix(
    name: str, title: str, cells: Sequence[MatrixCell], tests: Sequence[str], models: Sequence[str], style: Style
) -> Figure:
    """Tests down, models across."""
    columns, lines = ({name: place for place, name in enumerate(names)} for names in (models, tests))
    values = [
        {
            "column": columns[cell.model],
            "line": lines[cell.test],
            "model": cell.model,
            "test": cell.test,
            "found": _UNMEASURED if cell.found is None else (*EVIDENCE_NAMES, _UNREACHABLE)[cell.found],
            "text": "–" if cell.found is None else cell.text,
            "tip": cell.tip,
        }
        for cell in cells
    ]
    colours = ("transparent", style.found[1], style.found[2], style.levels[3], style.found[0])
    occurring = {value["found"] for value in values}
    names = (*EVIDENCE_NAMES, _UNREACHABLE, _UNMEASURED)
    shown = {name: colour for name, colour in zip(names, colours, strict=True) if name in occurring}
    x = {
        "field": "model",
        "type": "nominal",
        "sort": sort_by_field("column"),
        "axis": {
            "title": None,
            "orient": "top",
            "labelAngle": -45,
            "labelLimit": 160,
            "domain": False,
            "ticks": False,
            "grid": False,
        },
    }
    y = {
        "field": "test",
        "type": "nominal",
        "sort": sort_by_field("line"),
        "axis": {"title": None, "domain": False, "ticks": False, "labelLimit": MAX_LABEL_WIDTH},
    }
    colour = {
        "field": "found",
        "type": "nominal",
        "scale": {
            "domain": list(shown),
            "range": list(shown.values()),
        },
        "legend": {
            "title": None,
            "orient": "right" if len(models) <= _BESIDE else "bottom",
            "symbolStrokeColor": style.soft,
        },
    }
    white = {
        "condition": {"test": f"datum.found === '{EVIDENCE_NAMES[2]}'", "value": style.background or "var(--paper)"},
        "value": style.ink,
    }
    layers = [
        {
            "mark": {"type": "rect", "stroke": style.line},
            "encoding": {"fill": colour, "description": {"field": "tip", "type": "nominal"}},
        },
        {
            "mark": {"type": "text", "fontSize": 9, "aria": False},
            "encoding": {"text": {"field": "text"}, "color": white},
        },
    ]
    spec = {
        "title": title,
        "background": style.background,
        "width": {"step": 44},
        "height": {"step": 15},
        "data": {"values": values},
        "encoding": {"x": x, "y": y},
        "layer": layers,
        "config": style.config,
    }
    after = sum(cell.found == 2 for cell in cells)
    size = f"{format_count(len(tests), 'test')} on {format_count(len(models), 'model')}"
    description = f"{title}: {size}; {EVIDENCE_NAMES[2]}: {after}"
    return Figure(name, description, spec)
