"""Report and methods sentences of name audits, of scores and of responses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from biassay.datasets.lexicons import lexicon_names, load_lexicon
from biassay.grouping import group_pairs
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
from biassay.results.outcomes import Outcome, Result
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
    SD,
    TABLES,
    AuditDocumentRow,
    AuditJudgeRow,
    AuditResponseCounts,
    AuditResponseExample,
    AuditSelectionRow,
    AuditUndefinedRow,
    AuditWordRow,
    describe_difference,
    format_size,
    get_shown_outcome,
    show_group,
)

_OUTCOME_WORKS = {"sentiment": "hutto2014", "readability": "flesch1948"}
_SIDE_BY_SIDE = 2  # models with a table each in the terminal
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

_RESPONSE_LIMITS = (
    "Responses are parsed by stated rules. Missing responses (refused, filtered, unreadable) are counted by group, and "
    "bounds show the difference if they are counted either way.",
    "Responses vary with the wording, the system message and the temperature; results hold for those of this run.",
    *LIMITS,
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
_JUDGE_NOTE = (
    "A judge is a model with errors, which may differ between groups. Without human labels, a difference may be "
    "the judge's own: rate a random part of the texts (biassay survey new --responses RUN), and run the audit again "
    "with --human. Intervals then include the error of the judge, if human labels count as the truth."
)


_TOP_WORDS = 10  # per group, on the page
_COLUMNS = 4  # most groups whose examples are shown in columns


class _ModelView:
    """Results of one model, as the report shows them."""

    def __init__(self, run: RunData, model: RunSlice) -> None:
        own = set(map(id, model["results"]))
        self.label, self.model, self.run = model.label, model, run
        self.results: list[Result] = [result for result in run.results if id(result.record) in own]
        self.measured = [result for result in self.results if result.status == "measured"]
        self.measures = tuple(dict.fromkeys(result.measure for result in self.results))
        self.scales = {result.measure: get_shown_outcome(result.record).scale for result in self.measured}
        self.n_groups = len({result.group for result in self.results})
        self.summaries: dict[str, Any] = {row.measure: row for row in model["summary"]}
        shares = list(dict.fromkeys(row.top for row in model["selection"]))
        self.share = "decisions" if "decisions" in shares else shares[len(shares) // 2] if shares else ""
        self.selection: list[AuditSelectionRow] = [row for row in model["selection"] if row.top == self.share]
        self.level = format_percent(1.0 - run.manifest.settings.alpha)

    @property
    def significant_results(self) -> list[Result]:
        """Significant differences: the main measure first, then the largest."""
        counted = [result for result in self.measured if result.form_of is None and result.significant]
        return sorted(counted, key=lambda result: (self.measures.index(result.measure), -abs(result.effect_size)))

    @property
    def statement(self) -> Statement:
        """Verdict in a sentence, followed by the significant differences if there are several."""
        found = self.significant_results
        points = tuple(map(self._describe, found)) if len(found) > 1 and self.measures != ("",) else ()
        return Statement(f"{self.label}: {self._make_verdict(found)}.", points, self.label)

    def _make_verdict(self, found: Sequence[Result]) -> str:
        if not self.measured:
            return (self.results[0].reason or "") if self.results else "not measured"
        caveat = ""
        if any(not row.n_labels for row in self.model["judges"]):
            caveat = "; the judge is not checked against human ratings"
        if found:
            n_tested = sum(result.form_of is None and result.p_value is not None for result in self.measured)
            count = (
                f"; {len(found)} of {n_tested} differences {'is' if len(found) == 1 else 'are'} significant"
                if n_tested > 1
                else ""
            )
            return f"{self._describe(found[0])}{count}{caveat}"
        if doubt := next(filter(None, (result.doubt or _explain_missing(result) for result in self.results)), ""):
            return f"inconclusive. {doubt[0].upper()}{doubt[1:]}{caveat}"
        if not any(result.p_value is not None for result in self.measured):
            return f"differences are not tested: {self.measured[0].record.outcome.reason}"
        main, could = self.measures[0], ""
        smallest = self._scale(self.summaries[main].smallest, main) if main in self.summaries else None
        if smallest is not None:
            could = f"; the audit could detect {format_size(smallest, self.scales[main])} or more"
        return f"no significant difference between {self.n_groups} groups of names{could}{caveat}"

    def _describe(self, result: Result) -> str:
        """Describe a difference with its interval. For two groups, describe the one with the higher mean."""
        if self.n_groups == 2:
            same = (one for one in self.measured if one.measure == result.measure)
            result = max(same, key=lambda one: float(one.effect_size))
        outcome = get_shown_outcome(result.record)
        others = [show_group(one.group) for one in self.results if one.group != result.group]
        than = f"{others[0]} names" if self.n_groups == 2 else "others"
        interval = f" ({self.level} CI {_format_range(outcome)})" if outcome.ci_low is not None else ""
        return f"{describe_difference(result.record)} than for {than}{interval}"

    @property
    def record(self) -> ModelRecord:
        """Record of the model in the manifest, with its tokens."""
        key = model_key(self.results[0].record)
        return next(record for record in self.run.manifest.models if (record.name, record.options) == (key[0], key[1]))

    @property
    def details(self) -> Iterator[str]:
        """Sentences on the measured part, doubts, missing responses, pairs, placebo, power and cost."""
        record = self.record
        if part := record.part:
            yield f"{part[0].upper()}{part[1:]}; for the rest, resume the run with a larger --budget."
        yield from self._explain_doubts()
        counts = self.model["responses"]
        total, parsed = sum(row.responses for row in counts), sum(row.parsed for row in counts)
        if parsed < total:
            yield f"{total - parsed:,} of {total:,} responses are missing: {', '.join(self._count_missing())}."
        positions = self.model["positions"]
        if positions:
            shares = ", ".join(f"{row.position} {row.share:.0%}" for row in positions)
            yield f"Choices by position: {shares} (p = {format_p(positions[0].p_value)} for equal shares)."
        yield from self._describe_judge()
        yield from self._describe_pairs()
        yield from self.placebo
        for row in self.selection[:1]:
            if row.chance_below_80 is not None:
                yield (
                    f"Four fifths ({_name_share(row.top)}): {row.chance_below_80:.0%} of fair systems would show an "
                    "impact ratio below 0.8 in an audit of this size."
                )
        summary = self.summaries.get("")
        sizes = (summary.names_needed, summary.documents_needed) if summary is not None else ()
        needs = [
            f"{number:,} {what}"
            for number, what in zip(sizes, ("names per group", "documents"), strict=False)
            if number is not None
        ]
        if needs:
            yield f"80% power for a difference of 0.2 SD, before correction, needs {' or '.join(needs)}."
        if record.tokens_in or record.tokens_out:
            judge = ", including those of the judge" if self.model["judges"] else ""
            yield f"Tokens used: {record.tokens_in:,} in and {record.tokens_out:,} out{judge}."

    def _explain_doubts(self) -> Iterator[str]:
        """Yield why measures are in doubt or were not compared, unless the verdict includes the reason."""
        verdict = self.statement.text.lower()
        for measure in self.measures if self.measures != ("",) else ():
            reasons = group_pairs(
                (result.doubt or result.record.reason, show_group(result.group))
                for result in self.results
                if result.measure == measure and measure not in FAILURES
            )
            name = measure if ":" in measure else measure.capitalize()
            for reason, groups in reasons.items():
                if reason and reason not in verdict:
                    yield f"{name}, {' and '.join(groups)}: {reason}."

    def _count_missing(self) -> Iterator[str]:
        """Yield how many responses are missing for each reason, in all and for each group."""
        rows = self.model["responses"]
        for kind in RESPONSE_KINDS[1:]:
            number = sum(getattr(row, kind) for row in rows)
            by_group = ", ".join(f"{show_group(row.group)} {getattr(row, kind):,}" for row in rows)
            if number:
                yield f"{number:,} {kind}{f' ({by_group})' if len(rows) > 1 else ''}"

    def _describe_pairs(self) -> Iterator[str]:
        """Describe the chosen pairs of groups in the main measure."""
        for pair in self.model["pairs"]:
            if pair.measure == self.measures[0]:
                outcome = Outcome(
                    effect_size=self._scale(pair.difference, pair.measure),
                    ci_low=self._scale(pair.ci_low, pair.measure),
                    ci_high=self._scale(pair.ci_high, pair.measure),
                    scale=self.scales[pair.measure],
                )
                p = "no p" if pair.p_value is None else f"uncorrected p {format_p_relation(pair.p_value)}"
                yield (
                    f"{show_group(pair.first)} minus {show_group(pair.second)}: {_format_effect(outcome)}"
                    f"{' SD' if outcome.scale == SD else ''}, "
                    f"{self.level} CI {_format_range(outcome)}, {p}."
                )

    @property
    def placebo(self) -> Iterator[str]:
        """Sentence on the differences between names of one group, and on the effect of a meaningless edit."""
        measure = self.measures[0]
        if measure not in self.summaries:
            return
        summary, scale = self.summaries[measure], self.scales[measure]
        placebo, edit = (
            [_format_value(self._scale(value, measure), scale) for value in ends]
            for ends in ((summary.placebo_low, summary.placebo_high), (summary.edit_low, summary.edit_high))
        )
        edited = (
            f"; a meaningless edit makes a difference of {' to '.join(edit)}" if summary.edit_low is not None else ""
        )
        unit = " SD" if scale == SD else f" in {measure}" if self.run.manifest.settings.writes else ""
        yield f"Placebo: random halves of one group's names differ by {' to '.join(placebo)}{unit}{edited}."

    def _scale(self, value: float | None, measure: str) -> float | None:
        """Convert a difference to the unit of the report. For scores, this is the SD of documents."""
        if value is None or self.scales[measure] != SD:
            return value
        return float(value / self.summaries[measure].document_sd)

    def _describe_judge(self) -> Iterator[str]:
        """Describe each judged outcome: the check against human ratings and the missing judgements."""
        for measure, rows in group_pairs((row.measure, row) for row in self.model["judges"]).items():
            checked = "not checked against human ratings"
            if labels := sum(row.n_labels for row in rows):
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
        """Table of groups for the terminal, by measure, with means or selection rates."""
        scores = self.measures == ("",)
        selection = {row.group: row for row in self.selection} if scores else {}
        heads = ["D, SD" if self.scales.get("") == SD else "difference", f"{self.level} CI", "p, adjusted"]
        if not scores:
            heads.insert(0, "mean")
        if selection:
            heads += ["selected" if self.share == "decisions" else f"top {float(self.share):.0%}", "impact ratio"]
        groups = []
        for measure, own in group_pairs((result.measure, result) for result in self.measured).items():
            scale = self.scales[measure]
            unit = "" if scale in ("", "share", SD) else f", {scale}" if measure else scale
            rows = tuple(self._make_row(result, selection.get(result.group)) for result in own)
            groups.append(RowGroup(f"{measure}{unit}", rows))
        return Table(self.label, ("group",), tuple(map(ColumnSpan, heads)), tuple(groups))

    def _make_row(self, result: Result, selected: AuditSelectionRow | None) -> TableRow:
        outcome = get_shown_outcome(result.record)
        cells = [
            Cell(_format_effect(outcome), " *" if result.significant else "  "),
            Cell(_format_range(outcome)),
            Cell(format_p(result.p_adjusted if result.p_adjusted is not None else result.p_value)),
        ]
        if result.measure:
            mean = _format_value(result.mean, result.scale).removeprefix("+")
            cells.insert(0, Cell(mean))
        if selected is not None:
            cells += [Cell(f"{selected.rate:.1%}"), Cell(_format_impact(selected))]
        return TableRow((show_group(result.group),), tuple(cells))

    def draw_differences(self) -> Iterator[Markup]:
        """Draw the differences of the groups in every measure with their intervals and the placebo."""
        for measure, own in group_pairs((result.measure, result) for result in self.measured).items():
            strips = []
            for result in own:
                outcome = get_shown_outcome(result.record)
                ends = [self._scale(end, measure) for end in (result.placebo_low, result.placebo_high)]
                band = None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
                effect = outcome.effect_size, outcome.ci_low, outcome.ci_high
                strips.append(Strip(show_group(result.group), *effect, band, bool(result.significant)))
            if strips[0].band is not None:
                unit = "share of responses" if self.scales[measure] == "share" else self.scales[measure]
                yield draw_strips(
                    strips,
                    title=f"{self.label}: {measure or 'differences from the other groups'}.",
                    caption="Differences from the other groups, with intervals. The grey band shows how much random "
                    "halves of one group's names differ.",
                    line=0.0,
                    axis=f"Difference, {unit}",
                    ends=("lower", "higher"),
                    key=("significant", "not significant"),
                )

    def draw_selection(self) -> HtmlFigure:
        """Draw the impact ratios of all groups."""
        strips = [
            Strip(
                f"{show_group(row.group)} {row.rate:.1%}",
                row.impact_ratio,
                row.impact_ci_low,
                row.impact_ci_high,
                strong=row.impact_ci_high is not None and row.impact_ci_high < 1.0,
            )
            for row in self.selection
        ]
        chance = self.selection[0].chance_below_80
        caption = f"Rates {_name_share(self.share)}, and their ratio to the highest rate with simultaneous intervals. "
        caption += "The dashed line is four fifths"
        if chance is not None:
            caption += f"; {chance:.0%} of audits of this size find a group below it although all are treated equally"
        drawn = draw_strips(
            strips,
            title=f"{self.label}: selection.",
            caption=f"{caption}.",
            line=FOUR_FIFTHS,
            axis="Impact ratio",
            key=("interval below 1", "interval includes 1"),
        )
        return HtmlFigure(drawn)

    def make_selection_table(self) -> Table:
        """Make the table of selection rates."""
        parts = [part for row in self.selection for part in row.reason.split("; ")]
        ties = [f" ({part})" for part in parts if "tie at the threshold" in part]
        title = f"{self.label}: {_name_share(self.share)}{''.join(ties[:1])}"
        return make_table(title, _SELECTION_COLUMNS, self.selection)

    def draw_names(self) -> HtmlFigure:
        """Draw the mean scores of all names."""
        rows = self.model["names"]
        names = group_pairs((row.group, (row.score, f"{row.name}: {row.score:.4g}")) for row in rows)
        strips = [Strip(show_group(group), points=tuple(points)) for group, points in names.items()]
        mean = sum(row.score for row in rows) / max(len(rows), 1)
        caption = "Each point is the mean score of a name over all documents. The dashed line is the mean of all names."
        title = f"{self.label}: names."
        return HtmlFigure(draw_strips(strips, title=title, caption=caption, line=mean, axis="Mean score"))

    def make_word_tables(self) -> Iterator[Table]:
        """Yield the words of every group that differ most."""
        for group, rows in group_pairs((row.group, row) for row in self.model["words"]).items():
            yield make_table(f"{self.label}: {show_group(group)}", _WORD_COLUMNS, rows[:_TOP_WORDS])

    def make_missing_tables(self) -> Iterator[Table]:
        """Yield tables of the responses by kind, and of the responses without a score."""
        yield make_table(self.label, _COUNT_COLUMNS, self.model["responses"])
        rows = [row for row in self.model["undefined"] if row.reason not in RESPONSE_KINDS]
        if rows:
            yield make_table(f"{self.label}: responses without a score", _UNDEFINED_COLUMNS, rows)

    def make_judgements_table(self) -> Table:
        """Make the table of the judge's responses and its agreement with people."""
        rows = self.model["judges"]
        labels = _LABEL_COLUMNS if any(row.n_labels for row in rows) else ()
        return make_table(f"{self.label}, judged by {rows[0].judge}", (*_JUDGE_COLUMNS, *labels), rows)

    def make_example_tables(self) -> Iterator[Table]:
        """Yield a table for each document that was drawn, with one response per group."""
        for (document, query), rows in group_pairs(
            ((row.document, row.query), row) for row in self.model["examples"]
        ).items():
            title = f"{self.label}: {make_printable(f'{document}, {query}' if query else document)}"
            groups = [make_printable(show_group(row.group) or row.name) for row in rows]
            fields = {
                "name": [make_printable(row.name) for row in rows],
                "kind": [row.kind for row in rows],
                "response": list(map(_flatten, rows)),
            }
            if self.run.manifest.settings.writes and len(rows) <= _COLUMNS:
                yield _make_text_table(title, groups, fields.items())
            else:
                yield _make_text_table(
                    title, list(fields), zip(groups, zip(*fields.values(), strict=True), strict=True)
                )


