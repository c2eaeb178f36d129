"""The part of a page about stereotypes in language models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.profiles import profile
from biassay.pages.charts.style import Style
from biassay.pages.formats import MANY_MODELS, counted, shown
from biassay.pages.plain_tables import cells_of
from biassay.pages.section import Part, Renderer, Section, Statement
from biassay.pages.sentences import in_short, points, statements
from biassay.results.data import RunData
from biassay.results.slices import Slice
from biassay.studies.stereotypes.centring import centred, is_centred, means_of, sides, singles, traits_of
from biassay.studies.stereotypes.columns import TABLES
from biassay.studies.stereotypes.figure import figure_of
from biassay.studies.stereotypes.findings import findings_of
from biassay.studies.stereotypes.records import GroupAlignmentRow, InputsRecord, ProfileRow
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
    terms_of,
)
from biassay.studies.stereotypes.view import by_group, closest, measure_name, measures_of, models_of

__all__ = ["profile_figures", "stereotypes_part"]

_MOST_GROUPS = 60
_ACROSS = 7  # pairs
_TOLD = 5  # groups in words
_LEADING = 3
_TITLES = {spec.name: spec.title for spec in TABLES}


def stereotypes_part(run: RunData, renderer: Renderer) -> Part:
    """Everything about one run of stereotypes."""
    models, manifest = models_of(run), run.manifest
    made = {"manifest": manifest, "inputs": manifest.inputs, "settings": manifest.settings}
    return Part(
        anchor=renderer.anchor,
        title=f"Stereotypes in {', '.join(model.label for model in models) or 'no model'}",
        headline=headline(run),
        summary=_said(run, models),
        meaning=MEANING,
        figure=figure_of(run, models),
        terms=terms_of(run),
        sections=[
            *renderer.notes([*notes_of(run, models), *people_notes(run)]),
            *(_model(place, model, run, renderer) for place, model in enumerate(models, start=1)),
            renderer.section("stereotypes_made", "How it was made", **made),
        ],
    )


def _said(run: RunData, models: Sequence[Slice]) -> list[Statement]:
    """Of every model how it agrees with people, and what sets its groups apart; of very many what they share."""
    findings = findings_of(run)
    if len(models) > MANY_MODELS:
        return statements(findings)
    summary = []
    for model in models:
        own = [one for one in findings if one.model == model.label]
        listed = points([one for one in own if one.unit == "tau"])
        agreements = tuple(f"{text}{name}" for text, name in listed)
        groups = tuple(_groups_said(run, model))
        text = f"{model.label}: {in_short(own)}"
        summary.append(
            Statement(text, (*agreements, *groups), model.label, (*(name for _, name in listed), *[""] * len(groups)))
        )
    return summary


def _groups_said(run: RunData, model: Slice) -> Iterator[str]:
    """The groups that stand out most, with their traits."""
    best = closest(model)
    profiles = [] if best is None else singles(best)
    found = [(group, own) for group, own in traits_of(profiles, run.manifest.inputs).items() if own]
    verb = "stands out as" if is_centred(profiles) else "goes with"
    ordered = sorted(found, key=lambda one: -one[1][0].beyond)
    for group, own in ordered[:_TOLD]:
        yield f"{group} {verb} {', '.join(f'{trait.name} ({trait.beyond:.2f})' for trait in own[:_LEADING])}"
    if len(found) > _TOLD:
        yield f"{counted(len(found) - _TOLD, 'more group')} in the figure"


def _model(place: int, model: Slice, run: RunData, renderer: Renderer) -> Section:
    best, inputs = closest(model), run.manifest.inputs
    figures = [] if best is None else profile_figures(run, place, best)[:_MOST_GROUPS]
    rated = {} if best is None else {row.group: row for row in by_group(best)}
    captions = [_caption(rated.get(row.group)) for row, _ in figures]
    drawn = renderer.figures([make for _, make in figures])

    def cells(title: str, table: Table, *, turned: bool = False) -> dict[str, Any]:
        return cells_of(f"{title}, {model.label}", *table, turned=turned)

    section = renderer.section(
        "model_stereotypes",
        model.label,
        model=model.label,
        agreement=cells("Agreement with people", alignment_table(run, model), turned=True)
        if model["alignments"]
        else None,
        dumbbells=list(zip(drawn, captions, strict=False)),
        compared=measure_name(best.row.measure) if best is not None and figures else None,
        dimensions=list(dict.fromkeys(inputs.dimensions.values())),
        measures=[_measure(measure, run, cells) for measure in measures_of(model)],
        asked=cells("What was asked", side_table(run, "models", model), turned=True),
    )
    return Section(f"{section.anchor}-{place}", section.title, section.body)


def _caption(rated: GroupAlignmentRow | None) -> str:
    tau = f"tau {shown('number', None if rated is None else rated.tau)}"
    return f"{tau}, a pilot group" if rated is not None and rated.pilot else tau


def _measure(measure: Slice, run: RunData, cells: Any) -> dict[str, Any]:
    """What the template is given of one measure."""
    name = measure_name(measure.row.measure)
    profiles = singles(measure)
    rated = Slice("", None, {"group_alignments": tuple(by_group(measure))})
    apart = centred(profiles)
    return {
        "name": name,
        "over": templates_text(measure.row, run.manifest.inputs),
        "profiles": [(row, apart[row.group]) for row in profiles],
        "means": means_of(profiles) if is_centred(profiles) else None,
        "blocks": _blocks(run.manifest.inputs),
        # What sets a single group most apart, by which cells are shaded.
        "largest": max((abs(s) for own in apart.values() for s in own if s is not None), default=1.0) or 1.0,
        "groups": cells(f"Agreement by group, {name}", side_table(run, "group_alignments", rated)),
        "paired": {
            _TITLES[table]: cells(f"{_TITLES[table]}, {name}", side_table(run, table, measure))
            for table in PAIRED
            if measure[table]
        },
    }


def _blocks(inputs: InputsRecord) -> list[tuple[str, list[tuple[int, str, str]]]]:
    """The pairs of a dimension, with their places: so many columns fit a page."""
    blocks = []
    for name in dict.fromkeys(inputs.dimensions.get(pair, "") for pair in inputs.pairs):
        own = [(i, *sides(p, inputs)) for i, p in enumerate(inputs.pairs) if inputs.dimensions.get(p, "") == name]
        blocks += [(name, own[at : at + _ACROSS]) for at in range(0, len(own), _ACROSS)]
    return blocks


def profile_figures(run: RunData, place: int, measure: Slice) -> list[tuple[ProfileRow, Drawing]]:
    """One a group that people rated; ``place`` is that of the model."""
    rated = [row for row in measure["profiles"] if not row.parts and any(v is not None for v in row.human or ())]
    name = f"profile-{place}-{measure.row.measure}"
    return [(row, partial(_drawn, f"{name}-{row.group}", row, run)) for row in rated]


def _drawn(name: str, of: ProfileRow, run: RunData, style: Style) -> Figure:
    inputs = run.manifest.inputs
    return profile(name, of.group, inputs.pairs, inputs.dimensions, of.scores, of.human, style)
