"""Draw effects, bar panels and strips in HTML."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from biassay.reporting.document import make_environment
from biassay.reporting.formats import MANY_MODELS, format_decimal, format_interval

N_COLOURS = 10
"""Number of model colours in the style sheet."""
_N_SHAPES = 4
_MAX_OPEN_ROWS = 150  # lanes up to which a figure shows all groups unfolded
_MAX_NUMBERS = 3  # models whose numbers fit beside a row


@dataclass(frozen=True)
class Effect:
    """Mark of one model. ``sure``: 2 significant, 1 before correction only, 0 inconclusive.

    Only the ends of the second interval, ``beside``, are drawn. ``too_few`` marks results with too few observations.
    """

    model: int
    value: float
    low: float | None
    high: float | None
    sure: int
    text: str
    number: str
    beside: tuple[float, float] | None = None
    too_few: bool = False


@dataclass(frozen=True)
class EffectRow:
    """A question in plain words, its code name, its effects, and lines for its tooltip."""

    label: str
    name: str
    effects: tuple[Effect, ...]
    tooltip: tuple[str, ...] = ()


@dataclass(frozen=True)
class EffectRows:
    """Rows under a title, collapsed if ``folded``."""

    title: str
    rows: tuple[EffectRow, ...]
    folded: bool = False
    note: str = ""


@dataclass(frozen=True)
class _Scale:
    """Map values to positions in percent of the width."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> str:
        inside = min(max(value, self.low), self.high)
        return f"{2.0 + 96.0 * (inside - self.low) / (self.high - self.low):.1f}%"

    def width(self, low: float, high: float) -> str:
        return f"{float(self.at(high)[:-1]) - float(self.at(low)[:-1]):.1f}%"

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
    ends: Sequence[str] = (),
    band: float = 0.0,
) -> Markup:
    """Draw effects with their intervals, one row per question and one lane per model.

    Parameters
    ----------
    groups : sequence of EffectRows
    models : sequence of str
    title, caption : str
    sure : sequence of str
        Names of the marks, from inconclusive to significant.
    reach : float
        Smallest end of the scale on both sides of 0.
    beside : str
        Name of the second interval of effects.
    ends : sequence of str
        Labels of the left and the right end of the axis.
    band : float
        Half width of a band around 0, such as a margin; 0 for none.
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
            groups=[(group, _is_open(index, group, rows * lanes)) for index, group in enumerate(groups)],
            models=models if few else [],
            title=title,
            caption=caption,
            sure=sure,
            too_few=any(effect.too_few for group in groups for row in group.rows for effect in row.effects),
            beside=beside if few else "",
            ends=ends,
            margin=band,
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
    """Merge marks of very many models that would cover each other, and summarize the effects in words."""
    indices = {
        (scale.at(effect.value), effect.sure, effect.too_few): replace(effect, text="") for effect in row.effects
    }
    significant, values = sum(effect.sure == 2 for effect in row.effects), [effect.value for effect in row.effects]
    middle, low, high = map(format_decimal, (statistics.median(values), min(values), max(values)))
    summary = f"significant on {significant:,} of {len(values):,} models; median {middle}, from {low} to {high}"
    return replace(row, effects=tuple(indices.values()), tooltip=(*row.tooltip, summary))


def _is_open(index: int, group: EffectRows, lanes: int) -> bool:
    return index == 0 or not (group.folded or lanes > _MAX_OPEN_ROWS)


def _height(lanes: int) -> int:
    """Return the height of a lane in pixels."""
    return 14 if lanes <= 3 else 10 if lanes <= 6 else 8


def _scale(effects: Sequence[Effect], reach: float) -> _Scale:
    """Make a scale to both sides of 0, unless no value can lie below it."""
    values = [effect.value for effect in effects]
    ends = [end for effect in effects for end in (effect.low, effect.high) if end is not None and math.isfinite(end)]
    most = max([reach, *map(abs, values)]) or 1.0
    if not reach:  # the unit is unknown, so intervals are shown in full
        most = max([most, *map(abs, ends)])
    low = 0.0 if not reach and min([0.0, *values, *ends]) >= 0.0 else -most
    return _Scale(low, most, round_step((most - low) / 5.0))


def round_step(about: float) -> float:
    """Return the next round number of at least this size."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= about * (1.0 - 1e-9))


