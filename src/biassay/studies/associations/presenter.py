"""How association tests are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from biassay.pages.charts.drawing import Drawing
from biassay.pages.charts.forest import distinct
from biassay.pages.charts.matrix import MatrixCell, matrix
from biassay.pages.formats import decimals
from biassay.pages.presenter import Presenter
from biassay.pages.publish.citations import Use, uses_of_tests
from biassay.pages.section import Part, Renderer
from biassay.results.data import RunData
from biassay.results.gathering import Gathered
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.findings import findings_of
from biassay.studies.associations.gathering import gather, only_tests
from biassay.studies.associations.lead import corrected_p_of, effect_of, lead_of, p_of
from biassay.studies.associations.marks import NOT_MEASURED, mark_of
from biassay.studies.associations.page import distribution_figures, figure_name, forest_figures, part_of
from biassay.studies.associations.settings import PAPERS
from biassay.studies.associations.view import RunView
from biassay.studies.associations.words import meaning

if TYPE_CHECKING:  # a page waits neither for what prints, nor for papers and comparisons
    from rich.console import Console

    from biassay.pages.publish.layout import Table
    from biassay.pages.publish.methods import Sentence
    from biassay.pages.publish.model_card import Card
    from biassay.results.comparison import Comparison
    from biassay.results.verdicts import Verdict

__all__ = ["CROSSED", "AssociationPresenter"]


CROSSED = (
    Use("words as samples of what they stand for (p)", "clark1973"),
    Use("target words and attribute words as crossed samples (p)", "judd2012"),
    Use("degrees of freedom of the crossed test", "satterthwaite1946"),
    Use("the interval of d", "fieller1954"),
)
"""What the crossed test rests on."""


class AssociationPresenter(Presenter):
    package = "biassay.studies.associations"
    joins_runs = True

    def only(self, run: RunData, patterns: Sequence[str]) -> RunData:
        return only_tests(run, patterns)

    def gather(self, runs: Mapping[str, RunData], *, mixed: bool) -> list[Gathered]:
        return gather(runs, mixed=mixed)

    def anchor(self, gathered: Gathered) -> str:
        return RunView(gathered).name

    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        return part_of(RunView(gathered), renderer)

    def print(self, gathered: Gathered, console: Console, *, everything: bool = False, **_: Any) -> None:
        from biassay.studies.associations.terminal import print_associations

        print_associations(gathered.run, console, everything=everything)

    def tables(self, gathered: Gathered) -> Iterator[tuple[str, Table]]:
        from biassay.studies.associations.tables import associations_table, pooled_table

        run = gathered.run
        if run.manifest.inputs.contexts is not None:
            yield "associations-over-contexts", associations_table(run)
            yield "pooled-effects", pooled_table(run)
        else:
            by_text = bool(run.results) and RunView(gathered).of_papers
            yield "associations-by-text" if by_text else "associations", associations_table(run)

    def files(self, gathered: Sequence[Gathered]) -> Iterator[tuple[str, str, str]]:
        from biassay.studies.associations.tables import nine_columns

        for one in gathered:
            which = f"-{RunView(one).name}" if len(gathered) > 1 else ""
            yield f"results-as-published{which}", "tsv", nine_columns(one.run)

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        view = RunView(gathered)
        yield from (make for _, make in forest_figures(view))
        yield _matrix(view)
        yield from (make for _, _, make in distribution_figures(view))

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        return uses_of_tests(runs)

    def methods(self, run: RunData) -> Iterator[Use]:
        yield Use("the method WEAT", "caliskan2017")
        if any(result.level == "sentence" for result in run.results):
            yield Use("the method SEAT", "may2019")
        if run.manifest.inputs.contexts is not None:
            yield Use("the method CEAT", "guo2021")
        for protocol in dict.fromkeys(row.protocol for row in run.results if row.protocol in PAPERS):
            yield Use(f"the permutation test of protocol {protocol}", protocol)
        leads = {lead_of(row) for row in run.results if p_of(row) is not None}
        if "crossed" in leads:
            yield from CROSSED
        if any(corrected_p_of(row) is not None and row.family_name in (None, "run", "rows") for row in run.results):
            yield Use("correction for the number of questions", "holm1979")
        if any(row.form_of and row.protocol not in PAPERS for row in run.results):
            yield Use("correction of the forms of a question", "goeman2010")
        if "text" not in leads and any(row.p_value_by_word_holm is not None for row in run.results):
            yield Use("correction of p (these words only)", "tarone1990")

    def methods_paragraph(self, run: RunData) -> Iterator[Sentence]:
        from biassay.pages.publish.methods import works_of
        from biassay.studies.associations.methods_text import sentences_of

        return sentences_of(run, works_of(self.sources([run])))

    def labels(self, run: RunData) -> Sequence[str]:
        return list(model_labels(run).values())

    def card(self, run: RunData, label: str) -> Card:
        from biassay.pages.publish.model_card import card_of_findings
        from biassay.studies.associations.entries import asked, entry

        labels = model_labels(run)
        own = [result for result in run.results if labels[model_key(result)] == label]
        findings = findings_of(run, label)
        return card_of_findings(run, findings, asked(run, own), [entry(result, run) for result in own], [meaning(run)])

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        from biassay.studies.associations.compare import compare_associations

        return compare_associations(runs, baseline=baseline, mixed=mixed)

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        from biassay.studies.associations.gate import verdicts_of

        return verdicts_of(comparison, margin=margin, alpha=alpha)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        from biassay.studies.associations.differences import differences_part

        return differences_part(comparison, renderer)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        from biassay.studies.associations.difference_lines import print_association_differences

        print_association_differences(comparison, console)

    def comparison_methods(self, comparison: Comparison) -> Iterator[Sentence]:
        from biassay.studies.associations.methods_text import comparison_sentences

        return comparison_sentences(comparison)

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, Table]]:
        from biassay.studies.associations.difference_table import difference_table

        yield "differences", difference_table(comparison)

    def comparison_figures(self, comparison: Comparison) -> Iterator[Drawing]:
        from biassay.studies.associations.differences import difference_figures

        return (make for _, make in difference_figures(comparison))


def _matrix(view: RunView) -> Drawing:
    tests = distinct([figure_name(test) for test in view.tests])
    names = {test.test: name for test, name in zip(view.tests, tests, strict=True)}
    cells = [
        MatrixCell(
            view.label(r),
            names[r.test],
            None if (code := mark_of(r)) == NOT_MEASURED else code,
            "" if r.effect_size is None else decimals(effect_of(r)),
            view.tip(r),
        )
        for r in view.run.results
    ]
    title = "Significant associations"
    return lambda style: matrix(f"matrix-{view.name}", title, cells, tests, view.models, style)
