"""Which tests are significant on which models, at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biassay.pages.charts.drawing import Figure, by_place
from biassay.pages.charts.forest import FOUND
from biassay.pages.charts.style import Style

__all__ = ["MatrixCell", "matrix"]

_UNREACHABLE, _UNMEASURED = "too few words", "not measured"


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


def matrix(
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
            "found": _UNMEASURED if cell.found is None else (*FOUND, _UNREACHABLE)[cell.found],
            "text": cell.text,
            "tip": cell.tip,
        }
        for cell in cells
    ]
    x = {
        "field": "model",
        "type": "nominal",
        "sort": by_place("column"),
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
        "sort": by_place("line"),
        "axis": {"title": None, "domain": False, "ticks": False},
    }
    colour = {
        "field": "found",
        "type": "nominal",
        "scale": {
            "domain": [*FOUND, _UNREACHABLE, _UNMEASURED],
            "range": ["transparent", style.found[1], style.found[2], style.levels[3], style.line],
        },
        "legend": {"title": None, "orient": "bottom", "symbolStrokeColor": style.soft},
    }
    white = {
        "condition": {"test": f"datum.found === '{FOUND[2]}'", "value": style.background or "var(--paper)"},
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
    description = f"{title}: {len(tests)} tests on {len(models)} models, {after} significant after correction"
    return Figure(name, description, spec)
