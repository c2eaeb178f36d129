"""The part of a page about words associated with groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup

from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.roc import roc
from biassay.pages.charts.style import Style
from biassay.pages.formats import decimals, format_p
from biassay.pages.panels import Bar, Panel, Panels, draw_panels
from biassay.pages.plain_tables import cells_of, filled, section_of
from biassay.pages.section import Part, Renderer, Section, Statement
from biassay.pages.sentences import sentence
from biassay.results.data import RunData
from biassay.results.tables import leave_out, pick
from biassay.studies.discovery.findings import findings_of
from biassay.studies.discovery.making import CURVE_ARRAYS, array_name
from biassay.studies.discovery.records import CurveRow, WordRow
from biassay.studies.discovery.shown import (
    MEANING,
    RULES,
    TERMS,
    Table,
    curve_table,
    group_table,
    headline,
    lost_of,
    most_against,
    notes_about,
    rated_table,
    score_table,
    word_table,
)
from biassay.studies.discovery.view import GroupView, groups_of, models_of

__all__ = ["curve_of", "discovery_part", "roc_figures"]

_SHOWN = 100
_LEADING = 15
_EMERGENT = "emergent: the categories of the group do not explain it"
_TURNED = 6  # groups, for which there is room across


def discovery_part(run: RunData, renderer: Renderer) -> Part:
    """Everything about one search."""
    views, models = groups_of(run), run.tables.get("models", ())
    found, rows = group_table(run, views)
    others = leave_out(filled(found, rows), "label", *(["model"] if len(run.manifest.models) == 1 else []))
    columns = [*pick(found, "label"), *others]
    vocabularies = ", ".join(dict.fromkeys(row.vocabulary for row in models))
    return Part(
        anchor=renderer.anchor,
        title=f"Words associated with groups in {', '.join(model.label for model in models_of(run)) or 'no model'}",
        headline=headline(run),
        summary=_said(run, views),
        meaning=MEANING,
        notes=[run.manifest.inputs.note],
        figure=_figure(run, views),
        terms=TERMS,
        sections=[
            *renderer.notes(lost_of(run)),
            section_of("groups", "Groups", columns, rows, renderer, turned=len(rows) <= _TURNED),
            *(_group(place, run, view, renderer) for place, view in enumerate(views)),
            renderer.section("discovery_made", "How it was made", manifest=run.manifest, vocabularies=vocabularies),
        ],
    )


def _said(run: RunData, views: Sequence[GroupView]) -> list[Statement]:
    """A sentence a group, with what keeps it from being misread."""
    several = len(run.manifest.models) > 1
    return [
        Statement(
            f"{one.model}: {sentence(one)}" if several else sentence(one),
            tuple(notes_about(run, view)),
            one.model if several else "",
        )
        for one, view in zip(findings_of(run), views, strict=True)
    ]


def _figure(run: RunData, views: Sequence[GroupView]) -> Markup | None:
    """The words that lead in every group; of several models beside each other."""
    if not views:
        return None
    models = list(dict.fromkeys(view.model for view in views))
    order = list(dict.fromkeys(view.row.group for view in views))
    panels = [
        Panel(
            view.row.label,
            models.index(view.model),
            tuple(_bar(run, word) for word in view.best_words(emergent=False, top=_LEADING)),
            _short(run, view),
        )
        for view in sorted(views, key=lambda view: order.index(view.row.group))
    ]
    return draw_panels(
        [Panels("", tuple(panels))],
        models,
        title="Words that go most with the names of a group, by score.",
        caption="A score is against the one group that the word differs from most: tap it to see which.",
        marks=("associated", _EMERGENT) if any(bar.marked for panel in panels for bar in panel.bars) else None,
    )


def _short(run: RunData, view: GroupView) -> str:
    """How many words, and the group that most of those shown are against."""
    against = Counter(most_against(run, word) for word in view.best_words(emergent=False, top=_LEADING))
    text = f"{view.row.num_associated:,} of {view.row.num_words:,} words, {view.row.num_emergent:,} of them emergent"
    for group, count in against.most_common(1):
        if 2 * count > against.total():
            text += f"; {count} of these {against.total()} against {group}"
    return text


def _bar(run: RunData, word: WordRow) -> Bar:
    emergent = f"\n{_EMERGENT}" if word.emergent else ""
    most, q = most_against(run, word), format_p(word.q_value)
    text = f"{word.word}: score {decimals(word.score)} against {most}, q = {q}{emergent}"
    return Bar(word.word, word.score or 0.0, decimals(word.score), text, word.emergent)


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
        _list(run, view, "Associated words", view.row.num_associated, emergent=False),
        _list(run, view, "Emergent words", view.row.num_emergent, emergent=True),
    ]
    section = renderer.section(
        "group",
        view.title,
        figures=figures,
        curves=_cells("Detection of rated words", view, curve_table(run, view), turned=True) if view.curves else None,
        rated=_cells("Rated words", view, rated_table(run, view)),
        scores=_cells("Scores of rated words", view, score_table(run, view.validated)),
        lists=lists,
    )
    return Section(f"{section.anchor}-{place + 1}", section.title, section.body)


def _list(run: RunData, view: GroupView, kind: str, total: int, *, emergent: bool) -> tuple[Any, ...]:
    words = view.best_words(emergent=emergent, top=_SHOWN)
    scores = _cells(f"{kind} against every group", view, score_table(run, words))
    return kind, total, _cells(kind, view, word_table(run, words)), scores


def _cells(title: str, view: GroupView, table: Table, *, turned: bool = False) -> dict[str, Any]:
    return cells_of(f"{title}, {view.title}", *table, turned=turned)
