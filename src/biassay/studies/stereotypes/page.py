"""The part of a page about stereotypes in language models."""

from __future__ import annotations

from functools import partial

from biassay.pages.charts.drawing import Drawing, Figure, can_draw
from biassay.pages.charts.profiles import profile
from biassay.pages.charts.style import Style
from biassay.pages.section import Part, Renderer, Section, Statement
from biassay.studies.stereotypes.records import ProfileRow
from biassay.studies.stereotypes.view import MeasureView, ModelView, View
from biassay.studies.stereotypes.words import (
    MEANING_OF_PROFILES,
    domination,
    interval_text,
    measure_name,
    number,
    p_text,
    stereotypes_headline,
    stereotypes_summary,
    templates_text,
)

__all__ = ["profile_figures", "stereotypes_part"]

_MOST_GROUPS = 60


def stereotypes_part(found: View, renderer: Renderer) -> Part:
    """Everything about one run of stereotypes."""
    renderer.environment.globals.update(
        number=number,
        p_text=p_text,
        interval_text=interval_text,
        measure_name=measure_name,
        domination=domination,
        templates_text=templates_text,
    )
    sections = [_model(place, result, found, renderer) for place, result in enumerate(found.models)]
    human = found.inputs.human
    if human is not None and human.notes:
        sections.append(renderer.section("human_notes", "About the human judgements", human=human))
    made = {"manifest": found.manifest, "inputs": found.inputs, "settings": found.settings}
    sections.append(renderer.section("stereotypes_made", "How it was made", **made))
    return Part(
        anchor=renderer.anchor,
        title=f"Stereotypes in {', '.join(result.label for result in found.models) or 'no model'}",
        headline=stereotypes_headline(found),
        summary=[Statement(sentence) for sentence in stereotypes_summary(found)],
        meaning=MEANING_OF_PROFILES,
        sections=sections,
    )


def _model(place: int, result: ModelView, found: View, renderer: Renderer) -> Section:
    shown = result.closest
    figures = [] if shown is None or not can_draw() else profile_figures(found, result, shown)[:_MOST_GROUPS]
    drawn = renderer.figures([make for _, make in figures])
    section = renderer.section(
        "model_stereotypes",
        result.label,
        result=result,
        found=found,
        pairs=found.inputs.pairs,
        largest={(result.label, m.measure): _largest(m) for m in result.measures},
        dumbbells=[(svg, _caption(p, shown)) for (p, _), svg in zip(figures, drawn, strict=True)],
        shown_measure=shown.measure if shown is not None and any(p.human for p in shown.profiles) else None,
        other_measures=len(result.measures) > 1,
        dimension_names=list(dict.fromkeys(found.inputs.dimensions.values())),
    )
    return Section(f"{section.anchor}-{place + 1}", section.title, section.body)


def profile_figures(found: View, result: ModelView, record: MeasureView) -> list[tuple[ProfileRow, Drawing]]:
    """One a group that people rated."""
    place = found.models.index(result) + 1
    rated = [p for p in record.profiles if not p.parts and p.human is not None and any(v is not None for v in p.human)]
    return [(p, partial(_drawn, f"profile-{place}-{record.measure}-{p.group}", p, found)) for p in rated]


def _drawn(name: str, of: ProfileRow, found: View, style: Style) -> Figure:
    return profile(name, of.group, found.inputs.pairs, found.inputs.dimensions, of.scores, of.human, style)


def _caption(of: ProfileRow, record: MeasureView | None) -> str:
    groups = () if record is None or record.overall is None else record.groups_of(record.overall)
    tau = next((g.tau for g in groups if g.group == of.group), None)
    return f"tau {number(tau)}"


def _largest(record: MeasureView) -> float:
    """The largest score of a single group, by which cells are shaded."""
    scores = (abs(score) for p in record.profiles if not p.parts for score in p.scores if score is not None)
    return max(scores, default=1.0) or 1.0
