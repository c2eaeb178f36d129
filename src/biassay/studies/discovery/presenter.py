"""How words tied to groups are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from biassay.report.charts.drawing import Drawing
from biassay.report.comparing import lay_out_comparison, print_differences
from biassay.report.presenter import Presenter
from biassay.report.publish.citations import Use, uses_of_source
from biassay.report.publish.model_card import Card
from biassay.report.section import Part, Renderer, Statement
from biassay.results.comparison import Comparison
from biassay.results.discovery import Discovery
from biassay.results.gathering import Gathered
from biassay.studies.discovery.card import discovery_card
from biassay.studies.discovery.compare import compare_discoveries
from biassay.studies.discovery.page import discovery_part, roc_figures
from biassay.studies.discovery.terminal import print_discovery

__all__ = ["DiscoveryPresenter"]

_WORDS_PRINTED = 20


class DiscoveryPresenter(Presenter[Discovery]):
    package = "biassay.studies.discovery"

    def anchor(self, gathered: Gathered) -> str:  # noqa: ARG002
        return "words"

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        return discovery_part(gathered.run, renderer)

    def print(self, gathered: Gathered, console: Console) -> None:
        print_discovery(gathered.run, console, top=_WORDS_PRINTED)

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        return (make for _, make in roc_figures(gathered.run))

    def sources(self, runs: Sequence[Discovery]) -> Iterator[Use]:
        for made in (run.manifest for run in runs):
            yield from uses_of_source(made.citation, made.grouping, f"groups of {made.grouping}")

    def methods(self, run: Discovery) -> Iterator[Use]:  # noqa: ARG002
        yield Use("the methods IBD and EIBD", "guo2021")
        yield Use("correction for the number of words", "benjamini1995")

    def labels(self, run: Discovery) -> Sequence[str]:
        return [run.manifest.models[0].name] if run.results else []

    def card(self, run: Discovery, label: str) -> Card:  # noqa: ARG002
        return discovery_card(run)

    def card_name(self, label: str) -> str:
        return f"words-{label}"

    def compare(self, runs: Mapping[str, Discovery], *, baseline: str | None, mixed: bool) -> Comparison:
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
