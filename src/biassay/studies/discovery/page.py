"""The part of a page about words associated with groups."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.roc import roc
from biassay.pages.charts.style import Style
from biassay.pages.plain_tables import cells_of, filled, section_of
from biassay.pages.section import Part, Renderer, Section
from biassay.pages.sentences import statements
from biassay.results.data import RunData
from biassay.studies.discovery.findings import findings_of
from biassay.studies.discovery.making import CURVE_ARRAYS, array_name
from biassay.studies.discovery.records import CurveRow
from biassay.studies.discovery.shown import (
    MEANING,
    RULES,
    curve_table,
    group_table,
    headline,
    notes_of,
    rated_table,
    word_table,
)
from biassay.studies.discovery.view import GroupView, groups_of, models_of

__all__ = ["curve_of", "discovery_part", "roc_figures"]

_SHOWN = 100


def discovery_part(run: RunData, renderer: Renderer) -> Part:
    """Everything about one search."""
    views, models = groups_of(run), run.tables.get("models", ())
    columns, rows = group_table(run, views)
    vocabularies = ", ".join(dict.fromkeys(row.vocabulary for row in models))
    return Part(
        anchor=renderer.anchor,
        title=f"Words associated with groups in {', '.join(model.label for model in models_of(run)) or 'no model'}",
        headline=headline(run),
        summary=statements(findings_of(run)),
        meaning=MEANING,
        notes=[run.manifest.inputs.note],
        sections=[
            *renderer.notes(notes_of(run, views)),
            section_of("groups", "Groups", filled(columns, rows), rows, renderer),
            *(_group(place, run, view, renderer) for place, view in enumerate(views)),
            renderer.section("discovery_made", "How it was made", manifest=run.manifest, vocabularies=vocabularies),
        ],
    )


def roc_figures(run: RunData) -> list[Drawing]:
    """One a model and group with words of known truth, all of its tasks in it."""
    several = len(run.manifest.models) > 1
    return [
        partial(_drawn, f"roc-{view.row.group}" + (f"-{view.model}" if several else ""), view)
        for view in groups_of(run)
        if view.curves
    ]


def _drawn(name: str, view: GroupView, style: Style) -> Figure:
    return roc(name, view.title, {RULES[row.task]: curve_of(view, row) for row in view.curves}, style)


def curve_of(view: GroupView, row: CurveRow) -> Any:
    arrays = {name: view.arrays[array_name(row.group, row.task, name)].tolist() for name in CURVE_ARRAYS}
    return SimpleNamespace(**vars(row), **arrays)


def _group(place: int, run: RunData, view: GroupView, renderer: Renderer) -> Section:
    figures = renderer.figures([partial(_drawn, "roc", view)]) if view.curves else []
    lists = [
        (
            kind,
            total,
            cells_of(f"{kind}, {view.title}", *word_table(run, view.best_words(emergent=emergent, top=_SHOWN))),
        )
        for kind, total, emergent in (
            ("Associated words", view.row.num_associated, False),
            ("Emergent words", view.row.num_emergent, True),
        )
    ]
    section = renderer.section(
        "group",
        view.title,
        figures=figures,
        curves=cells_of(f"Detection of rated words, {view.title}", *curve_table(run, view)) if view.curves else None,
        rated=cells_of(f"Rated words, {view.title}", *rated_table(run, view)),
        lists=lists,
    )
    return Section(f"{section.anchor}-{place + 1}", section.title, section.body)
