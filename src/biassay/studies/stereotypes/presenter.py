"""How stereotypes are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from biassay.pages.charts.drawing import Drawing
from biassay.pages.comparing import lay_out_comparison, print_differences
from biassay.pages.formats import decimals, interval_text
from biassay.pages.presenter import Presenter
from biassay.pages.publish.citations import Use, uses_of_source
from biassay.pages.publish.layout import Table
from biassay.pages.publish.model_card import Card
from biassay.pages.section import Part, Renderer, Statement
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.studies.stereotypes.card import stereotypes_card
from biassay.studies.stereotypes.compare import AgreementDifference, compare_stereotypes
from biassay.studies.stereotypes.page import profile_figures, stereotypes_part
from biassay.studies.stereotypes.tables import agreement_table
from biassay.studies.stereotypes.terminal import print_stereotypes
from biassay.studies.stereotypes.view import View
from biassay.studies.stereotypes.words import measure_name

__all__ = ["StereotypePresenter"]


class StereotypePresenter(Presenter):
    package = "biassay.studies.stereotypes"

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        return stereotypes_part(View(gathered.run), renderer)

    def print(self, gathered: Gathered, console: Console, **_: Any) -> None:
        print_stereotypes(View(gathered.run), console)

    def tables(self, gathered: Gathered) -> Iterator[tuple[str, Table]]:
        table = agreement_table(View(gathered.run))
        if table is not None:
            yield "agreement-with-people", table

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        view = View(gathered.run)
        for model in view.models:
            for record in model.measures:
                yield from (make for _, make in profile_figures(view, model, record))

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

    def labels(self, run: RunData) -> Sequence[str]:
        return [model.label for model in View(run).models]

    def card(self, run: RunData, label: str) -> Card:
        return stereotypes_card(run, label)

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_stereotypes(runs, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        renderer.environment.globals.update(decimals=decimals, span=interval_text, measure_name=measure_name)
        section = renderer.section("agreements", "Agreement with people", rows=comparison.tables["agreements"])
        return lay_out_comparison(comparison, _statements(comparison), [section])

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        print_differences(comparison, console, _statements(comparison))


def _statements(comparison: Comparison) -> list[Statement]:
    return [_statement(row) for row in comparison.tables["agreements"]]


def _statement(row: AgreementDifference) -> Statement:
    model, baseline, difference, between = (
        "–" if value is None else decimals(value)
        for value in (row.tau_model, row.tau_baseline, row.difference, row.tau_between)
    )
    return Statement(
        f"{row.model}, {measure_name(row.measure)}: agrees with people with tau {model}, {row.baseline} with "
        f"{baseline}; the difference is {difference} (95% over groups "
        f"{interval_text(row.interval_low, row.interval_high)}). The two agree with each other with tau {between}."
    )
