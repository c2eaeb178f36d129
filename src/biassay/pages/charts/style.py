"""Colours and type of figures: by the page's variables, which follow its theme, or fixed for print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["PAGE", "PRINT", "Style"]


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