_MAX_OPEN_PANELS = 12  # panels; groups after these are folded


@dataclass(frozen=True)
class Bar:
    """A bar with its label, value and formatted number; ``text`` is its tooltip."""

    label: str
    value: float
    number: str
    text: str
    marked: bool = False


@dataclass(frozen=True)
class Panel:
    """Bars of one group in one model; ``said`` is a subtitle."""

    title: str
    model: int
    bars: tuple[Bar, ...]
    note: str = ""


@dataclass(frozen=True)
class Panels:
    """Panels under a title, which may be empty."""

    title: str
    panels: tuple[Panel, ...]
    note: str = ""


def draw_panels(
    groups: Sequence[Panels],
    models: Sequence[str],
    *,
    title: str,
    caption: str,
    marks: tuple[str, str] | None = None,
    middle: float | None = None,
    reach: float | None = None,
) -> Markup:
    """Draw panels of bars, all on one scale.

    Parameters
    ----------
    groups : sequence of Panels
    models : sequence of str
    title, caption : str
    marks : tuple of str, optional
        Names of plain and of marked bars.
    middle : float, optional
        Value from which bars go to both sides; by default they begin at 0.
    reach : float, optional
        Largest distance from the middle on the scale, for values with natural limits; by default that of the data.
    """
    bars = [bar for group in groups for panel in group.panels for bar in panel.bars]
    most = reach or max((abs(bar.value - (middle or 0.0)) for bar in bars), default=0.0) or 1.0
    before = [sum(len(group.panels) for group in groups[:index]) for index in range(len(groups))]
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
    """Return the start and the width of a bar as a style; bars end at the ends of the scale."""
    if middle is None:
        return f"width: {min(max(0.0, 100.0 * bar.value / most), 100.0):.1f}%"
    apart = min(max(50.0 * (bar.value - middle) / most, -50.0), 50.0)
    return f"margin-left: {50.0 + min(apart, 0.0):.1f}%; width: {abs(apart):.1f}%"


@dataclass(frozen=True)
class Strip:
    """One row of a figure: points, or a value with its interval and a band behind it."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    band: tuple[float, float] | None = None
    strong: bool = False
    points: tuple[tuple[float, str], ...] = ()


def draw_strips(
    strips: Sequence[Strip],
    *,
    title: str,
    caption: str,
    line: float,
    axis: str,
    ends: Sequence[str] = (),
    key: Sequence[str] = (),
) -> Markup:
    """Draw rows of values with intervals, or of points, on the scale of the data with a vertical line.

    Parameters
    ----------
    strips : sequence of Strip
    title, caption : str
    line : float
        Position of the vertical line: no difference, or four fifths.
    axis : str
        Title of the axis.
    ends : sequence of str
        Labels of the left and the right end of the axis.
    key : sequence of str
        Meaning of filled and of open marks. If empty, the figure has no key.
    """
    values = [
        value
        for strip in strips
        for value in (strip.value, strip.low, strip.high, *(strip.band or ()), *(point for point, _ in strip.points))
        if value is not None and math.isfinite(value)
    ]
    low, high = min([line, *values]), max([line, *values])
    margin = 0.04 * (high - low) or 1.0
    scale = _Scale(low - margin, high + margin, round_step((high - low + 2.0 * margin) / 5.0))
    template = make_environment().get_template("strips.html")
    return Markup(
        template.render(
            strips=strips,
            title=title,
            caption=caption,
            line=line,
            axis=axis,
            ends=ends,
            key=key,
            scale=scale,
            interval=format_interval,
        )
    )