def _explain_missing(result: Result) -> str:
    """Return why a main measure was not compared, unless all of its values are equal."""
    reason = result.record.reason or ""
    is_missing = result.status == "skipped" and result.measure not in FAILURES
    return f"{result.measure}: {reason}" if is_missing and not reason.startswith("all responses") else ""


def _make_text_table(title: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Table:
    spans = tuple(ColumnSpan(head, text=True) for head in heads)
    lines = tuple(TableRow((label,), tuple(map(Cell, cells))) for label, cells in rows)
    return Table(title, ("",), spans, (RowGroup("", lines),))


def _flatten(row: AuditResponseExample) -> str:
    return make_printable(" ⏎ ".join(line for line in row.reply.splitlines() if line.strip()))


def _format_value(value: float | None, scale: str) -> str:
    """Format a difference, with two digits if two decimals would show 0."""
    if value is None:
        return "–"
    if scale == "share":
        return f"{100.0 * value:+z.1f}%"
    digits = 1 if scale == PER_TEXT else 2
    if 1e-9 < abs(value) < 0.005 and scale != PER_TEXT:
        digits = 1 - math.floor(math.log10(abs(value)))
    return f"{value:+z.{digits}f}"


def _format_effect(outcome: Outcome) -> str:
    return _format_value(outcome.effect_size, outcome.scale)


def _format_range(outcome: Outcome) -> str:
    if outcome.ci_low is None or outcome.ci_high is None:
        return "no interval"
    return f"[{_format_value(outcome.ci_low, outcome.scale)}, {_format_value(outcome.ci_high, outcome.scale)}]"


def _format_impact(row: AuditSelectionRow) -> str:
    interval = format_interval(row.impact_ci_low, row.impact_ci_high)
    if row.impact_ratio is None:
        return "–"
    return (
        f"{format_decimal(row.impact_ratio)} {'highest' if row.impact_ratio == 1.0 and interval == '–' else interval}"
    )


def _name_share(top: str) -> str:
    return "selected" if top == "decisions" else f"in the top {float(top):.0%}"


def _make_columns(record: type, *names: str) -> tuple[Column, ...]:
    """Return columns of a record. Capitalize groups, and show an empty group as "all"."""

    def show(column: Column) -> Column:
        if column.name not in ("group", "lowest", "highest"):
            return column
        return dataclasses.replace(column, get=lambda row: show_group(getattr(row, column.name)) or "all")

    return tuple(map(show, make_columns(record, *names)))


_SELECTION_COLUMNS = (
    *_make_columns(AuditSelectionRow, "group", "rate"),
    Column("impact_ratio", "impact ratio", "Rate divided by the highest rate.", get=_format_impact),
    Column(
        "ratio",
        "ratio to others",
        "Rate divided by the mean rate of the other groups.",
        get=lambda row: f"{format_decimal(row.ratio)} {format_interval(row.ci_low, row.ci_high)}",
    ),
    *_make_columns(AuditSelectionRow, "p_adjusted"),
)
_DOCUMENT_COLUMNS = (
    *_make_columns(AuditDocumentRow, "document"),
    Column("spread", "range", "Highest minus lowest score in this document.", get=lambda row: f"{row.spread:.2g}"),
    *_make_columns(AuditDocumentRow, "lowest", "highest"),
)
_COUNT_COLUMNS = _make_columns(AuditResponseCounts, "group", "responses", *RESPONSE_KINDS)
_UNDEFINED_COLUMNS = _make_columns(AuditUndefinedRow, "measure", "group", "reason", "responses")
_JUDGE_COLUMNS = _make_columns(AuditJudgeRow, "measure", "group", "judgements", "scored", *JUDGE_FAILURES)
_LABEL_COLUMNS = _make_columns(AuditJudgeRow, "n_labels", "judge_mean", "human_mean", "tau")
_WORD_COLUMNS = _make_columns(
    AuditWordRow, "word", "rate", "rate_others", "log_odds", "ci_low", "ci_high", "p_adjusted"
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
        views = [_ModelView(run, model) for model in split_by_model(run)]
        few, measured = len(views) <= _SIDE_BY_SIDE, [view for view in views if view.measured]
        statements, found = [view.statement for view in views], sum(bool(view.significant_results) for view in views)
        detailed = measured or [view for view in views if view.results]
        single = detailed[0] if len(detailed) == 1 else None
        *tables, methods = report.sections
        setup = _describe_setup(run)
        return dataclasses.replace(
            report,
            title=" ".join(statement.text for statement in statements)
            if few
            else f"{found:,} of {len(views):,} models treat some group of names differently",
            subject=f"{setup[0].upper()}{setup[1:]}: {', '.join(view.label for view in views)}",
            findings=(),
            statements=statements,
            details=list(map(Statement, single.details))
            if single
            else [Statement(f"{view.label}: {text}") for view in measured[:_SIDE_BY_SIDE] for text in view.placebo],
            figure=Markup("\n").join(drawn for view in measured for drawn in view.draw_differences())
            if measured
            else None,
            sections=[*_list_sections(run, views), *tables, _make_names_section(run), methods],
            tables=[view.table for view in measured] if few else [],
            tone="unsure",
        )

    def _get_meaning(self, run: RunData) -> str:
        settings = run.manifest.settings
        unit, corrected = "documents", ""
        what = (
            "D is the mean score of documents with a group's names minus that with the names of the other groups, in "
            "standard deviations (SD) of mean scores between documents."
        )
        if settings.collects_responses:
            unit = "prompts" if settings.writes else "documents"
            what = "Each difference is the mean over a group's names minus the mean over the names of the other groups."
            measures = "outcomes" if settings.writes else "measures"
            corrected = f", and p-values are corrected over groups and {measures} of a model"
        return (
            f"{what} Intervals and p-values treat names and {unit} as samples{corrected}. A difference that is not "
            "significant may still exist: check the smallest one that the audit could detect."
        )

    def _headline(self, run: RunData) -> str:
        inputs = run.manifest.inputs
        listed, n_queries = format_count(len(inputs.documents), "document"), len(inputs.queries)
        if run.manifest.settings.writes:
            listed = f"{format_count(len(inputs.documents), 'prompt')}, {format_count(n_queries, 'occupation')}"
        elif n_queries:
            listed += f", {n_queries} {'query' if n_queries == 1 else 'queries'}"
        return (
            f"{format_count(len(run.manifest.models), 'model')}; {format_count(len(inputs.names), 'name')} in "
            f"{inputs.n_groups} groups, {listed}"
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
        sources = tuple(use.work for use in self.sources([run]))
        unit = "prompt" if settings.writes else "document"
        yield MethodsSentence(
            f"With biassay {get_version(run)} we audited {format_models(run)} with {len(inputs.names):,} names of "
            f"{inputs.n_groups} groups ({inputs.names_source}) in {format_count(len(inputs.documents), unit)}",
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


def _list_sections(run: RunData, views: Sequence[_ModelView]) -> Iterator[Section]:
    """Yield what the report shows of all models, and what an audit cannot show."""
    settings, measured = run.manifest.settings, [view for view in views if view.measured]
    selected = [view for view in measured if view.selection]
    is_scores = not settings.collects_responses
    drawn = (
        f"{'Prompts' if settings.writes else 'Documents'} and names were drawn at random with seed {settings.seed}, "
        "without regard to the responses. Responses are shortened."
    )
    words = [table for view in measured for table in view.make_word_tables()]
    judges = [view.make_judgements_table() for view in views if view.model["judges"]]
    examples = [table for view in views for table in view.make_example_tables()]
    blocks: dict[tuple[str, str], Sequence[Block]] = {
        ("differences", "Differences"): [view.table for view in measured],
        ("selection", "Selection"): [
            block for view in selected for block in (view.draw_selection(), view.make_selection_table())
        ],
        ("names", "Names by score"): [view.draw_names() for view in measured if is_scores],
        ("matters", "Documents where the name matters most"): [
            make_table(
                view.label, _DOCUMENT_COLUMNS, sorted(view.model["documents"], key=lambda row: -row.spread), _TOP_WORDS
            )
            for view in measured
            if is_scores
        ],
        ("responses", "Missing responses"): [
            table for view in views if view.model["responses"] for table in view.make_missing_tables()
        ],
        ("judge", "Judge"): [Text(_JUDGE_NOTE), *judges] if judges else [],
        ("words", "Words that differ most"): [Text(_WORD_NOTE), *words] if words else [],
        ("examples", "Examples"): [Text(drawn), *examples] if examples else [],
    }
    for (name, title), own in blocks.items():
        if own:
            yield Section(name, title, tuple(own), collapsed=False)
    limits = LIMITS if is_scores else _WRITTEN_LIMITS if settings.writes else _RESPONSE_LIMITS
    warned = (Bullets(tuple(map(Statement, limits))),)
    yield Section("limits", "What this audit cannot show", warned, collapsed=False, printed=True)


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


def _describe_setup(run: RunData) -> str:
    """Describe how names were put into prompts: one alone, or several in comparison."""
    settings = run.manifest.settings
    if not settings.collects_responses:
        return "name audit of scores"
    if settings.writes:
        whose = "the user's name" if settings.role == "user" else "names in the prompt"
        responses = format_count(settings.responses_per_prompt, "response")
        return f"audit of texts ({run.manifest.inputs.prompt_set}), {whose}, {responses} per name and prompt"
    k = settings.count_candidates(run.manifest.inputs.n_groups)
    how = "candidates judged alone" if k == 1 else f"{k} candidates in comparison"
    return f"audit of decisions, {how}, {format_count(settings.responses_per_prompt, 'response')} per prompt"
