"""How robustness is shown: findings and tables, and a specification curve of every test."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any

from rich.console import Console

from biassay.pages.charts.curve import CurvePoint, curve
from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.style import Style
from biassay.pages.formats import decimals, format_p, interval_text
from biassay.pages.plain import Plain
from biassay.pages.section import Part, Renderer
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.labels import model_key, model_labels
from biassay.studies.robustness.records import Result, Specification

__all__ = ["RobustnessPresenter"]

_MOST = 40
_MEANING = (
    "A choice is a layer, a pooling, a similarity or a template; with all words of a test there are as many effects as "
    "choices. The joint p-value asks whether their median could come about if target words went with X and Y by "
    "chance: "
    "it speaks of these attribute words, and takes into account that all choices share the same words. Other words: "
    "each left out in turn, random halves, and words that are alike in tokens or frequency."
)


class RobustnessPresenter(Plain):
    package = "biassay.studies.robustness"

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        part = super().part(gathered, renderer)
        made = [make for _, make in zip(range(_MOST), self.figures(gathered), strict=False)]
        section = renderer.section("curves", "Specification curves", figures=renderer.figures(made), shown=len(made))
        return dataclasses.replace(part, meaning=_MEANING, sections=[section, *part.sections])

    def print(self, gathered: Gathered, console: Console, **_: Any) -> None:
        """Results alone: specifications are many, and stand on the page and in the folder of a run."""
        Plain(self._title, self._tables[:1], self._findings).print(gathered, console)

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        run = gathered.run
        labels = model_labels(run)
        for place, row in enumerate(run.results):
            points = [_point(one, row.alpha) for one in _of(run, row) if one.kind in ("model", "template")]
            if len(points) > 1:
                title = f"{row.test} on {labels[model_key(row)]}"
                yield partial(_drawn, f"curve-{place + 1}-{row.test}", title, points)


def _of(run: RunData, row: Result) -> Iterator[Specification]:
    return (
        one
        for one in run.tables.get("specifications", ())
        if (one.model, one.options, one.test) == (row.model, row.options, row.test) and one.d is not None
    )


def _point(one: Specification, alpha: float) -> CurvePoint:
    choices = (one.reading, one.similarity, one.template)
    tip = f"{', '.join(filter(None, choices))}: d {decimals(one.d)}, {interval_text(one.d_low, one.d_high)}"
    return CurvePoint(
        one.d or 0.0,
        one.d_low,
        one.d_high,
        one.p_value_crossed is not None and one.p_value_crossed <= alpha,
        choices,
        f"{tip}, p {format_p(one.p_value_crossed)}",
    )


def _drawn(name: str, title: str, points: list[CurvePoint], style: Style) -> Figure:
    return curve(name, title, points, style, axis="d by word, with its interval")
