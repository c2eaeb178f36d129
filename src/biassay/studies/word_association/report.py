"""Report and methods sentences of word association tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from biassay.datasets.word_associations import PromptForm, select_wordings
from biassay.reporting.charts.base import Drawing
from biassay.reporting.comparison import methods_of_differences
from biassay.reporting.document import HtmlFigure, Report, Section, Table
from biassay.reporting.findings import draw_forests, make_findings_table
from biassay.reporting.formats import (
    MANY_MODELS,
    format_concept,
    format_count,
    format_decimal,
    format_interval,
    format_percent,
)
from biassay.reporting.html import Bar, Panel, Panels, draw_panels
from biassay.reporting.methods import (
    CitationUse,
    MethodsSentence,
    format_models,
    get_version,
    join_names,
    list_works,
    make_seed_sentence,
)
from biassay.reporting.model_card import ModelCard, make_card
from biassay.reporting.presenter import DefaultPresenter, make_record_table
from biassay.reporting.terminal import MAX_ROWS
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Finding
from biassay.results.paired_comparison import PairedItem
from biassay.results.run_data import ModelKey, RunData, RunGroup, model_key, model_labels
from biassay.studies.word_association.compare import describe_compared, pair_tests
from biassay.studies.word_association.findings import (
    count_replies,
    describe_responses,
    group_words,
    make_caption,
)
from biassay.studies.word_association.replies import LIST_KINDS
from biassay.studies.word_association.results import REPLY_LABELS, WordAssociationResult, WordResult, list_counts

_SCALES = {"share": ("share of responses", 0.5, 0.5), "log-odds": ("log-odds", 0.0, 5.0)}
"""Name and middle of every scale, and the distance from the middle to its ends, which is the same in all reports."""
_CAPTION = (
    "Right: assigned to the stigmatised group; left: to the default group. A model without a stereotype treats "
    "negative and positive words alike."
)


def draw_words(run: RunData) -> Markup | None:
    """Draw the words of every test by the share or log-odds of the stigmatised group, one panel per pole and model."""
    labels = dict(list(model_labels(run).items())[:MANY_MODELS])
    words = group_words(run)
    figures = []
    for unit, (name, middle, reach) in _SCALES.items():
        rows = [row for row in run.results if row.outcome.scale == unit and row.outcome.effect_size is not None]
        groups = list(_make_test_panels(rows, words, list(labels)))
        if groups:
            beyond = f" Longer bars end at ±{reach:g}." if unit == "log-odds" else ""
            title = f"Words by {name} of the stigmatised group."
            models, caption = list(labels.values()), _CAPTION + beyond
            figures.append(draw_panels(groups, models, title=title, caption=caption, middle=middle, reach=reach))
    return Markup("\n").join(figures) if figures else None


def _make_test_panels(
    rows: Sequence[WordAssociationResult], words: dict[tuple[ModelKey, str], list[WordResult]], models: list[ModelKey]
) -> Iterator[Panels]:
    for test in dict.fromkeys(row.test for row in rows):
        same_test = [row for row in rows if row.test == test and model_key(row) in models]
        panels = tuple(
            _make_panel(row, pole, words.get((model_key(row), test), ()), models.index(model_key(row)))
            for row in same_test
            for pole in ("negative", "positive")
        )
        differences = "; ".join(
            f"{format_decimal(row.outcome.effect_size)} ({format_interval(row.outcome.ci_low, row.outcome.ci_high)})"
            for row in same_test
        )
        if panels:
            subtitle = f"{test}; difference {differences}".replace("(–)", "(no interval)")
            yield Panels(same_test[0].title, panels, subtitle)


def _make_panel(row: WordAssociationResult, pole: str, words: Sequence[WordResult], model: int) -> Panel:
    same_pole = [word for word in words if word.pole == pole]
    read = sorted((word for word in same_pole if word.value is not None), key=lambda word: -(word.value or 0.0))
    unread = [word.word for word in same_pole if word.value is None]
    mean = sum(word.value or 0.0 for word in read) / len(read) if read else None
    text = f"{format_concept(row.default)} ← → {format_concept(row.stigmatised)}; mean {format_decimal(mean)}"
    text += f"; not read: {', '.join(unread)}" if unread else ""
    name = format_concept(row.negative if pole == "negative" else row.positive)
    return Panel(name[0].upper() + name[1:], model, tuple(_make_bar(row, word) for word in read), text)


def _make_bar(row: WordAssociationResult, word: WordResult) -> Bar:
    value = word.value or 0.0
    text = f"{word.word} ({word.pole}): {format_decimal(value)} to {format_concept(row.stigmatised)}"
    against = f", {format_decimal(1.0 - value)} to " if row.outcome.scale == "share" else ", log-odds against "
    return Bar(word.word, value, format_decimal(value), f"{text}{against}{format_concept(row.default)}")


def draw_replies(run: RunData) -> Markup | None:
    """Draw the replies by kind, one panel per model. Return None if there are no replies in words."""
    models, panels = list(model_labels(run).items())[:MANY_MODELS], []
    for index, (key, label) in enumerate(models):
        for form, counts in count_replies(run, key).items():
            total = sum(counts.values())
            bars = tuple(
                Bar(
                    kind, count / total, f"{count:,}", f"{label}: {count:,} of {total:,} {REPLY_LABELS.get(kind, kind)}"
                )
                for kind, count in counts.items()
            )
            panels.append(Panel("Decisions" if form == "decision" else "Replies", index, bars, f"{total:,} in all"))
    if not panels:
        return None
    return draw_panels(
        [Panels("", tuple(panels))],
        [label for _, label in models],
        title="Responses by kind.",
        caption="biassay parses responses by rule; only parsed ones count.",
        reach=1.0,
    )


_UNITS = {
    "share": "the share of responses that assign a word to the stigmatised group",
    "log-odds": "the log-odds of the two group words as continuations of the prompt",
}
_CLAIMS = {
    "pairs": "other words and other pairs of group words, as crossed samples",
    "answers": "other words and other responses, as crossed samples, for tests with one pair of group words",
    "words": "other words, by exact permutation, for tests with one pair of group words",
}


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield the methods sentences: tests, models, prompts and statistics."""
    rows, settings = run.results, run.manifest.settings
    tests = list(dict.fromkeys(row.test for row in rows))
    yield MethodsSentence(
        f"With biassay {get_version(run)} we gave {format_count(len(tests), 'word association test')} "
        f"({join_names(tests)}) to {format_models(run)}",
        ("biassay", "bai2025", *sources),
    )
    wordings = join_names(list(_list_wordings(run)))
    prompts = f"Prompts name two group words and attribute words of both poles, in the wordings {wordings}"
    has_replies = any(row.outcome.scale == "share" for row in rows)
    repeated = f"; each test had {settings.n_answers:,} prompts" if has_replies else ""
    yield MethodsSentence(f"{prompts}, balanced over the orders of the group words{repeated}")
    units = [_UNITS[unit] for unit in dict.fromkeys(row.outcome.scale for row in rows)]
    yield MethodsSentence(
        f"The effect is {join_names(units or ['nothing'])}: the mean over negative words minus the mean over positive "
        "words"
    )
    claims = [_CLAIMS[claim] for claim in dict.fromkeys(row.generalizes_to for row in rows if row.generalizes_to)]
    if claims:
        yield MethodsSentence(
            f"Two-sided p-values and {format_percent(1.0 - settings.alpha)} intervals generalize to "
            f"{'; '.join(claims)}; no p-value is below the exact one of permuting words between the poles or, for up "
            "to 16 pairs or blocks of responses, of flipping signs",
            ("clark1973", "judd2012", "satterthwaite1946"),
        )
    if any(decision.p_adjusted is not None for decision in run.tables.get("decisions", ())):
        yield MethodsSentence(
            "We corrected p-values over the social-bias tests of each model, without descriptive ones, by Holm's "
            "method with Tarone's refinement",
            ("holm1979", "tarone1990"),
        )
    if has_replies:
        read = [row for row in rows if row.outcome.scale == "share"]
        counts: dict[str, int] = {kind: sum(getattr(row, kind) or 0 for row in read) for kind in LIST_KINDS}
        yield MethodsSentence(f"Replies were parsed by rule, without guessing: {list_counts(counts)}")
    if any(row.missing_rate for row in rows):
        yield MethodsSentence(
            "Missing responses were left out, counted against the stereotype, or counted for it; we report the largest "
            "p-value and the widest interval of the three, and call a test inconclusive if its difference could be 0"
        )
    if settings.decisions:
        yield MethodsSentence("Models also assigned two tasks to two people", ("bai2025",))
    yield make_seed_sentence([settings.seed])


