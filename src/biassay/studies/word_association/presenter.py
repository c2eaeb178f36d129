"""How word association tests are shown: findings and words in figures, what was answered, tables, and works."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group

from biassay.pages.charts.drawing import Drawing
from biassay.pages.finding_lines import FindingLines, legend_of
from biassay.pages.finding_tables import findings_table, forest_figures
from biassay.pages.formats import counted, interval_text, topic_name
from biassay.pages.overview import CHECKS, overview
from biassay.pages.paired_differences import differences_part, methods_of_differences, paper_differences, print_paired
from biassay.pages.plain import Plain
from biassay.pages.plain_tables import WIDTH, print_run, printed, used
from biassay.pages.publish.citations import Use, uses_of_tests
from biassay.pages.publish.layout import Table
from biassay.pages.publish.methods import Sentence, works_of
from biassay.pages.publish.model_card import Card, card_of_findings
from biassay.pages.section import Part, Renderer, Section
from biassay.pages.sentences import statements
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.gathering import Gathered
from biassay.results.slices import run_of_tests
from biassay.results.verdicts import Verdict
from biassay.studies.paired import verdicts_of
from biassay.studies.word_association.compare import compare_word_associations, pairs_of
from biassay.studies.word_association.evidence import judge
from biassay.studies.word_association.figure import replies_figure, words_figure
from biassay.studies.word_association.methods_text import sentences_of
from biassay.studies.word_association.shown import answered, caption_of

__all__ = ["WordAssociationPresenter"]

_MEANING = (
    "A model was asked which of two group words goes with each of many words. The difference is what the stigmatised "
    "group gets of negative words less what it gets of positive ones. p asks about other words, and other group words "
    "or other answers, and allows for whatever the missing responses would have been."
)
_TERMS = {
    "difference": "What is given to the stigmatised group: the mean over negative words less that over positive ones, "
    "as a share of answers or as log-odds. Both orders of the group words count alike.",
    "p": "With other words, and other pairs of group words where there are several, or else other answers.",
    "p, these groups": "With other words and answers, and these very group words.",
    "D": "The published score. A model that gives all words to one group has a D of -0.5, though it says nothing of "
    "the poles; the published test of it takes answers to the same words for independent.",
    "bounds": "The difference with all missing responses (refused, filtered, failed, unparsed, or words left out) "
    "counted against the stereotype, and with all counted for it. A test whose bounds contain 0 is inconclusive.",
    "descriptive": "A test with too few pairs of group words to show anything about others. It is not run by default.",
    "filtered": "Prompts or replies that the endpoint blocked because of their content.",
    "failed": "Prompts on which the endpoint failed at every attempt. Run the command again to ask only these.",
    "unparsed": "Replies in which nothing could be read by rule. Nothing is guessed.",
}


class WordAssociationPresenter(Plain):
    def part(self, gathered: Gathered, renderer: Renderer) -> Part:
        run, part = gathered.run, super().part(gathered, renderer)
        drawn = {
            "word-figure": ("Words of every test", words_figure(run)),
            "reply-figure": ("What was answered", replies_figure(run)),
        }
        sections = [
            Section(f"{renderer.anchor}-{name}", title, figure, open=True)
            for name, (title, figure) in drawn.items()
            if figure is not None
        ]
        return dataclasses.replace(
            part,
            summary=[*part.summary, *answered(run)],
            meaning=_MEANING,
            figure=overview(self._findings(run), caption_of(run)),
            terms=_TERMS,
            sections=[*sections, *part.sections],
        )

    def _headline(self, run: RunData) -> str:
        tests, prompts = len({row.test for row in run.results}), sum(row.answers for row in run.results)
        models = counted(len(run.manifest.models), "model")
        return f"{models}, {counted(tests, 'test')}; {counted(prompts, 'prompt')}"

    def print(self, gathered: Gathered, console: Console, *, everything: bool = False, **_: Any) -> None:
        run, findings = gathered.run, self._findings(gathered.run)
        width = min(WIDTH, console.width)
        models = list(dict.fromkeys(one.model for one in findings))
        lines = FindingLines(
            list(_topics(findings)), models, lambda one: one.title, lambda one: one.item, _more(run, findings)
        )
        told = [spec for spec in self._tables if spec.rows_of(run) and (everything or spec.name == "decisions")]
        tables = [
            Group(*lines.block(width, plain=console.options.ascii_only).render(width, whole=everything)),
            *(printed(spec.title, *used(spec, run), None) for spec in told),
        ]
        means = [legend_of(findings, "the social-bias questions of a model"), _MEANING]
        notes = [f"{one.model}, {one.item}: not measured: {one.reason}" for one in findings if one.reason]
        headline = f"{self._title}: {self._headline(run)}"
        print_run(console, headline, tables, [*statements(findings), *answered(run)], notes, means)

    def card(self, run: RunData, label: str) -> Card:
        own = [one for one in self._findings(run) if one.model == label]
        told = [one.text for one in answered(run) if one.about == label]
        return card_of_findings(run, own, self._headline(run), [self._entry(one, run) for one in own], [_MEANING], told)

    def tables(self, gathered: Gathered) -> Iterator[tuple[str, Table]]:
        findings = self._findings(gathered.run)
        yield (
            "word-associations",
            findings_table(
                findings,
                f"Word association tests. {caption_of(gathered.run)}",
                lambda one: one.item,
                _more(gathered.run, findings),
                "social-bias questions of a model",
            ),
        )

    def figures(self, gathered: Gathered) -> Iterator[Drawing]:
        return forest_figures(self._findings(gathered.run), "word-associations", lambda one: one.item)

    def sources(self, runs: Sequence[RunData]) -> Iterator[Use]:
        return uses_of_tests(runs)

    def methods(self, run: RunData) -> Iterator[Use]:
        yield Use("word association tests of chat or instruct models", "bai2025")
        yield Use("words as samples of what they stand for (p)", "clark1973")
        yield Use("words and group words, or answers, as crossed samples (p)", "judd2012")
        yield Use("degrees of freedom of the crossed test", "satterthwaite1946")
        if any(row.p_value_holm is not None for row in run.results):
            yield Use("correction for the number of tests", "holm1979")
            yield Use("correction of tests with few pairs or words", "tarone1990")

    def methods_paragraph(self, run: RunData) -> Iterator[Sentence]:
        return sentences_of(run, works_of(self.sources([run])))

    def only(self, run: RunData, patterns: Sequence[str]) -> RunData:
        if not patterns:
            return run
        part = run_of_tests(run, patterns)
        rows = judge(part.results, run.manifest.settings.alpha)
        return dataclasses.replace(part, tables={**part.tables, "results": rows})

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_word_associations(runs, baseline=baseline, mixed=mixed)

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        runs = {next(iter(one.parts)): one.run for one in comparison.gathered}
        return verdicts_of(pairs_of(runs, comparison.baseline), margin=margin, alpha=alpha)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> Part:
        return differences_part(comparison, renderer)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        print_paired(comparison, console)

    def comparison_methods(self, comparison: Comparison) -> Iterator[Sentence]:
        how = "by word, and by pair of group words or block of answers, which both were asked"
        return methods_of_differences(comparison, how, ("judd2012", "satterthwaite1946"))

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, Table]]:
        yield f"{comparison.study}-differences", paper_differences(comparison)


def _topics(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    people = [one for one in findings if one.about == "people"]
    for topic in dict.fromkeys(one.topic for one in people):
        yield topic_name(topic), [one for one in people if one.topic == topic]
    checks = [one for one in findings if one.about == "method"]
    if checks:
        yield CHECKS, checks


def _more(run: RunData, findings: Sequence[Finding]) -> dict[str, Callable[[Finding], str]]:
    """Beside a difference: how many replies were complete, and the bounds where responses are missing."""
    rows = {(one.model, one.item): row for one, row in zip(findings, run.results, strict=True)}
    if all(row.complete is None for row in run.results):
        return {}

    def complete(one: Finding) -> str:
        row = rows[one.model, one.item]
        return "" if row.complete is None else f"{row.complete:,} of {row.answers:,}"

    def bounds(one: Finding) -> str:
        row = rows[one.model, one.item]
        return interval_text(row.bound_low, row.bound_high) if row.missing_rate else ""

    columns: dict[str, Callable[[Finding], str]] = {"complete": complete}
    return {**columns, "bounds": bounds} if any(row.missing_rate for row in run.results) else columns
