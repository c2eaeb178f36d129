"""The part of a page about stereotypes in language models."""

from __future__ import annotations

from functools import partial
from typing import Any

from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.profiles import profile
from biassay.pages.charts.style import Style
from biassay.pages.formats import shown
from biassay.pages.plain_tables import cells_of
from biassay.pages.section import Part, Renderer, Section
from biassay.pages.sentences import statements
from biassay.results.data import RunData
from biassay.results.slices import Slice
from biassay.studies.stereotypes.columns import TABLES
from biassay.studies.stereotypes.findings import findings_of
from biassay.studies.stereotypes.records import GroupAlignmentRow, ProfileRow
from biassay.studies.stereotypes.shown import (
    MEANING,
    PAIRED,
    Table,
    alignment_table,
    headline,
    notes_of,
    people_notes,
    side_table,
    templates_text,
)
from biassay.studies.stereotypes.view import by_group, closest, measure_name, measures_of, models_of

__all__ = ["profile_figures", "stereotypes_part"]

_MOST_GROUPS = 60
_TITLES = {spec.name: spec.title for spec in TABLES}


def stereotypes_part(run: RunData, renderer: Renderer) -> Part:
    """Everything about one run of stereotypes."""
    models, manifest = models_of(run), run.manifest
    made = {"manifest": manifest, "inputs": manifest.inputs, "settings": manifest.settings}
    return Part(
        anchor=renderer.anchor,
        title=f"Stereotypes in {', '.join(model.label for model in models) or 'no model'}",
        headline=headline(run),
        summary=statements(findings_of(run)),
        meaning=MEANING,
        sections=[
            *renderer.notes([*notes_of(run, models), *people_notes(run)]),
            *(_model(place, model, run, renderer) for place, model in enumerate(models, start=1)),
            renderer.section("stereotypes_made", "How it was made", **made),
        ],
    )


def _model(place: int, model: Slice, run: RunData, renderer: Renderer) -> Section:
    best, inputs = closest(model), run.manifest.inputs
    figures = [] if best is None else profile_figures(run, place, best)[:_MOST_GROUPS]
    rated = {} if best is None else {row.group: row for row in by_group(best)}
    captions = [_caption(rated.get(row.group)) for row, _ in figures]
    drawn = renderer.figures([make for _, make in figures])

    def cells(title: str, table: Table) -> dict[str, Any]:
        return cells_of(f"{title}, {model.label}", *table)

    section = renderer.section(
        "model_stereotypes",
        model.label,
        agreement=cells("Agreement with people", alignment_table(run, model)) if model["alignments"] else None,
        dumbbells=list(zip(drawn, captions, strict=False)),
        compared=measure_name(best.row.measure) if best is not None and figures else None,
        dimensions=list(dict.fromkeys(inputs.dimensions.values())),
        pairs=inputs.pairs,
        measures=[_measure(measure, run, cells) for measure in measures_of(model)],
        asked=cells("What was asked", side_table(run, "models", model)),
    )
    return Section(f"{section.anchor}-{place}", section.title, section.body)


def _caption(rated: GroupAlignmentRow | None) -> str:
    tau = f"tau {shown('number', None if rated is None else rated.tau)}"
    return f"{tau}, a pilot group" if rated is not None and rated.pilot else tau


def _measure(measure: Slice, run: RunData, cells: Any) -> dict[str, Any]:
    """What the template is given of one measure."""
    name = measure_name(measure.row.measure)
    profiles = [row for row in measure["profiles"] if not row.parts]
    rated = Slice("", None, {"group_alignments": tuple(by_group(measure))})
    return {
        "name": name,
        "over": templates_text(measure.row, run.manifest.inputs),
        "profiles": profiles,
        # The largest score of a single group, by which cells are shaded.
        "largest": max((abs(s) for row in profiles for s in row.scores if s is not None), default=1.0) or 1.0,
        "groups": cells(f"Agreement by group, {name}", side_table(run, "group_alignments", rated)),
        "paired": {
            _TITLES[table]: cells(f"{_TITLES[table]}, {name}", side_table(run, table, measure))
            for table in PAIRED
            if measure[table]
        },
    }


def profile_figures(run: RunData, place: int, measure: Slice) -> list[tuple[ProfileRow, Drawing]]:
    """One a group that people rated; ``place`` is that of the model."""
    rated = [row for row in measure["profiles"] if not row.parts and any(v is not None for v in row.human or ())]
    name = f"profile-{place}-{measure.row.measure}"
    return [(row, partial(_drawn, f"{name}-{row.group}", row, run)) for row in rated]


def _drawn(name: str, of: ProfileRow, run: RunData, style: Style) -> Figure:
    inputs = run.manifest.inputs
    return profile(name, of.group, inputs.pairs, inputs.dimensions, of.scores, of.human, style)
