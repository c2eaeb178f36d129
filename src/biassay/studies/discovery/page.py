"""The part of a page about words tied to groups."""

from __future__ import annotations

from functools import partial

from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.roc import roc
from biassay.pages.charts.style import Style
from biassay.pages.section import Part, Renderer, Section, Statement
from biassay.results.data import RunData
from biassay.studies.discovery.view import GroupView, groups_of, labels_of, lost_of
from biassay.studies.discovery.words import (
    MEANING_OF_WORDS,
    VALIDATION_COLUMNS,
    columns_of,
    discovery_headline,
    discovery_summary,
    lost_in,
    number,
    q_text,
)

__all__ = ["discovery_part", "roc_figures"]

_SHOWN = 100


def discovery_part(run: RunData, renderer: Renderer) -> Part:
    """Everything about one search."""
    renderer.environment.globals.update(number=number, q_text=q_text)
    settings, inputs = run.manifest.settings, run.manifest.inputs
    sections = [
        renderer.section("columns", "What the columns say", note=inputs.note, columns=columns_of(settings)),
        *(_group(place, view, renderer) for place, view in enumerate(groups_of(run))),
        _lost(run, renderer),
        renderer.section("discovery_made", "How it was made", manifest=run.manifest, vocabularies=_vocabularies(run)),
    ]
    return Part(
        anchor=renderer.anchor,
        title=f"Words tied to groups in {', '.join(labels_of(run))}",
        headline=discovery_headline(run),
        summary=[Statement(sentence) for sentence in discovery_summary(run)],
        meaning=MEANING_OF_WORDS,
        sections=[section for section in sections if section is not None],
    )


def _vocabularies(run: RunData) -> str:
    return ", ".join(dict.fromkeys(row.vocabulary for row in lost_of(run).values()))


def roc_figures(run: RunData) -> list[Drawing]:
    """One a model and group with words of known truth, all of its tasks in it."""
    several = len(run.manifest.models) > 1
    return [
        partial(_drawn, f"roc-{view.row.group}" + (f"-{view.model}" if several else ""), view)
        for view in groups_of(run)
        if view.tasks
    ]


def _drawn(name: str, view: GroupView, style: Style) -> Figure:
    return roc(name, view.title, {task.name: task for task in view.tasks}, style)


def _group(place: int, view: GroupView, renderer: Renderer) -> Section:
    figures = renderer.figures([partial(_drawn, "roc", view)]) if view.tasks else []
    section = renderer.section(
        "group",
        view.title,
        view=view,
        figure=figures[0] if figures else "",
        validation_columns=VALIDATION_COLUMNS,
        lists=[
            ("Associated words", view.row.num_associated, view.best_words(emergent=False, top=_SHOWN)),
            ("Emergent words", view.row.num_emergent, view.best_words(emergent=True, top=_SHOWN)),
        ],
    )
    return Section(f"{section.anchor}-{place + 1}", section.title, section.body)


def _lost(run: RunData, renderer: Renderer) -> Section | None:
    lines = lost_in(run)
    return renderer.section("discovery_lost", "Lost", lost=lines) if lines else None
