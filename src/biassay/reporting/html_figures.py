"""Draw effects and bar panels in HTML."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from biassay.reporting.document import make_environment
from biassay.reporting.formats import MANY_MODELS, format_decimal

__all__ = ["N_COLOURS", "Bar", "Effect", "EffectRow", "EffectRows", "Panel", "Panels", "draw_effects", "draw_panels"]


N_COLOURS = 10
"""Of models, that a page has."""
_N_SHAPES = 4
_MAX_OPEN_ROWS = 150  # lanes of a figure of which nothing is folded
_MAX_NUMBERS = 3  # of models, for which there is room beside a row


@dataclass(frozen=True)
class Effect:
    """One model's: where it is drawn, and in words. ``sure``: 2 significant, 1 before correction only, 0 inconclusive.

    ``beside`` is another interval, of which the two ends are drawn; ``few``: there was too little to tell anything.
    """

    model: int
    value: float
    low: float | None
    high: float | None
    sure: int
    text: str
    number: str
    beside: tuple[float, float] | None = None
    few: bool = False


@dataclass(frozen=True)
class EffectRow:
    """What was asked in plain words, its code name, the effects, and what else is to be said of them."""

    label: str
    name: str
    effects: tuple[Effect, ...]
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class EffectRows:
    """Rows under a title; ``folded``: on demand only."""

    title: str
    rows: tuple[EffectRow, ...]
    folded: bool = False
    said: str = ""


@dataclass(frozen=True)
class _Scale:
    """From values to places in percent of the width."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> str:
        inside = min(max(value, self.low), self.high)
        return f"{2.0 + 96.0 * (inside - self.low) / (self.high - self.low):.1f}%"

    @property
    def ticks(self) -> list[tuple[str, str]]:
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [(self.at(n * self.step), f"{n * self.step:z.10g}") for n in range(first, last + 1)]


def draw_effects(
    groups: Sequence[EffectRows],
    models: Sequence[str],
    *,
    title: str,
    caption: str,
    sure: Sequence[str],
    reach: float = 0.0,
    beside: str = "",
) -> Markup:
    """The figure.

    ``sure`` names what the marks show, from not shown to most sure; ``reach`` is how far the scale goes at least, to
    both sides of 0; ``beside`` names the second interval of effects.
    """
    lanes = min(len(models), MANY_MODELS)
    rows = sum(len(group.rows) for group in groups)
    scale = _scale([effect for group in groups for row in group.rows for effect in row.effects], reach)
    few = len(models) <= MANY_MODELS
    if not few:
        groups = [replace(group, rows=tuple(_in_one_lane(row, scale) for row in group.rows)) for group in groups]
    return Markup(
        make_environment()
        .get_template("effects.html")
        .render(
            groups=[(group, _is_open(place, group, rows * lanes)) for place, group in enumerate(groups)],
            models=models if few else [],
            title=title,
            caption=caption,
            sure=sure,
            few=any(effect.few for group in groups for row in group.rows for effect in row.effects),
            beside=beside if few else "",
            scale=scale,
            height=_height(lanes) * lanes + 8 if few else 26,
            place=lambda effect: 4 + _height(lanes) * (effect.model + 0.5) if few else 13,
            shape=lambda model: model % _N_SHAPES,
            colour=lambda model: model % N_COLOURS,
            numbers=len(models) <= _MAX_NUMBERS,
            intervals=few,
        )
    )


def _in_one_lane(row: EffectRow, scale: _Scale) -> EffectRow:
    """Of very many models: marks that would cover each other once, and what they have in common in words."""
    places = {(scale.at(effect.value), effect.sure, effect.few): replace(effect, text="") for effect in row.effects}
    significant, values = sum(effect.sure == 2 for effect in row.effects), [effect.value for effect in row.effects]
    middle, low, high = map(format_decimal, (statistics.median(values), min(values), max(values)))
    told = f"significant on {significant:,} of {len(values):,} models; median {middle}, from {low} to {high}"
    return replace(row, effects=tuple(places.values()), said=(*row.said, told))


def _is_open(place: int, group: EffectRows, lanes: int) -> bool:
    return place == 0 or not (group.folded or lanes > _MAX_OPEN_ROWS)


def _height(lanes: int) -> int:
    """Of one lane, in pixels."""
    return 14 if lanes <= 3 else 10 if lanes <= 6 else 8


def _scale(effects: Sequence[Effect], reach: float) -> _Scale:
    """To both sides of 0 unless nothing can lie below it."""
    values = [effect.value for effect in effects]
    ends = [end for effect in effects for end in (effect.low, effect.high) if end is not None and math.isfinite(end)]
    most = max([reach, *map(abs, values)]) or 1.0
    if not reach:  # nothing is known of the unit: intervals are shown whole
        most = max([most, *map(abs, ends)])
    low = 0.0 if not reach and min([0.0, *values, *ends]) >= 0.0 else -most
    return _Scale(low, most, _step((most - low) / 5.0))


def _step(about: float) -> float:
    """A round number of at least this size."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= about * (1.0 - 1e-9))


_MAX_OPEN_PANELS = 12  # panels; the groups behind them are folded


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
        make_environment()
        .get_template("panels.html")
        .render(
            groups=[(g, not n or n + len(g.panels) <= _MAX_OPEN_PANELS) for g, n in zip(groups, before, strict=True)],
            models=models,
            title=title,
            caption=caption,
            marks=marks,
            middle=middle is not None,
            drawn=partial(_style_bar, middle=middle, most=most),
            colour=lambda model: model % N_COLOURS,
        )
    )


def _style_bar(bar: Bar, middle: float | None, most: float) -> str:
    """Where a bar begins and how wide it is, as a style."""
    if middle is None:
        return f"width: {max(0.0, 100.0 * bar.value / most):.1f}%"
    apart = 50.0 * (bar.value - middle) / most
    return f"margin-left: {50.0 + min(apart, 0.0):.1f}%; width: {abs(apart):.1f}%"
