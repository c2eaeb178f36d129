"""A figure of panels in HTML: what leads in every group, as named bars; it fits any width and needs no library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from biassay.pages.effects import COLOURS
from biassay.pages.section import environment

__all__ = ["Bar", "Panel", "Panels", "draw_panels"]

_OPEN = 12  # panels; the groups behind them are folded


@dataclass(frozen=True)
class Bar:
    """What is drawn, under its whole name and beside its number; ``text`` is all that is known of it."""

    label: str
    value: float
    number: str
    text: str
    marked: bool = False


@dataclass(frozen=True)
class Panel:
    """Of one group in one model; ``said`` stands below its title."""

    title: str
    model: int
    bars: tuple[Bar, ...]
    said: str = ""


@dataclass(frozen=True)
class Panels:
    """Panels under a title, or under none."""

    title: str
    panels: tuple[Panel, ...]
    said: str = ""


def draw_panels(
    groups: Sequence[Panels],
    models: Sequence[str],
    *,
    title: str,
    caption: str,
    marks: tuple[str, str] | None = None,
    middle: float | None = None,
) -> Markup:
    """The figure, all bars on one scale. ``marks`` names what bars are, and those that are marked.

    Bars begin at 0, or go to both sides of the ``middle``.
    """
    bars = [bar for group in groups for panel in group.panels for bar in panel.bars]
    most = max((abs(bar.value - (middle or 0.0)) for bar in bars), default=0.0) or 1.0
    before = [sum(len(group.panels) for group in groups[:place]) for place in range(len(groups))]
    return Markup(
        environment()
        .get_template("panels.html")
        .render(
            groups=[(g, not n or n + len(g.panels) <= _OPEN) for g, n in zip(groups, before, strict=True)],
            models=models,
            title=title,
            caption=caption,
            marks=marks,
            middle=middle is not None,
            drawn=partial(_drawn, middle=middle, most=most),
            colour=lambda model: model % COLOURS,
        )
    )


def _drawn(bar: Bar, middle: float | None, most: float) -> str:
    """Where a bar begins and how wide it is, as a style."""
    if middle is None:
        return f"width: {max(0.0, 100.0 * bar.value / most):.1f}%"
    apart = 50.0 * (bar.value - middle) / most
    return f"margin-left: {50.0 + min(apart, 0.0):.1f}%; width: {abs(apart):.1f}%"
