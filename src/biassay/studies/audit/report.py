"""Report and methods sentences of name audits, of scores and of responses."""

from __future__ import annotations

import dataclasses
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from biassay.datasets.lexicons import lexicon_names, load_lexicon
from biassay.io import make_printable
from biassay.reporting.comparison import make_differences_report, methods_of_differences
from biassay.reporting.document import (
    Block,
    Bullets,
    Cell,
    ColumnSpan,
    HtmlFigure,
    Report,
    RowGroup,
    Section,
    Statement,
    Table,
    TableRow,
    Text,
    make_table,
)
from biassay.reporting.formats import (
    format_count,
    format_decimal,
    format_interval,
    format_p,
    format_p_relation,
    format_percent,
)
from biassay.reporting.html import Strip, draw_strips
from biassay.reporting.methods import CitationUse, MethodsSentence, format_models, get_version, make_seed_sentence
from biassay.reporting.model_card import ModelCard, make_card
from biassay.reporting.presenter import DefaultPresenter, make_record_table
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Result
from biassay.results.paired_comparison import PairedItem
from biassay.results.run_data import ModelRecord, RunData, RunGroup, RunSlice, model_key, split_by_model
from biassay.results.tables import Column, make_columns
from biassay.stats.name_audit import FOUR_FIFTHS
from biassay.studies.audit.compare import describe_compared, pair_audit_groups
from biassay.studies.audit.responses import RESPONSE_KINDS
from biassay.studies.audit.results import (
    FAILURES,
    JUDGE_FAILURES,
    PER_TEXT,
    TABLES,
    AuditDocumentRow,
    AuditJudgeRow,
    AuditPairRow,
    AuditResponseCounts,
    AuditResponseExample,
    AuditResult,
    AuditSelectionRow,
    AuditUndefinedRow,
    AuditWordRow,
    describe_difference,
    format_size,
    show_group,
)

_OUTCOME_WORKS = {"sentiment": "hutto2014", "readability": "flesch1948"}
_SIDE_BY_SIDE = 2  # models with a table each in the terminal
_MEANING = (
    "D is the mean score of documents with a group's names minus that with the names of the other groups, in standard "
    "deviations (SD) of mean scores between documents. Intervals and p-values treat names and documents as samples. A "
    "difference that is not significant may still exist: check the smallest one that the audit could detect."
)
_COMPARED = (
    "The difference of a group is D of the new model minus D of the old one, each in standard deviations of its "
    "documents, over the names and documents that both models scored. For a selection ratio, it is the difference of "
    "the log ratios to the other groups. Worse: D or the log ratio moved away from 0 by more than the margin, or past "
    "0 to a larger size. All intervals of a model are simultaneous."
)
LIMITS = (
    "It is an experiment with names in documents that you chose, before deployment: evidence about this system on such "
    "documents, not about outcomes of real applicants.",
    "Documents count as independent samples of their kinds, and queries as fixed: the result does not generalize to "
    "other occupations, templates or job ads.",
    "An interval reflects only the names and documents of the sample: it can miss a difference that rests on a few "
    "names or documents.",
    "A name signals a group only to readers who recognize it; people of a group have many names, and names also signal "
    "age, class and region. Documents differ in the name only, not in schools, clubs, gaps or languages.",
    "Rates and impact ratios are of name-document pairs, not of people. They are not a bias audit in the sense of New "
    "York City's Local Law 144, which asks for data of real applicants or candidates.",
    "An impact ratio below 0.8 can be chance, and one above 0.8 does not show equal treatment: check its interval and "
    "how often a fair system fails in an audit of this size.",
    "A result that is not significant is not evidence of equal treatment: the audit can miss differences smaller than "
    "the one that it detects with 80% power.",
)

_RESPONSE_MEANING = (
    "Each difference is the mean over a group's names minus the mean over the names of the other groups. Intervals and "
    "p-values treat names and documents as samples, and p-values are corrected over groups and measures of a model. A "
    "difference that is not significant may still exist: check the smallest one that the audit could detect."
)
_RESPONSE_LIMITS = (
    "Responses are parsed by stated rules. Missing responses (refused, filtered, unreadable) are counted by group, and "
    "bounds show the difference if they are counted either way.",
    "Responses vary with the wording, the system message and the temperature; results hold for those of this run.",
    *LIMITS,
)
_WRITTEN_MEANING = (
    "Each difference is the mean over texts for a group's names minus the mean over texts for the other groups. "
    "Intervals and p-values treat names and prompts as samples, and p-values are corrected over groups and outcomes of "
    "a model. A difference that is not significant may still exist: check the smallest one that the audit could detect."
)
_WRITTEN_LIMITS = (
    "Outcomes are counts and rules: they do not understand a text, and none of them measures whether it is good. Read "
    "the weakness of an outcome (biassay outcomes) before you interpret its difference.",
    "Refusals have no other outcome. If they are more frequent for some group, the texts that remain may differ for "
    "that reason.",
    "Texts vary with the wording, the system message and the temperature; results hold for prompts of this kind and "
    "the settings of this run.",
    "A name signals a group only to readers who recognize it; people of a group have many names, and names also signal "
    "age, class and region.",
    "A result that is not significant is not evidence of equal treatment: the audit can miss differences smaller than "
    "the smallest one that it detects.",
)
_WORD_NOTE = (
    "Log-odds with an informative Dirichlet prior (Monroe et al. 2008), with intervals by name, because texts for one "
    "name repeat words. Only words in texts for at least half of the names, without names, pronouns and titles. These "
    "lists are exploratory."
)
_TOP_WORDS = 10  # per group, on the page
_COLUMNS = 4  # most groups whose examples are shown in columns


