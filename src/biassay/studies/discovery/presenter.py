"""How words associated with groups are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from biassay.files import printable
from biassay.pages.charts.drawing import Drawing
from biassay.pages.comparing import lay_out_comparison, print_differences
from biassay.pages.plain_tables import filled, print_run, printed, section_of
from biassay.pages.presenter import Presenter
from biassay.pages.publish.citations import Use, uses_of_source
from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.methods import Sentence, works_of
from biassay.pages.publish.model_card import Card, card_of_findings, version_of
from biassay.pages.section import Part, Renderer
from biassay.pages.sentences import statements
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.tables import Column
from biassay.studies.discovery.compare import compare_discoveries
from biassay.studies.discovery.findings import findings_of
from biassay.studies.discovery.methods_text import sentences_of
from biassay.studies.discovery.page import discovery_part, roc_figures
from biassay.studies.discovery.shown import MEANING, TERMS, curve_table, group_table, headline, notes_of, word_table
from biassay.studies.discovery.view import GroupView, groups_of

__all__ = ["DiscoveryPresenter"]

_WORDS_PRINTED = 20
_LISTED = 30


def _shared(name: str, label: str, text: str) -> Iterator[Column]:
    """How many words, and the first of them."""
    yield Column(f"num_{name}", label, f"How many words are associated with the group {text}.", "count",
                 lambda row: len(getattr(row, name)))  # fmt: skip
    yield Column(name, "words", "The first of them.", get=lambda row: getattr(row, name)[:_LISTED])


_SHARED = (
    Column("group", "group", "The group."),
    Column("model", "model", "The model that is compared."),
    *_shared("both", "by both", "by both models"),
    *_shared("only_baseline", "by the first only", "by the first model only"),
    *_shared("only_model", "by the model only", "by the model only"),
)


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
        everything: bool = False,
        **options: Any,  # noqa: ARG002
    ) -> None:
        """``top`` words of each list or all, of all groups or of some."""
        run = gathered.run
        views = [view for view in groups_of(run) if only is None or view.row.group in only]
        items = {(view.model, view.row.group) for view in views}
        findings = [one for one in findings_of(run) if (one.model, one.item) in items]
        explained = word_table(run, ())[0] if everything else ()
        meaning = [*(f"{column.label}: {column.help}" for column in explained), TERMS["score"], MEANING]
        tables = list(_printed(run, views, None if everything else top))
        notes = [*notes_of(run, views), run.manifest.inputs.note]
        print_run(console, headline(run), tables, statements(findings), notes, meaning)

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        return iter(roc_figures(gathered.run))

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        for inputs in (run.manifest.inputs for run in runs):
            yield from uses_of_source(inputs.citation, inputs.grouping, f"groups of {inputs.grouping}")

    def methods(self, run: RunData) -> Iterator[Use]:  # noqa: ARG002
        yield Use("the methods IBD and EIBD", "guo2021")
        yield Use("correction for the number of words", "benjamini1995")

    def methods_paragraph(self, run: RunData) -> Iterator[Sentence]:
        return sentences_of(run, works_of(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        return list(dict.fromkeys(view.model for view in groups_of(run)))

    def card(self, run: RunData, label: str) -> Card:
        views = [view for view in groups_of(run) if view.model == label]
        # A card goes further than a run does: it says how many words, and not which.
        own = [replace(one, evidence=()) for one in findings_of(run) if one.model == label]
        limits = [MEANING, run.manifest.inputs.note]
        entries = [_entry(run, view) for view in views]
        return card_of_findings(run, own, headline(run), entries, limits, notes_of(run, views))

    def card_name(self, label: str) -> str:
        return f"words-{label}"

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_discoveries(runs, baseline=baseline, mixed=mixed)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        section = section_of("words", "Words associated with groups", _SHARED, comparison.tables["words"], renderer)
        return lay_out_comparison(comparison, (), [section])

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        table = printed("Words associated with groups", _SHARED, comparison.tables["words"])
        print_differences(comparison, console, (), before=[table])


def _printed(run: RunData, views: Sequence[GroupView], top: int | None) -> Iterator[RenderableType]:
    columns, rows = group_table(run, views)
    yield printed("Groups", filled(columns, rows), rows)
    for view in views:
        if view.curves:
            yield printed(f"{view.title}: words with known truth", *curve_table(run, view))
        for emergent, total in ((False, view.row.num_associated), (True, view.row.num_emergent)):
            words = view.best_words(emergent=emergent, top=top)
            count = f"{total:,}" if len(words) == total else f"the first {len(words)} of {total:,}"
            title = f"{view.title}: {'emergent' if emergent else 'associated'} words ({count})"
            yield printed(title, *word_table(run, words), most=top) if words else Text(printable(title))


def _entry(run: RunData, view: GroupView) -> Indexed:
    row, inputs = view.row, run.manifest.inputs
    metrics = [
        Metric("words_associated", "Words detected by IBD", row.num_associated),
        Metric("words_eibd", "Words detected by EIBD", row.num_eibd),
        Metric("words_emergent", "Words of these that exceed their categories, tested", row.num_emergent),
    ]
    areas = [curve.area for curve in view.curves if curve.task == "ibd"]
    metrics += [Metric("roc_auc", "Area under the curve, words rated by people", area) for area in areas]
    args = {"words": str(row.num_words), "alpha": f"{run.manifest.settings.alpha:g}", "biassay": version_of(run)}
    name, task = f"{inputs.grouping_title}: {row.label}", "Words associated with a social group"
    return Indexed("feature-extraction", task, inputs.grouping, name, row.group, args, tuple(metrics))
