"""A figure as SVG, PDF, PNG or Vega-Lite, without a browser."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from markupsafe import escape

from biassay.errors import MissingExtraError
from biassay.pages.charts.style import Style

__all__ = ["FORMATS", "Drawing", "Figure", "by_place", "can_draw", "drawn", "for_page"]

FORMATS = ("svg", "pdf", "png", "vl.json")
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_VERSION = "6.4"
_SPOKEN = re.compile(r' aria-(?:roledescription|hidden)="[^"]*"| role="graphics-[a-z]+"| aria-label="Title text [^"]*"')
_OPENING = re.compile(r'<svg [^>]*?(width="[\d.]+" height="[\d.]+" viewBox="[^"]+")[^>]*>')

_TAG = re.compile("<[^>]*>")
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Figure:
    """What is drawn: the name of its file, what it shows in a sentence for who cannot see it, and the drawing."""

    name: str
    description: str
    spec: dict[str, Any]


Drawing = Callable[[Style], Figure]
"""A figure for a page or for print."""


def by_place(field: str) -> dict[str, str]:
    """In the order of a field. A list of names would become one expression, too deep from some 2,000 names on."""
    return {"field": field, "op": "min"}


def can_draw() -> bool:
    """Is the library that draws installed?"""
    return importlib.util.find_spec("vl_convert") is not None


def _library() -> ModuleType:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("drawing figures", "figures") from error
    module: ModuleType = vl_convert
    return module


def drawn(figure: Figure, form: str) -> bytes:
    """The figure in one of `FORMATS`."""
    text = json.dumps({"$schema": SCHEMA, **_readable(figure.spec)}, ensure_ascii=False, allow_nan=False)
    if form == "vl.json":
        return text.encode()
    library = _library()
    if form == "svg":
        return str(library.vegalite_to_svg(text, vl_version=_VERSION)).encode()
    if form == "pdf":
        return bytes(library.vegalite_to_pdf(text, vl_version=_VERSION))
    return bytes(library.vegalite_to_png(text, vl_version=_VERSION, scale=3.0))


def _readable(node: Any) -> Any:
    """With no character that XML cannot hold: the library would end the program."""
    if isinstance(node, str):
        return _NOT_XML.sub("\ufffd", node)
    if isinstance(node, dict):
        return {name: _readable(value) for name, value in node.items()}
    return [_readable(value) for value in node] if isinstance(node, list | tuple) else node


def for_page(figure: Figure) -> str:
    """The figure as SVG for a page: one image for who listens, and what each mark says for who points at it."""
    svg = _TAG.sub(
        lambda tag: _SPOKEN.sub("", tag[0]).replace(' aria-label="', ' data-tip="'), drawn(figure, "svg").decode()
    )
    spoken = escape(_readable(figure.description))
    return _OPENING.sub(lambda found: f'<svg role="img" aria-label="{spoken}" {found[1]}>', svg, count=1)
