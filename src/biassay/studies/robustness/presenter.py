"""How robustness is shown: findings and tables, and a specification curve of every test."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from biassay.pages.charts.curve import CurvePoint, curve
from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.style import Style
from biassay.pages.formats import counted, decimals, format_p, interval_text
from biassay.pages.overview import overview
from biassay.pages.plain import Plain
from biassay.pages.publish.citations import Use, uses_of_tests
from biassay.pages.publish.layout import Table
from biassay.pages.publish.methods import Sentence, works_of
from biassay.pages.section import Part, Renderer
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.presenter import CROSSED
from biassay.studies.robustness.columns import SUMMARY
from biassay.studies.robustness.methods_text import sentences_of
from biassay.studies.robustness.paper import paper_table
from biassay.studies.robustness.records import Result, Specification

__all__ = ["RobustnessPresenter"]

_MOST = 40
_MEANING = (
    "The p of the model as it is, with other words of the same kinds, alone decides whether an association holds; the "
    "rest says what becomes of it if it is measured in other ways."
)
_CAPTION = "Of the model as it is. Right of zero: the first named go with the first. Other ways to measure are below."
_TERMS = {
    "d": "How much more the first targets go with the first attributes than the second targets do, in standard "
    "deviations over the target words. d, its interval and p are those of biassay run.",
    "choice": "A layer, a pooling, a similarity or a template, with all words of the test.",
    "significant": "With the sign of d, and a p of at most alpha.",
    "without a word": "Each word is left out in turn: named is the one without which least of the effect is left.",
    "joint p": "Could the median over choices come about if target words went with X and Y by chance? It speaks of "
    "these attribute words, and says nothing of other ones. It is in the table.",
}
_KINDS = ("reading", "similarity", "template")


class RobustnessPresenter(Plain):
    package = "biassay.studies.robustness"

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        part = super().part(gathered, renderer)
        made = [make for _, make in zip(range(_MOST), self.figures(gathered), strict=False)]
        section = renderer.section("curves", "Specification curves", figures=renderer.figures(made), shown=len(made))
        return dataclasses.replace(
            part,
            meaning=_MEANING,
            figure=overview(self._findings(gathered.run), _CAPTION),
            terms=_TERMS,
            sections=[section, *part.sections],
        )

    def _headline(self, run: RunData) -> str:
        tests, ways = len({row.test for row in run.results}), len(run.tables.get("specifications", ()))
        return f"{counted(len(run.manifest.models), 'model')}, {counted(tests, 'test')}; {counted(ways, 'measurement')}"

    def tables(self, gathered: Gathered) -> Iterator[tuple[str, Table]]:
        yield "robustness-results", paper_table(gathered.run)

    def files(self, gathered: Sequence[Gathered]) -> Iterator[tuple[str, str, str]]:
        return (file for file in super().files(gathered) if file[0] != f"robustness-{SUMMARY.name}")

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        return uses_of_tests(runs)

    def methods(self, run: RunData) -> Iterator[Use]:
        yield Use("the method WEAT", "caliskan2017")
        yield from CROSSED
        yield Use("specification curves", "simonsohn2020")
        if any(row.p_value_crossed_holm is not None for row in run.results):
            yield Use("correction for the number of tests", "holm1979")

    def methods_paragraph(self, run: RunData) -> Iterator[Sentence]:
        return sentences_of(run, works_of(self.sources([run])))

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        run = gathered.run
        labels = model_labels(run)
        for place, row in enumerate(run.results):
            points = _points([one for one in _of(run, row) if one.kind in ("model", "template")], row.alpha)
            if len(points) > 1:
                title = f"{row.test} on {labels[model_key(row)]}"
                yield partial(_drawn, f"curve-{place + 1}-{row.test}", title, points)


def _of(run: RunData, row: Result) -> Iterator[Specification]:
    return (
        one
        for one in run.tables.get("specifications", ())
        if (model_key(one), one.test) == (model_key(row), row.test) and one.d is not None
    )


def _points(found: Sequence[Specification], alpha: float) -> list[CurvePoint]:
    """What every specification consists of; where templates are chosen, all of them are a choice too."""
    varied = any(one.template for one in found)
    return [_point(one, one.template or ("all" if varied else ""), alpha) for one in found]


def _point(one: Specification, template: str, alpha: float) -> CurvePoint:
    values = (one.reading, one.similarity, template)
    choices = tuple((kind, value) for kind, value in zip(_KINDS, values, strict=True) if value)
    tip = f"{', '.join(value for _, value in choices)}: d {decimals(one.d)}, {interval_text(one.d_low, one.d_high)}"
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
