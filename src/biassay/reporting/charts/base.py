"""Figure and style of all charts; render as SVG, PDF, PNG or Vega-Lite."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from markupsafe import escape

from biassay.errors import MissingExtraError, UsageError
from biassay.io import write_atomically


@dataclass(frozen=True)
class Style:
    """Colours of charts, on a page or in print.

    ``found`` are the colours of evidence, from inconclusive to significant; ``levels`` four levels
    of p from the smallest; ``curves`` lines that must differ.
    """

    background: str | None
    ink: str
    soft: str
    line: str
    plus: str
    minus: str
    found: tuple[str, str, str]
    levels: tuple[str, str, str, str]
    curves: tuple[str, ...]
    dimensions: tuple[str, ...]

    @property
    def config(self) -> dict[str, Any]:
        """Vega-Lite configuration of all figures."""
        text = {"labelColor": self.soft, "titleColor": self.soft, "labelFontSize": 11, "titleFontSize": 11}
        axis = {
            **text,
            "titleFontWeight": "normal",
            "gridColor": self.line,
            "domainColor": self.line,
            "tickColor": self.line,
        }
        return {
            "font": "sans-serif",
            "padding": {"left": 14, "right": 5, "top": 5, "bottom": 5},  # browsers may use wider fonts
            "view": {"stroke": None},
            "axis": {**axis, "labelLimit": 220, "aria": False},
            "axisY": {"grid": False},
            "legend": {**text, "titleFontWeight": "normal", "labelLimit": 260, "aria": False},
            "title": {
                "color": self.ink,
                "fontSize": 12,
                "anchor": "start",
                "fontWeight": "bold",
                "limit": 560,
            },
        }


PAGE = Style(
    background=None,
    ink="var(--ink)",
    soft="var(--soft)",
    line="var(--line)",
    plus="var(--plus)",
    minus="var(--minus)",
    found=("var(--none)", "var(--some)", "var(--much)"),
    levels=("var(--p0)", "var(--p1)", "var(--p2)", "var(--p3)"),
    curves=tuple(f"var(--c{i})" for i in range(6)),
    dimensions=tuple(f"var(--d{i})" for i in range(4)),
)
PRINT = Style(
    background="#ffffff",
    ink="#1b1f24",
    soft="#57606a",
    line="#d0d7de",
    plus="#2563eb",
    minus="#b45309",
    found=("#6e7781", "#3b82f6", "#1e3a8a"),
    levels=("#1e3a8a", "#1d4ed8", "#3b82f6", "#858f9a"),
    curves=("#1d4ed8", "#b45309", "#6d28d9", "#a21caf", "#475569", "#be123c"),
    dimensions=("#7c3aed", "#dc2626", "#15803d", "#475569"),
)


FORMATS = ("svg", "pdf", "png", "vl.json")
_CROPPED, _EDGE = ("pdf", "png"), 2  # formats that embed their fonts, so no text is wider than measured
_ENDINGS = {".svg": "svg", ".pdf": "pdf", ".png": "png", ".json": "vl.json"}
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_VERSION = "6.4"
_VEGA = "application/vnd.vegalite.v6+json"
_ARIA_LABELS = re.compile(
    r' aria-(?:roledescription|hidden)="[^"]*"| role="graphics-[a-z]+"| aria-label="Title text [^"]*"'
)
_OPENING = re.compile(r'<svg [^>]*?(width="[\d.]+" height="[\d.]+" viewBox="[^"]+")[^>]*>')

_TAG = re.compile("<[^>]*>")
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Figure:
    """A figure that displays in a notebook and can be saved or changed.

    Attributes
    ----------
    name : str
        File name without its ending.
    description : str
        One sentence for screen readers.
    spec : dict
        Vega-Lite specification, including the data.
    """

    name: str
    description: str
    spec: dict[str, Any]

    def __repr__(self) -> str:
        return f"Figure({self.name}: {self.description})"

    def to_dict(self) -> dict[str, Any]:
        """Return the Vega-Lite specification with its schema."""
        return {"$schema": SCHEMA, **_drop_invalid_characters(self.spec)}

    def to_altair(self) -> Any:
        """Return an Altair chart, which needs Altair."""
        try:
            import altair
        except ImportError as error:
            raise UsageError("Altair is not installed: pip install altair") from error
        return altair.Chart.from_dict(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the figure in the format of the ending: .svg, .pdf, .png, or .json for Vega-Lite.

        Returns
        -------
        Path
            The file.
        """
        file = Path(path)
        form = _ENDINGS.get(file.suffix.lower())
        if form is None:
            raise UsageError(f"{file}: unknown kind of figure {file.suffix!r}; choose {', '.join(_ENDINGS)}")
        if not file.parent.is_dir():
            raise UsageError(f"{file}: the folder {file.parent} does not exist")
        write_atomically(file, render_figure(self, form))
        return file

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Return Vega-Lite for notebooks that draw it, and an SVG for the others."""
        picture = {"image/svg+xml": render_figure(self, "svg").decode()} if can_draw() else {}
        return {_VEGA: self.to_dict(), **picture, "text/plain": repr(self)}


Drawing = Callable[[Style], Figure]
"""A figure for a page or for print."""


TIP = {"field": "tip", "type": "nominal"}
"""Encoding of a tooltip."""
LABELS_ONLY = {"title": None, "ticks": False, "domain": False}
"""Axis without title and lines."""


def make_figure(name: str, description: str, title: str, style: Style, **spec: Any) -> Figure:
    """Make a figure with the background and configuration of a style.

    Parameters
    ----------
    name, description : str
    title : str
        Title above the figure.
    style : Style
    **spec
        Further entries of the specification.
    """
    return Figure(name, description, {"title": title, "background": style.background, "config": style.config, **spec})


def encode_groups(field: str, names: Sequence[str], values: Sequence[str], legend: Any = None) -> dict[str, Any]:
    """Encode a field of names by a colour or shape each.

    Parameters
    ----------
    field : str
    names : sequence of str
    values : sequence of str
        Colour or shape of every name.
    legend : dict, optional
        Without it, the field has no legend.
    """
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(values)},
        "legend": legend,
    }


def place_names(field: str, order: str | Sequence[str], axis: dict[str, Any]) -> dict[str, Any]:
    """Encode a position by a field of names, ordered by another field or as listed.

    A list becomes one nested expression, which is too deep for about 2,000 names or more.
    """
    sort = {"field": order, "op": "min"} if isinstance(order, str) else list(order)
    return {"field": field, "type": "nominal", "sort": sort, "axis": axis}


def make_layer(mark: str, encoding: dict[str, Any], **style: Any) -> dict[str, Any]:
    """Make a layer of marks; `style` are further properties of the mark.

    Parameters
    ----------
    mark : str
    encoding : dict
    **style
    """
    return {"mark": {"type": mark, **style}, "encoding": encoding}


def draw_intervals(
    channel: str, axis: dict[str, Any], shared: dict[str, Any], mark: str = "rule", **style: Any
) -> dict[str, Any]:
    """Make a layer of intervals from the field `low` to the field `high`.

    Parameters
    ----------
    channel : {"x", "y"}
    axis, shared : dict
        Encodings of the axis and of other channels.
    mark : str
    **style
        Properties of the mark.
    """
    ends = {channel: {"field": "low", **axis}, f"{channel}2": {"field": "high"}}
    return {"transform": [{"filter": "isValid(datum.low)"}], **make_layer(mark, {**ends, **shared}, **style)}


def draw_zero(style: Style, channel: str, encoding: dict[str, Any], dash: Sequence[int] = (3, 3)) -> dict[str, Any]:
    """Make the layer of a dashed line at 0, drawn once and not once per row.

    Parameters
    ----------
    style : Style
    channel : {"x", "y"}
    encoding : dict
        Encoding of the axis.
    dash : sequence of int
    """
    encoding = {channel: {"datum": 0, **encoding}}
    return {
        "data": {"values": [{}]},
        **make_layer("rule", encoding, color=style.soft, strokeDash=list(dash), aria=False),
    }


def can_draw() -> bool:
    """Return whether the library that draws is installed."""
    return importlib.util.find_spec("vl_convert") is not None


def _import_library() -> ModuleType:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("drawing figures", "figures") from error
    module: ModuleType = vl_convert
    return module


def render_figure(figure: Figure, form: str) -> bytes:
    """Render a figure in one of `FORMATS`."""
    spec = figure.to_dict()
    if form in _CROPPED:
        spec["config"] = {**spec.get("config", {}), "padding": _EDGE}
    text = json.dumps(spec, ensure_ascii=False, allow_nan=False)
    if form == "vl.json":
        return text.encode()
    library = _import_library()
    if form == "svg":
        return str(library.vegalite_to_svg(text, vl_version=_VERSION)).encode()
    if form == "pdf":
        return bytes(library.vegalite_to_pdf(text, vl_version=_VERSION))
    return bytes(library.vegalite_to_png(text, vl_version=_VERSION, scale=3.0))


def _drop_invalid_characters(node: Any) -> Any:
    """Drop characters that XML cannot hold, which would end the program."""
    if isinstance(node, str):
        return _NOT_XML.sub("\ufffd", node)
    if isinstance(node, dict):
        return {name: _drop_invalid_characters(value) for name, value in node.items()}
    return [_drop_invalid_characters(value) for value in node] if isinstance(node, list | tuple) else node


def render_for_page(figure: Figure) -> str:
    """Render a figure as SVG for a page, with one description for screen readers and tooltips on its marks."""
    svg = _TAG.sub(
        lambda tag: _ARIA_LABELS.sub("", tag[0]).replace(' aria-label="', ' data-tip="'),
        render_figure(figure, "svg").decode(),
    )
    spoken = escape(_drop_invalid_characters(figure.description))
    return _OPENING.sub(lambda found: f'<svg role="img" aria-label="{spoken}" {found[1]}>', svg, count=1)
