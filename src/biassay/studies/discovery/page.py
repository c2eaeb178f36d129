"""The part of a page about words tied to groups."""

from __future__ import annotations

from functools import partial

from biassay.report.charts.drawing import Drawing, Figure
from biassay.report.charts.roc import roc
from biassay.report.charts.style import Style
from biassay.report.section import Part, Renderer, Section, Statement
from biassay.results.discovery import Discovery, GroupFindings
from biassay.studies.discovery.words import (
    MEANING_OF_WORDS,
    VALIDATION_COLUMNS,
    best_words,
    columns_of,
    discovery_headline,
    discovery_summary,
    lost_in,
    most_against,
    number,
    q_text,
    tasks,
)

__all__ = ["discovery_part", "roc_figures"]

_SHOWN = 100


def discovery_part(found: Discovery, renderer: Renderer) -> Part:
    """Everything about one discovery."""
    renderer.environment.globals.update(number=number, q_text=q_text, most_against=most_against)
    sections = [
        renderer.section("columns", "What the columns say", manifest=found.manifest, columns=columns_of(found)),
        *(_group(place, group, renderer) for place, group in enumerate(found.results)),
        _lost(found, renderer),
        renderer.section("discovery_made", "How it was made", manifest=found.manifest),
    ]
    return Part(
        anchor=renderer.anchor,
        title=f"Words tied to groups in {', '.join(record.name for record in found.manifest.models)}",
        headline=discovery_headline(found),
        summary=[Statement(sentence) for sentence in discovery_summary(found)],
        meaning=MEANING_OF_WORDS,
        sections=[section for section in sections if section is not None],
    )


def roc_figures(found: Discovery) -> list[tuple[GroupFindings, Drawing]]:
    """One a group with words of known truth, all of its tasks in it."""
    return [(group, partial(_drawn, f"roc-{group.group}", group)) for group in found.results if tasks(group)]


def _drawn(name: str, group: GroupFindings, style: Style) -> Figure:
    return roc(name, group.label, {task.name: task.curve for task in tasks(group)}, style)


def _group(place: int, group: GroupFindings, renderer: Renderer) -> Section:
    named = tasks(group)
    figures = renderer.figures([partial(_drawn, "roc", group)]) if named else []
    section = renderer.section(
        "group",
        group.label,
        found=group,
        tasks=named,
        figure=figures[0] if figures else "",
        validation_columns=VALIDATION_COLUMNS,
        lists=[
            ("Associated words", group.num_associated, best_words(group, emergent=False, top=_SHOWN)),
            ("Emergent words", group.num_emergent, best_words(group, emergent=True, top=_SHOWN)),
        ],
    )
    return Section(f"{section.anchor}-{place + 1}", section.title, section.body)


def _lost(found: Discovery, renderer: Renderer) -> Section | None:
    lines = lost_in(found)
    return renderer.section("discovery_lost", "Lost", lost=lines) if lines else None
