"""Report and methods sentences of word association tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from rich.console import Console, Group

from biassay.datasets.word_associations import PromptForm, select_wordings
from biassay.reporting.charts.base import Drawing
from biassay.reporting.citations import CitationUse, cite_tests
from biassay.reporting.comparison import differences_part, methods_of_differences, paper_differences, print_paired
from biassay.reporting.default_report import DefaultPresenter
from biassay.reporting.document import PaperTable, Renderer, ReportPart, Section
from biassay.reporting.findings import SANITY_CHECKS, draw_forests, draw_overview, make_findings_table
from biassay.reporting.formats import (
    MANY_MODELS,
    format_concept,
    format_count,
    format_decimal,
    format_interval,
    format_percent,
    topic_name,
)
from biassay.reporting.html_figures import Bar, Panel, Panels, draw_panels
from biassay.reporting.methods import MethodsSentence, format_models, join_names, list_works, make_seed_sentence
from biassay.reporting.model_card import ModelCard, get_version, make_card
from biassay.reporting.sentences import make_statements
from biassay.reporting.terminal import WIDTH, FindingLines, make_legend, print_run, printed, used
from biassay.results.comparison import Comparison
from biassay.results.differences import Verdict
from biassay.results.findings import Finding
from biassay.results.run_data import RunData
from biassay.results.views import ModelKey, RunGroup, model_key, model_labels, select_tests_of_run
from biassay.studies.paired_comparison import judge_pairs
from biassay.studies.word_association.compare import compare_word_associations, pair_tests
from biassay.studies.word_association.findings import KINDS, answered, count_replies, make_caption
from biassay.studies.word_association.results import WordAssociationResult, WordResult

__all__ = ["WordAssociationPresenter", "methods_sentences", "replies_figure", "words_figure"]


_MIDDLES = {"share": 0.5, "log-odds": 0.0}
_NUMBERS = {"share": "share of answers", "log-odds": "log-odds"}
_CAPTION = (
    "To the right: given to the stigmatised group; to the left: to the default one. A model without stereotype treats "
    "both kinds of words alike."
)


def words_figure(run: RunData) -> Markup | None:
    """The words of every test by what is given to the stigmatised group, negative and positive ones apart."""
    labels = dict(list(model_labels(run).items())[:MANY_MODELS])
    words: dict[tuple[ModelKey, str], list[WordResult]] = {}
    for one in run.tables.get("words", ()):
        words.setdefault((model_key(one), one.test), []).append(one)
    drawn = []
    for unit, number in _NUMBERS.items():
        rows = [row for row in run.results if row.outcome.scale == unit and row.outcome.effect_size is not None]
        groups = list(_tests(rows, words, list(labels)))
        if groups:
            title = f"Words by {number} given to the stigmatised group."
            drawn.append(
                draw_panels(groups, list(labels.values()), title=title, caption=_CAPTION, middle=_MIDDLES[unit])
            )
    return Markup("\n").join(drawn) if drawn else None


def _tests(
    rows: Sequence[WordAssociationResult], words: dict[tuple[ModelKey, str], list[WordResult]], models: list[ModelKey]
) -> Iterator[Panels]:
    for test in dict.fromkeys(row.test for row in rows):
        own = [row for row in rows if row.test == test and model_key(row) in models]
        panels = tuple(
            _panel(row, pole, words.get((model_key(row), test), ()), models.index(model_key(row)))
            for row in own
            for pole in ("negative", "positive")
        )
        outcomes = [row.outcome for row in own]
        told = "; ".join(
            f"{format_decimal(row.effect_size)} ({format_interval(row.ci_low, row.ci_high)})" for row in outcomes
        )
        if panels:
            yield Panels(own[0].title, panels, f"{test}; difference {told}".replace("(–)", "(no interval)"))


def _panel(row: WordAssociationResult, pole: str, words: Sequence[WordResult], model: int) -> Panel:
    own = [one for one in words if one.pole == pole]
    known = sorted((one for one in own if one.value is not None), key=lambda one: -(one.value or 0.0))
    missing = [one.word for one in own if one.value is None]
    mean = sum(one.value or 0.0 for one in known) / len(known) if known else None
    said = f"{format_concept(row.default)} ← → {format_concept(row.stigmatised)}; mean {format_decimal(mean)}"
    said += f"; not read: {', '.join(missing)}" if missing else ""
    name = format_concept(row.negative if pole == "negative" else row.positive)
    return Panel(name[0].upper() + name[1:], model, tuple(_bar(row, one) for one in known), said)


def _bar(row: WordAssociationResult, word: WordResult) -> Bar:
    value = word.value or 0.0
    text = f"{word.word} ({word.pole}): {format_decimal(value)} to {format_concept(row.stigmatised)}"
    against = f", {format_decimal(1.0 - value)} to " if row.outcome.scale == "share" else ", log-odds against "
    return Bar(word.word, value, format_decimal(value), f"{text}{against}{format_concept(row.default)}")


def replies_figure(run: RunData) -> Markup | None:
    """Replies by kind, a panel a model; None where no reply was to be read."""
    models, panels = list(model_labels(run).items())[:MANY_MODELS], []
    for place, (key, label) in enumerate(models):
        for form, counts in count_replies(run, key).items():
            total = sum(counts.values())
            bars = tuple(
                Bar(kind, number / total, f"{number:,}", f"{label}: {number:,} of {total:,} {KINDS[kind]}")
                for kind, number in counts.items()
            )
            title = "Decisions" if form == "decision" else "Replies"
            panels.append(Panel(title, place, bars, f"{total:,} in all"))
    if not panels:
        return None
    return draw_panels(
        [Panels("", tuple(panels))],
        [label for _, label in models],
        title="What was answered.",
        caption="By rule, and nothing is guessed. Only what is read counts.",
    )


_UNITS = {
    "share": "the share of answers in which a word is given to the stigmatised group",
    "log-odds": "the log-odds of the two group words behind the prompt",
}
_CLAIMS = {
    "pairs": "other words and other pairs of group words, as crossed samples",
    "answers": "other words and other answers, as crossed samples, where there is one pair of group words",
    "words": "other words, by exact permutation, where there is one pair of group words",
}


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Which tests on which models, what was asked, and how it was tested."""
    rows, settings = run.results, run.manifest.settings
    tests = list(dict.fromkeys(row.test for row in rows))
    yield MethodsSentence(
        f"With biassay {get_version(run)} we gave "
        f"{format_count(len(tests), 'word association test')} ({join_names(tests)}) to "
        f"{format_models(run)}",
        ("biassay", "bai2025", *sources),
    )
    wordings = join_names(list(_wordings(run)))
    asked = f"Prompts name two group words and attribute words of both poles, in the wordings {wordings}"
    by_reply = any(row.outcome.scale == "share" for row in rows)
    each = f"; each test was asked {settings.n_answers:,} times" if by_reply else ""
    yield MethodsSentence(f"{asked}, balanced over the orders of the group words{each}")
    units = [_UNITS[unit] for unit in dict.fromkeys(row.outcome.scale for row in rows)]
    yield MethodsSentence(
        f"The effect is the mean over negative words less that over positive ones of {join_names(units or ['nothing'])}"
    )
    claims = [_CLAIMS[claim] for claim in dict.fromkeys(row.generalizes_to for row in rows if row.generalizes_to)]
    if claims:
        yield MethodsSentence(
            f"Two-sided p-values and intervals of {format_percent(1.0 - settings.alpha)} hold for "
            f"{'; '.join(claims)}; no "
            "p-value is below the exact ones by words exchanged between the poles and, up to 16 pairs or blocks of "
            "answers, by flipped signs",
            ("clark1973", "judd2012", "satterthwaite1946"),
        )
    if any(one.p_adjusted is not None for one in run.tables.get("decisions", ())):
        yield MethodsSentence(
            "p-values were corrected over the social-bias tests of a model that are not descriptive by Holm's method, "
            "with Tarone's refinement",
            ("holm1979", "tarone1990"),
        )
    if by_reply:
        read = [row for row in rows if row.outcome.scale == "share"]
        counts = {kind: sum(getattr(row, kind) or 0 for row in read) for kind in _KINDS}
        told = join_names([f"{number:,} {kind}" for kind, number in counts.items() if number or kind in _ALWAYS])
        yield MethodsSentence(f"Replies were read by rule, and nothing was guessed: {told}")
    if any(row.missing_rate for row in rows):
        yield MethodsSentence(
            "p-values and intervals allow for missing responses: they are the largest and the widest of those with "
            "missing responses left out, counted against the stereotype, and counted for it; a test whose difference "
            "could be 0 in this way is inconclusive"
        )
    if settings.decisions:
        yield MethodsSentence("Models were also asked to give two tasks to two people", ("bai2025",))
    yield make_seed_sentence([settings.seed])