def _list_wordings(run: RunData) -> Iterator[str]:
    """Yield the wordings of the forms of prompts in the run."""
    units = {row.outcome.scale for row in run.results}
    for form, unit in _FORMS.items():
        if unit in units or (form == "decision" and run.manifest.settings.decisions):
            yield from (
                wording.name for wording in select_wordings(form=form) if wording.name in run.manifest.inputs.wordings
            )


_FORMS: dict[PromptForm, str] = {"list": "share", "word": "log-odds", "decision": ""}


_MEANING = (
    "The model chooses one of two group words for each of many words. The difference is the share of negative words "
    "assigned to the stigmatised group minus the share of positive ones. p generalizes to other words, and to other "
    "group words or responses. It allows for any value of missing responses."
)
_TERMS = {
    "difference": "Share of responses (or log-odds) of the stigmatised group: mean over negative words minus mean over "
    "positive words. Both orders of the group words have equal weight.",
    "p": "Two-sided p-value for other words, and for other pairs of group words or, if there is one pair, other "
    "responses.",
    "p (these groups only)": "p-value for other words and responses with the same group words.",
    "D": "Published score. A model that assigns all words to one group has D = -0.5 without any association. Its "
    "published test treats responses to the same words as independent.",
    "bounds": "Difference with all missing responses (refused, filtered, failed, unparsed, or words left out) "
    "counted against the stereotype, and with all counted for it. A test whose bounds contain 0 is inconclusive.",
    "descriptive": "Test with too few pairs of group words to generalize to others. It does not run by default.",
    "filtered": "Prompts or replies that the endpoint blocked because of their content.",
    "failed": "Prompts on which the endpoint failed at every attempt. Run the command again to retry only these.",
    "unparsed": "Replies in which no word could be read by rule. biassay does not guess.",
}


