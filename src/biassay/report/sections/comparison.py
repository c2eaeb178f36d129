"""The part of a page about differences between models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from biassay.report.charts.drawing import Figure
from biassay.report.charts.forest import ForestRow, forest
from biassay.report.charts.style import Style
from biassay.report.sections.associations import MOST_MODELS
from biassay.report.sections.section import Part, Renderer, Section
from biassay.report.words import decimals
from biassay.report.words_comparison import (
    APART,
    MEANING_OF_DIFFERENCES,
    apart,
    comparison_headline,
    comparison_summary,
    span,
)
from biassay.report.words_stereotypes import measure_name
from biassay.results.comparison import AssociationDifference, Comparison

__all__ = ["comparison_part", "difference_figures"]


def comparison_part(found: Comparison, make: Callable[[str], Renderer]) -> Part:
    """Everything about a comparison."""
    renderer = make("comparison")
    renderer.environment.globals.update(decimals=decimals, span=span, apart=apart, apart_names=APART)
    renderer.environment.globals.update(measure_name=measure_name)
    sections = [_associations(found, renderer), _agreements(found, renderer), _words(found, renderer)]
    return Part(
        anchor="comparison",
        title=f"Compared with {found.baseline}",
        headline=comparison_headline(found),
        summary=comparison_summary(found),
        meaning=MEANING_OF_DIFFERENCES if found.associations else _MEANING_OF_OTHERS,
        sections=[section for section in sections if section is not None],
        notes=[f"What is compared is not alike: {note}." for note in found.notes],
    )


_MEANING_OF_OTHERS = (
    "What is compared is what the runs found of the same groups. Agreement with people is no virtue: people's ratings "
    "are stereotypes too. A difference that is not shown does not show that two models are equal."
)


def _associations(found: Comparison, renderer: Renderer) -> Section | None:
    if not found.associations:
        return None
    figures = renderer.figures([make for _, make in difference_figures(found)][:MOST_MODELS])
    return renderer.section(
        "differences", "Differences of effect sizes", rows=found.associations, figures=figures, baseline=found.baseline
    )


def difference_figures(found: Comparison) -> list[tuple[str, Callable[[Style], Figure]]]:
    """One a model."""
    made: list[tuple[str, Callable[[Style], Figure]]] = []
    for place, model in enumerate(dict.fromkeys(row.model for row in found.associations)):
        rows = [_row(r) for r in found.associations if r.model == model and r.difference is not None]
        if rows:
            title = f"{model} less {found.baseline}"
            made.append((model, partial(_drawn, f"difference-{place + 1}", title, rows)))
    return made


def _row(r: AssociationDifference) -> ForestRow:
    effects = f"{decimals(r.effect_baseline or 0.0)} on {r.baseline}, {decimals(r.effect_model or 0.0)} on {r.model}"
    tip = (
        f"{r.test}: {effects}; difference {decimals(r.difference or 0.0)}, 95% {span(r.interval_low, r.interval_high)}"
        f"; {r.num_targ1} and {r.num_targ2} words"
    )
    return ForestRow(r.test, r.difference or 0.0, r.interval_low, r.interval_high, apart(r), tip)


def _drawn(name: str, title: str, rows: Sequence[ForestRow], style: Style) -> Figure:
    return forest(name, title, rows, style, axis="difference of effect sizes by word, 95%", names=APART)


def _agreements(found: Comparison, renderer: Renderer) -> Section | None:
    return renderer.section("agreements", "Agreement with people", rows=found.agreements) if found.agreements else None


def _words(found: Comparison, renderer: Renderer) -> Section | None:
    return renderer.section("shared_words", "Words tied to groups", rows=found.words) if found.words else None
