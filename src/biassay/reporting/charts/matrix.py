"""Draw a matrix of tests by models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biassay.reporting.charts.base import (
    LABELS_ONLY,
    TIP,
    Figure,
    Style,
    encode_groups,
    make_figure,
    make_layer,
    place_names,
)
from biassay.reporting.charts.forest import EVIDENCE_NAMES, split_labels, wrap_label
from biassay.reporting.formats import format_count

_NAMES = (*EVIDENCE_NAMES, "too few words to test", "sanity check passed", "not measured")
CHECK_PASSED = 4
"""Index of a passed sanity check in the names of the cells."""
_LABEL, _WIDTH = 144, 840  # a line of a label: characters, and pixels of a word that cannot be wrapped
_STEP, _LINE = 15, 13  # height in pixels of a row with one line, and of each further line
_BESIDE = 8  # up to this many models the legend is beside the cells, because below it would be wider than the matrix


@dataclass(frozen=True)
class MatrixCell:
    """A cell of a matrix.

    Attributes
    ----------
    model, test : str
        Column and line of the cell.
    found : int or None
        Index in `EVIDENCE_NAMES`; 3 with too few words to reach significance; 4 for a sanity check that passed; None if
        nothing was measured.
    text, tip : str
        Text in the cell, and its tooltip.
    """

    model: str
    test: str
    found: int | None
    text: str
    tip: str


def draw_matrix(
    name: str, title: str, cells: Sequence[MatrixCell], tests: Sequence[str], models: Sequence[str], style: Style
) -> Figure:
    """Draw a matrix with tests down and models across.

    Parameters
    ----------
    name, title : str
        File name and title of the figure.
    cells : sequence of MatrixCell
        At most one cell per test and model.
    tests, models : sequence of str
        Names of the lines and columns, in order.
    style : Style
        Colours of charts.

    Returns
    -------
    Figure
    """
    columns, lines = ({name: index for index, name in enumerate(names)} for names in (models, tests))
    labels = {test: "\n".join(wrap_label(test, _LABEL)) for test in tests}
    most_lines = max((label.count("\n") + 1 for label in labels.values()), default=1)
    values = [
        {
            "column": columns[cell.model],
            "line": lines[cell.test],
            "model": cell.model,
            "test": labels[cell.test],
            "found": _NAMES[-1 if cell.found is None else cell.found],
            "text": "–" if cell.found is None else cell.text,
            "tip": cell.tip,
        }
        for cell in cells
    ]
    colours = ("transparent", *style.found[1:], style.levels[3], style.dimensions[2], style.found[0])
    occurring = {value["found"] for value in values}
    shown = {name: colour for name, colour in zip(_NAMES, colours, strict=True) if name in occurring}
    x_axis = {**LABELS_ONLY, "orient": "top", "labelAngle": -45, "labelLimit": 160, "grid": False}
    x = place_names("model", "column", x_axis)
    y_axis = {**LABELS_ONLY, "labelLimit": _WIDTH, **split_labels(most_lines)}
    y = place_names("test", "line", y_axis)
    side = "right" if len(models) <= _BESIDE else "bottom"
    legend = {"title": None, "orient": side, "symbolStrokeColor": style.soft}
    colour = encode_groups("found", list(shown), list(shown.values()), legend)
    white = {
        "condition": {
            "test": f"indexof({[EVIDENCE_NAMES[2], _NAMES[CHECK_PASSED]]}, datum.found) >= 0",
            "value": style.background or "var(--paper)",
        },
        "value": style.ink,
    }
    layers = [
        make_layer("rect", {"fill": colour, "description": TIP}, stroke=style.line),
        make_layer("text", {"text": {"field": "text"}, "color": white}, fontSize=9, aria=False),
    ]
    after = sum(cell.found == 2 for cell in cells)
    size = f"{format_count(len(tests), 'test')} on {format_count(len(models), 'model')}"
    description = f"{title}: {size}; {EVIDENCE_NAMES[2]}: {after}"
    return make_figure(
        name,
        description,
        title,
        style,
        width={"step": 44},
        height={"step": _STEP + _LINE * (most_lines - 1)},
        data={"values": values},
        encoding={"x": x, "y": y},
        layer=layers,
    )
