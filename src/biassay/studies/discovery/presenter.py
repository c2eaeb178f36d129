"""How words tied to groups are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from biassay.pages.charts.drawing import Drawing
from biassay.pages.comparing import lay_out_comparison, print_differences
from biassay.pages.presenter import Presenter
from biassay.pages.publish.citations import Use, uses_of_source
from biassay.pages.publish.model_card import Card
from biassay.pages.section import Part, Renderer, Statement
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.studies.discovery.card import discovery_card
from biassay.studies.discovery.compare import compare_discoveries
from biassay.studies.discovery.page import discovery_part, roc_figures
from biassay.studies.discovery.terminal import print_discovery
from biassay.studies.discovery.view import groups_of, labels_of

__all__ = ["DiscoveryPresenter"]

_WORDS_PRINTED = 20


class DiscoveryPresenter(Presenter):
    package = "biassay.studies.discovery"

    def anchor(self, gathered: Gathered) -> str:  # noqa: ARG002
        return "words"

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        return discovery_part(gathered.run, renderer)

    def print(
        self,
        gathered: Gathered,
        console: Console,
        *,
        top: int = _WORDS_PRINTED,
        only: Sequence[str] | None = None,
        **options: Any,  # noqa: ARG002
    ) -> None:
        """``top`` words of each list, of all groups or of some."""
        print_discovery(gathered.run, console, top=top, only=only)

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        return iter(roc_figures(gathered.run))

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        for inputs in (run.manifest.inputs for run in runs):
            yield from uses_of_source(inputs.citation, inputs.grouping, f"groups of {inputs.grouping}")

    def methods(self, run: RunData) -> Iterator[Use]:  # noqa: ARG002
        yield Use("the methods IBD and EIBD", "guo2021")
        yield Use("correction for the number of words", "benjamini1995")

    def labels(self, run: RunData) -> Sequence[str]:
        found = {view.model for view in groups_of(run)}
        return [label for label in labels_of(run) if label in found]

    def card(self, run: RunData, label: str) -> Card:
        return discovery_card(run, label)

    def card_name(self, label: str) -> str:
        return f"words-{label}"

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_discoveries(runs, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        section = renderer.section("shared_words", "Words tied to groups", rows=comparison.tables["words"])
        return lay_out_comparison(comparison, _statements(comparison), [section])

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        print_differences(comparison, console, _statements(comparison))


def _statements(comparison: Comparison) -> list[Statement]:
    return [
        Statement(
            f"{row.group}: {len(row.both):,} words are tied to the group by both, {len(row.only_baseline):,} by "
            f"{row.baseline} only, {len(row.only_model):,} by {row.model} only."
        )
        for row in comparison.tables["words"]
    ]
