"""Figure and style of all charts; render as SVG, PDF, PNG or Vega-Lite."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from markupsafe import escape

from biassay.errors import MissingExtraError, UsageError
from biassay.io import write_atomically

__all__ = [
    "FORMATS",
    "PAGE",
    "PRINT",
    "Drawing",
    "Figure",
    "Style",
    "can_draw",
    "render_figure",
    "render_for_page",
    "sort_by_field",
]


@dataclass(frozen=True)
class Style:
    """``found`` colours what is not significant, significant, and significant after correction; ``levels`` four levels
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
        """What all figures share."""
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
            "padding": {"left": 14, "right": 5, "top": 5, "bottom": 5},  # a browser's letters may be wider
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
    found=("#8c959f", "#3b82f6", "#1e3a8a"),
    levels=("#1e3a8a", "#3b82f6", "#93c5fd", "#cbd5e1"),
    curves=("#1d4ed8", "#b45309", "#047857", "#a21caf", "#475569", "#be123c"),
    dimensions=("#7c3aed", "#dc2626", "#15803d", "#475569"),
)


FORMATS = ("svg", "pdf", "png", "vl.json")
_CROPPED, _EDGE = ("pdf", "png"), 2  # they hold their letters, so that none can be wider than it was measured
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
    """What is drawn: it shows itself in a notebook, and can be saved or changed.

    Attributes
    ----------
    name : str
        Of its file.
    description : str
        What it shows in a sentence, for who cannot see it.
    spec : dict
        The drawing in Vega-Lite, with its data.
    """

    name: str
    description: str
    spec: dict[str, Any]

    def __repr__(self) -> str:
        return f"Figure({self.name}: {self.description})"

    def to_dict(self) -> dict[str, Any]:
        """The drawing in Vega-Lite, with the schema that it follows."""
        return {"$schema": SCHEMA, **_drop_invalid_characters(self.spec)}

    def to_altair(self) -> Any:
        """The same as a chart of Altair, which must be installed, to go on with there."""
        try:
            import altair
        except ImportError as error:
            raise UsageError("Altair is not installed: pip install altair") from error
        return altair.Chart.from_dict(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it as the ending says: .svg, .pdf, .png, or .json for Vega-Lite.

        Returns
        -------
        Path
            The file.
        """
        file = Path(path)
        form = _ENDINGS.get(file.suffix.lower())
        if form is None:
            raise UsageError(f"{file}: a figure is saved as one of {', '.join(_ENDINGS)}; got {file.suffix!r}")
        if not file.parent.is_dir():
            raise UsageError(f"{file}: the folder {file.parent} does not exist")
        write_atomically(file, render_figure(self, form))
        return file

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Vega-Lite for the notebooks that draw it, and a picture for the others."""
        picture = {"image/svg+xml": render_figure(self, "svg").decode()} if can_draw() else {}
        return {_VEGA: self.to_dict(), **picture, "text/plain": repr(self)}


Drawing = Callable[[Style], Figure]
"""A figure for a page or for print."""


def sort_by_field(field: str) -> dict[str, str]:
    """In the order of a field. A list of names would become one expression, too deep from some 2,000 names on."""
    return {"field": field, "op": "min"}


def can_draw() -> bool:
    """Is the library that draws installed?"""
    return importlib.util.find_spec("vl_convert") is not None


def _import_library() -> ModuleType:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("drawing figures", "figures") from error
    module: ModuleType = vl_convert
    return module


def render_figure(figure: Figure, form: str) -> bytes:
    """The figure in one of `FORMATS`."""
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
    """With no character that XML cannot hold: the library would end the program."""
    if isinstance(node, str):
        return _NOT_XML.sub("\ufffd", node)
    if isinstance(node, dict):
        return {name: _drop_invalid_characters(value) for name, value in node.items()}
    return [_drop_invalid_characters(value) for value in node] if isinstance(node, list | tuple) else node


def render_for_page(figure: Figure) -> str:
    """The figure as SVG for a page: one image for who listens, and what each mark says for who points at it."""
    svg = _TAG.sub(
        lambda tag: _ARIA_LABELS.sub("", tag[0]).replace(' aria-label="', ' data-tip="'),
        render_figure(figure, "svg").decode(),
    )
    spoken = escape(_drop_invalid_characters(figure.description))
    return _OPENING.sub(lambda found: f'<svg role="img" aria-label="{spoken}" {found[1]}>', svg, count=1)