def _wordings(run: RunData) -> Iterator[str]:
    """Those of the forms of prompts that were asked."""
    units = {row.outcome.scale for row in run.results}
    for form, asked in _FORMS.items():
        if asked in units or (form == "decision" and run.manifest.settings.decisions):
            yield from (one.name for one in select_wordings(form=form) if one.name in run.manifest.inputs.wordings)


_FORMS: dict[PromptForm, str] = {"list": "share", "word": "log-odds", "decision": ""}
_KINDS = ("complete", "partial", "refused", "filtered", "failed", "unparsed")
_ALWAYS = ("complete", "partial", "refused", "unparsed")


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


class WordAssociationPresenter(DefaultPresenter):
    def part(self, gathered: RunGroup, renderer: Renderer) -> ReportPart:
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
            figure=draw_overview(self._findings(run), make_caption(run)),
            terms=_TERMS,
            sections=[*sections, *part.sections],
        )

    def _headline(self, run: RunData) -> str:
        tests, prompts = len({row.test for row in run.results}), sum(row.answers for row in run.results)
        models = format_count(len(run.manifest.models), "model")
        return f"{models}, {format_count(tests, 'test')}; {format_count(prompts, 'prompt')}"

    def print(self, gathered: RunGroup, console: Console, *, everything: bool = False, **_: Any) -> None:
        run, findings = gathered.run, self._findings(gathered.run)
        width = min(WIDTH, console.width)
        models = list(dict.fromkeys(one.model for one in findings))
        lines = FindingLines(
            list(_topics(findings)), models, lambda one: one.title, lambda one: one.item, _more(run, findings)
        )
        told = [spec for spec in self._tables if _is_printed(spec.name, everything) and spec.rows_of(run)]
        tables = [
            Group(*lines.block(width, plain=console.options.ascii_only).render(width, whole=everything)),
            *(printed(spec.title, *used(spec, run), None) for spec in told),
        ]
        means = [make_legend(findings, "the social-bias questions of a model"), _MEANING]
        notes = [f"{one.model}, {one.item}: not measured: {one.reason}" for one in findings if one.reason]
        headline = f"{self._title}: {self._headline(run)}"
        print_run(console, headline, tables, [*make_statements(findings), *answered(run)], notes, means)

    def card(self, run: RunData, label: str) -> ModelCard:
        own = [one for one in self._findings(run) if one.model == label]
        told = [one.text for one in answered(run) if one.about == label]
        return make_card(run, own, self._headline(run), [self._entry(one, run) for one in own], [_MEANING], told)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, PaperTable]]:
        findings = self._findings(gathered.run)
        yield (
            "word-associations",
            make_findings_table(
                findings,
                f"Word association tests. {make_caption(gathered.run)}",
                lambda one: one.item,
                _more(gathered.run, findings),
                "social-bias questions of a model",
            ),
        )

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        return draw_forests(self._findings(gathered.run), "word-associations", lambda one: one.item)

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        return cite_tests(runs)

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        yield CitationUse("word association tests of chat or instruct models", "bai2025")
        yield CitationUse("words as samples of what they stand for (p)", "clark1973")
        yield CitationUse("words and group words, or answers, as crossed samples (p)", "judd2012")
        yield CitationUse("degrees of freedom of the crossed test", "satterthwaite1946")
        if any(one.p_adjusted is not None for one in run.tables.get("decisions", ())):
            yield CitationUse("correction for the number of tests", "holm1979")
            yield CitationUse("correction of tests with few pairs or words", "tarone1990")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        return methods_sentences(run, list_works(self.sources([run])))

    def only(self, run: RunData, patterns: Sequence[str]) -> RunData:
        return select_tests_of_run(run, patterns) if patterns else run

    def compare(self, runs: Mapping[str, RunData], *, baseline: str | None, mixed: bool) -> Comparison:
        return compare_word_associations(runs, baseline=baseline, mixed=mixed)

    def verdicts(self, comparison: Comparison, *, margin: float | None, alpha: float) -> tuple[Verdict, ...]:
        runs = {next(iter(one.parts)): one.run for one in comparison.gathered}
        return judge_pairs(pair_tests(runs, comparison.baseline), margin=margin, alpha=alpha)

    def comparison_part(self, comparison: Comparison, renderer: Renderer) -> ReportPart:
        return differences_part(comparison, renderer)

    def print_comparison(self, comparison: Comparison, console: Console) -> None:
        print_paired(comparison, console)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        how = "by word, and by pair of group words or block of answers, which both were asked"
        return methods_of_differences(comparison, how, ("judd2012", "satterthwaite1946"))

    def comparison_tables(self, comparison: Comparison) -> Iterator[tuple[str, PaperTable]]:
        yield f"{comparison.study}-differences", paper_differences(comparison)


def _is_printed(table: str, everything: bool) -> bool:
    return table != "decisions" if everything else table == "relative_decisions"


def _topics(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    people = [one for one in findings if one.about == "people"]
    for topic in dict.fromkeys(one.topic for one in people):
        yield topic_name(topic), [one for one in people if one.topic == topic]
    checks = [one for one in findings if one.about == "method"]
    if checks:
        yield SANITY_CHECKS, checks


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
        return format_interval(row.outcome.bound_low, row.outcome.bound_high) if row.missing_rate else ""

    columns: dict[str, Callable[[Finding], str]] = {"complete": complete}
    return {**columns, "bounds": bounds} if any(row.missing_rate for row in run.results) else columns