def _format_difference(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:z.{digits}f}"


def _format_range(low: float | None, high: float | None, digits: int = 2) -> str:
    if low is None or high is None:
        return "no interval"
    return f"[{_format_difference(low, digits)}, {_format_difference(high, digits)}]"


class _AuditView(ABC):
    """Results of one model, as the report shows them."""

    def __init__(self, run: RunData, model: RunSlice) -> None:
        own = set(map(id, model["results"]))
        self.label, self.model, self.run = model.label, model, run
        self.results: list[Result] = [result for result in run.results if id(result.record) in own]
        self.measured = [result for result in self.results if result.status == "measured"]

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The finding in a sentence."""

    @property
    def statement(self) -> Statement:
        """The verdict as a statement."""
        return Statement(self.verdict, (), self.label)

    @property
    @abstractmethod
    def table(self) -> Table:
        """Table of the terminal."""


class _ScoreView(_AuditView):
    """Results of the scores of one model."""

    def __init__(self, run: RunData, model: RunSlice) -> None:
        super().__init__(run, model)
        self.summary: Any = model.first("summary")
        shares = list(dict.fromkeys(row.top for row in model["selection"]))
        self.pairs: list[AuditPairRow] = list(model["pairs"])
        self.share = "decisions" if "decisions" in shares else shares[len(shares) // 2] if shares else ""
        self.selection: dict[str, AuditSelectionRow] = {
            row.group: row for row in model["selection"] if row.top == self.share
        }
        self.unit = "SD" if self.measured and self.measured[0].standardized_effect_size is not None else "points"

    @property
    def digits(self) -> int:
        """Decimals that show the largest difference with two digits, at least two."""
        largest = max((abs(self.outcome(result).effect_size or 0.0) for result in self.measured), default=1.0) or 1.0
        return max(2, 1 - math.floor(math.log10(largest)))

    def outcome(self, result: Any) -> Any:
        """Return the standardized outcome, or that in points if documents do not differ."""
        return result.record.alternatives["standardized"] if self.unit == "SD" else result.record.outcome

    def scale(self, value: float | None) -> float | None:
        """Convert a difference of scores to the unit of the report."""
        return None if value is None else value / self.summary.document_sd if self.unit == "SD" else value

    @property
    def verdict(self) -> str:
        """The finding in a sentence."""
        if not self.measured:
            return f"{self.label}: {self.results[0].reason if self.results else 'not measured'}."
        if all(result.p_value is None for result in self.measured):
            return f"{self.label}: too few names or documents to test; differences are only described."
        groups = len(self.results)
        counted = [result for result in self.measured if result.form_of is None]
        found = sorted(
            (result for result in counted if result.significant),
            key=lambda result: -abs(self.outcome(result).effect_size or 0.0),
        )
        if not found:
            smallest = self.summary.smallest_standardized if self.unit == "SD" else self.summary.smallest
            could = (
                f"; the audit could detect {_format_difference(smallest, self.digits)} {self.unit} or more"
                if smallest
                else ""
            )
            return f"{self.label}: no significant difference between {groups} groups of names{could}."
        first = found[0]
        outcome = self.outcome(first)
        other = next(show_group(result.group) for result in self.results if result.group != first.group)
        than = f" than with {other} names" if groups == 2 else ""
        said = (
            f"{self.label} scores documents with {show_group(first.group)} names "
            f"{_format_difference(abs(outcome.effect_size), self.digits)} {self.unit} "
            f"{'higher' if outcome.effect_size > 0 else 'lower'}{than} "
            f"({format_percent(outcome.confidence)} CI {_format_range(outcome.ci_low, outcome.ci_high, self.digits)})"
        )
        number = "all" if len(found) == groups else f"{len(found)} of"
        count = f"; {number} {groups} groups differ{'s' if len(found) == 1 else ''} significantly"
        return f"{said}{count if groups > 2 else ''}."

    @property
    def details(self) -> Iterator[str]:
        """Chosen pairs, placebo, four fifths and power, a sentence each."""
        if not self.measured:
            return
        s = self.summary
        for pair in self.pairs:
            difference, low, high = map(self.scale, (pair.difference, pair.ci_low, pair.ci_high))
            p = "no p" if pair.p_value is None else f"uncorrected p {format_p_relation(pair.p_value)}"
            yield (
                f"{show_group(pair.first)} minus {show_group(pair.second)}: "
                f"{_format_difference(difference, self.digits)} {self.unit}, "
                f"{format_percent(1.0 - self.run.manifest.settings.alpha)} CI "
                f"{_format_range(low, high, self.digits)}, {p}."
            )
        band = _format_range(self.scale(s.placebo_low), self.scale(s.placebo_high), self.digits)
        edit = (
            _format_range(self.scale(s.edit_low), self.scale(s.edit_high), self.digits)
            if s.edit_low is not None
            else ""
        )
        yield (
            f"Placebo: random halves of one group's names differ by {band} {self.unit}"
            f"{f'; a meaningless edit makes a difference of {edit}' if edit else ''}."
        )
        for row in list(self.selection.values())[:1]:
            if row.chance_below_80 is None:
                continue
            yield (
                f"Four fifths ({_name_share(row.top)}): {row.chance_below_80:.0%} of fair systems would show an impact "
                "ratio below 0.8 in an audit of this size."
            )
        needs = [
            f"{number:,} {what}"
            for number, what in ((s.names_needed, "names per group"), (s.documents_needed, "documents"))
            if number is not None
        ]
        if needs:
            yield f"80% power for a difference of 0.2 SD, before correction, needs {' or '.join(needs)}."

    @property
    def brief(self) -> str:
        """Placebo and four fifths in one line, where there are several models."""
        band = _format_range(self.scale(self.summary.placebo_low), self.scale(self.summary.placebo_high), self.digits)
        chance = next((row.chance_below_80 for row in self.selection.values()), None)
        missed = "" if chance is None else f"; {chance:.0%} of fair systems miss four fifths"
        return f"{self.label}: placebo {band} {self.unit}{missed}."

    @property
    def table(self) -> Table:
        """Table of the terminal: every group with its difference and its selection."""
        share = ("selected" if self.share == "decisions" else f"top {float(self.share):.0%}") if self.share else ""
        heads = (
            f"D, {self.unit}",
            f"{format_percent(1.0 - self.run.manifest.settings.alpha)} CI",
            "p, adjusted",
            *((share, "impact ratio") if share else ()),
        )
        rows = []
        for result in self.measured:
            outcome, row = self.outcome(result), self.selection.get(result.group)
            cells = [
                Cell(_format_difference(outcome.effect_size, self.digits), " *" if result.significant else "  "),
                Cell(_format_range(outcome.ci_low, outcome.ci_high, self.digits)),
                Cell(format_p(result.p_adjusted if result.p_adjusted is not None else result.p_value)),
            ]
            if row is not None:
                cells += [Cell(f"{row.rate:.1%}"), Cell(_format_impact(row))]
            rows.append(TableRow((show_group(result.group),), tuple(cells)))
        spans = tuple(ColumnSpan(head) for head in heads)
        return Table(self.label, ("group",), spans, (RowGroup("", tuple(rows)),))


def _format_impact(row: AuditSelectionRow) -> str:
    interval = format_interval(row.impact_ci_low, row.impact_ci_high)
    if row.impact_ratio is None:
        return "–"
    return (
        f"{format_decimal(row.impact_ratio)} {'highest' if row.impact_ratio == 1.0 and interval == '–' else interval}"
    )


def _name_share(top: str) -> str:
    return "selected" if top == "decisions" else f"in the top {float(top):.0%}"


def _draw_differences(strips: Sequence[Strip], title: str, unit: str, axis: str) -> Markup:
    """Draw the differences of groups with their intervals and the placebo.

    Parameters
    ----------
    strips : sequence of Strip
        One per group.
    title : str
    unit : str
        Start of the caption: what the numbers are.
    axis : str
        Title of the axis.
    """
    return draw_strips(
        strips,
        title=title,
        caption=f"{unit}, with intervals. The grey band shows how much random halves of one group's names differ.",
        line=0.0,
        axis=axis,
        ends=("lower", "higher"),
        key=("significant", "not significant"),
    )


def _draw_model(view: _ScoreView) -> Markup:
    band = view.scale(view.summary.placebo_low) or 0.0, view.scale(view.summary.placebo_high) or 0.0
    strips = [
        Strip(
            show_group(result.group),
            outcome.effect_size,
            outcome.ci_low,
            outcome.ci_high,
            band,
            bool(result.significant),
        )
        for result in view.measured
        for outcome in [view.outcome(result)]
    ]
    unit = "In standard deviations (SD) of documents" if view.unit == "SD" else "In points"
    title = f"{view.label}: differences from the other groups."
    return _draw_differences(strips, title, unit, f"Difference D, {view.unit}")


def _draw_selection(label: str, selection: Mapping[str, AuditSelectionRow], share: str) -> Markup:
    """Draw the impact ratios of all groups.

    Parameters
    ----------
    label : str
        Label of the model.
    selection : mapping of str to AuditSelectionRow
        By group.
    share : str
        Share of pairs that is selected, or "decisions".
    """
    rows = selection.values()
    strips = [
        Strip(
            f"{show_group(row.group)} {row.rate:.1%}",
            row.impact_ratio,
            row.impact_ci_low,
            row.impact_ci_high,
            strong=row.impact_ci_high is not None and row.impact_ci_high < 1.0,
        )
        for row in rows
    ]
    chance = next((row.chance_below_80 for row in rows), None)
    caption = f"Rates {_name_share(share)}, and their ratio to the highest rate with simultaneous intervals. "
    caption += "The dashed line is four fifths"
    if chance is not None:
        caption += f"; {chance:.0%} of audits of this size find a group below it although all are treated equally"
    return draw_strips(
        strips,
        title=f"{label}: selection.",
        caption=f"{caption}.",
        line=FOUR_FIFTHS,
        axis="Impact ratio",
        key=("interval below 1", "interval includes 1"),
    )


def _draw_names(view: _ScoreView) -> Markup:
    names: dict[str, list[tuple[float, str]]] = {}
    for row in view.model["names"]:
        names.setdefault(row.group, []).append((row.score, f"{row.name}: {row.score:.4g}"))
    strips = [Strip(show_group(group), points=tuple(points)) for group, points in names.items()]
    mean = sum(row.score for row in view.model["names"]) / max(len(view.model["names"]), 1)
    caption = "Each point is the mean score of a name over all documents. The dashed line is the mean of all names."
    return draw_strips(strips, title=f"{view.label}: names.", caption=caption, line=mean, axis="Mean score")


_GROUP, _RATE, _IMPACT, _RATIO, _P = make_columns(
    AuditSelectionRow, "group", "rate", "impact_ratio", "ratio", "p_adjusted"
)
_SELECTION_COLUMNS = (
    dataclasses.replace(_GROUP, get=lambda row: show_group(row.group)),
    _RATE,
    dataclasses.replace(_IMPACT, format="text", get=lambda row: _format_impact(row)),
    dataclasses.replace(
        _RATIO,
        label="ratio to others",
        format="text",
        get=lambda row: f"{format_decimal(row.ratio)} {format_interval(row.ci_low, row.ci_high)}",
    ),
    _P,
)


def _list_selection_blocks(view: _ScoreView) -> Iterator[HtmlFigure | Table]:
    yield HtmlFigure(_draw_selection(view.label, view.selection, view.share))
    title = f"{view.label}: {_name_share(view.share)}"
    ties = [
        part for row in view.selection.values() for part in row.reason.split("; ") if "tie at the threshold" in part
    ]
    title += f" ({ties[0]})" if ties else ""
    yield make_table(title, _SELECTION_COLUMNS, list(view.selection.values()))


_DOCUMENT, _SPREAD, _LOWEST, _HIGHEST = make_columns(AuditDocumentRow, "document", "spread", "lowest", "highest")
_DOCUMENT_COLUMNS = (
    _DOCUMENT,
    dataclasses.replace(_SPREAD, format="text", get=lambda row: f"{row.spread:.2g}"),
    dataclasses.replace(_LOWEST, get=lambda row: show_group(row.lowest)),
    dataclasses.replace(_HIGHEST, get=lambda row: show_group(row.highest)),
)
_BALANCE_COLUMNS = (
    Column("group", "group", "The group.", get=lambda row: show_group(row.group)),
    Column("n_names", "names", "Names.", "count"),
    Column("n_units", "units", "Independent names: spellings of one name count once.", "count"),
    Column("mean_log_count", "log people", "Mean log of the number of people with a name.", "number"),
    Column("log_count_difference", "difference", "From the other groups, in standard deviations.", "number"),
    Column("mean_tokens", "tokens", "Mean number of tokens.", "number"),
    Column("tokens_difference", "difference of tokens", "From the other groups, in standard deviations.", "number"),
)


class AuditPresenter(DefaultPresenter):
    """Verdict, differences, selection, names, documents, and what an audit cannot show."""

    def report(self, gathered: RunGroup, **options: Any) -> Report:
        """Build the report of an audit."""
        run, report = gathered.run, super().report(gathered, **options)
        (spec,) = (table for table in TABLES if table.name == "ll144")
        if spec.get_rows(run):
            section = Section(spec.name, spec.title, (make_record_table(spec, run),), collapsed=False)
            report = dataclasses.replace(report, sections=[section, *report.sections])
        return (_make_response_report if run.manifest.settings.collects_responses else _make_score_report)(run, report)

    def _get_meaning(self, run: RunData) -> str:
        settings = run.manifest.settings
        if not settings.collects_responses:
            return _MEANING
        return _WRITTEN_MEANING if settings.writes else _RESPONSE_MEANING

    def _headline(self, run: RunData) -> str:
        inputs = run.manifest.inputs
        groups = len({name.group for name in inputs.names})
        listed, n_queries = format_count(len(inputs.documents), "document"), len(inputs.queries)
        if run.manifest.settings.writes:
            listed = f"{format_count(len(inputs.documents), 'prompt')}, {format_count(n_queries, 'occupation')}"
        elif n_queries:
            listed += f", {n_queries} {'query' if n_queries == 1 else 'queries'}"
        return (
            f"{format_count(len(run.manifest.models), 'model')}; {format_count(len(inputs.names), 'name')} in {groups} "
            f"groups, {listed}"
        )

    def card(self, run: RunData, label: str) -> ModelCard:
        """Make the model card of a label."""
        own = [finding for finding in self._findings(run) if finding.model == label]
        entries = [self._entry(finding, run) for finding in own]
        return make_card(run, own, f"name audit: {self._headline(run)}", entries, [self._get_meaning(run), *LIMITS])

    def sources(self, runs: Sequence[RunData]) -> Iterator[CitationUse]:
        """Yield the sources of the names."""
        for source in dict.fromkeys(run.manifest.inputs.names_source for run in runs):
            if source.startswith("Bertrand"):
                yield CitationUse("the names", "bertrand2004")
            elif source.startswith("U.S. Census"):
                yield CitationUse("the names", "census2020")
            elif source.startswith("Caliskan"):
                yield CitationUse("the names", "caliskan2017")
        outcomes = dict.fromkeys(outcome.id for run in runs for outcome in run.manifest.inputs.outcomes)
        for name in outcomes:
            if name in _OUTCOME_WORKS:
                yield CitationUse(f"the outcome {name}", _OUTCOME_WORKS[name])
            elif name in lexicon_names():
                source = load_lexicon(name).source
                yield CitationUse(f"the outcome {name}", text=source.citation, name=source.name)

    def methods(self, run: RunData) -> Iterator[CitationUse]:
        """Yield the works that methods are from."""
        yield CitationUse("audits with names in otherwise equal documents", "bertrand2004")
        yield CitationUse("names and documents as samples (p)", "clark1973")
        yield CitationUse("names and documents as crossed samples (p)", "judd2012")
        yield CitationUse("degrees of freedom of the crossed test", "satterthwaite1946")
        if any(decision.p_adjusted is not None for decision in run.tables.get("decisions", ())):
            yield CitationUse("correction for the number of groups", "holm1979")
        if run.tables.get("words"):
            yield CitationUse("log-odds of words with a prior", "monroe2008")
            yield CitationUse("correction for the number of words", "benjamini1995")

    def methods_paragraph(self, run: RunData) -> Iterator[MethodsSentence]:
        """Yield the sentences of the methods paragraph."""
        inputs, settings = run.manifest.inputs, run.manifest.settings
        groups = len({name.group for name in inputs.names})
        sources = tuple(use.work for use in self.sources([run]))
        unit = "prompt" if settings.writes else "document"
        yield MethodsSentence(
            f"With biassay {get_version(run)} we audited {format_models(run)} with {len(inputs.names):,} names of "
            f"{groups} groups ({inputs.names_source}) in {format_count(len(inputs.documents), unit)}",
            ("biassay", "bertrand2004", *sources),
        )
        if settings.writes:
            yield MethodsSentence(
                f"{inputs.prompt_set}: {format_count(settings.responses_per_prompt, 'response')} per name and prompt, "
                f"averaged first; outcomes were {', '.join(outcome.id for outcome in inputs.outcomes)}",
            )
        if inputs.matched:
            yield MethodsSentence(f"Names were matched across groups for {' and '.join(inputs.matched)}")
        yield MethodsSentence(
            "D is the mean score of a group's names minus the equally weighted mean of the other groups. P-values and "
            f"intervals of {format_percent(1.0 - settings.alpha)} treat names, nested in groups, and {unit}s as "
            f"crossed samples; p-values were corrected over groups {'and outcomes ' if settings.writes else ''}by "
            "Holm's method",
            ("clark1973", "judd2012", "satterthwaite1946", "holm1979"),
        )
        yield make_seed_sentence([settings.seed])

    compared_items = "groups of names"

    def _describe_compared(self, runs: Mapping[str, RunData]) -> Iterator[Mapping[str, Mapping[str, object]]]:
        yield describe_compared(runs)

    def _pair_items(self, runs: Mapping[str, RunData], baseline: str) -> Sequence[PairedItem]:
        return pair_audit_groups(runs, baseline)

    def comparison_report(self, comparison: Comparison) -> Report:
        """Build the report of a comparison."""
        return dataclasses.replace(make_differences_report(comparison), meaning=_COMPARED)

    def comparison_methods(self, comparison: Comparison) -> Iterator[MethodsSentence]:
        """Yield the methods sentences of a comparison."""
        how = "by group, over names and documents that both models were given"
        return methods_of_differences(comparison, how, ("judd2012", "satterthwaite1946"))


def _make_score_report(run: RunData, report: Report) -> Report:
    """Complete the report of an audit of scores."""
    views = [_ScoreView(run, model) for model in split_by_model(run)]
    measured = [view for view in views if view.measured]
    found = sum(any(result.significant for result in view.measured) for view in views)
    return _complete_report(
        report,
        views,
        run,
        title=f"{found:,} of {len(views):,} models score some group of names differently",
        subject=f"Name audit of {', '.join(view.label for view in views)}",
        details=[Statement(text) for text in measured[0].details]
        if len(measured) == 1
        else [Statement(view.brief, (), view.label) for view in measured[:_SIDE_BY_SIDE]],
        figures=list(map(_draw_model, measured)),
        blocks={
            ("selection", "Selection"): tuple(block for view in measured for block in _list_selection_blocks(view)),
            ("names", "Names by score"): tuple(HtmlFigure(_draw_names(view)) for view in measured),
            ("matters", "Documents where the name matters most"): tuple(map(_list_documents, measured)),
        },
        limits=LIMITS,
    )


def _complete_report(
    report: Report,
    views: Sequence[_AuditView],
    run: RunData,
    *,
    title: str,
    figures: Sequence[Markup],
    blocks: Mapping[tuple[str, str], tuple[Block, ...]],
    limits: Sequence[str],
    **fields: Any,
) -> Report:
    """Replace findings by the verdict on each model; `title` is for many models, `blocks` by name and title."""
    few, measured = len(views) <= _SIDE_BY_SIDE, [view for view in views if view.measured]
    warned = (Bullets(tuple(map(Statement, limits))),)
    *tables, methods = report.sections
    return dataclasses.replace(
        report,
        title=" ".join(view.verdict for view in views) if few else title,
        findings=(),
        statements=[view.statement for view in views],
        figure=Markup("\n").join(figures) if measured else None,
        sections=[
            *(Section(name, heading, own, collapsed=False) for (name, heading), own in blocks.items()),
            Section("limits", "What this audit cannot show", warned, collapsed=False, printed=True),
            *tables,
            _make_names_section(run),
            methods,
        ],
        tables=[view.table for view in measured] if few else [],
        tone="unsure",
        **fields,
    )


def _list_documents(view: _ScoreView) -> Table:
    rows = sorted(view.model["documents"], key=lambda row: -row.spread)
    return make_table(view.label, _DOCUMENT_COLUMNS, rows, 10)


def _make_names_section(run: RunData) -> Section:
    """Make the section on the source of the names and the balance of their groups."""
    inputs = run.manifest.inputs
    drawn = f"Source: {inputs.names_source}; seed {run.manifest.settings.seed}."
    matched = f" Matched for {' and '.join(inputs.matched)}." if inputs.matched else " Not matched."
    unknown = (
        f" Left out because they are out of vocabulary: {len(inputs.unknown_names):,} names."
        if inputs.unknown_names
        else ""
    )
    balance = (make_table("Balance of the groups", _BALANCE_COLUMNS, inputs.balance),) if inputs.balance else ()
    return Section("provenance", "Names and their balance", (Text(drawn + matched + unknown), *balance))


class _ResponseView(_AuditView):
    """Results of the responses of one model."""

    def __init__(self, run: RunData, model: RunSlice) -> None:
        super().__init__(run, model)
        self.measures = tuple(dict.fromkeys(result.measure for result in self.results))
        self.summaries: dict[str, Any] = {row.measure: row for row in model["summary"]}
        self.n_groups = len({result.group for result in self.results})

    @property
    def record(self) -> ModelRecord:
        """Record of the model in the manifest, with its tokens."""
        key = model_key(self.results[0].record)
        return next(record for record in self.run.manifest.models if (record.name, record.options) == (key[0], key[1]))

    @property
    def significant_results(self) -> list[Result]:
        """Significant differences: the main measure first, then the largest."""
        counted = [result for result in self.measured if result.form_of is None and result.significant]
        return sorted(counted, key=lambda result: (self.measures.index(result.measure), -abs(result.effect_size)))

    @property
    def verdict(self) -> str:
        """The finding in a sentence."""
        if not self.measured:
            return f"{self.label}: {self.results[0].reason if self.results else 'not measured'}."
        found = self.significant_results
        doubts = list(
            dict.fromkeys(filter(None, (result.doubt or self._explain_missing(result) for result in self.results)))
        )
        if not found and doubts:
            return f"{self.label}: inconclusive. {doubts[0][0].upper()}{doubts[0][1:]}{self._judge_caveat}."
        if not any(result.p_value is not None for result in self.measured):
            return f"{self.label}: differences are not tested: {_as_record(self.measured[0]).outcome.reason}."
        if not found:
            groups = f"{self.n_groups} groups of names"
            return f"{self.label}: no significant difference between {groups}{self._could_find}{self._judge_caveat}."
        n_tested = sum(result.form_of is None and result.p_value is not None for result in self.measured)
        count = f"; {len(found)} of {n_tested} differences are significant" if n_tested > 1 else ""
        return f"{self.label} {self._describe(found[0])}{count}{self._judge_caveat}."

    @property
    def statement(self) -> Statement:
        """The verdict with all significant differences, if there are several."""
        points = (
            tuple(self._describe(one) for one in self.significant_results) if len(self.significant_results) > 1 else ()
        )
        return Statement(self.verdict, points, self.label)

    def _describe(self, result: Result) -> str:
        """Describe a difference with its interval."""
        first = self._choose_failing_group(result)
        low, high = _format_ends(first)
        interval = f" ({format_percent(first.confidence)} CI {low} to {high})" if low else ""
        difference = describe_difference(_as_record(first))
        preposition = re.search(rf" (to|about|for) {re.escape(show_group(first.group))} names", difference)
        others = [show_group(result.group) for result in self.results if result.group != first.group]
        than = f"{preposition[1]} " if preposition else ""
        than += f"{others[0]} names" if self.n_groups == 2 else "others"
        return f"{difference} than {than}{interval}"

    @property
    def _judge_caveat(self) -> str:
        unchecked = any(not row.n_labels for row in self.model["judges"])
        return "; the judge is not checked against human ratings" if unchecked else ""

    def _explain_missing(self, result: Result) -> str:
        """Return why a main measure was not compared, unless all of its values are equal."""
        record = _as_record(result)
        is_missing = record.status == "skipped" and record.measure not in FAILURES
        reason = record.reason or ""
        return f"{record.measure}: {reason}" if is_missing and not reason.startswith("all responses") else ""

    def _choose_failing_group(self, result: Result) -> Result:
        """Return the result of the group with more failures to respond, if there are two groups."""
        if self.n_groups > 2 or result.measure not in FAILURES or result.effect_size > 0.0:
            return result
        return next(one for one in self.measured if one.measure == result.measure and one.group != result.group)

    @property
    def _could_find(self) -> str:
        summary = self.summaries.get(self.measures[0])
        if summary is None or summary.smallest is None:
            return ""
        return f"; the audit could detect {format_size(summary.smallest, summary.scale)} or more"

    @property
    def details(self) -> Iterator[str]:
        """Measured part, doubts, missing responses, positions, placebo and cost, a sentence each."""
        if part := self.record.part:
            yield f"{part[0].upper()}{part[1:]}; for the rest, resume the run with a larger --budget."
        for measure in self.measures:
            own = [result for result in self.results if result.measure == measure]
            reasons = list(filter(None, dict.fromkeys(finding.doubt or finding.record.reason for finding in own)))
            for reason in reasons[: 1 if self.n_groups == 2 else None] if measure not in FAILURES else ():
                if reason not in self.verdict.lower():
                    groups = [
                        show_group(finding.group) for finding in own if reason in (finding.doubt, finding.record.reason)
                    ]
                    name = measure if ":" in measure else measure.capitalize()
                    yield f"{name}, {' and '.join(groups)}: {reason}."
        counts = self.model["responses"]
        total, parsed = sum(row.responses for row in counts), sum(row.parsed for row in counts)
        if parsed < total:
            yield f"{total - parsed:,} of {total:,} responses are missing: {', '.join(self._count_missing())}."
        positions = self.model["positions"]
        if positions:
            shares = ", ".join(f"{row.position} {row.share:.0%}" for row in positions)
            yield f"Choices by position: {shares} (p = {format_p(positions[0].p_value)} for equal shares)."
        yield from self._describe_judge()
        summary = self.summaries.get(self.measures[0])
        if summary is not None:
            low, high = (_format_value(value, summary.scale) for value in (summary.placebo_low, summary.placebo_high))
            in_what = f" in {summary.measure}" if self.run.manifest.settings.writes else ""
            yield f"Placebo: random halves of one group's names differ by {low} to {high}{in_what}."
        record = self.record
        if record.tokens_in or record.tokens_out:
            judge = ", including those of the judge" if self.model["judges"] else ""
            yield f"Tokens used: {record.tokens_in:,} in and {record.tokens_out:,} out{judge}."

    def _count_missing(self) -> Iterator[str]:
        """Yield how many responses are missing for each reason, in all and for each group."""
        rows = self.model["responses"]
        for kind in RESPONSE_KINDS[1:]:
            number = sum(getattr(row, kind) for row in rows)
            by_group = ", ".join(f"{show_group(row.group)} {getattr(row, kind):,}" for row in rows)
            if number:
                yield f"{number:,} {kind}{f' ({by_group})' if len(rows) > 1 else ''}"

    def _describe_judge(self) -> Iterator[str]:
        """Describe each judged outcome: the check against human ratings and the missing judgements."""
        by_measure: dict[str, list[AuditJudgeRow]] = {}
        for row in self.model["judges"]:
            by_measure.setdefault(row.measure, []).append(row)
        for measure, rows in by_measure.items():
            labels = sum(row.n_labels for row in rows)
            checked = "not checked against human ratings"
            if labels:
                agreements = (
                    f"{show_group(row.group)} {'–' if row.tau is None else f'{row.tau:.2f}'} and "
                    f"{(row.judge_mean or 0.0) - (row.human_mean or 0.0):+.2f}"
                    for row in rows
                )
                checked = (
                    f"corrected by {labels:,} human labels (Kendall's tau, and mean error of the judge: "
                    f"{', '.join(agreements)})"
                )
            yield f"{measure}: judged by {rows[0].judge}, {checked}."
            total = sum(row.judgements for row in rows)
            missing = {kind: sum(getattr(row, kind) for row in rows) for kind in JUDGE_FAILURES}
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in missing.items() if number)
            if kinds:
                yield f"{total:,} judgements: {kinds}."

    @property
    def table(self) -> Table:
        """Table of the terminal: every group by measure."""
        level = format_percent(1.0 - self.run.manifest.settings.alpha)
        spans = tuple(ColumnSpan(head) for head in ("mean", "difference", f"{level} CI", "p, adjusted"))
        groups = []
        for measure in self.measures:
            own = [result for result in self.measured if result.measure == measure]
            if own:
                unit = f", {own[0].scale}" if own[0].scale not in ("", "share") else ""
                groups.append(RowGroup(f"{measure}{unit}", tuple(self._make_row(finding) for finding in own)))
        return Table(self.label, ("group",), spans, tuple(groups))

    def _make_row(self, result: Result) -> TableRow:
        low, high = _format_ends(result)
        mean = "–" if result.mean is None else _format_value(result.mean, result.scale, sign=False)
        cells = (
            Cell(mean),
            Cell(_format_value(result.effect_size, result.scale), " *" if result.significant else "  "),
            Cell(f"[{low}, {high}]" if low else "no interval"),
            Cell(format_p(result.p_adjusted if result.p_adjusted is not None else result.p_value)),
        )
        return TableRow((show_group(result.group),), cells)


def _as_record(result: Result) -> AuditResult:
    record = result.record
    assert isinstance(record, AuditResult)
    return record


def _format_value(value: float | None, scale: str, *, sign: bool = True) -> str:
    if value is None:
        return "–"
    plus = "+" if sign else ""
    if scale == "share":
        return f"{100.0 * value:{plus}z.1f}%"
    return f"{value:{plus}z.1f}" if scale == PER_TEXT else f"{value:{plus}z.2f}"


def _format_ends(result: Any) -> tuple[str, str]:
    if result.ci_low is None or result.ci_high is None:
        return "", ""
    return _format_value(result.ci_low, result.scale), _format_value(result.ci_high, result.scale)


def _draw_measures(views: Sequence[_ResponseView]) -> Iterator[Markup]:
    """Yield one figure per model and measure with a placebo."""
    for view in views:
        for measure in view.measures:
            own = [result for result in view.measured if result.measure == measure]
            if not own or own[0].placebo_low is None:
                continue
            strips = [
                Strip(
                    show_group(finding.group),
                    finding.effect_size,
                    finding.ci_low,
                    finding.ci_high,
                    (finding.placebo_low, finding.placebo_high) if finding.placebo_low is not None else None,
                    bool(finding.significant),
                )
                for finding in own
            ]
            unit = "share of responses" if own[0].scale == "share" else own[0].scale
            yield _draw_differences(
                strips, f"{view.label}: {measure}.", "Differences from the other groups", f"Difference, {unit}"
            )


def _show_examples(view: _ResponseView) -> Iterator[Block]:
    """Yield a table for each document that was drawn, with one response per group."""
    examples: dict[tuple[str, str], list[AuditResponseExample]] = {}
    for row in view.model["examples"]:
        examples.setdefault((row.document, row.query), []).append(row)
    for (document, query), rows in examples.items():
        where = f"{document}, {query}" if query else document
        if view.run.manifest.settings.writes and len(rows) <= _COLUMNS:
            yield _set_side_by_side(f"{view.label}: prompt {make_printable(where)}", rows)
            continue
        lines = tuple(
            TableRow(
                (make_printable(show_group(row.group) or row.name),),
                (Cell(make_printable(row.name)), Cell(row.kind), Cell(_flatten(row.reply))),
            )
            for row in rows
        )
        spans = tuple(ColumnSpan(head, text=True) for head in ("name", "kind", "response"))
        yield Table(f"{view.label}: {make_printable(where)}", ("group",), spans, (RowGroup("", lines),))


def _set_side_by_side(title: str, rows: Sequence[AuditResponseExample]) -> Table:
    """Make a table of examples with one column per group."""
    spans = tuple(ColumnSpan(make_printable(show_group(row.group)), text=True) for row in rows)
    lines = (
        TableRow(("name",), tuple(Cell(make_printable(row.name)) for row in rows)),
        TableRow(
            ("response",),
            tuple(Cell(_flatten(row.reply) or row.kind, note="" if row.kind == "parsed" else row.kind) for row in rows),
        ),
    )
    return Table(title, ("",), spans, (RowGroup("", lines),))


def _flatten(text: str) -> str:
    return make_printable(" ⏎ ".join(line for line in text.splitlines() if line.strip()))


_COUNT_COLUMNS = (
    Column("group", "group", "The group.", get=lambda row: show_group(row.group) or "all"),
    *make_columns(AuditResponseCounts, "responses", *RESPONSE_KINDS),
)
_WORD_COLUMNS = make_columns(AuditWordRow, "word", "rate", "rate_others", "log_odds", "ci_low", "ci_high", "p_adjusted")


def _list_words(view: _ResponseView) -> Iterator[Table]:
    rows: dict[str, list[AuditWordRow]] = {}
    for row in view.model["words"]:
        rows.setdefault(row.group, []).append(row)
    for group, own in rows.items():
        yield make_table(f"{view.label}: {show_group(group)}", _WORD_COLUMNS, own[:_TOP_WORDS])


_JUDGE_COLUMNS = (
    Column("measure", "outcome", "The outcome."),
    Column("group", "group", "The group.", get=lambda row: show_group(row.group) or "pairs"),
    *make_columns(AuditJudgeRow, "judgements", "scored", *JUDGE_FAILURES),
)
_LABEL_COLUMNS = make_columns(AuditJudgeRow, "n_labels", "judge_mean", "human_mean", "tau")
_JUDGE_NOTE = (
    "A judge is a model with errors, which may differ between groups. Without human labels, a difference may be "
    "the judge's own: rate a random part of the texts (biassay survey new --responses RUN), and run the audit again "
    "with --human. Intervals then include the error of the judge, if human labels count as the truth."
)


def _list_judgements(view: _ResponseView) -> Table:
    rows = view.model["judges"]
    labels = _LABEL_COLUMNS if any(row.n_labels for row in rows) else ()
    return make_table(f"{view.label}, judged by {rows[0].judge}", (*_JUDGE_COLUMNS, *labels), rows)


_UNDEFINED_COLUMNS = (
    Column("measure", "outcome", "The outcome."),
    Column("group", "group", "The group.", get=lambda row: show_group(row.group)),
    *make_columns(AuditUndefinedRow, "reason", "responses"),
)


def _list_undefined(view: _ResponseView) -> Iterator[Table]:
    """Yield a table of responses that are present but that an outcome cannot score."""
    rows = [row for row in view.model["undefined"] if row.reason not in RESPONSE_KINDS]
    if rows:
        yield make_table(f"{view.label}: responses without a score", _UNDEFINED_COLUMNS, rows)


def _draw_selections(views: Sequence[_ResponseView]) -> Iterator[HtmlFigure]:
    for view in views:
        rows = [row for row in view.model["selection"] if row.top in ("decisions", "0.5")]
        selection: dict[str, AuditSelectionRow] = {row.group: row for row in rows}
        if selection:
            yield HtmlFigure(_draw_selection(view.label, selection, rows[0].top))


def _make_response_report(run: RunData, report: Report) -> Report:
    """Complete the report of an audit of responses."""
    views = [_ResponseView(run, model) for model in split_by_model(run)]
    measured = [view for view in views if view.measured]
    detailed = measured or [view for view in views if view.results]
    found = sum(bool(view.significant_results) for view in views)
    writes, setup = run.manifest.settings.writes, _describe_setup(run)
    drawn = (
        f"{'Prompts' if writes else 'Documents'} and names were drawn at random with seed "
        f"{run.manifest.settings.seed}, without regard to the responses. Responses are shortened."
    )
    missing = (
        table
        for view in views
        for table in (make_table(view.label, _COUNT_COLUMNS, view.model["responses"]), *_list_undefined(view))
    )
    words = tuple(table for view in measured for table in _list_words(view))
    judges = tuple(_list_judgements(view) for view in views if view.model["judges"])
    examples = tuple(block for view in views for block in _show_examples(view))
    blocks: dict[tuple[str, str], tuple[Block, ...]] = {
        ("differences", "Differences"): tuple(view.table for view in measured),
        ("selection", "Selection"): tuple(_draw_selections(measured)),
        ("responses", "Missing responses"): tuple(missing),
        ("judge", "Judge"): (Text(_JUDGE_NOTE), *judges) if judges else (),
        ("words", "Words that differ most"): (Text(_WORD_NOTE), *words) if words else (),
        ("examples", "Examples"): (Text(drawn), *examples) if examples else (),
    }
    always = ("differences", "responses")
    *tables, methods = report.sections
    return _complete_report(
        dataclasses.replace(
            report,
            sections=[
                *(dataclasses.replace(table, name=f"table-{table.name}", collapsed=True) for table in tables),
                methods,
            ],
        ),
        views,
        run,
        title=f"{found:,} of {len(views):,} models treat some group of names differently",
        subject=f"{setup[0].upper()}{setup[1:]}: {', '.join(view.label for view in views)}",
        details=[Statement(text) for text in detailed[0].details] if len(detailed) == 1 else [],
        figures=list(_draw_measures(measured)),
        blocks={key: own for key, own in blocks.items() if own or key[0] in always},
        limits=_WRITTEN_LIMITS if writes else _RESPONSE_LIMITS,
    )


def _describe_setup(run: RunData) -> str:
    """Describe how names were put into prompts: one alone, or several in comparison."""
    settings = run.manifest.settings
    if settings.writes:
        whose = "the user's name" if settings.role == "user" else "names in the prompt"
        responses = format_count(settings.responses_per_prompt, "response")
        return f"audit of texts ({run.manifest.inputs.prompt_set}), {whose}, {responses} per name and prompt"
    k = settings.count_candidates(len({name.group for name in run.manifest.inputs.names}))
    how = "candidates judged alone" if k == 1 else f"{k} candidates in comparison"
    return f"audit of decisions, {how}, {format_count(settings.responses_per_prompt, 'response')} per prompt"
