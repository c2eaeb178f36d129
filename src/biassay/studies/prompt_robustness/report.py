"""Report of robustness runs of models that respond to prompts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from biassay.reporting.charts.base import Drawing, can_draw
from biassay.reporting.charts.specification_curve import CurvePoint, draw_specification_curve
from biassay.reporting.document import Drawings, Report
from biassay.reporting.formats import format_decimal, format_interval, format_p
from biassay.reporting.methods import CitationUse
from biassay.reporting.presenter import DefaultPresenter, make_record_table
from biassay.reporting.terminal import MAX_ROWS
from biassay.results.run_data import RunData, RunGroup, model_key, model_labels

_MEANING = (
    "Significance is decided by the default specification alone: all wordings and orders, with the model's own "
    "temperature and system message. The others show whether the finding depends on the prompts."
)
_MAX_CURVES = 6
_CURVE = "Each point is one specification, sorted by effect. The rows below show the difference from the default."


class PromptRobustnessPresenter(DefaultPresenter):
    """Report with the specification curves of the first items."""

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report."""
        drawn = enumerate(islice(self.figures(gathered), _MAX_CURVES))
        curves = tuple(("" if index else _CURVE, make) for index, make in drawn)
        figure = Drawings(curves) if curves and can_draw() else None
        report = super().report(gathered, **options)
        table = make_record_table(self._tables[0], gathered.run, "Effects under all specifications", MAX_ROWS)
        return dataclasses.replace(report, figure=figure, tables=[table])

    def _get_meaning(self, run: RunData) -> str:  # noqa: ARG002
        return _MEANING

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that describe the methods."""
        yield CitationUse("specification curves", "simonsohn2020")
        yield from super().methods(run)

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield one specification curve per item."""
        run = gathered.run
        labels = model_labels(run)
        for number, row in enumerate(run.tables.get("results", ()), start=1):
            alpha = run.manifest.settings.alpha
            points = [
                CurvePoint(
                    spec.effect_size,
                    spec.ci_low,
                    spec.ci_high,
                    spec.p_value is not None and spec.p_value <= alpha,
                    ((spec.kind, spec.value),) if spec.value else (("default", "all"),),
                    f"{spec.kind} {spec.value}: {format_decimal(spec.effect_size)}, "
                    f"{format_interval(spec.ci_low, spec.ci_high)}, p {format_p(spec.p_value)}",
                )
                for spec in run.tables.get("specifications", ())
                if (model_key(spec), spec.test) == (model_key(row), row.test) and spec.effect_size is not None
            ]
            if len(points) > 1:
                title = f"{row.title} on {labels[model_key(row)]}"
                name = f"curve-{number}"
                yield partial(draw_specification_curve, name, title, points, axis=row.outcome.scale)
