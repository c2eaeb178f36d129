"""How stereotypes are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType

from biassay.pages.charts.drawing import Drawing
from biassay.pages.comparing import lay_out_comparison, print_differences
from biassay.pages.formats import interval_text
from biassay.pages.plain_tables import PRINTED, print_run, printed, section_of
from biassay.pages.presenter import Presenter
from biassay.pages.publish.citations import Use, uses_of_source
from biassay.pages.publish.layout import Table
from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.methods import Sentence, works_of
from biassay.pages.publish.model_card import Card, card_of_findings, version_of
from biassay.pages.section import Part, Renderer
from biassay.pages.sentences import statements
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.slices import Slice
from biassay.results.tables import Column
from biassay.studies.stereotypes.columns import TABLES
from biassay.studies.stereotypes.compare import compare_stereotypes
from biassay.studies.stereotypes.findings import findings_of
from biassay.studies.stereotypes.methods_text import sentences_of
from biassay.studies.stereotypes.page import profile_figures, stereotypes_part
from biassay.studies.stereotypes.shown import (
    AGREEMENT,
    MEANING,
    PAIRED,
    agreement_table,
    alignment_table,
    headline,
    leading_table,
    notes_of,
    people_notes,
    side_table,
    templates_text,
    terms_of,
)
from biassay.studies.stereotypes.view import closest, measure_name, measures_of, models_of, overall

__all__ = ["StereotypePresenter"]

_PAIRED_ROWS = 15
_TASKS = {"masked": "fill-mask", "causal": "text-generation"}
_TITLES = {spec.name: spec.title for spec in TABLES}


class StereotypePresenter(Presenter):
    package = "biassay.studies.stereotypes"

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        return stereotypes_part(gathered.run, renderer)

    def print(self, gathered: Gathered, console: Console, *, everything: bool = False, **_: Any) -> None:
        run = gathered.run
        models = models_of(run)
        findings = findings_of(run)
        tables = [table for model in models for table in _printed(run, model, everything=everything)]
        notes = [*notes_of(run, models), *people_notes(run)]
        told = [f"{term}: {meaning}" for term, meaning in terms_of(run).items()] if everything else []
        print_run(console, headline(run), tables, statements(findings), notes, [*told, MEANING])

    def tables(self, gathered: Gathered) -> Iterator[tuple[str, Table]]:
        table = agreement_table(gathered.run)
        if table is not None:
            yield "agreement-with-people", table

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        for place, model in enumerate(models_of(gathered.run), start=1):
            for measure in measures_of(model):
                yield from (make for _, make in profile_figures(gathered.run, place, measure))

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        for run in runs:
            made = run.manifest.inputs
            yield from uses_of_source(made.citation, made.abc, f"groups and traits of {made.abc}")
            if run.tables.get("rated"):
                yield Use("what people say of paired groups", "ghavami2013")

    def methods(self, run: RunData) -> Iterator[Use]:
        own = [measure_name(name) for name in run.manifest.inputs.measures if name != "ceat"]
        yield Use(f"the measures {', '.join(own)}" if own else "stereotypes in the ABC model", "cao2022")
        if "ceat" in run.manifest.inputs.measures:
            yield Use("the method CEAT", "guo2021")
        if any(row.q_value is not None for row in run.tables.get("emergent", ())):
            yield Use("correction for the number of traits", "benjamini1995")

    def methods_paragraph(self, run: RunData) -> Iterator[Sentence]:
        return sentences_of(run, works_of(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        return [model.label for model in models_of(run)]

    def card(self, run: RunData, label: str) -> Card:
        models = [model for model in models_of(run) if model.label == label]
        own = [one for one in findings_of(run) if one.model == label]
        entries = [entry for model in models for entry in _entries(model, run)]
        notes = [*notes_of(run, models), *([] if entries else ["No agreement with people was measured."])]
        limits = [MEANING, "A measure that finds no stereotype does not show that a model has none."]
        return card_of_findings(run, own, headline(run), entries, limits, notes)

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_stereotypes(runs, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        rows = comparison.tables["agreements"]
        section = section_of("agreements", "Agreement with people", _DIFFERENCES, rows, renderer)
        return lay_out_comparison(comparison, (), [section])

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        table = printed("Agreement with people", _DIFFERENCES, comparison.tables["agreements"])
        print_differences(comparison, console, (), before=[table])


_DIFFERENCES = (
    Column("measure", "measure", "The measure.", get=lambda row: measure_name(row.measure)),
    Column("model", "model", "The model that is compared."),
    Column("tau_baseline", "tau of the first", "How the first model agrees with people.", "number"),
    Column("tau_model", "tau of the model", "How the model does.", "number"),
    Column("difference", "difference", "The second less the first.", "number"),
    Column("interval", "95%", "With other groups.", get=lambda row: interval_text(row.interval_low, row.interval_high)),
    Column("tau_between", "tau between the two", "How the models agree with each other.", "number"),
    Column("num_groups", "groups", "Groups that are compared.", "count"),
    Column("num_cells", "cells", "Groups and pairs that are compared.", "count"),
)


def _printed(run: RunData, model: Slice, *, everything: bool) -> Iterator[RenderableType]:
    if model["alignments"]:
        yield printed(f"{model.label}: agreement with people", *alignment_table(run, model, *AGREEMENT))
    best = closest(model)  # one measure, for a table of all groups is long
    if best is not None:
        title = f"{model.label}: {measure_name(best.row.measure)}, {templates_text(best.row, run.manifest.inputs)}"
        yield printed(title, *leading_table(run, best), most=None if everything else PRINTED)
    for measure in measures_of(model):
        for name in PAIRED:
            if measure[name]:
                title = f"{model.label}: {measure_name(measure.row.measure)}, {_TITLES[name].lower()}"
                yield printed(title, *side_table(run, name, measure), most=None if everything else _PAIRED_ROWS)


def _entries(model: Slice, run: RunData) -> Iterator[Indexed]:
    """Of every measure its agreement with all people; that with some of them stays in the run."""
    for measure in measures_of(model):
        found, name = overall(measure), measure.row.measure
        if found is not None:
            yield Indexed(
                task=_TASKS.get(model["models"][0].kind, "feature-extraction"),
                task_name="Stereotypes of social groups",
                dataset=run.manifest.inputs.abc,
                dataset_name=f"Agreement with people's ratings: {measure_name(name)}",
                config=name,
                args={"groups": str(found.num_groups), "cells": str(found.num_cells), "biassay": version_of(run)},
                metrics=(
                    Metric("kendall_tau", "Kendall's tau", found.tau),
                    Metric("precision_at_3", "Precision at 3", found.precision),
                ),
            )