class WordAssociationPresenter(DefaultPresenter):
    """Report of word association tests."""

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report."""
        run, report = gathered.run, super().report(gathered, **options)
        return dataclasses.replace(
            report,
            details=list(describe_responses(run)),
            caption=make_caption(run),
            terms=_TERMS,
            sections=[*self._make_sections(run), report.sections[-1]],
            tables=self._make_tables(run, "relative_decisions", most=MAX_ROWS),
        )

    def _make_sections(self, run: RunData) -> Iterator[Section]:
        """Yield the sections before the methods. The figure of words replaces their table."""
        words, replies = draw_words(run), draw_replies(run)
        tests = self._make_tables(run, "results", "relative_decisions")
        yield Section("results", "All tests", (*tests,), printed=True)
        if words is not None:
            yield Section("words", "Words", (HtmlFigure(words),), collapsed=False)
        tables = self._make_tables(run, "replies", "missing", "examples")
        if replies is not None or tables:
            figure = () if replies is None else (HtmlFigure(replies),)
            yield Section("replies", "Responses", (*figure, *tables), printed=True)

    def _make_tables(self, run: RunData, *names: str, most: int | None = None) -> list[Table]:
        specs = {spec.name: spec for spec in self._tables}
        return [
            make_record_table(specs[name], run, "" if name == "results" else specs[name].title, most)
            for name in names
            if name == "results" or specs[name].get_rows(run)
        ]

    def _get_meaning(self, run: RunData) -> str:  # noqa: ARG002
        return _MEANING

    def _headline(self, run: RunData) -> str:
        tests, prompts = len({row.test for row in run.results}), sum(row.answers for row in run.results)
        models = format_count(len(run.manifest.models), "model")
        return f"{models}, {format_count(tests, 'test')}; {format_count(prompts, 'prompt')}"

    def card(self, run: RunData, label: str) -> ModelCard:
        """Make the model card of one model."""
        findings = [finding for finding in self._findings(run) if finding.model == label]
        counts = [row.text for row in describe_responses(run) if row.about == label]
        entries = [self._entry(finding, run) for finding in findings]
        return make_card(run, findings, self._headline(run), entries, [_MEANING], counts)

    def tables(self, gathered: RunGroup) -> Iterator[tuple[str, Table]]:
        """Yield the table of findings for a paper."""
        findings = self._findings(gathered.run)
        yield (
            "word-associations",
            make_findings_table(
                findings,
                f"Word association tests. {make_caption(gathered.run)}",
                lambda finding: finding.item,
                _make_extra_columns(gathered.run, findings),
                "social-bias questions of a model",
            ),
        )

    def figures(self, gathered: RunGroup) -> Iterator[Drawing]:
        """Yield a forest plot per model."""
        return draw_forests(self._findings(gathered.run), "word-associations", lambda finding: finding.item)

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that methods come from."""
        yield CitationUse("word association tests of chat or instruct models", "bai2025")
        yield CitationUse("words as samples of their concepts (p)", "clark1973")
        yield CitationUse("words and group words, or responses, as crossed samples (p)", "judd2012")
        yield CitationUse("degrees of freedom of the crossed test", "satterthwaite1946")
        if any(decision.p_adjusted is not None for decision in run.tables.get("decisions", ())):
            yield CitationUse("correction for the number of tests", "holm1979")
            yield CitationUse("correction of tests with few pairs or words", "tarone1990")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        """Yield the sentences of the methods paragraph."""
        return methods_sentences(run, list_works(self.sources([run])))

    def _describe_compared(self, runs: Mapping[str, RunData]) -> Iterator[Mapping[str, Mapping[str, object]]]:
        yield describe_compared(runs)

    def _pair_items(self, runs: Mapping[str, RunData], baseline: str) -> Sequence[PairedItem]:
        return pair_tests(runs, baseline)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        """Yield the sentences on how models were compared."""
        how = "by word, and by pair of group words or block of responses"
        return methods_of_differences(comparison, how, ("judd2012", "satterthwaite1946"))


def _make_extra_columns(run: RunData, findings: Sequence[Finding]) -> dict[str, Callable[[Finding], str]]:
    """Return the columns beside a difference: complete replies, and bounds if responses are missing."""
    rows = {(finding.model, finding.item): row for finding, row in zip(findings, run.results, strict=True)}
    if all(row.complete is None for row in run.results):
        return {}

    def count_complete(finding: Finding) -> str:
        row = rows[finding.model, finding.item]
        return "" if row.complete is None else f"{row.complete:,} of {row.answers:,}"

    def format_bounds(finding: Finding) -> str:
        row = rows[finding.model, finding.item]
        return format_interval(row.outcome.bound_low, row.outcome.bound_high) if row.missing_rate else ""

    columns: dict[str, Callable[[Finding], str]] = {"complete": count_complete}
    return {**columns, "bounds": format_bounds} if any(row.missing_rate for row in run.results) else columns
